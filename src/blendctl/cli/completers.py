"""What the shell offers at Tab: worlds, controllers, rules, features, by what has been typed so far."""

from __future__ import annotations

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem

__all__ = ["worlds", "controllers", "zoo_controllers", "players", "rules", "features", "algorithms"]


def _starting(incomplete: str, names: Iterable[str], *, files: bool = False) -> list[CompletionItem]:
    """Offer the names that begin so; files where none does, and they may be meant."""
    found = [CompletionItem(name) for name in names if name.lower().startswith(incomplete.lower())]
    return found or ([CompletionItem(incomplete, type="file")] if files else [])


def worlds(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the worlds; a file of one's own may be meant too."""
    from blendctl.envs.catalog import NAMES

    return _starting(incomplete, NAMES, files=True)


def _fitting(ctx: click.Context) -> list[str]:
    """List the zoo, that of the command's world first, if one has been typed."""
    from blendctl.controllers.zoo import zoo_names

    world = str(ctx.params.get("world") or "")
    return sorted(zoo_names(), key=lambda name: not name.startswith(f"{world}/"))


def zoo_controllers(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the trained controllers that ship, then files."""
    return _starting(incomplete, _fitting(ctx), files=True)


def controllers(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer trained and classical controllers, then files."""
    from blendctl.controllers.classical import CLASSICAL

    return _starting(incomplete, [*_fitting(ctx), *CLASSICAL], files=True)


def players(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer what `play` takes: random, trained and classical controllers, then files."""
    from blendctl.controllers.classical import CLASSICAL

    return _starting(incomplete, ["random", *_fitting(ctx), *CLASSICAL], files=True)


def rules(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the decision rules."""
    from blendctl.bandit.rules import RULES

    return _starting(incomplete, RULES)


def features(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the contexts that have names."""
    from blendctl.features.registry import NAMES

    return _starting(incomplete, NAMES)


def algorithms(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the training algorithms."""
    from blendctl.training.config import ALGORITHMS

    return _starting(incomplete, ALGORITHMS)
