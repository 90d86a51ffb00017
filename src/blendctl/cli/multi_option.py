"""Options that take several values: `--controllers A B C` as well as `--controllers A --controllers B`."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

OPEN_OPTION = "blendctl.multi_option.open"  # key in `ctx.meta`: the option that would take the next value


class MultiValueCommand(click.Command):
    """A command whose `multiple` options accept several values in a row."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat the flag before each value, then parse as usual."""
        multiple = {flag for p in self.params if isinstance(p, click.Option) and p.multiple for flag in p.opts}
        expanded: list[str] = []
        open_option = None
        for position, word in enumerate(args):
            if word == "--":
                expanded += args[position:]
                break
            if word in multiple:
                open_option, values = word, 0
            elif word.startswith("--") or (len(word) == 2 and word.startswith("-") and not word[1].isdigit()):
                open_option = None
            elif open_option is not None:
                expanded += [open_option] if values else []
                values += 1
            expanded.append(word)
        ctx.meta[OPEN_OPTION] = open_option
        return super().parse_args(ctx, expanded)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete another value of the option that is still open."""
        for param in self.params:
            if ctx.meta.get(OPEN_OPTION) in param.opts and not incomplete.startswith("-"):
                return param.shell_complete(ctx, incomplete)
        return super().shell_complete(ctx, incomplete)
