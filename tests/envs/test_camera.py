"""MuJoCo's camera shows everything, if OpenGL works; a failing driver has no other effect."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import RecordVideo

from blendctl.envs import SingleWorld, VectorWorld, gl
from blendctl.errors import StateError

needs_opengl = pytest.mark.skipif(gl.find_backend() is None, reason=gl.explain_missing())


def seen(env):
    picture = env.render()
    assert picture.shape == (160, 200, 3)
    assert picture.dtype == np.uint8
    return picture.astype(int)


def make(name):
    env = SingleWorld(name, render_mode="rgb_array", view={"width": 200, "height": 160})
    env.reset(seed=3)
    return env


@needs_opengl
@pytest.mark.parametrize("name", ["PointGoal1", "CarPush2", "CarButton2"])
def test_every_object_is_seen(name):
    env = make(name)
    before = seen(env)
    state, item = env.batch.worlds, 0
    for kind in env.task.objects:
        item += 1
        at = env.batch.compiled_task.qpos_at[item]
        place = state.qpos[0, at : at + 2] if at >= 0 else state.xy[0, item]
        kept = place.copy()
        place += 0.4
        assert np.abs(seen(env) - before).max() > 30, kind.name
        place[:] = kept
        item += kind.count - 1
    assert np.abs(seen(env) - before).max() <= 2
    env.close()


@needs_opengl
@pytest.mark.parametrize("name", ["PointGoal0", "CarGoal0"])
def test_the_robot_moves_in_the_picture(name):
    env = make(name)
    before = seen(env)
    for _ in range(20):
        env.step(np.ones(2))
    assert np.abs(seen(env) - before).max() > 30
    env.close()


@needs_opengl
def test_cameras_do_not_disturb_one_another_nor_the_world():
    one, other = make("PointGoal1"), make("CarGoal1")
    alone = seen(one)
    kept = one.snapshot()
    seen(other)
    assert np.array_equal(seen(one), alone)
    assert one.snapshot() == kept
    other.close()
    assert np.array_equal(seen(one), alone)
    for _ in range(2):
        one.close()


@needs_opengl
def test_a_robot_that_leaves_is_followed():
    env = make("PointGoal1")
    env.batch.worlds.position[0, 0] += 30.0
    env.batch.worlds.xy[0, 0, 0] += 30.0
    blue = seen(env)
    assert ((blue[..., 2] - blue[..., 0]) > 60).sum() > 10
    env.close()


@needs_opengl
def test_the_vector_form_and_gymnasiums_recorder_use_it(tmp_path):
    worlds = VectorWorld("PointGoal1", 2, render_mode="rgb_array", view={"width": 64, "height": 64})
    worlds.reset(seed=0)
    first, second = worlds.render()
    assert first.shape == (64, 64, 3)
    assert not np.array_equal(first, second)
    worlds.close()
    view = {"width": 64, "height": 64}
    env = RecordVideo(gymnasium.make("blendctl/CarGoal0-v0", render_mode="rgb_array", view=view), str(tmp_path / "v"))
    env.reset(seed=0)
    for _ in range(5):
        env.step(np.ones(2))
    env.close()
    assert len(list((tmp_path / "v").glob("*.mp4"))) == 1


@needs_opengl
def test_a_process_that_forgets_to_close_ends_in_peace():
    program = (
        "from blendctl.envs import SingleWorld\n"
        "env = SingleWorld('PointGoal0', render_mode='rgb_array')\n"
        "env.reset(seed=0); print(env.render().shape)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "(480, 480, 3)", "")


@pytest.fixture
def fresh_search():
    gl._search.cache_clear()
    yield
    gl._search.cache_clear()


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import os; os.abort()", "ended with code -6"),
        ("raise RuntimeError('no display')", "no display"),
        ("import time; time.sleep(60)", "timed out"),
    ],
)
def test_a_driver_that_fails_is_passed_over_with_its_reason(monkeypatch, fresh_search, program, reason):
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    monkeypatch.setattr(gl, "_TRIAL", program)
    monkeypatch.setattr(gl, "_PATIENCE", 1)
    assert gl.find_backend() is None
    with pytest.raises(StateError, match=f"osmesa: .*{reason}"):
        gl.open_context(64, 64)


def test_the_first_driver_that_works_is_taken(monkeypatch, fresh_search):
    monkeypatch.setattr(gl, "_ON", {"Linux": ("first", "second", "third")})
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr(gl, "_TRIAL", "import sys; sys.exit('first' in sys.argv[1])")
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    assert gl.find_backend() == "second"
