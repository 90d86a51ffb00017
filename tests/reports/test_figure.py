"""The paper's figure: its curves equal the table."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from blendctl.experiments.tables import POINTS
from blendctl.reports.figure import draw_reproduction
from blendctl.reports.scatter import figure_bytes

WORLDS = ("PointGoal1", "CarButton1")


def points(worlds=WORLDS, count=12, traces=1):
    rng = np.random.default_rng(0)
    rows = []
    for world in worlds:
        for trace in range(traces):
            for role, level in (("performant", 25.0), ("safe", 20.0), ("random", 22.0), ("blended", 23.0)):
                for point in range(count):
                    mean = level + 0.1 * rng.normal()
                    row = {"world": world, "trace": trace, "role": role, "data_point": point}
                    row |= {"interactions": 30_000 * (point + 1)}
                    for name in ("return", "cost"):
                        row |= {f"{name}_mean": mean, f"{name}_sd": 4.0, f"{name}_low": mean - 1}
                        row[f"{name}_high"] = mean + 1
                    if role in ("random", "blended"):
                        row |= {"correct_ratio": 0.6, "correct_ratio_sd": 0.05, "max_loss_mean": 1e-4}
                    if role == "blended":
                        row |= {"max_loss_bound_mean": 0.1 / (point + 1)}
                    rows.append(row)
    return pa.Table.from_pylist(rows, schema=POINTS)


def test_four_rows_and_a_column_per_world():
    figure = draw_reproduction(points(), titles={"PointGoal1": "PointGoal1\nPPO + PPO-Lagrangian"})
    axes = np.array(figure.axes).reshape(4, 2)
    assert [panel.get_title() for panel in axes[0]] == ["PointGoal1\nPPO + PPO-Lagrangian", "CarButton1"]
    labels = [panel.get_ylabel() for panel in axes[:, 0]]
    assert labels == ["average return", "average cost", "correct choices", "average maximal loss"]
    assert axes[3, 0].get_yscale() == "log"
    assert "interactions" in axes[3, 0].get_xlabel()


def test_curves_equal_the_table_and_differ_without_colour():
    table = points(worlds=WORLDS[:1])
    panel = draw_reproduction(table).axes[0]
    blended = [row["return_mean"] for row in table.to_pylist() if row["role"] == "blended"]
    drawn = [list(line.get_ydata()) for line in panel.lines]
    assert any(np.allclose(curve, blended) for curve in drawn)
    lines: Any = panel.lines
    looks = {(str(line.get_linestyle()), line._dash_pattern[1] and tuple(line._dash_pattern[1])) for line in lines}
    assert len(looks) == len(panel.lines) == 3
    assert len({line.get_marker() for line in panel.lines}) == 3


def test_several_traces_are_averaged():
    table = points(worlds=WORLDS[:1], traces=3)
    panel = draw_reproduction(table).axes[0]
    rows = [row for row in table.to_pylist() if row["role"] == "safe" and row["data_point"] == 0]
    mean = np.mean([row["return_mean"] for row in rows])
    assert any(line.get_ydata()[0] == pytest.approx(mean) for line in panel.lines)


def test_one_data_point_can_be_drawn_and_equal_data_make_equal_files():
    table = points(count=1)
    for kind, start in (("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")):
        first, second = (figure_bytes(draw_reproduction(table), kind) for _ in range(2))
        assert first.startswith(start)
        assert first == second
