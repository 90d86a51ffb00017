"""PPO, TRPO, CPO, PPO-Lagrangian and TRPO-Lagrangian on worlds in lock-step; needs torch."""

import os

from blendctl.errors import MissingExtraError

# Threads that wait by spinning make learning ten times slower as soon as anything else runs; threads that sleep at
# once make it a quarter slower on free cores. So they spin for a tenth of a millisecond, about as long as the next
# piece of work is away, and then sleep. OpenMP reads this when torch loads.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ["OMP_WAIT_POLICY"] = "passive"
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")

try:
    import torch as _torch  # noqa: F401  # the one place that tells which extra is missing
except ImportError as error:
    raise MissingExtraError("torch", extra="train") from error

from blendctl.training.config import ALGORITHMS, SAFE_ALGORITHMS, TrainConfig, default_config
from blendctl.training.run import Run
from blendctl.training.trainer import Record, Trainer, make_worlds

__all__ = [
    "ALGORITHMS",
    "SAFE_ALGORITHMS",
    "TrainConfig",
    "default_config",
    "Trainer",
    "Record",
    "Run",
    "make_worlds",
]
