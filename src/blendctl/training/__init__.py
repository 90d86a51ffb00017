"""Train controllers, context networks and look-ahead networks; all but the settings need torch."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from blendctl.errors import MissingExtraError
from blendctl.training.config import ALGORITHMS, SAFE_ALGORITHMS, TrainConfig
from blendctl.training.context_config import ContextConfig
from blendctl.training.lookahead_config import LookAheadConfig

if TYPE_CHECKING:
    from blendctl.training.context import train_contexts
    from blendctl.training.lookahead_training import train_lookahead
    from blendctl.training.run import TrainingRun
    from blendctl.training.trainer import Trainer, UpdateRecord, make_worlds

# OpenMP threads that spin while they wait make learning ten times slower as soon as another process runs. Threads
# that sleep at once make it a quarter slower on free cores. So they spin for a tenth of a millisecond, about the time
# until the next operation, and then sleep. OpenMP reads this when torch loads.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ["OMP_WAIT_POLICY"] = "passive"
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")

__all__ = [
    "ALGORITHMS",
    "SAFE_ALGORITHMS",
    "TrainConfig",
    "ContextConfig",
    "train_contexts",
    "LookAheadConfig",
    "train_lookahead",
    "Trainer",
    "UpdateRecord",
    "TrainingRun",
    "make_worlds",
]

# Loaded on first use: they import torch, which the help and completion of a command must not do.
_LAZY = {"TrainingRun": "run", "train_contexts": "context", "train_lookahead": "lookahead_training"} | dict.fromkeys(
    ("Trainer", "UpdateRecord", "make_worlds"), "trainer"
)


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import torch  # noqa: F401  # a missing torch raises here, with the extra to install
    except ImportError as error:
        raise MissingExtraError("torch", extra="train") from error
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
