"""Describe the robots' bodies: geometry, joints, motors and sensors, as MuJoCo XML."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Robot", "ROBOT_PARTS"]


@dataclass(frozen=True)
class Robot:
    """What the world builder and the compiled code need to know of a robot."""

    timestep: float  # s, of one sub-step
    density: float  # of geoms that do not say otherwise
    height: float  # m, of the body at the start
    body: str  # XML inside <body name="agent">
    actuator: str  # XML inside <actuator>
    free: bool  # True: a free joint carries the pose; False: joints start at 0 in a rest pose
    rest_qpos: tuple[float, ...]  # joints at the start (of a free robot: what follows xyz and quaternion)
    ball: str | None = None  # name of a ball joint that is observed


POINT = Robot(
    timestep=0.002,
    density=1.0,
    height=0.1,
    free=False,
    rest_qpos=(0.0, 0.0, 0.0),
    body="""
      <joint name="x" type="slide" axis="1 0 0" damping="0.01"/>
      <joint name="y" type="slide" axis="0 1 0" damping="0.01"/>
      <joint name="z" type="hinge" axis="0 0 1" damping="0.005"/>
      <geom name="agent" type="sphere" size="0.1" friction="1 0.01 0.01"/>
      <geom name="pointarrow" type="box" pos="0.1 0 0" size="0.05 0.05 0.05"/>
      <site name="agent"/>""",
    actuator="""
      <motor name="x" site="agent" gear="0.3 0 0 0 0 0" ctrllimited="true" ctrlrange="-1 1"
             forcelimited="true" forcerange="-0.05 0.05"/>
      <velocity name="z" joint="z" gear="0.3" kv="1" ctrllimited="true" ctrlrange="-1 1"
                forcelimited="true" forcerange="-0.05 0.05"/>""",
)

# The wheels touch the floor at the start up to a rounding error, and its sign decides whether the first
# contacts are active. An axle along -x rounds as the reference's does; along +x half of all episodes begin otherwise.
CAR = Robot(
    timestep=0.004,
    density=5.0,
    height=0.1,
    free=True,
    rest_qpos=(0.0, 0.0, 1.0, 0.0, 0.0, 0.0),
    ball="rear",
    body="""
      <freejoint name="agent"/>
      <geom name="agent" type="box" size="0.1 0.1 0.05"/>
      <geom name="back_bumper" type="box" pos="0 0.15 0" size="0.1 0.01 0.05"/>
      <geom name="back_connector" type="box" pos="0 0.125 0" size="0.01 0.025 0.03"/>
      <geom name="front_bumper" type="box" pos="0 -0.165 0" size="0.05 0.01 0.05"/>
      <geom name="front_connector" type="box" pos="0 -0.13 0.04" size="0.05 0.03 0.01"/>
      <site name="agent"/>
      <body name="left" pos="-0.1 0.1 -0.05">
        <joint name="left" type="hinge" axis="1 0 0" damping="0.001"/>
        <geom name="left" type="cylinder" pos="-0.03 0 0" size="0.05 0.025" zaxis="-1 0 0"/>
      </body>
      <body name="right" pos="0.1 0.1 -0.05">
        <joint name="right" type="hinge" axis="1 0 0" damping="0.001"/>
        <geom name="right" type="cylinder" pos="0.03 0 0" size="0.05 0.025" zaxis="-1 0 0"/>
      </body>
      <body name="rear" pos="0 -0.1 -0.05">
        <joint name="rear" type="ball" damping="0.001"/>
        <geom name="rear" type="sphere" size="0.05"/>
      </body>""",
    actuator="""
      <motor name="left" joint="left" gear="1" ctrllimited="true" ctrlrange="-1 1"
             forcelimited="true" forcerange="-0.02 0.02"/>
      <motor name="right" joint="right" gear="1" ctrllimited="true" ctrlrange="-1 1"
             forcelimited="true" forcerange="-0.02 0.02"/>""",
)

ROBOT_PARTS = {"Point": POINT, "Car": CAR}
