"""`blendctl play` films random and saved controllers and reports wrong input."""

import subprocess
import sys
from itertools import pairwise

import imageio_ffmpeg
import numpy as np
import pytest
from click.testing import CliRunner
from gymnasium.vector import AutoresetMode
from PIL import Image

from blendctl.cli.play import film_steps, play
from blendctl.controllers import NetworkController, as_controller, identity_encoding, write_controller
from blendctl.controllers.dense import Dense
from blendctl.envs import VectorWorld
from blendctl.errors import InputError


def run(*args):
    done = CliRunner().invoke(play, [str(arg) for arg in args])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


STILL = as_controller(lambda observation: np.zeros(2))


def filmed(world, *, steps):
    return VectorWorld(world, 1, autoreset_mode=AutoresetMode.DISABLED, render_mode="topdown", max_episode_steps=steps)


def forward_controller(path, observation_size):
    """A saved controller that always drives straight on."""

    def net(*sizes, bias=0.0):
        weights = tuple(np.zeros(pair, np.float32) for pair in pairwise(sizes))
        return Dense(weights, tuple(np.full(n, bias, np.float32) for _, n in pairwise(sizes)))

    straight = net(observation_size, 4, 2)
    straight.biases[-1][:] = (1.0, 0.0)
    controller = NetworkController(
        "forward",
        identity_encoding(observation_size),
        straight,
        np.full(2, -9.0, np.float32),
        critic=net(observation_size, 4, 1),
        cost_critic=net(observation_size, 4, 1),
        card={"world": "PointGoal0", "algorithm": "none"},
    )
    write_controller(controller, path)
    return path


def test_a_random_drive_becomes_a_small_gif(tmp_path):
    out = tmp_path / "play.gif"
    done = run("PointGoal1", "--steps", 300, "--seed", 1, "--out", out)
    assert done.exit_code == 0, done.output
    for word in ("length", "return", "cost", "goals", "300", "151 pictures, 6.0 s"):
        assert word in done.output
    assert out.stat().st_size < 5e6
    with Image.open(out) as film:
        assert film.n_frames == 151
        assert film.size[0] == 480


def test_even_a_drive_away_stays_a_small_gif(tmp_path):
    controller = forward_controller(tmp_path / "forward.safetensors", 60)
    run("PointGoal1", "--controller", controller, "--steps", 300, "--out", tmp_path / "far.gif")
    assert (tmp_path / "far.gif").stat().st_size < 5e6


def test_a_saved_controller_drives_in_an_mp4(tmp_path):
    controller = forward_controller(tmp_path / "forward.safetensors", 28)
    out = tmp_path / "deep" / "film.mp4"
    options = ("--steps", 20, "--episodes", 2, "--fps", 50, "--size", 128, "--deterministic")
    done = run("PointGoal0", "--controller", controller, "--out", out, *options)
    assert done.exit_code == 0, done.output
    assert imageio_ffmpeg.count_frames_and_secs(str(out))[0] == 42


def test_the_same_seed_produces_the_same_film(tmp_path):
    films = []
    for name in ("a.gif", "b.gif"):
        run("CarGoal1", "--steps", 20, "--seed", 5, "--out", tmp_path / name, "--size", 128)
        films.append((tmp_path / name).read_bytes())
    assert films[0] == films[1]


def test_film_steps_have_return_cost_and_goals_of_the_world():
    worlds = filmed("PointGoal1", steps=30)
    action = np.array([[1.0, 0.1]])
    frames = list(film_steps(worlds, as_controller(lambda obs: action), rng=None, episodes=2, seed=7, every=4))
    assert [frame.step for frame in frames] == [*range(31), *range(31)]
    shown = [frame.step for frame in frames[:31] if frame.picture is not None]
    assert shown == [0, 4, 8, 12, 16, 20, 24, 28, 30]
    other = VectorWorld("PointGoal1", 1)
    other.reset(seed=8)
    taken = [other.step(action) for _ in range(30)]
    assert frames[-1].total == pytest.approx(sum(step[1][0] for step in taken))
    assert frames[-1].cost == sum(step[4]["cost"][0] for step in taken)


def test_a_cost_between_two_pictures_is_marked():
    worlds = filmed("PointGoal1", steps=8)
    frames = []
    for frame in film_steps(worlds, STILL, rng=None, episodes=1, seed=0, every=4):
        frames.append(frame)
        state = worlds.batch.worlds
        # a hazard lies under the robot in the second step only
        state.xy[0, 2] = state.position[0, :2] + (0.0 if frame.step == 1 else 5.0)
    assert [frame.costs_now for frame in frames if frame.picture is not None] == [False, True, False]


def test_the_last_step_of_an_episode_has_a_picture():
    frames = list(film_steps(filmed("PointGoal0", steps=5), STILL, rng=None, episodes=1, seed=0, every=2))
    assert frames[-1].step == 5
    assert frames[-1].picture is not None


def test_a_controller_of_another_world_is_rejected(tmp_path):
    controller = forward_controller(tmp_path / "forward.safetensors", 28)
    with pytest.raises(InputError, match="28 observations"):
        run("PointGoal1", "--controller", controller, "--out", tmp_path / "x.gif")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["PointGaol1"], 'did you mean "PointGoal1"'),
        (["PointGoal1", "--controller", "nobody"], '"random"'),
        (["PointGoal1", "--out", "film.avi"], "allowed: .gif, .mp4"),
    ],
)
def test_bad_input_says_what_is_allowed(args, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        run(*args)
    assert list(tmp_path.iterdir()) == []


def test_without_a_terminal_there_is_no_progress_bar(tmp_path):
    command = [sys.executable, "-m", "blendctl", "play", "PointGoal0", "--steps", "10", "--size", "96"]
    done = subprocess.run([*command, "--out", str(tmp_path / "p.gif")], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "wrote" in done.stdout
    done = subprocess.run([*command, "--view", "side"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "topdown" in done.stderr


def test_a_task_from_a_python_file_is_played(tmp_path):
    source, out = tmp_path / "volcano.py", tmp_path / "own.gif"
    source.write_text(
        "from blendctl.envs import Goal, Hazards, Task\n"
        "lava = Hazards(2, name='lava', radius=0.35, keepout=0.35)\n"
        "volcano = Task('Point', 'goal', 1.5, (Goal(), Hazards(5), lava))\n"
    )
    done = run(f"{source}:volcano", "--steps", 4, "--size", 96, "--out", out)
    assert done.exit_code == 0, done.output
    assert out.exists()
    with pytest.raises(InputError, match='did you mean "volcano"'):
        run(f"{source}:vulcano", "--out", out)
    with pytest.raises(InputError, match="there is no file"):
        run(f"{tmp_path}/none.py:volcano", "--out", out)
