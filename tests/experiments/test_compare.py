"""A comparison: its units, its table, and standings that choose nothing by what they judge."""

import numpy as np
import pyarrow as pa
import pytest

from blendctl.errors import InputError
from blendctl.experiments.compare import ALONE, Comparison
from blendctl.experiments.comparison_units import episodes
from blendctl.experiments.engines import FinishedUnit
from blendctl.experiments.standings import mark_shown, point_means, standings
from blendctl.experiments.units import Result
from blendctl.statistics import proportion_interval
from blendctl.switches.methods import METHODS, find_method, with_values

PAIR = ("PointGoal1/ppo", "PointGoal1/ppo-lagrangian")


def made_up(comparison, outcome):
    """Return the table of a comparison in which `outcome(unit, seed)` is return and cost of an episode."""
    planned = comparison.units()
    finished = []
    for entry in planned:
        rows = []
        for index in range(entry.count):
            value, cost = outcome(entry, entry.unit.parameters["seed"] + index)
            sums = {"length": 10, "driven_0": 5.0, "switches": 1, "correct": 0, "judged": 0, "gap": 0.0, "loss": 0.0}
            rows.append({"return": value, "cost": cost} | sums)
        table = pa.Table.from_pylist(rows) if rows else None
        finished.append(FinishedUnit(entry.unit, Result({}, table), stored=False))
    return comparison.rows(planned, finished)


def test_the_two_controllers_alone_always_run():
    assert Comparison("PointGoal1", PAIR, ("paper",)).methods == (*ALONE, "paper")
    assert Comparison("blendctl/PointGoal1-v0", PAIR, ("safe", "safe")).methods == ALONE


def test_an_interrupted_comparison_of_three_controllers_has_its_finished_methods():
    comparison = Comparison("PointGoal1", (*PAIR, "stop"), ("random",), episodes=2, values={"random": {"share": "0.4"}})
    whole = ("performant", "safe", "random")
    done = [FinishedUnit(entry.unit, Result({}), stored=False) for entry in comparison.units()]
    left = [one for one, entry in zip(done, comparison.units(), strict=True) if entry.method in whole]
    finished = comparison.finished(left)
    assert finished is not None
    assert finished.methods == whole  # without controller-2, which was to come
    assert finished.values == {"random": {"share": "0.4"}}
    assert {entry.method for entry in finished.units()} == set(whole)
    assert comparison.finished(left[1:]) is None


def test_more_controllers_than_two_drive_together():
    three = (*PAIR, "stop")
    planned = Comparison("PointGoal1", three, ("random-episode",), episodes=1, steps=50, judge_every=0).units()
    tables = {entry.method: episodes(entry.unit.parameters, None).table for entry in planned}
    assert tables["performant"]["driven_0"].to_pylist() == [50]
    assert abs(tables["safe"]["return"].to_pylist()[0]) < 1e-3  # the last one is the safe one: it stands


def test_look_ahead_networks_of_a_run_directory_are_part_of_every_unit(tmp_path):
    shipped = {entry.unit.key for entry in Comparison("PointGoal1", PAIR, ("lookahead",)).units()}
    other = Comparison("PointGoal1", PAIR, ("lookahead",), lookahead=(str(tmp_path),))
    assert other.lookahead == (str(tmp_path / "lookahead.safetensors"),)
    assert not shipped & {entry.unit.key for entry in other.units()}
    with pytest.raises(InputError, match="networks must differ"):
        Comparison(
            "PointGoal1", PAIR, ("lookahead",), lookahead=(str(tmp_path), str(tmp_path / "lookahead.safetensors"))
        )


def test_methods_that_look_ahead_run_with_all_networks_and_the_others_once(tmp_path):
    trainings = tuple(str(tmp_path / name) for name in "abc")
    comparison = Comparison("PointGoal1", PAIR, ("lookahead", "random"), episodes=10, seed=0, lookahead=trainings)

    def outcome(entry, seed):
        """Every network returns 1 more than the one before."""
        alone = {"performant": (26.0, 60.0), "safe": (20.0, 20.0)}
        return alone.get(entry.method) or (22.0 + entry.networks + seed % 2, 20.0)

    table = made_up(comparison, outcome)
    rows = table.to_pylist()
    assert {row["networks"] for row in rows if row["method"] == "lookahead"} == {0, 1, 2}
    assert {row["networks"] for row in rows if row["method"] != "lookahead"} == {0}
    methods = standings(comparison.compared(), table)["methods"]
    summary = methods["lookahead"]
    assert summary["return_mean"] == pytest.approx(23.5)
    assert summary["episodes"] == 10
    assert [one["return_mean"] for one in summary["networks"]] == pytest.approx([22.5, 23.5, 24.5])
    assert summary["corner_score"] == pytest.approx(np.mean([one["corner_score"] for one in summary["networks"]]))
    # The networks differ by 1, single episodes hardly: the interval is that of three networks.
    low, high = summary["return_ci95"]
    widths = [np.diff(one["return_ci95"])[0] for one in summary["networks"]]
    assert high - low > 1.5 * max(widths)
    assert low < 22.6
    assert high > 24.4
    assert len(summary["sweep"]) == len(METHODS["lookahead"].settings)
    assert "networks" not in methods["random"]
    shown = mark_shown(comparison.compared(), table).to_pylist()
    assert sum(row["shown"] for row in shown if row["method"] == "lookahead") == 3 * 10


def test_methods_that_look_ahead_can_have_more_controllers_and_the_corner_is_of_the_pair():
    three = (PAIR[0], "vfh", PAIR[1])
    comparison = Comparison("PointGoal1", PAIR, ("lookahead", "paper"), episodes=10, lookahead_controllers=three)
    used = {entry.method: entry.unit.parameters["controllers"] for entry in comparison.units()}
    assert used == {"performant": [*PAIR], "safe": [*PAIR], "paper": [*PAIR], "lookahead": [*three]}
    assert comparison.parts["look-ahead"]["controllers"] == [*three]
    assert not Comparison("PointGoal1", PAIR, ("paper",), lookahead_controllers=three).parts
    alone = {"performant": (26.0, 60.0), "safe": (20.0, 20.0)}
    table = made_up(comparison, lambda entry, seed: alone.get(entry.method, (26.0, 20.0)))
    methods = standings(comparison.compared(), table)["methods"]
    assert methods["lookahead"]["controllers"] == [*three]
    assert methods["paper"]["controllers"] == [*PAIR]
    assert methods["lookahead"]["corner_score"] == pytest.approx(1.0)


def test_more_episodes_keep_the_units_that_were_run():
    few = {entry.unit.key for entry in Comparison("PointGoal1", PAIR, episodes=30).units()}
    many = {entry.unit.key for entry in Comparison("PointGoal1", PAIR, episodes=60).units()}
    assert few < many
    other = {entry.unit.key for entry in Comparison("PointGoal1", PAIR, episodes=30, seed=7).units()}
    assert not few & other


def test_trainings_come_before_what_needs_them_and_see_other_layouts():
    planned = Comparison("PointGoal1", PAIR, ("offline", "ceiling"), episodes=40).units()
    alone, planned = planned[:6], planned[6:]
    assert {entry.method for entry in alone} == {"performant", "safe"}  # without them nothing can be scored
    assert [entry.setting for entry in planned[:3]] == [-1, -1, 0]
    assert planned[2].method == "ceiling"  # the longest first
    offline = [entry for entry in planned if entry.method == "offline" and entry.setting >= 0]
    assert len(offline) == 2 * 3
    assert {entry.unit.after.key for entry in offline} == {entry.unit.key for entry in planned[:2]}
    assert abs(planned[0].unit.parameters["seed"] - 1_000_000) > 10**9


def test_every_setting_and_episode_has_its_row_in_order():
    comparison = Comparison("PointGoal1", PAIR, ("random",), episodes=5, block=2, seed=10)
    table = made_up(comparison, lambda entry, seed: (float(seed), float(entry.setting)))
    assert len(table) == (1 + 1 + 3) * 5
    random = table.to_pylist()[10:]
    assert [row["seed"] for row in random] == [10, 11, 12, 13, 14] * 3
    assert [row["return"] for row in random] == [row["seed"] for row in random]
    assert [row["setting"] for row in random] == [0] * 5 + [1] * 5 + [2] * 5
    assert random[0]["parameters"] == '{"share": 0.25}'


def test_a_swept_method_is_judged_by_episodes_that_did_not_choose():
    """One threshold shines on even episodes, another on odd ones: choosing fairly must meet the wrong half."""
    good, bad = (26.0, 20.0), (20.0, 60.0)

    def outcome(entry, seed):
        method, setting = entry.method, entry.setting
        if method == "performant":
            return 26.0, 60.0
        if method == "safe":
            return 20.0, 20.0
        if method == "simplex" and setting in (1, 4):
            return good if (seed % 2 == 0) == (setting == 1) else bad
        return 20.0, 59.0

    comparison = Comparison("PointGoal1", PAIR, ("simplex", "random"), episodes=10, seed=0)
    table = made_up(comparison, outcome)
    summary = standings(comparison.compared(), table)["methods"]
    assert summary["simplex"]["corner_score"] == pytest.approx(-1.0)
    assert summary["simplex"]["choice"] == "on other episodes"
    assert [setting["corner_score"] for setting in summary["simplex"]["sweep"]][1] == pytest.approx(0.0)
    assert summary["random"]["choice"] == "fixed"
    assert summary["random"]["parameters"] == [{"share": 0.5}]
    shown = mark_shown(comparison.compared(), table).to_pylist()
    for row in shown:
        if row["method"] == "simplex" and row["shown"]:
            assert row["setting"] == (4 if row["seed"] % 2 == 0 else 1)
    assert sum(row["shown"] for row in shown) == 4 * 10


def test_a_learner_that_helped_to_choose_does_not_judge():
    """With blocks, whose worlds share a learner, whole blocks choose for the others."""

    def outcome(entry, seed):
        method, setting = entry.method, entry.setting
        alone = {"performant": (26.0, 60.0), "safe": (20.0, 20.0)}
        lucky = setting == (1 if seed < 4 else 4)  # in the first block one setting shines, in the second another
        return alone.get(method) or ((26.0, 20.0) if lucky else (20.0, 60.0))

    comparison = Comparison("PointGoal1", PAIR, ("simplex",), episodes=8, block=4, seed=0)
    shown = mark_shown(comparison.compared(), made_up(comparison, outcome)).to_pylist()
    chosen = {row["seed"]: row["setting"] for row in shown if row["method"] == "simplex" and row["shown"]}
    assert chosen == {seed: 4 if seed < 4 else 1 for seed in range(8)}
    uneven = Comparison("PointGoal1", PAIR, ("simplex",), episodes=5, block=4, seed=0)
    shown = mark_shown(uneven.compared(), made_up(uneven, outcome)).to_pylist()
    chosen = {row["seed"]: row["setting"] for row in shown if row["method"] == "simplex" and row["shown"]}
    assert chosen[1] == chosen[3] == 1  # not by the one episode of the second block


def test_standings_are_as_promised():
    def outcome(entry, seed):
        points = {"performant": (26.0, 59.4), "safe": (20.9, 29.2)}
        value, cost = points.get(entry.method, (25.1, 35.4))
        return value + (seed % 3 - 1), cost + (seed % 2)

    comparison = Comparison("PointGoal1", PAIR, ("ceiling",), episodes=6, seed=0)
    summary = standings(comparison.compared(), made_up(comparison, outcome))
    assert summary["corner"] == {"return": pytest.approx(26.0), "cost": pytest.approx(29.7), "reason": None}
    ceiling = summary["methods"]["ceiling"]
    assert ceiling["corner_score"] == pytest.approx(0.618, abs=0.001)
    low, high = ceiling["return_ci95"]
    assert low < ceiling["return_mean"] < high
    assert ceiling["corner_score_ci95"] == pytest.approx([0.618] * 2, abs=0.001)  # all share their luck
    assert ceiling["correct_ratio"] is None


def test_intervals_over_networks_stay_possible():
    def points(costs):  # (networks, episodes)
        return np.stack([np.ones(np.shape(costs)), costs], axis=-1)

    alone = points([np.zeros(200)])[0]
    none, some, all_or_none = np.zeros((2, 200)), np.zeros((3, 200)), np.zeros((2, 200))
    some[2, :13], all_or_none[1] = 30.0, 30.0
    for costs, rate in ((none, 0.0), (some, 13 / 600), (all_or_none, 0.5)):
        means = point_means(points(costs), alone, alone)
        low, high = means["over_budget_ci95"]
        assert means["over_budget"] == pytest.approx(rate)
        assert 0.0 <= low <= rate <= high <= 1.0
        assert high >= proportion_interval(round(200 * rate), 200)[1]
        assert 0.0 <= means["cost_ci95"][0] <= means["cost_ci95"][1] <= 30.0
    assert point_means(points(np.ones((2, 1))), alone[:1], alone[:1])["return_ci95"] is None


def test_controllers_that_do_not_differ_leave_scores_empty():
    comparison = Comparison("PointGoal1", PAIR, ("simplex",), episodes=2, seed=0)
    summary = standings(comparison.compared(), made_up(comparison, lambda *_: (1.0, 1.0)))
    assert "no corner" in summary["corner"]["reason"]
    assert summary["methods"]["simplex"]["corner_score"] is None
    assert summary["methods"]["simplex"]["corner_score_reason"] == summary["corner"]["reason"]
    assert summary["methods"]["simplex"]["choice"] == "no corner: the middle setting"


def test_parameters_can_be_set_and_swept():
    assert with_values(METHODS["ceiling"], {"samples": "5"}).settings[0]["samples"] == 5
    swept = with_values(METHODS["ceiling"], {"horizon": "30,60"})
    assert len(swept.settings) == 2
    assert swept.shown is None
    assert with_values(METHODS["random"], {"share": "0.4"}).shown == 0
    assert with_values(METHODS["random"], {"share": "0.9,0.1,0.5"}).shown is None  # other values of the same number
    assert with_values(METHODS["simplex"], {"threshold": "3"}).settings == [{"threshold": 3.0, "hold": 1}]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"ceiling": {"horizons": "30"}}, 'did you mean "horizon"'),
        ({"ceiling": {"horizon": "0"}}, "from 1"),
        ({"ceiling": {"horizon": "1.5"}}, "whole numbers"),
        ({"ceiling": {"cost_weight": "nan"}}, "numbers from 0"),
        ({"ceiling": {"cost_weight": ""}}, "separated by commas"),
        ({"paper": {"sigma": "1"}}, "has no parameters"),
        ({"shared": {"share": "0.1"}}, "not among the methods"),
        ({"celing": {"share": "0.1"}}, 'did you mean "ceiling"'),
    ],
)
def test_wrong_parameters_are_refused(values, words):
    with pytest.raises(InputError, match=words):
        Comparison("PointGoal1", PAIR, ("ceiling", "paper"), values=values)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"methods": ("ceilling",)}, 'did you mean "ceiling"'),
        ({"world": "PointGaol1"}, 'did you mean "PointGoal1"'),
        ({"controllers": ("PointGoal1/ppo",)}, "two controllers"),
        ({"methods": ("controller-3",)}, 'no "controller-3": the methods switch between 2 controllers'),
        ({"episodes": 0}, "episodes must be"),
        ({"steps": 0}, "steps must be"),
        ({"seed": 2**32 - 3}, "seeds end"),
    ],
)
def test_wrong_comparisons_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        Comparison(**({"world": "PointGoal1", "controllers": PAIR} | options))


def test_every_method_says_what_it_is():
    for name, method in METHODS.items():
        assert find_method(name) is method
        assert 10 < len(method.help) < 70
        assert all(parameter.help for parameter in method.parameters.values())
        assert method.shown is None or method.shown < len(method.settings)
        assert np.isfinite([value for setting in method.settings for value in setting.values()]).all()
