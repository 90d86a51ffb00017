"""Every command line in the documentation is run, or parsed if it would take long."""

import re
import shlex
from pathlib import Path

import click
import pytest

from blendctl.cli import command_line, main
from blendctl.controllers.zoo import find_controller_file

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```[a-z]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
SMALL = {  # command -> options that make it quick
    "blend": ["--episodes", "1", "--no-alone"],
    "evaluate": ["--episodes", "1", "--threads", "1"],
    "play": ["--steps", "4", "--size", "96"],
    "demo": ["--stages", "20", "--learners", "2"],
    "check-controller": ["--observations", "5", "--deadline", "10"],
    "check-env": [],
    "explain": [],
    "export": [],
    "report": [],
    "zoo": [],
    "conformance": [],
    "completion": [],
}
LONG = {
    "selftest",
    "fit",
    "train",
    "train-context",
    "train-lookahead",
    "serve",
    "reproduce",
    "compare",
    "certify",
    "doctor",
}  # tested elsewhere; here only parsed
PARSED = {"--add", "--live", "--view", "--certificate"}  # options that need a run, a browser or OpenGL


def lines_of(page):
    """Yield the command lines in the page's blocks, as words."""
    for block in FENCE.findall(page.read_text(encoding="utf-8")):
        for line in re.sub(r"\\\n\s*", " ", block).splitlines():
            line = line.removeprefix("$ ")
            if re.match(r"(?:[A-Z_]+=\S+ )?blendctl ", line):
                words = shlex.split(line, comments=True)
                yield words[words.index("blendctl") + 1 :]


EVERY = [pytest.param(page, id=page.stem) for page in PAGES if list(lines_of(page))]


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A directory with what the pages assume: a controller, a task, a finished run, recordings."""
    (tmp_path / "mine.py").write_text(
        "def drive(observation):\n    return [0.5, 0.0]\n"
        "def energy(observation):\n    return [2.0 if observation[2] > 0 else -2.0]\n"
        "def regulator(observation):\n    return [-2.0 * observation[1]]\n"
        "def speeding(observation, action, info):\n    return float(abs(observation[2]) > 5.0)\n"
    )
    (tmp_path / "volcano.py").write_text(
        "from blendctl.envs import Goal, Hazards, Task\n"
        "volcano = Task('Point', 'goal', 1.5, (Goal(), Hazards(2, name='lava')))\n"
    )
    recordings = ROOT / "tests" / "data" / "recordings"
    for name in ("recordings", "tests/data/recordings"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        for file in recordings.glob("SafetyPointGoal1-v0.*"):
            (folder / file.name).symlink_to(file)
    run = tmp_path / "runs" / "PointGoal1-ppo-s0"
    run.mkdir(parents=True)
    (run / "controller.safetensors").symlink_to(find_controller_file("PointGoal1/ppo"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A small run, for pages that explain a run of another page."""
    folder = tmp_path_factory.mktemp("drive") / "blend"
    with pytest.raises(SystemExit):
        main(["blend", "PointGoal1", "--episodes", "1", "--no-alone", "--out", str(folder)])
    return folder


@pytest.mark.parametrize("page", EVERY)
def test_documented_commands_work(page, desk, finished, capsys):
    ran = set()
    for words in lines_of(page):
        if " ".join(words) in ran:
            continue
        ran.add(" ".join(words))
        name = words[0]
        if name in LONG or PARSED & set(words) or words[:1] == ["--help"]:
            parse(words, desk)
            continue
        assert name in SMALL, f"{page.name}: add to SMALL or LONG in this test: blendctl {shlex.join(words)}"
        if name in ("explain", "export", "report") and not (desk / words[1]).exists():
            (desk / words[1]).parent.mkdir(parents=True, exist_ok=True)
            (desk / words[1]).symlink_to(finished)
        with pytest.raises(SystemExit) as stopped:
            main(smaller(words, SMALL[name]))
        out, err = capsys.readouterr()
        assert stopped.value.code == 0, f"{page.name}: blendctl {shlex.join(words)}\n{out}{err}"


def smaller(words, options):
    """Replace the values of options and add missing options."""
    words = list(words)
    for flag, value in zip(options[::2], options[1::2], strict=False):
        if flag in words:
            words[words.index(flag) + 1] = value
        else:
            words += [flag, value]
    return words + ([options[-1]] if len(options) % 2 else [])


def parse(words, desk):
    """Parse a command line without running it; create the directories that it would read."""
    for word in words:
        if re.fullmatch(r"(runs|out)/[\w./-]+", word) and "." not in word:
            (desk / word).mkdir(parents=True, exist_ok=True)
    command = command_line.get_command(click.Context(command_line), words[0])
    assert command is not None, words
    if "--list" in words:
        assert any("--list" in param.opts for param in command.params)
        return
    command.make_context(words[0], words[1:])


def test_the_commands_of_the_pages_are_found():
    commands = {words[0] for page in PAGES for words in lines_of(page)}
    assert {"blend", "explain", "report", "play", "train", "evaluate", "doctor"} <= commands
