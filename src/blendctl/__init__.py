"""Blend controllers with a multi-objective bandit that bounds its own loss.

Importing the package makes the worlds known to Gymnasium (see arrival.py); everything else loads when it is
first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from blendctl import errors
from blendctl._version import __version__
from blendctl.arrival import register_when_gymnasium_comes

if TYPE_CHECKING:
    from blendctl import envs, pareto
    from blendctl.bandit import BanditBatch, BlendingBandit, Decision, DecisionBatch
    from blendctl.blender import BlendEnv, Blender, BlenderBatch, Record, run

__all__ = [
    "Blender",
    "BlenderBatch",
    "run",
    "Record",
    "BlendEnv",
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
    "blendctl.bandit": ("BlendingBandit", "BanditBatch", "Decision", "DecisionBatch"),
}


register_when_gymnasium_comes()


def __getattr__(name: str) -> Any:
    if name in ("envs", "pareto"):
        return importlib.import_module(f"blendctl.{name}")
    for home, names in _HOMES.items():
        if name in names:
            return globals().setdefault(name, getattr(importlib.import_module(home), name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
