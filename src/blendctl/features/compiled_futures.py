"""Drive futures in the worlds of blendctl with its networks: no Python between two control steps, a row per thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import FloatArray, IntArray
from blendctl.compiled import compiled
from blendctl.controllers.base import Controller
from blendctl.controllers.dense import run_row
from blendctl.controllers.encoding import encode
from blendctl.controllers.network import NetworkController
from blendctl.envs.batch import WorldBatch
from blendctl.envs.compiled_task import SUBSTEPS, CompiledTask
from blendctl.envs.kernels import Outcome, claim, step_world
from blendctl.envs.physics import PhysicsSlot
from blendctl.envs.world_state import RUNNING, WorldState


class Actor(NamedTuple):
    """The arrays that decide a network controller's actions."""

    flat: NDArray[np.float32]
    sizes: IntArray
    std: NDArray[np.float32]
    inputs: int
    sight: tuple[Any, ...]  # the encoding


def compiled_actors(controllers: Sequence[Controller], worlds: WorldState, act_size: int) -> list[Actor] | None:
    """Return the arrays of the controllers; None if one of them is not a network for these worlds."""
    wanted = worlds.obs.shape[1], act_size
    actors = [
        Actor(one.actor.flat, one.actor.sizes, one.std, one.encoding.size, one.encoding.plan)
        for one in controllers
        if type(one) is NetworkController and (one.observation_size, one.action_size) == wanted
    ]
    return actors if len(actors) == len(controllers) else None


def drive_worlds(
    batch: WorldBatch,
    worlds: WorldState,
    actors: Sequence[Actor],
    arm: NDArray[np.intp],
    noise: FloatArray,
    *,
    discount: float,
) -> FloatArray:
    """Let actors arm (rows,) drive the worlds with noise (steps, block, act); return discounted sums (2, rows).

    Row i has the noise i % block. The sums are of reward and cost; both are 0 after the end of an episode.
    """
    sums, out = np.zeros((2, len(arm))), batch.blank_outcome()
    mine = [arm == number for number in range(len(actors))]
    counters = np.zeros((len(actors), 1), np.int64)

    def work(slot: PhysicsSlot) -> None:
        for actor, rows, counter in zip(actors, mine, counters, strict=True):
            _drive_rows(batch.compiled_task, slot, worlds, actor, rows, noise, discount, sums, out, counter)

    batch.pool.run(work)
    return sums


@compiled
def _drive_rows(
    plan: CompiledTask,
    slot: PhysicsSlot,
    worlds: WorldState,
    actor: Actor,
    mine: NDArray[np.bool_],
    noise: FloatArray,
    discount: float,
    sums: FloatArray,
    out: Outcome,
    counter: IntArray,
) -> None:
    """Claim and drive rows of `mine` until none is left."""
    steps, block, size = noise.shape
    action, inputs = np.empty(size), np.empty((1, actor.inputs), np.float32)
    row = claim(counter)
    while row < len(mine):
        factor = 1.0
        for step in range(steps if mine[row] else 0):
            if worlds.phase[row] != RUNNING:
                break
            encode(worlds.obs[row : row + 1], inputs, *actor.sight)
            mean = run_row(inputs[0], actor.flat, actor.sizes)
            for i in range(size):
                action[i] = np.float64(mean[i]) + np.float64(actor.std[i]) * noise[step, row % block, i]
            out.cost[row] = 0.0
            out.components[row] = 0.0
            out.terminated[row] = out.truncated[row] = out.goal_met[row] = False
            step_world(plan, slot, worlds, row, action, SUBSTEPS, out)
            sums[0, row] += factor * out.reward[row]
            sums[1, row] += factor * out.cost[row]
            factor *= discount
        row = claim(counter)
