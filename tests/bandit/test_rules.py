import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from blendctl import BlendingBandit, pareto
from blendctl.bandit.rules import (
    RULES,
    BoundedRule,
    Chebyshev,
    CostBudget,
    DecisionInput,
    Fixed,
    Lexicographic,
    Linear,
    MaximalLoss,
    Rule,
    Thompson,
    make_rule,
)
from blendctl.errors import InputError, StateError

indices = hnp.arrays(np.float64, (5, 3), elements=st.integers(-4, 4).map(float))


def stage_of(ucb, *, updates=0.0, feedback_sum=None, tolerance=1e-9):
    ucb = np.asarray(ucb, dtype=float)
    arms, m = ucb.shape[-2:]
    lead = ucb.shape[:-2]
    return DecisionInput(
        ucb=ucb,
        estimate=ucb,
        width=np.zeros((*lead, arms)),
        loss=pareto.maximal_loss(ucb),
        radius=np.ones(lead),
        tolerance=np.full(lead, tolerance),
        updates=np.full(lead, updates),
        feedback_sum=np.zeros((*lead, m)) if feedback_sum is None else np.asarray(feedback_sum, float),
        whitened=np.zeros((*lead, arms, 2)),
        normals=lambda n: np.zeros((*lead, n)),
    )


def marked(rule, ucb, **more):
    return np.flatnonzero(rule.candidates(stage_of(ucb, **more))).tolist()


@given(indices)
def test_every_rule_of_the_front_picks_undominated_arms(mu):
    front = set(np.flatnonzero(pareto.front(mu)))
    for name in ("maximal-loss", "pareto-uniform", "chebyshev"):
        assert set(marked(make_rule(name), mu)) <= front
    assert set(marked(make_rule("pareto-uniform"), mu)) == front


@given(indices)
def test_rules_that_theorem_1_bounds_never_pick_what_is_beaten_in_every_index(mu):
    gap = pareto.suboptimality_gap(mu)
    bounded = [rule for rule in map(make_rule, RULES) if isinstance(rule, BoundedRule) and rule.regret_bounded]
    assert len(bounded) == 5
    for rule in bounded:
        assert (gap[marked(rule, mu)] == 0).all()


@given(indices)
def test_chebyshev_with_equal_weights_is_the_papers_rule(mu):
    assert marked(Chebyshev(), mu) == marked(MaximalLoss(), mu)


@settings(deadline=None)
@given(st.integers(0, 300), st.booleans())
def test_the_compiled_rule_is_the_plain_one(seed, printed):
    class Plain(MaximalLoss):  # not the class itself: goes the way of a rule of the user's
        pass

    rng = np.random.default_rng(seed)
    twins = [BlendingBandit(3, 2, rule=kind(printed=printed), seed=seed) for kind in (MaximalLoss, Plain)]
    for _ in range(20):
        psi = rng.integers(-1, 2, size=(4, 3)) * 0.5  # many ties
        one, two = (bandit.decide(psi) for bandit in twins)
        assert one.arm == two.arm
        np.testing.assert_array_equal(one.candidates, two.candidates)
        y = rng.integers(-1, 2, size=2)
        for bandit in twins:
            bandit.update(psi[one.arm], y)


def test_linear_takes_the_largest_weighted_sum():
    mu = [[3.0, 0.0], [0.0, 2.0], [1.9, 1.0]]
    assert marked(Linear(), mu) == [0]
    assert marked(Linear(weights=(1, 4)), mu) == [1]
    assert marked(Linear(weights=(1, 2)), [[2.0, 0.0], [0.0, 1.0]]) == [0, 1]


def test_greedy_trusts_the_prior_where_linear_explores():
    psi = np.array([[1.0, 0.0], [0.9, 0.0], [0.0, 0.5]])  # the last arm is unknown, the first is the best estimate
    chosen = {}
    for rule in ("greedy", "linear"):
        bandit = BlendingBandit(2, 2, rule=rule, prior=[[1.0, 1.0], [0.0, 0.0]], noise=1.0, seed=0)
        for _ in range(50):
            bandit.update(psi[0], [1.0, 1.0])
        chosen[rule] = bandit.decide(psi).arm
    assert chosen == {"greedy": 0, "linear": 2}


def test_chebyshev_reaches_what_no_weighted_sum_can():
    mu = [[4.0, 0.0], [1.5, 1.5], [0.0, 4.0]]  # the middle arm is inside the convex hull
    assert all(marked(Linear(weights=(w, 1 - w)), mu) != [1] for w in np.linspace(0.01, 0.99, 99))
    assert marked(Chebyshev(), mu) == [1]
    assert marked(Chebyshev(reference=(2.0, 2.0)), mu) == [1]
    assert marked(Chebyshev(weights=(10, 1)), mu) == [0]


def test_lexicographic_loses_only_its_tolerance():
    mu = [[1.0, 0.0], [0.95, 5.0], [0.5, 9.0]]
    assert marked(Lexicographic(), mu) == [0]
    assert marked(Lexicographic(tolerances=(0.1, 0.0)), mu) == [1]
    assert marked(Lexicographic(order=(1, 0)), mu) == [2]


def test_cost_budget_spends_what_is_left():
    mu = [[1.0, -0.5], [0.4, -0.1], [0.0, 0.0]]  # reward, -cost
    rule = CostBudget(budget=0.2)
    assert marked(rule, mu) == [1]  # a cost of 0.5 at once would break the budget
    rich = {"updates": 9.0, "feedback_sum": [0.0, -1.0]}  # 10 * 0.2 - 1.0 = 1.0 is left
    assert marked(rule, mu, **rich) == marked(MaximalLoss(), mu)
    broke = {"updates": 9.0, "feedback_sum": [0.0, -9.0]}
    assert marked(rule, mu, **broke) == [2]


def test_cost_budget_holds_in_the_long_run():
    rng = np.random.default_rng(0)
    bandit = BlendingBandit(2, 2, rule=CostBudget(budget=0.3), noise=0.1, seed=0)
    total = np.zeros(2)
    for _ in range(2000):  # arm 0 earns 1 and costs 1, arm 1 nothing
        arm = bandit.decide(np.eye(2)).arm
        y = np.array([1.0, -1.0]) * (arm == 0) + 0.05 * rng.normal(size=2)
        bandit.update(np.eye(2)[arm], y)
        total += y
    assert -total[1] / 2000 == pytest.approx(0.3, abs=0.02)


def test_fixed_and_random_are_what_they_say():
    mu = np.zeros((3, 2))
    assert marked(Fixed(arm=2), mu) == [2]
    assert marked(make_rule("random"), mu) == [0, 1, 2]
    with pytest.raises(InputError, match="there are 3 arms"):
        marked(Fixed(arm=3), mu)


def test_thompson_samples_as_widely_as_it_says():
    bandit = BlendingBandit(2, 1, rule="thompson", seed=0, radius="paper")
    shares = np.mean([bandit.decide(np.eye(2)).arm for _ in range(4000)])
    assert shares == pytest.approx(0.5, abs=0.04)
    bandit = BlendingBandit(2, 1, rule=Thompson(scale=0.0), seed=0)
    bandit.update([1.0, 0.0], [1.0])
    assert {bandit.decide(np.eye(2)).arm for _ in range(50)} == {0}


@pytest.mark.parametrize("name", RULES)
def test_every_rule_learns_and_decides(name):
    rng = np.random.default_rng(0)
    bandit = BlendingBandit(4, 3, rule=name, seed=0)
    for _ in range(50):
        psi = rng.normal(size=(3, 4))
        psi /= np.linalg.norm(psi, axis=1, keepdims=True) * 1.01
        decision = bandit.decide(psi)
        assert 0 <= decision.arm < 3
        bandit.update(psi[decision.arm], rng.normal(size=3))
    assert np.isfinite(bandit.loss_bound)
    assert RULES[name].__doc__


@pytest.mark.parametrize(
    "rule",
    [
        Linear(weights=(1,)),
        Linear(weights=(1, -1)),
        Chebyshev(reference=(1,)),
        Chebyshev(weights=(0, 0)),
        Lexicographic(order=(0, 0)),
        Lexicographic(order=(2,)),
        Lexicographic(tolerances=(1, 2, 3)),
        CostBudget(objective=2),
        CostBudget(budget=np.nan),
        Thompson(scale=-1),
        Fixed(arm=-1),
        Linear(weights="ab"),
        Linear(weights=3.0),
        Linear(weights=[1, [2]]),
        Linear(weights=(1e308, 1e308)),
        Chebyshev(reference="ab"),
        Chebyshev(reference=1.0),
        Lexicographic(order=5),
        Lexicographic(order=(0.5,)),
        Lexicographic(order="01"),
        Lexicographic(tolerances="x"),
        CostBudget(objective=0.5),
        CostBudget(budget="1"),
        CostBudget(budget=None),
        Thompson(scale="x"),
        Fixed(arm=1.5),
        Fixed(arm="1"),
        MaximalLoss(printed="no"),
    ],
)
def test_parameters_that_do_not_fit_are_refused_when_the_learner_is_made(rule):
    with pytest.raises(InputError, match=rule.name):
        BlendingBandit(2, 2, rule=rule)


def test_a_class_in_place_of_a_rule_is_named():
    with pytest.raises(InputError, match=r"actually: the class Linear; try Linear\(\)"):
        BlendingBandit(2, rule=Linear)


def test_a_rule_of_the_users_own():
    class Last:
        name = "last"

        def candidates(self, stage):
            mask = np.zeros(stage.loss.shape, dtype=bool)
            mask[..., -1] = True
            return mask

    assert isinstance(Last(), Rule)
    assert BlendingBandit(2, rule=Last()).decide(np.eye(2)).arm == 1


@pytest.mark.parametrize("answer", [np.zeros((1, 2), bool), np.ones((1, 3), bool), np.ones((1, 2))])
def test_a_rule_that_answers_nonsense_changes_nothing(answer):
    class Bad:
        name = "bad"

        def candidates(self, stage):
            stage.normals(5)
            return answer

    bandit = BlendingBandit(2, rule=Bad(), seed=0)
    before = bandit._core.state.copy(), bandit._core.rng.copy()
    with pytest.raises(StateError, match='the rule "bad"'):
        bandit.decide(np.eye(2))
    np.testing.assert_array_equal(bandit._core.state, before[0])
    np.testing.assert_array_equal(bandit._core.rng, before[1])


def test_without_a_tolerance_equal_entries_are_equal():
    assert marked(MaximalLoss(), [[0.0, 5.0], [0.0, 4.0], [5.0, 0.0]], tolerance=0.0) == [0, 2]
