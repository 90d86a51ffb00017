"""From the shipped PointGoal1 pair to a C program that drives MuJoCo's world: blend, export, compile, drive.

    python examples/robot/mujoco_drive.py OUT     # then: OUT/mujoco_drive OUT/world.mjb 1000 0.02

The blend keeps a cost budget of 25 per episode with look-ahead networks. `mujoco_world.c` is the world in C, on the C
library of the `mujoco` package; a seed has the same layouts as in Python.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import mujoco

from blendctl import Blender
from blendctl.controllers import load
from blendctl.envs import SingleWorld

SOURCES = ("mujoco_drive.c", "mujoco_world.c", "mujoco_world.h", "robot_loop.h")


def blend():
    """Return a blend of the shipped pair within a cost budget; it learns while it drives."""
    pair = [load("PointGoal1/ppo"), load("PointGoal1/ppo-lagrangian")]
    return Blender(pair, ["fast", "safe"], cost_budget=25.0, fallback="safe", stochastic=False, seed=0)


def main(out):
    """Write the files to a directory, and the program `mujoco_drive`."""
    blend().export(out, world="PointGoal1", replace=True)
    world = SingleWorld("PointGoal1")
    mujoco.mj_saveModel(world.batch.model, str(out / "world.mjb"), None)
    world.close()
    for name in SOURCES:
        shutil.copy(Path(__file__).parent / name, out)
    package = Path(mujoco.__file__).parent
    library = next(path for pattern in ("libmujoco.so*", "libmujoco*.dylib") for path in package.glob(pattern))
    command = ["gcc", "-std=c99", "-O3", "-Wall", "-Wextra", "-Werror", "-pedantic", "-isystem", package / "include"]
    sources = [out / "mujoco_drive.c", out / "mujoco_world.c", out / "blend.c"]
    program = out / "mujoco_drive"
    subprocess.run([*command, *sources, "-o", program, library, f"-Wl,-rpath,{package}", "-lm"], check=True)
    print(f"wrote {program}; run it with steps and a control period: {program} {out / 'world.mjb'} 1000 0.02")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
