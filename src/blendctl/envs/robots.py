"""Declare the robots: geometry, joints, motors and sensors as MuJoCo XML, how they drive, and how they look.

A new robot is one `Robot` and one entry in `ROBOTS`; users add their own robots with `add_robot`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from blendctl.envs.glyphs import BLUE, Color, Glyph, Shape, box, disc, shadow
from blendctl.errors import InputError

# Gains that scale each reading to about 1: accelerometer, velocimeter, gyro, magnetometer (3 each) ...
COMMON_SCALE = (0.1,) * 3 + (1.0,) * 3 + (0.3,) * 3 + (2.0,) * 3
# ... then for a robot on a ball its angular velocity (3) and rotation matrix (9)
BALL_SCALE = (0.05,) * 3 + (1.0,) * 9
_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")


@dataclass(frozen=True)
class Steering:
    """Gains of the classical controllers, from errors of speed (m/s) and yaw rate (rad/s) to actions.

    With two driven wheels the actions are (left, right) and the yaw rate is fed back; otherwise they are (thrust, yaw).
    """

    wheels: bool
    speed_gain: float
    turn_gain: float
    gentle_speed_gain: float | None = None  # for stopping; None: `speed_gain`
    gentle_turn_gain: float | None = None

    def gains(self, *, gentle: bool) -> tuple[float, float]:
        """Return the gains of speed and yaw rate."""
        if not gentle or self.gentle_speed_gain is None or self.gentle_turn_gain is None:
            return self.speed_gain, self.turn_gain
        return self.gentle_speed_gain, self.gentle_turn_gain


@dataclass(frozen=True)
class Motion:
    """How a robot moves under full actions: a coarse model, for controllers that plan."""

    top_speed: float  # m/s
    lag: float  # s, time constant of the speed
    top_yaw_rate: float  # rad/s
    pivot: float = 0.0  # m, forward of the body's origin: the point around which a robot without wheels turns


@dataclass(frozen=True)
class Robot:
    """Complete declaration of a robot. Its XML needs a site "agent"; actions are from -1 to 1."""

    name: str  # letters and digits, first letter upper-case
    timestep: float  # s, of one sub-step
    density: float  # of geoms that do not set their own
    height: float  # m, of the body at the start
    body: str  # XML inside <body name="agent">
    actuator: str  # XML inside <actuator>
    free: bool  # True: a free joint has the pose; False: joints start at 0 in a rest pose
    rest_qpos: tuple[float, ...]  # joints at the start (for a free robot without xyz and quaternion)
    reach: float  # m, approximate distance from the centre to the surface
    saturation: float  # actions beyond this have no more effect
    forward: tuple[float, float]  # unit vector in the body's frame: the direction of driving
    steering: Steering
    glyph: Glyph = field(repr=False)  # x is forward, in metres
    ball: str | None = None  # name of a ball joint that is observed
    sensors: str = ""  # XML of more sensors, observed after the common twelve
    sensors_scale: tuple[float, ...] = ()  # a gain per number of `sensors`, that scales it to about 1
    motion: Motion | None = None  # None: controllers that plan cannot drive it
    color: Color = BLUE

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InputError(f"expected a robot's name of letters and digits such as Car, actually: {self.name!r}")

    @property
    def sensor_scale(self) -> tuple[float, ...]:
        """A gain for each of the robot's own observation entries, in order."""
        return COMMON_SCALE + self.sensors_scale + (BALL_SCALE if self.ball else ())

    @property
    def sensor_count(self) -> int:
        """Number of observation entries before the lidars."""
        return len(self.sensor_scale)


POINT = Robot(
    name="Point",
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
    reach=0.1,
    saturation=0.05,
    forward=(1.0, 0.0),
    steering=Steering(wheels=False, speed_gain=0.2, turn_gain=0.3),
    motion=Motion(top_speed=1.5, lag=0.52, top_yaw_rate=3.0, pivot=0.0193),
    glyph=(
        shadow(0.12, alpha=0.35),
        disc(0.1, grow=0.02, paint="rim"),
        box(0.05, 0.05, at=(0.1, 0.0), grow=0.02, paint="rim", corner=0.03),
        disc(0.1),
        box(0.05, 0.05, at=(0.1, 0.0), corner=0.01),
        Shape("triangle", ((0.13, 0.0), (-0.01, 0.045), (-0.01, -0.045)), paint="white", corner=0.006),
    ),
)

_CAR_BODY = (  # centre and half-extents: bumpers with their connectors
    ((-0.15, 0.0), (0.01, 0.1)),
    ((-0.125, 0.0), (0.025, 0.01)),
    ((0.165, 0.0), (0.01, 0.05)),
    ((0.13, 0.0), (0.03, 0.05)),
)
_CAR_WHEELS = ((-0.1, -0.13), (-0.1, 0.13))

# The wheels touch the floor at the start up to a rounding error, and its sign decides whether the first
# contacts are active. An axle along -x rounds as in the reference; with +x, half of all episodes start differently.
CAR = Robot(
    name="Car",
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
    reach=0.15,
    saturation=0.02,
    forward=(0.0, -1.0),
    steering=Steering(wheels=True, speed_gain=0.2, turn_gain=0.1, gentle_speed_gain=0.03, gentle_turn_gain=0.005),
    motion=Motion(top_speed=0.8, lag=0.1, top_yaw_rate=1.3),
    glyph=(
        box(0.17, 0.13, paint="shadow", shift=(0.02, -0.03), corner=0.05, alpha=0.35, soft=0.12),
        *(box(*half, at=at, grow=0.018, paint="rim", corner=0.01) for at, half in _CAR_BODY),
        *(box(0.05, 0.025, at=at, grow=0.018, paint="rim", corner=0.01) for at in _CAR_WHEELS),
        box(0.1, 0.1, grow=0.018, paint="rim", corner=0.02),
        *(box(*half, at=at, corner=0.01) for at, half in _CAR_BODY),
        *(box(0.05, 0.025, at=at, blend=0.85, corner=0.01) for at in _CAR_WHEELS),
        box(0.1, 0.1, corner=0.02),
        Shape("triangle", ((0.1, 0.0), (-0.02, -0.05), (-0.02, 0.05)), paint="white", corner=0.008),
        box(0.012, 0.06, at=(-0.065, 0.0), blend=0.4, corner=0.01),
    ),
)

ROBOTS: dict[str, Robot] = {robot.name: robot for robot in (POINT, CAR)}


def add_robot(robot: Robot) -> Robot:
    """Make your own robot available to tasks; adding an equal robot twice is allowed."""
    if ROBOTS.setdefault(robot.name, robot) != robot:
        raise InputError(f'there is already another robot "{robot.name}"; choose another name')
    return robot
