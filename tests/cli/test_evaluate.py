"""`evaluate` and `play` accept every kind of controller and report wrong input in one line."""

import json

import pytest

from blendctl.cli import main
from blendctl.controllers import ControllerServer, PurePursuit
from blendctl.controllers.resolve import TOKEN_VARIABLE

MINE = """
import numpy as np

def drive(observation):
    return [0.5, 0.0]

def three(observation):
    return [0.5, 0.0, 1.0]

def broken(observation):
    raise KeyError("lidar")

class Straight:
    def reset(self):
        with open("resets.txt", "a") as file:
            file.write("reset ")

    def act(self, observation, rng=None):
        return np.array([1.0, 0.0])

class Wander:
    def act(self, observation, rng=None):
        return np.zeros(2) if rng is None else rng.uniform(-1.0, 1.0, 2)
"""


@pytest.fixture
def desk(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(capsys, *words):
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    return stopped.value.code, *capsys.readouterr()


def evaluate(capsys, *words):
    return call(capsys, "evaluate", *words, "--episodes", 1, "--threads", 1, "--json", "out.json")


def play(capsys, world, controller):
    return call(capsys, "play", world, "--controller", controller, "--steps", 4, "--size", 96)


def served(monkeypatch):
    server = ControllerServer(PurePursuit("PointGoal0"), "tcp://127.0.0.1:0", token="secret").start()
    monkeypatch.setenv(TOKEN_VARIABLE, "secret")
    return server


@pytest.mark.parametrize("name", ["mine.py:drive", "pure-pursuit"])
def test_functions_and_classical_controllers_are_evaluated(name, desk, capsys):
    code, out, err = evaluate(capsys, name, "--env", "PointGoal0")
    assert code == 0, err
    assert name in out
    summary = json.loads((desk / "out.json").read_text())
    assert summary["controller"] == name
    assert summary["world"] == "PointGoal0"


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")  # of writing the file
def test_a_file_of_another_library_is_evaluated(desk, capsys):
    torch = pytest.importorskip("torch")
    script = torch.jit.trace(torch.nn.Linear(28, 2), torch.zeros(1, 28))
    script.save(str(desk / "net.pt"))
    code, _, err = evaluate(capsys, "net.pt", "--env", "PointGoal0")
    assert code == 1
    assert "use --trust-code" in err
    assert evaluate(capsys, "net.pt", "--env", "PointGoal0", "--trust-code")[0] == 0
    assert evaluate(capsys, "net.pt", "--env", "PointGoal0")[0] == 1  # the trust ended with the command


def test_a_remote_controller_has_the_same_evaluation_as_a_local_one(desk, capsys, monkeypatch):
    with served(monkeypatch) as server:
        code, _, err = evaluate(capsys, str(server.address), "pure-pursuit", "--env", "PointGoal0")
    assert code == 0, err
    there, here = json.loads((desk / "out.json").read_text())
    assert there["return_mean"] == here["return_mean"]


@pytest.mark.parametrize("name", ["mine.py:drive", "mine.py:Wander", "pure-pursuit"])
def test_play_films_functions_objects_and_classical_controllers(name, desk, capsys):
    code, out, err = play(capsys, "PointGoal0", name)
    assert code == 0, err
    assert "wrote play.gif" in out
    assert (desk / "play.gif").stat().st_size > 0


def test_a_stateful_controller_is_reset_at_each_episode(desk, capsys):
    words = ("--controller", "mine.py:Straight", "--steps", 4, "--size", 96, "--episodes", 3)
    assert call(capsys, "play", "PointGoal0", *words)[0] == 0
    assert (desk / "resets.txt").read_text() == "reset " * 3


def test_play_films_a_remote_controller(desk, capsys, monkeypatch):
    with served(monkeypatch) as server:
        assert play(capsys, "PointGoal0", str(server.address))[0] == 0


def test_a_classical_controller_drives_in_a_users_world(desk, capsys):
    (desk / "crater.py").write_text(
        "from blendctl.envs import Goal, Hazards, Task\n"
        "crater = Task('Point', 'goal', 1.5, (Goal(), Hazards(2, name='lava')))\n"
    )
    code, _, err = play(capsys, "crater.py:crater", "potential-field")
    assert code == 0, err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mine.py:drive"], "does not name its world; use --env"),
        (["pure-pursuit"], "does not name its world; use --env"),
        (["mine.py:drve", "--env", "PointGoal0"], 'has no "drve"'),
        (["mine.py:three", "--env", "PointGoal0"], "(1, 3)"),
        (["mine.py:broken", "--env", "PointGoal0"], "raised KeyError"),
        (["mine.py:broken", "--env", "PointGoal0"], "check-controller mine.py:broken --world PointGoal0"),
        (["tcp://127.0.0.1:1", "--env", "PointGoal0"], "cannot be reached"),
    ],
)
def test_wrong_input_of_evaluate_is_reported_in_one_line(words, message, desk, capsys):
    code, _, err = evaluate(capsys, *words)
    assert code == 1
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert not (desk / "out.json").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mine.py:three", "shape (3,); PointGoal0 takes (2,)"),
        ("mine.py:broken", "raised KeyError in step 1"),
        ("mine.py:drve", 'has no "drve"'),
    ],
)
def test_wrong_input_of_play_is_reported_in_one_line(name, message, desk, capsys):
    code, _, err = play(capsys, "PointGoal0", name)
    assert code == 1
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert not (desk / "play.gif").exists()


@pytest.mark.parametrize("words", [["--seed", -1], ["--episodes", 0], ["--threads", 0]])
def test_a_number_out_of_range_is_wrong_usage(words, capsys):
    code, _, err = call(capsys, "evaluate", "PointGoal1/ppo", *words)
    assert code == 2
    assert f"Invalid value for '{words[0]}'" in err


def test_one_controller_has_one_summary_and_several_a_list(desk, capsys):
    evaluate(capsys, "mine.py:drive", "--env", "PointGoal0")
    one = json.loads((desk / "out.json").read_text())
    evaluate(capsys, "mine.py:drive", "pure-pursuit", "--env", "PointGoal0")
    first, second = json.loads((desk / "out.json").read_text())
    assert first == one
    assert second["controller"] == "pure-pursuit"
