import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textbook import Textbook

from blendctl import BlendingBandit, pareto
from blendctl.bandit.rules import Lexicographic
from blendctl.errors import InputError, StateError


def unit_rows(rng, arms, d):
    psi = rng.normal(size=(arms, d))
    return psi / np.linalg.norm(psi, axis=1, keepdims=True)


@settings(max_examples=40, deadline=None)
@given(
    d=st.integers(1, 12),
    m=st.integers(1, 4),
    arms=st.integers(1, 6),
    radius=st.sampled_from(["paper", "determinant"]),
    union=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_every_number_is_the_textbooks(d, m, arms, radius, union, seed):
    rng = np.random.default_rng(seed)
    lam, length = 2.5, 1.5
    bandit = BlendingBandit(
        d, m, regularization=lam, noise=0.3, theta_bound=1.2, feature_bound=length, delta=0.1, radius=radius,
        union_bound=union, seed=seed,
    )  # fmt: skip
    book = Textbook(d, m, lam=lam, sigma=0.3, s=1.2, length=length, delta=0.1, radius=radius, union=union)
    bound = 0.0
    for _ in range(25):
        psi = rng.uniform(0, length, size=(arms, 1)) * unit_rows(rng, arms, d)
        decision = bandit.decide(psi)
        estimate, width, ucb, loss = book.indices(psi)
        assert decision.radius == pytest.approx(book.radius, rel=1e-11)
        np.testing.assert_allclose(decision.width, width, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(decision.estimate, estimate, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(decision.ucb, ucb, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(decision.loss, loss, rtol=1e-8, atol=1e-10)
        least = loss.min()
        assert set(decision.candidates) == {a for a in range(arms) if loss[a] <= least + 1e-9 and pareto.front(ucb)[a]}
        assert decision.arm in decision.candidates
        bound += loss[decision.arm] + 2 * book.radius * width[decision.arm]
        y = rng.normal(size=m)
        bandit.update(psi[decision.arm], y)
        book.update(psi[decision.arm], y)
    np.testing.assert_allclose(bandit.theta, np.linalg.solve(book.v, book.w.T).T, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(bandit.gram, book.v, rtol=1e-12, atol=1e-12)
    assert bandit.loss_bound == pytest.approx(bound / 25, rel=1e-9)
    assert bandit.stage == bandit.decisions == 25


def test_contract_radius_is_the_printed_formula():
    bandit = BlendingBandit(
        n_features=2, n_objectives=2, regularization=1.0, noise=0.1, theta_bound=1.5, feature_bound=1.0, delta=0.05,
        radius="paper", union_bound=False, rule="maximal-loss", seed=0,
    )  # fmt: skip
    for t in range(5):
        expected = 0.1 * math.sqrt(2 * math.log((1 + t) / 0.05)) + 1.5
        assert bandit.decide(np.eye(2)).radius == pytest.approx(expected, rel=1e-14)
        assert bandit.radius == pytest.approx(expected, rel=1e-14)
        bandit.update([1.0, 0.0], [0.0, 0.0])


def test_default_is_the_corrected_algorithm():
    options = BlendingBandit(2).options
    assert (options.radius, options.union_bound, options.rule) == ("determinant", True, "maximal-loss")


def test_equal_losses_of_three_arms_leave_the_dominated_one_out():
    """Indices (0, 5), (0, 4), (5, 0): every arm loses 5, the second is dominated (lemma 2's gap)."""
    rows = np.array([[0.0, 5.0], [0.0, 4.0], [5.0, 0.0]])
    corrected = taught(rows, printed=False).decide(np.eye(3))
    assert corrected.candidates.tolist() == [0, 2]
    printed = taught(rows, printed=True).decide(np.eye(3))
    assert printed.candidates.tolist() == [0, 1, 2]
    np.testing.assert_allclose(corrected.loss, 5, rtol=1e-6)


def taught(rows, *, printed):
    """Teach one feature per arm so often that its index is its mean, up to equal widths."""
    from blendctl.bandit.rules import MaximalLoss

    bandit = BlendingBandit(3, 2, noise=0.0, theta_bound=1e-9, rule=MaximalLoss(printed=printed), seed=1)
    count = 1000
    for arm, row in enumerate(rows):
        for _ in range(count):
            bandit.update(np.eye(3)[arm], row * (count + 1) / count)  # undo the shrinkage of the prior
    return bandit


def test_picks_are_uniform_over_candidates_and_reproducible():
    picks = [BlendingBandit(2, seed=s).decide(np.eye(2)).arm for s in range(400)]
    again = [BlendingBandit(2, seed=s).decide(np.eye(2)).arm for s in range(400)]
    assert picks == again
    assert 160 < sum(picks) < 240


def test_rounding_does_not_break_a_tie():
    rng = np.random.default_rng(0)
    for _ in range(50):
        psi = unit_rows(rng, 5, 7)  # lengths differ by rounding only
        assert BlendingBandit(7, seed=0).decide(psi).candidates.tolist() == [0, 1, 2, 3, 4]


def test_a_pinned_sequence_of_arms():
    """The arms of this run are part of the interface: the same seed selects them on every machine."""
    bandit = BlendingBandit(2, seed=7)
    arms = []
    for t in range(24):
        angles = [0.3 * t, 0.3 * t + 1.0, 0.3 * t + 2.5]
        psi = np.array([[math.cos(a), math.sin(a)] for a in angles])
        decision = bandit.decide(psi)
        arms.append(decision.arm)
        bandit.update(psi[decision.arm], [psi[decision.arm, 0], -abs(psi[decision.arm, 1])])
    assert "".join(map(str, arms)) == PINNED


PINNED = "010112222222222211111100"


def test_objective_scales_divide_the_feedback():
    plain, scaled = BlendingBandit(2, seed=0), BlendingBandit(2, seed=0, scales=[1.0, 10.0])
    plain.update([1.0, 0.0], [1.0, 0.2])
    scaled.update([1.0, 0.0], [1.0, 2.0])
    np.testing.assert_array_equal(plain.theta, scaled.theta)


def test_late_feedback_needs_nothing_from_the_decision():
    one, two = BlendingBandit(2, seed=0), BlendingBandit(2, seed=0)
    psi = np.array([[0.6, 0.8], [1.0, 0.0]])
    one.decide(psi)
    one.update(psi[0], [1.0, 0.0])
    two.update(psi[0], [1.0, 0.0])
    np.testing.assert_array_equal(one.theta, two.theta)


def test_zero_feature_is_legal_and_has_no_width():
    bandit = BlendingBandit(3, seed=0)
    decision = bandit.decide([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert decision.width.tolist() == [0.0, 1.0]
    assert decision.arm == 1
    bandit.update(np.zeros(3), [1.0, 1.0])
    assert bandit.stage == 1
    assert (bandit.theta == 0).all()


def test_one_arm_is_legal():
    decision = BlendingBandit(2).decide([[1.0, 0.0]])
    assert (decision.arm, decision.loss.tolist()) == (0, [0.0])


def test_explains_itself_in_words():
    bandit = BlendingBandit(2, noise=0.01, seed=0)
    for _ in range(200):
        bandit.update([1.0, 0.0], [1.0, 0.0])
        bandit.update([0.0, 1.0], [0.0, 0.0])
    words = bandit.decide(np.eye(2)).explain(arms=["fast", "safe"], objectives=["reward", "-cost"])
    assert words.startswith("fast: estimated loss")
    lead = np.subtract(*bandit.decide(np.eye(2)).ucb[:, 0])
    assert f"not safe: it may lose {lead:.3g}" in words
    assert "in reward" in words
    with pytest.raises(InputError, match="there are 2 arms to name"):
        bandit.decide(np.eye(2)).explain(arms=["fast"])


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda bandit: pickle.loads(pickle.dumps(bandit))])
def test_a_copy_goes_on_alone_as_the_original_would(copied):
    bandit = BlendingBandit(2, seed=0, rule="thompson")
    bandit.update([0.6, 0.8], [1.0, 2.0])
    twin = copied(bandit)
    for _ in range(20):
        assert bandit.decide(np.eye(2)).arm == twin.decide(np.eye(2)).arm
    twin.update([1.0, 0.0], [1.0, 2.0])
    assert (bandit.stage, twin.stage) == (1, 2)
    assert not np.array_equal(bandit.theta, twin.theta)


def bad_features():
    return [
        (np.zeros((2, 3)), "shape"),
        (np.zeros(2), "shape"),
        (np.empty((0, 2)), "shape"),
        ([[1.0, np.nan]], "finite"),
        ([[np.inf, 0.0]], "finite"),
        ([[1.0, 1.0]], "longer than feature_bound"),
        ([[1e200, 1e200]], "longer than feature_bound"),
        ([["a", "b"]], "numbers"),
        ([[1.0], [1.0, 2.0]], "numbers"),
        (np.array([[1j, 0]]), "numbers"),
    ]


@pytest.mark.parametrize(("features", "message"), bad_features())
def test_bad_features_are_named_and_change_nothing(features, message):
    bandit = BlendingBandit(2, seed=0)
    bandit.update([0.5, 0.5], [1.0, 2.0])
    before = bandit._core.state.copy(), bandit._core.rng.copy()
    with pytest.raises(InputError, match=message):
        bandit.decide(features)
    np.testing.assert_array_equal(bandit._core.state, before[0])
    np.testing.assert_array_equal(bandit._core.rng, before[1])


@pytest.mark.parametrize(
    ("features", "feedback", "message"),
    [
        ([1.0, 0.0], [np.nan, 0.0], "feedback must be finite"),
        ([1.0, 0.0], [0.0, np.inf], "feedback must be finite"),
        ([1.0, 0.0], [1e300, 0.0], "at most 1e"),
        ([1.0, 0.0], [1.0], "shape"),
        ([1.0, 0.0], [[1.0, 2.0]], "shape"),
        ([1.0, 0.0, 0.0], [1.0, 2.0], "shape"),
        ([np.nan, 0.0], [1.0, 2.0], "features must be finite"),
        ([2.0, 0.0], [1.0, 2.0], "longer than feature_bound"),
        ([1.0, 0.0], "xy", "numbers"),
    ],
)
def test_an_update_is_all_or_nothing(features, feedback, message):
    bandit = BlendingBandit(2, seed=0)
    bandit.update([0.5, 0.5], [1.0, 2.0])
    before = bandit._core.state.copy()
    with pytest.raises(InputError, match=message):
        bandit.update(features, feedback)
    np.testing.assert_array_equal(bandit._core.state, before)


@pytest.mark.parametrize(
    "options",
    [
        {"regularization": 0.5},
        {"regularization": 1.0, "feature_bound": 2.0},
        {"delta": 0.0},
        {"delta": 1.0},
        {"delta": math.nan},
        {"noise": -0.1},
        {"theta_bound": 0.0},
        {"radius": "printed"},
        {"rule": "maximal-los"},
        {"rule": 3},
        {"scales": [1.0]},
        {"scales": [1.0, 0.0]},
        {"discount": 0.0},
        {"discount": 1.1},
        {"on_large_feature": "ignore"},
        {"tie_tolerance": -1.0},
        {"union_bound": "yes"},
        {"noise": math.inf},
        {"noise": 1e200},
        {"noise": "0.1"},
        {"theta_bound": 1e308},
        {"regularization": 10**400},
        {"regularization": 1e308},
        {"feature_bound": 1e-200},
        {"delta": 5e-324},
        {"radius": np.array(["paper", "paper"])},
        {"scales": [1e-310, 1.0]},
        {"scales": "12"},
        {"discount": 1e-300},
        {"n_objectives": True},
        {"lambda_": 1.0},
        {"seed": -1},
        {"n_objectives": 0},
    ],
)
def test_bad_options_are_refused(options):
    with pytest.raises(InputError):
        BlendingBandit(2, **options)


def test_a_discount_that_lets_the_prior_fade_away_is_refused_with_the_least_that_works():
    with pytest.raises(InputError, match=r"discount must be at least 0\.4054 with 256 features"):
        BlendingBandit(256, discount=0.4)
    bandit = BlendingBandit(256, discount=0.41)
    for _ in range(600):
        bandit.update(np.eye(256)[0], [1.0, 1.0])
    decision = bandit.decide(np.eye(256)[:3])
    assert np.isfinite(decision.ucb).all()


def test_options_are_held_as_plain_numbers():
    """A float16 delta would otherwise make float16 bounds."""
    given = BlendingBandit(
        np.int64(2), np.int32(2), noise=np.float32(0.25), delta=np.float16(0.25), scales=np.array([1, 2])
    )
    plain = BlendingBandit(2, 2, noise=0.25, delta=0.25, scales=(1.0, 2.0))
    assert given.options == plain.options
    assert type(given.regret_bound(10)) is float
    assert given.regret_bound(10) == plain.regret_bound(10)


def test_a_misspelt_option_gets_a_suggestion():
    misspelt: Any = {"regularisation": 1.0}
    with pytest.raises(InputError, match='did you mean "regularization"'):
        BlendingBandit(2, **misspelt)
    with pytest.raises(InputError, match='did you mean "maximal-loss"'):
        BlendingBandit(2, rule="maximal-lost")


def test_large_features_can_be_rescaled_and_are_counted():
    bandit = BlendingBandit(2, on_large_feature="rescale", seed=0)
    decision = bandit.decide([[3.0, 4.0], [0.6, 0.8]])
    assert bandit.rescaled == 1
    np.testing.assert_allclose(decision.width, [1.0, 1.0])
    bandit.update([1e200, 0.0], [1.0, 1.0])
    assert bandit.rescaled == 2
    np.testing.assert_allclose(bandit.gram, [[2.0, 0.0], [0.0, 1.0]])
    with pytest.raises(InputError, match="finite"):
        bandit.update([np.inf, 0.0], [1.0, 1.0])


def test_vectors_normalised_in_single_precision_are_not_too_long():
    rng = np.random.default_rng(0)
    psi = rng.normal(size=(200, 7)).astype(np.float32)
    psi /= np.linalg.norm(psi, axis=1, keepdims=True)
    assert (np.linalg.norm(psi.astype(float), axis=1) > 1 + 1e-9).any()
    BlendingBandit(7, seed=0).decide(psi)


def test_the_message_shows_by_how_much_a_feature_is_too_long():
    with pytest.raises(InputError, match=r"actually: 1\.00001;"):
        BlendingBandit(2).decide([[1.00001, 0.0]])


def test_input_types_do_not_matter():
    results = []
    for features in ([[0, 1], [1, 0]], np.eye(2, dtype=np.float32)[::-1], np.asfortranarray(np.eye(2)[::-1])):
        bandit = BlendingBandit(2, seed=3)
        bandit.update(np.asarray(features)[0], [1, 0])
        results.append(bandit.decide(features).ucb)
    frozen = np.eye(2)[::-1].copy()
    frozen.flags.writeable = False
    bandit = BlendingBandit(2, seed=3)
    bandit.update(frozen[0], [1, 0])
    results.append(bandit.decide(frozen).ucb)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


def test_forgetting_follows_its_definition():
    rng = np.random.default_rng(0)
    d, discount = 3, 0.9
    bandit = BlendingBandit(d, 1, discount=discount, regularization=2.0, seed=0)
    v, w, prior = np.zeros((d, d)), np.zeros(d), np.full(d, 2.0)
    for t in range(40):
        psi, y = 0.9 * unit_rows(rng, 1, d)[0], rng.normal()
        bandit.update(psi, [y])
        v = discount * v + np.outer(psi, psi)
        w = discount * w + y * psi
        prior *= discount
        prior[t % d] = 2.0
        np.testing.assert_allclose(bandit.gram, v + np.diag(prior), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(bandit.theta[0], np.linalg.solve(v + np.diag(prior), w), rtol=1e-8, atol=1e-12)


def test_forgetting_keeps_a_floor_where_features_vanish():
    bandit = BlendingBandit(2, discount=0.9, seed=0)
    for _ in range(10_000):
        bandit.update([1.0, 0.0], [1.0, 1.0])
    assert 0.9 - 1e-9 <= bandit.gram[1, 1] <= 1 + 1e-9
    assert math.isfinite(bandit.decide(np.eye(2)).radius)
    with pytest.raises(StateError, match="forgets"):
        bandit.regret_bound()


def test_forgetting_tracks_a_world_that_changes():
    rng = np.random.default_rng(0)
    errors = {}
    for discount in (1.0, 0.99):
        bandit = BlendingBandit(2, 1, discount=discount, seed=0)
        for t in range(4000):
            theta = np.array([1.0, 0.0]) if t < 3000 else np.array([0.0, 1.0])
            psi = unit_rows(rng, 1, 2)[0]
            bandit.update(psi, [theta @ psi + 0.1 * rng.normal()])
        errors[discount] = np.linalg.norm(bandit.theta[0] - theta)
    assert errors[0.99] < 0.1 < 0.5 < errors[1.0]


def test_regret_bound_is_theorem_1_with_its_constants():
    bandit = BlendingBandit(3, 2, radius="paper", union_bound=False, noise=0.2, theta_bound=1.5, delta=0.1)
    t = 1000
    beta = 0.2 * math.sqrt(3 * math.log((1 + t) / 0.1)) + 1.5
    expected = beta * math.sqrt(8 * t * 2 * 3 * math.log(1 + t / 3))
    assert bandit.regret_bound(t) == pytest.approx(expected, rel=1e-12)
    assert bandit.regret_bound() == 0.0
    for horizon in (-1, 1.5, True, 10**400):
        with pytest.raises(InputError, match="horizon must be"):
            bandit.regret_bound(horizon)


@pytest.mark.parametrize(
    ("rule", "bounded"),
    [
        ("maximal-loss", True),
        ("pareto-uniform", True),
        ("linear", True),
        ("chebyshev", True),
        ("lexicographic", True),
        (Lexicographic(tolerances=[0.0, 0.1]), False),
        ("greedy", False),
        ("cost-budget", False),
        ("thompson", False),
        ("fixed", False),
        ("random", False),
    ],
)
def test_only_rules_with_a_regret_bound_have_one(rule, bounded):
    bandit = BlendingBandit(2, rule=rule)
    assert bandit.has_regret_bound is bounded
    if bounded:
        assert bandit.regret_bound(100) > 0
    else:
        with pytest.raises(StateError, match=f'"{bandit.rule.name}" has no regret bound; use loss_bound'):
            bandit.regret_bound(100)


def test_loss_bound_before_any_decision_is_infinite():
    assert BlendingBandit(2).loss_bound == math.inf
