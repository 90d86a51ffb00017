"""Simulated look-ahead: futures equal what would happen, decide, stay within their time, and refuse what is inexact."""

import copy
import time
from typing import Any

import gymnasium
import numpy as np
import pytest
from corridor import Corridor, drivers
from gymnasium.vector import AutoresetMode

from blendctl import Blender, run
from blendctl.controllers import as_controller, load
from blendctl.controllers.zoo import find_lookahead
from blendctl.envs import SingleWorld, VectorWorld
from blendctl.errors import BlendctlError, InputError
from blendctl.features import DialPoint, SimulatedLookAhead, Twin
from blendctl.features.sampling import SampleTable

PAIR = ("PointGoal1/ppo", "PointGoal1/ppo-lagrangian")
SURE = {"stochastic": False, "samples": 1}


@pytest.fixture(scope="module")
def pair():
    return [load(name) for name in PAIR]


@pytest.fixture
def world():
    world = SingleWorld("PointGoal1")
    world.reset(seed=3)
    return world


def bound(simulator, controllers, **settings):
    return SimulatedLookAhead(simulator, **settings).bind(controllers, objectives=2)


def estimate(feature, world):
    return feature.simulate(np.atleast_2d(world.observation))


def drive(world, controllers, arms, discount):
    """Return the discounted return and cost of a drive in which controller arms[t] acts in step t."""
    sums = np.zeros(2)
    observation = world.observation
    for step, arm in enumerate(arms):
        observation, reward, _, _, info = world.step(controllers[arm].act(observation))
        sums += discount**step * np.array([reward, info["cost"]])
    return sums


def test_futures_are_what_happens_and_leave_the_world_alone(pair, world):
    feature = bound(world, pair, horizon=12, following="same", network=False, discount=0.9, **SURE)
    before = world.snapshot()
    found = estimate(feature, world)
    assert world.snapshot() == before
    for arm in (0, 1):
        world.restore(before)
        happened = drive(world, pair, [arm] * 12, 0.9)
        assert found.returns[0, arm] == pytest.approx(happened[0], abs=1e-12)
        assert found.costs[0, arm] == pytest.approx(happened[1], abs=1e-12)


def test_the_best_continuation_is_the_best_of_all_drives_after_the_first_option(pair, world):
    settings = {"horizon": 15, "hold": 5, "network": False, "discount": 0.95} | SURE
    feature = bound(world, pair, following="best", **settings)
    found, before = estimate(feature, world), world.snapshot()
    weight = float(feature.weight[0])
    for first in (0, 1):
        scores = []
        for then in (0, 1):
            world.restore(before)
            returned, cost = drive(world, pair, [first] * 5 + [then] * 10, 0.95)
            scores.append(returned - weight * cost)
        assert found.returns[0, first] - weight * found.costs[0, first] == pytest.approx(max(scores), abs=1e-12)


def test_a_future_ends_with_the_networks_value_of_where_it_got_to(pair, world):
    network = find_lookahead(pair, memory=False)
    settings = {"horizon": 10, "following": "same"} | SURE
    feature = bound(world, pair, **settings)
    bare = estimate(bound(world, pair, network=False, **settings), world)
    found = estimate(feature, world)
    before = world.snapshot()
    for arm in (0, 1):
        world.restore(before)
        drive(world, pair, [arm] * 10, 1.0)
        ahead = network.foresee(world.observation[None], feature.weight)
        value = ahead.returns[0, ahead.best[0]]
        assert found.returns[0, arm] - bare.returns[0, arm] == pytest.approx(0.99**10 * value, rel=1e-6)


def test_the_learned_look_ahead_may_drive_after_the_first_option(pair, world):
    found = estimate(bound(world, pair, horizon=10, following="learned", **SURE), world)
    network, before = find_lookahead(pair, memory=False), world.snapshot()
    weight = 0.02**0.5  # of prefer=0.5
    for first in (0, 1):
        world.restore(before)
        head = drive(world, pair, [first] * 5, 0.99)
        then = int(network.choose(world.observation, weight)[0])
        tail = drive(world, pair, [then] * 5, 0.99)
        ahead = network.foresee(world.observation[None], weight)
        expected = head[0] + 0.99**5 * tail[0] + 0.99**10 * ahead.returns[0, ahead.best[0]]
        assert found.returns[0, first] == pytest.approx(expected, rel=1e-6)


def test_equal_controllers_have_equal_futures_by_common_random_numbers(pair, world):
    feature = bound(world, [pair[0], pair[0]], horizon=20, samples=3, network=False)
    found = estimate(feature, world)
    assert found.returns[0, 0] == found.returns[0, 1]
    assert (found.return_errors == 0).all()
    other = estimate(feature, world)
    assert other.returns[0, 0] != found.returns[0, 0]  # the next decision draws anew


class Wrapped:
    """A network that is asked step by step."""

    name = "wrapped"

    def __init__(self, network):
        self.act = network.act


@pytest.mark.parametrize("following", ["same", "best", "learned"])
def test_compiled_futures_equal_those_step_by_step(pair, world, following):
    settings = {"horizon": 13, "samples": 3, "following": following, "network": find_lookahead(pair, memory=False)}
    fast = bound(world, pair, threads=2, **settings)
    slow = bound(world, pair, threads=1, **settings)
    slow._drivers.controllers = [Wrapped(one) for one in pair]
    one, other = (estimate(feature, world) for feature in (fast, slow))
    assert fast.simulated_steps == slow.simulated_steps
    assert one.returns == pytest.approx(other.returns, abs=2e-3)  # networks are rounded differently
    assert one.costs == pytest.approx(other.costs, abs=0.05)


def test_many_worlds_are_simulated_as_single_ones(pair):
    worlds = VectorWorld("PointGoal1", 3, threads=1, autoreset_mode=AutoresetMode.DISABLED)
    observations, _ = worlds.reset(seed=5)
    found = bound(worlds, pair, horizon=8, **SURE).simulate(observations)
    for row in range(3):
        single = SingleWorld("PointGoal1")
        single.reset(seed=5 + row)
        alone = estimate(bound(single, pair, horizon=8, **SURE), single)
        assert found.returns[row] == pytest.approx(alone.returns[0], rel=1e-5)
    worlds.close()


def test_a_copied_environment_decides_as_its_weight_says():
    for weight, arms in ((0.01, {0}), (0.9, {0, 1})):
        blender = Blender(
            drivers(), ["fast", "slow"], seed=0, frozen=True,
            features=SimulatedLookAhead(horizon=5, samples=1, weight_range=(weight, 2 * weight), prefer=1.0),
        )  # fmt: skip
        records = list(run(Corridor(), blender, seed=1))
        assert {record.arm for record in records} == arms
        if len(arms) == 2:  # in danger, and only there, the cost is worth more than the reward
            assert all((record.arm == 1) == (record.reward / record.steps < 0.4) for record in records)


def test_a_blend_learns_once_per_stage_and_never_from_standard_errors(pair, world):
    blender = Blender(pair, features=SimulatedLookAhead(world, horizon=8, samples=3), seed=0)
    observation = world.observation
    for step in range(31):
        observation, reward, _, _, info = world.step(blender.act(observation))
        blender.observe(reward, info["cost"], done=step == 30)
    assert blender.hold == 5
    assert blender.bandit.stage == 6
    assert (blender.last.features[:, 4:] > 0).any()
    assert (blender.bandit.theta[:, 4:] == 0).all()
    before = np.linalg.norm(blender.last.features[:, :4], axis=1)
    assert (before < 1).all()


def test_a_decision_shares_its_futures_with_the_feedback_before_it(pair, world):
    feature = bound(world, pair, horizon=6, samples=1)
    rows = world.observation[None]
    feature.begin_stage(np.zeros(1), np.zeros(1, np.int64))
    feature.target(np.zeros((1, 2)), rows, steps=5)
    steps = feature.simulated_steps
    feature.begin_stage(np.zeros(1), np.full(1, 5))
    feature(rows, None, 0), feature(rows, None, 1)
    assert feature.simulated_steps == steps
    feature.begin_stage(np.zeros(1), np.full(1, 10))
    feature(rows, None, 0)
    assert feature.simulated_steps > steps  # a later decision simulates again, even at the same observation


def test_when_time_is_up_the_networks_decide_or_the_fallback_and_events_say_so(pair, world):
    settings = {"horizon": 60, "samples": 3, "budget_ms": 1e-6}
    blender = Blender(pair, ["fast", "safe"], features=SimulatedLookAhead(world, **settings), fallback="safe", seed=0)
    blender.act(world.observation)
    assert "not ready after 1e-06 ms; the networks decide" in blender.last.event
    assert blender.last.cause == "rule"
    alone = SimulatedLookAhead(world, network=False, **settings)
    blender = Blender(pair, ["fast", "safe"], features=alone, fallback="safe", seed=0)
    blender.act(world.observation)
    assert (blender.last.name, blender.last.cause) == ("safe", "no context")
    assert "the simulation was not ready after 1e-06 ms" in blender.last.event


def test_past_its_time_a_future_ends_where_it_is(pair, world, monkeypatch):
    feature = bound(world, pair, horizon=50, samples=6, budget_ms=100.0)
    ticks = iter(range(1000))
    monkeypatch.setattr(time, "perf_counter", lambda: next(ticks) * 0.03)  # 30 ms per call, and a call per option
    assert estimate(feature, world) is not None
    assert feature.take_events() == ["simulated 15 of 50 control steps in 100 ms"]
    assert feature.events == []


class Counting:
    """Accelerate more with every observation."""

    name = "counting"

    def __init__(self):
        self.seen = 0

    def reset(self):
        self.seen = 0

    def act(self, observation, rng=None):
        self.seen += 1
        return np.array([min(0.1 * self.seen, 1.0)])


def test_controllers_with_memory_are_copied_with_it():
    env, counting = Corridor(), Counting()
    observation, _ = env.reset(seed=0)
    counting.seen = 3
    feature = bound(env, [as_controller(lambda o: [0.0]), counting], horizon=3, discount=1.0, following="same", **SURE)
    found = feature.simulate(observation[None])
    factor = 0.5 if observation[0] > 0 else 1.0
    assert found.returns[0] == pytest.approx([0.0, factor * (0.4 + 0.5 + 0.6)])
    assert counting.seen == 3


def test_controllers_with_memory_need_a_copy_and_one_world(pair):
    class Stuck(Counting):
        def __deepcopy__(self, memo):
            raise TypeError("holds a socket")

    with pytest.raises(InputError, match=r"counting has memory and cannot be copied with it .*holds a socket"):
        bound(None, [Stuck(), Counting()])
    with pytest.raises(InputError, match="has memory; simulated look-ahead in many worlds"):
        bound(None, [Counting(), pair[1]]).simulate(np.zeros((2, 60)))


class Forgetful(Corridor):
    """Loses a tick of its clock when it is copied."""

    def __deepcopy__(self, memo):
        made = Forgetful()
        made.reset(seed=0)
        made.np_random, made.danger = copy.deepcopy(self.np_random), self.danger
        made.clock = self.clock - 1
        return made


class Sharing(Corridor):
    """Is its own copy."""

    def __deepcopy__(self, memo):
        return self


def test_an_inexact_copy_is_refused_with_where_it_parts():
    forgetful = Forgetful()
    forgetful.reset(seed=0)
    with pytest.raises(InputError, match=r"not exact: in step \d+ of the same actions the \w+ is .*, expected"):
        Blender(drivers(), features=SimulatedLookAhead(forgetful))
    with pytest.raises(InputError, match="not exact: it is the same object"):
        Blender(drivers(), features=SimulatedLookAhead(Sharing()))


def set_pendulum(env, observation):
    env.unwrapped.state = np.array([np.arctan2(observation[1], observation[0]), observation[2]])


def push(observation):
    return [2.0 * np.sign(observation[2])]


def rest(observation):
    return [0.0]


def test_a_second_environment_is_set_to_the_present_state():
    pendulum, second = gymnasium.make("Pendulum-v1"), gymnasium.make("Pendulum-v1")
    controllers = [as_controller(push), as_controller(rest)]
    settings = {"horizon": 10, "following": "same", "discount": 1.0} | SURE
    observation, _ = pendulum.reset(seed=2)
    copied = bound(pendulum, controllers, **settings).simulate(observation[None])
    found = bound(second, controllers, set_state=set_pendulum, **settings).simulate(observation[None])
    assert found.returns == pytest.approx(copied.returns, rel=1e-4)
    with pytest.raises(InputError, match="set_state does not restore the state of an observation: in step 1"):
        bound(second, controllers, set_state=lambda env, observation: None)


def test_a_model_decides():
    def model(observation, controllers, horizon, rng):
        return rng.normal([1.0, 0.0], 0.01), [0.0, 0.0]

    blender = Blender(drivers(), ["fast", "slow"], features=SimulatedLookAhead(model), seed=0)
    records = list(run(Corridor(), blender, seed=0))
    assert {record.arm for record in records} == {0}
    assert blender.bandit.stage == 9


def test_a_cost_function_of_the_user_counts_in_the_futures():
    def cost(observation, action, info):
        return float(action[0])

    env = Corridor()
    observation, _ = env.reset(seed=0)
    feature = bound(env, drivers(), horizon=4, following="same", discount=1.0, cost=cost, **SURE)
    assert feature.simulate(observation[None]).costs[0] == pytest.approx([4.0, 0.4])


def test_another_environment_than_the_driven_one_is_refused(world, pair):
    blender = Blender(pair, features=SimulatedLookAhead(world), seed=0)
    with pytest.raises(InputError, match="another environment than the one that is driven"):
        next(run(SingleWorld("PointGoal1"), blender, seed=0))


def test_without_a_simulator_the_first_decision_says_how_to_pass_one(world, pair):
    with pytest.raises(InputError, match=r"drive with blendctl.run, or pass the environment or a model"):
        Blender(pair, features="simulated").act(world.observation)


def test_a_twin_foresees_what_the_true_world_does(pair, world):
    settings = {"horizon": 15, "following": "same", "network": False} | SURE
    truth = estimate(bound(world, pair, **settings), world)
    twin = estimate(bound(Twin("PointGoal1"), pair, **settings), world)
    assert twin.returns == pytest.approx(truth.returns, abs=0.02)
    with pytest.raises(InputError, match="must be of the world that is driven"):
        estimate(bound(Twin("CarButton1"), pair, **settings), world)


def test_a_twin_that_remembers_rebuilds_more_of_the_true_scene(pair):
    worlds = VectorWorld("PointGoal1", 3, threads=1, autoreset_mode=AutoresetMode.DISABLED)
    observations, _ = worlds.reset(seed=5)
    simulators = [Twin("PointGoal1", memory=memory).open(threads=1) for memory in (True, False)]
    right = np.zeros(2)
    for step in range(0, 100, 5):
        for number, simulator in enumerate(simulators):
            branches: Any = simulator.open(observations, np.arange(3), np.zeros(3, np.int64), np.full(3, step))
            truth, found = (w.xy[:, 2:10] - w.position[:, None, :2] for w in (worlds.batch.worlds, branches.worlds))
            apart = np.linalg.norm(truth[:, :, None] - found[:, None], axis=3).min(axis=2)
            right[number] += (apart < 0.05).mean() / 20
        for _ in range(5):
            observations, *_ = worlds.step(np.stack([pair[0].act(row) for row in observations]))
    worlds.close()
    assert right[0] > right[1] + 0.1


def test_a_twin_draws_what_is_hidden_once_for_all_controllers(pair, world):
    found = estimate(bound(Twin("PointGoal1"), [pair[0], pair[0]], horizon=15, samples=3, network=False), world)
    assert found.returns[0, 0] == found.returns[0, 1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"horizon": 0}, "horizon must be a whole number >= 1"),
        ({"samples": 1.5}, "samples must be a whole number"),
        ({"hold": True}, "hold must be"),
        ({"following": "greedy"}, "one of same, best, learned"),
        ({"budget_ms": 0}, "budget_ms must be above 0"),
        ({"discount": 0.0}, "discount must be above 0"),
        ({"set_state": set_pendulum}, "set_state needs a second environment"),
        ({"simulator": 3}, "copies a Gymnasium environment"),
        ({"simulator": lambda *what: 1.0, "network": "none.safetensors"}, "none.safetensors"),
        ({"simulator": lambda *what: 1.0, "cost_budget": 25.0}, "cost of two settings of the dial"),
        ({"simulator": lambda *what: 1.0, "following": "learned"}, "needs look-ahead networks"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(BlendctlError, match=message):
        Blender(drivers(), features=SimulatedLookAhead(**settings))


def test_a_budget_without_networks_needs_measured_points():
    points = [DialPoint(0.1, 10.0, 50.0), DialPoint(1.0, 5.0, 10.0)]
    feature = bound(lambda *what: 1.0, drivers(), cost_budget=30.0, dial=points, weight_range=(0.1, 1.0))
    assert feature.weight == pytest.approx([0.716], abs=0.001)


def test_a_model_that_returns_something_else_is_refused():
    for result in (1.0, ([1.0], [0.0]), ([np.nan, 0.0], [0.0, 0.0])):
        feature = bound(lambda *what, result=result: result, drivers())
        with pytest.raises(InputError, match="2 finite numbers each, one per controller"):
            feature.simulate(np.zeros((1, 2)))


def test_many_worlds_have_no_clock(pair):
    feature = bound(None, pair, budget_ms=50.0)
    with pytest.raises(InputError, match="budget_ms is for one robot"):
        feature.simulate(np.zeros((2, 60)))


def test_sampling_ends_when_a_paired_test_is_clear():
    rng = np.random.default_rng(0)
    table, weight = SampleTable(3), np.zeros(3)
    common = rng.normal(size=(3, 1, 1, 4)) * 10.0
    returns = common + np.array([1.0, 0.0])[None, :, None, None] + 0.1 * rng.normal(size=(3, 2, 1, 4))
    returns[1] = rng.normal(size=(2, 1, 4))
    returns[1] -= returns[1].mean(axis=2, keepdims=True)  # no difference at all
    returns[2, 1] = returns[2, 0]  # equal in every future
    table.add(np.arange(3), returns, np.zeros_like(returns))
    assert table.unclear(weight).tolist() == [1]
    more = rng.normal(size=(1, 2, 1, 2))
    table.add(np.array([1]), more, np.zeros_like(more))
    found = table.estimate(weight)
    both = np.concatenate([returns[1, :, 0], more[0, :, 0]], axis=1)  # (controllers, 6)
    assert found.returns[1] == pytest.approx(both.mean(axis=1))
    difference = both - both.mean(axis=0)
    assert found.return_errors[1] == pytest.approx(difference.std(axis=1, ddof=1) / np.sqrt(6))
    assert found.returns[0] == pytest.approx(returns[0, :, 0].mean(axis=1))
