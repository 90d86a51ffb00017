"""The scatter of a comparison: every method is labelled, and equal data make equal files."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from blendctl.reports.scatter import _spread, draw_scatter, figure_bytes


def standings(**more):
    def method(value, cost, score, sweep=()):
        result = {"return_mean": value, "cost_mean": cost, "corner_score": score}
        result |= {"return_ci95": [value - 1, value + 1], "cost_ci95": [cost - 5, cost + 5]}
        return result | ({"sweep": [method(*point) for point in sweep]} if sweep else {})

    methods = {
        "performant": method(26.0, 59.4, 0.0),
        "safe": method(20.9, 29.2, 0.0),
        "paper": method(24.0, 70.0, -0.7),
        "simplex": method(24.0, 44.0, 0.1, [(22.0, 35.0, 0.0), (25.0, 50.0, 0.1)]),
        "ceiling": method(25.1, 35.4, 0.62),
        "something new": method(25.1, 35.4, 0.62),
    }
    corner = {"return": 26.0, "cost": 29.2, "reason": None}
    result = {"world": "PointGoal1", "episodes": 30, "corner": corner, "methods": methods}
    return result | {"mixing_line": [[26.0, 59.4], [20.9, 29.2]]} | more


def test_every_method_is_labelled_with_its_score_and_no_labels_overlap():
    figure = draw_scatter(standings())
    text = figure_bytes(figure, "svg").decode()
    for words in (
        "performant  +0.00",
        "paper  -0.70",
        "ceiling  +0.62",
        "something new",
        "corner",
        "mixing line",
    ):
        assert words in text
    renderer = FigureCanvasAgg(figure).get_renderer()
    names = [note for note in figure.axes[0].texts if "  " in note.get_text()]
    boxes = [Text.get_window_extent(note, renderer) for note in names]  # without the lines to the points
    assert len(boxes) == 6
    for index, box in enumerate(boxes):
        assert box.count_overlaps(boxes[index + 1 :]) == 0


def test_equal_data_make_equal_files():
    for kind in ("png", "svg", "pdf"):
        once, again = (figure_bytes(draw_scatter(standings()), kind) for _ in range(2))
        assert once == again


def test_without_a_corner_or_intervals_it_is_still_drawn():
    result = standings(corner={"return": 26.0, "cost": 29.2, "reason": "no corner: they do not differ"})
    for method in result["methods"].values():
        method |= {"corner_score": None, "return_ci95": None, "cost_ci95": None}
    text = figure_bytes(draw_scatter(result), "svg").decode()
    assert "score 0.5" not in text
    assert "ceiling" in text


@given(st.lists(st.floats(0, 1), min_size=1, max_size=15).map(sorted))
def test_labels_keep_their_order_and_distance(wanted):
    places = _spread(wanted, gap=0.05)
    assert len(places) == len(wanted)
    assert min(places) >= -1e-9
    assert max(places) <= 1 + 1e-9
    assert all(np.diff(places) >= 0.05 - 1e-9)


def test_labels_with_room_stay_at_their_points():
    assert _spread([0.1, 0.4, 0.9], gap=0.05) == pytest.approx([0.1, 0.4, 0.9])
