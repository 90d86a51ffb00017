"""The blender notices when its feedback contradicts what the loss bound assumes."""

import math

import numpy as np
import pytest

from blendctl import BlendingBandit
from blendctl.blender import Blender
from blendctl.blender.bound_check import BoundCheck, bound_words

THETA = np.array([[0.6, -0.3], [0.2, 0.5]])


def drive(noise, *, stages, scales=None, seed=0, drift_at=None):
    """Let a learner that assumes noise 0.1 live in a linear world with the noise of a function."""
    rng = np.random.default_rng(seed)
    bandit = BlendingBandit(2, 2, noise=0.1, scales=scales, seed=seed)
    check = BoundCheck(bandit)
    for stage in range(stages):
        psi = rng.normal(size=(3, 2))
        psi /= np.linalg.norm(psi, axis=1, keepdims=True)
        decision = bandit.decide(psi)
        theta = -THETA if drift_at is not None and stage >= drift_at else THETA
        feedback = theta @ psi[decision.arm] + noise(rng)
        if scales is not None:
            feedback = feedback * scales
        check.observe(decision, decision.arm, feedback)
        bandit.update(psi[decision.arm], feedback)
    return check


def test_it_is_quiet_where_the_assumptions_hold():
    """A false alarm has probability 0.01 in a whole life."""
    lives = [drive(lambda rng: 0.1 * rng.normal(size=2), stages=300, seed=seed) for seed in range(60)]
    assert sum(life.reason is not None for life in lives) <= 2
    assert drive(lambda rng: 0.1 * rng.normal(size=2), stages=2500).reason is None


@pytest.mark.parametrize("scales", [None, (10.0, 0.5)])
def test_it_notices_noise_that_is_larger_than_declared(scales):
    scales = None if scales is None else np.array(scales)
    check = drive(lambda rng: 0.4 * rng.normal(size=2), stages=100, scales=scales)
    assert "noise = 0.1" in check.reason
    assert check.status()["bound"] == "not guaranteed"
    assert drive(lambda rng: 0.1 * rng.normal(size=2), stages=100, scales=scales).reason is None


def test_it_notices_rare_large_feedback_and_drift_in_a_later_epoch():
    assert drive(lambda rng: np.array([0.0, -float(rng.random() < 0.05)]), stages=600).reason is not None
    assert drive(lambda rng: 0.01 * rng.normal(size=2), stages=2600, drift_at=2000).reason is not None


@pytest.mark.parametrize(("quiet", "loud"), [(0, 8), (40, 8), (995, 9)])
def test_the_alarm_comes_at_the_stage_where_the_wealth_of_the_epoch_is_large_enough(quiet, loud):
    """After quiet stages each stage has a surprise; the bets start again after 1,000 stages."""
    bandit = BlendingBandit(2, 3, noise=0.1, seed=0)
    check = BoundCheck(bandit)
    assert check.spread == pytest.approx(0.1 * math.sqrt(2.0 * math.log(6.0 / 0.01)))
    decision = bandit.decide(np.eye(2))
    estimate, error = decision.estimate[0], decision.radius * decision.width[0]
    inside = np.add(estimate, [0.0, error + check.spread - 1e-9, 0.0])
    wealth, alarm = np.ones(3), None
    stakes = np.array([0.002, 0.02, 0.2])
    for stage in range(1, quiet + loud + 1):
        surprise = stage > quiet
        check.observe(decision, 0, np.add(inside, [0.0, 2e-9 * surprise, 0.0]))
        epoch = (stage - 1) // 1000
        if stage % 1000 == 1:
            wealth = np.ones(3)
        wealth *= 1.0 - stakes + stakes / 0.01 * surprise
        if alarm is None and wealth.mean() > (math.pi * (epoch + 1)) ** 2 / 6.0 / 0.01:
            alarm = stage
        told = check.feedback(["a", "b", "c"])
        assert (told["stages"], told["surprises"], told["alarm"]) == (stage, max(stage - quiet, 0), alarm)
    assert alarm is not None
    assert alarm > quiet + 1
    assert f"{alarm - quiet} of {alarm} stages" in check.reason


@pytest.mark.parametrize("scales", [None, np.array([10.0, 0.5])])
def test_it_says_how_much_of_the_feedback_the_context_explains(scales):
    few = drive(lambda rng: rng.normal(size=2), stages=3000, scales=scales).explained()
    most = drive(lambda rng: 0.05 * rng.normal(size=2), stages=3000, scales=scales).explained()
    assert all(share < 0.6 for share in few)
    assert all(share > 0.9 for share in most)
    constant = drive(lambda rng: 0.05 * rng.normal(size=2) * [1.0, 0.0], stages=1).explained()
    assert constant == [None, None]  # one stage does not vary
    assert BoundCheck(BlendingBandit(2, 2, seed=0)).explained() == [None, None]


def test_losses_above_their_bound_contradict_it():
    bandit = BlendingBandit(2, 2, noise=0.001, theta_bound=0.01, seed=0)
    check = BoundCheck(bandit)
    decision = bandit.decide(np.eye(2))
    other = 1 - decision.arm
    truth = np.zeros((2, 2))
    check.observe_truth(decision, (0, 1), decision.arm, truth)
    assert check.status() == {"bound": "consistent", "bound_reason": None}
    assert bound_words(check.status()) is None
    truth[other] = 1.0
    check.observe_truth(decision, (0, 1), decision.arm, truth)
    assert check.status()["bound"] == "contradicted"
    assert "above its bound" in bound_words(check.status())
    assert bound_words(check.status()).startswith("The bound on the loss does not hold here: the average loss of 2")


def test_the_blender_says_so_in_its_status():
    rng = np.random.default_rng(0)
    blender = Blender([lambda o: [0.5], lambda o: [0.1]], ["fast", "safe"], features="one-hot", noise=0.1, seed=0)
    assert blender.status()["bound"] == "consistent"
    for _ in range(200):
        blender.act(np.zeros(2))
        blender.observe(reward=float(rng.normal()), cost=0.0)
    status = blender.status()
    assert status["bound"] == "not guaranteed"
    assert status["stages"] == 200
    assert status["loss_bound"] == blender.loss_bound
