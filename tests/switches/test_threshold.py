"""Thresholds on one entry of the observation, in lists, in worlds, and as a method of `compare`."""

import numpy as np
import pytest
from corridor import Corridor, drivers

import blendctl
from blendctl.envs.lockstep import lock_step
from blendctl.rollout import StepInput
from blendctl.switches import RolloutContext
from blendctl.switches.threshold import Threshold, ThresholdSwitch, best_threshold, flatten_rows, list_thresholds


def test_a_threshold_switches_on_one_entry():
    worlds = lock_step([Corridor(), Corridor()])
    switch = ThresholdSwitch(RolloutContext(drivers(), worlds, 0), Threshold(1, 0.5, below=1, above=0))
    frame = StepInput.at_start(np.array([[9, 0.4], [0, 0.5]]), np.zeros((2, 2, 1)))
    assert switch.choose(frame).tolist() == [1, 0]
    assert switch.threshold.words(["fast", "slow"]) == "slow while entry 1 of the observation is below 0.5, else fast"


def test_observations_of_any_space_become_rows():
    from rooms import Rooms

    worlds = lock_step([Rooms(), Rooms()])
    observations, _ = worlds.reset(seed=0)
    rows = flatten_rows(worlds)(observations)
    assert rows.shape == (2, 6)
    assert rows[:, 4:].sum(axis=1).tolist() == [1, 1], "the room is one-hot"


def test_thresholds_are_listed_for_entries_that_vary_and_the_best_is_found():
    observations = np.stack([np.linspace(0, 1, 50), np.zeros(50)], axis=1)
    listed = list_thresholds(observations, 2, most=100, seed=0)
    assert {one.entry for one in listed} == {0}
    assert len(list_thresholds(observations, 2, most=4, seed=0)) == 4
    wanted, driven = listed[3], []

    def utilities(tried, episodes):
        driven.append((len(tried), episodes))
        return [10.0 if one == wanted else 0.0 for one in tried]

    assert best_threshold(listed, utilities, episodes=3) == wanted
    assert driven == [(len(listed), 2), (5, 3)]


@pytest.mark.parametrize("make", [Corridor, Corridor()], ids=["function", "environment"])
def test_compare_sweeps_thresholds_on_other_episodes(make):
    table = blendctl.compare(make, drivers(), methods=["threshold"], episodes=6, parameters={"threshold": {"tried": 8}})
    # Fast where there is no danger, slow in danger: half of the way from the mixing line to the corner or more.
    assert table["threshold"].corner_score > 0.3
    assert 0 < table["threshold"].share < 1
