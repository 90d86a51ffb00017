"""`blendctl check-env` prints what an environment can do, writes it as JSON, and fails if it cannot be driven."""

import json

from click.testing import CliRunner

from blendctl.cli.check_env import check_env

FILE = """
import gymnasium

class Mute(gymnasium.Env):
    observation_space = gymnasium.spaces.Discrete(3)
    action_space = gymnasium.spaces.Text(4)

def mute():
    return Mute()
"""


def test_the_results_are_printed_and_written(tmp_path):
    file = tmp_path / "check.json"
    done = CliRunner().invoke(check_env, ["CartPole-v1", "--episode-steps", "40", "--json", str(file)])
    assert done.exit_code == 0, done.output
    assert "40 steps" in done.output
    found = json.loads(file.read_text())
    assert (found["copy_exact"], found["deterministic"], found["vector"]) == (True, True, True)
    assert not found["cost_found"]
    assert found["cost_key"] is None
    assert any("--cost" in problem for problem in found["problems"])


def test_what_cannot_be_driven_fails(tmp_path):
    file = tmp_path / "mute.py"
    file.write_text(FILE)
    done = CliRunner().invoke(check_env, [f"{file}:mute"])
    assert done.exit_code == 1
    assert "actions must be a Box" in done.output
    assert "not usable" in done.output
