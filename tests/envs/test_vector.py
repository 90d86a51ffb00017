"""Many worlds in lock-step are independent, and follow Gymnasium's conventions."""

import copy
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from blendctl.envs import NAMES, SingleWorld, VectorWorld, find_task, world_id
from blendctl.envs.kernels import run_steps
from blendctl.errors import InputError, StateError


def driven(worlds, actions):
    """Rewards, costs and the last observations."""
    rewards, costs = [], []
    for action in actions:
        obs, reward, _, _, infos = worlds.step(action)
        rewards.append(reward)
        costs.append(infos["cost"])
    return np.array(rewards), np.array(costs), obs


def actions_for(steps, n, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (steps, n, 2))


@pytest.mark.parametrize("name", NAMES)
def test_a_world_does_not_know_how_many_run_beside_it_nor_on_how_many_threads(name):
    actions = actions_for(25, 6)
    many = VectorWorld(name, 6, threads=2)
    many.reset(seed=40)
    rewards, costs, obs = driven(many, actions)
    alone = VectorWorld(name, 1, threads=1)
    alone.reset(seed=44)
    reward, cost, last = driven(alone, actions[:, 4:5])
    assert np.array_equal(rewards[:, 4:5], reward)
    assert np.array_equal(costs[:, 4:5], cost)
    assert np.array_equal(obs[4:5], last)


def test_the_same_seed_repeats_an_episode_and_another_seed_does_not():
    worlds = VectorWorld("CarGoal2", 3, threads=1)
    first = worlds.reset(seed=5)[0]
    driven(worlds, actions_for(5, 3))
    assert np.array_equal(worlds.reset(seed=5)[0], first)
    assert not np.array_equal(worlds.reset(seed=50)[0], first)


def test_seeds_can_be_listed_and_none_continues_the_stream():
    worlds = VectorWorld("PointGoal1", 3)
    counted = worlds.reset(seed=7)[0]
    assert np.array_equal(worlds.reset(seed=[7, 8, 9])[0], counted)
    continued = worlds.reset()[0]
    assert not np.array_equal(continued, counted)
    worlds.reset(seed=[7, 8, 9])
    assert np.array_equal(worlds.reset(seed=[None, None, None])[0], continued)


def test_worlds_that_were_never_seeded_differ():
    observations = VectorWorld("PointGoal1", 3).reset()[0]
    assert len(np.unique(observations, axis=0)) == 3


def test_make_vec_returns_our_vector_form_with_its_options():
    worlds = gymnasium.make_vec("blendctl/CarButton1-v0", num_envs=3, threads=2, autoreset_mode="SameStep")
    assert isinstance(worlds, VectorEnv)
    assert isinstance(worlds.unwrapped, VectorWorld)
    assert worlds.unwrapped.threads == 2
    assert worlds.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    obs, _ = worlds.reset(seed=0)
    assert obs.shape == (3, 88)
    assert obs in worlds.observation_space
    worlds.close()


def test_infos_name_the_cost_and_every_component():
    worlds = VectorWorld("PointGoal2", 4)
    worlds.reset(seed=0)
    *_, infos = worlds.step(np.zeros((4, 2)))
    for key in ("cost", "cost_hazards", "cost_vases_contact", "cost_vases_velocity"):
        assert infos[key].shape == (4,)
        assert infos[key].dtype == np.float64
        assert infos[f"_{key}"].all()
    assert infos["goal_met"].dtype == np.bool_


def test_a_goal_pays_one_and_is_replaced_far_enough_away():
    worlds = VectorWorld("PointGoal0", 2)
    worlds.reset(seed=3)
    state, goal = worlds.batch.worlds, worlds.batch.compiled_task.goal
    old = state.xy[:, goal].copy()
    state.xy[0, goal] = state.position[0, :2] + 0.01  # under the robot
    state.last[0, 0] = np.hypot(0.01, 0.01)
    _, reward, _, _, infos = worlds.step(np.zeros((2, 2)))
    assert infos["goal_met"].tolist() == [True, False]
    assert reward[0] == pytest.approx(1.0, abs=1e-3)
    assert np.linalg.norm(state.xy[0, goal] - state.position[0, :2]) >= 0.705
    assert np.array_equal(state.xy[1, goal], old[1])


def test_entering_a_hazard_costs():
    worlds = VectorWorld("CarGoal1", 2)
    worlds.reset(seed=3)
    state = worlds.batch.worlds
    state.xy[1, 2] = state.position[1, :2]  # item 0 is the robot, 1 the goal, 2 the first hazard
    *_, infos = worlds.step(np.zeros((2, 2)))
    assert infos["cost_hazards"].tolist() == [0.0, 1.0]
    assert infos["cost"].tolist() == [0.0, 1.0]


def test_next_step_autoreset_ignores_the_action_after_the_end():
    worlds = VectorWorld("PointGoal1", 2, max_episode_steps=3)
    worlds.reset(seed=1)
    ends = [worlds.step(np.ones((2, 2)))[3].tolist() for _ in range(3)]
    assert ends == [[False] * 2, [False] * 2, [True] * 2]
    obs, reward, terminated, truncated, infos = worlds.step(np.ones((2, 2)))
    assert reward.tolist() == infos["cost"].tolist() == [0.0, 0.0]
    assert not (terminated | truncated).any()
    assert np.array_equal(obs[0, 3:6], np.zeros(3))  # at rest


def said(infos):
    """What infos say of each world, by the masks: {(key, row): value}."""
    observed = {}
    for key, values in infos.items():
        if key == "final_info":
            observed |= {(key, *inner): value for inner, value in said(values).items()}
        elif key[0] != "_":
            observed |= {(key, row): np.asarray(values[row]).tolist() for row in np.flatnonzero(infos[f"_{key}"])}
    return observed


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_it_behaves_as_gymnasiums_own_vector_of_single_worlds(mode):
    ours = VectorWorld("CarButton1", 3, max_episode_steps=7, autoreset_mode=mode, threads=2)
    theirs: Any = SyncVectorEnv([lambda: SingleWorld("CarButton1", max_episode_steps=7)] * 3, autoreset_mode=mode)
    assert np.array_equal(ours.reset(seed=5)[0], theirs.reset(seed=5)[0])
    ours.batch.worlds.steps[1] = theirs.envs[1].batch.worlds.steps[0] = 4  # ends earlier than the others
    for action in actions_for(20, 3):
        mine, other = ours.step(action), theirs.step(action)
        for a, b in zip(mine[:4], other[:4], strict=True):
            assert a.dtype == b.dtype
            assert np.array_equal(a, b)
        assert said(mine[4]) == said(other[4])


def test_actions_of_any_memory_layout_run_the_same_compiled_code():
    worlds = VectorWorld("PointGoal1", 3)
    worlds.reset(seed=0)
    worlds.step(np.zeros((3, 2)))
    dispatcher: Any = run_steps
    made = len(dispatcher.signatures)
    read_only = np.broadcast_to(np.ones(2), (3, 2))
    for actions in (read_only, np.ones((3, 4))[:, ::2], np.ones((2, 3)).T, np.ones((3, 2), np.float32)):
        worlds.step(actions)
        worlds.reset(seed=0, options={"reset_mask": np.broadcast_to(np.True_, 3)})
    assert len(dispatcher.signatures) == made


def test_a_copy_is_a_vector_of_its_own():
    worlds = VectorWorld("CarButton1", 3, threads=2)
    worlds.reset(seed=0)
    driven(worlds, actions_for(5, 3))
    other = copy.deepcopy(worlds)
    driven(other, actions_for(5, 3, seed=1))
    again = copy.deepcopy(worlds)
    for a, b in zip(driven(worlds, actions_for(5, 3, seed=2)), driven(again, actions_for(5, 3, seed=2)), strict=True):
        assert np.array_equal(a, b)


def test_closed_worlds_still_step_on_the_callers_thread():
    worlds, open_ones = VectorWorld("PointGoal1", 3, threads=2), VectorWorld("PointGoal1", 3, threads=2)
    for each in (worlds, open_ones):
        each.reset(seed=0)
    worlds.close()
    worlds.close()
    assert np.array_equal(worlds.step(np.ones((3, 2)))[0], open_ones.step(np.ones((3, 2)))[0])


def test_same_step_autoreset_hands_over_the_final_observation():
    same = VectorWorld("PointGoal1", 2, max_episode_steps=2, autoreset_mode=AutoresetMode.SAME_STEP)
    later = VectorWorld("PointGoal1", 2, max_episode_steps=2)
    actions = np.ones((2, 2))
    for worlds in (same, later):
        worlds.reset(seed=1)
        worlds.step(actions)
    obs, reward, _, truncated, infos = same.step(actions)
    last, last_reward, _, _, _ = later.step(actions)
    first = later.step(actions)[0]
    assert truncated.all()
    assert np.array_equal(np.stack(infos["final_obs"]), last)
    assert infos["_final_obs"].all()
    assert np.array_equal(infos["final_info"]["cost"], infos["cost"])
    assert np.array_equal(reward, last_reward)
    assert np.array_equal(obs, first)


def test_without_autoreset_an_ended_world_must_be_reset_by_mask():
    worlds = VectorWorld("PointGoal1", 2, max_episode_steps=1, autoreset_mode="Disabled")
    worlds.reset(seed=1)
    worlds.step(np.ones((2, 2)))
    with pytest.raises(StateError, match="world 0 is over"):
        worlds.step(np.ones((2, 2)))
    before = worlds.observations
    obs, _ = worlds.reset(options={"reset_mask": np.array([True, False])})
    assert np.array_equal(obs[1], before[1])
    assert not np.array_equal(obs[0], before[0])
    with pytest.raises(StateError, match="world 1 is over"):
        worlds.step(np.ones((2, 2)))


def test_actions_outside_the_box_are_clipped():
    near, far = VectorWorld("CarGoal1", 1), VectorWorld("CarGoal1", 1)
    near.reset(seed=2)
    far.reset(seed=2)
    assert np.array_equal(near.step(np.array([[1.0, -1.0]]))[0], far.step(np.array([[9.0, -7.0]]))[0])


@pytest.mark.parametrize(
    "actions",
    [
        np.zeros(2),
        np.zeros((2, 2)),
        np.zeros((3, 3)),
        np.full((3, 2), np.nan),
        [[0, 0], [0, np.inf], [0, 0]],
        "go",
    ],
)
def test_bad_actions_are_refused_and_change_nothing(actions):
    worlds = VectorWorld("PointGoal1", 3)
    worlds.reset(seed=0)
    before = worlds.snapshot()
    with pytest.raises(InputError, match="expected"):
        worlds.step(actions)
    assert worlds.snapshot() == before


@pytest.mark.parametrize("call", [lambda w: w.step(np.zeros((2, 2))), lambda w: w.snapshot(), lambda w: w.scene(0)])
def test_calls_before_the_first_reset_say_so(call):
    with pytest.raises(StateError, match="reset"):
        call(VectorWorld("PointGoal1", 2))


@pytest.mark.parametrize(
    "options",
    [
        {"num_envs": 0},
        {"num_envs": 2.5},
        {"threads": 0},
        {"threads": "two"},
        {"autoreset_mode": "Sometimes"},
        {"max_episode_steps": 0},
        {"task": "PointGole1"},
        {"task": 1},
        {"render_mode": "topdown", "view": 3},
    ],
)
def test_impossible_options_are_refused(options):
    with pytest.raises(InputError):
        VectorWorld(**({"task": "PointGoal1", "num_envs": 2} | options))


@pytest.mark.parametrize("seed", [-1, 2**32, 2**32 - 1, 1.5, [1], [1, 2.5], True])
def test_seeds_outside_the_generators_range_are_refused(seed):
    with pytest.raises(InputError, match="seed"):
        VectorWorld("PointGoal1", 2).reset(seed=seed)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e11])
def test_an_unstable_world_ends_its_episode_and_spares_its_neighbours(bad):
    calm, sick = VectorWorld("CarPush1", 3), VectorWorld("CarPush1", 3)
    calm.reset(seed=6)
    sick.reset(seed=6)
    sick.batch.worlds.qvel[1, 0] = bad
    actions = np.full((3, 2), 0.3)
    expected, expected_reward, *_ = calm.step(actions)
    obs, reward, terminated, truncated, infos = sick.step(actions)
    assert truncated.tolist() == infos["unstable"].tolist() == [False, True, False]
    assert not terminated.any()
    assert reward[1] == -10.0
    assert infos["cost"][1] == 0.0
    assert np.isfinite(obs).all()
    assert np.array_equal(obs[[0, 2]], expected[[0, 2]])
    assert np.array_equal(reward[[0, 2]], expected_reward[[0, 2]])
    obs, reward, *_ = sick.step(actions)  # the next step begins a new episode there
    assert reward[1] == 0.0
    assert np.isfinite(obs).all()


def test_every_world_is_registered():
    for name in NAMES:
        assert gymnasium.spec(world_id(name)).kwargs == {"task": name}
        assert find_task(name).max_episode_steps == 1000  # the world counts them itself
