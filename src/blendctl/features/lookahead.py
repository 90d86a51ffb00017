"""The look-ahead context: the return and cost that follow if each controller drives the next stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import FloatArray
from blendctl.controllers.base import Controller
from blendctl.controllers.lookahead_file import read_lookahead
from blendctl.controllers.lookahead_network import EpisodeMemory, Foresight, LookAheadNetwork, controller_label
from blendctl.controllers.zoo import find_lookahead, lookahead_file, other_order
from blendctl.errors import InputError
from blendctl.features.base import BoundFeature, LookAheadInfo, StageForesight
from blendctl.features.dial import PREFER, Dial, card_points, card_steps, check_steps
from blendctl.features.flattening import Flattening


class ValuesToGo(Protocol):
    """Return and cost to go of n worlds, by networks or by simulation."""

    @property
    def returns(self) -> FloatArray: ...  # (n, controllers)

    @property
    def costs(self) -> FloatArray: ...  # (n, controllers)


HEADROOM = 4.0  # psi is divided by this times the typical size of return and weighted cost: it stays shorter than 1


@dataclass(frozen=True)
class LookAhead:
    """Return-to-go and cost-to-go of every controller, by look-ahead networks (`blendctl train-lookahead`).

    psi of an arm has four entries: how its return and its cost differ from their means over the arms, and these means.
    Costs are negated and multiplied by the cost weight of the dial; all entries have one unit. The means are common to
    the arms: they never decide, and let the learner calibrate levels without spoiling differences. The learner starts
    with trust in the networks (`prior`). Its feedback is the discounted sum of a stage plus the estimated value of the
    state in which the stage ended.

    network: look-ahead networks, their file, or their name in the zoo; None uses those that ship for these controllers.
    prefer, cost_budget, episode_steps: the dial, see `blendctl.features.dial.Dial`. Without episode_steps, episodes are
    as long as those that the networks' card measured; for others its returns and costs are scaled.
    flattening: how observations that are not vectors become what the networks take.
    """

    network: LookAheadNetwork | str | Path | None = None
    prefer: float | None = None
    cost_budget: float | None = None
    episode_steps: int | None = None
    flattening: Flattening | None = None

    @property
    def setting(self) -> str:
        """The setting of the dial in words."""
        if self.cost_budget is not None:
            return f"cost budget {self.cost_budget:g}"
        return f"prefer {PREFER if self.prefer is None else self.prefer:g}"

    def bind(self, controllers: Sequence[Controller], *, objectives: int) -> BoundFeature:
        check_objectives(objectives)
        network = self._find(controllers)
        network.check_controllers(controllers)
        steps = card_steps(network.card) if self.episode_steps is None else check_steps(self.episode_steps)
        dial = Dial(
            network.weight_range,
            card_points(network.card, episode_steps=steps),
            prefer=self.prefer,
            cost_budget=self.cost_budget,
            episode_steps=steps,
        )
        return BoundLookAhead(network, dial, objectives=objectives, flattening=self.flattening)

    def _find(self, controllers: Sequence[Controller]) -> LookAheadNetwork:
        if isinstance(self.network, LookAheadNetwork):
            return self.network
        if self.network is not None:
            return read_lookahead(lookahead_file(self.network))
        network = find_lookahead(controllers)
        if network is None:
            order = other_order(controllers)
            if order is not None:
                names = ", ".join(map(controller_label, order))
                raise InputError(f"there are look-ahead networks for another order of controllers; use: {names}")
            names = " ".join(map(controller_label, controllers))
            raise InputError(
                f"there are no look-ahead networks for the controllers {names}, in this order; train them with "
                f'"blendctl train-lookahead WORLD --controllers {names} --out DIR", or outside of blendctl\'s worlds '
                'with "blendctl fit ENV --controllers A B --out DIR", and use them with '
                '"blendctl blend --lookahead DIR" or features.LookAhead("DIR")'
            )
        return network


def budget_warning(dial: Dial, card: Mapping[str, Any]) -> str | None:
    """Warn of a budget that the safest setting cannot hold, or that is below what the safe controller costs alone."""
    alone = card.get("alone")
    if dial.warning is not None or dial.cost_budget is None or not alone:
        return dial.warning
    safe = alone[-1]
    cost = safe["cost_mean"] * dial.episode_steps / card_steps(card)
    if dial.cost_budget >= cost:
        return None
    return (
        f"a cost budget of {dial.cost_budget:g} per episode is below what {safe['name']} costs alone on average, "
        f"{cost:.1f}; the blend should hold it at a return of about "
        f"{dial.expected_return(dial.cost_budget):.1f}"
    )


def check_objectives(objectives: int) -> None:
    """Raise InputError unless the objectives can be reward and -cost, or the reward alone."""
    if objectives not in (1, 2):
        raise InputError(f'look-ahead needs the objectives ["reward", "-cost"], actually: {objectives} objectives')


def values_rule(arms: int) -> str:
    """Return the rule that chooses the greatest return - weight * cost among this many arms.

    With two arms the least maximal loss is the same choice. With more it prefers an arm that loses a little in both
    objectives to the best sum, and the cost weight of the dial has said already what a cost is worth. The contexts of
    two arms are mirrored, so that optimism adds the same to both; with more it would drown the differences.
    """
    return "maximal-loss" if arms <= 2 else "greedy"


def value_entries(values: ValuesToGo, weight: FloatArray, arm: int) -> list[FloatArray]:
    """Return entries of psi, (n,) each: return and -weight * cost of an arm less the means, and these."""
    mean_return, mean_cost = values.returns.mean(axis=1), values.costs.mean(axis=1)
    return [
        values.returns[:, arm] - mean_return,
        -weight * (values.costs[:, arm] - mean_cost),
        mean_return,
        -weight * mean_cost,
    ]


def stage_foresight(
    values: ValuesToGo, *, unit: float, weight: float, spent: float, dial: Dial, objectives: int
) -> StageForesight:
    """Return what was foreseen at a decision in one world, with the setting of the dial."""
    return StageForesight(
        np.stack([values.returns[0], -values.costs[0]], axis=1)[:, :objectives],
        np.array([unit, unit / weight])[:objectives],
        weight,
        spent,
        latched=dial.cost_budget is not None and weight >= dial.safest_weight * (1 - 1e-9),
    )


class BoundLookAhead(BoundFeature):
    """The look-ahead context of known controllers, with the present setting of the dial."""

    size = 4
    batched = True
    bootstraps = True

    def __init__(
        self, network: LookAheadNetwork, dial: Dial, *, objectives: int = 2, flattening: Flattening | None = None
    ) -> None:
        self.network, self.dial = network, dial
        self.objectives, self.flattening = objectives, flattening
        self.prior = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])[:, :objectives]
        self.rule = values_rule(len(network.digests))
        self.hold, self.discount = network.hold, network.discount
        self.warning = budget_warning(dial, network.card)
        self.lookahead = LookAheadInfo(network.discount, network.weight_range, dial.prefer, dial.cost_budget)
        self.weight = dial.weights(np.zeros(1), np.zeros(1))  # (B,) of the present stage
        self._spent = np.zeros(1)  # (B,) cost of the episode before the present stage
        self._step = np.zeros(1, np.int64)  # (B,) control steps of the episode before the present stage
        self._memory = EpisodeMemory(network)
        self._observations: NDArray[Any] | None = None
        self._foresight: Foresight | None = None

    def begin_stage(self, spent: FloatArray, episode_step: NDArray[np.int64]) -> None:
        self.weight = self.dial.weights(spent, episode_step)
        self._spent, self._step = spent, episode_step
        self._foresight = None

    def end_episodes(self, costs: FloatArray) -> None:
        self.dial.end_episodes(costs)

    def __call__(self, observation: Any, action: Any, arm: int) -> FloatArray:
        """Compute psi (4,) or (n, 4) of controller `arm`; its action is not needed."""
        observation = observation if self.flattening is None else self.flattening(observation)
        rows = np.atleast_2d(np.asarray(observation, np.float64))
        foresight = self.foresee(rows)
        weight = np.broadcast_to(self.weight, (len(rows),))
        psi = np.stack(value_entries(foresight, weight, arm), axis=1)
        psi /= self._unit(weight)[:, None]
        return psi if np.ndim(observation) == 2 else psi[0]

    def foresee(self, observations: FloatArray) -> Foresight:
        """Return what the networks foresee for observations (n, observation_size); all arms of a decision share it."""
        if self._foresight is None or not np.array_equal(self._observations, observations):  # type: ignore[arg-type]  # None is never equal
            self._observations = observations.copy()
            weight = np.broadcast_to(self.weight, (len(observations),))
            memory = self._memory.observe(observations, self._step)
            self._foresight = self.network.foresee(observations, weight, memory)
        return self._foresight

    def foresight(self) -> StageForesight | None:
        """Return what the networks foresee at the present decision, in one world."""
        if self._foresight is None:
            return None
        unit = float(self._unit(self.weight)[0])
        return stage_foresight(
            self._foresight,
            unit=unit,
            weight=float(self.weight[0]),
            spent=float(self._spent[0]),
            dial=self.dial,
            objectives=self.objectives,
        )

    def target(self, feedback: FloatArray, observations: Any, *, steps: int) -> FloatArray:
        """Add the value of the observations (n, ...) after a stage to its feedback (n, 2), in the units of psi."""
        observations = observations if self.flattening is None else self.flattening(observations)
        rows = np.atleast_2d(np.asarray(observations, np.float64))
        weight = np.broadcast_to(self.weight, (len(rows),))
        after = self.network.foresee(rows, weight, self._memory.observe(rows, self._step + steps))
        at, best = np.arange(len(rows)), after.best
        carry = self.discount**steps
        value = np.stack([after.returns[at, best], -after.costs[at, best]], axis=1)[:, : self.objectives]
        total = np.atleast_2d(feedback) + carry * value
        total[:, 1:] *= weight[:, None]
        total /= self._unit(weight)[:, None]
        return total if np.ndim(feedback) == 2 else total[0]

    def _unit(self, weight: FloatArray) -> FloatArray:
        level = self.network.level_unit
        return np.asarray(HEADROOM * (float(level[0]) + weight * float(level[1])))
