"""The documented columns of a record are complete and correct, with types and nulls."""

import re
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.dataset
import pytest

from blendctl.blender import Blender
from blendctl.controllers import load
from blendctl.controllers.zoo import PAIRS

PAGE = Path(__file__).parents[2] / "docs" / "blending.md"
WORDS = {"ARM": "(fast_one|slow)", "GOAL": "(reward|minus_cost)", "i": r"\d+"}


def documented(heading="Its columns"):
    """Yield (pattern, type, text on null) for each column documented under a heading."""
    section = PAGE.read_text(encoding="utf-8").split(f"### {heading}\n")[1].split("\n##")[0]
    for line in section.splitlines():
        if line.startswith("| `"):
            names, kind, _, null = (cell.strip() for cell in line.strip("|").split("|"))
            for name in re.findall("`(.+?)`", names):
                parts = [WORDS.get(part, part) for part in name.split("_")]
                yield re.compile("_".join(parts)), kind, null


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A run with a fault, an observation of NaN, and late and missing feedback."""
    folder = tmp_path_factory.mktemp("drive") / "record"
    steps = iter(range(1000))

    def fast(observation):
        if next(steps) == 20:
            raise OSError("sensor unplugged")
        return [1.0, 0.0]

    def slow(observation):
        return [0.1, 0.0]

    with Blender([fast, slow], ["fast-one", "slow"], safe_action=[0.0, 0.0], record=folder, seed=0) as blender:
        for step in range(1, 81):
            blender.act(np.full(3, np.nan) if step == 40 else np.zeros(3))
            if step not in (50, 60):
                blender.observe(reward=0.1, cost=0.0, done=step == 80)
            if step == 52:
                blender.observe(reward=0.1, cost=0.0, step=50)
    return pyarrow.dataset.dataset(folder).to_table()


def test_every_column_is_in_the_table_with_its_type(table):
    rows = list(documented())
    for column in table.schema:
        kinds = [kind for pattern, kind, _ in rows if pattern.fullmatch(column.name)]
        assert kinds == [str(column.type)], column
    for pattern, _, _ in rows:
        assert any(pattern.fullmatch(name) for name in table.column_names), pattern.pattern


def test_columns_are_null_only_as_documented(table):
    nulls = {name: table[name].null_count for name in table.column_names}
    for pattern, _, null in documented():
        missing = sum(count for name, count in nulls.items() if pattern.fullmatch(name))
        assert (missing == 0) == null.startswith("never"), f"{pattern.pattern}: {missing} nulls"


def test_a_look_ahead_run_has_the_columns_of_its_table_and_the_others(tmp_path):
    pair = [load(name) for name in PAIRS["PointGoal1"]]
    size = pair[0].observation_size
    with Blender(
        pair, ["fast-one", "slow"], features="lookahead", safe_action=[0.0, 0.0], record=tmp_path, seed=0
    ) as blender:
        for step in range(1, 31):
            blender.act(np.full(size, np.nan if step == 11 else 0.0))
            blender.observe(reward=0.1, cost=0.0, done=step == 30)
    table = pyarrow.dataset.dataset(tmp_path).to_table()
    rows, more = list(documented()), list(documented("In a look-ahead run"))
    for column in table.schema:
        kinds = [kind for pattern, kind, _ in rows + more if pattern.fullmatch(column.name)]
        assert kinds == [str(column.type)], column
    for pattern, _, null in more:
        nulls = [table[name].null_count for name in table.column_names if pattern.fullmatch(name)]
        assert set(nulls) == {1}, pattern.pattern
        assert null.startswith(("where", "the same"))


def test_the_values_agree_with_the_documentation(table):
    frame = table.to_pandas()
    steady = frame[(frame["cause"] == "rule") & ~frame["switched"]]
    assert len(steady) > 0
    assert steady["reason"].isna().all()
    assert frame["reason"].drop(steady.index).notna().all()
    for arm in ("fast_one", "slow"):
        index = frame[f"estimate_{arm}_reward"] + frame["radius"] * frame[f"width_{arm}"]
        assert frame[f"ucb_{arm}_reward"].to_numpy() == pytest.approx(index.to_numpy(), nan_ok=True)
    silent = frame[frame["feedback_reward"].isna()]
    assert set(silent["stage"]) == {50, 60}
    assert (silent["reward"] == 0.0).all()
    assert frame[frame["late"]]["stage"].tolist() == [50]
