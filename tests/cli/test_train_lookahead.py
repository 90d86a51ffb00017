"""`blendctl train-lookahead`: one command trains, measures, resumes and ships networks; it overwrites nothing."""

import json
import shutil

import pytest

from blendctl.cli import main
from blendctl.controllers import find_lookahead, load, read_lookahead
from blendctl.controllers import zoo as zoo_module

pytest.importorskip("torch")

PAIR = ("PointGoal1/ppo", "PointGoal1/ppo-lagrangian")
TINY = ["--worlds", 8, "--hidden", 16, "--minibatch", 32, "--dial-points", 2, "--dial-episodes", 2]
TASK = """
from blendctl.envs import Goal, Hazards, Task

volcano = Task("Point", "goal", 1.5, (Goal(), Hazards(3)), max_episode_steps=12)
"""


def call(capsys, *words):
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    return stopped.value.code, *capsys.readouterr()


@pytest.fixture
def zoo(tmp_path, monkeypatch):
    """A temporary zoo with the pair of PointGoal1."""
    folder = tmp_path / "zoo"
    (folder / "PointGoal1").mkdir(parents=True)
    for name in PAIR:
        shutil.copy(zoo_module.ZOO / f"{name}.safetensors", folder / f"{name}.safetensors")
    monkeypatch.setattr(zoo_module, "ZOO", folder)
    monkeypatch.chdir(tmp_path)
    return folder


def test_networks_are_trained_measured_and_added_to_the_zoo(zoo, capsys):
    command = ("train-lookahead", "PointGoal1", "--controllers", *PAIR, "--out", "run", "--steps", 8000, *TINY, "--add")
    code, out, err = call(capsys, *command, "--json")
    assert code == 0, err
    card = json.loads(out)
    assert card["command"].startswith(
        "blendctl train-lookahead PointGoal1 --controllers PointGoal1/ppo PointGoal1/ppo-l"
    )
    assert card["world"] == "PointGoal1"
    assert len(card["r2_level"]) == len(card["r2_difference"]) == 2
    assert [point["weight"] for point in card["dial"]] == pytest.approx([0.02, 1.0])
    assert all(set(point) >= {"return_mean", "cost_mean", "over_budget", "episodes", "seed"} for point in card["dial"])
    assert [row["name"] for row in card["alone"]] == list(PAIR)
    assert card["limit"]["states"] == 32
    assert max(card["limit"]["limit_difference"]) <= 1.0
    assert read_lookahead("run").card == card
    assert find_lookahead([load(name) for name in PAIR]).card == card
    assert "switch, cost weight 0.02" in err

    code, out, _ = call(capsys, "zoo")
    assert code == 0
    assert "PointGoal1/ppo+ppo-lagrangian" in out
    code, out, _ = call(capsys, "zoo", "--show", "PointGoal1/ppo+ppo-lagrangian")
    assert code == 0
    assert "# Look-ahead networks of PointGoal1/ppo + PointGoal1/ppo-lagrangian" in out
    code, out, _ = call(capsys, "zoo", "--json")
    assert json.loads(out)["PointGoal1/ppo+ppo-lagrangian"] == card

    code, _, err = call(capsys, *command)
    assert code == 1
    assert "--replace" in err, "refused before the training"
    code, _, err = call(capsys, *command[:-1])
    assert code == 1
    assert "already holds a run" in err
    code, out, err = call(
        capsys, "train-lookahead", "PointGoal1", "--out", "run", "--resume", "--dial-episodes", 3, "--json"
    )
    assert code == 0, err
    assert json.loads(out)["dial"][0]["episodes"] == 3
    assert json.loads(out)["gradient_steps"] == card["gradient_steps"]
    first, second = json.loads(out)["command"].splitlines()
    assert first.startswith(f"blendctl train-lookahead PointGoal1 --controllers {' '.join(PAIR)} --out run --steps ")
    assert "--resume" in second
    code, _, err = call(capsys, "train-lookahead", "PointGoal1", "--out", "run", "--resume", "--lr", 0.1)
    assert code == 1
    assert "other options" in err
    code, _, err = call(
        capsys, "train-lookahead", "PointGoal1", "--controllers", *PAIR[::-1], "--out", "run", "--resume"
    )
    assert code == 1
    assert "another order" in err
    code, out, err = call(capsys, "zoo", "--add", "run", "--replace", "--json")
    assert code == 0, err
    assert json.loads(out)["dial"][0]["episodes"] == 3


def test_more_controllers_and_a_task_of_the_user(tmp_path, monkeypatch, capsys):
    (tmp_path / "volcano.py").write_text(TASK)
    monkeypatch.chdir(tmp_path)
    names = ("pure-pursuit", "potential-field", "stop")
    words = ("train-lookahead", "volcano.py:volcano", "--controllers", *names, "--out", "run", "--steps", 4000, *TINY)
    code, _, err = call(capsys, *words)
    assert code == 0, err
    assert read_lookahead("run").controllers == 3
    assert (tmp_path / "run" / "lookahead.md").read_text().startswith("# Look-ahead networks of ")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["PointGaol1", "--out", "run"], 1, 'did you mean "PointGoal1"'),
        (["PointGoal1"], 2, "--out"),
        (["PointGoal1", "--out", "run", "--resume"], 1, "no checkpoint"),
        (["PointGoal1", "--out", "run", "--replace"], 1, "--replace needs --add"),
        (["PointGoal1", "--out", "run", "--steps", "many"], 1, "option steps"),
        (["PointGoal1", "--out", "run", "--discount", "1"], 1, "0 to below 1"),
        (["PointGoal1", "--out", "run", "--controllers", "PointGoal1/ppo"], 1, "two controllers or more"),
        (["PointGoal2", "--out", "run"], 1, "--controllers"),
    ],
)
def test_wrong_input_is_reported(words, code, message, zoo, capsys):
    got, _, err = call(capsys, "train-lookahead", *words)
    assert got == code
    assert message in err
    assert not (zoo.parent / "run").exists()
