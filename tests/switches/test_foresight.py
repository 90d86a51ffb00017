"""Looking ahead: the choice of the least loss, and oracles that know the world but not its luck."""

import numpy as np
import pytest

from blendctl.controllers import load, open_controller
from blendctl.episodes import run_episodes
from blendctl.errors import InputError
from blendctl.switches import RolloutContext, StepInput, open_worlds
from blendctl.switches.foresight import LeastLoss, PredictedAhead
from blendctl.switches.methods import METHODS
from blendctl.switches.oracles import NextStep, Rollouts
from blendctl.switches.simplex import Simplex


@pytest.fixture
def context():
    """Three worlds a few steps into their episodes, with controllers that draw nothing by chance."""
    controllers = [open_controller(name, world="PointGoal1") for name in ("pure-pursuit", "potential-field")]
    worlds = open_worlds("PointGoal1", 3, steps=200)
    observations, _ = worlds.reset(seed=3)
    for _ in range(10):
        observations, *_ = worlds.step(controllers[0].act(observations))
    yield RolloutContext(controllers, worlds, seed=1)
    worlds.close()


def frame_of(context):
    observations = context.worlds.observations
    return StepInput.at_start(observations, np.stack([c.act(observations) for c in context.controllers]))


def test_the_least_loss_drives_and_holds_until_the_next_decision(context):
    expected = iter(
        [
            np.array([[[1.0, 0.0], [0.0, 0.0]], [[1.0, 9.0], [0.0, 0.0]], [[0.5, 2.0], [0.5, 2.0]]]),
            np.array([[[0.0, 0.0], [1.0, 0.0]]] * 3),
        ]
    )
    switch = LeastLoss(lambda frame: next(expected), every=3, cost_weight=0.2)
    frames = [StepInput.at_start(np.zeros((3, 1)), np.zeros((2, 3, 1)), step=step) for step in range(4)]
    arms = [switch.choose(frame).tolist() for frame in frames]
    assert arms[0] == [0, 1, 1]  # more reward; reward 1 against cost 0.2 * 9; a tie goes to the safe one
    assert arms[1] == arms[2] == arms[0]
    assert arms[3] == [1, 1, 1]


def test_the_one_step_oracle_predicts_the_feedback_of_a_step(context):
    frame = frame_of(context)
    expected = NextStep(context)(frame)
    _, reward, _, _, infos = context.worlds.step(frame.proposals[1])
    np.testing.assert_allclose(expected[:, 1], np.stack([reward, infos["cost"]], axis=1), atol=1e-12)


def test_rollouts_of_what_has_no_randomness_are_the_truth_and_change_nothing(context):
    before = context.worlds.snapshot()
    expected = Rollouts(context, horizon=8, samples=2)(frame_of(context))
    assert context.worlds.snapshot() == before
    truth = context.worlds.peek([controller.act for controller in context.controllers], horizon=8)
    np.testing.assert_allclose(expected[..., 0], truth[0].T, atol=1e-12)
    np.testing.assert_allclose(expected[..., 1], truth[1].T, atol=1e-12)
    assert np.abs(expected[:, 0] - expected[:, 1]).max() > 1e-3  # the controllers do differ


def test_rollouts_draw_the_future_afresh_and_alike_for_every_controller(context):
    oracle = Rollouts(context, horizon=1, samples=2)
    oracle(frame_of(context))
    keys = oracle.futures.batch.worlds.key.reshape(2, 2, 3, -1)  # (arms, samples, worlds, words)
    np.testing.assert_array_equal(keys[0], keys[1])
    world_keys = context.worlds.batch.worlds.key
    for sample in range(2):
        for world in range(3):
            assert not np.array_equal(keys[0, sample, world], world_keys[world])
    assert not np.array_equal(keys[0, 0], keys[0, 1])
    first = keys.copy()
    oracle(frame_of(context))
    assert not np.array_equal(first, oracle.futures.batch.worlds.key.reshape(first.shape))


def test_rollouts_average_over_the_draws_of_stochastic_controllers():
    zoo = [load("PointGoal1/ppo"), load("PointGoal1/ppo-lagrangian")]
    worlds = open_worlds("PointGoal1", 1)
    worlds.reset(seed=0)
    context = RolloutContext(zoo, worlds, seed=4)
    frame = StepInput.at_start(worlds.observations, np.stack([c.act(worlds.observations) for c in zoo]))
    few, many = Rollouts(context, horizon=4, samples=1), Rollouts(context, horizon=4, samples=8)
    spread = [np.std([oracle(frame)[0, 0, 0] for _ in range(8)]) for oracle in (few, many)]
    worlds.close()
    assert 0 < spread[1] < spread[0]


def test_rollouts_stop_where_the_episode_ends(context):
    controllers = context.controllers
    worlds = open_worlds("PointGoal1", 2, steps=30)
    sums = run_episodes(
        worlds,
        controllers,
        make=lambda s: LeastLoss(Rollouts(s, horizon=25, samples=1), every=10, cost_weight=0.1),
        seed=0,
    )
    worlds.close()
    assert (sums.lengths == 30).all()


def test_the_look_ahead_oracle_earns_more_than_it_foresees_to_lose():
    """Where only reward counts, looking ahead must not fall behind the worse controller."""
    controllers = [open_controller(name, world="PointGoal1") for name in ("pure-pursuit", "stop")]
    returns = {}
    for name, values in {
        "ceiling": {"horizon": 60, "every": 20, "cost_weight": 0.0, "samples": 1},
        "safe": {},
    }.items():
        worlds = open_worlds("PointGoal1", 2, steps=60)
        made = METHODS[name]
        returns[name] = run_episodes(
            worlds, controllers, make=lambda s, made=made, values=values: made.make(s, values, {}), seed=0
        ).returns
        worlds.close()
    assert (returns["ceiling"] > returns["safe"] + 0.1).all()


def test_context_networks_foresee_what_they_predict():
    zoo = [load("PointGoal1/ppo"), load("PointGoal1/ppo-lagrangian")]
    worlds = open_worlds("PointGoal1", 2)
    observations, _ = worlds.reset(seed=0)
    proposals = np.stack([c.act(observations) for c in zoo])
    expected = PredictedAhead(RolloutContext(zoo, worlds, seed=0), horizon=50)(
        StepInput.at_start(observations, proposals)
    )
    worlds.close()
    reward, cost = zoo[1].predict(observations, proposals[1], horizon=50)
    np.testing.assert_array_equal(expected[:, 1], np.stack([reward, cost], axis=1))


def test_simplex_hands_over_above_its_threshold():
    zoo = [load("PointGoal1/ppo"), load("PointGoal1/ppo-lagrangian")]
    worlds = open_worlds("PointGoal1", 4)
    observations, _ = worlds.reset(seed=0)
    context = RolloutContext(zoo, worlds, seed=0)
    expected = zoo[0].cost_value(observations)
    middle = float(np.median(expected))
    arms = Simplex(context, threshold=middle).choose(StepInput.at_start(observations, np.zeros((2, 4, 2))))
    worlds.close()
    np.testing.assert_array_equal(arms, expected > middle)
    assert set(arms) == {0, 1}


def test_methods_say_what_they_miss(context):
    with pytest.raises(InputError, match="cost critic"):
        Simplex(context, threshold=1.0)
    with pytest.raises(InputError, match="context networks"):
        PredictedAhead(context, horizon=50)
    with pytest.raises(InputError, match="context networks"):
        METHODS["horizon"].make(context, METHODS["horizon"].settings[0], {})
