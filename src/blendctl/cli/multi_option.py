"""Options that take several values: `--controllers A B C`, as well as `--controllers A --controllers B`."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

__all__ = ["ManyValues"]

OPEN = "blendctl.many.open"  # the option whose values the words so far end with


class ManyValues(click.Command):
    """A command whose `multiple` options may be followed by several values."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        several = {name for p in self.params if isinstance(p, click.Option) and p.multiple for name in p.opts}
        spread: list[str] = []
        current = None
        for position, word in enumerate(args):
            if word == "--":
                spread += args[position:]
                break
            if word in several:
                current, taken = word, 0
                spread.append(word)
            elif word.startswith("--") or (len(word) == 2 and word.startswith("-") and not word[1].isdigit()):
                current = None
                spread.append(word)
            elif current is None:
                spread.append(word)
            else:
                spread += [word] if taken == 0 else [current, word]
                taken += 1
        ctx.meta[OPEN] = current
        return super().parse_args(ctx, spread)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Go on offering values of the option that is still open."""
        for param in self.params:
            if ctx.meta.get(OPEN) in param.opts and not incomplete.startswith("-"):
                return param.shell_complete(ctx, incomplete)
        return super().shell_complete(ctx, incomplete)
