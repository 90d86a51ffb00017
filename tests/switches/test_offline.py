"""The offline-trained switch: fitted Q iteration where the answer is known, and its logs."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box

from blendctl.controllers import as_controller, load, open_controller
from blendctl.envs.lockstep import lock_step
from blendctl.errors import InputError
from blendctl.switches import open_worlds
from blendctl.switches.log_collection import Log, log_drives
from blendctl.switches.offline import Fitted, fit
from blendctl.switches.state_features import describe_states


def test_fitted_values_are_the_discounted_sums_of_the_greedy_choice():
    """Arm 0 always has reward 1 and cost 1, arm 1 neither: which is better depends on the weight alone."""
    rng = np.random.default_rng(0)
    state = np.column_stack([np.ones(400), rng.normal(size=(400, 2))])
    arm = np.arange(400) % 2
    sums = np.where(arm[:, None] == 0, [1.0, 1.0], [0.0, 0.0])
    log = Log(state, arm, sums, rng.permutation(state), discount=0.9)
    keen = fit(log, arms=2, every=2, cost_weight=0.5, ridge=1e-6)(state[:5])
    on = 0.9**2  # what a decision later is worth
    np.testing.assert_allclose(keen[:, 0], 1 / (1 - on), rtol=1e-3)
    np.testing.assert_allclose(keen[:, 1], on / (1 - on), rtol=1e-3)
    wary = fit(log, arms=2, every=2, cost_weight=2.0, ridge=1e-6)(state[:5])
    np.testing.assert_allclose(wary[:, 0], 1.0, rtol=1e-3)
    np.testing.assert_allclose(wary[:, 1], 0.0, atol=1e-3)


def test_a_fitted_model_comes_back_from_json():
    model = Fitted(np.zeros(2), np.ones(2), np.arange(8.0).reshape(2, 2, 2))
    again = Fitted.from_dict(model.to_dict())
    np.testing.assert_array_equal(again(np.ones((1, 2))), model(np.ones((1, 2))))


def test_logged_windows_have_one_driver_and_their_sums():
    controllers = [open_controller(name, world="PointGoal1") for name in ("pure-pursuit", "stop")]
    worlds = open_worlds("PointGoal1", 6, steps=120)
    log = log_drives(worlds, controllers, seed=1, every=10, discount=1.0, steps=120)
    worlds.close()
    assert set(log.arm) == {0, 1}
    assert log.state.shape == log.after.shape
    assert log.sums.shape == (len(log.arm), 2)
    moved = log.sums[:, 0]
    assert moved[log.arm == 0].mean() > moved[log.arm == 1].mean() + 0.05  # who stands still earns nothing
    # windows begin every 5 steps: what one ends with is what a later one begins with
    later = {row.tobytes() for row in log.state}
    assert sum(row.tobytes() in later for row in log.after) > 0.3 * len(log.after)


def test_windows_never_cross_the_end_of_an_episode():
    class Counting(gymnasium.Env):
        """Observes the seed of the episode and its time; an episode of an odd seed ends early."""

        observation_space, action_space = Box(-1e9, 1e9, (2,)), Box(-1.0, 1.0, (1,))

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.seed, self.time = -1.0 if seed is None else float(seed), 0.0
            return np.array([self.seed, 0.0]), {}

        def step(self, action):
            self.time += 1.0
            ended = self.time >= (7 if self.seed % 2 else 30)
            return np.array([self.seed, self.time]), 1.0, ended, False, {"cost": 0.0}

    controllers = [as_controller(lambda observation: [0.0])] * 2
    for worlds, episodes in ((4, 1), (1, 4)):
        envs = lock_step([Counting() for _ in range(worlds)])
        log = log_drives(envs, controllers, seed=0, every=5, discount=1.0, episodes=episodes)
        assert (log.state[:, -2] == log.after[:, -2]).all()
        assert (log.after[:, -1] == log.state[:, -1] + 5).all()
        assert {0.0, 2.0} <= set(log.state[:, -2])
        assert log.state[:, -1].max() >= 20.0, "longer episodes are not cut short by the others"
        assert (log.sums == [5.0, 0.0]).all()


def test_a_log_that_is_too_short_is_refused():
    log = Log(np.ones((4, 1)), np.zeros(4, np.intp), np.ones((4, 2)), np.ones((4, 1)), 0.9)
    with pytest.raises(InputError, match="drove only 4 logged windows"):
        fit(log, arms=1, every=5, cost_weight=0.1, ridge=0.1)
    worlds = open_worlds("PointGoal1", 1, steps=8)
    controllers = [open_controller("stop", world="PointGoal1")] * 2
    with pytest.raises(InputError, match="too short for windows of 20"):
        log_drives(worlds, controllers, seed=0, every=20, discount=0.9, steps=8)
    worlds.close()


def test_states_are_described_by_what_the_controllers_know():
    zoo = [load("PointGoal1/ppo"), load("PointGoal1/ppo-lagrangian")]
    plain = [open_controller("pure-pursuit", world="PointGoal1")]
    worlds = open_worlds("PointGoal1", 2)
    observations, _ = worlds.reset(seed=0)
    worlds.close()
    states = describe_states(zoo, observations)
    assert len(states) == 2
    np.testing.assert_allclose(states[:, 3], zoo[0].value(observations))  # after a 1 and two entries of the action
    assert describe_states(plain, observations).shape == (2, 1 + 2 + observations.shape[1])
