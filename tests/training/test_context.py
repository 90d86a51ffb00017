"""Context networks predict reward and cost of an action; windows count only where one controller drove."""

from contextlib import closing
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from blendctl import pareto
from blendctl.controllers import Encoding, NetworkController, identity_encoding, load, write_controller
from blendctl.controllers.dense import Dense
from blendctl.errors import InputError
from blendctl.switches.base import open_worlds
from blendctl.training.context_config import ContextConfig
from blendctl.training.context_data import Drives, collect, sums_ahead
from blendctl.training.context_evaluation import (
    difference_accuracy,
    longer_r_squared,
    next_step_r_squared,
    predictions,
)
from blendctl.training.context_fit import context_dataset, fit_next_step
from blendctl.training.context_limit import observation_limit
from blendctl.training.context_longer import fit_longer
from blendctl.training.encodings import WorldEncodings

SMALL = ContextConfig(horizons=(1, 3), steps=20_000, worlds=16, hidden=(64,), passes=30, minibatch=500, threads=1)


class Line(VectorEnv):
    """One-dimensional worlds: the state moves by the action; above 1 costs 1; the reward is the move."""

    num_envs = 16
    metadata: ClassVar = {"autoreset_mode": AutoresetMode.DISABLED}
    single_observation_space = single_action_space = Box(-np.inf, np.inf, (1,))

    def reset(self, *, seed=None, options=None):
        if options is None:
            self.rng = np.random.default_rng(seed[0])
            self.time = 0
        self.x = self.rng.uniform(-2, 2, size=(self.num_envs, 1))
        return self.x.copy(), {}

    def _try(self, actions):
        """Return where actions (..., worlds, 1) lead, with reward and cost."""
        move = 0.5 * actions
        x = np.clip(self.x + move, -2, 2)
        return x, self.reward(move)[..., 0], (x[..., 0] > 1.0).astype(float)

    def reward(self, move):
        return move

    def peek(self, actions, *, components):
        assert components
        _, reward, cost = self._try(actions)
        return reward, cost, {}

    def step(self, actions):
        self.x, reward, cost = self._try(actions)
        self.time += 1
        over = np.full(self.num_envs, self.time % 50 == 0)
        return self.x.copy(), reward, np.zeros(self.num_envs, bool), over, {"cost": cost}


class Faint(Line):
    """The reward is mostly where the robot is; actions change it by less than a thousandth of its spread."""

    def reward(self, move):
        return np.sin(3 * self.x) + 1e-3 * np.cos(self.x) * move


def driver(name, bias):
    def constant(n, value):
        return Dense((np.zeros((n, 1), np.float32),), (np.full(1, value, np.float32),))

    return NetworkController(
        name,
        identity_encoding(1),
        constant(1, bias),
        np.full(1, -1.0, np.float32),
        critic=constant(1, 0),
        cost_critic=constant(1, 0),
    )


def encodings():
    encoding = Encoding(1, (1.0,))
    return WorldEncodings(encoding, encoding, (1.0,), 1.0)


@pytest.fixture(scope="module")
def drives():
    turns = [driver("left", -0.5), driver("right", 0.5)]
    return [collect(Line(), turns, steps=1250, seed=s, longest=3, counterfactual=True) for s in (0, 1)]


def test_turns_are_taken_by_all_and_last_differently(drives):
    who = drives[0].driver[:, -1]
    lengths = np.diff(np.flatnonzero(np.diff(who)))
    assert set(who) == {0, 1}
    assert lengths.min() < 3
    assert lengths.max() > 6


def test_the_networks_explain_held_out_drives(drives, tmp_path):
    learned, held_out = drives
    data = [context_dataset(d, encodings=encodings(), config=SMALL) for d in (learned, held_out)]
    context = fit_next_step(data[0], encodings=encodings(), config=SMALL)
    longer = fit_longer(data[0], driver=1, encodings=encodings(), config=SMALL)
    r2 = [*next_step_r_squared(context, data[1]), *longer_r_squared(longer, data[1], driver=1)]
    # The reward is the action itself; the cost an edge, blurred only by the network; sums depend on later noise.
    assert r2[0] > 0.98
    assert r2[1] > 0.8
    assert r2[3] > 0.75
    controller = NetworkController(
        **({k: v for k, v in vars(driver("right", 0.5)).items() if k not in ("std", "context", "longer")}),
        context=context,
        longer=longer,
    )
    write_controller(controller, tmp_path / "c.safetensors")
    back = load(tmp_path / "c.safetensors")
    reward, cost = back.predict(np.array([0.8]), np.array([0.9]))
    assert reward == pytest.approx(0.45, abs=0.05)
    assert cost > 0.6
    batch = back.predict(np.array([[0.8], [-1.5]]), np.array([[0.9], [0.9]]), horizon=3)
    one = back.predict(np.array([0.8]), np.array([0.9]), horizon=3)
    assert [batch[0][0], batch[1][0]] == pytest.approx(one, abs=1e-4)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10_000), st.integers(2, 6))
def test_a_window_counts_where_one_driver_drove_within_one_episode(seed, horizon):
    rng = np.random.default_rng(seed)
    steps, worlds = 20, 2
    values = rng.normal(size=(steps, worlds)).astype(np.float32)
    who = rng.integers(2, size=(steps, worlds)).astype(np.int16)
    ended = rng.random((steps, worlds)) < 0.1
    known = {"proposals": values[..., None, None], "truth": np.zeros((steps, worlds, 1, 2), np.float32)}
    data = Drives(values[..., None], values[..., None], values, values, driver=who, ended=ended, **known)
    sums, _, counts = sums_ahead(data, horizon, discount=0.9)
    for t in range(steps):
        for w in range(worlds):
            window = slice(t, t + horizon)
            one = len(set(who[window, w])) == 1
            whole = t + horizon <= steps and one and not ended[window, w][:-1].any()
            assert counts[t, w] == whole
            if whole:
                assert sums[t, w] == pytest.approx(sum(0.9**k * v for k, v in enumerate(values[window, w])), abs=1e-4)


def test_networks_of_a_set_tell_the_controllers_apart():
    drivers = [driver("left", -0.5), driver("right", 0.5)]
    config = replace(SMALL, horizons=(1,), hidden=(64, 64))
    learned, held_out = (
        context_dataset(
            collect(Faint(), drivers, steps=1250, seed=s, longest=3, counterfactual=True),
            encodings=encodings(),
            config=config,
        )
        for s in (0, 1)
    )
    context = fit_next_step(learned, encodings=encodings(), config=config)
    level = next_step_r_squared(context, held_out)
    measured = difference_accuracy(context, held_out)
    assert level[0] > 0.9
    assert measured.r2_reward > 0.95
    assert measured.choices.correct > 0.95 > 0.8 > measured.choices.correct_random
    assert measured.choices.loss_share < 0.3
    assert set(measured.card_entry()["r2_difference"]) == {"reward", "cost"}
    # Where both actions stay on one side of the edge, their costs are equal to the bit.
    states = held_out.encoded.numpy()[:, 0]
    costs = np.stack([predictions(context, held_out, arm)[:, 1] for arm in (0, 1)])
    assert (costs[:, states < 0.3] == 0.0).all()
    assert (costs >= 0.0).all()
    assert (costs <= 1.0).all()


def test_counterfactual_drives_hold_the_feedback_of_every_controller():
    drivers = [driver("left", -0.5), driver("right", 0.5)]
    drives = collect(Line(), drivers, steps=40, seed=0, longest=3, counterfactual=True)
    np.testing.assert_allclose(drives.truth[..., 0], 0.5 * drives.proposals[..., 0], rtol=1e-6)
    who = drives.driver[..., None, None].astype(int)
    np.testing.assert_array_equal(np.take_along_axis(drives.proposals, who, axis=2)[..., 0, :], drives.actions)
    # A third of the worlds are driven by the best choice of the step before.
    loss = pareto.maximal_loss(drives.truth * (1.0, -1.0))
    assert (drives.driver[1:, :5] == loss[:-1, :5].argmin(axis=2)).all()
    assert not (drives.driver[1:, 5:] == loss[:-1, 5:].argmin(axis=2)).all()


@pytest.mark.parametrize(("world", "least"), [("PointGoal1", 0.97), ("PointPush1", 0.6)])
def test_what_the_observation_allows(world, least):
    names = {"PointGoal1": ("ppo", "ppo-lagrangian"), "PointPush1": ("trpo", "cpo")}[world]
    drivers = [load(f"{world}/{name}") for name in names]
    with closing(open_worlds(world, 20)) as worlds:
        drives = collect(worlds, drivers, steps=100, seed=0, longest=50, counterfactual=True)
    limit = observation_limit(drives, world=world, seed=0)
    assert limit is not None
    assert limit.correct > max(least, limit.correct_random)
    assert limit.loss_share < 0.6
    if world == "PointPush1":  # the observation does not show how the box is turned
        assert limit.correct < 0.99


def test_worlds_of_other_robots_are_not_rebuilt(monkeypatch):
    monkeypatch.setattr("blendctl.training.context_limit.MAPPED_ROBOTS", ())
    drives = collect(Line(), [driver("left", -0.5), driver("right", 0.5)], steps=4, seed=0, longest=3)
    assert observation_limit(drives, world="PointGoal1", seed=0) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizons": (10,)}, "begin with 1"),
        ({"horizons": (1, 20, 10)}, "rising"),
        ({"steps": 100}, "too few"),
    ],
)
def test_impossible_settings_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        ContextConfig(**options)
