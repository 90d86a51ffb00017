"""Compare our worlds with recordings of the reference, step by step, in two layers.

Logic: our world is set to the recorded state after a step, and everything but the physics must be equal. Physics: our
world is set to the recorded state before a step and takes the recorded action; the result may differ by what the
change of MuJoCo version explains. Both run the code that normally steps worlds.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import BoolArray, FloatArray
from blendctl.envs.batch import WorldBatch
from blendctl.envs.catalog import find_task
from blendctl.envs.compiled_task import SUBSTEPS
from blendctl.envs.kernels import Outcome
from blendctl.envs.recordings import Recording
from blendctl.envs.world_state import RUNNING, WorldState, check_world
from blendctl.errors import FileFormatError
from blendctl.file_reading import reading
from blendctl.lidar_ring import LIDAR_BINS

__all__ = ["Logic", "Physics", "Report", "compare_recording", "TOLERANCE"]


_ANGLE_ROUNDING = 1e-15  # recorded angles have the rounding error of a conversion; positions do not

# largest differences that pass
TOLERANCE = {
    "logic.lidar_max": 1e-6,
    "logic.reward_max": 1e-12,
    "strict.qpos_max": 1e-6,
    "strict.qvel_max": 5e-5,
    "strict.obs_max": 5e-5,
    "strict.reward_max": 1e-6,
    "loose.qpos_p99": 0.1,  # box against box, and first contacts that depend on a rounding error
    "loose.flags": 0.01,  # share of steps whose cost or goal flags may differ
}


@dataclass(frozen=True)
class Logic:
    """Differences, computed from the recorded state after a step."""

    steps: int
    lidar_max: float
    reward_max: float
    cost_mismatch: int  # steps in which the cost or any of its components differs
    goal_mismatch: int  # steps in which the goal flag, the next goal, its button or the timer differs


@dataclass(frozen=True)
class Physics:
    """Differences after one step from the recorded state before it; p99 is over steps."""

    steps: int
    qpos_max: float
    qvel_max: float
    qpos_p99: float
    obs_max: float
    obs_p99: float
    reward_max: float
    reward_p99: float
    cost_mismatch: int  # steps in which the cost, 0 or 1, differs
    goal_mismatch: int  # as in the logic layer


@dataclass(frozen=True)
class Report:
    """Agreement of one world with its recording."""

    name: str
    layouts: int  # episodes whose layout was drawn again from the seed
    layout_mismatch: int
    logic: Logic
    strict: Physics
    loose: Physics

    def failures(self) -> list[str]:
        """Return the limits that are exceeded, as text; empty if the world conforms."""
        problems = []
        for limit, allowed in TOLERANCE.items():
            layer, quantity = limit.split(".")
            if quantity == "flags":
                wrong = self.loose.cost_mismatch + self.loose.goal_mismatch
                if wrong > max(1, allowed * self.loose.steps):
                    problems.append(f"loose flags differ in {wrong} of {self.loose.steps} steps")
            elif not (value := getattr(getattr(self, layer), quantity)) <= allowed:
                problems.append(f"{layer} {quantity} is {value:.3g}, allowed {allowed:g}")
        for layer in ("logic", "strict"):
            for quantity in ("cost_mismatch", "goal_mismatch"):
                count = getattr(getattr(self, layer), quantity)
                if count:
                    problems.append(f"{layer} {quantity} in {count} steps")
        if self.layout_mismatch:
            problems.append(f"layouts differ in {self.layout_mismatch} of {self.layouts} episodes")
        return problems

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain numbers."""
        return {key: value for key, value in asdict(self).items() if key != "name"}


def compare_recording(recording: Recording) -> Report:
    """Compare one world with its recording."""
    batch = WorldBatch(find_task(recording.name), recording.steps)
    try:
        with reading(recording.name, "a recording of this world"):
            _expect_same_kind(recording, batch)
            layout_mismatch = _layout_mismatch(recording)
            logic = _compare_logic(recording, batch)
            strict, loose = _compare_physics(recording, batch)
    finally:
        batch.close()
    return Report(recording.name, len(recording["ep_seed"]), layout_mismatch, logic, strict, loose)


def _expect_same_kind(recording: Recording, batch: WorldBatch) -> None:
    """Raise FileFormatError if a recording's numbers do not fit the world that it names."""
    worlds, costs = batch.worlds, len(recording.cost_names) + 1
    expected = {
        "row_qpos": worlds.qpos.shape[1:],
        "row_qvel": worlds.qvel.shape[1:],
        "row_obs": worlds.obs.shape[1:],
        "ep_layout_xy": worlds.xy.shape[1:],
        "ep_layout_rot": worlds.rot.shape[1:],
        "step_action": (batch.act_size,),
        "step_cost_components": (costs,),
    }
    for array, shape in expected.items():
        if recording[array].shape[1:] != shape:
            raise FileFormatError(
                f"the recording of {recording.name} is of another world: "
                f"expected {shape} numbers in each row of {array}, actually: {recording[array].shape[1:]}"
            )
    missing = set(batch.task.cost_names) - set(recording.cost_names)
    if missing:
        raise FileFormatError(f"the recording of {recording.name} lacks the costs {sorted(missing)}")


def _layout_mismatch(recording: Recording) -> int:
    """Reset with the recorded seeds; count the episodes whose layout differs."""
    seeds = recording["ep_seed"]
    batch = WorldBatch(find_task(recording.name), len(seeds))
    for row, seed in enumerate(seeds):
        batch.seed(row, int(seed))
    batch.reset(np.ones(len(seeds), dtype=np.bool_))
    batch.close()
    worlds, goal = batch.worlds, batch.compiled_task.goal
    sampled = worlds.xy.copy()
    sampled[:, goal] = worlds.sampled_goal
    same = (
        (sampled == recording["ep_layout_xy"]).all(axis=(1, 2))
        & (np.abs(worlds.rot - recording["ep_layout_rot"]) <= _ANGLE_ROUNDING).all(axis=1)
        & (worlds.xy[:, goal] == recording.body_at_reset("goal")[:, :2]).all(axis=1)
    )
    return int((~same).sum())


def _set_worlds(recording: Recording, batch: WorldBatch, rows: NDArray[np.int64]) -> None:
    """Set world i to row `rows[i]` of the recording: physics of that row, the task's memory from before the step."""
    worlds, before, episode = batch.worlds, recording.before, recording["step_episode"]
    worlds.qpos[:] = recording["row_qpos"][rows]
    worlds.qvel[:] = recording["row_qvel"][rows]
    worlds.warmstart[:] = recording["row_qacc_warmstart"][rows]
    worlds.time[:] = recording["row_time"][rows]
    worlds.xy[:] = recording["ep_layout_xy"][episode]
    worlds.xy[:, batch.compiled_task.goal] = recording["row_goal_pos"][before, :2]
    worlds.rot[:] = recording["ep_layout_rot"][episode]
    worlds.last[:] = 0.0
    if "row_last_box_goal" in recording.arrays:
        worlds.last[:, 0] = recording["row_last_dist_box"][before]
        worlds.last[:, 1] = recording["row_last_box_goal"][before]
    else:
        worlds.last[:, 0] = recording["row_last_dist_goal"][before]
    if "row_goal_button" in recording.arrays:
        worlds.button[:] = recording["row_goal_button"][before]
        worlds.timer[:] = recording["row_button_timer"][before]
    worlds.steps[:] = 0
    worlds.phase[:] = RUNNING
    for row in range(recording.steps):
        batch.seed(row, 0)
    met = recording["goal_met_step"]
    worlds.key[met] = recording["goal_met_rng_key"]
    worlds.pos[met, 0] = recording["goal_met_rng_pos"]
    for row in range(recording.steps):  # compiled code uses some of these values as addresses
        check_world(WorldState._make(array[row] for array in worlds), batch.compiled_task)


def _wrong_costs(recording: Recording, batch: WorldBatch, out: Outcome) -> BoolArray:
    """Return a mask (steps,) of the steps in which a component of the cost differs from the recording."""
    columns = [recording.cost_names.index(name) for name in batch.task.cost_names]
    components = np.nan_to_num(recording["step_cost_components"][:, columns], nan=0.0)  # absent ones cost nothing
    wrong: BoolArray = (out.components != components).any(axis=1)
    return wrong


def _wrong_goals(recording: Recording, batch: WorldBatch, out: Outcome) -> BoolArray:
    """Return a mask (steps,) of the steps in which goal flag, next goal, its button or the timer differs."""
    after = recording.before + 1
    goal: BoolArray = out.goal_met != recording["step_goal_met"]
    goal |= (batch.worlds.xy[:, batch.compiled_task.goal] != recording["row_goal_pos"][after, :2]).any(axis=1)
    if "row_goal_button" in recording.arrays:
        goal |= batch.worlds.button != recording["row_goal_button"][after]
        goal |= batch.worlds.timer != recording["row_button_timer"][after]
    return goal


def _compare_logic(recording: Recording, batch: WorldBatch) -> Logic:
    after = recording.before + 1
    _set_worlds(recording, batch, after)
    out = batch.step(recording["step_action"], substeps=0)
    cost = _wrong_costs(recording, batch, out) | (out.cost != recording["step_cost"])
    goal = _wrong_goals(recording, batch, out)
    sensors = batch.compiled_task.obs_size - LIDAR_BINS * batch.compiled_task.sights.shape[0]
    lidar = _observation_error(recording, out)[:, sensors:]
    return Logic(
        steps=recording.steps,
        lidar_max=float(lidar.max()),
        reward_max=float(np.abs(out.reward - recording["step_reward"]).max()),
        cost_mismatch=int(cost.sum()),
        goal_mismatch=int(goal.sum()),
    )


def _compare_physics(recording: Recording, batch: WorldBatch) -> tuple[Physics, Physics]:
    after = recording.before + 1
    _set_worlds(recording, batch, recording.before)
    out = batch.step(recording["step_action"], substeps=SUBSTEPS)
    cost, goal = out.cost != recording["step_cost"], _wrong_goals(recording, batch, out)
    qpos = np.abs(batch.worlds.qpos - recording["row_qpos"][after]).max(axis=1)  # (steps,)
    qvel = np.abs(batch.worlds.qvel - recording["row_qvel"][after]).max(axis=1)
    obs = _observation_error(recording, out).max(axis=1)
    reward = np.abs(out.reward - recording["step_reward"])

    def summary(steps: BoolArray) -> Physics:
        return Physics(
            steps=int(steps.sum()),
            qpos_max=float(qpos[steps].max(initial=0.0)),
            qvel_max=float(qvel[steps].max(initial=0.0)),
            qpos_p99=_p99(qpos[steps]),
            obs_max=float(obs[steps].max(initial=0.0)),
            obs_p99=_p99(obs[steps]),
            reward_max=float(reward[steps].max(initial=0.0)),
            reward_p99=_p99(reward[steps]),
            cost_mismatch=int(cost[steps].sum()),
            goal_mismatch=int(goal[steps].sum()),
        )

    return summary(recording.strict), summary(~recording.strict)


def _observation_error(recording: Recording, out: Outcome) -> FloatArray:
    """Difference (steps, obs) from the recorded observations, which were rounded to single precision."""
    recorded = recording["row_obs"][recording.before + 1].astype(np.float64)
    return np.abs(out.obs.astype(np.float32).astype(np.float64) - recorded)


def _p99(values: FloatArray) -> float:
    return float(np.percentile(values, 99)) if values.size else 0.0
