"""Shell completion of worlds, controllers, decision rules, features and algorithms."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

Names = Callable[[click.Context], Iterable[str]]
Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completer(names: Names, *, files: bool = False) -> Completer:
    """Make a completer that suggests names by prefix; with `files`, file names if no name matches."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        matches = [CompletionItem(name) for name in names(ctx) if name.lower().startswith(incomplete.lower())]
        return matches or ([CompletionItem(incomplete, type="file")] if files else [])

    return complete


def _names_in(module: str, table: str) -> Names:
    """Return the names in a module's table; the module is imported on the first completion, which must be fast."""
    return lambda ctx: getattr(importlib.import_module(f"blendctl.{module}"), table)


def _zoo_names(ctx: click.Context) -> list[str]:
    """Return the zoo's names, those of the world typed so far first."""
    from blendctl.controllers.zoo import zoo_names

    world = str(ctx.params.get("world") or "")
    return sorted(zoo_names(), key=lambda name: not name.startswith(f"{world}/"))


def _controller_names(ctx: click.Context) -> list[str]:
    from blendctl.controllers.classical import CLASSICAL

    return [*_zoo_names(ctx), *CLASSICAL]


worlds = _completer(_names_in("envs.catalog", "NAMES"), files=True)
zoo_controllers = _completer(_zoo_names, files=True)
controllers = _completer(_controller_names, files=True)
controllers_or_random = _completer(lambda ctx: ["random", *_controller_names(ctx)], files=True)
rules = _completer(_names_in("bandit.rules", "RULES"))
features = _completer(_names_in("features.registry", "FEATURES"))
algorithms = _completer(_names_in("training.config", "ALGORITHMS"))
