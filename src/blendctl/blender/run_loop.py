"""Run a blender in a Gymnasium environment, one world or many in lock-step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, overload

import gymnasium
from gymnasium.spaces import Discrete, MultiBinary, MultiDiscrete
from gymnasium.vector import AutoresetMode, VectorEnv

from blendctl.blender import arguments
from blendctl.blender.batch import BatchRecord, BlenderBatch
from blendctl.blender.core import Blender
from blendctl.blender.counterfactual import CounterfactualEvaluator
from blendctl.blender.objectives import check_cost_known
from blendctl.blender.record import Record
from blendctl.errors import InputError
from blendctl.rollout import rollout

COST_REMEDY = 'pass run(..., cost=lambda observation, action, info: ...), or objectives without "-cost"'
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
    """Drive whole episodes; yield a record when a stage is over and its feedback was observed.

    The first episode has seed `seed`, the next seed + 1, and so on. The cost is `info["cost"]`, or
    `cost(observation, action, info)`; its components are `info["cost_NAME"]`. With counterfactual=True every record
    has the feedback that each controller would have got (`truth`), and whether the choice was `correct`; that needs a
    world with `peek`. Records are then yielded up to some tens of steps late, in order, those of an episode before the
    next one begins. A `BlenderBatch` runs in a vector environment: a record per step, `episodes` in every world.
    """
    arguments.count("episodes", episodes)
    if not isinstance(blender, Blender | BlenderBatch):
        raise InputError(f"run drives a Blender or a BlenderBatch, actually: {blender!r}")
    if not isinstance(env, str | gymnasium.Env | VectorEnv):
        raise InputError(f"env must be an environment or the name of one, actually: {env!r}")
    if isinstance(blender, BlenderBatch):
        if cost is not None:
            raise InputError("many worlds take their cost from infos; cost= works with a single blender only")
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
    made_here = isinstance(env, str)
    world = make_env(env) if made_here else env
    evaluator = CounterfactualEvaluator(world, blender) if counterfactual else None
    signals = [name for name in blender.objectives.signals if name not in ("reward", "cost")]
    space = getattr(world, "action_space", None)
    discrete = isinstance(space, Discrete)
    if isinstance(space, Discrete | MultiDiscrete | MultiBinary):
        blender.drivers.restrict(space)
    try:
        blender.feature.attach(world)
        for episode in range(episodes):
            observation, _ = world.reset(seed=None if seed is None else seed + episode)
            ended = False
            while not ended:
                open_stage = blender.last if blender.holding and evaluator is None else None
                if evaluator is not None:
                    evaluator.before()
                action = blender.act(observation)
                choice = blender.choice
                assert choice is not None
                if open_stage is not None and open_stage.stage != choice.stage:
                    yield open_stage  # a failure cut it short
                full = not blender.holding
                if evaluator is not None and choice.step == blender.step:
                    blender.await_truth()
                    evaluator.look(choice)
                observation, reward, terminated, truncated, info = world.step(
                    action.item() if discrete and action.size == 1 else action
                )
                ended = terminated or truncated
                if cost is None:
                    check_cost_known(blender.objectives, info, remedy=COST_REMEDY)
                    step_cost = float(info["cost"]) if "cost" in info else None
                else:
                    step_cost = float(cost(observation, action, info))
                parts = {name: info.get(name) for name in signals}
                if evaluator is not None:
                    feedback = blender.objectives({"reward": float(reward), "cost": step_cost, **parts})
                    evaluator.see(feedback, full=full, ended=ended)
                blender.observe(float(reward), step_cost, done=ended, **parts)
                if evaluator is None:
                    if full or ended:
                        record = blender.last
                        assert record is not None
                        yield record
                    continue
                if ended:
                    evaluator.settle()
                # Complete all of them first: a caller that stops at one of them leaves the others complete.
                records = [blender.add_truth(*result) for result in evaluator.take()]
                yield from (record for record in records if record is not None)
    finally:
        if evaluator is not None:
            for result in evaluator.close():
                blender.add_truth(*result)
        if made_here:
            world.close()


def make_env(name: str) -> gymnasium.Env[Any, Any]:
    """Make an environment from the name of a world or from an id of Gymnasium."""
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
        blender.features.attach(env)
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
