"""Every command that takes a world takes a task in a Python file."""

import json

import pytest

from blendctl.cli import main

FILE = """
from blendctl.envs import Goal, Hazards, Task

volcano = Task(
    "Point", "goal", 1.5, (Goal(), Hazards(3), Hazards(2, name="lava", radius=0.3, keepout=0.3)), max_episode_steps=12
)
number = 3
"""
WORLD = "volcano.py:volcano"
PAIR = ("--controllers", "pure-pursuit", "potential-field")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "volcano.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(capsys, *args):
    with pytest.raises(SystemExit) as stopped:
        main([str(arg) for arg in args])
    return stopped.value.code, *capsys.readouterr()


def test_blend_drives_it(capsys, folder):
    words = (
        "blend",
        WORLD,
        *PAIR,
        "--episodes",
        1,
        "--features",
        "one-hot",
        "--no-alone",
        "--out",
        "out",
        "--json",
        "-",
    )
    code, out, err = call(capsys, *words)
    assert code == 0, err
    assert json.loads(out)["world"] == WORLD
    code, _, err = call(capsys, "report", "out")
    assert code == 0, err
    assert '"lava"' in (folder / "out" / "report.html").read_text()


def test_evaluate_drives_it(capsys):
    code, out, err = call(capsys, "evaluate", "pure-pursuit", "--env", WORLD, "--episodes", 2, "--json", "-")
    assert code == 0, err
    assert json.loads(out)["world"] == WORLD


@pytest.mark.parametrize("engine", ["inline", "processes"])
def test_compare_drives_it_and_resumes(capsys, folder, engine):
    words = ["compare", WORLD, *PAIR, "--methods", "random", "--episodes", 2, "--engine", engine, "--out", "out"]
    words += ["--workers", 1] if engine == "processes" else []
    code, _, err = call(capsys, *words)
    assert code == 0, err
    stored = {path.name: path.stat().st_mtime_ns for path in (folder / "out" / "units").iterdir()}
    code, _, err = call(capsys, *words)
    assert code == 0, err
    assert {path.name: path.stat().st_mtime_ns for path in (folder / "out" / "units").iterdir()} == stored


def test_an_edited_task_is_another_experiment(capsys, folder):
    words = ["compare", WORLD, *PAIR, "--methods", "random", "--episodes", 1, "--engine", "inline", "--out", "out"]
    assert call(capsys, *words)[0] == 0
    (folder / "volcano.py").write_text(FILE.replace("Hazards(3)", "Hazards(4)"))
    code, _, err = call(capsys, *words)
    assert code == 1
    assert "digests" in err


def test_reproduce_check_controller_and_play_take_it(capsys):
    short = ("--data-points", 1, "--episodes", 1, "--features", "one-hot", "--engine", "inline")
    for words in (
        ("reproduce", "--worlds", WORLD, *PAIR, *short, "--out", "reproduced"),
        ("check-controller", "pure-pursuit", "--world", WORLD, "--observations", 5, "--deadline", 10),
        ("play", WORLD, "--controller", "stop", "--steps", 3, "--size", 96, "--out", "film.gif"),
    ):
        code, _, err = call(capsys, *words)
        assert code == 0, err


def test_a_module_is_a_place_too(capsys, monkeypatch, folder):
    monkeypatch.syspath_prepend(folder)
    code, _, err = call(capsys, "evaluate", "stop", "--env", "volcano:volcano", "--episodes", 1)
    assert code == 0, err


@pytest.mark.parametrize(
    ("world", "message"),
    [
        ("volcano.py:number", "is not a blendctl.envs.Task"),
        ("volcano.py:volcan", 'has no "volcan"'),
        ("crater.py:crater", "there is no file crater.py"),
    ],
)
def test_what_is_not_a_task_is_refused(capsys, world, message):
    code, _, err = call(capsys, "blend", world)
    assert code == 1
    assert message in err


def test_a_card_cannot_run_code(folder):
    """The world in a controller's card is data: only a user may name Python."""
    from blendctl.envs import find_task
    from blendctl.errors import InputError
    from blendctl.switches.base import open_worlds

    (folder / "trap.py").write_text("raise SystemExit('the file was run')")
    with pytest.raises(InputError, match="runs only if you name it"):
        find_task("trap.py:task")
    with pytest.raises(InputError, match="runs only if you name it"):
        open_worlds("trap.py:task", 1)
