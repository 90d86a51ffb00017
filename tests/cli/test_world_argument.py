"""Every command that takes a world takes a task in a Python file."""

import json

import click
import pytest

from blendctl.cli import ALL_COMMANDS, command_line, main
from blendctl.controllers.server import ControllerServer

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


BLEND = ("blend", WORLD, *PAIR, "--episodes", 1, "--features", "one-hot", "--no-alone", "--out", "made")
SMALL = ("--worlds", 4, "--hidden", 8, "--threads", 1)
TRAIN = ("train", WORLD, "--algo", "ppo", "--steps", 96, "--rollout", 12, "--minibatch", 48, *SMALL)
SHORT = ("--data-points", 1, "--episodes", 1, "--features", "one-hot", "--engine", "inline")
# What each command that takes a world is called with, after what must be there before.
CALLS: dict[str, list[tuple]] = {
    "blend": [BLEND],
    "fit": [("fit", WORLD, *PAIR, "--steps", 96, "--episodes", 2, "--hold", 2, "--engine", "inline", "--out", "f")],
    "compare": [("compare", WORLD, *PAIR, "--methods", "random", "--episodes", 1, "--engine", "inline", "--out", "c")],
    "reproduce": [("reproduce", "--worlds", WORLD, *PAIR, *SHORT, "--out", "reproduced")],
    "certify": [("certify", "stop", "--world", WORLD, "--budget", 5, "--episodes", 7, "--engine", "inline")],
    "play": [("play", WORLD, "--controller", "stop", "--steps", 3, "--size", 96, "--out", "film.gif")],
    "evaluate": [("evaluate", "stop", "--env", WORLD, "--episodes", 1)],
    "check-env": [("check-env", WORLD)],
    "check-controller": [
        ("check-controller", "pure-pursuit", "--world", WORLD, "--observations", 5, "--deadline", 10)
    ],
    "train": [(*TRAIN, "--eval-episodes", 1, "--quiet", "--out", "trained")],
    "train-context": [
        (*TRAIN, "--eval-episodes", 0, "--quiet", "--out", "trained"),
        ("train-context", "trained", "--env", WORLD, "--steps", 200, "--horizons", 1, "--passes", 1, "--worlds", 4),
    ],
    "train-lookahead": [
        (*TRAIN, "--eval-episodes", 0, "--quiet", "--out", "one"),
        (*TRAIN, "--seed", 1, "--eval-episodes", 0, "--quiet", "--out", "other"),
        ("train-lookahead", WORLD, "--controllers", "one", "other", "--steps", 400, "--minibatch", 32, "--worlds", 8,
         "--hidden", 16, "--dial-points", 2, "--dial-episodes", 2, "--out", "ahead"),
    ],
    "export": [BLEND, ("export", "made", "--world", WORLD, "--out", "exported")],
    "serve": [("serve", "pure-pursuit", "--world", WORLD, "--no-token")],
}  # fmt: skip


def taking_a_world():
    commands = {name: command_line.get_command(None, name) for name in ALL_COMMANDS}
    return {
        name: [param for param in command.params if param.name in ("world", "worlds")]
        for name, command in commands.items()
        if command is not None and any(param.name in ("world", "worlds") for param in command.params)
    }


def test_every_command_that_takes_a_world_is_tried_below():
    assert set(taking_a_world()) == set(CALLS)


@pytest.mark.parametrize("command", CALLS)
def test_every_command_drives_it(command, capsys, monkeypatch):
    if command.startswith("train"):
        pytest.importorskip("torch")
    monkeypatch.setattr(ControllerServer, "serve_forever", lambda self: None)
    for words in CALLS[command]:
        code, out, err = call(capsys, *words)
        assert code == 0, out + err


def test_a_world_is_named_by_env_or_world_in_every_command():
    named = [param for params in taking_a_world().values() for param in params if "--worlds" not in param.opts]
    options = [param.opts for param in named if isinstance(param, click.Option)]
    assert len(options) == 6
    assert all({"--env", "--world"} <= set(opts) for opts in options)


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
