"""The verdict of a blend's page, and where the blend stands against mixing its controllers."""

import numpy as np
import pytest

from blendctl.reports.blend_verdict import relations, verdict_sentence
from blendctl.reports.standing import standing_of
from blendctl.statistics import mean_interval

NOISE = np.random.default_rng(0).normal(size=(12, 2)) * [0.2, 0.4]


def sums(mean_return, mean_cost, *, noise=NOISE, own=0.0):
    """Return the summary of episodes; what is common to all drives cancels in pairs."""
    rows = np.array([mean_return, mean_cost]) + noise + own * np.random.default_rng(1).normal(size=noise.shape)
    returns, costs = rows.T
    return {
        "episodes": len(rows), "returns": returns.tolist(), "costs": costs.tolist(),
        "return_mean": returns.mean(), "cost_mean": costs.mean(),
        "return_ci95": mean_interval(returns), "cost_ci95": mean_interval(costs),
    }  # fmt: skip


def summary_of(blend, bold=(10.0, 20.0), wary=(5.0, 4.0), **others):
    alone = {"bold": sums(*bold)} | {name: sums(*one) for name, one in others.items()} | {"wary": sums(*wary)}
    return (sums(*blend[:2], own=blend[2] if len(blend) > 2 else 0.01) | {"alone": alone}), list(alone)


@pytest.mark.parametrize(
    ("blend", "words"),
    [
        ((11.0, 3.0), "The blend is better than bold and than wary alone: return "),
        ((9.0, 8.0), "The blend is better than random mixing of bold and wary: "),
        ((4.0, 6.0), "The blend is worse than wary alone: "),
        ((9.0, 22.0), "The blend is worse than bold alone: "),
        ((7.5, 12.0, 1.0), "The blend is not shown to differ from random mixing of bold and wary: "),
        ((7.5, 13.0), "The blend is worse than random mixing of bold and wary: "),
    ],
)
def test_the_verdict_names_the_strongest_statement_that_is_shown(blend, words):
    summary, names = summary_of(blend)
    verdict = verdict_sentence(summary, names)
    assert verdict.startswith(words)
    assert verdict.endswith(f"cost {summary['cost_mean']:.1f}, over 12 episodes.")


def test_a_controller_between_the_first_and_the_last_can_be_the_better_one():
    summary, names = summary_of((8.0, 10.0), middle=(8.5, 6.0))
    assert names == ["bold", "middle", "wary"]
    assert verdict_sentence(summary, names).startswith("The blend is worse than middle alone: ")


def test_without_a_cost_only_returns_are_compared():
    summary, names = summary_of((11.0, 30.0))
    verdict = verdict_sentence(summary, names, has_cost=False)
    assert verdict.startswith("The blend is better than bold and than wary alone: return ")
    assert "cost" not in verdict
    assert not any("cost" in line.lower() for line in relations(summary, names, has_cost=False))


def test_a_blend_without_controllers_alone_claims_nothing():
    summary = sums(9.0, 8.0)
    assert verdict_sentence(summary, ["bold", "wary"]).startswith("The blend alone was driven: return ")
    assert standing_of(summary, ["bold", "wary"]) is None
    assert relations(summary, ["bold", "wary"]) == []


def test_relations_state_only_shown_differences():
    summary, names = summary_of((9.0, 20.0, 0.3))
    returned, paid, score = relations(summary, names)
    bold, wary = (summary["alone"][name] for name in names)
    assert returned == (
        f"Return {summary['return_mean']:.1f}: lower than bold ({bold['return_mean']:.1f}), "
        f"higher than wary ({wary['return_mean']:.1f})."
    )
    assert "not shown to differ from bold" in paid
    assert "higher than wary" in paid
    assert score.startswith("Corner score -0.")
    assert score.endswith("0 is random mixing, 1 the return of bold at the cost of wary.")


def test_the_mixture_has_the_return_of_the_blend_and_lies_on_the_line():
    summary, names = summary_of((9.0, 8.0))
    standing = standing_of(summary, names)
    bold, wary = (summary["alone"][name] for name in names)
    returned, paid = standing.mixture.mean(axis=0)
    assert returned == pytest.approx(summary["return_mean"])
    share = (returned - wary["return_mean"]) / (bold["return_mean"] - wary["return_mean"])
    assert standing.share == pytest.approx(share)
    assert paid == pytest.approx(wary["cost_mean"] + share * (bold["cost_mean"] - wary["cost_mean"]))
    price = bold["cost_mean"] - wary["cost_mean"]
    assert standing.score.value == pytest.approx((paid - summary["cost_mean"]) / price)


def test_a_pair_without_a_corner_has_a_mixture_but_no_score():
    summary, names = summary_of((9.0, 8.0), bold=(4.0, 20.0))
    summary["arm_share"] = {"bold": 0.25, "wary": 0.75}
    standing = standing_of(summary, names)
    assert standing.share == 0.25
    assert standing.score.value is None
    assert "better" in verdict_sentence(summary, names)
