"""Run a short blend of two classical controllers, as the command `blendctl blend` does."""

import pytest

from blendctl.cli import main


def blend_to(folder, *more, names=("bold", "wary"), episodes=2, steps=150, seed=8):
    """Run the command in PointGoal1, where both controllers cause costs; return the output directory."""
    words = ["blend", "PointGoal1", "--controllers", "pure-pursuit", "potential-field", "--names", *names]
    words += ["--episodes", episodes, "--steps", steps, "--seed", seed, "--out", folder, *more]
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    assert stopped.value.code == 0
    return folder
