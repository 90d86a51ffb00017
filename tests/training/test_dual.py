"""CPO's dual, each case against a problem whose solution is known."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from blendctl.training.dual import solve_dual


def step_of(dual, g, b):
    """Return the step for H = 1."""
    return dual.along_return * g + dual.along_cost * b


def solve(g, b, *, c, delta):
    return solve_dual(float(g @ g), float(g @ b), float(b @ b), c=c, delta=delta)


def test_feasible_and_far_from_the_limit_is_the_plain_trust_region_step():
    g, b = np.array([3.0, 4.0]), np.array([1.0, 0.0])
    dual = solve(g, b, c=-10.0, delta=0.5)
    assert dual.case == "unconstrained"
    assert step_of(dual, g, b) == pytest.approx([0.6, 0.8])  # unit length along g


def test_a_plane_that_the_plain_step_respects_stays_inactive():
    g, b = np.array([-1.0, 0.0]), np.array([1.0, 0.0])
    dual = solve(g, b, c=-0.5, delta=0.5)
    assert dual.case == "inactive"
    assert step_of(dual, g, b) == pytest.approx([-1.0, 0.0])


def test_a_binding_plane_is_met_at_the_edge_of_the_region():
    # Maximise x + y, x <= 0.6, x² + y² <= 1: the corner (0.6, 0.8).
    g, b = np.array([1.0, 1.0]), np.array([1.0, 0.0])
    dual = solve(g, b, c=-0.6, delta=0.5)
    assert dual.case == "bound"
    assert step_of(dual, g, b) == pytest.approx([0.6, 0.8])


def test_a_violated_limit_that_can_be_met_is_met():
    # Now x <= -0.6 is required.
    g, b = np.array([1.0, 1.0]), np.array([1.0, 0.0])
    dual = solve(g, b, c=0.6, delta=0.5)
    assert dual.case == "bound"
    assert step_of(dual, g, b) == pytest.approx([-0.6, 0.8])


def test_an_infeasible_region_is_left_by_reducing_the_cost_alone():
    g, b = np.array([1.0, 1.0]), np.array([0.0, 2.0])
    dual = solve(g, b, c=10.0, delta=0.5)
    assert dual.case == "recovery"
    assert step_of(dual, g, b) == pytest.approx([0.0, -1.0])


@pytest.mark.parametrize("c", [-1.0, 0.0, 1.0])
def test_a_cost_that_no_policy_changes_is_ignored(c):
    g, b = np.array([3.0, 4.0]), np.zeros(2)
    dual = solve(g, b, c=c, delta=0.5)
    assert dual.case == "unconstrained"
    assert step_of(dual, g, b) == pytest.approx([0.6, 0.8])


def test_return_and_cost_that_pull_exactly_against_each_other_stop_at_the_plane():
    # All of g lies along b: nothing to climb on the plane, the step is the one that meets it.
    g, b = np.array([1.0, 0.0]), np.array([1.0, 0.0])
    dual = solve(g, b, c=-0.5, delta=0.5)
    assert dual.case == "degenerate"
    assert step_of(dual, g, b) == pytest.approx([0.5, 0.0])


numbers = st.floats(-2.0, 2.0)


@settings(deadline=None, max_examples=300)
@given(numbers, numbers, numbers, numbers, st.floats(-1.5, 1.5), st.floats(0.05, 1.0))
def test_no_point_of_the_region_does_better(gx, gy, bx, by, c, delta):
    g, b = np.array([gx, gy]), np.array([bx, by])
    assume(np.hypot(gx, gy) > 0.05 and np.hypot(bx, by) > 0.05)
    assume(abs(gx * by - gy * bx) > 0.01)  # parallel: see above
    radius = math.sqrt(2 * delta)
    assume(abs(abs(c) / np.hypot(bx, by) - radius) > 1e-3)
    dual = solve(g, b, c=c, delta=delta)
    step = step_of(dual, g, b)
    assert np.hypot(*step) <= radius * (1 + 1e-6)
    angles = np.linspace(0, 2 * np.pi, 721)
    grid = np.concatenate([r * np.stack([np.cos(angles), np.sin(angles)], 1) for r in np.linspace(0, radius, 60)])
    allowed = grid[grid @ b + c <= 0]
    if len(allowed) == 0:
        assert b @ step == pytest.approx(-radius * np.hypot(bx, by), rel=1e-6)
    else:
        assert c + b @ step <= 1e-6
        assert g @ step >= (allowed @ g).max() - 1e-6
