"""The models have the reference's masses, joints and sizes."""

import mujoco
import pytest

from blendctl.envs import NAMES, find_task
from blendctl.envs.compiled_task import compile_task
from blendctl.envs.world import body_name, build_model

SIZES = {"Goal0": 28, "Goal1": 60, "Goal2": 60, "Push0": 44, "Push1": 76, "Push2": 76} | {
    "Button0": 44,
    "Button1": 76,
    "Button2": 76,
}


@pytest.mark.parametrize("name", NAMES)
def test_the_observation_has_the_reference_size(name):
    task = find_task(name)
    expected = SIZES[name.removeprefix("Point").removeprefix("Car")] + (12 if task.robot == "Car" else 0)
    model = build_model(task)
    assert compile_task(task, model, max_steps=1).obs_size == expected


@pytest.mark.parametrize(("name", "mass"), [("PointGoal0", 5.1887902e-3), ("CarGoal0", 0.0304449847)])
def test_the_robots_weigh_what_the_reference_weighs(name, mass):
    model = build_model(find_task(name))
    assert model.body("agent").subtreemass[0] == pytest.approx(mass, rel=1e-8)


@pytest.mark.parametrize(
    ("name", "mass", "inertia"),
    [("PointPush1", 1.28e-4, 7.2533e-6), ("CarPush1", 1.5625e-5, 3.45866e-7)],
)
def test_the_boxes_weigh_what_the_reference_weighs(name, mass, inertia):
    task = find_task(name)
    box = build_model(task).body(body_name(task.objects[-1], 0))
    assert box.mass[0] == pytest.approx(mass)
    assert max(box.inertia) == pytest.approx(inertia, rel=1e-4)


def test_what_touches_nothing_is_not_a_body():
    model = build_model(find_task("PointGoal1"))
    assert [model.body(i).name for i in range(model.nbody)] == ["world", "agent", "vases.0"]


def test_time_steps_and_settings_are_those_of_the_recordings():
    for name, timestep in (("PointButton1", 0.002), ("CarButton1", 0.004)):
        model = build_model(find_task(name))
        assert model.opt.timestep == timestep
        assert model.opt.integrator == mujoco.mjtIntegrator.mjINT_EULER
        assert model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_NATIVECCD
