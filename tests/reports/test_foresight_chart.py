"""The report of a look-ahead run: predicted and observed values, the budget, all in units of return and cost."""

import json
import shutil

import numpy as np
import pyarrow.dataset
import pytest
from short_drive import CLASSICAL, TRAINED, blend_to, lookahead_of_trained

from blendctl.reports.blend_page import BLEND_PAGE
from blendctl.reports.blend_run import read_blend_run
from blendctl.reports.foresight_chart import values_to_go
from blendctl.reports.run_dir import open_run_dir

BUDGET = 5
COMPARED = 20  # decisions per episode
NETWORK, HORIZON = lookahead_of_trained()
STEPS = HORIZON + (COMPARED - 1) * NETWORK.hold


def page_of(folder):
    return BLEND_PAGE.data(read_blend_run(open_run_dir(folder), replays=10))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return blend_to(folder, "--cost-budget", BUDGET, "--no-alone", controllers=TRAINED, steps=STEPS)


@pytest.fixture(scope="module")
def table(folder):
    return pyarrow.dataset.dataset(folder / "record").to_table().to_pandas()


def came(rewards, discount):
    """Sum a column of rewards by control step from each step on."""
    return np.array([(rewards[at:] * discount ** np.arange(len(rewards) - at)).sum() for at in range(len(rewards))])


def test_values_to_go_are_discounted_sums_over_the_rest_of_each_episode():
    rng = np.random.default_rng(0)
    steps, episodes = np.array([2, 3, 1, 4, 2, 5]), np.array([0, 0, 0, 1, 1, 1])
    per_step = rng.normal(size=6)  # the same in every step of a stage
    values = values_to_go(per_step * steps, steps, episodes, discount=0.5)
    for episode in (0, 1):
        rows = np.flatnonzero(episodes == episode)
        expected = came(np.repeat(per_step[rows], steps[rows]), 0.5)
        starts = np.cumsum(steps[rows]) - steps[rows]
        left = len(expected) - starts
        known = 0.5**left <= 0.05
        assert values[rows][known] == pytest.approx(expected[starts[known]])
        assert np.isnan(values[rows][~known]).all()
        window = values_to_go(per_step * steps, steps, episodes, discount=0.5, horizon=4)[rows]
        per_step_rows = np.repeat(per_step[rows], steps[rows])
        for start, value in zip(starts, window, strict=True):
            ahead = per_step_rows[start : start + 4]
            assert value == pytest.approx(came(ahead, 0.5)[0]) if len(ahead) == 4 else np.isnan(value)


def test_the_charts_equal_the_record_in_units_of_return_and_cost(folder, table):
    section = page_of(folder).section("foresight")
    assert [episode.number for episode in section.episodes] == [0, 1]
    rows = table[table["episode"] == 1]
    returns, costs, return_difference, _ = section.episodes[1].charts
    assert [line.name for line in returns.series] == ["predicted with bold", "predicted with wary", "observed"]
    assert returns.series[0].x == [*range(1, STEPS + 1, NETWORK.hold)]
    assert returns.series[1].y == pytest.approx(rows["foreseen_wary_reward"].tolist(), rel=1e-5)
    assert costs.series[0].y == pytest.approx((-rows["foreseen_bold_minus_cost"]).tolist(), rel=1e-5)
    gap = rows["foreseen_bold_reward"] - rows["foreseen_wary_reward"]
    assert return_difference.series[0].y == pytest.approx((gap / 2).tolist(), rel=1e-4)
    values = came(np.repeat((rows["reward"] / rows["steps"]).to_numpy(), rows["steps"]), NETWORK.discount)
    known = [value for value in returns.series[2].y if value is not None]
    assert len(known) == COMPARED
    assert known == pytest.approx(values[:: NETWORK.hold][:COMPARED], rel=1e-5)


def test_calibration_compares_the_controller_that_drove_with_what_came(folder, table):
    section = page_of(folder).section("foresight")
    calibration, over_run = section.charts[0], section.charts[2]
    assert [chart.title for chart in section.charts] == [
        "Calibration of return to go", "Calibration of cost to go", "Return to go over the run",
        "Cost to go over the run",
    ]  # fmt: skip
    compared = table[(table["step"] - 1) % STEPS <= STEPS - HORIZON]
    driven = np.where(compared["arm"] == 0, compared["foreseen_bold_reward"], compared["foreseen_wary_reward"])
    assert np.mean(calibration.series[1].x) == pytest.approx(driven.mean(), rel=1e-5)
    foreseen, calibrated, _ = over_run.series
    assert foreseen.y == pytest.approx([driven[:COMPARED].mean(), driven[COMPARED:].mean()], rel=1e-5)
    estimate = np.where(compared["arm"] == 0, compared["estimate_bold_reward"], compared["estimate_wary_reward"])
    assert np.mean(calibrated.y) == pytest.approx((estimate * compared["unit_reward"]).mean(), rel=1e-5)
    assert f"over all {2 * COMPARED} decisions" in over_run.note
    assert f"discounted by {NETWORK.discount:g} per control step" in section.note


def test_the_page_says_what_decided_and_how_the_budget_was_held(folder, tmp_path):
    summary, data = json.loads((folder / "summary.json").read_text()), page_of(folder)
    share = sum(cost > BUDGET for cost in summary["costs"]) / 2
    assert data.headline.claims[0] == "Features that decided: lookahead, cost budget 5."
    assert data.headline.claims[1].startswith(f"{share:.0%} of the episodes cost more than the budget of 5 (95%")
    (row,) = data.section("table").rows
    assert row.over_budget == (share, *summary["over_budget_ci95"])
    assert row.bound is None
    assert data.objectives == ["return to go", "-cost to go"]
    assert not any("loss" in chart.title for chart in data.section("charts"))
    shutil.copytree(folder / "record", tmp_path / "record")  # the same from the record alone
    assert page_of(tmp_path).headline.claims == data.headline.claims


def test_a_run_that_does_not_look_ahead_or_is_too_short_has_no_such_section(tmp_path):
    for name, controllers in (("plain", CLASSICAL), ("short", TRAINED)):
        folder = blend_to(tmp_path / name, "--no-alone", controllers=controllers, episodes=1, steps=20)
        assert page_of(folder).section("foresight") is None
