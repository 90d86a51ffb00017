"""Blend controllers with a multi-objective bandit that bounds its own loss.

Everything loads when it is first used. If Gymnasium is already imported, the worlds are registered with it; otherwise
`import blendctl.envs`, or write `gymnasium.make("blendctl.envs:blendctl/PointGoal1-v0")`.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from blendctl import errors
from blendctl._version import __version__

if TYPE_CHECKING:
    from blendctl import envs, pareto
    from blendctl.bandit import BanditBatch, BlendingBandit, Decision, DecisionBatch
    from blendctl.blender import BlendEnv, Blender, BlenderBatch, Record, run
    from blendctl.experiments.compare_table import compare
    from blendctl.fitting import fit

__all__ = [
    "Blender",
    "BlenderBatch",
    "run",
    "fit",
    "Record",
    "BlendEnv",
    "compare",
    "BlendingBandit",
    "BanditBatch",
    "Decision",
    "DecisionBatch",
    "envs",
    "pareto",
    "errors",
    "__version__",
]

_HOMES = {
    "blendctl.blender": ("Blender", "BlenderBatch", "run", "Record", "BlendEnv"),
    "blendctl.fitting": ("fit",),
    "blendctl.experiments.compare_table": ("compare",),
    "blendctl.bandit": ("BlendingBandit", "BanditBatch", "Decision", "DecisionBatch"),
}


def __getattr__(name: str) -> Any:
    if name in ("envs", "pareto"):
        return importlib.import_module(f"blendctl.{name}")
    for home, names in _HOMES.items():
        if name in names:
            return globals().setdefault(name, getattr(importlib.import_module(home), name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if "gymnasium" in sys.modules:
    importlib.import_module("blendctl.envs")
