"""Compare three ways to step many MuJoCo worlds: the compiled loop that blendctl uses, mujoco.rollout, mjbatch.

Each does the physics of one action: ten sub-steps, the gremlins' targets moved before each, and a closing forward pass
for the sensors, from the same states with the same actions; blendctl's figure also has lidar, reward, costs and goals.
`mj_step` is the bare loop without the closing pass. Processor time is measured, which other work on the
machine disturbs less; on idle cores it is the wall-clock time of all threads together. mjbatch is measured if
it is installed (`pip install mjbatch`, which installs its own version of MuJoCo).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import click
import mujoco
import mujoco.rollout
import numpy as np
from rich.console import Console
from rich.table import Table

from blendctl.envs import VectorWorld
from blendctl.envs.compiled_task import SUBSTEPS
from blendctl.envs.kernels import load_world
from blendctl.envs.physics import make_slot

try:
    import mjbatch
except ImportError:
    mjbatch = None

Step = Callable[[np.ndarray], None]  # actions (n, act)


def gremlin_targets(worlds: VectorWorld, times: np.ndarray) -> np.ndarray:
    """Mocap positions (times, mocaps, 3)."""
    travel = worlds.batch.compiled_task.travel
    targets = np.full((len(times), len(travel), 3), 0.1)
    targets[:, :, 0] = travel * np.sin(times)[:, None]
    targets[:, :, 1] = travel * np.cos(times)[:, None]
    return targets


def raw_step(worlds: VectorWorld) -> Step:
    """A bare mj_step loop, without the closing pass."""
    pairs = []
    for row in range(worlds.num_envs):
        slot, memory = make_slot(worlds.batch.model)
        load_world(worlds.batch.compiled_task, slot, worlds.batch.worlds, row)
        pairs.append(memory)

    def step(actions: np.ndarray) -> None:
        for (model, data), action in zip(pairs, actions, strict=True):
            data.ctrl[:] = action
            if model.nmocap:
                data.mocap_pos[:] = gremlin_targets(worlds, np.array([data.time]))[0]
            mujoco.mj_step(model, data, nstep=SUBSTEPS)

    return step


def whole_step(worlds: VectorWorld) -> Step:
    """The vector form with everything: lidar, reward, costs, goals."""
    return lambda actions: worlds.step(actions) and None


def rollout_step(worlds: VectorWorld) -> Step:
    """mujoco.rollout: an eleventh sub-step replaces the closing pass, whose sensors it computes first."""
    n, models = worlds.num_envs, []
    for row in range(n):
        slot, (model, _) = make_slot(worlds.batch.model)
        load_world(worlds.batch.compiled_task, slot, worlds.batch.worlds, row)
        models.append(model)
    data = mujoco.MjData(models[0])
    kinds = mujoco.mjtState
    spec = kinds.mjSTATE_CTRL | kinds.mjSTATE_MOCAP_POS
    state = np.zeros((n, mujoco.mj_stateSize(models[0], kinds.mjSTATE_FULLPHYSICS)))
    nq, nv = models[0].nq, models[0].nv
    state[:, 1 : 1 + nq] = worlds.batch.worlds.qpos
    pool = mujoco.rollout.Rollout(nthread=0)
    warmstart = np.zeros((n, nv))

    def step(actions: np.ndarray) -> None:
        times = state[0, 0] + worlds.batch.compiled_task.timestep * np.minimum(np.arange(SUBSTEPS + 1), SUBSTEPS - 1)
        mocap = gremlin_targets(worlds, times).reshape(SUBSTEPS + 1, -1)
        control = np.empty((n, SUBSTEPS + 1, actions.shape[1] + mocap.shape[1]))
        control[:, :, : actions.shape[1]] = actions[:, None]
        control[:, :, actions.shape[1] :] = mocap
        states, _ = pool.rollout(models, data, state, control, control_spec=int(spec), initial_warmstart=warmstart)
        velocity = states[:, :, 1 + nq : 1 + nq + nv]
        warmstart[:] = (velocity[:, SUBSTEPS] - velocity[:, SUBSTEPS - 1]) / worlds.batch.compiled_task.timestep
        state[:] = states[:, SUBSTEPS - 1]

    return step


def mjbatch_step(worlds: VectorWorld) -> Step:
    """Use mjbatch: one call per action, or one per sub-step where gremlins must be moved in between."""
    n, model = worlds.num_envs, worlds.batch.model
    batch = mjbatch.Batch(model, n, 1, forward=model.nmocap == 0)
    fields = {name: batch.expand(name) for name in ("body_pos", "body_quat")}
    if model.neq:
        fields["eq_data"] = batch.expand("eq_data")
    for row in range(n):
        slot, (own, _) = make_slot(model)
        load_world(worlds.batch.compiled_task, slot, worlds.batch.worlds, row)
        for name, values in fields.items():
            values[row] = getattr(own, name)
    batch.bind("qpos")[:] = worlds.batch.worlds.qpos
    ctrl, clock, sensors = batch.bind("ctrl"), batch.bind("time"), batch.bind("sensordata")
    mocap = batch.bind("mocap_pos") if model.nmocap else None

    def step(actions: np.ndarray, sensors: np.ndarray = sensors) -> None:
        ctrl[:] = actions
        if mocap is None:
            batch.step(nstep=SUBSTEPS)
            return
        for _ in range(SUBSTEPS):
            mocap[:] = gremlin_targets(worlds, clock.reshape(-1)[:1])
            batch.step()
        batch.forward()

    return step


@click.command()
@click.argument("names", nargs=-1)
@click.option("--num-envs", default=64, show_default=True)
@click.option("--steps", default=40, show_default=True)
@click.option("--rounds", default=3, show_default=True)
def main(names: tuple[str, ...], num_envs: int, steps: int, rounds: int) -> None:
    """Time the backends on worlds by NAME."""
    ways = {"mj_step": raw_step, "blendctl, everything": whole_step, "rollout": rollout_step}
    if mjbatch is not None:
        ways["mjbatch"] = mjbatch_step
    table = Table(title=f"processor ms per world-step, one thread, MuJoCo {mujoco.__version__}")
    for column in ("world", *ways):
        table.add_column(column, justify="left" if column == "world" else "right")
    for name in names or ("PointGoal1", "PointPush1", "CarButton1"):
        actions = np.random.default_rng(0).uniform(-1, 1, (steps, num_envs, 2))
        best = {way: np.full(steps, np.inf) for way in ways}
        for _ in range(rounds):
            for way, prepare in ways.items():
                worlds = VectorWorld(name, num_envs, threads=1)
                worlds.reset(seed=0)
                step = prepare(worlds)
                for k, action in enumerate(actions):
                    start = time.process_time()
                    step(action)
                    best[way][k] = min(best[way][k], time.process_time() - start)
        table.add_row(name, *(f"{1e3 * times.mean() / num_envs:.4f}" for times in best.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
