"""Drive a blend in one compiled loop: the same stages as `blendctl.run`, bit for bit, in half the time.

If all parts are those of blendctl (network controllers, their predictions as context, the paper's rule, our worlds), no
Python is needed between two control steps, and a hundred of them run per call. `supports` checks the parts. If
something fails on the way, `CompiledLoop.episode` returns None, and the blender must repeat the drive.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import FloatArray
from blendctl.bandit.kernels import decide_one, loss_bound, update_one
from blendctl.bandit.memory_layout import INDICES, OK, RADIUS, decision_size
from blendctl.blender import Blender
from blendctl.compiled import compiled
from blendctl.controllers.dense import run_row
from blendctl.controllers.encoding import encode
from blendctl.controllers.network import NetworkController, predict_row
from blendctl.envs import SingleWorld
from blendctl.envs.compiled_task import SUBSTEPS, CompiledTask
from blendctl.envs.deferred_peek import DeferredPeeks, PeekResult, keep
from blendctl.envs.kernels import Outcome, step_world
from blendctl.envs.physics import PhysicsSlot
from blendctl.envs.world_state import ENDED, WorldState
from blendctl.errors import InputError
from blendctl.features.predictions import NextStepPredictions

STEPS_PER_CALL = 100  # control steps per call of compiled code

typeof: Callable[[object], object] = numba.typeof
_decision_size = compiled(decision_size)


class Stages(NamedTuple):
    """n stages of one control step each."""

    reward: FloatArray  # (n,)
    cost: FloatArray  # (n,)
    arm: NDArray[np.intp]  # (n,) arm that drove
    switched: NDArray[np.bool_]  # (n,) another arm drove before
    bound: FloatArray  # (n,) upper bound of the maximal loss
    truth: FloatArray  # (n, arms, 2) counterfactual reward and -cost of every arm
    psi: FloatArray  # (n, arms, 2)


def empty_stages(n: int, arms: int, *, objectives: int = 2, features: int = 2) -> Stages:
    """Allocate n stages."""
    reward, cost, bound = np.zeros((3, n))
    truth, psi = np.zeros((n, arms, objectives)), np.zeros((n, arms, features))
    return Stages(reward, cost, np.zeros(n, np.intp), np.zeros(n, np.bool_), bound, truth, psi)


class CompiledArm(NamedTuple):
    """The arrays of a network controller."""

    actor: NDArray[np.float32]
    actor_sizes: NDArray[np.int64]
    std: NDArray[np.float32]
    inputs: int  # of the actor
    sight: tuple[Any, ...]  # the actor's encoding
    context: tuple[Any, ...]  # the context network
    column: int  # of the next step's reward among the predictions


def supports(blender: Blender, world: Any) -> bool:
    """Return whether the compiled loop can drive this blender in this world."""
    return unsupported(blender, world) is None


def unsupported(blender: Blender, world: Any) -> str | None:
    """Return the first reason why the compiled loop cannot drive this blender in this world, None if it can."""
    if not isinstance(world, SingleWorld):
        return f"the world is not a SingleWorld: {type(world).__name__}"
    needs_the_blender = {
        "stages driven before": blender.step > 0 or blender.decided > 0,
        "a hold of more than one step": blender.hold > 1,
        "a dwell of more than one stage": blender.dwell > 1,
        "a frozen learner": blender.frozen,
        "a recorder": blender.recorder is not None,
        "deadlines": any(limit is not None for limit in blender.drivers.deadlines),
        "actions without noise": None in blender.drivers.rngs,
        'context="previous"': blender.context != "current",
        "features other than next-step predictions": type(blender.feature) is not NextStepPredictions,
        "objectives other than reward and -cost": blender.objectives.names != ("reward", "-cost"),
        "objectives that are functions": not blender.objectives.plain,
        f'the rule "{blender.bandit.rule.name}"': blender.bandit.arrays is None,
        "a single controller": len(blender.controllers) < 2,
        "a handover": blender.handover is not None,
        "a guard": blender.guard is not None,
        "a certificate": blender.monitor is not None,
    }
    for part, present in needs_the_blender.items():
        if present:
            return f"the blender has {part}"
    observation_size, action_size = world.batch.worlds.obs.shape[1], world.batch.act_size
    kinds = set()
    for name, controller in zip(blender.names, blender.controllers, strict=True):
        if type(controller) is not NetworkController or controller.context is None:
            return f"{name} is not a network controller with context networks"
        sizes = controller.observation_size, controller.context.encoding.observation_size, controller.action_size
        if sizes != (observation_size, observation_size, action_size):
            return f"the observations or actions of {name} are not those of the world"
        kinds.add(typeof(_compiled_arm(controller)))
    return "the networks of the controllers have different types" if len(kinds) > 1 else None


class CompiledLoop:
    """A blender's controllers and learner in a world of ours; use it as a context manager."""

    def __init__(self, world: SingleWorld, blender: Blender) -> None:
        reason = unsupported(blender, world)
        learner = blender.bandit.arrays
        if reason is not None or learner is None:
            raise InputError(f"the compiled loop cannot drive this: {reason}; use blendctl.run")
        self.world, self.blender, self.learner = world, blender, learner
        self.arms = tuple(_compiled_arm(c) for c in blender.controllers if isinstance(c, NetworkController))
        self.peeks = DeferredPeeks(world, size=STEPS_PER_CALL * (len(self.arms) - 1))
        self.previous = -1  # arm of the last stage

    def episode(self, seed: int) -> Stages | None:
        """Drive an episode; return None if the blender must repeat it (the learner is then invalid)."""
        self.world.reset(seed=seed)
        done: list[Stages] = []
        waiting: Future[PeekResult] | None = None
        ended = False
        while not ended:
            stages = self._chunk()
            if waiting is not None:
                _enter(done[-1], waiting.result())
            if stages is None:
                return None
            done.append(stages)
            waiting = self.peeks.start(len(stages.arm) * (len(self.arms) - 1))
            ended = bool(self.world.batch.worlds.phase[0] == ENDED)
        assert waiting is not None
        _enter(done[-1], waiting.result())
        return Stages._make(np.concatenate(parts) for parts in zip(*done, strict=True))

    def _chunk(self) -> Stages | None:
        batch, learner = self.world.batch, self.learner
        n, arms = min(STEPS_PER_CALL, int(batch.compiled_task.max_steps - batch.worlds.steps[0])), len(self.arms)
        rngs: list[Any] = self.blender.drivers.rngs
        before = [rng.bit_generator.state for rng in rngs]
        noise = np.stack([rng.standard_normal((n, batch.act_size)) for rng in rngs], axis=1)
        stages = empty_stages(n, arms)
        kept, asked = self.peeks.filling
        count = batch.pool.run(
            lambda thread_slot: drive(
                batch.compiled_task, thread_slot, batch.worlds, self.arms, self.previous,
                learner.state, learner.rng, learner.config, noise, kept, asked, batch.blank_outcome(), stages,
            )
        )[0]  # fmt: skip
        if count < n:
            # the episode ended early or failed: redraw only the noise that was used
            for rng, state in zip(rngs, before, strict=True):
                rng.bit_generator.state = state
                rng.standard_normal((max(count, 0), batch.act_size))
        if count < 0:
            return None
        stages = Stages._make(part[:count] for part in stages)
        self.previous = int(stages.arm[-1])
        return stages

    def __enter__(self) -> CompiledLoop:
        return self

    def __exit__(self, *what: object) -> None:
        self.peeks.close()


def _enter(stages: Stages, peeked: PeekResult) -> None:
    """Enter the counterfactual feedback of the arms that did not drive."""
    others = np.arange(stages.truth.shape[1]) != stages.arm[:, None]  # (n, arms)
    stages.truth[others] = np.stack([peeked.reward, np.multiply(peeked.cost, -1.0)], axis=1)


def _compiled_arm(controller: NetworkController) -> CompiledArm:
    context = controller.context
    assert context is not None
    return CompiledArm(
        actor=controller.actor.flat,
        actor_sizes=controller.actor.sizes,
        std=controller.std,
        inputs=controller.encoding.size,
        sight=controller.encoding.plan,
        context=context.plan,
        column=2 * context.horizons.index(1),
    )


@compiled
def drive(
    plan: CompiledTask,
    thread_slot: PhysicsSlot,
    worlds: WorldState,
    drivers: tuple[CompiledArm, ...],
    previous: int,
    learner: FloatArray,
    words: NDArray[np.uint64],
    config: FloatArray,
    noise: FloatArray,
    kept: WorldState,
    asked: FloatArray,
    out: Outcome,
    stages: Stages,
) -> int:
    """Drive len(noise) steps of world 0, or to the episode's end; return how many, or -1 after a failure."""
    steps, arms, size = noise.shape
    psi, actions = np.empty((arms, 2)), np.empty((arms, size))
    feedback, row = np.empty(2), np.empty(_decision_size(arms, 2))
    slot = 0
    for t in range(steps):
        for value in worlds.obs[0]:
            if not math.isfinite(value):
                return -1
        for arm in range(arms):
            if not propose(drivers[arm], worlds.obs, noise[t, arm], actions[arm], psi[arm]):
                return -1
        arm = decide_one(learner, words, config, psi, row)
        if arm < 0:
            return -1
        for other in range(arms):
            if other != arm:
                keep(worlds, 0, kept, slot)
                asked[0, slot] = actions[other]
                slot += 1
        clear(out)
        step_world(plan, thread_slot, worlds, 0, actions[arm], SUBSTEPS, out)
        feedback[0], feedback[1] = out.reward[0], -1.0 * out.cost[0]
        if not (math.isfinite(feedback[0]) and math.isfinite(feedback[1])):
            return -1
        if update_one(learner, config, psi[arm], feedback) != OK:
            return -1
        stages.reward[t], stages.cost[t], stages.arm[t] = 0.0 + out.reward[0], 0.0 + out.cost[0], arm
        stages.switched[t] = previous >= 0 and arm != previous
        stages.bound[t] = loss_bound(row[INDICES + arms + arm], row[RADIUS], row[INDICES + arm])
        stages.truth[t, arm] = 0.0 + feedback
        stages.psi[t] = psi
        previous = arm
        if worlds.phase[0] == ENDED:
            return t + 1
    return int(steps)


@compiled
def propose(
    driver: CompiledArm, observations: FloatArray, noise: FloatArray, action: FloatArray, psi: FloatArray
) -> bool:
    """Compute a controller's action at observations (1, obs), and its context; return False if not finite."""
    inputs = np.empty((1, driver.inputs), np.float32)
    encode(observations, inputs, *driver.sight)
    mean = run_row(inputs[0], driver.actor, driver.actor_sizes)
    for i in range(action.size):
        drawn = np.float64(mean[i]) + np.float64(driver.std[i]) * noise[i]
        if not math.isfinite(drawn):
            return False
        action[i] = min(max(drawn, -1.0), 1.0)
    predicted = predict_row(observations, action, *driver.context)
    psi[0], psi[1] = predicted[driver.column], -predicted[driver.column + 1]
    return math.isfinite(psi[0]) and math.isfinite(psi[1])


@compiled
def clear(out: Outcome) -> None:
    """Clear the fields that a step sets only on an event."""
    out.cost[0] = 0.0
    out.components[0] = 0.0
    out.terminated[0] = out.truncated[0] = out.unstable[0] = out.goal_met[0] = False
