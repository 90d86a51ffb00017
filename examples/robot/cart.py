"""From two controllers of a cart to a C program on the robot: blend, export, compile, drive.

    python examples/robot/cart.py OUT     # then: OUT/robot 10000 0.001

The cart should reach a moving target, and must not drive fast near people. `hasty` does the first well, `careful`
the second. The blend learns in Python which one to use where, and is exported to C; `robot.c` drives the same plant
with the exported file, at its control period, and prints percentiles of the time that a control step takes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from blendctl import Blender
from blendctl.export import exportable
from blendctl.features import Custom

PERIOD = 0.05  # s
LIMIT = 0.5  # m/s, near people
SIZES = {"observation_size": 4, "action_size": 1}


@exportable("action[0] = 4.0 * (observation[2] - observation[0]) - 1.5 * observation[1];", **SIZES)
def hasty(observation):
    return [4.0 * (observation[2] - observation[0]) - 1.5 * observation[1]]


@exportable("action[0] = 1.0 * (observation[2] - observation[0]) - 3.0 * observation[1];", **SIZES)
def careful(observation):
    return [1.0 * (observation[2] - observation[0]) - 3.0 * observation[1]]


@exportable(
    """
    const double force = action[0] < -5.0 ? -5.0 : action[0] > 5.0 ? 5.0 : action[0];
    const double velocity = observation[1] + 0.05 * force;
    const double distance = fabs(observation[2] - observation[0] - 0.3 * velocity);
    (void)arm;
    psi[0] = -0.15 * distance;
    psi[1] = observation[3] > 0.5 && fabs(velocity) > 0.5 ? -0.5 : 0.0;
    """
)
def expected(observation, action, arm):
    """Return the effect of an action: the distance to the target 0.3 s later, and a speed above the limit."""
    position, velocity, target, people = observation
    velocity = velocity + PERIOD * float(np.clip(action[0], -5.0, 5.0))
    return [-0.15 * abs(target - position - 0.3 * velocity), -0.5 * (people > 0.5 and abs(velocity) > LIMIT)]


def step(state, action):
    """Advance the plant: position, velocity, target, whether people are near; return reward and cost too."""
    position, velocity, target, people = state
    velocity += PERIOD * float(np.clip(action, -5.0, 5.0))
    position += PERIOD * velocity
    reward = -abs(target - position)
    cost = float(people > 0.5 and abs(velocity) > LIMIT)
    return np.array([position, velocity, target, people]), reward, cost


def blend(**options):
    """Return a blend of the two controllers."""
    return Blender(
        [hasty, careful], ["hasty", "careful"], features=Custom(expected, size=2), fallback="careful",
        safe_action=[0.0], handover="slew:1.0", **options,
    )  # fmt: skip


def learn(steps):
    """Return a blend that has driven a number of steps."""
    rng = np.random.default_rng(0)
    blender = blend(scales=[4.0, 1.0], seed=0)
    state = np.zeros(4)
    for number in range(steps):
        if number % 100 == 0:
            state[2] = rng.uniform(-2.0, 2.0)
        if number % 70 == 0:
            state[3] = float(rng.integers(2))
        state, reward, cost = step(state, blender.act(state)[0])
        blender.observe(reward, cost)
    return blender


def main(out):
    """Write the files to a directory, and the program `robot`."""
    blender = learn(3000)
    rows = np.random.default_rng(1).uniform(-1.0, 1.0, (20, 4))
    blender.export(out, observations=rows, control_period=PERIOD, replace=True)
    for name in ("robot.c", "robot_loop.h"):
        shutil.copy(Path(__file__).parent / name, out)
    command = ["gcc", "-std=c99", "-O3", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    subprocess.run([*command, out / "robot.c", out / "blend.c", "-o", out / "robot", "-lm"], check=True)
    print(f"wrote {out / 'robot'}; run it with a number of steps and a control period: {out / 'robot'} 1000 {PERIOD}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
