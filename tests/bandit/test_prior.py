"""A learner with a prior starts from it, and forgets it as evidence comes."""

import numpy as np
import pytest

from blendctl import BanditBatch, BlendingBandit
from blendctl.errors import InputError

PRIOR = [[1.0, 0.0], [0.0, 1.0], [0.5, -0.5]]


def test_the_first_estimates_are_those_of_the_prior():
    features = np.random.default_rng(0).normal(size=(4, 3)) / 4
    decision = BlendingBandit(3, prior=PRIOR, seed=0).decide(features)
    assert decision.estimate == pytest.approx(features @ np.array(PRIOR))
    batch = BanditBatch(2, 3, prior=PRIOR, seed=0).decide(np.stack([features, features]))
    assert batch.estimate[1] == pytest.approx(features @ np.array(PRIOR))


def test_theta_is_the_ridge_regression_towards_the_prior():
    rng = np.random.default_rng(1)
    psi, y = rng.uniform(-0.5, 0.5, size=(50, 3)), rng.normal(size=(50, 2))
    bandit = BlendingBandit(3, prior=PRIOR, regularization=2.0, seed=0)
    for row, feedback in zip(psi, y, strict=True):
        bandit.update(row, feedback)
    expected = np.linalg.solve(psi.T @ psi + 2 * np.eye(3), psi.T @ y + 2 * np.array(PRIOR))
    assert bandit.theta == pytest.approx(expected.T if bandit.theta.shape == (2, 3) else expected)


def test_a_saved_learner_keeps_its_prior(tmp_path):
    bandit = BlendingBandit(3, prior=PRIOR, seed=0)
    bandit.save(tmp_path / "bandit.safetensors")
    again = BlendingBandit.load(tmp_path / "bandit.safetensors")
    assert again.options.prior == bandit.options.prior
    assert again.theta == pytest.approx(bandit.theta)


@pytest.mark.parametrize("prior", [[[1.0, 0.0]], [[np.nan, 0.0]] * 3, "words", [[1e200, 0.0]] * 3])
def test_a_prior_of_another_shape_or_size_is_refused(prior):
    with pytest.raises(InputError, match="prior must be"):
        BlendingBandit(3, prior=prior)


def test_a_learner_that_forgets_has_no_prior():
    with pytest.raises(InputError, match="cannot have a prior"):
        BlendingBandit(3, prior=PRIOR, discount=0.9)
