"""A saved blend continues as it was, including what its features have learned; that of another blend is refused."""

import numpy as np
import pytest

from blendctl import Blender, BlendingBandit
from blendctl.errors import FileFormatError, InputError
from blendctl.features import BoundFeature, OneHot, Stack

NAMES = ["left", "right"]
TEAM = [lambda o: [-1.0], lambda o: [1.0]]


def blend(**options):
    return Blender(TEAM, options.pop("names", NAMES), **({"seed": 0} | options))


def drive(blender, steps, *, seed=0):
    """Drive in the direction of the observation's sign; return the share of right choices."""
    rng, right = np.random.default_rng(seed), 0
    for _ in range(steps):
        observation = rng.uniform(-1, 1, size=1)
        action = blender.act(observation)
        good = float(action[0] * observation[0] > 0)
        blender.observe(reward=good, cost=1.0 - good)
        right += good
    return right / steps


@pytest.mark.parametrize("features", [None, "online", [OneHot(), "online"]], ids=["default", "online", "stack"])
def test_a_frozen_blend_is_as_good_as_it_was(tmp_path, features):
    first = blend(features=features)
    drive(first, 400)
    learned = drive(first, 200, seed=1)
    assert learned > 0.8
    first.save(tmp_path / "blend")
    second = blend(features=features, bandit=tmp_path / "blend", frozen=True)
    assert drive(second, 200, seed=2) > 0.8
    assert second.bandit.stage == first.bandit.stage


def test_a_saved_blend_goes_on_bit_for_bit(tmp_path):
    first = blend()
    drive(first, 50)
    first.save(tmp_path / "blend")
    second = blend(bandit=tmp_path / "blend")
    drive(first, 50, seed=1)
    drive(second, 50, seed=1)
    assert np.array_equal(first.bandit.theta, second.bandit.theta)
    one, other = (b.feature.state() for b in (first, second))
    assert one.keys() == other.keys() >= {"1.weights", "1.spread", "1.unit", "1.inputs"}
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_a_learner_without_its_features_is_refused(tmp_path):
    first = blend()
    drive(first, 20)
    first.bandit.save(tmp_path / "bandit")
    for given in (tmp_path / "bandit", first.bandit):
        with pytest.raises(InputError, match=r"blender\.save\(file\)"):
            blend(bandit=given)
    assert blend(bandit=BlendingBandit(4, 2)).bandit.stage == 0  # one that has learned nothing misses nothing
    assert BlendingBandit.load(tmp_path / "bandit").stage == 20


def test_the_learner_of_a_blend_can_be_read_alone(tmp_path):
    first = blend()
    drive(first, 20)
    first.save(tmp_path / "blend")
    assert np.array_equal(BlendingBandit.load(tmp_path / "blend").theta, first.bandit.theta)


def test_another_blend_is_refused(tmp_path):
    first = blend(features="one-hot")
    drive(first, 20)
    first.save(tmp_path / "blend")
    with pytest.raises(InputError, match="saved with the controllers left, right, in this order"):
        blend(features="one-hot", names=["right", "left"], bandit=tmp_path / "blend")
    with pytest.raises(InputError, match="saved with the objectives reward, -cost"):
        blend(features="one-hot", objectives=["-cost", "reward"], bandit=tmp_path / "blend")
    for names in (NAMES, ["port", "starboard"]):  # new names for the same controllers
        assert blend(features="one-hot", names=names, bandit=tmp_path / "blend").bandit.stage == 20


def test_a_model_that_was_changed_is_refused(tmp_path):
    first = blend()
    drive(first, 20)
    first.save(tmp_path / "blend")
    data = bytearray((tmp_path / "blend").read_bytes())
    weights = first.feature.state()["1.weights"].tobytes()
    data[data.index(weights)] ^= 1
    (tmp_path / "changed").write_bytes(data)
    with pytest.raises(FileFormatError, match="digest does not match"):
        blend(bandit=tmp_path / "changed")


class Tuned(BoundFeature):
    """A feature that learns and cannot be saved."""

    size = 1
    learns = True

    def bind(self, controllers, *, objectives):
        return self

    def __call__(self, observation, action, arm):
        return [0.1 * arm]

    def learn(self, observation, action, feedback):
        pass


def test_a_feature_that_cannot_be_saved_says_so(tmp_path):
    for features in (Tuned(), Stack(OneHot(), Tuned())):
        with pytest.raises(InputError, match="Tuned cannot be saved"):
            blend(features=features).save(tmp_path / "blend")
    assert not (tmp_path / "blend").exists()
