"""Worlds can be seen in both forms, in every render mode, and recorded with Gymnasium's wrappers."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RecordVideo
from gymnasium.wrappers.vector import RecordVideo as RecordVideos

from blendctl.envs import NAMES, SingleWorld, VectorWorld, View, world_id
from blendctl.envs.gl import find_backend
from blendctl.errors import InputError, StateError


def frames_in(path):
    import imageio_ffmpeg

    return imageio_ffmpeg.count_frames_and_secs(str(path))


@pytest.mark.parametrize("name", NAMES)
def test_every_world_is_seen_from_above(name):
    env = gymnasium.make(world_id(name), render_mode="topdown")
    env.reset(seed=0)
    first = env.render()
    assert first.shape == (480, 480, 3)
    assert first.dtype == np.uint8
    assert np.array_equal(env.render(), first)
    for _ in range(5):
        env.step(np.ones(2))
    assert not np.array_equal(env.render(), first)
    env.close()


def test_a_view_sets_what_is_seen():
    shapes = {}
    for view in (View(width=200, height=100), {"width": 200, "height": 100, "lidar": False}):
        env = gymnasium.make("blendctl/PointGoal1-v0", render_mode="topdown", view=view)
        env.reset(seed=0)
        shapes[str(view)] = env.render()
    with_lidar, without = shapes.values()
    assert with_lidar.shape == without.shape == (100, 200, 3)
    assert not np.array_equal(with_lidar, without)


def test_a_trail_grows_with_the_steps_and_ends_with_the_episode():
    env, plain = (SingleWorld("PointGoal0", render_mode="topdown", view={"trail": n}) for n in (50, 0))
    differing = []
    for seed in (0, 1):
        for world in (env, plain):
            world.reset(seed=seed)
        for _ in range(60):
            differing.append(int((env.render() != plain.render()).sum()))
            for world in (env, plain):
                world.step(np.array([1.0, 0.0]))
    assert differing[0] == differing[60] == 0
    assert 0 < differing[40] < differing[59]


def test_the_worlds_tell_what_they_can_show(monkeypatch):
    assert SingleWorld.metadata["render_modes"] == ["topdown", "rgb_array"]
    for name, fps in (("PointGoal1", 50), ("CarGoal1", 25)):
        env, worlds = SingleWorld(name), VectorWorld(name, 2)
        assert env.metadata["render_fps"] == worlds.metadata["render_fps"] == fps
        assert ("rgb_array" in env.metadata["render_modes"]) == (find_backend() is not None)
        assert worlds.metadata["render_modes"] == ["topdown", "rgb_array"]


def test_making_a_world_does_not_look_for_opengl(monkeypatch):
    def search():
        raise AssertionError("looked for OpenGL")

    monkeypatch.setattr("blendctl.envs.view.find_backend", search)
    for mode in (None, "topdown"):
        gymnasium.make("blendctl/PointGoal0-v0", render_mode=mode).reset(seed=0)
        gymnasium.make_vec("blendctl/PointGoal0-v0", num_envs=2, render_mode=mode).reset(seed=0)


def test_without_opengl_the_camera_says_what_to_do_and_the_rest_works(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "disable")
    for make in (SingleWorld, VectorWorld):
        with pytest.raises(StateError, match=r'MUJOCO_GL switches it off.*libosmesa6.*render_mode="topdown"'):
            make("PointGoal1", render_mode="rgb_array")
    env = gymnasium.make("blendctl/PointGoal1-v0")
    assert env.metadata["render_modes"] == ["topdown"]
    check_env(env.unwrapped)


def test_the_vector_form_shows_each_world():
    worlds = gymnasium.make_vec("blendctl/CarButton1-v0", num_envs=3, render_mode="topdown").unwrapped
    env = SingleWorld("CarButton1", render_mode="topdown")
    worlds.reset(seed=10)
    env.reset(seed=12)
    pictures = worlds.render()
    assert len(pictures) == 3
    assert np.array_equal(pictures[2], env.render())
    assert not np.array_equal(pictures[0], pictures[1])
    worlds.close()


def test_gymnasium_records_a_video(tmp_path):
    env = gymnasium.make("blendctl/PointGoal1-v0", render_mode="topdown", view={"width": 96, "height": 96})
    env = RecordVideo(env, str(tmp_path / "videos"), episode_trigger=lambda n: n == 0)
    env.reset(seed=0)
    for _ in range(24):
        env.step(env.action_space.sample())
    env.close()
    (video,) = (tmp_path / "videos").glob("*.mp4")
    frames, seconds = frames_in(video)
    assert frames == 25
    assert seconds == pytest.approx(0.5, abs=0.03)


def test_gymnasium_records_a_video_of_many_worlds(tmp_path):
    view = {"width": 64, "height": 64}
    worlds = gymnasium.make_vec("blendctl/CarGoal1-v0", num_envs=4, render_mode="topdown", view=view)
    worlds = RecordVideos(worlds, str(tmp_path / "videos"), step_trigger=lambda n: n == 0, video_length=10)
    worlds.reset(seed=0)
    for _ in range(14):
        worlds.step(worlds.action_space.sample())
    worlds.close()
    (video,) = (tmp_path / "videos").glob("*.mp4")
    assert frames_in(video)[0] >= 10


def test_frames_can_be_collected():
    env = gymnasium.make("blendctl/PointGoal0-v0", render_mode="topdown_list")
    env.reset(seed=0)
    for _ in range(3):
        env.step(np.zeros(2))
    assert len(env.render()) == 4


@pytest.mark.parametrize("make", [SingleWorld, VectorWorld])
def test_a_world_without_a_render_mode_says_so(make):
    world = make("PointGoal0")
    world.reset(seed=0)
    with pytest.warns(UserWarning, match='render_mode="topdown"'):
        assert world.render() is None


@pytest.mark.parametrize("make", [SingleWorld, VectorWorld])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"render_mode": "topdwon"}, 'did you mean "topdown"'),
        ({"render_mode": "human"}, "allowed: topdown, rgb_array"),
        ({"render_mode": "topdown", "view": {"widht": 3}}, 'did you mean "width"'),
        ({"render_mode": "topdown", "view": {"width": 3}}, "from 16 to 4096, actually: 3"),
        ({"render_mode": "topdown", "view": {"height": "480"}}, "actually: '480'"),
        ({"render_mode": "topdown", "view": {"trail": -1}}, "expected a trail"),
    ],
)
def test_bad_settings_are_refused(make, options, message):
    with pytest.raises(InputError, match=message):
        make("PointGoal1", **options)


@pytest.mark.parametrize("make", [SingleWorld, VectorWorld])
def test_before_reset_there_is_nothing_to_see(make):
    with pytest.raises(StateError, match="reset"):
        make("PointGoal1", render_mode="topdown").render()
