"""Step MuJoCo from compiled code: ten sub-steps and a closing forward pass without touching Python.

The loop calls two functions of MuJoCo's C library, `mj_forwardSkip` and `mj_Euler`, which together are
`mj_step`, and releases the GIL, so worlds run on as many threads as there are cores. Two other ways were
measured with the same model, states and actions (`bench/backends.py`; processor ms per world-step with the closing
forward pass, PointGoal1 / PointPush1 / CarButton1, MuJoCo 3.14.0; ours already with lidar, reward, costs, goals):

    a bare mj_step loop, no closing pass   0.12 / 0.36 / 0.34
    this loop, everything                  0.12 / 0.37 / 0.32
    mujoco.rollout, physics alone          0.12 / 0.41 / 0.34
    mjbatch, physics alone                 0.11 / 0.39 / 0.37

Both alternatives compute every sensor in every sub-step; here only the closing pass does, which pays for itself.
`mujoco.rollout` has no closing pass (an eleventh sub-step must stand for it) and does not return the
solver's warm start; `mjbatch` cannot move the gremlins' targets between sub-steps within one call, and is tied
to one version of MuJoCo. The loop needs neither, and the same code judges the world while its state is still at hand.

The price: two C signatures are written down here, and MuJoCo's own checks of the state are replaced by `sane`.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding
import mujoco
import numpy as np
from numba.core import types

from blendctl.compiled import compiled
from blendctl.envs.compiled_task import FloatArray, Plan

__all__ = ["PhysicsSlot", "make_bench", "advance"]


def _load_library() -> None:
    """Make MuJoCo's C functions known to compiled code; the bindings have loaded the same file already."""
    folder = Path(mujoco.__file__).parent
    for pattern in ("libmujoco.so*", "libmujoco*.dylib", "mujoco.dll"):
        for path in sorted(folder.glob(pattern)):
            llvmlite.binding.load_library_permanently(str(path))
            return
    raise ImportError(f"expected MuJoCo's shared library in {folder}")


_load_library()

# void mj_forwardSkip(const mjModel*, mjData*, int skipstage, int skipsensor); void mj_Euler(const mjModel*, mjData*)
_mj_forward_skip: Any = types.ExternalFunction(
    "mj_forwardSkip", types.void(types.intp, types.intp, types.intc, types.intc)
)
_mj_euler: Any = types.ExternalFunction("mj_Euler", types.void(types.intp, types.intp))

HOVER = 0.1  # m, how far gremlins are lifted above their start
LARGEST = 1e10  # beyond this MuJoCo itself calls a state bad


class PhysicsSlot(NamedTuple):
    """One thread's work bench: a model and data of its own, with views into their memory.

    Worlds are put on it one after the other; nothing of a world stays behind.
    """

    model: int  # address of the mjModel
    data: int  # address of the mjData
    qpos: FloatArray  # (nq,)
    qvel: FloatArray  # (nv,)
    warmstart: FloatArray  # (nv,) solver's first guess, the last accelerations
    ctrl: FloatArray  # (nu,)
    mocap_pos: FloatArray  # (mocaps, 3)
    sensors: FloatArray  # (nsensordata,)
    position: FloatArray  # (3,) of the robot, world frame
    rotation: FloatArray  # (9,) of the robot, row-major, body to world
    body_pos: FloatArray  # (nbody, 3) in the model
    body_quat: FloatArray  # (nbody, 4) in the model
    eq_data: FloatArray  # (neq, 11) in the model


def make_bench(model: mujoco.MjModel) -> tuple[PhysicsSlot, tuple[mujoco.MjModel, mujoco.MjData]]:
    """Copy the model and lay out a bench; the second value owns the memory and must outlive the first."""
    own = model.__copy__()
    data = mujoco.MjData(own)
    agent = own.body("agent").id
    bench = PhysicsSlot(
        model=int(own._address),
        data=int(data._address),
        qpos=data.qpos,
        qvel=data.qvel,
        warmstart=data.qacc_warmstart,
        ctrl=data.ctrl,
        mocap_pos=data.mocap_pos,
        sensors=data.sensordata,
        position=data.xpos[agent],
        rotation=data.xmat[agent],
        body_pos=own.body_pos,
        body_quat=own.body_quat,
        eq_data=own.eq_data,
    )
    return bench, (own, data)


@compiled
def sane(values: FloatArray) -> bool:
    """Tell whether no value is NaN, infinite or absurdly large."""
    for i in range(values.shape[0]):  # noqa: SIM110  # compiled code has no generators
        if not (-LARGEST < values[i] < LARGEST):
            return False
    return True


@compiled
def _set_gremlins(bench: PhysicsSlot, plan: Plan, time: float) -> None:
    x = math.sin(time)
    y = math.cos(time)
    for i in range(plan.travel.shape[0]):
        bench.mocap_pos[i, 0] = plan.travel[i] * x
        bench.mocap_pos[i, 1] = plan.travel[i] * y
        bench.mocap_pos[i, 2] = HOVER


@compiled
def advance(bench: PhysicsSlot, plan: Plan, time: float, substeps: int) -> float:
    """Run the sub-steps and the closing forward pass; the new time, or NaN if the state went bad.

    Sensors are computed in the closing pass only. The gremlins' target moves before every sub-step.
    """
    bench.mocap_pos[:] = 0.0
    for _ in range(substeps):
        if not (sane(bench.qpos) and sane(bench.qvel)):
            return np.nan
        _set_gremlins(bench, plan, time)
        _mj_forward_skip(bench.model, bench.data, np.int32(0), np.int32(1))
        _mj_euler(bench.model, bench.data)
        time += plan.timestep
    if not (sane(bench.qpos) and sane(bench.qvel)):
        return np.nan
    _mj_forward_skip(bench.model, bench.data, np.int32(0), np.int32(0))
    return time
