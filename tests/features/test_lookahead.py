"""The look-ahead context decides as its networks do, calibrates by bootstrapped feedback, and follows the dial."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from path_networks import network_of_world

from blendctl import Blender, BlenderBatch, run
from blendctl.bandit.rules import Fixed
from blendctl.controllers import load, open_controller, write_lookahead
from blendctl.controllers.controller_file import write_controller
from blendctl.controllers.zoo import LOOKAHEAD_SETS, find_lookahead
from blendctl.envs import SingleWorld
from blendctl.errors import InputError
from blendctl.features import LookAhead, Scaled, SimulatedLookAhead, UnitLength
from blendctl.features.lookahead import values_rule
from blendctl.pareto import maximal_loss
from blendctl.switches import open_worlds

PAIR = ("PointGoal1/ppo", "PointGoal1/ppo-lagrangian")


@pytest.fixture(scope="module")
def pair():
    return [load(name) for name in PAIR]


@pytest.fixture(scope="module")
def observations():
    world = SingleWorld("PointGoal1")
    rows = [world.reset(seed=seed)[0] for seed in range(40)]
    world.close()
    return np.array(rows)


def bound(pair, **settings):
    return LookAhead(**settings).bind(pair, objectives=2)


def test_the_prior_chooses_what_the_networks_prefer(pair, observations):
    feature, network = bound(pair, prefer=0.5), find_lookahead(pair)
    actions = np.zeros((len(observations), 2))
    estimates = np.stack([feature.rows(observations, actions, arm) @ feature.prior for arm in (0, 1)], axis=1)
    assert (estimates.sum(axis=2).argmax(axis=1) == network.choose(observations, feature.weight[0])).all()


def test_the_estimates_of_the_prior_are_return_and_weighted_cost_in_one_unit(pair, observations):
    feature, network = bound(pair, prefer=0.3), find_lookahead(pair)
    weight = float(feature.weight[0])
    foresight = network.foresee(observations, weight)
    for arm in (0, 1):
        estimate = feature.rows(observations, np.zeros((len(observations), 2)), arm) @ feature.prior
        ratio = estimate[:, 0] / foresight.returns[:, arm]
        assert ratio == pytest.approx(np.full(len(ratio), ratio[0]))
        assert estimate[:, 1] == pytest.approx(-weight * foresight.costs[:, arm] * ratio[0])


def test_psi_is_shorter_than_one_at_every_setting_and_single_rows_equal_batches(pair, observations):
    for prefer in (0.0, 0.5, 1.0):
        feature = bound(pair, prefer=prefer)
        psi = feature.rows(observations, np.zeros((len(observations), 2)), 0)
        assert np.linalg.norm(psi, axis=1).max() < 1.0
        assert feature(observations[3], None, 0) == pytest.approx(psi[3], abs=1e-6)


def test_the_target_adds_the_discounted_value_of_where_the_stage_ended(pair, observations):
    feature, network = bound(pair, prefer=0.5), find_lookahead(pair)
    weight = float(feature.weight[0])
    after = network.foresee(observations[:2], weight)
    best = after.best
    level = network.level_unit
    unit = 4 * (level[0] + weight * level[1])
    carry = network.discount**network.hold
    target = feature.target(np.array([[0.5, -2.0], [0.0, 0.0]]), observations[:2], steps=5)
    assert target[0, 0] == pytest.approx((0.5 + carry * after.returns[0, best[0]]) / unit)
    assert target[0, 1] == pytest.approx(weight * (-2.0 - carry * after.costs[0, best[0]]) / unit)
    assert feature.target(np.zeros(2), observations[1], steps=5) == pytest.approx(target[1])


def drive(blender, *, steps, seed=0):
    world = SingleWorld("PointGoal1", max_episode_steps=steps)
    observation, _ = world.reset(seed=seed)
    arms = []
    for step in range(steps):
        observation, reward, _, _, info = world.step(blender.act(observation))
        blender.observe(reward, info["cost"], done=step == steps - 1)
        arms.append(blender.last.arm)
    world.close()
    return arms


def test_a_blender_holds_for_the_stages_of_the_networks_and_learns_from_whole_ones(pair):
    blender = Blender(pair, features="lookahead", prefer=0.5, seed=0)
    assert blender.hold == find_lookahead(pair).hold == 5
    arms = drive(blender, steps=52)
    assert all(len(set(arms[start : start + 5])) == 1 for start in range(0, 50, 5))
    # Ten whole stages whose next observation is known; what followed the last, short one is not.
    assert (blender.bandit.stage, blender.counts.learned) == (10, 10)


def test_a_batch_decides_as_single_blenders_do(pair, observations):
    batch = BlenderBatch(pair, len(observations), features="lookahead", prefer=0.6, frozen=True, seed=0)
    batch.act(observations)
    arms = []
    for observation in observations:
        blender = Blender(pair, features="lookahead", prefer=0.6, frozen=True, seed=0)
        blender.act(observation)
        arms.append(blender.last.arm)
    assert batch.arm.tolist() == arms


def scene_of(feature, row):
    """Return what the map of one world shows: the robot, and the objects that are known."""
    memory = feature._memory._memory
    offsets = [memory.offsets(row, kind) for kind in ("goal", "hazards", "vases")]
    return [memory.maps.steps[row], memory.maps.robot[row], memory.maps.heading[row], *offsets]


@pytest.mark.parametrize("frozen", [True, False])
def test_a_batch_remembers_as_single_blenders_do(pair, frozen):
    feature, worlds = LookAhead(network_of_world("PointGoal1", pair, seed=1), prefer=0.5), 3
    settings = {"features": feature, "stochastic": False, "frozen": frozen, "seed": 0}
    batch = BlenderBatch(pair, worlds, **settings)
    singles = [Blender(pair, **settings) for _ in range(worlds)]
    envs = open_worlds("PointGoal1", worlds, steps=80)
    observations, _ = envs.reset(seed=4)
    for step in range(200):
        if step in (80, 160):
            observations, _ = envs.reset(seed=4 + step)
        actions = batch.act(observations)
        for row, blender in enumerate(singles):
            # A whole batch and a single row round differently, which a learner may carry on.
            assert np.abs(blender.act(observations[row]) - actions[row]).max() < 1e-5
            assert blender.last.arm == batch.arm[row]
            if step % blender.hold == 0:
                for mine, other in zip(scene_of(batch.features, row), scene_of(blender.feature, 0), strict=True):
                    assert np.array_equal(mine, other)
        observations, rewards, _, truncated, infos = envs.step(actions)
        batch.observe(rewards, infos, observations=observations, ended=truncated)
        for row, blender in enumerate(singles):
            blender.observe(float(rewards[row]), float(infos["cost"][row]), done=bool(truncated[row]))
    envs.close()
    assert all(blender.episode == 2 and min(blender.counts.driven.values()) > 0 for blender in singles)
    assert all(sum(map(len, scene_of(batch.features, row)[3:])) > 2 for row in range(worlds))


def test_a_batch_in_a_loop_of_its_own_equals_the_rollout(pair):
    def made():
        return BlenderBatch(pair, 2, cost_budget=40.0, learner="pooled", seed=0)

    steps = 3 * find_lookahead(pair).hold
    worlds, driven = open_worlds("PointGoal1", 2, steps=steps), made()
    records = list(run(worlds, driven, episodes=1, seed=3))
    looped = made()
    observations, _ = worlds.reset(seed=3)
    for record in records:
        after, rewards, _, truncated, infos = worlds.step(looped.act(observations))
        with pytest.raises(InputError, match="learns from the state after a step"):
            looped.observe(rewards, infos)
        mine = looped.observe(rewards, infos, observations=after, ended=truncated)
        assert mine.arm.tolist() == record.arm.tolist()
        observations = after
    worlds.close()
    assert driven.bandit.stage > 0
    assert looped.bandit.theta == pytest.approx(driven.bandit.theta)
    weights = []
    for _ in range(1 + find_lookahead(pair).hold):  # other episodes, one of which spends its budget in a step
        looped.act(observations)
        looped.observe(np.zeros(2), {"cost": np.array([40.0, 0.0])}, observations=observations)
        weights.append(looped.features.weight)
    assert weights[0][0] == weights[0][1]
    assert weights[-1][0] > weights[-1][1]


def test_a_budget_is_spent_by_the_episode_and_a_hopeless_one_is_reported(pair, caplog):
    blender = Blender(pair, cost_budget=1.0, seed=0)
    drive(blender, steps=20)
    assert "below what the safest setting costs" in blender.feature.warning
    assert blender.counts.events == 1
    assert blender.status()["warnings"] == [blender.feature.warning]
    assert [record.getMessage() for record in caplog.records] == [blender.feature.warning], "logged once"
    alone = Blender(pair, cost_budget=1.0, rule=Fixed(arm=0), seed=0)
    drive(alone, steps=20)
    assert alone.counts.events == 0, "a controller alone has no dial"


def test_an_episode_is_as_long_as_those_of_the_card_or_as_the_user_says(pair):
    network = find_lookahead(pair)
    shorter = replace(network, card=network.card | {"episode_steps": 200})
    for settings, steps in (({}, 1000), ({"network": shorter}, 200), ({"network": shorter, "episode_steps": 90}, 90)):
        assert bound(pair, cost_budget=40.0, **settings).dial.episode_steps == steps
        assert SimulatedLookAhead(**settings).bind(pair, objectives=2).dial.episode_steps == steps
    with pytest.raises(InputError, match="episode_steps must be a whole number >= 1"):
        bound(pair, episode_steps=0)


@pytest.mark.parametrize("hold", [1, 5, 10])
def test_the_map_and_the_feedback_count_the_steps_of_the_stages(pair, hold):
    blender = Blender(pair, prefer=0.5, hold=hold, seed=0)
    drive(blender, steps=60)
    memory: Any = blender.feature
    assert memory._memory._memory.maps.age[0] == 60 // hold, "the map was never started again"
    rows = np.zeros((1, blender.feature.network.encoding.observation_size))
    blender.feature.begin_stage(np.zeros(1), np.zeros(1, np.int64))
    short, long = (blender.feature.target(np.zeros((1, 2)), rows, steps=steps) for steps in (2, 12))
    assert long == pytest.approx(short * blender.feature.discount**10)


def test_the_same_rate_of_costs_is_the_same_setting_in_a_shorter_episode(pair):
    names = LOOKAHEAD_SETS["PointGoal1"]
    drivers = [open_controller(name, world="PointGoal1") for name in names]
    network = find_lookahead(drivers)
    whole = LookAhead(network, cost_budget=100.0).bind(drivers, objectives=2).dial
    part = LookAhead(network, cost_budget=10.0, episode_steps=100).bind(drivers, objectives=2).dial
    assert part.safest_cost == pytest.approx(0.1 * whole.safest_cost)
    assert part.expected_return(10.0) <= 0.1 * whole.expected_return(100.0)
    few = LookAhead(network, cost_budget=1.5, episode_steps=100).bind(drivers, objectives=2)
    assert "costs alone on average, 2.0" in few.warning, "a tenth of what ppo-lagrangian costs in 1,000 steps"


def test_it_is_the_default_of_controllers_that_have_networks_and_says_so(pair):
    assert "features: lookahead, prefer 0.5;" in repr(Blender(pair))
    assert "features: lookahead, cost budget 25;" in repr(BlenderBatch(pair, 2, cost_budget=25.0))
    assert Blender(pair).hold == find_lookahead(pair).hold
    for other in (
        Blender(pair[::-1]),
        Blender(pair, features="predictions"),
        Blender(pair, objectives=["reward", "-cost_hazards"]),
    ):
        assert "features: predictions;" in repr(other)
        assert other.hold == 1
    assert "features: one-hot + online;" in repr(Blender([lambda o: [0.0], pair[1]]))


def test_networks_beside_the_files_of_the_controllers_are_found_by_their_digests(pair, tmp_path):
    others = [replace(controller, log_std=controller.log_std - 0.1) for controller in pair]
    for index, controller in enumerate(others):
        write_controller(controller, tmp_path / f"{index}.safetensors")
    read = [load(tmp_path / f"{index}.safetensors") for index in (0, 1)]
    assert find_lookahead(read) is None
    network = replace(find_lookahead(pair), digests=tuple(controller.digest for controller in read))
    write_lookahead(network, tmp_path / "lookahead.safetensors")
    assert "features: lookahead" in repr(Blender(read))
    assert find_lookahead(read[::-1]) is None
    with pytest.raises(InputError, match=r"were trained for .* the digests of the controllers' weights differ"):
        Blender(pair, features=LookAhead(tmp_path))


def test_what_belongs_to_the_next_step_is_refused(pair):
    for features in (["one-hot", "lookahead"], Scaled(LookAhead(), 2.0), UnitLength(LookAhead())):
        with pytest.raises(InputError, match="cannot be stacked or scaled"):
            Blender(pair, features=features)
    with pytest.raises(InputError, match='scales need other features, for example features="predictions"'):
        Blender(pair, scales=[0.1, 1.0])
    with pytest.raises(InputError, match="decides from the current state"):
        BlenderBatch(pair, 2, context="previous")


def test_other_controllers_orders_and_objectives_are_refused(pair):
    with pytest.raises(
        InputError, match="another order of controllers; use: PointGoal1/ppo, PointGoal1/ppo-lagrangian"
    ):
        Blender(pair[::-1], features="lookahead")
    with pytest.raises(InputError, match="train-lookahead"):
        Blender([lambda o: [0.0, 0.0], pair[1]], features="lookahead")
    with pytest.raises(InputError, match="another order"):
        Blender(pair[::-1], features=LookAhead(find_lookahead(pair)))
    for objectives in (["reward", "-cost_hazards"], ["-cost", "reward"], ["reward", "-cost", "-cost_hazards"]):
        with pytest.raises(InputError, match="look-ahead needs the objectives reward, -cost, actually"):
            Blender(pair, features="lookahead", objectives=objectives)
    with pytest.raises(InputError, match="a cost budget needs the objectives reward, -cost, actually: reward"):
        Blender(pair, objectives=["reward"], cost_budget=25.0)
    with pytest.raises(InputError, match="a cost budget needs the objectives"):
        Blender(pair, objectives=["reward"], features=LookAhead(cost_budget=25.0))
    shipped = [open_controller(name, world="PointGoal1") for name in LOOKAHEAD_SETS["PointGoal1"]]
    with pytest.raises(InputError, match=r"another order of controllers; use: PointGoal1/ppo, PointGoal1/trpo, dwa"):
        Blender(shipped[::-1], features="lookahead")
    with pytest.raises(InputError, match="name all of them, in this order"):
        Blender(pair, features=LookAhead(find_lookahead(shipped)))
    with pytest.raises(InputError, match='need features="lookahead"'):
        Blender(pair, features="predictions", cost_budget=25.0)


def test_the_rule_of_three_arms_is_the_best_sum():
    assert [values_rule(arms) for arms in (2, 3, 5)] == ["maximal-loss", "greedy", "greedy"]
    mu = np.array([[0.0, 0.0], [1.0, -0.4], [0.7, -0.3]])  # return and weighted cost of three arms
    assert mu.sum(axis=1).argmax() == 1
    assert maximal_loss(mu).argmin() == 2, "the compromise"


def test_networks_of_the_zoo_can_be_chosen_by_name_and_simulation_prefers_those_without_a_map(pair):
    plain = Blender(pair, features=LookAhead("PointGoal1/ppo+ppo-lagrangian.plain", prefer=0.5), seed=0)
    assert plain.feature.network.paths is None
    assert Blender(pair, seed=0).feature.network.paths is not None
    assert find_lookahead(pair, memory=False).paths is None
    assert SimulatedLookAhead(prefer=0.5).bind(pair, objectives=2).network.paths is None
