"""Make the worlds known to Gymnasium whenever it is imported, before or after blendctl, without importing it.

Gymnasium has no plug-ins, and importing it costs more than the rest of `import blendctl`, which
a robot with a learner and no worlds should not pay.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["register_when_gymnasium_comes"]


class _Doorman:
    """An import hook that waits for Gymnasium, lets it in as usual, registers the worlds, and is gone."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            loader = spec.loader
            enter = loader.exec_module

            def enter_then_register(module: ModuleType) -> None:
                enter(module)
                importlib.import_module("blendctl.envs")

            loader.exec_module = enter_then_register  # type: ignore[method-assign]  # this loader's alone
        return spec


def register_when_gymnasium_comes() -> None:
    """Register now if Gymnasium is there, else as soon as it comes."""
    if "gymnasium" in sys.modules:
        importlib.import_module("blendctl.envs")
    elif not any(isinstance(finder, _Doorman) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Doorman())
