"""Look-ahead networks: return-to-go and cost-to-go of every controller of a set, without torch.

For an observation and a cost weight w, look-ahead networks estimate the discounted return and cost if controller k
drives the next `hold` control steps and the greedy switch, argmax_k return_k - w * cost_k, decides from then on.
They are dense networks. One estimates the mean over the controllers (the level), the others how much each controller
differs from it (the difference). Levels are a hundred times larger than differences, so one network for both would fit
the levels only. Differences are the mean over several networks that began with other weights: what one of them has
learned by heart, the others have not.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.arrays import FloatArray
from blendctl.controllers.base import Controller
from blendctl.controllers.dense import Dense
from blendctl.controllers.encoding import LARGEST_SIZE, Encoding
from blendctl.controllers.number_checks import check_real, check_whole
from blendctl.controllers.path_encoding import PathEncoding
from blendctl.errors import InputError
from blendctl.scene_map import SceneMemory

NORMALISED_CLIP = 10.0  # standard deviations
LARGEST_HOLD = 1_000_000
LARGEST_DISCOUNT = 1.0 - 1e-9
# Numbers of a point of the dial, with their lowest and highest values.
DIAL_REALS = {"weight": (1e-12, 1e12), "return_mean": (-1e12, 1e12), "cost_mean": (-1e12, 1e12), "over_budget": (0, 1)}
OPTIONAL_DIAL_REALS = {"cost_std": (0.0, 1e12)}  # older files do not have them
DIAL_COUNTS = ("episodes", "seed")

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Normalisation:
    """Standardise raw observations: the encoding for environments without an `Encoding`."""

    mean: Array  # (observation_size,)
    scale: Array  # (observation_size,) standard deviation, above 0

    def __post_init__(self) -> None:
        if self.mean.ndim != 1 or self.mean.shape != self.scale.shape or not (self.scale > 0).all():
            raise InputError(
                f"a normalisation has mean {self.mean.shape} and scale {self.scale.shape}; expected two vectors of "
                "one size, the scale above 0"
            )
        check_whole(self.mean.size, "observation_size", low=1, high=LARGEST_SIZE)

    @property
    def observation_size(self) -> int:
        """Entries of an observation."""
        return int(self.mean.size)

    @property
    def size(self) -> int:
        """Inputs of a network with this encoding."""
        return int(self.mean.size)

    def __call__(self, observations: ArrayLike) -> Array:
        """Standardise one row (observation_size,) or a batch (n, observation_size)."""
        raw = np.asarray(observations, np.float32)
        if raw.shape[-1:] != self.mean.shape or raw.ndim not in (1, 2):
            raise InputError(
                f"observation has shape {raw.shape}; allowed: ({self.mean.size},) or (n, {self.mean.size})"
            )
        return np.asarray(np.clip((raw - self.mean) / self.scale, -NORMALISED_CLIP, NORMALISED_CLIP), np.float32)


@dataclass(frozen=True)
class Foresight:
    """Discounted return and cost that follow, for n observations, if each controller drives the next option."""

    returns: FloatArray  # (n, controllers)
    costs: FloatArray  # (n, controllers)
    scores: FloatArray  # (n, controllers) return - weight * cost, minus its mean over the controllers

    @property
    def best(self) -> NDArray[np.intp]:
        """Controller with the highest score, the first of equals, (n,)."""
        return np.asarray(self.scores.argmax(axis=1), np.intp)


@dataclass(frozen=True)
class LookAheadNetwork:
    """Estimate return-to-go and cost-to-go of every controller, for any cost weight in a range.

    All networks take the encoded observation and the position of log(weight) in its range, from -1 to 1.
    `card["dial"]` lists what the greedy switch reached on validation seeds, by weight: `weight`, `return_mean`,
    `cost_mean`, `cost_std`, `over_budget`, `episodes`, `seed`; `card["alone"]` lists the same of each controller by
    `name`; `card["episode_steps"]` is the length of an episode, 1000 if it is missing. `card["r2_level"]` and
    `card["r2_difference"]` are held-out R² of return and cost, `card["limit"]` has them beside the highest that the
    state allows.
    """

    encoding: Encoding | Normalisation
    level: Dense  # -> (2,) mean of return and cost over the controllers, in units of level_unit
    differences: tuple[Dense, ...]  # -> (controllers * 2,) deviation of each controller, in units of difference_unit
    level_unit: Array  # (2,)
    difference_unit: Array  # (2,)
    weight_range: tuple[float, float]  # return that a unit of cost is worth: lowest, highest
    hold: int  # control steps of an option
    discount: float  # per control step
    digests: tuple[str, ...]  # of the controllers, in the order of the outputs
    names: tuple[str, ...]  # of the controllers, for people
    card: dict[str, Any] = field(default_factory=dict)  # training and accuracy
    paths: PathEncoding | None = None  # what they get besides the encoded observation

    def __post_init__(self) -> None:
        if len(self.digests) < 2 or len(self.names) != len(self.digests):
            raise InputError(
                f"look-ahead networks have {len(self.digests)} digests and {len(self.names)} names of controllers; "
                "expected two or more of each, one per controller"
            )
        if not all(isinstance(d, str) and re.fullmatch("[0-9a-f]{64}", d) for d in self.digests):
            raise InputError("the digest of a controller is not a SHA-256 in hexadecimal digits")
        if not all(isinstance(name, str) for name in self.names):
            raise InputError("the name of a controller is not a text")
        low = check_real(self.weight_range[0], "the lowest cost weight", low=1e-12)
        check_real(self.weight_range[1], "the highest cost weight", low=low * (1 + 1e-6))
        check_whole(self.hold, "hold", low=1, high=LARGEST_HOLD)
        check_real(self.discount, "discount", low=0.0, high=LARGEST_DISCOUNT)
        check_whole(len(self.differences), "the number of difference networks", low=1, high=100)
        outputs_of_all = 2 * self.controllers
        for name, network, unit, outputs in (
            ("level", self.level, self.level_unit, 2),
            *(("difference", network, self.difference_unit, outputs_of_all) for network in self.differences),
        ):
            if (network.inputs, network.outputs) != (self.input_size, outputs):
                raise InputError(
                    f"network {name!r} has {network.inputs} inputs and {network.outputs} outputs; "
                    f"expected {self.input_size} and {outputs}"
                )
            if unit.shape != (2,) or not (np.isfinite(unit) & (unit > 0)).all():
                raise InputError(f"the unit of network {name!r} must be two numbers above 0")
        if self.paths is not None and (
            (self.paths.network.inputs, self.paths.controllers) != (self.encoding.size, self.controllers)
            or self.paths.declaration.observation_size != self.encoding.observation_size
        ):
            raise InputError("the paths of look-ahead networks do not fit their encoding or their controllers")
        for point in self.card.get("dial", ()):
            given = {key: limits for key, limits in OPTIONAL_DIAL_REALS.items() if key in point}
            for key, (lowest, highest) in (DIAL_REALS | given).items():
                check_real(point[key], f"{key} of the dial", low=lowest, high=highest)
            for key in DIAL_COUNTS:
                check_whole(point[key], f"{key} of the dial", low=0, high=2**62)
        check_whole(self.card.get("episode_steps", 1), "episode_steps of the card", low=1, high=2**62)
        for row in self.card.get("alone", ()):
            check_real(row["cost_mean"], "the cost of a controller alone", low=-1e12, high=1e12)
            if not isinstance(row["name"], str):
                raise InputError("the name of a controller alone is not a text")

    @property
    def controllers(self) -> int:
        """Number of controllers."""
        return len(self.digests)

    @property
    def input_size(self) -> int:
        """Inputs of the level and of the difference networks."""
        return self.encoding.size + (0 if self.paths is None else self.paths.size) + 1

    def foresee(self, observations: ArrayLike, weight: ArrayLike, memory: SceneMemory | None = None) -> Foresight:
        """Estimate for observations (n, observation_size) and a weight, one number or (n,).

        memory: of the episodes, with these observations (`EpisodeMemory`); None: nothing before them is known.
        """
        return self.values(self.inputs(observations, weight, memory), weight)

    def values(self, inputs: Array, weight: ArrayLike) -> Foresight:
        """Estimate from inputs (n, input_size) of a weight, as `inputs` returns them."""
        level = _run(self.level, inputs) * self.level_unit  # (n, 2)
        difference = self._differences(inputs)
        total = level[:, None].astype(np.float64) + difference
        return Foresight(total[..., 0], total[..., 1], _scores(difference, weight))

    def choose(self, observations: ArrayLike, weight: ArrayLike, memory: SceneMemory | None = None) -> NDArray[np.intp]:
        """Return the controller with the highest score, (n,); this skips the levels."""
        scores = _scores(self._differences(self.inputs(observations, weight, memory)), weight)
        return np.asarray(scores.argmax(axis=1), np.intp)

    def inputs(self, observations: ArrayLike, weight: ArrayLike, memory: SceneMemory | None = None) -> Array:
        """Return the inputs of level and difference networks, (n, input_size)."""
        rows = np.atleast_2d(self.encoding(observations))
        out = np.empty((len(rows), self.input_size), np.float32)
        out[:, : rows.shape[1]] = rows
        if self.paths is not None:
            if memory is None:
                memory = self.paths.declaration.open(len(rows))
                memory.observe(np.atleast_2d(np.asarray(observations, np.float64)), 0)
            out[:, rows.shape[1] : -1] = self.paths(rows, memory)
        out[:, -1] = self.position(weight)
        return out

    def position(self, weight: ArrayLike) -> FloatArray:
        """Return the position of log(weight) in the range, -1 to 1; raise InputError outside of it."""
        values = np.asarray(weight, np.float64)
        low, high = self.weight_range
        if not ((values >= low * (1 - 1e-9)) & (values <= high * (1 + 1e-9))).all():
            raise InputError(f"expected a cost weight from {low:g} to {high:g}, actually: {values}")
        return np.asarray(np.log(values / math.sqrt(low * high)) / (0.5 * math.log(high / low)))

    def check_controllers(self, controllers: Sequence[Controller]) -> None:
        """Raise InputError unless these are the controllers of the training, in their order."""
        digests = [controller_digest(controller) for controller in controllers]
        if digests == list(self.digests):
            return
        names = ", ".join(self.names)
        if sorted(digests) == sorted(self.digests):
            raise InputError(f"these are look-ahead networks of another order of controllers; use the order {names}")
        given = ", ".join(map(controller_label, controllers))
        same = len(digests) == len(self.digests)
        reason = "the digests of the controllers' weights differ" if same else "name all of them, in this order"
        raise InputError(
            f"these look-ahead networks were trained for {names}, actually: {given}; {reason}. "
            "Train networks for these controllers with: blendctl train-lookahead"
        )

    def _differences(self, inputs: Array) -> FloatArray:
        """Return differences (n, controllers, 2) in real units, with mean 0 over the controllers."""
        outputs = sum(_run(network, inputs) for network in self.differences)
        raw = np.reshape(outputs, (len(inputs), self.controllers, 2)) / np.float32(len(self.differences))
        return np.asarray((raw - raw.mean(axis=1, keepdims=True)) * self.difference_unit, np.float64)


class EpisodeMemory:
    """What look-ahead networks remember of the episodes of many worlds; without paths they remember nothing."""

    def __init__(self, network: LookAheadNetwork) -> None:
        self._declaration = None if network.paths is None else network.paths.declaration
        self._memory: SceneMemory | None = None

    def observe(self, observations: FloatArray, steps: ArrayLike) -> SceneMemory | None:
        """Return the memory with observations (n, observation_size) after so many control steps of the episodes."""
        if self._declaration is None:
            return None
        if self._memory is None or len(self._memory) != len(observations):
            self._memory = self._declaration.open(len(observations))
        self._memory.observe(observations, steps)
        return self._memory


def _run(network: Dense, inputs: Array) -> Array:
    """Run a network on inputs (n, size); a single row is faster by itself."""
    return network.row(inputs[0])[None] if len(inputs) == 1 else network.batch(inputs)


def _scores(difference: FloatArray, weight: ArrayLike) -> FloatArray:
    """Return return - weight * cost (n, controllers) of differences (n, controllers, 2)."""
    weights = np.broadcast_to(np.asarray(weight, np.float64), len(difference))[:, None]
    return np.asarray(difference[..., 0] - weights * difference[..., 1])


def controller_digest(controller: Controller) -> str:
    """Return a controller's `digest`, or if it has none the SHA-256 of its class and name."""
    digest = getattr(controller, "digest", None)
    if isinstance(digest, str):
        return digest
    kind = type(controller)
    text = f"{kind.__module__}.{kind.__qualname__}:{getattr(controller, 'name', '')}"
    return hashlib.sha256(text.encode()).hexdigest()


def controller_label(controller: Controller) -> str:
    """Return a controller's name, or its class."""
    return str(getattr(controller, "name", type(controller).__name__))
