"""Robots' loops in C drive by the exported file, as the blend does in Python."""

import hashlib
import re
import subprocess

import numpy as np
from compiled_blend import needs_gcc
from example_files import example

pytestmark = needs_gcc


def test_a_cart_drives_by_the_exported_file(tmp_path):
    example("robot/cart").main(tmp_path)
    done = subprocess.run([tmp_path / "robot", "2000", "0"], capture_output=True, text=True, check=True)
    digest = hashlib.sha256((tmp_path / "contract.json").read_bytes()).hexdigest()
    assert f"contract {digest}" in done.stdout
    stages = [int(count) for count in re.findall(r"arm \d drove (\d+) stages, failed 0 times", done.stdout)]
    assert sum(stages) == 2000
    assert min(stages) > 100, "both controllers drive"
    assert "p99.9" in done.stdout


def test_mujoco_driven_from_c_equals_python(tmp_path):
    """Two episodes and a part of a third, with layouts, goals, physics and costs in C."""
    from blendctl.envs import SingleWorld

    drive = example("robot/mujoco_drive")
    drive.main(tmp_path)
    command = [tmp_path / "mujoco_drive", tmp_path / "world.mjb", "2100", "0", "5", tmp_path / "trace.txt"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "2100 steps" in done.stdout
    assert "p99.9" in done.stdout
    trace = np.loadtxt(tmp_path / "trace.txt")
    blender, world = drive.blend(), SingleWorld("PointGoal1")
    observation, _ = world.reset(seed=5)
    rows, goals = [], 0
    while len(rows) < len(trace):
        action = blender.act(observation)
        observation, reward, terminated, truncated, info = world.step(action)
        rows.append((blender.choice.arm, *action, reward, info["cost"]))
        goals += info["goal_met"]
        blender.observe(reward, info["cost"], done=terminated or truncated)
        if terminated or truncated:
            observation, _ = world.reset()
    world.close()
    np.testing.assert_array_equal(trace, rows)
    assert goals > 10
    assert len(np.unique(trace[:, 0])) == 2
    assert trace[:, 4].sum() > 0
