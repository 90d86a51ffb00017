"""Pictures of an environment: how many, which ones, how large, and what happens if it cannot draw."""

import io
import zipfile
from typing import ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from PIL import Image

from blendctl.envs import frame_recorder
from blendctl.envs.environment import EnvironmentSpec
from blendctl.envs.frame_recorder import FrameRecorder, encode_picture, list_frames, open_drawn
from blendctl.errors import InputError


class Canvas(gymnasium.Env):
    """Draw the number of the step as a grey level; the cost of a step is the seed of the episode."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))
    metadata: ClassVar = {"render_modes": ["rgb_array"], "render_fps": 30}

    def __init__(self, render_mode="rgb_array", *, drawn=None):
        self.render_mode, self.drawn = render_mode, drawn

    def reset(self, *, seed=None, options=None):
        self.now, self.cost = 0, float(seed or 0)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.now += 1
        return np.zeros(1, np.float32), 0.0, False, False, {"cost": self.cost}

    def render(self):
        return np.full((40, 60, 3), self.now % 256, np.uint8) if self.drawn is None else self.drawn()


def drive(env, steps, *, seeds=(0,)):
    for seed in seeds:
        env.reset(seed=seed)
        for _ in range(steps):
            env.step(np.zeros(1, np.float32))
    env.close()


def pictures(file):
    """Return by step the grey level of each picture."""
    with zipfile.ZipFile(file) as archive:
        images = {int(name[:6]): Image.open(io.BytesIO(archive.read(name))) for name in archive.namelist()}
    return {step: np.asarray(image.convert("RGB")).mean() for step, image in images.items()}


@pytest.mark.parametrize(("frames", "every"), [(11, 10), (51, 2), (500, 1)])
def test_pictures_are_spread_over_the_episode_and_show_its_steps(tmp_path, frames, every):
    drive(FrameRecorder(TimeLimit(Canvas(), 100), tmp_path, episodes=1, frames=frames), 100)
    (file,) = list_frames(tmp_path)
    assert list(pictures(file)) == list(range(0, 101, every))
    for step, level in pictures(file).items():
        assert level == pytest.approx(step, abs=2)


def test_by_itself_it_takes_many_pictures_where_drawing_is_quick_and_few_where_it_is_slow(tmp_path, monkeypatch):
    drive(FrameRecorder(TimeLimit(Canvas(), 60), tmp_path, episodes=1), 60)
    assert len(pictures(list_frames(tmp_path)[0])) == 61
    monkeypatch.setattr(frame_recorder, "PATIENCE", 0.0)
    drive(FrameRecorder(TimeLimit(Canvas(), 240), tmp_path, episodes=1), 240)
    assert list(pictures(list_frames(tmp_path)[0])) == list(range(0, 241, 10))


def test_the_last_state_of_an_episode_that_ends_early_is_drawn(tmp_path):
    class Short(Canvas):
        def step(self, action):
            *others, info = super().step(action)
            return others[0], others[1], self.now == 33, False, info

    drive(FrameRecorder(TimeLimit(Short(), 100), tmp_path, episodes=1, frames=11), 33)
    assert list(pictures(list_frames(tmp_path)[0])) == [0, 10, 20, 30, 33]


def test_an_episode_without_a_limit_does_not_fill_the_memory(tmp_path):
    drive(FrameRecorder(Canvas(), tmp_path, episodes=1, frames=10), 5000)
    steps = list(pictures(list_frames(tmp_path)[0]))
    assert len(steps) <= 20
    assert steps[-1] > 4500
    assert len(set(np.diff(steps))) == 1


def test_the_costliest_episodes_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(frame_recorder, "EPISODES", 2)
    drive(FrameRecorder(TimeLimit(Canvas(), 5), tmp_path, episodes=4, frames=2), 5, seeds=(3, 1, 7, 2))
    assert [file.name for file in list_frames(tmp_path)] == ["episode-000000.zip", "episode-000002.zip"]


def test_pictures_of_an_earlier_run_are_removed(tmp_path):
    drive(FrameRecorder(TimeLimit(Canvas(), 5), tmp_path, episodes=2, frames=2), 5, seeds=(0, 1))
    drive(FrameRecorder(TimeLimit(Canvas(), 5), tmp_path, episodes=1, frames=2), 5)
    assert len(list_frames(tmp_path)) == 1


@pytest.mark.parametrize("drawn", [lambda: None, lambda: np.zeros((4, 4)), lambda: 1 / 0, lambda: np.zeros((4, 4, 3))])
def test_a_picture_that_cannot_be_drawn_does_not_stop_the_drive(tmp_path, drawn):
    recorder = FrameRecorder(TimeLimit(Canvas(drawn=drawn), 9), tmp_path, episodes=1)
    drive(recorder, 9)
    assert recorder.problem.startswith("a picture could not be drawn: ")
    assert list_frames(tmp_path) == []


@pytest.mark.parametrize(("size", "scaled"), [((40, 60), (60, 40)), ((480, 480), (320, 320)), ((150, 600), (480, 120))])
def test_large_pictures_are_scaled_down(size, scaled):
    assert Image.open(io.BytesIO(encode_picture(np.zeros((*size, 3), np.uint8)))).size == scaled


def test_an_environment_draws_if_it_can_and_says_why_not(tmp_path):
    env, problem = open_drawn(EnvironmentSpec("Pendulum-v1").make)
    assert (env.render_mode, problem) == ("rgb_array", None)
    env.close()

    class Blind(Canvas):
        metadata: ClassVar = {"render_modes": []}

    assert "does not list" in open_drawn(lambda: Blind(None))[1]

    def make(render_mode=None):
        if render_mode is not None:
            raise InputError("no OpenGL")
        return Canvas(None)

    assert open_drawn(make)[1] == "no OpenGL"
    file = tmp_path / "mine.py"
    file.write_text("import gymnasium\ndef make():\n    return gymnasium.make('Pendulum-v1')\n")
    assert 'does not take render_mode="rgb_array"' in open_drawn(EnvironmentSpec(f"{file}:make").make)[1]
