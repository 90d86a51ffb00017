"""Every command that takes a world takes any environment: by id, by a function in a file, with arguments and cost."""

import json

import pytest
from click.testing import CliRunner

from blendctl.cli import command_line

FILE = """
import gymnasium
import numpy as np

class Cart(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))
    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}

    def __init__(self, *, mass=1.0, render_mode=None):
        self.mass, self.render_mode = mass, render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.v = 0.0, float(self.np_random.uniform(-0.1, 0.1))
        return np.array([self.x, self.v], np.float32), {}

    def step(self, action):
        self.v = 0.9 * self.v + float(action[0]) / self.mass
        self.x += 0.1 * self.v
        return np.array([self.x, self.v], np.float32), 0.1 * self.v, False, False, {"strain": abs(self.v)}

    def render(self):
        return np.full((32, 48, 3), 200, np.uint8)

def fast(observation):
    return [0.8]

def slow(observation):
    return [0.1]

def too_fast(observation, action, info):
    return float(info["strain"] > 2.0)
"""


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    path = tmp_path_factory.mktemp("mine") / "mine.py"
    path.write_text(FILE)
    return path


def call(*words, code=0):
    done = CliRunner().invoke(command_line, list(map(str, words)))
    assert done.exit_code == code, f"{done.output}{done.exception!r}"
    return f"{done.output}{done.exception}"


def env_words(mine):
    return "--env-arg", "mass=2.0", "--cost", f"{mine}:too_fast", "--episode-steps", 30


def pair(mine):
    return "--controllers", f"{mine}:fast", f"{mine}:slow"


def test_a_blend_of_an_environment_in_a_file_is_driven_explained_reported_and_certified(mine, tmp_path):
    out = tmp_path / "out"
    printed = call(
        "blend",
        f"{mine}:Cart",
        *pair(mine),
        *env_words(mine),
        "--episodes",
        2,
        "--counterfactual",
        "--guard",
        "--out",
        out,
    )
    assert "the next control step" in " ".join(printed.split())  # pictures per second are no control period
    summary = json.loads((out / "summary.json").read_text())
    assert summary["environment"]["arguments"] == {"mass": 2.0}
    assert summary["alone"]["fast"]["cost_mean"] > 0
    assert summary["correct_ratio"] is not None
    assert summary["guard"]["episodes"] == 2
    assert "drives" in call("explain", out, "--step", 3)
    call("report", out)
    assert "fast" in (out / "report.html").read_text()
    cart = [f"{mine}:Cart", "--cost", f"{mine}:too_fast", "--env-arg", "mass=2.0"]
    certified = [
        "certify",
        out,
        *pair(mine),
        "--budget",
        29,
        "--cost-ceiling",
        30,
        "--episodes",
        4,
        "--engine",
        "inline",
    ]
    assert "is Python code; name it again: --world" in call(*certified, code=1)
    call(*certified, "--world", *cart, "--steps", 30)
    certificate = json.loads((out / "certificate.json").read_text())
    assert certificate["world"] == f"{mine}:Cart"
    assert len(certificate["costs"]) == 4


def test_controllers_are_evaluated_in_an_environment_with_arguments(mine, tmp_path):
    costs = {}
    for mass in (1.0, 4.0):
        file = tmp_path / "e.json"
        words = ["--env", f"{mine}:Cart", "--env-arg", f"mass={mass}", "--cost", "strain", "--episode-steps", 20]
        call("evaluate", f"{mine}:fast", *words, "--episodes", 2, "--json", file)
        costs[mass] = json.loads(file.read_text())["cost_mean"]
    assert costs[1.0] > 2 * costs[4.0] > 0


def test_a_film_shows_what_the_environment_draws(mine, tmp_path):
    film = tmp_path / "film.gif"
    for controller in (f"{mine}:fast", "random"):
        call("play", f"{mine}:Cart", "--controller", controller, "--steps", 6, "--out", film)
        assert film.stat().st_size > 100


def test_an_id_of_gymnasium_is_driven_and_what_it_lacks_is_said(mine, tmp_path):
    words = ["Pendulum-v1", *pair(mine), "--episodes", 1, "--steps", 5, "--no-alone"]
    call("blend", *words, "--cost", f"{mine}:too_fast", code=1)  # info has no "strain"
    printed = call("blend", *words, "--objectives", "reward", "--out", tmp_path / "out")
    assert "Pendulum-v1" in printed
    for extra in (["--live"], ["--guard"], ["--lookahead", "twin"]):
        call("blend", *words, "--objectives", "reward", *extra, code=1)
    call("evaluate", "PointGoal1/ppo", "--cost", "strain", code=1)  # of which environment?
