"""Drive whole episodes in lock-step worlds by the weights that a rival gives, and count what they bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from blendctl.blender.counterfactual import correct_choices
from blendctl.controllers import Controller
from blendctl.controllers.adapters import act_rows
from blendctl.controllers.evaluation import check_fits
from blendctl.envs import VectorWorld
from blendctl.errors import InputError, StateError
from blendctl.switches.base import RolloutContext, StepInput, Switch

__all__ = ["Episodes", "drive", "open_worlds"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

NOISE, RIVAL = 0, 1  # the streams of randomness of a drive


@dataclass(frozen=True)
class Episodes:
    """What whole episodes brought, an entry per episode."""

    returns: FloatArray  # (episodes,)
    costs: FloatArray  # (episodes,)
    lengths: FloatArray  # (episodes,) control steps
    shares: FloatArray  # (episodes,) of the first controller, by steps or by weight
    switches: FloatArray  # (episodes,) changes of who has the largest weight
    correct: FloatArray  # (episodes,) ratio of correct choices; NaN if none was judged

    def rows(self) -> list[dict[str, float]]:
        """Give a plain row per episode."""
        names = [field.name for field in fields(self)]
        columns = [getattr(self, name).tolist() for name in names]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def open_worlds(world: str, count: int, *, steps: int | None = None, threads: int = 1) -> VectorWorld:
    """Make the worlds of a drive; `steps` shortens the episodes."""
    return VectorWorld(world, count, threads=threads, autoreset_mode=AutoresetMode.DISABLED, max_episode_steps=steps)


def drive(
    worlds: VectorWorld,
    controllers: Sequence[Controller],
    *,
    make: Callable[[RolloutContext], Switch],
    seed: int,
    judge_every: int = 0,
    on_step: Callable[[int], None] | None = None,
) -> Episodes:
    """Run one episode in each world, world i with seed + i, and give what it brought.

    The controllers' action noise depends on `seed` alone, and every controller is asked in every step: whatever drives
    meets the same layouts and the same luck. With judge_every = n, every n-th step asks the worlds what each
    controller would have brought, and counts the correct choices, as the paper's authors do.
    """
    for controller in controllers:
        check_fits(controller, worlds)
    n, arms = worlds.num_envs, len(controllers)
    streams = [np.random.default_rng([seed, NOISE, arm]) for arm in range(arms)]
    rival_seed = int(np.random.default_rng([seed, RIVAL]).integers(2**31))
    observations, _ = worlds.reset(seed=seed)
    rival = make(RolloutContext(controllers, worlds, rival_seed))
    totals = np.zeros((5, n))  # return, cost, length, share, switches
    judged, right = np.zeros(n), np.zeros(n)
    live = np.ones(n, np.bool_)
    last: NDArray[np.intp] | None = None
    step = 0
    while live.any():
        frame = StepInput(step, observations, _ask(controllers, observations, streams))
        weights = _checked(rival.mix(frame), (n, arms))
        leader = weights.argmax(axis=1)
        if judge_every and step % judge_every == 0 and _is_switch(weights):
            truth = worlds.peek(frame.proposals)  # reward and cost, (arms, B) each
            feedback = np.stack([truth[0].T, -truth[1].T], axis=-1)
            right += correct_choices(feedback, leader) * live
            judged += live
        actions = np.einsum("bk,kba->ba", weights, frame.proposals)
        observations, reward, terminated, truncated, infos = worlds.step(actions)
        ended = terminated | truncated
        switched = np.zeros(n) if last is None else (leader != last).astype(np.float64)
        totals += np.stack([reward, infos["cost"], np.ones(n), weights[:, 0], switched]) * live
        rival.learn(reward, infos["cost"], ended=bool(ended.any()))
        live &= ~ended
        last = leader
        step += 1
        if on_step is not None:
            on_step(int(live.sum()))
        if live.any() and ended.any():
            # A world that is done drives on in a new episode, which is not counted: lock-step needs all of them.
            observations, _ = worlds.reset(options={"reset_mask": ended})
    returns, costs, lengths, weight, switches = totals
    with np.errstate(invalid="ignore"):
        correct = np.where(judged > 0, right / judged, np.nan)
    return Episodes(returns, costs, lengths=lengths, shares=weight / lengths, switches=switches, correct=correct)


def _ask(
    controllers: Sequence[Controller], observations: FloatArray, streams: Sequence[np.random.Generator]
) -> FloatArray:
    actions = [act_rows(controller, observations, rng) for controller, rng in zip(controllers, streams, strict=True)]
    shapes = {action.shape for action in actions}
    if len(shapes) > 1:
        raise InputError(f"the controllers' actions must have one shape, actually: {sorted(shapes)}")
    proposals = np.stack(actions)
    if not np.isfinite(proposals).all():
        arm = int(np.argwhere(~np.isfinite(proposals))[0][0])
        raise StateError(f"controller {arm} gave an action that is NaN or infinite; it cannot be compared")
    return np.clip(proposals, -1.0, 1.0)


def _checked(weights: FloatArray, shape: tuple[int, int]) -> FloatArray:
    assert weights.shape == shape, f"weights {weights.shape}, expected {shape}"
    assert np.allclose(weights.sum(axis=1), 1.0), "weights must sum to 1"
    return weights


def _is_switch(weights: FloatArray) -> bool:
    return bool(((weights == 0.0) | (weights == 1.0)).all())
