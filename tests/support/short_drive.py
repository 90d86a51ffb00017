"""Run a short blend, as the command `blendctl blend` does."""

import math

import pytest

from blendctl.cli import main
from blendctl.controllers import load
from blendctl.controllers.zoo import find_lookahead

CLASSICAL = ("pure-pursuit", "potential-field")
TRAINED = ("PointGoal1/ppo", "PointGoal1/ppo-lagrangian")  # with look-ahead networks


def lookahead_of_trained():
    """Return the look-ahead networks of the trained pair, and steps after which what follows counts less than 5%."""
    network = find_lookahead([load(name) for name in TRAINED])
    return network, math.ceil(math.log(0.05) / math.log(network.discount))


def blend_to(folder, *more, controllers=CLASSICAL, names=("bold", "wary"), episodes=2, steps=150, seed=8):
    """Run the command in PointGoal1, where both controllers cause costs; return the output directory."""
    words = ["blend", "PointGoal1", "--controllers", *controllers, "--names", *names]
    words += ["--episodes", episodes, "--steps", steps, "--seed", seed, "--out", folder, *more]
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    assert stopped.value.code == 0
    return folder
