"""A task says what a world is, and refuses what cannot be one."""

import numpy as np
import pytest

from blendctl.envs import Buttons, Goal, Gremlins, Hazards, Objects, Pillars, PushBox, Task, Vases, find_task
from blendctl.envs.catalog import add_task, task_names
from blendctl.errors import InputError


def test_costs_follow_from_what_is_constrained():
    assert find_task("PointGoal0").cost_names == ()
    assert find_task("PointGoal1").cost_names == ("hazards",)
    assert find_task("PointGoal2").cost_names == ("hazards", "vases_contact", "vases_velocity")
    assert find_task("CarPush1").cost_names == ("hazards",)
    assert find_task("CarPush2").cost_names == ("hazards", "pillars")
    assert set(find_task("CarButton1").cost_names) == {"hazards", "gremlins", "buttons"}


def test_lidars_come_as_still_then_sliding_then_circling():
    task = Task("Point", "goal", 2.0, (Gremlins(1), Vases(1), Hazards(1), Goal()))
    assert [kind.name for kind in task.sighted] == ["hazards", "goal", "vases", "gremlins"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Task("Doggy", "goal", 1.0, (Goal(),)), "no robot"),
        (lambda: Task("Point", "gaol", 1.0, (Goal(),)), 'did you mean "goal"'),
        (lambda: Task("Point", "goal", 1.0, ()), "exactly one Goal"),
        (lambda: Task("Point", "push", 1.0, (Goal(),)), "exactly one PushBox"),
        (lambda: Task("Point", "button", 1.0, (Goal(),)), "exactly one Buttons"),
        (lambda: Task("Point", "goal", 2.0, (Goal(), Buttons(2))), "constrained=False"),
        (lambda: Task("Point", "goal", 2.0, (Goal(), Hazards(1), Hazards(2))), "called hazards"),
        (lambda: Task("Point", "goal", 0.3, (Goal(),)), "keepout"),
        (lambda: Task("Point", "goal", 1.0, (Goal(),), max_episode_steps=0), "max_episode_steps"),
        (lambda: Task("Point", "goal", float("inf"), (Goal(),)), "extents"),
        (lambda: Task("Point", "goal", 1.0, (Goal(), "hazards")), "objects such as"),
        (lambda: Task("Point", "goal", 1.0, (Goal(),), max_episode_steps=2.5), "whole number"),
        (lambda: Hazards(0), "count of hazards >= 1"),
        (lambda: Hazards(2.0), "whole number"),
        (lambda: Hazards(True), "whole number"),
        (lambda: Hazards(1, radius="wide"), "radius"),
        (lambda: Goal(half_height=0.0), "half_height"),
        (lambda: Hazards(1, radius=-1.0), "radius"),
        (lambda: Hazards(1, radius=float("nan")), "radius"),
        (lambda: Hazards(1, name="Lava pit"), "lower-case"),
        (lambda: Goal(2), "one goal"),
        (lambda: PushBox(2), "one box"),
        (lambda: Objects(), "abstract"),
    ],
)
def test_impossible_tasks_are_refused_with_a_reason(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_a_task_written_otherwise_is_the_same_task():
    plain = Task("Point", "goal", 2.0, (Goal(), Hazards(3, keepout=1.0)))
    other = Task("Point", "goal", 2, [Goal(), Hazards(np.int64(3), keepout=1)])
    assert other == plain
    assert hash(other) == hash(plain)
    assert repr(other) == repr(plain)  # which a snapshot is recognised by


def test_a_value_that_is_not_a_task_is_refused():
    with pytest.raises(InputError, match="expected a Task"):
        add_task("Nothing", None)
    with pytest.raises(InputError, match="world's name"):
        find_task(3)


def test_unknown_names_get_a_suggestion():
    with pytest.raises(InputError, match='did you mean "PointGoal1"'):
        find_task("PointGaol1")


def test_a_name_stands_for_one_task():
    task = Task("Car", "goal", 1.5, (Goal(), Pillars(2)))
    add_task("CarAmongPillars", task)
    add_task("CarAmongPillars", task)
    assert "CarAmongPillars" in task_names()
    with pytest.raises(InputError, match="already another"):
        add_task("CarAmongPillars", Task("Car", "goal", 1.5, (Goal(),)))
    with pytest.raises(InputError, match="letters"):
        add_task("car among pillars", task)


def test_an_environment_that_is_not_a_world_is_refused_with_advice():
    with pytest.raises(
        InputError, match=r'"CartPole-v1" is a Gymnasium environment, .*for other environments use blendctl fit, blend'
    ):
        find_task("CartPole-v1")
