"""The command line `blendctl COMMAND`; each command is a module that is imported when it is called."""

from __future__ import annotations

import importlib
import os
import sys

import click
from click.shell_completion import CompletionItem

from blendctl._version import __version__
from blendctl.cli.output import echo
from blendctl.errors import BlendctlError, did_you_mean
from blendctl.interrupts import EXIT_INTERRUPTED, INTERRUPTED

EXIT_ERROR = 1  # the reason is on stderr

# Section -> command -> one line of help, in the order of `blendctl --help`. The command `train-context` is the object
# `train_context` of the module `blendctl.cli.train_context`.
COMMANDS: dict[str, dict[str, str]] = {
    "Blend": {
        "fit": "Fit a blend to your environment and controllers: a verdict.",
        "blend": "Drive a world with a blend of controllers.",
        "explain": "Explain one decision of a run.",
        "export": "Write a saved blend as C99 or ONNX files for a robot.",
        "certify": "Prove a cost bound for a blend or controller.",
    },
    "Experiments": {
        "reproduce": "Run the paper's experiment: figure, verdict, data.",
        "compare": "Compare switching methods on the same episodes.",
    },
    "Visualize": {
        "report": "Write an HTML report of a run, with a replay.",
        "demo": "Run the learner in small simulated worlds.",
        "play": "Film a controller in a world, as GIF or MP4.",
    },
    "Worlds": {
        "check-env": "Check an environment before using it.",
        "conformance": "Check the worlds against recordings of the reference.",
    },
    "Controllers": {
        "train": "Train a controller in a world; resumable.",
        "train-context": "Train context networks of controllers.",
        "train-lookahead": "Train look-ahead networks of controllers.",
        "evaluate": "Measure return and cost of controllers, with intervals.",
        "zoo": "List the trained controllers and networks that ship.",
        "check-controller": "Test your own controller and list its defects.",
        "serve": "Serve a controller to other processes.",
    },
    "Installation": {
        "doctor": "Check what is installed and whether it works.",
        "selftest": "Measure blendctl's guarantees on this machine.",
        "completion": "Print the completion script for bash, zsh or fish.",
    },
}
ALL_COMMANDS = {name: line for section in COMMANDS.values() for name, line in section.items()}


class _LazyGroup(click.Group):
    """A group that imports a command's module only when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(ALL_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in ALL_COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        command = getattr(importlib.import_module(f"blendctl.cli.{name}"), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        unknown = args and not name.startswith("-") and name not in ALL_COMMANDS
        # Shell completion parses unfinished commands, so it must not fail here.
        if unknown and not ctx.resilient_parsing:
            raise click.UsageError(f'unknown command "{name}"; {did_you_mean(name, ALL_COMMANDS)}', ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete from the table, because importing every command would be slow."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [CompletionItem(name, help=line) for name, line in ALL_COMMANDS.items() if name.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl(list(section.items()))


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print version, commit and dependencies, and exit."""
    if wanted and not context.resilient_parsing:
        from blendctl.cli.diagnostics import describe_version

        echo(f"blendctl, version {__version__}\n{describe_version()}")
        context.exit()


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
    epilog="""\b
First steps:  blendctl doctor
              blendctl blend PointGoal1 --episodes 5 --out out/blend
More:         blendctl COMMAND --help
Exit codes:   0 success; 1 error or failed check; 2 wrong usage; 130 Ctrl-C""",
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version,
    help="Show version, commit and dependencies, and exit.",
)  # fmt: skip
def command_line() -> None:
    """Blend controllers: switch between them at every control step, with a live bound on the loss of the choices."""


def main(args: list[str] | None = None) -> None:
    """Run the command line; report expected errors as one line on stderr."""
    try:
        code = command_line.main(args=args, prog_name="blendctl", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        echo(INTERRUPTED, err=True)
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_ERROR)
    except (BlendctlError, OSError, MemoryError) as error:
        if os.environ.get("BLENDCTL_DEBUG"):
            raise
        echo(f"blendctl: {error}", err=True)
        sys.exit(EXIT_ERROR)
    sys.exit(code if isinstance(code, int) else 0)
