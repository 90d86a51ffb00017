"""The documented columns of the result tables are those that the code writes."""

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from blendctl.experiments.compare import COLUMNS
from blendctl.experiments.tables import EPISODES

ROOT = Path(__file__).parents[2]


def section(page, start):
    """Return a page's text from `start` to the next heading or file description."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8").split(start, 1)[1]
    return re.split(r"\n(?:#|`compare\.png|```)", text, maxsplit=1)[0]


def test_the_columns_of_compare_are_documented_in_order():
    rows = re.findall(r"^\| (`.+?) \|", section("compare.md", "`compare.parquet`: one row"), re.MULTILINE)
    assert re.findall(r"`(\w+)`", " ".join(rows)) == [*COLUMNS.names, "shown"]


def test_the_columns_of_episodes_are_documented():
    assert set(EPISODES.names) <= set(re.findall(r"`(\w+)`", section("reproduce.md", "### episodes.parquet")))


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("compare-PointGoal1-seeds/compare.parquet", [*COLUMNS.names, "shown"]),
        ("paper-0.1/episodes.parquet", EPISODES.names),
        ("quick/episodes.parquet", EPISODES.names),
    ],
)
def test_published_tables_have_the_documented_columns(file, names):
    assert pq.read_schema(ROOT / "results" / file).names == names
