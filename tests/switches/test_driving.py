"""Driving by weights: the same layouts and the same luck for whoever drives."""

import numpy as np
import pytest

from blendctl.blender.batch import BlenderBatch
from blendctl.blender.run_loop import run
from blendctl.controllers import load, open_controller
from blendctl.controllers.evaluation import evaluate
from blendctl.errors import InputError, StateError
from blendctl.switches import METHODS, drive, open_worlds
from blendctl.switches.bandits import Bandit
from blendctl.switches.random_switch import Chance
from blendctl.switches.shared import Shared
from blendctl.switches.single import Alone

STEPS = 40


@pytest.fixture(scope="module")
def zoo():
    return [load("PointGoal1/ppo"), load("PointGoal1/ppo-lagrangian")]


@pytest.fixture(scope="module")
def classical():
    """Two controllers that draw nothing by chance."""
    return [open_controller(name, world="PointGoal1") for name in ("pure-pursuit", "potential-field")]


def driven(controllers, make, *, worlds=3, seed=5, **options):
    place = open_worlds("PointGoal1", worlds, steps=STEPS)
    try:
        return drive(place, controllers, make=make, seed=seed, **options)
    finally:
        place.close()


def test_a_coin_per_episode_gives_exactly_the_episodes_of_the_controllers_alone(zoo):
    alone = [driven(zoo, lambda seat, arm=arm: Alone(seat, arm=arm), worlds=6) for arm in (0, -1)]
    mixed = driven(zoo, lambda seat: Chance(seat, share=0.5, per="episode"), worlds=6)
    assert set(mixed.shares) == {0.0, 1.0}
    whose = np.where(mixed.shares == 1.0, 0, 1)
    np.testing.assert_array_equal(mixed.returns, np.stack([e.returns for e in alone])[whose, np.arange(6)])
    np.testing.assert_array_equal(mixed.costs, np.stack([e.costs for e in alone])[whose, np.arange(6)])


def test_a_controller_alone_brings_what_its_evaluation_says(classical):
    told = evaluate(classical[0], "PointGoal1", episodes=1, seed=5)
    place = open_worlds("PointGoal1", 1)
    found = drive(place, classical[:1], make=lambda seat: Alone(seat, arm=0), seed=5)
    place.close()
    assert found.returns[0] == pytest.approx(told.returns[0], abs=1e-12)
    assert found.lengths[0] == told.lengths[0] == 1000


def test_shared_control_of_full_weight_is_that_controller(zoo):
    alone = driven(zoo, lambda seat: Alone(seat, arm=0))
    shared = driven(zoo, lambda seat: Shared(seat, share=1.0))
    half = driven(zoo, lambda seat: Shared(seat, share=0.5))
    np.testing.assert_array_equal(alone.returns, shared.returns)
    assert not np.array_equal(half.returns, shared.returns)
    np.testing.assert_allclose(half.shares, 0.5)


def test_a_coin_per_step_switches_as_often_as_it_should(zoo):
    found = driven(zoo, lambda seat: Chance(seat, share=0.5, per="step"), worlds=20)
    assert found.shares.mean() == pytest.approx(0.5, abs=0.06)
    assert found.switches.mean() == pytest.approx(0.5 * (STEPS - 1), abs=3)


def test_the_bandit_decides_as_the_blender_does(classical):
    """Same learner, same contexts, same seed: the rival's loop is the blender's."""
    seeds = []

    def make(seat):
        seeds.append(seat.seed)
        return Bandit(seat)

    found = driven(classical, make, worlds=2)
    place = open_worlds("PointGoal1", 2, steps=STEPS)
    blender = BlenderBatch(classical, 2, learner="pooled", seed=seeds[0])
    records = list(run(place, blender, episodes=1, seed=5))
    place.close()
    returns = np.sum([record.reward for record in records], axis=0)
    shares = np.mean([record.arm == 0 for record in records], axis=0)
    np.testing.assert_allclose(found.shares, shares, atol=1e-12)
    np.testing.assert_allclose(found.returns, returns, atol=1e-12)
    assert 0 < shares.mean() < 1


def test_choices_are_judged_now_and_then_or_never(zoo):
    found = driven(zoo, lambda seat: METHODS["oracle"].make(seat, {"cost_weight": 1.0}, {}), judge_every=5)
    np.testing.assert_array_equal(found.correct, 1.0)
    assert np.isnan(driven(zoo, lambda seat: Alone(seat, arm=0)).correct).all()
    assert np.isnan(driven(zoo, lambda seat: Shared(seat, share=0.5), judge_every=5).correct).all()


def test_what_does_not_fit_or_is_not_finite_is_told(zoo):
    class Broken:
        def act(self, observation, rng=None):
            return np.full((len(observation), 2), np.nan)

    with pytest.raises(StateError, match="controller 1 gave an action that is NaN"):
        driven([zoo[0], Broken()], lambda seat: Alone(seat, arm=0))
    car = open_worlds("CarButton1", 1, steps=2)
    with pytest.raises(InputError, match="Use a controller trained for it"):
        drive(car, zoo, make=lambda seat: Alone(seat, arm=0), seed=0)
    car.close()


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"offline", "ceiling"}))
def test_every_method_drives_and_repeats_itself(zoo, name):
    method = METHODS[name]
    setting = method.settings[-1]
    once, again = (driven(zoo, lambda seat: method.make(seat, setting, {}), worlds=2, judge_every=10) for _ in range(2))
    np.testing.assert_array_equal(once.returns, again.returns)
    np.testing.assert_array_equal(once.switches, again.switches)
    assert np.isfinite(once.returns).all()
    assert ((once.shares >= 0) & (once.shares <= 1)).all()
    assert (once.lengths == STEPS).all()
