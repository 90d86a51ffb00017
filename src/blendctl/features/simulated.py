"""Look ahead by simulation: roll every controller out from the present state, at every decision."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blendctl.controllers.base import Controller, Stateful
from blendctl.controllers.lookahead_file import read_lookahead
from blendctl.controllers.lookahead_network import LookAheadNetwork, controller_label
from blendctl.controllers.zoo import find_lookahead, lookahead_file
from blendctl.envs.copies import CostFunction
from blendctl.errors import InputError, StateError
from blendctl.features.base import BoundFeature, LookAheadInfo, StageForesight
from blendctl.features.dial import Dial, DialPoint, card_points, card_steps, check_steps
from blendctl.features.flattening import FlatEnv, Flattening, flat_controllers
from blendctl.features.futures import (
    FOLLOWING,
    Following,
    FutureDrivers,
    Futures,
    RolloutPlan,
    Simulator,
    remember,
    roll_out,
)
from blendctl.features.lookahead import LookAhead, check_objectives, stage_foresight, value_entries, values_rule
from blendctl.features.model_simulator import ModelSimulator
from blendctl.features.sampling import Estimate, SampleTable
from blendctl.features.simulators import SetState, Twin, action_limits, as_simulator, same_environment

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]

ROUND = 3  # futures per controller between two tests whether more are needed
HEADROOM = 4.0  # psi is divided by this times the largest return and weighted cost so far: it stays shorter than 1
DISCOUNT = 0.99  # per control step, without networks
WEIGHT_RANGE = (0.02, 1.0)  # of the dial, without networks


@dataclass(frozen=True)
class SimulatedLookAhead:
    """Return-to-go and cost-to-go of every controller, by simulation from the present state.

    psi of an arm has six entries: those of `LookAhead`, and the standard errors of its return and its weighted cost.
    The standard errors widen the confidence intervals; the learner is never updated with them.

    simulator: None simulates copies of the environment that `run` drives; an environment, copies of that; with
        `set_state(environment, observation)`, a second environment that is set to the present state; `Twin(world)`, a
        world of blendctl that is rebuilt from the observation; a function
        `model(observation, controllers, horizon, rng)`, which returns the sums of reward and of cost of every
        controller, (controllers,) each.
    horizon: control steps of a future. samples: futures per controller at most; fewer where a paired test says which
        controller is best. following: who drives after the first `hold` steps: "same" controller, the "best" of them
        from there, or the "learned" look-ahead.
    network: look-ahead networks or their file, for the value of where a future ends, the dial, and decisions when time
        is up. None uses those that ship for these controllers, if there are any; False uses none.
    prefer, cost_budget, episode_steps: the dial, see `blendctl.features.dial.Dial`; `weight_range` and `dial` replace
        those of the networks.
    budget_ms: wall time of a decision, for one robot. When it is up, futures end where they are; before the end of the
        first option, the networks decide, or without networks the fallback controller. Events say so.
    cost: cost of a step, as of `run`, if it is not in `info["cost"]`. stochastic: draw actions from the controllers'
        distributions. threads: of the simulation; None uses all cores. flattening: how observations that are not
        vectors become vectors.
    """

    simulator: Any = None
    horizon: int = 40
    samples: int = 3
    following: Following = "same"
    hold: int = 5
    network: LookAheadNetwork | str | Path | bool | None = None
    prefer: float | None = None
    cost_budget: float | None = None
    episode_steps: int | None = None
    weight_range: tuple[float, float] | None = None
    dial: Sequence[DialPoint] | None = None
    discount: float | None = None
    budget_ms: float | None = None
    set_state: SetState | None = None
    cost: CostFunction | None = None
    stochastic: bool = True
    threads: int | None = None
    seed: int = 0
    flattening: Flattening | None = None

    def __post_init__(self) -> None:
        for name, least in (("horizon", 1), ("samples", 1), ("hold", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise InputError(f"{name} must be a whole number >= {least}, actually: {value!r}")
        if self.following not in FOLLOWING:
            raise InputError(f"following must be one of {', '.join(FOLLOWING)}, actually: {self.following!r}")
        if self.budget_ms is not None and not self.budget_ms > 0:
            raise InputError(f"budget_ms must be above 0, actually: {self.budget_ms!r}")
        if self.discount is not None and not 0.0 < self.discount <= 1.0:
            raise InputError(f"discount must be above 0 and at most 1, actually: {self.discount!r}")
        if self.set_state is not None and self.simulator is None:
            raise InputError("set_state needs a second environment: SimulatedLookAhead(env, set_state=...)")

    @property
    def setting(self) -> str:
        """The setting of the dial in words."""
        return LookAhead(prefer=self.prefer, cost_budget=self.cost_budget).setting

    def open(self, simulator: Any) -> Simulator | ModelSimulator:
        """Return the simulator that an environment or a model is; raise InputError for anything else."""
        if isinstance(simulator, Twin):
            return simulator.open(threads=self.threads)
        if callable(simulator) and not hasattr(simulator, "step"):
            return ModelSimulator(simulator)
        return as_simulator(simulator, set_state=self.set_state, cost=self.cost, threads=self.threads)

    def bind(self, controllers: Sequence[Controller], *, objectives: int) -> BoundFeature:
        check_objectives(objectives)
        network = self._find(controllers)
        card = {} if network is None else network.card
        steps = card_steps(card) if self.episode_steps is None else check_steps(self.episode_steps)
        points = card_points(card, episode_steps=steps) if self.dial is None else self.dial
        dial = Dial(
            self.weight_range or (WEIGHT_RANGE if network is None else network.weight_range),
            points,
            prefer=self.prefer,
            cost_budget=self.cost_budget,
            episode_steps=steps,
        )
        if self.following == "learned" and network is None:
            raise InputError('following="learned" needs look-ahead networks for these controllers')
        return BoundSimulatedLookAhead(self, controllers, network, dial, objectives=objectives)

    def _find(self, controllers: Sequence[Controller]) -> LookAheadNetwork | None:
        if self.network is False:
            return None
        if self.network is None or self.network is True:
            return find_lookahead(controllers, memory=False)  # the end of a future has no past
        network = (
            self.network if isinstance(self.network, LookAheadNetwork) else read_lookahead(lookahead_file(self.network))
        )
        network.check_controllers(controllers)
        return network


class BoundSimulatedLookAhead(BoundFeature):
    """The simulated look-ahead of known controllers, with the present setting of the dial."""

    size = 6
    error_entries = 2
    batched = True
    bootstraps = True

    def __init__(
        self,
        options: SimulatedLookAhead,
        controllers: Sequence[Controller],
        network: LookAheadNetwork | None,
        dial: Dial,
        *,
        objectives: int,
    ) -> None:
        self.objectives = objectives
        self.prior = np.concatenate([np.eye(2), np.eye(2), np.zeros((2, 2))])[:, :objectives]
        self.options, self.network, self.dial = options, network, dial
        self.controllers: list[Controller] = list(controllers)
        self.rule = values_rule(len(self.controllers))
        self.hold, self.warning = options.hold, dial.warning
        self.discount = options.discount or (DISCOUNT if network is None else network.discount)
        horizon = options.horizon if network is None else None
        self.lookahead = LookAheadInfo(self.discount, (dial.low, dial.high), dial.prefer, dial.cost_budget, horizon)
        self.weight = dial.weights(np.zeros(1), np.zeros(1))  # (B,) of the present stage
        self._step = np.zeros(1, np.int64)  # (B,) control steps of the episode before the present stage
        self._spent = np.zeros(1)  # (B,) cost of the episode before the present stage
        self.events: list[str] = []  # since the last decision
        self.simulated_steps = 0  # control steps of all futures so far
        self._rng = np.random.default_rng(options.seed)
        self._level = np.zeros(2) if network is None else np.asarray(network.level_unit, np.float64)
        self._stateful = [controller for controller in controllers if isinstance(controller, Stateful)]
        self._remembered = remember(self.controllers)
        self._simulator: Simulator | ModelSimulator | None = None
        self._drivers = FutureDrivers(controllers, None)
        self._estimate: tuple[FloatArray, Estimate | None] | None = None  # at the present observations
        self._next: tuple[FloatArray, Estimate | None] | None = None  # where the last stage ended
        if options.simulator is not None:
            self._open(options.simulator)

    def attach(self, env: Any) -> None:
        given = self.options.simulator
        if given is None:
            self._open(env)
        elif self._simulator is not None and self._simulator.copies_driven and not same_environment(given, env):
            raise InputError(
                "the simulator is another environment than the one that is driven: its futures would begin in its own "
                "state. Leave the simulator out, or set its state with set_state="
            )

    def begin_stage(self, spent: FloatArray, episode_step: NDArray[np.int64]) -> None:
        self.weight = self.dial.weights(spent, episode_step)
        self._spent, self._step = spent, episode_step
        self._estimate, self._next = self._next, None
        if self._stateful:
            self._remembered = remember(self.controllers)

    def end_episodes(self, costs: FloatArray) -> None:
        self.dial.end_episodes(costs)
        self._next = None

    def __call__(self, observation: Any, action: Any, arm: int) -> FloatArray:
        """Compute psi (6,) or (n, 6) of controller `arm`; its action is not needed."""
        observation = self._flat(observation)
        rows = np.atleast_2d(np.asarray(observation, np.float64))
        if self._estimate is None or not np.array_equal(self._estimate[0], rows):
            self._estimate = rows.copy(), self.simulate(rows)
        estimate = self._estimate[1]
        if estimate is None:
            raise StateError(f"the simulation was not ready after {self.options.budget_ms:g} ms")
        weight = np.broadcast_to(self.weight, (len(rows),))
        errors = [estimate.return_errors[:, arm], weight * estimate.cost_errors[:, arm]]
        psi = np.stack([*value_entries(estimate, weight, arm), *errors], axis=1)
        psi /= self._unit(weight)[:, None]
        return psi if np.ndim(observation) == 2 else psi[0]

    def foresight(self) -> StageForesight | None:
        """Return what was simulated for the present decision, in one world."""
        estimate = None if self._estimate is None else self._estimate[1]
        if estimate is None:
            return None
        unit = float(self._unit(self.weight)[0])
        return stage_foresight(
            estimate,
            unit=unit,
            weight=float(self.weight[0]),
            spent=float(self._spent[0]),
            dial=self.dial,
            objectives=self.objectives,
        )

    def target(self, feedback: FloatArray, observations: Any, *, steps: int) -> FloatArray:
        """Add the simulated value of the observations (n, ...) after a stage to its feedback (n, 2), in units of psi.

        The next decision uses the same futures. NaN if there are none; the learner refuses it.
        """
        rows = np.atleast_2d(np.asarray(self._flat(observations), np.float64))
        weight = np.broadcast_to(self.weight, (len(rows),))
        if self._stateful:
            self._remembered = remember(self.controllers)
        self._step = self._step + steps
        try:
            estimate = self.simulate(rows)
        except Exception:  # the next decision meets it again, and reports it
            return np.full(np.shape(feedback), np.nan)
        self._next = rows.copy(), estimate
        if estimate is None:
            return np.full(np.shape(feedback), np.nan)
        at, best = np.arange(len(rows)), estimate.best(weight)
        value = np.stack([estimate.returns[at, best], -estimate.costs[at, best]], axis=1)[:, : self.objectives]
        total = np.atleast_2d(feedback) + self.discount**steps * value
        total[:, 1:] *= weight[:, None]
        total /= self._unit(weight)[:, None]
        return total if np.ndim(feedback) == 2 else total[0]

    def simulate(self, observations: FloatArray) -> Estimate | None:
        """Roll out from the present state, at observations (n, observation_size).

        When time is up, return what the networks foresee; None without networks.
        """
        options, weight = self.options, np.broadcast_to(self.weight, (len(observations),))
        if options.budget_ms is not None and len(observations) > 1:
            raise InputError("budget_ms is for one robot; leave it out with many worlds in lock-step")
        if self._stateful and len(observations) > 1:
            raise InputError(
                f"the controller {controller_label(self._stateful[0])} has memory; simulated look-ahead in many "
                "worlds needs controllers without memory. Use a single Blender"
            )
        deadline = None if options.budget_ms is None else time.perf_counter() + options.budget_ms / 1000.0
        table, rows, done = SampleTable(len(observations)), np.arange(len(observations)), 0
        while len(rows) and done < options.samples:
            count = min(ROUND, options.samples - done)
            sums = self._roll(observations, rows, count, deadline, whole=done > 0)
            if sums is None:
                break
            table.add(rows, *sums)
            done += count
            rows = table.unclear(weight) if done < options.samples else rows
        if done:
            estimate = table.estimate(weight)
            self._level = np.maximum(self._level, [np.abs(estimate.returns).max(), np.abs(estimate.costs).max()])
            return estimate
        if self.network is None:
            return None
        self.events.append(f"the simulation was not ready after {options.budget_ms:g} ms; the networks decide")
        foresight = self.network.foresee(observations, weight)
        nothing = np.zeros_like(foresight.returns)
        return Estimate(foresight.returns, foresight.costs, nothing, nothing)

    def _roll(
        self, observations: FloatArray, rows: IndexArray, samples: int, deadline: float | None, *, whole: bool
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return returns and costs (rows, controllers, continuations, samples); None if time is up.

        whole: futures that end before the horizon do not count, because others did not.
        """
        options, simulator, arms = self.options, self._simulator, len(self.controllers)
        seeds = self._rng.integers(2**32, size=(samples, len(rows)))
        if simulator is None:
            raise InputError(
                "simulated look-ahead needs a simulator: drive with blendctl.run, or pass the environment or a model: "
                "features.SimulatedLookAhead(env)"
            )
        if isinstance(simulator, ModelSimulator):
            return simulator.sample(
                observations[rows], self.controllers, horizon=options.horizon, seeds=seeds, deadline=deadline
            )
        steps = np.broadcast_to(self._step, (len(observations),))
        plan = RolloutPlan(options.hold, options.horizon, self.discount, options.following, options.stochastic)
        branches = simulator.open(observations, np.tile(rows, arms * samples), np.tile(seeds.ravel(), arms), steps)
        weight = np.broadcast_to(self.weight, (len(observations),))[rows]
        futures = roll_out(
            branches,
            self._drivers.open(self._remembered, arms * seeds.size),
            plan,
            samples=samples,
            seed=int(self._rng.integers(2**63)),
            choose=None if self.network is None else lambda seen: self._choose(seen, weight),
            deadline=deadline,
        )
        if futures is None or (whole and futures.steps < options.horizon):
            return None
        if futures.steps < options.horizon:
            self.events.append(
                f"simulated {futures.steps} of {options.horizon} control steps in {options.budget_ms:g} ms"
            )
        self.simulated_steps += futures.returns.size * futures.steps
        return self._with_ends(futures, weight)

    def _with_ends(self, futures: Futures, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return returns and costs of futures, with the networks' value of where they got to."""
        if self.network is None:
            return futures.returns, futures.costs
        shape = futures.returns.shape
        weights = np.broadcast_to(weight[:, None, None, None], shape).ravel()
        foresight = self.network.foresee(futures.ends.reshape(weights.size, -1), weights)
        at, best = np.arange(weights.size), foresight.best
        ends = [values[at, best].reshape(shape) for values in (foresight.returns, foresight.costs)]
        return futures.returns + futures.carry * ends[0], futures.costs + futures.carry * ends[1]

    def _choose(self, observations: FloatArray, weight: FloatArray) -> IndexArray:
        assert self.network is not None
        return self.network.choose(observations, np.tile(weight, len(observations) // len(weight)))

    def _open(self, simulator: Any) -> None:
        if self.options.flattening is not None and hasattr(simulator, "step"):
            self.controllers = list(flat_controllers(self.controllers, simulator))
            self._stateful = [controller for controller in self.controllers if isinstance(controller, Stateful)]
            simulator = FlatEnv(simulator)
        self._simulator = self.options.open(simulator)
        if not isinstance(self._simulator, ModelSimulator):
            self._drivers = FutureDrivers(self.controllers, action_limits(simulator))

    def _flat(self, observation: Any) -> Any:
        return observation if self.options.flattening is None else self.options.flattening(observation)

    def _unit(self, weight: FloatArray) -> FloatArray:
        return np.asarray(HEADROOM * np.maximum(self._level[0] + weight * self._level[1], 1e-12))
