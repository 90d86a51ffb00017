"""Context networks predict reward and cost of an action; windows count only where one controller drove."""

from contextlib import closing
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from blendctl import pareto
from blendctl.controllers import ContextNetwork, Encoding, NetworkController, identity_encoding, load, write_controller
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
from blendctl.training.context_fit import FACTORS, NextStepNetwork, context_dataset, fit_next_step
from blendctl.training.context_limit import observation_limit
from blendctl.training.context_longer import fit_longer
from blendctl.training.encodings import WorldEncodings

SMALL = ContextConfig(
    horizons=(1, 3), steps=20_000, worlds=16, hidden=(64,), hidden_longer=(64,), passes=30, minibatch=500, threads=1
)


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


def driver(name, bias, *, size=1):
    def constant(value):
        return Dense((np.zeros((size, 1), np.float32),), (np.full(1, value, np.float32),))

    return NetworkController(
        name,
        identity_encoding(size),
        constant(bias),
        np.full(1, -1.0, np.float32),
        critic=constant(0),
        cost_critic=constant(0),
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
    config = replace(SMALL, horizons=(1,), hidden=(320, 320))
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
    assert set(measured.card_entry()["r2_difference"]) == {"reward", "cost", "reward_with_events"}
    # Where both actions stay on one side of the edge, their costs are equal to the bit.
    states = held_out.encoded.numpy()[:, 0]
    costs = np.stack([predictions(context, held_out, arm)[:, 1] for arm in (0, 1)])
    assert (costs[:, states < 0.3] == 0.0).all()
    assert (costs >= 0.0).all()
    assert (costs <= 1.0).all()


def test_a_network_predicts_the_same_with_and_without_torch():
    encoded, actions = 7, 4
    made = torch.Generator().manual_seed(0)
    network = NextStepNetwork(encoded, actions, readings=3, hidden=(40, 24), generator=made)
    for name, parameter in network.named_parameters():
        if name.endswith("bias"):  # they begin as 0
            torch.nn.init.normal_(parameter, generator=made)
    seen, tried = torch.randn(30, encoded, generator=made), torch.rand(30, 2, actions, generator=made)
    level, apart, logit = network(seen, tried).detach().numpy().transpose(2, 0, 1)  # (arms, n) each
    context = ContextNetwork(
        network.to_dense(ratio=0.25),
        identity_encoding(encoded),
        (1.0,),
        (1,),
        0.9,
        scale=np.ones(2, np.float32),
        shift=np.zeros(2, np.float32),
        factors=FACTORS,
    )
    for arm in (0, 1):
        inputs = torch.cat([seen, tried[:, arm]], dim=1).numpy()
        reward, cost = context.rescale(context.network.batch(inputs)).T
        np.testing.assert_allclose(reward, level[arm] + 0.25 * apart[arm], atol=1e-5)
        np.testing.assert_allclose(cost, np.tanh(logit[arm] / 2), atol=1e-5)


class Turned(Line):
    """The reward is the move along a direction that turns with the second entry of the observation."""

    single_observation_space = Box(-np.inf, np.inf, (2,))

    def reset(self, *, seed=None, options=None):
        x, info = super().reset(seed=seed, options=options)
        self.angle = self.rng.uniform(-np.pi, np.pi, size=(self.num_envs, 1))
        return np.concatenate([x, self.angle], axis=1), info

    def reward(self, move):
        return np.sin(2 * self.angle) + 1e-3 * np.cos(self.angle) * move

    def step(self, actions):
        x, *rest = super().step(actions)
        self.angle = self.rng.uniform(-np.pi, np.pi, size=(self.num_envs, 1))
        return np.concatenate([x, self.angle], axis=1), *rest


def test_an_effect_is_worth_what_the_observation_says():
    encoding = Encoding(2, (1.0, 1.0))
    turned = WorldEncodings(encoding, encoding, (1.0,), 1.0)
    drivers = [driver("left", -0.5, size=2), driver("right", 0.5, size=2)]
    config = replace(SMALL, horizons=(1,), hidden=(160, 160))
    learned, held_out = (
        context_dataset(
            collect(Turned(), drivers, steps=1250, seed=s, longest=3, counterfactual=True),
            encodings=turned,
            config=config,
        )
        for s in (0, 1)
    )
    measured = difference_accuracy(fit_next_step(learned, encodings=turned, config=config), held_out)
    assert measured.r2_reward > 0.97
    assert measured.choices.correct > 0.93


def test_a_world_without_costs_has_predicted_costs_of_zero():
    drivers = [driver("left", -0.5), driver("right", 0.5)]
    drives = collect(Line(), drivers, steps=200, seed=0, longest=3, counterfactual=True)
    free = replace(drives, costs=0.0 * drives.costs, truth=drives.truth * np.float32([1.0, 0.0]))
    config = replace(SMALL, horizons=(1,), passes=1)
    data = context_dataset(free, encodings=encodings(), config=config)
    context = fit_next_step(data, encodings=encodings(), config=config)
    assert (predictions(context, data, 0)[:, 1] == 0.0).all()


def test_counterfactual_drives_hold_the_feedback_of_every_controller():
    drivers = [driver("left", -0.5), driver("right", 0.5)]
    drives = collect(Line(), drivers, steps=40, seed=0, longest=3, counterfactual=True)
    np.testing.assert_allclose(drives.truth[..., 0], 0.5 * drives.proposals[..., 0], rtol=1e-6)
    who = drives.driver[..., None, None].astype(int)
    np.testing.assert_array_equal(np.take_along_axis(drives.proposals, who, axis=2)[..., 0, :], drives.actions)
    # Half of the worlds are driven by the best choice of the step before.
    loss = pareto.maximal_loss(drives.truth * (1.0, -1.0))
    assert (drives.driver[1:, :8] == loss[:-1, :8].argmin(axis=2)).all()
    assert not (drives.driver[1:, 8:] == loss[:-1, 8:].argmin(axis=2)).all()


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
