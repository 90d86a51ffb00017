"""Without torch, help and completion work and training names the missing extra."""

import os
import subprocess
import sys

import pytest

HIDDEN = "import sys; sys.modules['torch'] = None; from blendctl.cli import main; main(sys.argv[1:])"
EXTRA = 'blendctl: torch is not installed; install it with: pip install "blendctl[train]"\n'


def call(*words, **environment):
    command = [sys.executable, "-c", HIDDEN, *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=os.environ | environment, check=False
    )


@pytest.mark.parametrize(("command", "option"), [("train", "--cost-limit"), ("train-context", "--horizons")])
def test_help_lists_the_options(command, option):
    done = call(command, "--help")
    assert done.returncode == 0, done.stderr
    assert option in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("blendctl train PointGoal1 --algo trpo", "plain,trpo-lagrangian"),
        ("blendctl train PointGoal1 --cost", "plain,--cost-limit"),
        ("blendctl train-context PointGoal1/pp", "plain,PointGoal1/ppo"),
    ],
)
def test_completion_works_without_torch(words, offered):
    asked = {"_BLENDCTL_COMPLETE": "bash_complete", "COMP_WORDS": words}
    done = call(**asked, COMP_CWORD=str(len(words.split()) - 1))
    assert offered in done.stdout.splitlines()
    assert done.stderr == ""


@pytest.mark.parametrize("words", [("train", "PointGoal1"), ("train-context", "PointGoal1/ppo")])
def test_training_says_which_extra_is_missing_and_writes_nothing(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call(*words)
    assert done.returncode == 1
    assert done.stderr == EXTRA
    assert list(tmp_path.iterdir()) == []


def test_settings_can_be_read_and_the_rest_says_which_extra_is_missing():
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from blendctl.training import ContextConfig, TrainConfig\n"
        "from blendctl.errors import MissingExtraError\n"
        "print(TrainConfig().algo, ContextConfig().horizons)\n"
        "try:\n"
        "    from blendctl.training import Trainer\n"
        "except MissingExtraError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "ppo (1, 10, 50)"
    assert 'pip install "blendctl[train]"' in done.stdout
