"""Whole episodes: in any Gymnasium environment, in many worlds at once, with the truth beside the choice."""

import threading
from typing import Any

import gymnasium
import numpy as np
import pyarrow.parquet
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from blendctl import BlendEnv, Blender, BlenderBatch, run
from blendctl.blender import Recorder, correct_choices
from blendctl.blender.counterfactual import correct_choice
from blendctl.blender.episode_stats import EpisodeStats
from blendctl.controllers.classical import PotentialField, PurePursuit
from blendctl.envs import SingleWorld, VectorWorld
from blendctl.errors import InputError, StateError
from blendctl.features import Custom, OneHot

WORLD = "blendctl/PointGoal1-v0"


class Countdown(gymnasium.Env):
    """Ends after a number of steps; the reward is the action, the cost is in the info."""

    observation_space = gymnasium.spaces.Box(-1, 100, (1,), np.float64)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float64)

    def __init__(self, steps=10):
        self.steps, self.seeds = steps, []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.left = self.steps
        return np.array([float(self.left)]), {}

    def step(self, action):
        self.left -= 1
        info = {"cost": float(self.left % 2), "cost_odd": 2.0 * (self.left % 2)}
        return np.array([float(self.left)]), float(action[0]), self.left == 0, False, info


def two(**options):
    return Blender([lambda o: [0.5], lambda o: [0.1]], ["fast", "safe"], features="one-hot", seed=0, **options)


def team():
    return [PurePursuit("PointGoal1"), PotentialField("PointGoal1")]


class Renamed(gymnasium.Wrapper):
    """Reports the cost under another name, or not at all."""

    def __init__(self, env, **names):
        super().__init__(env)
        self.names = names

    def step(self, action):
        *rest, info = self.env.step(action)
        return *rest, {new: info[old] for new, old in self.names.items()}


def test_a_cost_that_is_missing_is_an_error_and_not_zero():
    for env, words in (
        (Renamed(Countdown(), costs="cost"), r'did you mean "costs".*cost=lambda'),
        (Renamed(Countdown()), r"it has no entries.*cost=lambda"),
    ):
        with pytest.raises(InputError, match=words):
            list(run(env, two()))
        with pytest.raises(InputError, match="failed on the feedback"):
            list(run(env, two(objectives=["reward", lambda feedback: -feedback["cost"]])))
        blended = BlendEnv(env, [lambda o: [0.5]], cost_weight=1.0)
        blended.reset()
        with pytest.raises(InputError, match="cost_weight needs"):
            blended.step(0)
        assert len(list(run(env, two(objectives=["reward"])))) == 10
        assert len(list(run(env, two(), cost=lambda observation, action, info: info.get("costs", 0.0)))) == 10
    worlds = VectorWorld("PointGoal1", 2, autoreset_mode=AutoresetMode.DISABLED)
    blender = BlenderBatch(team(), 2, features="one-hot")
    blender.act(worlds.reset(seed=0)[0])
    with pytest.raises(InputError, match='did you mean "costs"'):
        blender.observe(np.zeros(2), {"costs": np.zeros(2)})
    worlds.close()


class Signs(gymnasium.Env):
    """Takes one of three actions and checks it, as Gymnasium's environments do."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float64)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        self.left = 30
        return np.zeros(1), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.left -= 1
        return np.zeros(1), float(action), self.left == 0, False, {"cost": 0.0}


@pytest.mark.parametrize("wrong", [3, -1, 1.5, np.array([0, 1])])
def test_an_action_outside_of_a_discrete_space_is_a_failure_of_its_controller(wrong):
    blender = Blender([lambda o: wrong, lambda o: 1], ["wrong", "right"], action_shape=(), features="one-hot", seed=0)
    records = list(run(Signs(), blender))
    assert {record.name for record in records} == {"right"}
    assert records[0].event.startswith("wrong returned")
    outside = Blender([lambda o: 1], features="one-hot", safe_action=7, seed=0)
    with pytest.raises(InputError, match=r"safe_action must be in Discrete\(3\)"):
        list(run(Signs(), outside))


def test_every_step_of_every_episode_is_a_record():
    env = Countdown()
    records = list(run(env, two(), episodes=3, seed=5))
    assert [r.step for r in records] == list(range(1, 31))
    assert [r.episode for r in records] == [0] * 10 + [1] * 10 + [2] * 10
    assert [r.ended for r in records] == ([False] * 9 + [True]) * 3
    assert env.seeds == [5, 6, 7]
    assert sum(r.cost for r in records) == 15
    assert all(r.reward == r.action[0] for r in records)
    assert all(r.learned for r in records)


def test_held_stages_are_cut_by_the_end_of_an_episode():
    records = list(run(Countdown(10), two(hold=4), episodes=2))
    assert [r.steps for r in records] == [4, 4, 2] * 2
    assert all(r.learned for r in records)


def test_the_cost_may_come_from_a_function_or_from_its_parts():
    records = list(run(Countdown(), two(), cost=lambda o, a, info: 0.25 * o[0]))
    assert sum(r.cost for r in records) == pytest.approx(0.25 * 45)
    parts = list(run(Countdown(), two(objectives=["reward", "-cost_odd"])))
    assert sum(r.feedback[1] for r in parts) == -10


def test_an_environment_without_costs_has_cost_zero_if_no_objective_needs_it():
    blender = Blender([lambda o: 0, lambda o: 1], objectives=["reward"], features="one-hot", seed=0)
    records = list(run("CartPole-v1", blender, episodes=2, seed=0))
    assert sum(r.reward for r in records) == len(records)
    assert {r.cost for r in records} == {0.0}
    assert records[0].action.shape == ()


def test_a_stage_cut_short_by_a_failure_is_still_yielded():
    def moody(observation):
        if observation[0] == 8:
            raise ValueError
        return [0.5]

    blender = Blender(
        [moody, lambda o: [0.1]], ["moody", "safe"], features="one-hot", hold=3, bandit=None, rule="fixed"
    )
    records = list(run(Countdown(9), blender))
    assert [r.steps for r in records] == [1, 3, 3, 2]
    assert sum(r.steps for r in records) == 9
    assert not records[0].learned


def test_counterfactual_feedback_covers_every_arm():
    blender = Blender(team(), ["bold", "wary"], fallback="wary", seed=0)
    stats = EpisodeStats(blender.names)
    for count, record in enumerate(run(WORLD, blender, seed=2, counterfactual=True), start=1):
        assert record.truth[record.arm] == pytest.approx(record.feedback, abs=1e-12)
        assert record.correct == bool(correct_choices(record.truth, record.arm))
        stats.add(record)
        if count == 300:
            break
    assert 0.0 < stats.correct_ratio < 1.0
    assert stats.average_loss <= blender.loss_bound


def test_counterfactuals_of_held_stages_drive_through_them():
    blender = Blender(team(), ["bold", "wary"], hold=5, features="one-hot", seed=0)
    for count, record in enumerate(run(WORLD, blender, seed=2, counterfactual=True), start=1):
        assert record.truth[record.arm] == pytest.approx(record.feedback, abs=1e-12)
        if count == 40:
            break


def test_peeking_does_not_change_the_drive_and_is_right():
    drives = []
    for counterfactual in (False, True):
        blender = Blender(team(), seed=0)
        records: Any = run(WORLD, blender, seed=3, counterfactual=counterfactual)
        drives.append([next(records) for _ in range(100)])
        records.close()
    assert [r.feedback.tolist() for r in drives[0]] == [r.feedback.tolist() for r in drives[1]]
    world = SingleWorld("PointGoal1")
    world.reset(seed=3)
    for record in drives[1]:
        reward, cost = world.peek(np.array(record.proposals))
        assert record.truth == pytest.approx(np.stack([reward, -cost], axis=1), abs=1e-12)
        world.step(record.action)
    world.close()


@pytest.mark.parametrize(
    ("truth", "arm", "right"),
    [
        ([[1.0, 0.0], [0.0, 1.0]], 0, True),  # neither dominates
        ([[1.0, 0.0], [1.0, 0.0]], 1, True),  # equal
        ([[1.0, 0.0], [1.0, -1.0]], 1, False),  # as good in one, worse in the other
        ([[1.0, 0.0], [1.0, -1.0]], 0, True),
        ([[1.0 + 5e-6, 0.0], [1.0, 0.0]], 1, True),  # not clearly better
        ([[1.0 + 2e-5, 0.0], [1.0, 0.0]], 1, False),
        ([[1.1, -1e-9], [1.0, 0.0]], 1, True),  # better in one, a hair worse in the other
        ([[0.0, 0.0], [0.1, 0.1], [0.0, 0.2]], 0, False),
    ],
)
def test_correct_means_that_no_other_arm_is_as_good_and_clearly_better(truth, arm, right):
    assert bool(correct_choices(truth, arm)) is right
    assert correct_choices([truth, truth], [arm, arm]).tolist() == [right, right]
    assert correct_choice(np.array(truth), arm) is right
    assert correct_choice(np.array([*truth, [np.nan, np.nan]]), arm) is right


@pytest.mark.parametrize("learner", ["each", "pooled"])
def test_many_worlds_are_driven_in_lock_step(learner):
    batch = BlenderBatch(team(), 3, names=["bold", "wary"], learner=learner, features="one-hot", seed=0)
    worlds = VectorWorld("PointGoal1", 3, threads=1, autoreset_mode=AutoresetMode.DISABLED, max_episode_steps=40)
    records = list(run(worlds, batch, episodes=2, seed=0, counterfactual=True))
    worlds.close()
    assert len(records) == 80
    assert [r.ended.all() for r in records] == ([False] * 39 + [True]) * 2
    rows = np.arange(3)
    for record in records:
        assert record.truth[rows, record.arm] == pytest.approx(record.feedback, abs=1e-12)
        assert np.array_equal(record.correct, correct_choices(record.truth, record.arm))
        assert record.counted.all()
    stages = np.asarray(batch.bandit.stage)
    assert stages.tolist() == ([80] * 3 if learner == "each" else 240)


def test_each_learner_of_a_batch_is_as_one_blender_alone():
    """A world with deterministic controllers: row i of a batch does what a blender of seed + i does."""
    batch = BlenderBatch(team(), 2, names=["bold", "wary"], features=OneHot(), seed=0)
    worlds = VectorWorld("PointGoal1", 2, threads=1, autoreset_mode=AutoresetMode.DISABLED, max_episode_steps=50)
    together = np.array([record.arm for record in run(worlds, batch, seed=0)])
    worlds.close()
    env = gymnasium.make(WORLD, max_episode_steps=50)
    for row in range(2):
        blender = Blender(team(), ["bold", "wary"], features=OneHot(), seed=row)
        assert [r.arm for r in run(env, blender, seed=row)] == together[:, row].tolist()
    env.close()


def test_a_batch_holds_and_looks_back():
    batch = BlenderBatch(team(), 2, features="one-hot", hold=5, context="previous", seed=0)
    worlds = VectorWorld("PointGoal1", 2, threads=1, autoreset_mode=AutoresetMode.DISABLED, max_episode_steps=23)
    records = list(run(worlds, batch, seed=0))
    worlds.close()
    assert records[0].decisions is None  # a first pull by chance
    arms = np.array([r.arm for r in records])
    for start in range(0, 23, 5):
        assert (arms[start : start + 5] == arms[start]).all()
    assert batch.bandit.stage.tolist() == [5, 5]


@pytest.mark.parametrize("learner", ["each", "pooled"])
def test_the_online_model_of_a_batch_learns_from_every_world(learner):
    batch = BlenderBatch(
        [lambda o: np.full((2, 1), 1.0), lambda o: np.full((2, 1), -1.0)],
        2, features="online", learner=learner, hold=2, seed=0,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    for _ in range(400):
        actions = batch.act(rng.normal(size=(2, 3)))
        batch.observe(0.25 * actions[:, 0], {"cost": 0.1 + 0.1 * actions[:, 0]})
    batch.act(np.zeros((2, 3)))
    # two steps of it, from the observation and action at the stage's first
    assert batch.psi[0] == pytest.approx(np.array([[0.5, -0.4], [-0.5, 0.0]]), abs=0.04)


def test_an_action_that_is_not_finite_is_replaced_in_its_world_alone():
    def torn(observations):
        actions = np.full((3, 2), 0.5)
        actions[1] = np.nan
        return actions

    batch = BlenderBatch(
        [torn, lambda o: np.zeros((3, 2))], 3, names=["torn", "whole"], features="one-hot", rule="fixed"
    )
    actions = batch.act(np.zeros((3, 4)))
    assert batch.arm.tolist() == [0, 1, 0]
    assert actions.tolist() == [[0.5, 0.5], [0.0, 0.0], [0.5, 0.5]]


def test_arguments_that_do_not_fit_together_are_refused():
    with pytest.raises(InputError, match="needs a BlenderBatch"):
        run(VectorWorld("PointGoal1", 2, threads=1), two())
    with pytest.raises(InputError, match="episodes must be"):
        run(Countdown(), two(), episodes=0)
    with pytest.raises(InputError, match="world with `peek`"):
        next(run(Countdown(), two(), counterfactual=True))
    with pytest.raises(InputError, match='no environment "Nowhere-v0"'):
        next(run("Nowhere-v0", two()))
    with pytest.raises(InputError, match="an environment or the name of one"):
        run(5, two())
    with pytest.raises(InputError, match="a Blender or a BlenderBatch"):
        run(Countdown(), team())
    batch = BlenderBatch(team(), 2, features="one-hot")
    with pytest.raises(InputError, match="autoreset_mode"):
        next(run(VectorWorld("PointGoal1", 2, threads=1), batch))
    with pytest.raises(InputError, match="3 worlds, the blender drives 2"):
        next(run(VectorWorld("PointGoal1", 3, threads=1, autoreset_mode="Disabled"), batch))
    with pytest.raises(InputError, match="of 2 worlds"):
        batch.act(np.zeros((3, 60)))
    with pytest.raises(StateError, match="call act"):
        batch.observe(np.zeros(2), {})
    batch.act(np.zeros((2, 60)))
    with pytest.raises(StateError, match="not observed"):
        batch.act(np.zeros((2, 60)))
    with pytest.raises(InputError, match=r"expected reward of 2 worlds, actually: shape \(3,\)"):
        batch.observe(np.zeros(3), {"cost": np.zeros(2)})
    with pytest.raises(InputError, match=r"expected cost of 2 worlds, actually: shape \(2, 1\)"):
        batch.observe(np.zeros(2), {"cost": np.zeros((2, 1))})
    wrong = BlenderBatch(team(), 2, features=Custom(lambda o, a, arm: [1.0], size=2))
    with pytest.raises(InputError, match="context of pure-pursuit must have shape"):
        wrong.act(np.zeros((2, 60)))


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version")
def test_the_blend_as_an_environment():
    env = BlendEnv(WORLD, team(), hold=10, cost_weight=0.5)
    with pytest.raises(StateError, match="call reset"):
        env.step(0)
    check_env(env, skip_render_check=True)
    assert env.action_space == gymnasium.spaces.Discrete(2)
    env.reset(seed=0)
    total, steps, over = 0.0, 0, False
    while not over:
        _, reward, terminated, truncated, info = env.step(steps % 2)
        over, steps, total = terminated or truncated, steps + 1, total + reward
        assert info["cost"] == info["cost_hazards"] <= 10
    assert steps == 100
    for wrong in (2, -1, 0.5, "left", None):
        with pytest.raises(InputError, match=f"0 to 1, actually: {wrong!r}"):
            env.step(wrong)
    env.close()


def test_a_blend_env_is_repeatable():
    runs = []
    for _ in range(2):
        env = BlendEnv(Countdown(5), [lambda o, rng: [rng.uniform()]])
        env.reset(seed=1)
        runs.append([env.step(0)[1] for _ in range(5)])
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 5


def test_a_tally_adds_up_per_episode():
    blender = two()
    stats = EpisodeStats(blender.names)
    for record in run(Countdown(), blender, episodes=3):
        stats.add(record)
    summary = stats.summary()
    assert summary["episodes"] == 3
    assert summary["cost_mean"] == 5.0
    assert sum(summary["arm_share"].values()) == pytest.approx(1.0)
    assert summary["return_mean"] == pytest.approx(sum(stats.returns) / 3)
    assert summary["correct_ratio"] is None


def test_the_truth_of_stages_judged_later_is_that_of_a_peek_at_once(tmp_path):
    class Watched(gymnasium.Wrapper):
        """Peeks at every state before it steps, with the actions of both controllers."""

        def step(self, action):
            proposals = np.array(blender.last.proposals)
            world: Any = self.unwrapped
            peeked.append(np.stack([*world.peek(proposals)], axis=1))
            return super().step(action)

    peeked = []
    blender = Blender(team(), ["fast", "safe"], features="one-hot", seed=0, record=Recorder(tmp_path / "r", group=40))
    with blender:
        env = Watched(SingleWorld("PointGoal1", max_episode_steps=75))
        records = list(run(env, blender, episodes=2, seed=3, counterfactual=True))
    assert [r.step for r in records] == list(range(1, 151))
    truth = np.array([r.truth for r in records])
    np.testing.assert_array_equal(truth, np.array(peeked) * [1.0, -1.0])
    assert [r.correct for r in records] == correct_choices(truth, [r.arm for r in records]).tolist()
    table = pyarrow.parquet.read_table(tmp_path / "r")  # written while later stages were still open
    np.testing.assert_array_equal(table["truth_safe_reward"].to_numpy(), truth[:, 1, 0])
    assert table["correct"].to_pylist() == [r.correct for r in records]


def test_three_controllers_are_judged_though_their_peeks_fall_into_different_lots():
    blender = Blender([*team(), team()[0]], features="one-hot", seed=0)
    records = list(run(SingleWorld("PointGoal1", max_episode_steps=70), blender, seed=3, counterfactual=True))
    assert np.isfinite([r.truth for r in records]).all()
    assert all(r.correct is not None for r in records)


def test_a_drive_that_is_left_early_leaves_settled_records_and_no_thread(tmp_path):
    before = threading.active_count()
    with Blender(team(), features="one-hot", seed=0, record=tmp_path / "r") as blender:
        for record in run(WORLD, blender, seed=3, counterfactual=True):
            if record.step == 40:
                break
    assert threading.active_count() == before
    table = pyarrow.parquet.read_table(tmp_path / "r")
    assert len(table) >= 40
    assert table["correct"].null_count <= 1  # the stage under way may not have been driven


class Priced(gymnasium.Wrapper):
    """Change the feedback of a step, and with `peek` that of counterfactual steps."""

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, 100.0 * reward, terminated, truncated, info | {"cost_time": 1.0}


class Peeking(Priced):
    def peek(self, actions, *, components=False):
        inner: Any = self.env
        reward, cost, parts = inner.peek(actions, components=True)
        return 100.0 * reward, cost, parts | {"cost_time": np.ones(len(reward))}


def test_counterfactual_steps_see_through_wrappers_or_refuse():
    world = SingleWorld("PointGoal1", max_episode_steps=20)

    def blender(**options):
        return Blender(team(), ["fast", "safe"], features="one-hot", seed=0, **options)

    with pytest.raises(InputError, match="a wrapper changes rewards, costs or actions"):
        list(run(Priced(world), blender(), counterfactual=True, seed=1))
    records = list(run(Peeking(world), blender(), counterfactual=True, seed=1))
    plain = list(run(world, blender(rule="fixed"), counterfactual=True, seed=1))
    assert records[0].truth == pytest.approx(plain[0].truth * [100.0, 1.0])
    timed = blender(objectives=["reward", "-cost_time"])
    assert len(list(run(Peeking(world), timed, counterfactual=True, seed=1))) == 20
    with pytest.raises(InputError, match="the objectives need cost_time from counterfactual steps"):
        list(run(Priced(world), blender(objectives=["-cost_time"]), counterfactual=True, seed=1))
    limited = gymnasium.wrappers.TimeLimit(world, 5)
    assert len(list(run(limited, blender(), counterfactual=True, seed=1))) == 5
    with pytest.raises(InputError, match="need a world with `peek`"):
        list(run(Countdown(), two(), counterfactual=True))


class Stateful:
    """Counts the steps of its episode."""

    name = "remembering"

    def __init__(self):
        self.steps, self.longest, self.resets = 0, 0, 0

    def act(self, observation, rng=None):
        self.steps += 1
        self.longest = max(self.longest, self.steps)
        return np.zeros(1)

    def reset(self):
        self.steps = 0
        self.resets += 1


@pytest.mark.parametrize("deadline", [None, 5.0], ids=["plain", "in a thread"])
def test_stateful_controllers_are_reset_when_an_episode_is_over(deadline):
    memory = Stateful()
    with Blender([memory, lambda o: [0.1]], ["a", "b"], features="one-hot", seed=0, deadline=deadline) as blender:
        list(run(Countdown(7), blender, episodes=3))
        assert memory.longest == 7
        blender.act(np.zeros(1))  # a thread has come to it by now
    assert memory.resets == 3


def test_a_reset_that_fails_benches_the_controller():
    class Broken(Stateful):
        def reset(self):
            raise RuntimeError("no way back")

    blender = Blender([Broken(), lambda o: [0.1]], ["broken", "safe"], features="one-hot", seed=0)
    records = list(run(Countdown(3), blender, episodes=2))
    assert "broken failed in reset: RuntimeError: no way back; benched" in records[3].event
    assert records[3].name == "safe"


def test_nan_inside_a_dictionary_is_noticed():
    blender = Blender([lambda o: [0.1], lambda o: [0.2]], ["a", "b"], features="one-hot", safe_action=[0.0], seed=0)
    blender.act({"camera": np.zeros((2, 2)), "speed": 1.0})
    assert blender.last.event is None
    blender.act({"camera": np.full((2, 2), np.nan), "speed": 1.0})
    assert "NaN" in str(blender.last.event)


def test_with_hold_a_wrapper_is_seen_too():
    world = SingleWorld("PointGoal1", max_episode_steps=20)
    blender = Blender(team(), ["fast", "safe"], features="one-hot", seed=0, hold=5)
    with pytest.raises(InputError, match="a wrapper changes rewards, costs or actions"):
        list(run(Priced(world), blender, counterfactual=True, seed=1))

    class Watching(gymnasium.Wrapper):
        def step(self, action):
            return self.env.step(action)

    again = Blender(team(), ["fast", "safe"], features="one-hot", seed=0, hold=5)
    assert len(list(run(Watching(world), again, counterfactual=True, seed=1))) == 4


def test_an_environment_with_discrete_actions_gets_whole_numbers():
    blender = Blender(
        [lambda o: 1, lambda o: np.int64(2)], ["down", "right"], objectives=["reward"], features="one-hot", seed=0
    )
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)  # refuses arrays
    records = list(run(env, blender, episodes=2, seed=0))
    assert {int(record.action) for record in records} <= {1, 2}
    assert records[-1].ended
