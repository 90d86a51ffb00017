"""Data for look-ahead networks: what every controller reaches from the same state in an option of a few steps.

Where the environment has `snapshot` and `restore` (the built-in worlds), all controllers drive on from the same state
with the same action noise, and one of these branches continues. Elsewhere one controller drives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from blendctl.arrays import ArmArray, BoolArray, FloatArray
from blendctl.controllers.adapters import act_rows
from blendctl.controllers.base import Controller, Stateful
from blendctl.controllers.path_encoding import MapDeclaration, PathEncoding
from blendctl.errors import InputError
from blendctl.scene_map import Maps
from blendctl.training.collector import EpisodeTotals, final_observations

Array = NDArray[np.float32]
ChooseNext = Callable[[Array], ArmArray]  # encoded observations (n, inputs) -> controllers (n,)


def first_layout(seed: int) -> int:
    """Return the first layout seed of a training run; validation uses seeds below 1,000,000, tests from 10,000,000."""
    return 5_000_000 + 100_000 * seed


@dataclass(frozen=True)
class Decisions:
    """The outcomes of n decisions, for each of k controllers; those that were not labelled hold 0.

    A branch begins with one or more options of one controller; those after them are chosen by the networks of that time
    at the cost weight of the episode. "near" is the end of the first controller's options, "far" the end of the branch.
    """

    inputs: Array  # (n, inputs) encoded observation at the decision
    weights: Array  # (n,) cost weight at which the branches were continued; 0 if the first controller drove to the end
    near: Array  # (n, k, inputs) encoded observation at the end
    near_sums: Array  # (n, k, 2) discounted return and cost until then
    near_carry: Array  # (n, k) discount of what follows; 0 where the episode terminated
    far: Array  # (n, k, inputs)
    far_sums: Array  # (n, k, 2)
    far_carry: Array  # (n, k)
    labelled: BoolArray  # (n, k) whether this controller drove from here

    @classmethod
    def empty(cls, n: int, k: int, inputs: int) -> Decisions:
        """Return n decisions of k controllers without labels."""
        arrays: dict[str, NDArray[Any]] = {
            "inputs": np.zeros((n, inputs), np.float32),
            "weights": np.zeros(n, np.float32),
            "labelled": np.zeros((n, k), np.bool_),
        }
        for end in ("near", "far"):
            arrays[end] = np.zeros((n, k, inputs), np.float32)
            arrays[f"{end}_sums"] = np.zeros((n, k, 2), np.float32)
            arrays[f"{end}_carry"] = np.zeros((n, k), np.float32)
        return cls(**arrays)


class DecisionBuffer:
    """Hold all decisions of a run."""

    def __init__(self, capacity: int, controllers: int, inputs: int) -> None:
        self.size = 0
        self.capacity = capacity
        self.rows = Decisions.empty(capacity, controllers, inputs)

    def add(self, decisions: Decisions) -> None:
        """Append decisions, as many as fit."""
        n = min(len(decisions.inputs), self.capacity - self.size)
        for name, array in vars(self.rows).items():
            array[self.size : self.size + n] = getattr(decisions, name)[:n]
        self.size += n

    def take(self, index: NDArray[np.int64] | slice) -> Decisions:
        """Return the decisions at an index."""
        return Decisions(**{name: array[index] for name, array in vars(self.rows).items()})


class OptionCollector:
    """Drive a vector environment option by option, and label what the controllers reach.

    hold: control steps of an option. commit, follow: options of a branch that its first controller drives, and those
    after them. paths: further inputs of the networks; declaration: what to remember of the episodes without them.
    """

    def __init__(
        self,
        environment: VectorEnv[Any, Any, Any],
        controllers: Sequence[Controller],
        *,
        encode: Callable[[FloatArray], Array],
        hold: int,
        commit: int = 1,
        follow: int,
        discount: float,
        seed: int,
        paths: PathEncoding | None = None,
        declaration: MapDeclaration | None = None,
    ) -> None:
        mode = environment.metadata.get("autoreset_mode")
        if mode is not AutoresetMode.SAME_STEP:
            raise InputError(
                "look-ahead training needs a vector environment with autoreset_mode=AutoresetMode.SAME_STEP, "
                f"actually: {mode}"
            )
        self.environment: Any = environment  # Any: it may have snapshot and restore
        self.controllers, self.encode = controllers, encode
        self.hold, self.commit, self.follow, self.discount = hold, commit, follow, discount
        # The memory of a controller cannot be restored, so its branches would not start from the same state.
        stateful = any(isinstance(controller, Stateful) for controller in controllers)
        self.branching = not stateful and all(hasattr(environment, name) for name in ("snapshot", "restore"))
        space = environment.single_action_space
        self.limits = (space.low, space.high) if isinstance(space, Box) else (-np.inf, np.inf)
        self.totals = EpisodeTotals(environment.num_envs, keep=64)
        declaration = declaration if paths is None else paths.declaration
        self.memory = None if declaration is None else declaration.open(environment.num_envs)
        self.paths = paths
        self.start(first_layout(seed), np.random.default_rng([seed, 1]))

    def start(self, layout: int, rng: np.random.Generator) -> None:
        """Begin new episodes, with layout seeds from `layout`."""
        self.rng = rng
        self.observations: FloatArray = np.asarray(self.environment.reset(seed=layout)[0], np.float64)
        self.steps = np.zeros(self.environment.num_envs, np.int64)  # of the present episodes
        self.totals.drop(np.ones(self.environment.num_envs, np.bool_))

    @property
    def steps_per_decision(self) -> int:
        """Environment steps of one call of `collect`."""
        branches = len(self.controllers) if self.branching else 1
        return int(self.environment.num_envs * self.hold * (self.commit + self.follow) * branches)

    def inputs(self) -> Array:
        """Return the inputs of the networks in the present state, (n, inputs)."""
        return self._inputs(self.observations, self.steps)

    def collect(self, arms: ArmArray, choose: ChooseNext | None = None) -> tuple[Decisions, BoolArray]:
        """Drive a branch of every controller, label it, and continue at the end of those of arms (n,).

        `choose` returns the controllers (n,) of the options that follow, from the inputs of the networks; None lets the
        first one continue. Return also whose episode ended (n,).
        """
        n, k = self.environment.num_envs, len(self.controllers)
        inputs = self.inputs()
        out = Decisions.empty(n, k, inputs.shape[1])
        out.inputs[:] = inputs
        noise = int(self.rng.integers(2**32))
        if not self.branching:
            ended, sums = self.drive(arms, noise, out, choose)
            self.totals.add(sums[:, 0], sums[:, 1], ended)
            return out, ended
        start, before = self.environment.snapshot(), self._position()
        ends, positions, outcomes = [], [], []  # of the branches
        for arm in range(k):
            if arm:
                self.environment.restore(start)
                self._set_position(before)
            outcomes.append(self.drive(np.full(n, arm), noise, out, choose))
            ends.append(self.environment.snapshot())
            positions.append(self._position())
        self.environment.restore([ends[arm][row] for row, arm in enumerate(arms)])
        rows = np.arange(n)
        self._set_position([np.stack(arrays)[arms, rows] for arrays in zip(*positions, strict=True)])
        ended, sums = (np.stack(arrays)[arms, rows] for arrays in zip(*outcomes, strict=True))
        self.totals.add(sums[:, 0], sums[:, 1], ended)
        return out, ended

    def collect_twice(self, arms: ArmArray) -> tuple[Decisions, Decisions]:
        """Label the present states twice, with independent action noise, and continue as `collect`.

        Each controller drives its branch to the end.
        """
        start, before = self.environment.snapshot(), self._position()
        first, _ = self.collect(arms)
        self.environment.restore(start)
        self._set_position(before)
        second, _ = self.collect(arms)
        return first, second

    def drive(
        self, first: ArmArray, noise: int, out: Decisions, choose: ChooseNext | None = None
    ) -> tuple[BoolArray, FloatArray]:
        """Drive a branch that begins with controllers first (n,), and write the outcome to `out`.

        Return whose episode ended (n,), and the undiscounted return and cost (n, 2) until then.
        """
        n = len(first)
        rows, arms = np.arange(n), first
        discounted, sums = np.zeros((n, 2)), np.zeros((n, 2))
        running = np.ones(n, np.bool_)  # the episode of the decision has not ended
        terminated_once = np.zeros(n, np.bool_)
        factor = np.ones(n)
        last, at = self.observations.copy(), self.steps.copy()  # of the episode of the decision
        rng = np.random.default_rng(noise)  # equal noise in every branch makes their difference less noisy
        near, far = self.hold * self.commit, self.hold * (self.commit + self.follow)
        for step in range(far):
            if step and step % self.hold == 0:
                inputs = self._inputs(last, at)  # also those that nobody asks for: the memory sees every option
                if choose is not None and step >= near:
                    arms = choose(inputs)
            following, reward, terminated, truncated, infos = self.environment.step(self._actions(arms, rng))
            feedback = np.where(running[:, None], np.stack([reward, _costs(infos, n)], axis=1), 0.0)
            sums += feedback
            discounted += factor[:, None] * feedback
            factor = np.where(running, factor * self.discount, factor)
            self.observations = np.asarray(following, np.float64)
            self.steps = np.where(terminated | truncated, 0, self.steps + 1)
            last[running] = self.observations[running]
            at += running
            ended = (terminated | truncated) & running
            for row, observation in final_observations(infos, ended).items():
                last[row] = observation
            terminated_once |= terminated & running
            running &= ~ended
            if ended.any() and not running.any():
                self._forget()
            carry = np.where(terminated_once, 0.0, factor)
            if step + 1 == near:
                out.near[rows, first] = self._inputs(last, at)
                out.near_sums[rows, first], out.near_carry[rows, first] = discounted, carry
        out.far[rows, first] = self._inputs(last, at)
        out.far_sums[rows, first], out.far_carry[rows, first] = discounted, carry
        out.labelled[rows, first] = True
        return ~running, sums

    def _inputs(self, observations: FloatArray, steps: NDArray[np.int64]) -> Array:
        encoded = self.encode(observations)
        if self.memory is None:
            return encoded
        self.memory.observe(observations, steps)
        return encoded if self.paths is None else np.concatenate([encoded, self.paths(encoded, self.memory)], axis=1)

    def _position(self) -> list[NDArray[Any]]:
        """Return where the episodes are, besides the state of the environment: arrays (n, ...)."""
        return [self.observations, self.steps, *(() if self.memory is None else self.memory.copy())]

    def _set_position(self, position: Sequence[NDArray[Any]]) -> None:
        self.observations, self.steps, *maps = position
        if self.memory is not None:
            self.memory.restore(Maps._make(maps))

    def _actions(self, arms: ArmArray, rng: np.random.Generator) -> FloatArray:
        """Return actions (n, action_size); the noise of a row does not depend on the controllers of other rows."""
        state = rng.bit_generator.state
        actions = np.zeros((len(arms), 1))
        for arm in np.unique(arms):
            rng.bit_generator.state = state
            actions = np.where((arms == arm)[:, None], act_rows(self.controllers[arm], self.observations, rng), actions)
        return np.clip(actions, *self.limits)

    def _forget(self) -> None:
        """Reset controllers with memory when all episodes have ended."""
        for controller in self.controllers:
            if isinstance(controller, Stateful):
                controller.reset()


def _costs(infos: dict[str, Any], n: int) -> FloatArray:
    """Return the costs of a step (n,); those of a last step may be in `final_info`."""
    if "cost" not in infos:
        raise InputError('look-ahead training needs the cost of each step in infos["cost"]; add it with a wrapper')
    costs = np.asarray(infos["cost"], np.float64)
    final = infos.get("final_info")
    if isinstance(final, dict) and "cost" in final and "_final_info" in infos:
        costs = np.where(infos["_final_info"], np.asarray(final["cost"], np.float64), costs)
    return costs.reshape(n)
