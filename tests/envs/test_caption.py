"""A caption stands under the picture and changes with its values."""

import numpy as np
import pytest

from blendctl.envs import NAMES, find_task
from blendctl.envs.caption import ALARM, HAPPY, Caption
from blendctl.envs.palette import kind_colors

NOW = {"step": 120, "total": 3.41, "cost": 12.0}


def has(picture, color):
    return (np.abs(picture.astype(int) - color) <= 3).all(axis=2).any()


@pytest.mark.parametrize("width", [96, 480, 1001])
@pytest.mark.parametrize("name", NAMES)
def test_the_legend_names_every_colour_and_leaves_the_picture_alone(name, width):
    picture = np.full((50, width, 3), 128, np.uint8)
    whole = Caption(find_task(name), name).under(picture, **NOW)
    assert whole.dtype == np.uint8
    assert whole.shape[1] == width
    assert np.array_equal(whole[:50], picture)
    for kind, color in kind_colors(find_task(name)).items():
        assert has(whole[50:], color), kind


@pytest.mark.parametrize("change", [{"step": 121}, {"total": 3.42}, {"cost": 13.0}, {"hurts": True}, {"meets": True}])
def test_each_number_is_shown(change):
    caption = Caption(find_task("PointGoal1"), "PointGoal1")
    picture = np.zeros((50, 480, 3), np.uint8)
    assert not np.array_equal(caption.under(picture, **NOW), caption.under(picture, **(NOW | change)))


def test_what_costs_is_red_and_what_succeeds_is_green():
    caption = Caption(find_task("PointGoal0"), "PointGoal0")
    picture = np.zeros((50, 480, 3), np.uint8)
    for flag, color in (("hurts", ALARM), ("meets", HAPPY)):
        assert has(caption.under(picture, **NOW, **{flag: True}), color)
        assert not has(caption.under(picture, **NOW), color)
