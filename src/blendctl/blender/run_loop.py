"""Run a blender in a Gymnasium environment, one world or many in lock-step; yield a record per stage."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, overload

import gymnasium
from gymnasium.vector import AutoresetMode, VectorEnv

from blendctl.blender.batch import BatchRecord, BlenderBatch
from blendctl.blender.core import Blender
from blendctl.blender.counterfactual import CounterfactualEvaluator
from blendctl.blender.record import Record
from blendctl.errors import InputError
from blendctl.rollout import rollout

__all__ = ["run"]

CostFunction = Callable[[Any, Any, dict[str, Any]], float]  # (observation, action, info) -> cost


@overload
def run(
    env: str | gymnasium.Env[Any, Any],
    blender: Blender,
    *,
    episodes: int = ...,
    seed: int | None = ...,
    cost: CostFunction | None = ...,
    counterfactual: bool = ...,
) -> Iterator[Record]: ...


@overload
def run(
    env: str | VectorEnv[Any, Any, Any],
    blender: BlenderBatch,
    *,
    episodes: int = ...,
    seed: int | None = ...,
    counterfactual: bool = ...,
) -> Iterator[BatchRecord]: ...


def run(
    env: Any,
    blender: Blender | BlenderBatch,
    *,
    episodes: int = 1,
    seed: int | None = None,
    cost: CostFunction | None = None,
    counterfactual: bool = False,
) -> Iterator[Record] | Iterator[BatchRecord]:
    """Drive for whole episodes; yield a record when a stage is over and its feedback has come.

    The first episode gets `seed`, the next seed + 1, and so on. The cost comes from `info["cost"]` (0 if there
    is none), or from `cost(observation, action, info)`; components of it from `info["cost_NAME"]`. With
    counterfactual=True every record has the feedback of each controller (`truth`) and whether the choice was
    `correct`; that needs a world with `peek`. Records then come up to some tens of steps late, in their order, those
    of an episode before the next one begins. A `BlenderBatch` runs in a vector environment, a
    record per step and `episodes` in every world.
    """
    if isinstance(episodes, bool) or not isinstance(episodes, int) or episodes < 1:
        raise InputError(f"episodes must be a whole number >= 1, actually: {episodes!r}")
    if not isinstance(blender, Blender | BlenderBatch):
        raise InputError(f"run drives a Blender or a BlenderBatch, actually: {blender!r}")
    if not isinstance(env, str | gymnasium.Env | VectorEnv):
        raise InputError(f"env must be an environment or the name of one, actually: {env!r}")
    if isinstance(blender, BlenderBatch):
        if cost is not None:
            raise InputError("many worlds take their cost from infos; pass cost= to a single blender only")
        return _many(env, blender, episodes, seed, counterfactual)
    if isinstance(env, VectorEnv):
        raise InputError("a vector environment needs a BlenderBatch: BlenderBatch(controllers, env.num_envs)")
    return _one(env, blender, episodes, seed, cost, counterfactual)


def _one(
    env: Any,
    blender: Blender,
    episodes: int,
    seed: int | None,
    cost: CostFunction | None,
    counterfactual: bool,
) -> Iterator[Record]:
    own = isinstance(env, str)
    world = _make(env) if own else env
    judge = CounterfactualEvaluator(world, blender) if counterfactual else None
    signals = [name for name in blender.objectives.signals if name not in ("reward", "cost")]
    discrete = isinstance(getattr(world, "action_space", None), gymnasium.spaces.Discrete)
    over: deque[Record] = deque()  # stages to be told, in their order, as soon as they are settled
    try:
        for episode in range(episodes):
            observation, _ = world.reset(seed=None if seed is None else seed + episode)
            ended = False
            record: Record | None = None
            while not ended:
                if judge is not None:
                    judge.before()
                action = blender.act(observation)
                if record is not None and record is not blender.last and not record.told:
                    over.append(record)  # a failure cut it short
                record = blender.last
                assert record is not None
                if judge is not None and record.steps == 1:
                    judge.look(record)
                observation, reward, terminated, truncated, info = world.step(
                    action.item() if discrete and action.size == 1 else action
                )
                ended = terminated or truncated
                price = info.get("cost", 0.0) if cost is None else cost(observation, action, info)
                parts = {name: info.get(name) for name in signals}
                if judge is not None:  # before the record may be written down
                    told = {"reward": float(reward), "cost": float(price)}
                    judge.see(record, blender.objectives(told | parts), ended=ended)
                blender.observe(float(reward), float(price), done=ended, **parts)
                if record.closed:
                    record.told = True
                    over.append(record)
                if judge is not None and ended:
                    judge.settle()
                while over and (judge is None or judge.settled(over[0])):
                    yield over.popleft()
    finally:
        if judge is not None:
            judge.close()
        if own:
            world.close()


def _make(name: str) -> gymnasium.Env[Any, Any]:
    from blendctl.envs import task_names, world_id  # importing it registers the ids

    try:
        return gymnasium.make(world_id(name) if name in task_names() else name)
    except gymnasium.error.UnregisteredEnv as error:
        raise InputError(f'there is no environment "{name}": {error}') from None


def _many(
    env: Any, blender: BlenderBatch, episodes: int, seed: int | None, counterfactual: bool
) -> Iterator[BatchRecord]:
    made_here = isinstance(env, str)
    if made_here:
        from blendctl.envs import VectorWorld

        env = VectorWorld(env, len(blender), autoreset_mode=AutoresetMode.DISABLED)
    try:
        if env.num_envs != len(blender):
            raise InputError(
                f"the environment has {env.num_envs} worlds, the blender drives {len(blender)}; they must be equal"
            )
        if counterfactual:
            blender.expect_single_steps()
        for batch in rollout(
            env,
            blender,
            controllers=blender.controllers,
            seed=seed,
            rngs=blender.rngs,
            episodes=episodes,
            counterfactual_every=int(counterfactual),
            raw_proposals=True,
        ):
            yield blender.record(batch)
    finally:
        if made_here:
            env.close()
