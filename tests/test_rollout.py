"""The one loop: seeds, resets, counted steps, and what a switch sees and learns, in worlds that count by hand."""

import re
from pathlib import Path
from typing import ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

import blendctl
from blendctl.controllers import as_controller
from blendctl.errors import InputError, StateError
from blendctl.rollout import StepInput, Switch, rollout


class Countdown(VectorEnv):
    """World i ends its episodes after 2 + i steps; the reward is the action, the cost the number of the world."""

    metadata: ClassVar = {"autoreset_mode": AutoresetMode.DISABLED}
    single_observation_space = Box(-np.inf, np.inf, (2,))
    single_action_space = Box(-1.0, 1.0, (1,))

    def __init__(self, num_envs=3):
        self.num_envs = num_envs
        self.time = np.zeros(num_envs, np.int64)
        self.seeds = []  # of every reset

    def reset(self, *, seed=None, options=None):
        mask = np.ones(self.num_envs, bool) if options is None else options["reset_mask"]
        self.time[mask] = 0
        self.seeds.append((mask.tolist(), seed))
        return self._observe(), {}

    def step(self, actions):
        self.time += 1
        ended = self.time == 2 + np.arange(self.num_envs)
        cost = np.arange(self.num_envs, dtype=np.float64)
        return self._observe(), actions[:, 0].copy(), ended, np.zeros_like(ended), {"cost": cost}

    def peek(self, alternatives, *, components=False):
        reward = np.clip(alternatives, -1.0, 1.0)[..., 0]
        return reward, np.broadcast_to(np.arange(self.num_envs, dtype=float), reward.shape), {}

    def _observe(self):
        return np.column_stack([self.time, np.arange(self.num_envs)]).astype(np.float64)


class Alternate(Switch):
    """Let both controllers drive in turn; remember all that it saw."""

    def __init__(self):
        self.frames, self.batches, self.resets = [], [], []

    def choose(self, frame):
        self.frames.append(frame)
        return np.full(frame.proposals.shape[1], frame.step % 2)

    def learn(self, batch):
        self.batches.append(batch)

    def reset(self, mask):
        self.resets.append(mask.tolist())


def constant(value):
    return as_controller(lambda observation: [value])


PAIR = [constant(0.25), constant(3.0)]  # the second one is clipped to 1


def test_each_world_runs_its_episodes_with_its_seeds_and_the_others_wait():
    envs, switch = Countdown(), Alternate()
    batches = list(rollout(envs, switch, controllers=PAIR, seed=10, episodes=2))
    assert len(batches) == 8  # two episodes of four steps in the last world
    counted = np.array([batch.counted for batch in batches])
    assert counted.sum(axis=0).tolist() == [4, 6, 8]
    assert envs.seeds[0] == ([True] * 3, [10, 12, 14])
    assert envs.seeds[1] == ([True, False, False], [11, None, None])
    assert ([False, True, False], [None, 13, None]) in envs.seeds
    assert ([True, False, True], [None, None, 15]) in envs.seeds  # the first world goes on, but counts no more
    assert switch.resets == [mask for mask, _ in envs.seeds]
    assert switch.batches == batches


def test_a_switch_sees_the_episode_step_the_cost_so_far_and_the_last_arm():
    switch = Alternate()
    list(rollout(Countdown(), switch, controllers=PAIR, seed=0))
    steps = np.array([frame.episode_step for frame in switch.frames])
    assert steps.T.tolist() == [[0, 1, 0, 1], [0, 1, 2, 0], [0, 1, 2, 3]]
    spent = np.array([frame.spent for frame in switch.frames])
    assert spent.tolist() == (steps * np.arange(3)).tolist()
    last = np.array([frame.last_arm for frame in switch.frames])
    assert last.T.tolist() == [[-1, 0, -1, 0], [-1, 0, 1, -1], [-1, 0, 1, 0]]
    assert [frame.step for frame in switch.frames] == [0, 1, 2, 3]


def test_proposals_are_clipped_to_the_action_space_unless_raw():
    for raw, largest in ((False, 1.0), (True, 3.0)):
        batch = next(rollout(Countdown(), Alternate(), controllers=PAIR, seed=0, raw_proposals=raw))
        assert batch.input.proposals[:, 0, 0].tolist() == [0.25, largest]
        assert batch.actions.tolist() == [[0.25]] * 3


def test_weights_mix_the_actions():
    class Mixture(Switch):
        def choose(self, frame):
            return np.tile([0.75, 0.25], (3, 1))

    batch = next(rollout(Countdown(), Mixture(), controllers=PAIR, seed=0, counterfactual_every=1))
    assert batch.actions[:, 0].tolist() == [0.4375] * 3
    assert batch.share.tolist() == [0.75] * 3
    assert batch.arm.tolist() == [0] * 3
    assert batch.counterfactual is None  # a mixture is not the choice of an arm


def test_counterfactual_steps_hold_the_feedback_of_every_arm():
    batches = list(rollout(Countdown(), Alternate(), controllers=PAIR, seed=0, counterfactual_every=2))
    assert [batch.counterfactual is not None for batch in batches] == [True, False, True, False]
    assert batches[0].counterfactual["reward"].tolist() == [[0.25] * 3, [1.0] * 3]
    assert batches[0].counterfactual["cost"].tolist() == [[0.0, 1.0, 2.0]] * 2


def test_a_part_of_the_cost_that_is_reported_only_where_it_occurs_is_zero_elsewhere():
    class Occasional(Countdown):
        def peek(self, alternatives, *, components=False):
            reward, cost, _ = super().peek(alternatives)
            return reward, cost, {"cost_hit": np.ones_like(reward)}

    batch = next(rollout(Occasional(), Alternate(), controllers=PAIR, seed=0, counterfactual_every=1))
    assert batch.counterfactual["cost_hit"].tolist() == [[0.0] * 3, [1.0] * 3]


@pytest.mark.parametrize(("name", "value"), [("reward", np.nan), ("cost", np.inf)])
def test_feedback_that_is_not_finite_stops_a_rollout(name, value):
    class Broken(Countdown):
        def step(self, actions):
            observations, reward, *ends, infos = super().step(actions)
            signals = {"reward": reward, "cost": infos["cost"]}
            signals[name][0] = value if self.time[0] == 2 else 0.0
            return observations, signals["reward"], *ends, {"cost": signals["cost"]}

    with pytest.raises(StateError, match=f"returned a {name} that is NaN or infinite: {value}"):
        list(rollout(Broken(), Alternate(), controllers=PAIR, seed=0))


def test_only_the_driver_is_asked_where_that_is_enough():
    asked = [[], []]

    def counting(arm):
        def act(observation, rng=None):
            asked[arm].append(len(observation))
            return np.full((len(observation), 1), float(arm))

        return type("Counting", (), {"act": staticmethod(act)})()

    class ByWorld(Switch):
        def choose(self, frame):
            assert np.isnan(frame.proposals).all()
            return np.array([0, 1, 1])

    controllers = [counting(0), counting(1)]
    batches = list(rollout(Countdown(), ByWorld(), controllers=controllers, seed=0, steps=3, ask="driver"))
    assert asked == [[1, 1, 1], [2, 2, 2]]
    assert batches[0].actions[:, 0].tolist() == [0.0, 1.0, 1.0]


def test_steps_end_a_rollout_without_a_number_of_episodes():
    envs = Countdown()
    batches = list(rollout(envs, Alternate(), controllers=PAIR, seed=5, episodes=None, steps=9))
    assert len(batches) == 9
    assert all(batch.counted.all() for batch in batches)
    assert envs.seeds[0][1] == [5, 6, 7]
    assert all(seeds == [None] * 3 for _, seeds in envs.seeds[1:])  # the worlds continue their streams


def test_noise_depends_on_the_seed_alone():
    noisy = [as_controller(lambda o, rng: rng.normal(size=1)) for _ in range(2)]
    runs = [
        np.array([b.input.proposals for b in rollout(Countdown(), Alternate(), controllers=noisy, seed=seed)])
        for seed in (3, 3, 4)
    ]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
    assert not np.array_equal(runs[0][:, 0], runs[0][:, 1])


def test_controllers_that_remember_begin_anew_where_all_worlds_do():
    class Memory:
        resets = 0

        def act(self, observation, rng=None):
            return np.zeros((len(observation), 1))

        def reset(self):
            self.resets += 1

    one, many = Memory(), Memory()
    list(rollout(Countdown(1), Alternate(), controllers=[one, one], seed=0, episodes=3))
    list(rollout(Countdown(2), Alternate(), controllers=[many, many], seed=0))
    assert one.resets == 2 * 3
    assert many.resets == 2


def test_any_gymnasium_vector_environment_runs():
    envs = SyncVectorEnv(
        [lambda n=n: gymnasium.make("MountainCarContinuous-v0", max_episode_steps=n) for n in (5, 7)],
        autoreset_mode=AutoresetMode.DISABLED,
    )
    first, again = (
        list(rollout(envs, Alternate(), controllers=[constant(0.5), constant(-0.5)], seed=1, episodes=2))
        for _ in range(2)
    )
    envs.close()
    assert np.sum([batch.counted for batch in first], axis=0).tolist() == [10, 14]
    np.testing.assert_array_equal([b.reward for b in first], [b.reward for b in again])
    assert first[0].cost.tolist() == [0.0, 0.0]  # it reports none


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"metadata": {"autoreset_mode": AutoresetMode.NEXT_STEP}}, {}, "autoreset_mode"),
        ({}, {"episodes": None}, "never ends"),
        ({}, {"counterfactual_every": 1, "ask": "driver"}, "actions of all controllers"),
    ],
)
def test_what_cannot_run_is_refused_at_once(change, options, message):
    envs = Countdown()
    for name, value in change.items():
        setattr(envs, name, value)
    with pytest.raises(InputError, match=message):
        rollout(envs, Alternate(), controllers=PAIR, seed=0, **options)


def test_environments_without_peek_have_no_counterfactual_steps():
    class Blind(Countdown):
        peek = property()

    with pytest.raises(InputError, match="need worlds with `peek`"):
        rollout(Blind(), Alternate(), controllers=PAIR, seed=0, counterfactual_every=1)


def test_an_action_that_is_not_finite_stops_the_rollout():
    with pytest.raises(StateError, match="controller 1 returned an action that is NaN"):
        next(rollout(Countdown(), Alternate(), controllers=[PAIR[0], Broken()], seed=0))


class Broken:
    def act(self, observation, rng=None):
        return np.full((len(observation), 1), np.nan)


def test_inputs_and_batches_do_not_change():
    batch = next(rollout(Countdown(), Alternate(), controllers=PAIR, seed=0))
    for frozen, name in ((batch, "arm"), (batch.input, "step")):
        with pytest.raises(AttributeError):
            setattr(frozen, name, 1)
    assert isinstance(batch.input, StepInput)


def test_there_is_one_lock_step_loop():
    sources = Path(blendctl.__file__).parent.rglob("*.py")
    loops = [path.name for path in sources if re.search(r"^\s*while .*\.any\(\)", path.read_text(), re.M)]
    assert loops == ["rollout.py"]
