"""Write the page of all commands from the commands themselves: `python docs/commands.py` makes docs/commands.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from blendctl.cli import COMMANDS, command_line

PAGE = Path(__file__).parent / "commands.md"
HEAD = """# Commands

Every command tells the same with `--help`. This page is made from them by `python docs/commands.py`.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | everything else that went wrong: refused or failed, and said why on stderr; or a check found something wanting |
| 2 | the command line cannot be parsed: an unknown command or option, or a value that the option refuses |
| 130 | Ctrl-C; nothing half-written is left behind |

The checks are `check-controller`, `conformance` and `doctor`. Tables go to stdout, progress to stderr and only on a
terminal. `--json FILE` writes the same figures for a script, `--json -` to stdout. `BLENDCTL_DEBUG=1` shows the
traceback of an error. Completion at Tab: [`blendctl completion`](#blendctl-completion).
"""


def page() -> str:
    """Give the page."""
    parts = [HEAD]
    for title, chapter in COMMANDS.items():
        parts.append(f"## {title}\n")
        for name in chapter:
            command = command_line.get_command(click.Context(command_line), name)
            assert command is not None
            for words, leaf in _leaves(f"blendctl {name}", command):
                parts += _told(words, leaf)
    return "\n".join(parts).rstrip() + "\n"


def _leaves(words: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from _leaves(f"{words} {name}", child)
    else:
        yield words, command


def _told(words: str, command: click.Command) -> list[str]:
    context = click.Context(command, info_name=words)
    parts = [f"### {words}\n", f"`{' '.join([words, *command.collect_usage_pieces(context)])}`\n"]
    blocks = (command.help or "").replace("\b\n", "\x00").split("\n\n")
    for block in blocks:
        lines = [line.strip() for line in block.strip().splitlines()]
        parts.append(
            "```text\n" + "\n".join(lines).strip("\x00") + "\n```\n" if "\x00" in block else " ".join(lines) + "\n"
        )
    found = (param.get_help_record(context) for param in command.params)
    rows = [row for row in found if row and row[1]]
    if rows:
        parts.append("| option | what it does |\n|---|---|")
        parts += [f"| `{_cell(flags)}` | {_text(told)} |" for flags, told in rows]
        parts.append("")
    for line in re.findall(r"((?:\w+=\S+ )?blendctl .+?)(?=\.  |$)", command.epilog or "", re.MULTILINE):
        parts.append(f"```sh\n{line}\n```\n")
    return parts


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _text(text: str) -> str:
    """Escape what Markdown would read as its own."""
    return re.sub(r"([\[\]|<>_*])", r"\\\1", " ".join(text.split()))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
