"""The theorems, held against a world in which the truth is known."""

import numpy as np
import pytest

from blendctl import BanditBatch
from blendctl.bandit.linear_world import LinearWorld, play

SEEDS, STAGES = 200, 1500


@pytest.fixture(scope="module", params=["determinant", "paper"])
def life(request):
    """One life of many learners: cumulated truth and bounds, (stages, seeds)."""
    world = LinearWorld.draw(np.random.default_rng(3), features=3, objectives=3, arms=4, noise=0.3)
    batch = BanditBatch(
        SEEDS,
        n_features=3,
        n_objectives=3,
        noise=0.3,
        theta_bound=1.0,
        delta=0.05,
        radius=request.param,
        seed=0,
    )
    records = list(play(world, batch, stages=STAGES, rng=np.random.default_rng(4)))
    gap, loss, bound = (np.cumsum([getattr(r, name) for r in records], axis=0) for name in ("gap", "loss", "bound"))
    return batch, gap, loss, bound


def test_the_live_bound_on_the_average_loss_holds_at_all_stages(life):
    batch, _, loss, bound = life
    failed = (loss > bound).any(axis=0)
    assert failed.mean() <= 0.05
    np.testing.assert_allclose(bound[-1] / STAGES, batch.loss_bound, rtol=1e-9)


def test_the_live_bound_becomes_tight(life):
    """Not vacuous: far below the largest possible loss (2 S L = 2), and shrinking towards the true one."""
    _, _, loss, bound = life
    stages = np.arange(1, STAGES + 1)[:, None]
    excess = ((bound - loss) / stages).mean(axis=1)
    assert (bound / stages).mean(axis=1)[-1] < 0.5 * 2.0
    assert excess[-1] < 0.35 * excess[STAGES // 20]


def test_the_regret_bound_holds_at_all_stages(life):
    batch, gap, _, _ = life
    learner = batch.learner(0)
    bounds = np.array([learner.regret_bound(t) for t in range(1, STAGES + 1)])
    assert (gap > bounds[:, None]).any(axis=0).mean() <= 0.05


def test_pareto_regret_grows_sublinearly(life):
    """Fit log regret = a + p log t over the second half: sqrt(T) log T allows p well below 1."""
    _, gap, _, _ = life
    late = np.arange(STAGES // 4, STAGES)
    exponent = np.polyfit(np.log(late + 1), np.log(gap[late].mean(axis=1)), 1)[0]
    assert exponent < 0.6


def test_confidence_sets_hold_for_all_objectives_at_once():
    """With the union bound theta* lies in every objective's ellipsoid, at every stage, in 1 - delta of all lives."""
    rng = np.random.default_rng(8)
    world = LinearWorld.draw(rng, features=2, objectives=4, arms=3, noise=0.5)
    batch = BanditBatch(300, n_features=2, n_objectives=4, noise=0.5, theta_bound=1.0, delta=0.1, seed=0)
    outside = np.zeros(len(batch), dtype=bool)
    for record in play(world, batch, stages=300, rng=rng):
        if record.stage % 10 == 0:
            for i in range(len(batch)):
                bandit = batch.learner(i)
                error = bandit.theta - world.theta
                distance = np.sqrt(np.einsum("md,de,me->m", error, bandit.gram, error))
                outside[i] |= bool((distance > bandit.radius).any())
    assert outside.mean() <= 0.1


def test_confidence_sets_of_a_forgetful_learner_hold_at_each_stage():
    rng = np.random.default_rng(5)
    world = LinearWorld(np.array([[0.01]]), noise=1.0)  # a small S: nothing but the noise's part of the radius
    batch = BanditBatch(400, n_features=1, n_objectives=1, noise=1.0, theta_bound=0.01, delta=0.1, discount=0.9, seed=0)
    for record in play(world, batch, stages=200, rng=rng):
        if record.stage % 20 == 0:
            learners = [batch.learner(i) for i in range(len(batch))]
            distance = [abs(b.theta[0, 0] - 0.01) * np.sqrt(b.gram[0, 0]) / b.radius for b in learners]
            assert np.mean(np.array(distance) > 1) <= 0.1
            assert np.max(distance) > 0.5  # not vacuous


def test_random_switching_has_linear_regret_in_the_same_world():
    world = LinearWorld.draw(np.random.default_rng(3), features=3, objectives=3, arms=4, noise=0.3)
    batch = BanditBatch(20, n_features=3, n_objectives=3, noise=0.3, rule="random", seed=0)
    gap = np.cumsum([r.gap.mean() for r in play(world, batch, stages=800, rng=np.random.default_rng(4))])
    late = np.arange(200, 800)
    assert np.polyfit(np.log(late + 1), np.log(gap[late]), 1)[0] == pytest.approx(1.0, abs=0.1)
