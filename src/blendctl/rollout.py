"""Run many worlds in lock-step: the one loop that asks controllers, lets a switch choose, steps, and yields the result.

Evaluation, comparison, the paper's baselines, data collection and films are this loop with different switches and
consumers. It runs any Gymnasium vector environment whose autoreset is disabled.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from blendctl.arrays import ArmArray, BoolArray, FloatArray
from blendctl.controllers.adapters import act_rows
from blendctl.controllers.base import Controller, Stateful
from blendctl.controllers.network import NetworkController
from blendctl.errors import InputError, StateError

__all__ = ["rollout", "Switch", "StepInput", "StepBatch"]

Rng = np.random.Generator | None  # None: a controller returns its mean action


@dataclass(frozen=True, slots=True)
class StepInput:
    """What is known before a control step in B worlds."""

    step: int  # control steps since the rollout began: 0, 1, ...
    observations: FloatArray  # (B, observation_size)
    proposals: FloatArray  # (arms, B, action_size) action of every controller; NaN where it was not asked
    episode_step: NDArray[np.int64]  # (B,) control steps since the episode began
    spent: FloatArray  # (B,) cost of the episode so far
    last_arm: ArmArray  # (B,) arm of the step before; -1 at the first step of an episode

    @classmethod
    def at_start(cls, observations: FloatArray, proposals: FloatArray, *, step: int = 0) -> StepInput:
        """Return the input of worlds whose episodes have just begun."""
        n = len(observations)
        return cls(step, observations, proposals, np.zeros(n, np.int64), np.zeros(n), np.full(n, -1))


@dataclass(frozen=True, slots=True)
class StepBatch:
    """What happened in one control step of B worlds."""

    input: StepInput
    arm: ArmArray  # (B,) the controller that drove; with weights, the one of the largest weight
    weights: FloatArray | None  # (B, arms) of the applied actions; None if the switch chose one arm per world
    actions: FloatArray  # (B, action_size) as applied
    observations: FloatArray  # (B, observation_size) after the step, before any reset
    reward: FloatArray  # (B,)
    cost: FloatArray  # (B,)
    ended: BoolArray  # (B,) the episode ended with this step
    counted: BoolArray  # (B,) the step belongs to a requested episode
    infos: Mapping[str, Any]  # of the environment
    # "reward", "cost", "cost_NAME" -> (arms, B): the feedback of every arm from this state; None if not evaluated
    counterfactual: Mapping[str, FloatArray] | None = None

    @property
    def share(self) -> FloatArray:
        """The first controller's share of the action, (B,)."""
        return (self.arm == 0).astype(np.float64) if self.weights is None else self.weights[:, 0]


class Switch(Protocol):
    """A rule that decides which controller drives each world. Subclass it, or write the three methods."""

    @abstractmethod
    def choose(self, frame: StepInput) -> NDArray[Any]:
        """Return the arm of each world, (B,), or the weights of all actions, (B, arms), each row >= 0 with sum 1."""

    def learn(self, batch: StepBatch) -> None:
        """Learn from a step. Worlds that have finished their episodes continue in new ones: see `batch.counted`."""
        return

    def reset(self, mask: BoolArray) -> None:
        """Begin an episode in the worlds of mask (B,)."""
        return


def rollout(
    envs: VectorEnv[Any, Any, Any],
    switch: Switch,
    *,
    controllers: Sequence[Controller],
    seed: int | None = None,
    rngs: Sequence[Rng] | None = None,
    episodes: int | None = 1,
    steps: int | None = None,
    counterfactual_every: int = 0,
    ask: Literal["all", "driver"] = "all",
    raw_proposals: bool = False,
) -> Iterator[StepBatch]:
    """Run `episodes` episodes in each world, or to `steps` control steps; yield what happened in every step.

    World i has the seeds seed + i * episodes, seed + i * episodes + 1, ...; a world that is done before others
    continues in new episodes, which are not counted, because all worlds step together. episodes=None never stops.

    Args:
        envs: B worlds with `autoreset_mode=AutoresetMode.DISABLED`; the cost of a step is `infos["cost"]`, else 0.
        switch: Decides in every step.
        controllers: The arms.
        seed: Seed of the layouts; None continues the environment's random streams.
        rngs: Random generator of each controller's action noise, None for mean actions. Default: `noise_rngs(seed)`.
        episodes: Episodes per world.
        steps: Largest number of control steps.
        counterfactual_every: Evaluate the other arms from the same state every n-th step; 0: never.
            The environment needs `peek`, and the switch must choose arms, not mixtures.
        ask: "all" asks every controller in every world. "driver" asks after the choice, only the one that drives.
        raw_proposals: Pass actions to the switch as they are. By default they must be finite, and are clipped to the
            action space.
    """
    if envs.metadata.get("autoreset_mode") is not AutoresetMode.DISABLED:
        raise InputError(
            'expected a vector environment with autoreset_mode="Disabled", so that no step is spent on a reset; '
            f"actually: {envs.metadata.get('autoreset_mode')}"
        )
    if episodes is None and steps is None:
        raise InputError("expected a number of episodes or of steps; with neither a rollout never ends")
    if counterfactual_every and not hasattr(envs, "peek"):
        raise InputError(f"counterfactual steps need worlds with `peek`, actually: {envs!r}")
    if counterfactual_every and ask != "all":
        raise InputError('counterfactual steps need the actions of all controllers: use ask="all"')
    for controller in controllers:
        check_fits(controller, envs)
    rngs = noise_rngs(seed, len(controllers)) if rngs is None else rngs
    actors = _Actors(controllers, rngs, None if raw_proposals else envs.single_action_space)
    return _steps(envs, switch, actors, seed, episodes, steps, counterfactual_every, ask == "driver")


def noise_rngs(seed: int | None, arms: int) -> list[Rng]:
    """Return a random generator per controller; the streams depend on `seed` alone, not on which controller drives."""
    return [np.random.default_rng(None if seed is None else [seed, 0, arm]) for arm in range(arms)]


def _steps(
    envs: Any,
    switch: Switch,
    actors: _Actors,
    seed: int | None,
    episodes: int | None,
    steps: int | None,
    counterfactual_every: int,
    ask_driver: bool,
) -> Iterator[StepBatch]:
    n, arms = envs.num_envs, len(actors.controllers)
    rows, everyone = np.arange(n), np.ones(n, np.bool_)
    done = np.zeros(n, np.int64)  # whole episodes
    live = everyone
    seeds = None if seed is None else [seed + row * (episodes or 1) for row in range(n)]
    observations, _ = envs.reset(seed=seeds)
    actors.reset()
    switch.reset(everyone)
    episode_step, spent, last_arm = np.zeros(n, np.int64), np.zeros(n), np.full(n, -1)
    unknown = np.full((arms, n, *envs.single_action_space.shape), np.nan) if ask_driver else None
    step = 0
    while live.any() and step != steps:
        proposals = actors.ask(observations) if unknown is None else unknown
        frame = StepInput(step, observations, proposals, episode_step, spent, last_arm)
        arm, weights = _split(np.asarray(switch.choose(frame)), (n, arms))
        if unknown is not None:
            actions = actors.ask_drivers(observations, arm)
        elif weights is None:
            actions = proposals[arm, rows]
        else:
            actions = np.einsum("bk,kba->ba", weights, proposals)
        due = counterfactual_every and step % counterfactual_every == 0 and arms > 1
        if due and (weights is None or bool(((weights == 0.0) | (weights == 1.0)).all())):
            others = (arm + 1 + np.arange(arms - 1)[:, None]) % arms  # (arms - 1, B)
            peeked = envs.peek(proposals[others, rows], components=True)
        else:
            peeked = None
        following, reward, terminated, truncated, infos = envs.step(actions)
        ended = np.asarray(terminated | truncated)
        reward = np.asarray(reward, np.float64)
        cost = np.asarray(infos["cost"] if "cost" in infos else np.zeros(n), np.float64)
        _check_finite({"reward": reward, "cost": cost}, live)
        counterfactual = None
        if peeked is not None:
            signals = {"reward": peeked[0], "cost": peeked[1], **peeked[2]}
            driven = {**infos, "reward": reward, "cost": cost}
            counterfactual = {name: np.empty((arms, n)) for name in signals}
            for name, values in counterfactual.items():
                # An environment may report a part of the cost only where it occurs.
                values[others, rows], values[arm, rows] = signals[name], driven.get(name, 0.0)
        batch = StepBatch(
            input=frame,
            arm=arm,
            weights=weights,
            actions=actions,
            observations=following,
            reward=reward,
            cost=cost,
            ended=ended,
            counted=live,
            infos=infos,
            counterfactual=counterfactual,
        )
        switch.learn(batch)
        yield batch
        observations, step = following, step + 1
        episode_step, spent, last_arm = episode_step + 1, spent + cost, arm
        if not ended.any():
            continue
        done = done + ended
        live = everyone if episodes is None else done < episodes
        if live.any() and step != steps:
            again = [None] * n if seeds is None or episodes is None else _next_seeds(seeds, ended & live, done)
            observations, _ = envs.reset(seed=again, options={"reset_mask": ended})
            episode_step, spent = np.where(ended, 0, episode_step), np.where(ended, 0.0, spent)
            last_arm = np.where(ended, -1, arm)
            if ended.all():
                actors.reset()
            switch.reset(ended)


def _next_seeds(seeds: list[int], due: BoolArray, done: NDArray[np.int64]) -> list[int | None]:
    return [first + int(k) if begins else None for first, begins, k in zip(seeds, due, done, strict=True)]


def _check_finite(signals: Mapping[str, FloatArray], live: BoolArray) -> None:
    """Raise StateError if a signal (B,) of a world that still runs is NaN or infinite."""
    for name, values in signals.items():
        if not np.isfinite(values[live]).all():
            raise StateError(
                f"the environment returned a {name} that is NaN or infinite: {values[live & ~np.isfinite(values)][0]}; "
                "the rollout stops"
            )


def _split(choice: NDArray[Any], shape: tuple[int, int]) -> tuple[ArmArray, FloatArray | None]:
    """Return the arms (B,) of a choice, and its weights if it is not one arm per world."""
    if choice.ndim == 1:
        assert choice.shape == shape[:1], f"arms {choice.shape}, expected {shape[:1]}"
        return choice.astype(np.intp, copy=False), None
    assert choice.shape == shape, f"weights {choice.shape}, expected {shape}"
    assert np.allclose(choice.sum(axis=1), 1.0), "weights must sum to 1"
    return choice.argmax(axis=1), choice


class _Actors:
    """The controllers with their random generators and the limits of their actions."""

    def __init__(self, controllers: Sequence[Controller], rngs: Sequence[Rng], space: Any) -> None:
        self.controllers, self.rngs, self.checked = controllers, rngs, space is not None
        self.limits = (space.low, space.high) if isinstance(space, Box) else None

    def reset(self) -> None:
        """Start a new episode in controllers that remember their observations."""
        for controller in self.controllers:
            if isinstance(controller, Stateful):
                controller.reset()

    def ask(self, observations: FloatArray) -> FloatArray:
        """Return the actions (arms, B, action_size) of all controllers."""
        proposals = propose(self.controllers, observations, self.rngs)
        if self.limits is not None and proposals.shape[2:] != self.limits[0].shape:
            wanted = (len(observations), *self.limits[0].shape)
            raise InputError(f"expected actions of shape {wanted}, actually: {proposals.shape[1:]}")
        if self.checked and not np.isfinite(proposals).all():
            arm = int(np.argwhere(~np.isfinite(proposals))[0][0])
            name = getattr(self.controllers[arm], "name", arm)
            raise StateError(f"controller {name} returned an action that is NaN or infinite; the rollout stops")
        return proposals if self.limits is None else np.clip(proposals, *self.limits)

    def ask_drivers(self, observations: FloatArray, arm: ArmArray) -> FloatArray:
        """Return the actions (B, action_size), each of the controller that drives the world."""
        parts = [(rows, index) for index in range(len(self.controllers)) if len(rows := np.flatnonzero(arm == index))]
        actions_of = [(rows, act_rows(self.controllers[i], observations[rows], self.rngs[i])) for rows, i in parts]
        actions = np.empty((len(arm), actions_of[0][1].shape[1]))
        for rows, chosen in actions_of:
            actions[rows] = chosen
        return actions if self.limits is None else np.clip(actions, *self.limits)


def propose(controllers: Sequence[Controller], observations: FloatArray, rngs: Sequence[Rng]) -> FloatArray:
    """Return the action of every controller in every world, (arms, B, action_size)."""
    actions = [act_rows(controller, observations, rng) for controller, rng in zip(controllers, rngs, strict=True)]
    if len({action.shape for action in actions}) > 1:
        shapes = ", ".join(str(action.shape) for action in actions)
        raise InputError(f"the controllers' actions must have one shape, actually: {shapes}")
    return np.stack(actions)


def check_fits(controller: Controller, envs: VectorEnv[Any, Any, Any]) -> None:
    """Raise InputError if a network controller's shapes do not fit the worlds."""
    spaces = envs.single_observation_space, envs.single_action_space
    if not isinstance(controller, NetworkController) or not all(isinstance(space, Box) for space in spaces):
        return
    have = controller.observation_size, controller.action_size
    need = tuple(int(np.prod(space.shape or ())) for space in spaces)
    if have != need:
        raise InputError(
            f"controller {controller.name!r} takes {have[0]} observations and returns {have[1]} actions; this world "
            f"has {need[0]} and {need[1]}. Use a controller trained for it"
        )
