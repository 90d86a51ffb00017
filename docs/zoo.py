"""Write the README's table of trained controllers from their cards: `python docs/zoo.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from blendctl.controllers import load, zoo_names

README = Path(__file__).parent.parent / "README.md"
HEAD = "| controller | steps | return | cost | R² of next-step reward, cost while blending |\n|---|---|---|---|---|\n"


def table() -> str:
    """Give the table, a row per controller."""
    return HEAD + "".join(_row(load(name).card) for name in zoo_names())


def with_table(text: str) -> str:
    """Give the README's text with the table in the place of the one that is there."""
    before, rest = text.split(HEAD, 1)
    after = rest[rest.index("\n\n") :]
    return before + table().rstrip("\n") + after


def _row(card: dict[str, Any]) -> str:
    seen, context = card["evaluation"], card["context"]
    cells = [card["name"], f"{card['steps'] / 1e6:.1f} M"]
    for quantity in ("return", "cost"):
        low, high = seen[f"{quantity}_ci95"]
        cells.append(f"{seen[f'{quantity}_mean']:.1f} ({low:.1f} to {high:.1f})")
    first = context["r2"][0] if context else None
    cells.append(f"{first['reward_blending']:.2f}, {first['cost_blending']:.2f}" if first else "no context networks")
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    README.write_text(with_table(README.read_text()))
