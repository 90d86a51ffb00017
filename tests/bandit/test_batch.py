import numpy as np
import pytest

from blendctl import BanditBatch, BlendingBandit
from blendctl.bandit.rules import RULES
from blendctl.errors import InputError


def draws(rng, shape):
    psi = rng.normal(size=shape)
    return psi / (np.linalg.norm(psi, axis=-1, keepdims=True) * 1.01)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("discount", [1.0, 0.95])
@pytest.mark.parametrize(("arms", "d", "m"), [(4, 3, 2), (1, 1, 1), (20, 12, 5)])
def test_a_batch_equals_single_learners_bit_for_bit(rule, discount, arms, d, m):
    rng = np.random.default_rng(1)
    count = 7
    batch = BanditBatch(count, n_features=d, n_objectives=m, rule=rule, discount=discount, seed=5)
    singles = [BlendingBandit(d, m, rule=rule, discount=discount, seed=5 + i) for i in range(count)]
    for _ in range(40):
        psi, y = draws(rng, (count, arms, d)), rng.normal(size=(count, m))
        together = batch.decide(psi)
        for i, bandit in enumerate(singles):
            alone = bandit.decide(psi[i])
            assert alone.arm == together.arm[i] == together[i].arm
            np.testing.assert_array_equal(alone.ucb, together.ucb[i])
            np.testing.assert_array_equal(alone.loss, together.loss[i])
            bandit.update(psi[i, alone.arm], y[i])
        batch.update(psi[np.arange(count), together.arm], y)
    np.testing.assert_array_equal(batch.theta, [bandit.theta for bandit in singles])
    np.testing.assert_array_equal(batch.loss_bound, [bandit.loss_bound for bandit in singles])


def test_a_learner_taken_out_of_a_batch_goes_on_alone():
    rng = np.random.default_rng(0)
    batch = BanditBatch(3, n_features=2, seed=[4, 4, 9])
    psi = draws(rng, (3, 2, 2))
    batch.update(psi[:, 0], rng.normal(size=(3, 2)))
    alone = batch.learner(2)
    alone.update([1.0, 0.0], [1.0, 1.0])
    assert alone.stage == 2
    assert batch.stage.tolist() == [1, 1, 1]
    for index in (3, -4, 1.0, "first"):
        with pytest.raises(InputError, match="index must be"):
            batch.learner(index)


def test_pooled_learning_is_learning_one_by_one():
    rng = np.random.default_rng(2)
    pooled, single = BlendingBandit(3, 2, seed=0), BlendingBandit(3, 2, seed=0)
    for _ in range(10):
        psi, y = draws(rng, (5, 4, 3)), rng.normal(size=(5, 2))
        together = pooled.decide_many(psi)
        alone = [single.decide(one) for one in psi]
        assert together.arm.tolist() == [decision.arm for decision in alone]
        rows = psi[np.arange(5), together.arm]
        pooled.update_many(rows, y)
        for row, feedback in zip(rows, y, strict=True):
            single.update(row, feedback)
    np.testing.assert_array_equal(pooled.theta, single.theta)
    assert pooled.loss_bound == single.loss_bound
    assert pooled.stage == pooled.decisions == 50


def test_one_bad_row_stops_the_whole_batch_before_anything_is_learned():
    batch = BanditBatch(3, n_features=2, seed=0)
    before = batch._core.state.copy()
    psi = np.full((3, 2), 0.5)
    psi[2, 1] = np.nan
    with pytest.raises(InputError, match=r"at index \[2, 1\]"):
        batch.update(psi, np.zeros((3, 2)))
    with pytest.raises(InputError, match=r"feedback must be finite, actually: nan at index \[2, 1\]"):
        batch.update(np.zeros((3, 2)), psi)
    features = np.full((3, 2, 2), 0.5)
    features[1, 1] = 4.0
    with pytest.raises(InputError, match="longer than feature_bound"):
        batch.decide(features)
    np.testing.assert_array_equal(batch._core.state, before)


@pytest.mark.parametrize(
    "options",
    [
        {"n_learners": 0},
        {"n_learners": 3, "seed": [1, 2]},
        {"n_learners": 3, "seed": 1.5},
        {"n_learners": 3, "seed": True},
        {"n_learners": 3, "seed": [1, 2, -3]},
    ],
)
def test_bad_batches_are_refused(options):
    with pytest.raises(InputError):
        BanditBatch(n_features=2, **options)


def test_wrong_batch_shapes_are_named():
    batch = BanditBatch(3, n_features=2)
    with pytest.raises(InputError, match=r"\(3, arms, 2\), actually: \(2, 2, 2\)"):
        batch.decide(np.zeros((2, 2, 2)))
    with pytest.raises(InputError, match=r"\(3, 2\)"):
        batch.update(np.zeros((3, 2)), np.zeros((3, 1)))
