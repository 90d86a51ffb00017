"""Learn look-ahead networks from labelled decisions: double Q-learning with a level and a difference network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from blendctl.controllers import Encoding, LookAheadNetwork
from blendctl.controllers.lookahead_network import Normalisation
from blendctl.controllers.path_encoding import PathEncoding
from blendctl.errors import FileFormatError, StateError
from blendctl.training.algorithm import optimiser_tensors, restore_optimiser
from blendctl.training.lookahead_config import LookAheadConfig
from blendctl.training.lookahead_data import Decisions
from blendctl.training.policy import relu_layers, to_dense

FINAL_RATE_FACTOR = 0.03  # the learning rate ends at this share of its start
SPREAD_RATE = 0.01  # weight of a minibatch in the running spread of the differences
OWN_SHARE = 0.5  # share of the decisions of a minibatch that are learned at about the weight of their episode
NEARBY = 0.25  # how far log(weight) may be from that of the episode
DIFFERENCE_SHARE = 0.1  # unit of the differences, in units of the levels


@dataclass(frozen=True)
class LookAheadAccuracy:
    """R² of (return, cost) on held-out decisions, against targets that look one option ahead."""

    level: tuple[float, float]
    difference: tuple[float, float]  # between controllers at the same state; NaN if one alone was labelled
    weight: float  # cost weight of the measurement


class _Heads(nn.Module):
    """The networks in torch; inputs are the encoded observation and the position of the weight."""

    level_unit: Tensor
    difference_unit: Tensor

    def __init__(self, inputs: int, controllers: int, *, hidden: Sequence[int], members: int) -> None:
        super().__init__()
        self.controllers = controllers
        self.level = relu_layers((inputs + 1, *hidden, 2))
        self.members = nn.ModuleList(relu_layers((inputs + 1, *hidden, 2 * controllers)) for _ in range(members))
        self.register_buffer("level_unit", torch.ones(2))
        self.register_buffer("difference_unit", torch.ones(2))

    def each(self, rows: Tensor) -> Tensor:
        """Return by each member how much each controller differs from the level, (members, n, controllers, 2)."""
        raw = torch.stack([member(rows) for member in self.members]).view(-1, len(rows), self.controllers, 2)
        return (raw - raw.mean(2, keepdim=True)) * self.difference_unit

    def differences(self, rows: Tensor) -> Tensor:
        """Return the mean over the members, (n, controllers, 2)."""
        return self.each(rows).mean(0)

    def levels(self, rows: Tensor) -> Tensor:
        """Return the mean over the controllers, (n, 2)."""
        return torch.as_tensor(self.level(rows) * self.level_unit)


class LookAheadLearner:
    """Take gradient steps on decisions; the averaged networks choose, and they are the result."""

    def __init__(self, inputs: int, controllers: int, *, config: LookAheadConfig) -> None:
        self.config = config
        self.controllers = controllers
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            self.online = _Heads(inputs, controllers, hidden=config.hidden, members=config.members)
            self.averaged = _Heads(inputs, controllers, hidden=config.hidden, members=config.members)
        self.averaged.load_state_dict(self.online.state_dict())
        self.optimiser = torch.optim.Adam(self.online.parameters(), lr=config.lr)
        self.generator = torch.Generator().manual_seed(config.seed)
        self.spread = torch.zeros(2)  # running standard deviation of the differences between targets
        self.updates = 0

    def set_units(self, decisions: Decisions) -> None:
        """Set the units of the outputs from the first decisions."""
        sums = decisions.near_sums[decisions.labelled]  # (labels, 2)
        lost = 1.0 - float(decisions.near_carry[decisions.labelled].mean())  # discount of one option
        horizon = 1.0 / max(lost, 1e-3)  # options that matter
        unit = np.abs(sums.mean(0)) * horizon + sums.std(0) * math.sqrt(horizon)
        level = torch.from_numpy(np.maximum(unit, 1e-6).astype(np.float32))
        for heads in (self.online, self.averaged):
            heads.level_unit.copy_(level)
            heads.difference_unit.copy_(level * DIFFERENCE_SHARE)

    def update(self, decisions: Decisions, progress: float) -> float:
        """Take one gradient step at `progress` (0 to 1) of the run; return the loss."""
        config = self.config
        cosine = 0.5 * (1.0 + math.cos(math.pi * min(progress, 1.0)))
        for group in self.optimiser.param_groups:
            group["lr"] = config.lr * (FINAL_RATE_FACTOR + (1.0 - FINAL_RATE_FACTOR) * cosine)
        weights, own = self._draw_weights(decisions)
        targets = self.targets(decisions, weights, far=own)
        rows = self._rows(torch.from_numpy(decisions.inputs), weights)
        level, difference = self.online.levels(rows), self.online.each(rows)
        unit = self.online.level_unit
        labelled = torch.from_numpy(decisions.labelled)
        if bool(labelled.all()):
            mean = targets.mean(1)
            deviation = targets - mean[:, None]  # (n, controllers, 2)
            spread = deviation.square().mean((0, 1)).sqrt()
            rate = SPREAD_RATE if self.updates else 1.0
            self.spread.lerp_(spread, rate)
            # Squared errors: a difference is a rare event (a goal reached or not), which a robust loss ignores.
            loss = ((level - mean) / unit).square().mean()
            error = (difference - deviation) / self.spread.clamp(min=1e-6)
            loss = loss + config.difference_loss * error.square().mean()
        else:
            error = (level[:, None] + difference - targets) / unit
            loss = error[:, labelled].square().mean()
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own
        nn.utils.clip_grad_norm_(self.online.parameters(), config.max_grad)
        self.optimiser.step()
        with torch.no_grad():
            for slow, fast in zip(self.averaged.parameters(), self.online.parameters(), strict=True):
                slow.lerp_(fast, config.target_rate)
        self.updates += 1
        value = float(loss.detach())
        if not math.isfinite(value):
            raise StateError("the look-ahead networks diverged (NaN); try a smaller learning rate")
        return value

    @torch.no_grad()
    def targets(self, decisions: Decisions, weights: Tensor, *, far: NDArray[np.bool_]) -> Tensor:
        """Return return and cost until the end of the branch and after it, (n, controllers, 2), for weights (n,).

        `far` (n,) says which branches count to their far end. Double Q-learning: the online networks choose the next
        controller, the averaged ones evaluate it.
        """
        n, k = decisions.near_carry.shape
        end = np.where(far[:, None, None], decisions.far, decisions.near)
        sums = np.where(far[:, None, None], decisions.far_sums, decisions.near_sums)
        carry = np.where(far[:, None], decisions.far_carry, decisions.near_carry)
        following = torch.from_numpy(end).view(n * k, -1)
        repeated = weights.repeat_interleave(k)
        rows = self._rows(following, repeated)
        fast = self.online.differences(rows)
        best = (fast[..., 0] - repeated[:, None] * fast[..., 1]).argmax(1)
        slow = self.averaged.differences(rows)[torch.arange(n * k), best]
        after = (self.averaged.levels(rows) + slow).view(n, k, 2)
        return torch.from_numpy(sums) + torch.from_numpy(carry)[..., None] * after

    @torch.no_grad()
    def choose(self, inputs: NDArray[np.float32], weights: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the best controllers (n,) by the averaged networks."""
        cost_weights = torch.from_numpy(weights.astype(np.float32))
        difference = self.averaged.differences(self._rows(torch.from_numpy(inputs), cost_weights))
        return np.asarray((difference[..., 0] - cost_weights[:, None] * difference[..., 1]).argmax(1), np.intp)

    @torch.no_grad()
    def accuracy(self, decisions: Decisions, weight: float) -> LookAheadAccuracy:
        """Measure R² on decisions at a cost weight."""
        weights = torch.full((len(decisions.inputs),), weight)
        targets = self.targets(decisions, weights, far=np.zeros(len(weights), np.bool_))
        rows = self._rows(torch.from_numpy(decisions.inputs), weights)
        difference = self.averaged.differences(rows)
        estimate = self.averaged.levels(rows)[:, None] + difference
        labelled = torch.from_numpy(decisions.labelled)
        level = _r_squared(estimate[labelled], targets[labelled])
        if not bool(labelled.all()):
            return LookAheadAccuracy(level, (math.nan, math.nan), weight)
        # The differences between the first controller and each other determine those between all pairs.
        target = (targets[:, :1] - targets[:, 1:]).flatten(0, 1)
        foreseen = (difference[:, :1] - difference[:, 1:]).flatten(0, 1)
        return LookAheadAccuracy(level, _r_squared(foreseen, target), weight)

    def network(
        self,
        encoding: Encoding | Normalisation,
        *,
        digests: tuple[str, ...],
        names: tuple[str, ...],
        card: dict[str, Any],
        paths: PathEncoding | None = None,
    ) -> LookAheadNetwork:
        """Return the averaged networks in the form that runs without torch."""
        heads = self.averaged
        return LookAheadNetwork(
            encoding=encoding,
            level=to_dense(heads.level),
            differences=tuple(to_dense(cast(nn.Sequential, member)) for member in heads.members),
            level_unit=heads.level_unit.numpy().copy(),
            difference_unit=heads.difference_unit.numpy().copy(),
            weight_range=(self.config.weight_low, self.config.weight_high),
            hold=self.config.hold,
            discount=self.config.discount,
            digests=digests,
            names=names,
            card=card,
            paths=paths,
        )

    def tensors(self) -> dict[str, Tensor]:
        """Return all state that a checkpoint must hold, as named tensors."""
        out = {"spread": self.spread, "generator": self.generator.get_state()}
        for name, heads in (("online", self.online), ("averaged", self.averaged)):
            out |= {f"{name}.{key}": value for key, value in heads.state_dict().items()}
        out |= {f"adam.{key}": value for key, value in optimiser_tensors(self.optimiser).items()}
        return {name: value.detach().clone().contiguous() for name, value in out.items()}

    def restore(self, tensors: dict[str, Tensor], *, updates: int) -> None:
        """Continue from the tensors of a checkpoint."""
        try:
            self.spread = tensors["spread"].clone()
            self.generator.set_state(tensors["generator"])
            for name, heads in (("online", self.online), ("averaged", self.averaged)):
                heads.load_state_dict(_with_prefix(tensors, f"{name}."))
            restore_optimiser(self.optimiser, _with_prefix(tensors, "adam."))
        except (KeyError, ValueError, RuntimeError) as error:
            raise FileFormatError(f"the checkpoint does not fit these networks: {error}") from error
        self.updates = updates

    def _draw_weights(self, decisions: Decisions) -> tuple[Tensor, NDArray[np.bool_]]:
        """Draw cost weights (n,) to learn at, and whether they are about those of the branches, (n,).

        A branch was continued by choices for the weight of its episode, so its far end is right for about that weight
        only; its near end is right for every weight.
        """
        config, n = self.config, len(decisions.inputs)
        low, high = math.log(config.weight_low), math.log(config.weight_high)
        drawn = low + (high - low) * torch.rand(n, generator=self.generator)
        shifted = torch.from_numpy(np.log(np.maximum(decisions.weights, config.weight_low)))
        shifted = shifted + NEARBY * (2.0 * torch.rand(n, generator=self.generator) - 1.0)
        own = torch.rand(n, generator=self.generator) < OWN_SHARE
        own &= torch.from_numpy(decisions.weights > 0.0)
        return torch.exp(torch.where(own, shifted.clamp(low, high), drawn)), own.numpy()

    def _rows(self, inputs: Tensor, weights: Tensor) -> Tensor:
        """Append the position of log(weight) in its range, -1 to 1, to inputs (n, inputs)."""
        low, high = self.config.weight_low, self.config.weight_high
        position = torch.log(weights / math.sqrt(low * high)) / (0.5 * math.log(high / low))
        return torch.cat([inputs, position[:, None]], dim=1)


def _with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {key.removeprefix(prefix): value.clone() for key, value in tensors.items() if key.startswith(prefix)}


def _r_squared(estimate: Tensor, target: Tensor) -> tuple[float, float]:
    """Return R² of return and cost over rows (n, 2)."""
    error = (target - estimate).square().mean(0)
    out = 1.0 - error / target.var(0).clamp(min=1e-12)
    return float(out[0]), float(out[1])
