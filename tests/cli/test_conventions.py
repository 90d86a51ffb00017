"""Every command has help, an example that parses, exit codes and JSON."""

import contextlib
import json
import re
import shlex

import click
import pytest

from blendctl.cli import COMMANDS, command_line, main


def leaves(command, name):
    """Yield every command that can be called with its full name, such as `demo bandit`."""
    if isinstance(command, click.Group):
        for child in command.list_commands(None):
            yield from leaves(command.get_command(None, child), f"{name} {child}")
    else:
        yield name, command


EVERY = dict(leaves(command_line, "blendctl"))


def call(capsys, *args):
    with pytest.raises(SystemExit) as stopped:
        main([str(arg) for arg in args])
    return stopped.value.code, *capsys.readouterr()


@pytest.mark.parametrize("name", EVERY)
def test_every_command_has_help_and_an_example_that_parses(name, tmp_path, monkeypatch):
    command = EVERY[name]
    assert command.help
    assert command.epilog, "no example"
    lines = re.findall(r"((?:\w+=\S+ )?blendctl .+?)(?=\.  |$)", command.epilog, re.MULTILINE)
    assert lines, f"no example in: {command.epilog}"
    monkeypatch.chdir(tmp_path)
    for line in lines:
        words = shlex.split(line, comments=True)
        words = words[words.index("blendctl") + len(name.split()) :]
        for word in words:  # directories that an earlier command would create
            if not word.startswith("-") and re.fullmatch(r"[\w-]+(/[\w-]+)?", word) and "/" in word:
                (tmp_path / word).mkdir(parents=True, exist_ok=True)
        (tmp_path / "recordings").mkdir(exist_ok=True)
        with contextlib.suppress(click.exceptions.Exit):  # eager options such as --list
            command.make_context(name, words)  # raises if an option is unknown or a value is not allowed


@pytest.mark.parametrize("name", EVERY)
def test_every_option_has_a_help_text(name):
    for param in EVERY[name].params:
        if isinstance(param, click.Option):
            assert param.help, f"{name} {param.opts[0]}"


def test_the_help_lists_commands_and_exit_codes(capsys):
    code, out, _ = call(capsys, "--help")
    assert code == 0
    for title, chapter in COMMANDS.items():
        assert f"{title}:" in out
        for name, line in chapter.items():
            assert re.search(rf"^  {name} +{re.escape(line[:30])}", out, re.MULTILINE), name
    assert "130 Ctrl-C" in out


def test_the_line_in_the_table_is_a_sentence():
    for section in COMMANDS.values():
        for name, line in section.items():
            assert line.endswith("."), name


def test_json_on_stdout_moves_the_table_to_stderr(capsys):
    code, out, err = call(capsys, "evaluate", "PointGoal1/ppo", "--episodes", 1, "--threads", 1, "--json", "-")
    assert code == 0
    assert json.loads(out)["episodes"] == 1
    assert "return" in err


def test_the_zoo_writes_its_cards_to_stdout_or_to_a_file(capsys, tmp_path):
    _, out, _ = call(capsys, "zoo", "--json")
    assert "PointGoal1/ppo" in json.loads(out)
    _, out, _ = call(capsys, "zoo", "--show", "PointGoal1/ppo", "--json", tmp_path / "card.json")
    assert out == ""
    assert json.loads((tmp_path / "card.json").read_text())["world"] == "PointGoal1"


def test_wrong_usage_exits_with_2_and_an_error_with_1(capsys):
    assert call(capsys, "play")[0] == 2
    code, _, err = call(capsys, "play", "PointGoal1", "--epsiodes", 3)
    assert code == 2
    assert "--episodes" in err, "the nearest option is suggested"
    code, _, err = call(capsys, "play", "PointGaol1")
    assert code == 1
    assert 'did you mean "PointGoal1"' in err
