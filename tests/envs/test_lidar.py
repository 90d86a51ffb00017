"""The lidar's values can be computed by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blendctl.envs.lidar import see

UPRIGHT = np.eye(3).ravel()
ORIGIN = np.zeros(3)


def bins_of(x, y, position=ORIGIN, rotation=UPRIGHT):
    bins = np.zeros(16)
    see(bins, position, rotation, x, y)
    return bins


def test_an_object_in_the_middle_of_a_bin_leaks_half_into_both_neighbours():
    angle = 2 * math.pi * 3.5 / 16
    bins = bins_of(1.5 * math.cos(angle), 1.5 * math.sin(angle))
    expected = np.zeros(16)
    expected[2:5] = 0.25, 0.5, 0.25
    assert bins == pytest.approx(expected, abs=1e-12)


def test_an_object_straight_ahead_is_on_the_edge_between_the_last_bin_and_the_first():
    bins = bins_of(0.3, 0.0)
    assert bins[0] == bins[15] == pytest.approx(0.9)
    assert bins[1:15] == pytest.approx(0.0)


def test_the_nearer_of_two_objects_wins():
    bins = np.zeros(16)
    see(bins, ORIGIN, UPRIGHT, 2.0, 0.1)
    see(bins, ORIGIN, UPRIGHT, 1.0, 0.05)
    assert bins[0] == pytest.approx(1 - math.hypot(1.0, 0.05) / 3)


def test_nothing_is_seen_beyond_three_metres():
    assert not bins_of(3.0, 0.5).any()


def test_an_angle_that_rounds_to_a_full_turn_lights_the_first_bin():
    bins = bins_of(1.0, -1e-17)
    assert bins[0] == pytest.approx(2 / 3)


def test_a_tilted_robot_sees_its_own_height():
    tilt = 0.3
    rotation = np.array([[math.cos(tilt), 0, math.sin(tilt)], [0, 1, 0], [-math.sin(tilt), 0, math.cos(tilt)]]).ravel()
    bins = bins_of(1.0, 0.0, np.array([0.0, 0.0, 0.5]), rotation)
    ahead = math.cos(tilt) * 1.0 + math.sin(tilt) * 0.5
    assert bins.max() == pytest.approx(1 - ahead / 3)


@settings(deadline=None)  # the first call compiles
@given(st.floats(0.01, 2.9), st.floats(0.0, 6.28), st.integers(0, 15))
def test_turning_the_world_by_a_bin_shifts_the_ring(distance, angle, turn):
    ring = bins_of(distance * math.cos(angle), distance * math.sin(angle))
    turned = angle + turn * 2 * math.pi / 16
    assert bins_of(distance * math.cos(turned), distance * math.sin(turned)) == pytest.approx(
        np.roll(ring, turn), abs=1e-6
    )
    assert ((ring >= 0) & (ring <= 1)).all()
