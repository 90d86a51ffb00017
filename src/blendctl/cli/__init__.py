"""The commands: `blendctl COMMAND`, each in a module of its own that loads only when it is called."""

from __future__ import annotations

import importlib
import os
import sys

import click
from click.shell_completion import CompletionItem

from blendctl._version import __version__
from blendctl.errors import BlendctlError, did_you_mean

__all__ = ["main", "command_line"]

EXIT_ERROR = 1  # blendctl refused or failed, and said why on stderr
EXIT_INTERRUPTED = 130  # Ctrl-C, as shells count it

# command -> (its object as "module:attribute", one line of help). The order is the table of contents.
COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "Blend": {
        "blend": ("blendctl.cli.blend:blend", "Drive a world with a blend of controllers."),
        "explain": ("blendctl.cli.explain:explain", "Say in plain words why a controller drove."),
    },
    "Experiments": {
        "reproduce": ("blendctl.cli.reproduce:reproduce", "The paper's experiment: figure, verdict, data."),
        "compare": ("blendctl.cli.compare:compare", "Every rival on the same episodes, with scores."),
    },
    "Look": {
        "report": ("blendctl.cli.report:report", "A page about a run, with a replay."),
        "demo": ("blendctl.cli.demo:demo", "Small worlds with known answers: watch the learner work."),
        "play": ("blendctl.cli.play:play", "Watch a controller drive in a world, as a GIF or MP4."),
    },
    "Worlds": {
        "conformance": (
            "blendctl.cli.conformance:conformance",
            "Our worlds against recordings of the reference.",
        ),
    },
    "Controllers": {
        "train": ("blendctl.cli.train:train", "Train a controller in a world; resumable."),
        "train-context": (
            "blendctl.cli.train_context:train_context",
            "Train context networks of controllers.",
        ),
        "evaluate": ("blendctl.cli.evaluate:evaluate", "Return and cost of controllers, with intervals."),
        "zoo": ("blendctl.cli.zoo:zoo", "The trained controllers that ship."),
        "check-controller": (
            "blendctl.cli.check_controller:check_controller",
            "Try a controller of yours, and say what is wrong with it.",
        ),
        "serve": ("blendctl.cli.serve:serve", "Offer a controller to others, without its code."),
    },
    "This installation": {
        "doctor": ("blendctl.cli.doctor:doctor", "What is installed, what is missing, whether it works."),
        "completion": ("blendctl.cli.completion:completion", "Complete words at Tab: bash, zsh, fish."),
    },
}


class _Contents(click.Group):
    """A group that imports a command's module only when that command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for chapter in COMMANDS.values() for name in chapter]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for chapter in COMMANDS.values():
            if cmd_name in chapter:
                module, attribute = chapter[cmd_name][0].split(":")
                command = getattr(importlib.import_module(module), attribute)
                assert isinstance(command, click.Command)
                return command
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        unknown = args and not name.startswith("-") and name not in self.list_commands(ctx)
        if unknown and not ctx.resilient_parsing:  # which is what completion does
            hint = did_you_mean(name, self.list_commands(ctx))
            raise click.UsageError(f'there is no command "{name}"; {hint}', ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer the commands from the table: loading them all would keep the shell waiting."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [
            CompletionItem(name, help=line)
            for chapter in COMMANDS.values()
            for name, (_, line) in chapter.items()
            if name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, chapter in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, help_line) for name, (_, help_line) in chapter.items()])


@click.group(
    cls=_Contents,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
First steps:  blendctl doctor
              blendctl blend PointGoal1 --episodes 5 --out out/blend
More:         blendctl COMMAND --help
Exit codes:   0 done; 1 refused, failed, or found wanting; 2 wrong usage; 130 Ctrl-C""",
)
@click.version_option(__version__, prog_name="blendctl")
def command_line() -> None:
    """Blend controllers: switch between them at every control step, and know how far from the best you are."""


def main(args: list[str] | None = None) -> None:
    """Run the command line; errors that blendctl raises on purpose become one line on stderr."""
    debug = bool(os.environ.get("BLENDCTL_DEBUG"))
    try:
        code = command_line.main(args=args, prog_name="blendctl", standalone_mode=False)
    except BlendctlError as error:
        if debug:
            raise
        click.echo(f"blendctl: {error}", err=True)
        sys.exit(EXIT_ERROR)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("blendctl: interrupted", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_ERROR)
    except (OSError, MemoryError) as error:
        if debug:
            raise
        click.echo(f"blendctl: {error}", err=True)
        sys.exit(EXIT_ERROR)
    sys.exit(code if isinstance(code, int) else 0)
