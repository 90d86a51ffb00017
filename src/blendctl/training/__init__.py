"""PPO, TRPO, CPO, PPO-Lagrangian and TRPO-Lagrangian on worlds in lock-step; all but the settings need torch."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from blendctl.errors import MissingExtraError
from blendctl.training.config import ALGORITHMS, SAFE_ALGORITHMS, TrainConfig, default_config
from blendctl.training.context_config import ContextConfig

if TYPE_CHECKING:
    from blendctl.training.context import train_contexts
    from blendctl.training.run import Run
    from blendctl.training.trainer import Record, Trainer, make_worlds

# Threads that wait by spinning make learning ten times slower as soon as anything else runs; threads that sleep at
# once make it a quarter slower on free cores. So they spin for a tenth of a millisecond, about as long as the next
# piece of work is away, and then sleep. OpenMP reads this when torch loads.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ["OMP_WAIT_POLICY"] = "passive"
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")

__all__ = [
    "ALGORITHMS",
    "SAFE_ALGORITHMS",
    "TrainConfig",
    "default_config",
    "ContextConfig",
    "train_contexts",
    "Trainer",
    "Record",
    "Run",
    "make_worlds",
]

_LATE = {  # they load torch; a command's help and its completion must not
    "Run": "blendctl.training.run",
    "Trainer": "blendctl.training.trainer",
    "Record": "blendctl.training.trainer",
    "make_worlds": "blendctl.training.trainer",
    "train_contexts": "blendctl.training.context",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import torch  # noqa: F401  # the one place that tells which extra is missing
    except ImportError as error:
        raise MissingExtraError("torch", extra="train") from error
    return getattr(importlib.import_module(_LATE[name]), name)
