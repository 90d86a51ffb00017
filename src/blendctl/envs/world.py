"""Build one MuJoCo model from a task: the robot, and the objects that have contacts.

Goal and hazards are not bodies: they would cost physics time and change nothing. The positions of
objects differ between worlds and are written into the model's arrays later, so one model serves
every layout.

The settings keep today's MuJoCo close to the 2.3.3 that the recordings were made with: a tight
solver tolerance, the old convex collision routines, and a torque scale of sqrt(150) on the
gremlins' welds (2.3.3 regularised a weld's rotation with the translational inverse weight, and a
gremlin's inertia is 1/150 of its mass).
"""

from __future__ import annotations

import math

import mujoco

from blendctl.envs.objects import Buttons, Objects
from blendctl.envs.tasks import Task


def body_name(kind: Objects, index: int) -> str:
    """Return the name of an object's body in the model."""
    return f"{kind.name}.{index}"


def contact_kinds(task: Task) -> tuple[Objects, ...]:
    """Return the kinds that need a contact sensor per object."""
    return tuple(
        kind
        for kind in task.objects
        if (kind.constrained and "contact" in kind.costs) or (isinstance(kind, Buttons) and task.reward == "button")
    )


def build_model(task: Task) -> mujoco.MjModel:
    """Compile the model of a task; objects stand in a row until a layout places them."""
    model = mujoco.MjModel.from_xml_string(model_xml(task))
    flags = mujoco.mjtDisableBit
    model.opt.disableflags |= int(flags.mjDSBL_NATIVECCD)
    # up to 3.x several contact points per convex pair are an option that is off by default
    model.opt.disableflags |= int(getattr(flags, "mjDSBL_MULTICCD", 0))
    return model


def model_xml(task: Task) -> str:
    """Write the model as MuJoCo XML: robot, sliding objects, gremlins, their mocap bodies, fixed objects."""
    robot = task.robot_spec
    free, mocap, welds, fixed = [], [], [], []
    place = 10.0
    for kind in task.sighted:
        geoms = kind.geoms()
        for index in range(kind.count):
            name, place = body_name(kind, index), place + 2.0
            at = f'name="{name}" pos="{place} 0 {kind.height!r}"'
            if geoms and kind.motion == "fixed":
                fixed.append(f"<body {at}>{geoms}</body>")
            elif geoms:
                free.append(f"<body {at}><freejoint/>{geoms}</body>")
            if kind.motion == "circling":
                mocap.append(f'<body name="{name}.mocap" mocap="true"/>')
                welds.append(
                    f'<weld body1="{name}.mocap" body2="{name}" solref="0.02 1.5" torquescale="{math.sqrt(150.0)!r}"/>'
                )
    ball = f'<ballquat joint="{robot.ball}"/><ballangvel joint="{robot.ball}"/>' if robot.ball else ""
    contacts = "".join(
        f'<contact subtree1="agent" body2="{body_name(kind, index)}" data="found"/>'
        for kind in contact_kinds(task)
        for index in range(kind.count)
    )
    return f"""
<mujoco model="{task.robot}">
  <compiler angle="radian"/>
  <option timestep="{robot.timestep}" tolerance="1e-12" integrator="Euler" solver="Newton" iterations="100"/>
  <default><geom condim="6" density="{robot.density}"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="3.5 3.5 0.1"/>
    <body name="agent" pos="0 0 {robot.height}">{robot.body}
    </body>
    {"".join(free)}
    {"".join(mocap)}
    {"".join(fixed)}
  </worldbody>
  <equality>{"".join(welds)}</equality>
  <actuator>{robot.actuator}
  </actuator>
  <sensor>
    <accelerometer site="agent"/><velocimeter site="agent"/><gyro site="agent"/><magnetometer site="agent"/>
    {robot.sensors}{ball}{contacts}
  </sensor>
</mujoco>"""
