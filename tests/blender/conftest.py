"""Controllers whose every property is known, for the blender's tests."""

import numpy as np
import pytest

from blendctl.blender import Blender
from blendctl.features import Custom

ACTIONS = {"fast": [1.0, 0.0], "safe": [0.2, 0.0], "third": [0.5, 0.0]}


class Steady:
    """Always the same action."""

    action_size = 2

    def __init__(self, name):
        self.name = name
        self.asked = 0

    def act(self, observation, rng=None):
        self.asked += 1
        return np.array(ACTIONS[self.name])


def speed_and_danger(observation, action, arm):
    """Return psi of an arm: the feedback of its action, [reward, -cost] / 2."""
    return [0.5 * action[0], -0.5 * float(action[0] > 0.6)]


@pytest.fixture
def make():
    """Make a blender of steady controllers, closed at the end of the test."""
    made = []

    def build(*names, controllers=None, **options):
        controllers = controllers or [Steady(name) for name in names or ("fast", "safe")]
        options = {"features": Custom(speed_and_danger, size=2), "seed": 0} | options
        made.append(Blender(controllers, **options))
        return made[-1]

    yield build
    for blender in made:
        blender.close()


@pytest.fixture
def observation():
    return np.zeros(4)
