"""The settings of look-ahead training, importable without torch: each with its default and its help text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from blendctl.errors import InputError
from blendctl.training.config import convert_options, option, require


@dataclass(frozen=True)
class LookAheadConfig:
    """The settings of look-ahead training, besides controllers and environment."""

    steps: int = option(2_000_000, "environment steps to collect, all branches included")
    seed: int = option(0, "random seed of layouts, weights, action noise and minibatches")
    hold: int = option(5, "control steps of an option: how long a chosen controller drives")
    commit: int = option(20, "control steps that a branch is driven by its first controller, at least one option")
    teacher: int = option(0, "control steps after these that a branch is driven by the networks' choices")
    discount: float = option(0.99, "discount factor of rewards and costs, per control step")
    weight_low: float = option(0.02, "lowest cost weight: return that a unit of cost is worth")
    weight_high: float = option(1.0, "highest cost weight")
    # Paths, in worlds with lidars.
    points: int = option(8, "points of the predicted path of a controller, one per option (0: no paths)")
    path_share: float = option(0.25, "environment steps from which the paths are learned, as a share of `steps`")
    # Collection.
    worlds: int = option(128, "worlds that run in lock-step")
    explore: float = option(0.1, "probability of a random controller at a decision")
    random_share: float = option(0.1, "share of the run, at its start, in which the controllers take random turns")
    # Learning.
    hidden: tuple[int, ...] = option((256, 256), "sizes of the hidden layers of each network")
    members: int = option(3, "networks whose mean estimates the differences")
    minibatch: int = option(512, "decisions per gradient step")
    reuse: float = option(30.0, "how often each decision is drawn for a gradient step during the collection")
    final_reuse: float = option(20.0, "how often each decision is drawn when the final networks are fitted to all")
    lr: float = option(1e-3, "initial learning rate; it falls to 3% along a cosine")
    target_rate: float = option(0.005, "rate of the averaged networks, per gradient step")
    difference_loss: float = option(1.0, "weight of the loss of the differences, relative to that of the levels")
    max_grad: float = option(10.0, "clip gradients to this norm")
    # Execution.
    threads: int = option(1, "threads of the physics and of torch")
    checkpoint_every: float = option(120.0, "seconds between checkpoints")
    # Evaluation.
    dial_points: int = option(7, "cost weights that the final evaluation measures, from the lowest to the highest")
    dial_episodes: int = option(200, "episodes of each of them (0: no evaluation)")
    budget: float = option(25.0, "cost per episode; the evaluation reports the share of episodes above it")

    def __post_init__(self) -> None:
        for name in ("steps", "hold", "worlds", "members", "minibatch", "threads"):
            require(self, name, getattr(self, name) >= 1, "at least 1")
        for name in ("seed", "commit", "teacher", "points", "dial_episodes", "budget"):
            require(self, name, getattr(self, name) >= 0, "0 or more")
        for name in ("lr", "path_share", "reuse", "final_reuse", "difference_loss", "max_grad", "checkpoint_every"):
            require(self, name, getattr(self, name) > 0, "above 0")
        for name in ("explore", "random_share"):
            require(self, name, 0 <= getattr(self, name) <= 1, "0 to 1")
        require(self, "points", self.points == 0 or self.points >= 4, "0, or 4 or more")
        require(self, "discount", 0 <= self.discount < 1, "0 to below 1")
        require(self, "target_rate", 0 < self.target_rate <= 1, "above 0, at most 1")
        require(self, "weight_low", self.weight_low > 0, "above 0")
        require(self, "weight_high", self.weight_low < self.weight_high < math.inf, "above weight_low")
        require(self, "hidden", len(self.hidden) >= 1 and min(self.hidden) >= 1, "sizes such as 256,256")
        require(self, "dial_points", self.dial_points >= 2, "at least 2")

    @property
    def first_options(self) -> int:
        """Options of a branch that its first controller drives."""
        return max(math.ceil(self.commit / self.hold), 1)

    @property
    def following_options(self) -> int:
        """Options after these, before a branch ends."""
        return math.ceil(self.teacher / self.hold)

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain JSON data."""
        return asdict(self) | {"hidden": list(self.hidden)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LookAheadConfig:
        """Build a configuration from named values; refuse unknown names."""
        return cls(**convert_options(cls, data))


def require_several(controllers: Sequence[object]) -> None:
    """Raise InputError unless there are two controllers or more."""
    if len(controllers) < 2:
        raise InputError(f"look-ahead needs two controllers or more, actually: {len(controllers)}")
