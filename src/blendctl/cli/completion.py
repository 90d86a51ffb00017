"""`blendctl completion`: the script that teaches a shell blendctl's commands, worlds and controllers."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

__all__ = ["completion"]

VARIABLE = "_BLENDCTL_COMPLETE"  # what the script sets when it asks; click answers


HELP = """Print the script that completes blendctl's words at Tab in SHELL.

\b
bash   eval "$(blendctl completion bash)"       in ~/.bashrc
zsh    eval "$(blendctl completion zsh)"        in ~/.zshrc
fish   blendctl completion fish > ~/.config/fish/completions/blendctl.fish
"""


@click.command(help=HELP, epilog="Example: blendctl completion bash")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script; what the help says stands in HELP, with its line breaks."""
    from blendctl.cli import command_line

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(command_line, {}, "blendctl", VARIABLE)
    click.echo(script.source_template % script.source_vars())
