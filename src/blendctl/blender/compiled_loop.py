"""Drive a blend in one compiled loop: the same stages as `blendctl.blender.run` gives, to the bit, in half the time.

At a control step of a small robot most of the time goes to what holds the parts together. Where all parts are
blendctl's own (network controllers, their predictions as context, the paper's rule, our worlds) nothing needs Python
between two steps, and a hundred of them are driven at once. Whatever is unusual is left to the blender itself:
`CompiledLoop.episode` then gives None, and the drive must be done again from its start.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from blendctl.bandit.kernels import decide_one, update_one
from blendctl.bandit.memory_layout import INDICES, OK, RADIUS, decision_size
from blendctl.blender import Blender
from blendctl.compiled import compiled
from blendctl.controllers.dense import run_row
from blendctl.controllers.encoding import encode
from blendctl.controllers.network import NetworkController, predict_row
from blendctl.envs import SingleWorld
from blendctl.envs.compiled_task import SUBSTEPS, Plan
from blendctl.envs.deferred_peek import DeferredPeeks, PeekResult, keep
from blendctl.envs.kernels import Outcome, step_world
from blendctl.envs.physics import PhysicsSlot
from blendctl.envs.world_state import ENDED, WorldState

__all__ = ["CompiledLoop", "Stages"]

FloatArray = NDArray[np.float64]

STRETCH = 100  # steps between two visits to Python

typeof: Callable[[object], object] = numba.typeof
_decision_size = compiled(decision_size)


class Stages(NamedTuple):
    """What happened in n stages, one control step each."""

    reward: FloatArray  # (n,)
    cost: FloatArray  # (n,)
    arm: NDArray[np.intp]  # (n,) who drove
    switched: NDArray[np.bool_]  # (n,) another one drove before
    bound: FloatArray  # (n,) of the maximal loss
    truth: FloatArray  # (n, arms, 2) what every arm would have brought: reward, -cost
    psi: FloatArray  # (n, arms, 2)


class CompiledArm(NamedTuple):
    """A network controller as the loop takes it."""

    actor: NDArray[np.float32]
    actor_sizes: NDArray[np.int64]
    std: NDArray[np.float32]
    inputs: int  # of the actor
    sight: tuple[Any, ...]  # the actor's encoding
    gains: FloatArray  # of the context network
    context: NDArray[np.float32]
    context_sizes: NDArray[np.int64]
    scale: NDArray[np.float32]
    shift: NDArray[np.float32]
    context_inputs: int
    context_sight: tuple[Any, ...]
    column: int  # of the next step's reward among the predictions


class CompiledLoop:
    """A blender's controllers and learner in a world of ours; use it as a context."""

    def __init__(self, world: SingleWorld, blender: Blender) -> None:
        self.world, self.blender = world, blender
        controllers = [c for c in blender.controllers if isinstance(c, NetworkController)]
        self.drivers = tuple(_driver(controller) for controller in controllers)
        self.late = DeferredPeeks(world, size=STRETCH * (len(controllers) - 1))
        self.previous = -1  # who drove last

    @staticmethod
    def fits(world: SingleWorld, blender: Blender) -> bool:
        """Tell whether all parts are our own, fit the world, and work as the loop does.

        The rest is up to the caller: predictions of the current state as context, actions drawn, no hold, dwell,
        deadline or record, reward and -cost as objectives, and a learner that learns.
        """
        need = world.batch.worlds.obs.shape[1], world.batch.act_size
        own = [
            controller
            for controller in blender.controllers
            if type(controller) is NetworkController and controller.context is not None
        ]
        return (
            1 < len(own) == len(blender.controllers)
            and all((c.observation_size, c.action_size) == need for c in own)
            and all(c.context.encoding.observation_size == need[0] for c in own if c.context is not None)
            and len({typeof(_driver(controller)) for controller in own}) == 1  # one loop for all
            and blender.bandit._core.compiled_rule
        )

    def episode(self, seed: int) -> Stages | None:
        """Drive an episode; None if something came that the blender must deal with (the learner is spoiled then)."""
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
            waiting = self.late.start()
            ended = bool(self.world.batch.worlds.phase[0] == ENDED)
        assert waiting is not None
        _enter(done[-1], waiting.result())
        return Stages._make(np.concatenate(parts) for parts in zip(*done, strict=True))

    def _chunk(self) -> Stages | None:
        batch, core = self.world.batch, self.blender.bandit._core
        n, arms = min(STRETCH, int(batch.plan.max_steps - batch.worlds.steps[0])), len(self.drivers)
        rngs: list[Any] = self.blender.drivers.rngs
        before = [rng.bit_generator.state for rng in rngs]
        noise = np.stack([rng.standard_normal((n, batch.act_size)) for rng in rngs], axis=1)
        stages = Stages(
            reward=np.empty(n),
            cost=np.empty(n),
            arm=np.empty(n, np.intp),
            switched=np.empty(n, np.bool_),
            bound=np.empty(n),
            truth=np.empty((n, arms, 2)),
            psi=np.empty((n, arms, 2)),
        )
        kept, asked = self.late.filling
        count = batch.crew.run(
            lambda bench: drive(
                batch.plan, bench, batch.worlds, self.drivers, self.previous,
                core.state[0], core.rng[0], core.config, noise, kept, asked, batch.blank_outcome(), stages,
            )
        )[0]  # fmt: skip
        if count < 0:
            return None
        if count < n:  # the episode ended early: only so many draws were made
            for rng, state in zip(rngs, before, strict=True):
                rng.bit_generator.state = state
                rng.standard_normal((count, batch.act_size))
            stages = Stages._make(part[:count] for part in stages)
        self.late.added = count * (arms - 1)
        self.previous = int(stages.arm[-1])
        return stages

    def __enter__(self) -> CompiledLoop:
        return self

    def __exit__(self, *what: object) -> None:
        self.late.close()


def _enter(stages: Stages, found: PeekResult) -> None:
    """Enter what those who did not drive would have brought."""
    others = np.arange(stages.truth.shape[1]) != stages.arm[:, None]  # (n, arms)
    stages.truth[others] = np.stack([found.reward, np.multiply(found.cost, -1.0)], axis=1)


def _driver(controller: NetworkController) -> CompiledArm:
    context = controller.context
    assert context is not None
    return CompiledArm(
        actor=controller.actor.flat,
        actor_sizes=controller.actor.sizes,
        std=controller.std,
        inputs=controller.encoding.size,
        sight=controller.encoding.plan,
        gains=context.gains,
        context=context.network.flat,
        context_sizes=context.network.sizes,
        scale=context.scale,
        shift=context.shift,
        context_inputs=context.encoding.size,
        context_sight=context.encoding.plan,
        column=2 * context.horizons.index(1),
    )


@compiled
def drive(
    plan: Plan,
    bench: PhysicsSlot,
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
    """Drive len(noise) steps of world 0, or to the episode's end; tell how many, or -1 if something is unusual."""
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
        step_world(plan, bench, worlds, 0, actions[arm], SUBSTEPS, out)
        feedback[0], feedback[1] = out.reward[0], -1.0 * out.cost[0]
        if not (math.isfinite(feedback[0]) and math.isfinite(feedback[1])):
            return -1
        if update_one(learner, config, psi[arm], feedback) != OK:
            return -1
        stages.reward[t], stages.cost[t], stages.arm[t] = 0.0 + out.reward[0], 0.0 + out.cost[0], arm
        stages.switched[t] = previous >= 0 and arm != previous
        stages.bound[t] = row[INDICES + arms + arm] + 2.0 * row[RADIUS] * row[INDICES + arm]
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
    """Fill in a controller's action at observations (1, obs), and its context; False if they are not finite."""
    inputs = np.empty((1, driver.inputs), np.float32)
    encode(observations, inputs, *driver.sight)
    mean = run_row(inputs[0], driver.actor, driver.actor_sizes)
    for i in range(action.size):
        drawn = np.float64(mean[i]) + np.float64(driver.std[i]) * noise[i]
        if not math.isfinite(drawn):
            return False
        action[i] = min(max(drawn, -1.0), 1.0)
    told = predict_row(
        observations, action, driver.gains, driver.context, driver.context_sizes, driver.scale, driver.shift,
        driver.context_inputs, *driver.context_sight,
    )  # fmt: skip
    psi[0], psi[1] = told[driver.column], -told[driver.column + 1]
    return math.isfinite(psi[0]) and math.isfinite(psi[1])


@compiled
def clear(out: Outcome) -> None:
    """Begin a step's outcome: a step writes what is so, not what is not."""
    out.cost[0] = 0.0
    out.components[0] = 0.0
    out.terminated[0] = out.truncated[0] = out.unstable[0] = out.goal_met[0] = False
