"""Shell completion of worlds, controllers, decision rules, features and algorithms."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completer(names: Callable[[click.Context], Iterable[str]], *, files: bool = False) -> Completer:
    """Make a completer that suggests names by prefix; with `files`, file names if no name matches."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        matches = [CompletionItem(name) for name in names(ctx) if name.lower().startswith(incomplete.lower())]
        return matches or ([CompletionItem(incomplete, type="file")] if files else [])

    return complete


# The imports stay inside the functions: completion must be fast.
def _world_names(ctx: click.Context) -> Iterable[str]:
    from blendctl.envs.catalog import NAMES

    return NAMES


def _zoo_names(ctx: click.Context) -> list[str]:
    """Return the zoo's names, those of the world typed so far first."""
    from blendctl.controllers.zoo import zoo_names

    world = str(ctx.params.get("world") or "")
    return sorted(zoo_names(), key=lambda name: not name.startswith(f"{world}/"))


def _controller_names(ctx: click.Context) -> list[str]:
    from blendctl.controllers.classical import CLASSICAL

    return [*_zoo_names(ctx), *CLASSICAL]


def _rule_names(ctx: click.Context) -> Iterable[str]:
    from blendctl.bandit.rules import RULES

    return RULES


def _feature_names(ctx: click.Context) -> Iterable[str]:
    from blendctl.features.registry import FEATURES

    return FEATURES


def _algorithm_names(ctx: click.Context) -> Iterable[str]:
    from blendctl.training.config import ALGORITHMS

    return ALGORITHMS


worlds = _completer(_world_names, files=True)
zoo_controllers = _completer(_zoo_names, files=True)
controllers = _completer(_controller_names, files=True)
controllers_or_random = _completer(lambda ctx: ["random", *_controller_names(ctx)], files=True)
rules = _completer(_rule_names)
features = _completer(_feature_names)
algorithms = _completer(_algorithm_names)
