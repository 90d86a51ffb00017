"""Blend controllers with a multi-objective bandit that bounds its own loss."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from blendctl import envs, errors, pareto  # envs: makes the worlds known to Gymnasium, loads no physics
from blendctl._version import __version__
from blendctl.bandit import BanditBatch, BlendingBandit, Decision, DecisionBatch

if TYPE_CHECKING:
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

_LATE = ("Blender", "BlenderBatch", "run", "Record", "BlendEnv")  # they load numba, gymnasium and pyarrow


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return getattr(importlib.import_module("blendctl.blender"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
