"""Shell completion of the real command line, called through environment variables as by a shell."""

import os
import shutil
import subprocess
import sys

import pytest

from blendctl.controllers import zoo_names


def offered(words, position=None):
    """Return the completions of the last word in bash."""
    environment = os.environ | {
        "_BLENDCTL_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1 if position is None else position),
    }
    done = subprocess.run(
        [sys.executable, "-c", "from blendctl.cli import main; main()"],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_commands_worlds_and_controllers_are_completed():
    assert offered(["blendctl", "zo"]) == ["zoo"]
    assert offered(["blendctl", "play", "CarB"]) == ["CarButton0", "CarButton1", "CarButton2"]
    shipped = [name for name in zoo_names() if name.startswith("PointGoal1/")]
    assert offered(["blendctl", "evaluate", "PointGoal1/"]) == shipped
    assert offered(["blendctl", "play", "PointGoal1", "--controller", "ra"]) == ["random"]
    assert "ppo-lagrangian" in offered(["blendctl", "train", "PointGoal1", "--algo", "ppo"])


def test_every_value_of_a_multi_value_option_is_completed():
    first = offered(["blendctl", "blend", "PointGoal1", "--controllers", "pure"])
    second = offered(["blendctl", "blend", "PointGoal1", "--controllers", "pure-pursuit", "pot"])
    assert first == ["pure-pursuit"]
    assert second == ["potential-field"]
    assert "thompson" in offered(["blendctl", "blend", "PointGoal1", "--rule", "t"])


def test_unknown_words_have_no_completion():
    assert offered(["blendctl", "nonsense", "x"], 2) == []


def test_completing_commands_imports_none_of_them():
    code = (
        "import os, sys, atexit\n"
        "os.environ |= {'_BLENDCTL_COMPLETE': 'bash_complete', 'COMP_WORDS': 'blendctl ', 'COMP_CWORD': '1'}\n"
        "atexit.register(lambda: print([m for m in ('torch', 'rich', 'numpy') if m in sys.modules]))\n"
        "from blendctl.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "plain,doctor" in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_valid_in_its_shell(shell):
    done = subprocess.run(
        [sys.executable, "-m", "blendctl", "completion", shell], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert "_BLENDCTL_COMPLETE" in done.stdout
    if shutil.which(shell):
        read = subprocess.run([shell, "-n"], input=done.stdout, capture_output=True, text=True, timeout=60)
        assert read.returncode == 0, read.stderr
