"""Step MuJoCo from compiled code: ten sub-steps and a closing forward pass without Python.

The loop calls two functions of MuJoCo's C library, `mj_forwardSkip` and `mj_Euler`, which together are
`mj_step`, and releases the GIL, so worlds run on as many threads as there are cores. Two alternatives were
measured with the same model, states and actions (`bench/backends.py`; processor ms per world-step with the closing
forward pass, PointGoal1 / PointPush1 / CarButton1, MuJoCo 3.14.0; ours already with lidar, reward, costs, goals):

    a bare mj_step loop, no closing pass   0.12 / 0.36 / 0.34
    this loop, everything                  0.12 / 0.37 / 0.32
    mujoco.rollout, physics alone          0.12 / 0.41 / 0.34
    mjbatch, physics alone                 0.11 / 0.39 / 0.37

Both alternatives compute every sensor in every sub-step; here only the closing pass does, which saves its own time.
`mujoco.rollout` has no closing pass (an eleventh sub-step must replace it) and does not return the
solver's warm start; `mjbatch` cannot move the gremlins' targets between sub-steps within one call, and is tied
to one version of MuJoCo. This loop also computes reward and costs while the state of the world is still loaded.

The price: two C signatures are declared here, and `sane` replaces MuJoCo's own checks of the state.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding
import mujoco
import numpy as np
from numba.core import types

from blendctl.arrays import FloatArray
from blendctl.compiled import compiled
from blendctl.envs.compiled_task import CompiledTask


def _load_library() -> None:
    """Load MuJoCo's C functions for compiled code; the bindings have already loaded the same file."""
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
LARGEST = 1e10  # beyond this, MuJoCo itself rejects a state


class PhysicsSlot(NamedTuple):
    """One thread's physics: its own model and data, with views into their memory.

    Worlds are loaded into it one after the other; it keeps no state between them.
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


def make_slot(model: mujoco.MjModel) -> tuple[PhysicsSlot, tuple[mujoco.MjModel, mujoco.MjData]]:
    """Copy the model and make a slot; the second value owns the memory and must outlive the first."""
    copy = model.__copy__()
    data = mujoco.MjData(copy)
    agent = copy.body("agent").id
    slot = PhysicsSlot(
        model=int(copy._address),
        data=int(data._address),
        qpos=data.qpos,
        qvel=data.qvel,
        warmstart=data.qacc_warmstart,
        ctrl=data.ctrl,
        mocap_pos=data.mocap_pos,
        sensors=data.sensordata,
        position=data.xpos[agent],
        rotation=data.xmat[agent],
        body_pos=copy.body_pos,
        body_quat=copy.body_quat,
        eq_data=copy.eq_data,
    )
    return slot, (copy, data)


@compiled
def sane(values: FloatArray) -> bool:
    """Return whether no value is NaN, infinite or very large."""
    for i in range(values.shape[0]):  # noqa: SIM110  # compiled code has no generators
        if not (-LARGEST < values[i] < LARGEST):
            return False
    return True


@compiled
def _set_gremlins(slot: PhysicsSlot, plan: CompiledTask, time: float) -> None:
    x = math.sin(time)
    y = math.cos(time)
    for i in range(plan.travel.shape[0]):
        slot.mocap_pos[i, 0] = plan.travel[i] * x
        slot.mocap_pos[i, 1] = plan.travel[i] * y
        slot.mocap_pos[i, 2] = HOVER


@compiled
def advance(slot: PhysicsSlot, plan: CompiledTask, time: float, substeps: int) -> float:
    """Run the sub-steps and the closing forward pass; return the new time, or NaN if the state diverged.

    Sensors are computed in the closing pass only. The gremlins' target moves before every sub-step.
    """
    slot.mocap_pos[:] = 0.0
    for _ in range(substeps):
        if not (sane(slot.qpos) and sane(slot.qvel)):
            return np.nan
        _set_gremlins(slot, plan, time)
        _mj_forward_skip(slot.model, slot.data, np.int32(0), np.int32(1))
        _mj_euler(slot.model, slot.data)
        time += plan.timestep
    if not (sane(slot.qpos) and sane(slot.qvel)):
        return np.nan
    _mj_forward_skip(slot.model, slot.data, np.int32(0), np.int32(0))
    return time
