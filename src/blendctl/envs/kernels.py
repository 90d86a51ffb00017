"""Reset, step and peek at whole worlds: the compiled loop that every thread runs over its share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from blendctl.arrays import BoolArray, FloatArray, IntArray
from blendctl.compiled import compiled
from blendctl.envs.compiled_task import BUTTON, CompiledTask
from blendctl.envs.layout import draw_goal, sample_layout
from blendctl.envs.mersenne import draw_double
from blendctl.envs.physics import PhysicsSlot, advance
from blendctl.envs.reward_cost import BUTTON_REST, REWARD_LIMIT, count_costs, goal_met, measure, observe, rate
from blendctl.envs.world_state import ENDED, RUNNING, UNBORN, WorldState

NEXT_STEP, SAME_STEP, DISABLED = range(3)  # what happens after an episode's end


class Outcome(NamedTuple):
    """Results of a step, a row per world."""

    obs: FloatArray  # (n, obs)
    reward: FloatArray  # (n,)
    cost: FloatArray  # (n,) 1 if any component costs
    components: FloatArray  # (n, costs)
    goal_met: BoolArray  # (n,)
    terminated: BoolArray  # (n,)
    truncated: BoolArray  # (n,)
    unstable: BoolArray  # (n,) the physics diverged in this step
    final_obs: FloatArray  # (n, obs) last observation of an episode that ended and was reset at once


def _claim(typing_context: Any, counter: Any) -> Any:
    """Take the next job number: an atomic increment, so that threads share the jobs."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.atomic_rmw("add", array.data, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(counter), generate


claim = cast(Callable[[IntArray], int], intrinsic(_claim))


@compiled
def load_world(plan: CompiledTask, slot: PhysicsSlot, worlds: WorldState, w: int) -> None:
    """Load world w into the slot: its state into the data, its layout into the model."""
    slot.qpos[:] = worlds.qpos[w]
    slot.qvel[:] = worlds.qvel[w]
    slot.warmstart[:] = worlds.warmstart[w]
    for item in range(plan.keepout.shape[0]):
        body = plan.body_at[item]
        if item == 0 and not plan.free_robot:
            body = 1
        mocap = plan.mocap_at[item]
        if body < 0 and mocap < 0:
            continue
        cosine = np.cos(worlds.rot[w, item] / 2.0)
        sine = np.sin(worlds.rot[w, item] / 2.0)
        if body >= 0:
            slot.body_pos[body, 0] = worlds.xy[w, item, 0]
            slot.body_pos[body, 1] = worlds.xy[w, item, 1]
            slot.body_quat[body, 0] = cosine
            slot.body_quat[body, 3] = sine
        else:  # a gremlin's weld holds its start pose, relative to the mocap body's frame
            weld = slot.eq_data[mocap]
            weld[3] = worlds.xy[w, item, 0]
            weld[4] = worlds.xy[w, item, 1]
            weld[5] = plan.height[item]
            weld[6] = cosine
            weld[9] = sine


@compiled
def _store(slot: PhysicsSlot, worlds: WorldState, w: int, time: float) -> None:
    worlds.qpos[w] = slot.qpos
    worlds.qvel[w] = slot.qvel
    worlds.warmstart[w] = slot.warmstart
    worlds.position[w] = slot.position
    worlds.rotation[w] = slot.rotation
    worlds.time[w] = time


@compiled
def _reset_world(plan: CompiledTask, slot: PhysicsSlot, worlds: WorldState, w: int) -> bool:
    """Begin an episode with a new layout; False if the objects do not fit into the extents."""
    xy = worlds.xy[w]
    rot = worlds.rot[w]
    button = sample_layout(plan, xy, rot, worlds.sampled_goal[w], worlds.key[w], worlds.pos[w])
    if button == -2:
        worlds.phase[w] = UNBORN
        return False
    qpos = worlds.qpos[w]
    joints = plan.rest_qpos.shape[0]
    start = 7 if plan.free_robot else 0
    qpos[start : start + joints] = plan.rest_qpos
    for item in range(xy.shape[0]):
        at = plan.qpos_at[item]
        if item == 0 and plan.free_robot:
            at = 0
        if at >= 0:
            qpos[at] = xy[item, 0]
            qpos[at + 1] = xy[item, 1]
            qpos[at + 2] = plan.height[item]
            qpos[at + 3] = np.cos(rot[item] / 2.0)
            qpos[at + 4] = 0.0
            qpos[at + 5] = 0.0
            qpos[at + 6] = np.sin(rot[item] / 2.0)
    worlds.qvel[w] = 0.0
    worlds.warmstart[w] = 0.0
    worlds.button[w] = button
    worlds.timer[w] = 0
    worlds.steps[w] = 0
    worlds.phase[w] = RUNNING
    load_world(plan, slot, worlds, w)
    slot.ctrl[:] = 0.0
    advance(slot, plan, 0.0, 0)
    _store(slot, worlds, w, 0.0)
    measure(plan, slot, xy, worlds.last[w])
    observe(plan, slot, xy, 0, worlds.obs[w])
    return True


@compiled
def _replace_goal(plan: CompiledTask, slot: PhysicsSlot, worlds: WorldState, w: int) -> bool:
    """Draw the next goal clear of all objects at their present places; False if there is no room."""
    now = worlds.xy[w].copy()
    now[0, 0] = slot.position[0]
    now[0, 1] = slot.position[1]
    for item in range(now.shape[0]):
        at = plan.qpos_at[item]
        if at >= 0 and plan.mocap_at[item] < 0:
            now[item, 0] = slot.qpos[at]
            now[item, 1] = slot.qpos[at + 1]
    button = draw_goal(plan, now, worlds.key[w], worlds.pos[w])
    if button == -2:
        return False
    worlds.xy[w, plan.goal] = now[plan.goal]
    worlds.button[w] = button
    if plan.reward == BUTTON:
        worlds.timer[w] = BUTTON_REST
    measure(plan, slot, worlds.xy[w], worlds.last[w])
    return True


@compiled
def step_world(
    plan: CompiledTask, slot: PhysicsSlot, worlds: WorldState, w: int, action: FloatArray, substeps: int, out: Outcome
) -> None:
    """Advance world w by an action (act,); row w of `out` starts as zeros."""
    load_world(plan, slot, worlds, w)
    for i in range(action.shape[0]):
        slot.ctrl[i] = min(max(action[i], -1.0), 1.0)
    time = advance(slot, plan, worlds.time[w], substeps)
    if np.isnan(time):  # the world keeps the state before the step
        out.obs[w] = worlds.obs[w]
        out.reward[w] = -REWARD_LIMIT
        out.truncated[w] = True
        out.unstable[w] = True
        worlds.phase[w] = ENDED
        return
    _store(slot, worlds, w, time)
    draw_double(worlds.key[w], worlds.pos[w])  # the reference draws its (constant) number of sub-steps

    xy = worlds.xy[w]
    distances = np.empty(2)
    measure(plan, slot, xy, distances)
    met = goal_met(plan, slot, distances, worlds.button[w])
    out.reward[w] = rate(distances, worlds.last[w], met)
    out.cost[w] = count_costs(plan, slot, xy, worlds.button[w], worlds.timer[w], out.components[w])
    out.goal_met[w] = met
    worlds.last[w] = distances
    worlds.timer[w] = max(0, worlds.timer[w] - 1)
    if met and not _replace_goal(plan, slot, worlds, w):
        out.terminated[w] = True
    worlds.steps[w] += 1
    if worlds.steps[w] >= plan.max_steps:
        out.truncated[w] = True
    if out.terminated[w] or out.truncated[w]:
        worlds.phase[w] = ENDED
    observe(plan, slot, xy, worlds.timer[w], worlds.obs[w])
    out.obs[w] = worlds.obs[w]


@compiled
def run_steps(
    plan: CompiledTask,
    slot: PhysicsSlot,
    worlds: WorldState,
    actions: FloatArray,
    substeps: int,
    autoreset: int,
    out: Outcome,
    counter: IntArray,
) -> bool:
    """Step worlds until none is left to claim; False if a reset had no valid layout. `out` starts as zeros."""
    fits = True
    w = claim(counter)
    while w < worlds.time.shape[0]:
        if worlds.phase[w] == ENDED and autoreset == NEXT_STEP:
            fits = _reset_world(plan, slot, worlds, w) and fits
            out.obs[w] = worlds.obs[w]
        else:
            step_world(plan, slot, worlds, w, actions[w], substeps, out)
            if worlds.phase[w] == ENDED and autoreset == SAME_STEP:
                out.final_obs[w] = out.obs[w]
                fits = _reset_world(plan, slot, worlds, w) and fits
                out.obs[w] = worlds.obs[w]
        w = claim(counter)
    return fits


@compiled
def run_resets(plan: CompiledTask, slot: PhysicsSlot, worlds: WorldState, mask: BoolArray, counter: IntArray) -> bool:
    """Reset the masked worlds until none is left to claim; False if one had no valid layout."""
    fits = True
    w = claim(counter)
    while w < mask.shape[0]:
        if mask[w]:
            fits = _reset_world(plan, slot, worlds, w) and fits
        w = claim(counter)
    return fits


@compiled
def run_peeks(
    plan: CompiledTask,
    slot: PhysicsSlot,
    worlds: WorldState,
    actions: FloatArray,
    substeps: int,
    reward: FloatArray,
    components: FloatArray,
    cost: FloatArray,
    counter: IntArray,
) -> None:
    """Evaluate actions (k, n, act) from the same frozen worlds into reward, cost (k, n), components (k, n, costs)."""
    n = worlds.time.shape[0]
    distances = np.empty(2)
    job = claim(counter)
    while job < n * actions.shape[0]:
        w = job // actions.shape[0]
        k = job % actions.shape[0]
        job = claim(counter)
        if worlds.phase[w] != RUNNING:
            continue
        load_world(plan, slot, worlds, w)
        for i in range(actions.shape[2]):
            slot.ctrl[i] = min(max(actions[k, w, i], -1.0), 1.0)
        if np.isnan(advance(slot, plan, worlds.time[w], substeps)):
            reward[k, w] = -REWARD_LIMIT
            continue
        xy = worlds.xy[w]
        measure(plan, slot, xy, distances)
        met = goal_met(plan, slot, distances, worlds.button[w])
        reward[k, w] = rate(distances, worlds.last[w], met)
        cost[k, w] = count_costs(plan, slot, xy, worlds.button[w], worlds.timer[w], components[k, w])
