"""`blendctl completion`: print the shell script that completes commands, worlds and controllers."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

VARIABLE = "_BLENDCTL_COMPLETE"  # environment variable through which the script calls click

# Not a docstring: click keeps the line breaks after \b.
HELP = """Print the script that completes blendctl's commands, worlds and controllers in SHELL.

\b
bash   eval "$(blendctl completion bash)"       in ~/.bashrc
zsh    eval "$(blendctl completion zsh)"        in ~/.zshrc
fish   blendctl completion fish > ~/.config/fish/completions/blendctl.fish
"""


@click.command(help=HELP, epilog="Example: blendctl completion bash")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell."""
    from blendctl.cli import command_line

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(command_line, {}, "blendctl", VARIABLE)
    click.echo(script.source_template % script.source_vars())
