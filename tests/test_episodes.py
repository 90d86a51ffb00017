"""Episode sums: every switch meets the same layouts and the same action noise."""

import numpy as np
import pytest

from blendctl.blender import Blender
from blendctl.blender.batch import BlenderBatch
from blendctl.blender.run_loop import run
from blendctl.controllers import load, open_controller
from blendctl.controllers.adapters import as_controller
from blendctl.envs import SingleWorld
from blendctl.episodes import COLUMNS, drive_blend, episode_columns, jerk_columns, run_episodes, score
from blendctl.errors import InputError, StateError
from blendctl.evaluation import evaluate
from blendctl.switches import METHODS, open_worlds
from blendctl.switches.bandits import pooled_bandit
from blendctl.switches.random_switch import RandomSwitch
from blendctl.switches.shared import SharedControl
from blendctl.switches.single_controller import SingleController

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
        return run_episodes(place, controllers, make=make, seed=seed, **options)
    finally:
        place.close()


def test_a_coin_per_episode_repeats_the_episodes_of_the_controllers_alone(zoo):
    alone = [driven(zoo, lambda _, arm=arm: SingleController(arm), worlds=6) for arm in (0, -1)]
    mixed = driven(zoo, lambda context: RandomSwitch(context, share=0.5, per="episode"), worlds=6)
    assert set(mixed.shares) == {0.0, 1.0}
    whose = np.where(mixed.shares == 1.0, 0, 1)
    np.testing.assert_array_equal(mixed.returns, np.stack([e.returns for e in alone])[whose, np.arange(6)])
    np.testing.assert_array_equal(mixed.costs, np.stack([e.costs for e in alone])[whose, np.arange(6)])


def test_a_single_controller_has_the_returns_of_its_evaluation(classical):
    evaluation = evaluate(classical[0], "PointGoal1", episodes=1, seed=5)
    place = open_worlds("PointGoal1", 1)
    sums = run_episodes(place, classical[:1], make=lambda _: SingleController(), seed=5)
    place.close()
    assert sums.returns[0] == pytest.approx(evaluation.returns[0], abs=1e-12)
    assert sums.lengths[0] == evaluation.lengths[0] == 1000


def test_shared_control_of_full_weight_is_that_controller(zoo):
    alone = driven(zoo, lambda _: SingleController())
    shared = driven(zoo, lambda context: SharedControl(context, share=1.0))
    half = driven(zoo, lambda context: SharedControl(context, share=0.5))
    np.testing.assert_array_equal(alone.returns, shared.returns)
    assert not np.array_equal(half.returns, shared.returns)
    np.testing.assert_allclose(half.shares, 0.5)


def test_a_coin_per_step_switches_as_often_as_it_should(zoo):
    sums = driven(zoo, lambda context: RandomSwitch(context, share=0.5, per="step"), worlds=20)
    assert sums.shares.mean() == pytest.approx(0.5, abs=0.06)
    assert sums.switches.mean() == pytest.approx(0.5 * (STEPS - 1), abs=3)


def test_the_bandit_decides_as_the_blender_does(classical):
    """Same learner, same contexts, same seed: a method's bandit is the blender's."""
    seeds = []

    def make(context):
        seeds.append(context.seed)
        return pooled_bandit(context)

    sums = driven(classical, make, worlds=2)
    place = open_worlds("PointGoal1", 2, steps=STEPS)
    blender = BlenderBatch(classical, 2, learner="pooled", seed=seeds[0])
    records = list(run(place, blender, episodes=1, seed=5))
    place.close()
    returns = np.sum([record.reward for record in records], axis=0)
    shares = np.mean([record.arm == 0 for record in records], axis=0)
    np.testing.assert_allclose(sums.shares, shares, atol=1e-12)
    np.testing.assert_allclose(sums.returns, returns, atol=1e-12)
    assert 0 < shares.mean() < 1


def test_choices_are_judged_now_and_then_or_never(zoo):
    sums = driven(zoo, lambda context: METHODS["oracle"].make(context, {"cost_weight": 1.0}, {}), judge_every=5)
    np.testing.assert_array_equal(sums.correct_ratio, 1.0)
    assert np.isnan(driven(zoo, lambda _: SingleController()).correct_ratio).all()
    assert np.isnan(driven(zoo, lambda context: SharedControl(context, share=0.5), judge_every=5).correct_ratio).all()


def test_a_controller_that_does_not_fit_or_returns_nan_is_refused(zoo):
    class Broken:
        def act(self, observation, rng=None):
            return np.full((len(observation), 2), np.nan)

    with pytest.raises(StateError, match="controller 1 returned an action that is NaN"):
        driven([zoo[0], Broken()], lambda _: SingleController())
    car = open_worlds("CarButton1", 1, steps=2)
    with pytest.raises(InputError, match="Use a controller trained for it"):
        run_episodes(car, zoo, make=lambda _: SingleController(), seed=0)
    car.close()


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"offline", "threshold", "ceiling"}))
def test_every_method_drives_and_repeats_itself(zoo, name):
    method = METHODS[name]
    setting = method.settings[-1] | ({"horizon": 8} if method.heavy else {})
    once, again = (
        driven(zoo, lambda context: method.make(context, setting, {}), worlds=2, judge_every=10) for _ in range(2)
    )
    np.testing.assert_array_equal(once.returns, again.returns)
    np.testing.assert_array_equal(once.switches, again.switches)
    assert np.isfinite(once.returns).all()
    assert ((once.shares >= 0) & (once.shares <= 1)).all()
    assert (once.lengths == STEPS).all()


def test_scores_are_those_of_the_paper():
    truth = np.array([[[0.2, 0.0], [0.1, 0.0]], [[0.2, -1.0], [0.1, 0.0]], [[0.2, 0.0], [0.1, -1.0]]])
    scores = score(truth, np.array([1, 1, 1]))
    assert scores.correct.tolist() == [False, True, False]
    assert scores.gap.tolist() == pytest.approx([0.0, 0.0, 0.1])  # a tie in one objective makes the gap 0
    assert scores.loss.tolist() == pytest.approx([0.1, 0.1, 1.0])


def test_sums_become_the_published_columns(zoo):
    table = driven(zoo, lambda context: RandomSwitch(context, share=0.5, per="step"), judge_every=2).table()
    for row, sums in zip(map(episode_columns, table.to_pylist()), table.to_pylist(), strict=True):
        assert set(row) == set(COLUMNS)
        assert row["correct_ratio"] == sums["correct"] / (STEPS // 2)
        assert row["max_loss"] == sums["loss"] / (STEPS // 2)
        assert row["share_performant"] == sums["driven_0"] / STEPS
    alone = driven(zoo, lambda _: SingleController()).table(with_choices=False)
    assert alone.column_names == ["return", "cost", "length"]
    assert set(episode_columns(alone.to_pylist()[0])) == {"return", "cost", "length"}


def test_the_jerk_is_how_far_the_action_moves_between_two_steps():
    class Turns(SingleController):
        def choose(self, frame):
            return np.full(len(frame.observations), frame.step % 2)

    pair = [as_controller(lambda o: [1.0, 0.0]), as_controller(lambda o: [-1.0, 0.0])]
    turns = driven(pair, lambda _: Turns(0), worlds=2)
    np.testing.assert_allclose(turns.moved, 2.0 * (STEPS - 1))
    assert [jerk_columns(row)["jerk"] for row in turns.table().to_pylist()] == [2.0, 2.0]
    np.testing.assert_array_equal(driven(pair, lambda _: SingleController(0), worlds=2).moved, 0.0)


def test_a_blend_and_a_rollout_have_the_same_sums_of_the_same_episodes(classical):
    sums = driven(classical[:1], lambda _: SingleController(), worlds=2, components=True)
    expected = sums.table(with_choices=False).to_pylist()
    assert [name for name in expected[0] if name.startswith("cost_")]
    env = SingleWorld("PointGoal1", max_episode_steps=STEPS)
    blender = Blender(classical[:1], features="one-hot", stochastic=False, seed=0)
    rows = drive_blend(env, blender, seed=5, episodes=2)
    env.close()
    assert [{name: row[name] for name in expected[0]} for row in rows] == expected
    assert [row["moved"] for row in rows] == pytest.approx(sums.moved)
    assert [row["switches"] for row in rows] == [0, 0]


def test_the_rows_of_an_evaluation_have_the_columns_of_all_tables(classical):
    evaluation = evaluate(classical[0], "PointGoal1", episodes=2, seed=5, worlds_at_once=1)
    assert [list(row) for row in evaluation.rows()] == [["seed", "return", "cost", "length"]] * 2
    assert [row["return"] for row in evaluation.rows()] == evaluation.returns.tolist()
