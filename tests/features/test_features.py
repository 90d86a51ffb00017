"""Features: predictions, critics, a model learned while driving, and their combinations."""

from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from typing import Any

import gymnasium
import numpy as np
import pytest

from blendctl.blender import Blender, run
from blendctl.controllers import ContextNetwork, NetworkController, identity_encoding, load
from blendctl.controllers.dense import Dense
from blendctl.envs import SingleWorld
from blendctl.errors import FileFormatError, InputError
from blendctl.features import (
    Critics,
    Custom,
    OneHot,
    OnlineLinear,
    Predictions,
    Scaled,
    Stack,
    UnitLength,
    as_feature,
    bind_feature,
)


def dense(*sizes, seed=0):
    rng = np.random.default_rng(seed)
    pairs = list(pairwise(sizes))
    weights = tuple((rng.normal(size=s) / np.sqrt(s[0])).astype(np.float32) for s in pairs)
    return Dense(weights, tuple(rng.normal(size=m).astype(np.float32) for _, m in pairs))


def network(name, seed, *, context=True):
    views = ContextNetwork(
        dense(6 + 2, 9, 4, seed=seed + 4), identity_encoding(6), action_gains=(1.0,), horizons=(1, 10), discount=0.9,
        scale=np.full(4, 0.1, np.float32), shift=np.zeros(4, np.float32),
    )  # fmt: skip
    return NetworkController(
        name, identity_encoding(6), dense(6, 8, 2, seed=seed), np.zeros(2, np.float32),
        critic=dense(6, 8, 1, seed=seed + 1), cost_critic=dense(6, 8, 1, seed=seed + 2),
        context=views if context else None,
    )  # fmt: skip


PAIR = [network("a", 0), network("b", 10)]
OBSERVATION, ACTION = np.linspace(-1, 1, 6), np.array([0.3, -0.2])


def test_predictions_are_the_papers_reward_and_negated_cost():
    psi = Predictions().bind(PAIR, objectives=2)
    for arm, controller in enumerate(PAIR):
        reward, cost = controller.predict(OBSERVATION, ACTION)
        assert psi(OBSERVATION, ACTION, arm) == (reward, -cost)


def test_longer_horizons_are_averages_per_step():
    psi = Predictions(horizons=(1, 10)).bind(PAIR, objectives=2)
    assert psi.size == 4
    reward, cost = PAIR[1].predict(OBSERVATION, ACTION, horizon=10)
    assert psi(OBSERVATION, ACTION, 1)[2:] == pytest.approx([reward / 10, -cost / 10])


def test_critics_have_unit_length_or_a_scale():
    unit = Critics().bind(PAIR, objectives=2)(OBSERVATION, ACTION, 0)
    assert np.linalg.norm(unit) == pytest.approx(1.0)
    value, cost = PAIR[0].value(OBSERVATION), PAIR[0].cost_value(OBSERVATION)
    assert unit == pytest.approx(np.array([value, -cost]) / np.hypot(value, cost))
    plain = Critics(unit=False, scale=5.0).bind(PAIR, objectives=2)(OBSERVATION, ACTION, 0)
    assert plain == pytest.approx([value / 5, -cost / 5])


@pytest.mark.parametrize("feature", [Predictions(), Predictions(horizons=(10,)), Critics(), OneHot(), OnlineLinear()])
def test_a_batch_equals_its_rows(feature):
    rows, actions = (
        np.random.default_rng(0).normal(size=(5, 6)),
        np.random.default_rng(1).uniform(-1, 1, (5, 2)),
    )
    bound = feature.bind(PAIR, objectives=2)
    for arm in range(2):
        together = bound.rows(rows, actions, arm)
        assert together.shape == (5, bound.size)
        for row, action, psi in zip(rows, actions, together, strict=True):
            assert np.asarray(bound(row, action, arm)) == pytest.approx(psi, abs=1e-5)


def test_stacks_scales_and_units_keep_the_length():
    short = Custom(lambda o, a, arm: [3.0, 4.0], size=2)
    assert UnitLength(short).bind([], objectives=2)(0, 0, 0) == pytest.approx([0.6, 0.8])
    assert UnitLength(Custom(lambda o, a, arm: [0.0], size=1)).bind([], objectives=2)(0, 0, 0).tolist() == [0.0]
    assert Scaled(short, by=[3.0, 2.0]).bind([], objectives=2)(0, 0, 0).tolist() == [1.0, 2.0]
    stack = Stack(UnitLength(short), OneHot(), UnitLength(short)).bind(PAIR, objectives=2)
    assert stack.size == 6
    assert np.linalg.norm(stack(0, 0, 1)) == pytest.approx(1.0)


def test_a_stack_of_wrong_sizes_does_not_cancel_out():
    stack = Stack(Custom(lambda o, a, arm: [1.0], size=2), Custom(lambda o, a, arm: [1.0] * 3, size=2))
    with pytest.raises(InputError, match="size 2 returned an array of shape"):
        stack.bind([], objectives=2)(0, 0, 0)


def test_the_online_model_learns_the_feedback_of_an_action():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(2, 3, 2))  # objectives, observation, action
    model: Any = OnlineLinear(regularization=0.01, normalize=False).bind([], objectives=2)
    for _ in range(400):
        o, a = rng.uniform(-1, 1, 3), rng.uniform(-1, 1, 2)
        model(o, a, 0)
        model.learn(o, a, np.einsum("koa,o,a->k", truth, o, a))
    o, a = rng.uniform(-1, 1, 3), rng.uniform(-1, 1, 2)
    assert model(o, a, 1) == pytest.approx(np.einsum("koa,o,a->k", truth, o, a), abs=1e-3)
    assert np.array_equal(model.spread, model.spread.T)


def test_the_online_model_is_least_squares():
    rng = np.random.default_rng(1)
    model: Any = OnlineLinear(regularization=2.0, normalize=False).bind([], objectives=1)
    rows, targets = [], []
    for _ in range(50):
        o, a, y = rng.uniform(-1, 1, 2), rng.uniform(-1, 1, 1), rng.normal(size=1)
        model(o, a, 0)
        model.learn(o, a, y)
        rows.append([1, *o, a[0], *(a[0] * o)])
        targets.append(y)
    x, y = np.array(rows), np.array(targets)
    exact = np.linalg.solve(x.T @ x + 2.0 * np.eye(6), x.T @ y)[:, 0]
    assert model.weights[0] == pytest.approx(exact, abs=1e-9)


def test_the_normalised_online_model_learns_in_any_units_and_is_never_long():
    rng = np.random.default_rng(0)
    units, truth = np.array([1e3, 1e-3, 1.0]), rng.normal(size=(2, 4, 3))  # objectives, [1, o], [1, a]
    model: Any = OnlineLinear(regularization=1e-3).bind([], objectives=2)

    def draw():
        o, a = rng.normal(size=3), rng.uniform(-1, 1, 2)
        y = 50.0 * np.einsum("koa,o,a->k", truth, np.append(1.0, o), np.append(1.0, a))
        return units * (o + 7.0), a, y

    errors, lengths = [], []
    for number in range(800):
        o, a, y = draw()
        psi = model(o, a, 0)
        lengths.append(np.linalg.norm(psi))
        if number >= 600:
            errors.append(np.abs(psi * model.unit - y) / 50.0)
        model.learn(o, a, y)
    assert max(lengths) <= 1.0
    assert np.mean(errors) < 0.05
    assert np.array_equal(model.spread, model.spread.T)


def test_other_units_of_observations_do_not_change_the_model():
    """Where nothing is clipped, expressing the model in new units keeps its predictions."""
    rng = np.random.default_rng(2)
    model: Any = OnlineLinear(clip=1e9).bind([], objectives=1)
    for _ in range(31):
        o, a = rng.normal(3.0, 2.0, 2), rng.normal(size=1)
        model(o, a, 0)
        model.learn(o, a, rng.normal(size=1))
    before = [model(o, a, 0) * model.unit for o, a in zip(np.eye(2), np.ones((2, 1)), strict=True)]
    model._renormalize()
    after = [model(o, a, 0) * model.unit for o, a in zip(np.eye(2), np.ones((2, 1)), strict=True)]
    assert np.allclose(before, after)


def test_discrete_actions_are_one_hot_where_the_environment_is_known():
    """Feedback that is no linear function of the action's number: 1, 0, 1."""
    env = gymnasium.make("Acrobot-v1")
    model: Any = Stack(OnlineLinear()).bind([], objectives=1)
    model.attach(env)
    rng, online = np.random.default_rng(0), model.parts[0]
    for _ in range(300):
        o, a = rng.normal(size=2), np.array(rng.integers(3))
        model(o, a, 0)
        model.learn(o, a, np.array([float(a != 1)]))
    values = [float(online(np.zeros(2), np.array(a), 0)[0] * online.unit[0]) for a in range(3)]
    assert values == pytest.approx([1.0, 0.0, 1.0], abs=0.1)
    with pytest.raises(InputError, match="one of 3 discrete actions"):
        online(np.zeros(2), np.array(3), 0)
    again: Any = OnlineLinear().bind([], objectives=1)
    again.restore(online.state())
    assert np.array_equal(again(np.zeros(2), np.array(2), 0), online(np.zeros(2), np.array(2), 0))
    for name, damage in (("inputs", np.zeros((3, 2))), ("unit", np.zeros(5)), ("numbers", np.full(3, np.nan))):
        with pytest.raises(FileFormatError):
            again.restore(online.state() | {name: damage})


def test_the_online_model_distinguishes_black_boxes_by_their_actions():
    """Where the reward is the action's product with the observation, the online model finds the better one."""
    rng = np.random.default_rng(0)
    blender = Blender(
        [lambda o: [1.0], lambda o: [-1.0]], ["plus", "minus"], objectives=["reward"], features=OnlineLinear(), seed=0,
        theta_bound=1.0,
    )  # fmt: skip
    right = []
    for _ in range(1500):
        o = rng.choice([-0.9, 0.9], size=1)
        action = blender.act(o)
        right.append(np.sign(o[0]) == np.sign(action[0]))
        blender.observe(reward=0.8 * o[0] * action[0] + 0.05 * rng.normal())
    assert np.mean(right[-500:]) > 0.9


def test_names_and_defaults():
    assert as_feature(None, PAIR) == Predictions()
    assert isinstance(as_feature(None, [network("c", 3, context=False)]), Stack)
    stack: Any = as_feature(["one-hot", Critics()], PAIR)
    assert stack.parts == (OneHot(), Critics())


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ("one_hot", 'did you mean "one-hot"'),
        (3, "features must be a name"),
        ([], "one or more features"),
    ],
)
def test_a_wrong_declaration_is_refused(declared, words):
    with pytest.raises(InputError, match=words):
        as_feature(declared, PAIR)


def test_features_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="not trained for the horizons"):
        Predictions(horizons=(7,)).bind(PAIR, objectives=2)
    with pytest.raises(InputError, match="train-context"):
        Predictions().bind([network("c", 3, context=False)], objectives=2)
    with pytest.raises(InputError, match="no critics"):
        Critics().bind([object()], objectives=2)
    with pytest.raises(InputError, match="by must be"):
        Scaled(OneHot(), by=[1.0, 0.0]).bind(PAIR, objectives=2)
    with pytest.raises(InputError, match=r"a model of .* terms"):
        OnlineLinear().bind([], objectives=2)(np.zeros(5000), np.zeros(2), 0)
    with pytest.raises(InputError, match="discount"):
        OnlineLinear(discount=0.0)
    with pytest.raises(InputError, match="size must be"):
        Custom(lambda o, a, arm: [1.0], size=0)
    with pytest.raises(InputError, match="must be a function"):
        Custom(3, size=1)
    model: Any = OnlineLinear().bind([], objectives=2)
    model(np.zeros(3), np.zeros(2), 0)
    with pytest.raises(InputError, match="has changed since the online model began"):
        model(np.zeros(4), np.zeros(2), 0)


def test_a_bound_feature_must_declare_its_abilities():
    class Old:
        size = 1

        def bind(self, controllers, *, objectives):
            return self

        def __call__(self, observation, action, arm):
            return [0.1]

    with pytest.raises(InputError, match="bind must return a BoundFeature, actually: Old; make it a subclass"):
        bind_feature(Old(), PAIR, objectives=["reward", "-cost"])


def test_a_feature_that_does_not_learn_has_no_state():
    bound = bind_feature(["one-hot", "predictions"], PAIR, objectives=["reward", "-cost"])
    assert not bound.learns
    assert bound.state() == {}
    assert bind_feature(["one-hot", "online"], PAIR, objectives=["reward", "-cost"]).learns


def test_predictions_that_were_trained_together_are_trusted_from_the_start():
    pair = [load("PointPush1/trpo"), load("PointPush1/cpo")]
    trusting = Blender(pair, features="predictions", seed=0)
    np.testing.assert_array_equal(trusting.bandit.theta, np.eye(2))
    assert trusting.bandit.options.theta_bound == 0.1
    strangers = [replace(controller, card={}) for controller in pair]
    for blender in (
        Blender(strangers, features="predictions", seed=0),
        Blender(pair, features="predictions", objectives=["-cost", "reward"], seed=0),
        Blender(pair, features="predictions", scales=[0.1, 1.0], seed=0),
    ):
        np.testing.assert_array_equal(blender.bandit.theta, np.zeros((2, 2)))
        assert blender.bandit.options.theta_bound == 1.5
    with closing(SingleWorld("PointPush1", max_episode_steps=300)) as world:
        records = list(run(world, trusting, seed=3, counterfactual=True))
    assert np.mean([record.correct for record in records]) > 0.65  # by optimism alone: about half


def test_a_wrong_reading_does_not_become_the_unit_of_the_online_model():
    rng = np.random.default_rng(0)
    model: Any = OnlineLinear().bind([], objectives=2)
    for step in range(64):
        o = rng.normal(size=3)
        if step == 40:
            o[1] = 1e300
        assert np.isfinite(model(o, [0.5], 0)).all()
        model.learn(o, [0.5], np.array([o[0], -1.0]))
    assert model.inputs[1].max() < 3.0
    assert np.isfinite(model.spread).all()


def test_a_feature_that_does_not_look_ahead_has_neither_networks_nor_a_dial():
    bound = OneHot().bind([load(name) for name in ("PointGoal1/ppo", "PointGoal1/trpo")], objectives=2)
    assert (bound.network, bound.dial, bound.lookahead) == (None, None, None)
