"""Shapes cover as much of a picture as they should, and nothing else."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blendctl.envs.drawing import Drawing, develop

SIZE, SCALE = 120, 20.0  # pixels, pixels per metre
WHITE = (255, 255, 255)


def area(draw):
    """Covered area in square metres of what `draw` adds to a black picture of 6 m by 6 m."""
    canvas = np.zeros((SIZE, SIZE, 3), np.float32)
    drawing = Drawing(center=(0.0, 0.0), scale=SCALE, width=SIZE, height=SIZE)
    draw(drawing)
    drawing.paint(canvas)
    return float(canvas[..., 0].sum()) / 255.0 / SCALE**2


places = st.tuples(st.floats(-1, 1), st.floats(-1, 1))
angles = st.floats(-4, 4)
unhurried = settings(deadline=None)  # the first call compiles


@unhurried
@given(places, st.floats(0.2, 1.5))
def test_a_disc_covers_its_area(at, radius):
    assert area(lambda d: d.disc(at, radius, color=WHITE)) == pytest.approx(math.pi * radius**2, rel=0.02)


@unhurried
@given(places, angles, st.floats(0.2, 1.0), st.floats(0.2, 1.0))
def test_a_turned_box_covers_its_area(at, turn, wide, high):
    painted = area(lambda d: d.box(at, (wide, high), color=WHITE, turn=turn))
    assert painted == pytest.approx(4 * wide * high, rel=0.03)


@unhurried
@given(places, angles, st.floats(0.3, 2.0), st.floats(0.2, 0.5))
def test_a_line_has_round_ends(at, turn, length, width):
    end = (at[0] + length * math.cos(turn), at[1] + length * math.sin(turn))
    exact = length * width + math.pi * width**2 / 4
    assert area(lambda d: d.line(at, end, width=width, color=WHITE)) == pytest.approx(exact, rel=0.03)


@unhurried
@given(angles)
def test_a_triangle_covers_its_area_whichever_way_it_runs(turn):
    points = [(math.cos(turn + n * 2 * math.pi / 3), math.sin(turn + n * 2 * math.pi / 3)) for n in range(3)]
    exact = 3 * math.sqrt(3) / 4
    for order in (points, points[::-1]):
        assert area(lambda d: d.triangle(tuple(order), color=WHITE)) == pytest.approx(exact, rel=0.03)  # noqa: B023


def test_an_outline_leaves_the_middle_free():
    canvas = np.zeros((SIZE, SIZE, 3), np.float32)
    drawing = Drawing(center=(0.0, 0.0), scale=SCALE, width=SIZE, height=SIZE)
    drawing.disc((0.0, 0.0), 1.0, color=WHITE, outline=0.2)
    drawing.paint(canvas)
    assert canvas[SIZE // 2, SIZE // 2].tolist() == [0, 0, 0]
    assert canvas[SIZE // 2, SIZE // 2 + int(SCALE)].tolist() == [255, 255, 255]


def test_up_is_up_and_colours_mix_by_opacity():
    canvas = np.zeros((SIZE, SIZE, 3), np.float32)
    drawing = Drawing(center=(0.0, 0.0), scale=SCALE, width=SIZE, height=SIZE)
    drawing.disc((-1.0, 2.0), 0.3, color=(200, 100, 50), alpha=0.5)
    drawing.paint(canvas)
    picture = develop(canvas)
    assert picture.dtype == np.uint8
    assert picture[SIZE // 2 - 40, SIZE // 2 - 20].tolist() == [100, 50, 25]
    assert picture[SIZE // 2 + 40].sum() == 0


@pytest.mark.parametrize("at", [(1e12, 0.0), (-1e12, 3.0), (0.0, 1e300), (7.0, 0.0)])
def test_what_lies_outside_changes_nothing(at):
    assert area(lambda d: d.disc(at, 1.0, color=WHITE)) == 0.0
