"""The limit of R²: what two labels of the same state share."""

import numpy as np
import pytest
from corridor import corridor, drivers
from gymnasium.vector import AutoresetMode

from blendctl.controllers import identity_encoding, load
from blendctl.controllers.card import lookahead_markdown
from blendctl.envs import VectorWorld
from blendctl.training.lookahead_data import OptionCollector
from blendctl.training.lookahead_limit import compare_with_limit


def labels(noise, *, rng):
    """Return what the state decides (n, controllers, 2) with variance 1, and two labels with noise."""
    decided = rng.normal(size=(20_000, 3, 2))
    return decided, decided + noise * rng.normal(size=(2, *decided.shape))


@pytest.mark.parametrize("noise", [0.5, 1.0, 2.0])
def test_the_limit_is_the_share_of_the_variance_that_the_state_decides(noise):
    decided, known = labels(noise, rng=np.random.default_rng(0))
    share = 1.0 / (1.0 + noise**2)
    entry = compare_with_limit(decided, known)
    for name in ("level", "difference"):
        assert entry[f"limit_{name}"] == pytest.approx([share, share], abs=0.02)
        assert entry[f"r2_{name}"] == pytest.approx(entry[f"limit_{name}"], abs=0.02), "the best estimate reaches it"
    worse = compare_with_limit(0.5 * decided, known)
    assert worse["limit_difference"] == entry["limit_difference"], "it does not depend on the estimate"
    assert max(worse["r2_difference"]) < min(worse["limit_difference"])


def test_without_noise_everything_can_be_known():
    decided, known = labels(0.0, rng=np.random.default_rng(1))
    entry = compare_with_limit(np.zeros_like(decided), known)
    assert entry["limit_level"] == entry["limit_difference"] == [1.0, 1.0]
    assert entry["r2_difference"] == pytest.approx([0.0, 0.0], abs=1e-3)


def collector(environment, controllers, size):
    return OptionCollector(
        environment, controllers, encode=identity_encoding(size), hold=5, commit=2, follow=0, discount=0.99, seed=0
    )


def test_two_labels_of_a_state_differ_in_the_action_noise_alone():
    pair = [load("PointGoal1/ppo"), load("PointGoal1/ppo-lagrangian")]
    worlds = VectorWorld("PointGoal1", 4, autoreset_mode=AutoresetMode.SAME_STEP)
    twice = collector(worlds, pair, 60)
    first, second = twice.collect_twice(np.array([0, 1, 0, 1]))
    assert np.array_equal(first.inputs, second.inputs)
    assert first.labelled.all()
    assert second.labelled.all()
    # Noise changes nothing where the actions are at their limits.
    assert (first.near_sums[..., 0] != second.near_sums[..., 0]).any(axis=0).all()
    assert twice.steps.tolist() == [10] * 4, "the worlds went on by one branch"
    worlds.close()


def test_two_labels_of_controllers_without_noise_are_equal():
    first, second = collector(corridor(), drivers(), 2).collect_twice(np.zeros(16, np.intp))
    assert np.array_equal(first.near_sums, second.near_sums)
    assert np.array_equal(first.near, second.near)


def test_the_card_shows_what_was_reached_of_the_limit():
    limit = {"states": 1600, "weight": 0.141, "r2_level": [0.8, 0.7], "limit_level": [0.9, 0.95]}
    limit |= {"r2_difference": [0.51, 0.42], "limit_difference": [0.79, 0.84]}
    card = {"steps": 10, "limit": limit, "command": "", "config": {"seed": 0}, "seconds": 1.0, "versions": {}}
    assert "| difference between controllers | 0.510 of 0.790 | 0.420 of 0.840 |" in lookahead_markdown(card)
    assert "1,600 states" in lookahead_markdown(card)
    assert "allows" not in lookahead_markdown(card | {"limit": None})
