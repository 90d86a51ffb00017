"""Dominance, front, gap and loss equal their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from blendctl import pareto
from blendctl.errors import InputError

# few different values, so that ties and dominance are common
matrices = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=st.integers(-3, 3).map(float)
)


def dominated_by_definition(mu, x):
    return any(
        all(mu[y, k] >= mu[x, k] for k in range(mu.shape[1])) and any(mu[y, k] > mu[x, k] for k in range(mu.shape[1]))
        for y in range(len(mu))
    )


def test_the_papers_example():
    mu = np.array([[0.0, 1.0], [2.0, 0.0]])
    assert pareto.suboptimality_gap(mu).tolist() == [0, 0]
    assert pareto.maximal_loss(mu).tolist() == [2, 1]


@given(matrices)
def test_front_is_what_nothing_dominates(mu):
    assert pareto.front(mu).tolist() == [not dominated_by_definition(mu, x) for x in range(len(mu))]
    assert pareto.front(mu).any()


@given(matrices)
def test_gap_is_the_least_lift_to_the_front(mu):
    gap = pareto.suboptimality_gap(mu)
    assert (gap >= 0).all()
    for x in range(len(mu)):
        lifted = mu.copy()
        lifted[x] += gap[x] + 1e-9  # just above the gap: nothing is better everywhere any more
        assert not (lifted > lifted[x]).all(axis=1).any()
        if gap[x] > 0:
            lifted[x] = mu[x] + gap[x] - 1e-9
            assert (lifted > lifted[x]).all(axis=1).any()


@given(matrices)
def test_loss_is_the_least_lift_above_every_arm(mu):
    loss = pareto.maximal_loss(mu)
    for x in range(len(mu)):
        assert (mu[x] + loss[x] >= mu).all()
        if loss[x] > 0:
            assert not (mu[x] + loss[x] - 1e-9 >= mu).all()


@given(matrices)
def test_gap_never_exceeds_loss_and_vanishes_on_the_front(mu):
    gap, loss = pareto.suboptimality_gap(mu), pareto.maximal_loss(mu)
    assert (gap <= loss).all()
    assert (gap[pareto.front(mu)] == 0).all()


@given(hnp.arrays(np.float64, (3, 2, 4, 2), elements=st.integers(-3, 3).map(float)))
def test_a_batch_is_its_matrices_one_by_one(mu):
    for function in (pareto.front, pareto.suboptimality_gap, pareto.maximal_loss):
        one_by_one = [[function(mu[i, j]) for j in range(2)] for i in range(3)]
        np.testing.assert_array_equal(function(mu), one_by_one)


@given(matrices)
def test_dominance_is_a_strict_order(mu):
    table = pareto.dominates(mu[:, None], mu[None, :])
    assert not table.diagonal().any()
    assert not (table & table.T).any()
    assert (~(table.astype(int) @ table.astype(int) > 0) | table).all()  # transitive


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pareto.front([1.0, 2.0]), "shape"),
        (lambda: pareto.front(np.empty((0, 2))), "at least one arm"),
        (lambda: pareto.maximal_loss([[np.nan, 1.0]]), "finite"),
        (lambda: pareto.suboptimality_gap([["a", "b"]]), "numbers"),
        (lambda: pareto.suboptimality_gap([["1", "2"]]), "numbers"),
        (lambda: pareto.maximal_loss(np.array([[1j, 2.0]])), "numbers"),
        (lambda: pareto.front([[None, 1.0]]), "numbers"),
        (lambda: pareto.dominates([1, 2], [1, 2, 3]), "same number of objectives"),
        (lambda: pareto.dominates(np.zeros((2, 2)), np.zeros((3, 2))), "broadcast"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
