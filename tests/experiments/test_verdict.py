"""The verdict: claims from episodes, their intervals and words."""

import numpy as np
import pyarrow as pa
import pytest

from blendctl.experiments import verdict as module
from blendctl.experiments.tables import EPISODES, POINTS
from blendctl.experiments.verdict import in_words


def verdict(episodes, points=None):
    return module.verdict(episodes, POINTS.empty_table() if points is None else points)


def episodes(traces=1, count=20, *, blended_cost=30.0, blended_correct=0.7, random_correct=0.6):
    rng = np.random.default_rng(0)
    rows = []
    for trace in range(traces):
        for episode in range(count):
            hard = rng.normal()  # the layout: the same for all roles
            for role, gain, cost, correct in (
                ("performant", 25.0, 50.0, None),
                ("safe", 20.0, 25.0, None),
                ("random", 22.0, 37.0, random_correct),
                ("blended", 22.5, blended_cost, blended_correct),
            ):
                rows.append(
                    {
                        "world": "PointGoal1",
                        "trace": trace,
                        "role": role,
                        "data_point": 0,
                        "episode": episode,
                        "return": gain + 5 * hard + 0.1 * rng.normal(),
                        "cost": cost + 10 * hard,
                        "length": 1000,
                        "correct_ratio": None if correct is None else correct + 0.02 * rng.normal(),
                    }
                )
    return pa.Table.from_pylist(rows, schema=EPISODES)


def test_claims_have_intervals_and_confidence():
    summary = verdict(episodes())["PointGoal1"]
    assert summary["over"] == "episodes"
    for role in ("performant", "safe", "blended"):
        assert {"return_mean", "cost_mean", "return_ci95", "cost_ci95", "cost_rate"} <= summary[role].keys()
    assert summary["blended"]["cost_rate"] == pytest.approx(summary["blended"]["cost_mean"] / 1000)
    assert summary["correct_ratio"] == pytest.approx(0.7, abs=0.02)
    assert summary["correct_ratio_random"] == pytest.approx(0.6, abs=0.02)
    assert [claim["holds"] for claim in summary["claims"].values()] == [True] * 4
    claim = summary["claims"]["return_above_safe"]
    assert claim["difference"] == pytest.approx(2.5, abs=0.2)
    assert claim["ci95"][1] - claim["ci95"][0] < 0.3  # pairs on the same seeds: the layouts' spread is gone
    assert claim["confidence"] > 0.999


def test_claims_that_do_not_hold_are_stated_plainly():
    summary = verdict(episodes(blended_cost=60.0, blended_correct=0.6, random_correct=0.65))
    claims = summary["PointGoal1"]["claims"]
    assert not claims["cost_below_performant"]["holds"]
    assert not claims["correct_above_random"]["holds"]
    words = " ".join(in_words("PointGoal1", summary["PointGoal1"]))
    assert "does NOT cost less than the performant one: 6" in words
    assert "NOT correct more often than those of random switching" in words
    assert "confidence above 99.99%" in words


def test_several_traces_are_the_sample():
    summary = verdict(episodes(traces=3))["PointGoal1"]
    assert summary["over"] == "traces"
    assert summary["claims"]["return_above_safe"]["sample"] == 3


def test_a_single_episode_has_no_confidence():
    summary = verdict(episodes(count=1))["PointGoal1"]
    assert summary["claims"]["return_above_safe"]["ci95"] is None
    assert "there is no confidence" in in_words("PointGoal1", summary)[0]


def test_what_is_missing_is_said():
    some = episodes()
    summary = verdict(some.filter(pa.compute.field("role") != "safe"))["PointGoal1"]
    assert "return_above_safe" not in summary["claims"]
    assert "episodes are missing" in in_words("PointGoal1", summary)[0]


def with_ratios(table, **ratios):
    column = pa.array([ratios.get(role) for role in table["role"].to_pylist()], pa.float64())
    return table.set_column(table.schema.get_field_index("correct_ratio"), "correct_ratio", column)


def test_choices_that_nobody_judged_prove_nothing():
    summary = verdict(with_ratios(episodes()))["PointGoal1"]
    assert summary["correct_ratio"] is None
    assert set(summary["claims"]) == {"return_above_safe", "cost_below_performant"}
    assert "episodes are missing" in in_words("PointGoal1", summary)[2]


def test_a_difference_by_rounding_proves_nothing():
    summary = verdict(with_ratios(episodes(), blended=0.1 + 0.2, random=0.3))["PointGoal1"]
    assert summary["claims"]["correct_above_random"]["difference"] > 0
    assert not summary["claims"]["correct_above_random"]["holds"]


def test_a_learner_is_compared_with_chance_over_its_whole_trace():
    """Random switching is run densely at first, where the learner knows little: that must not weigh more."""
    rows = []
    for point in range(30):
        correct = 0.5 if point < 10 else 0.8
        rows += [
            {"world": "PointGoal1", "trace": 0, "role": role, "data_point": point, "episode": e, "return": 1.0 * e,
             "cost": 1.0, "length": 10, "correct_ratio": ratio + 0.01 * e}
            for role, ratio in (("blended", correct), ("random", 0.6)) for e in range(2)
            if role == "blended" or point < 10 or point % 10 == 0
        ]  # fmt: skip
    claim = verdict(pa.Table.from_pylist(rows, schema=EPISODES))["PointGoal1"]["claims"]["correct_above_random"]
    assert claim["difference"] == pytest.approx((0.5 + 0.8 + 0.8) / 3 - 0.6)
    assert claim["sample"] == 6
    early = [row for row in rows if row["role"] == "random" or row["data_point"] < 6]  # chance is ahead of the learner
    claim = verdict(pa.Table.from_pylist(early, schema=EPISODES))["PointGoal1"]["claims"]["correct_above_random"]
    assert claim["sample"] == 12


def losses(*pairs):
    rows = [
        {"world": "PointGoal1", "trace": 0, "role": "blended", "data_point": point, "max_loss_mean": loss,
         "max_loss_bound_mean": bound, "context_r2_reward": 0.7, "context_r2_cost": 0.5}
        for point, (loss, bound) in enumerate(pairs)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=POINTS)


def test_a_loss_above_its_bound_is_stated_plainly():
    summary = verdict(episodes(), losses((0.1, 0.5), (0.1, 0.3)))["PointGoal1"]
    assert summary["loss"]["below_bound"]
    assert (summary["loss"]["mean"], summary["loss"]["bound_mean"]) == (0.1, 0.3)
    assert "stays under its bound: 0.1 per step, bound 0.3" in in_words("PointGoal1", summary)[-1]
    summary = verdict(episodes(), losses((0.1, 0.5), (0.4, 0.3), (0.2, 0.1)))["PointGoal1"]
    assert not summary["loss"]["below_bound"]
    words = in_words("PointGoal1", summary)[-1]
    assert "does NOT stay under its bound, at 2 of 3 data points" in words
    assert words.endswith("the context explains 70% and 50% of reward and cost.")
    old = losses((0.4, 0.3)).drop_columns("max_loss_expected_mean")  # before 0.2.0
    assert in_words("PointGoal1", verdict(episodes(), old)["PointGoal1"])[-1].endswith("of reward and cost.")
    known = old.append_column("max_loss_expected_mean", pa.array([0.02]))
    summary = verdict(episodes(), known)["PointGoal1"]
    assert summary["loss"]["expected_mean"] == 0.02
    assert in_words("PointGoal1", summary)[-1].endswith("in the feedback that it leads to expect, the loss is 0.02.")
    assert len(in_words("PointGoal1", verdict(episodes())["PointGoal1"])) == 4  # nothing known, nothing said
