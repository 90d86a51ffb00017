"""Write the table of the gallery in own-environment.md from the published cards: `python docs/gallery.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "own-environment.md"
RESULTS = ROOT / "results" / "gallery"
HEAD = (
    "| environment | controllers | verdict | blend: return, cost | corner score (95%) | highest other score |\n"
    "|---|---|---|---|---|---|\n"
)


def with_table(text: str) -> str:
    """Return the page's text with its table replaced."""
    before, rest = text.split(HEAD, 1)
    after = rest if rest.startswith("\n") else rest[rest.index("\n\n") + 1 :]
    return before + HEAD + "".join(f"| {' | '.join(_cells(card))} |\n" for card in cards()) + after


def cards() -> list[dict[str, Any]]:
    """Return the cards, by the names of their directories."""
    return [json.loads(file.read_text()) for file in sorted(RESULTS.glob("*/card.json"))]


def _cells(card: dict[str, Any]) -> list[str]:
    methods = card["methods"]
    blend = methods["blend"]
    other = max((name for name in methods if name != "blend"), key=lambda name: methods[name]["corner_score"] or 0.0)
    return [
        f"`{card['environment']}`",
        ", ".join(card["names"]),
        card["verdict"],
        f"{blend['return_mean']:.4g}, {blend['cost_mean']:.3g}",
        _score(blend),
        f"{other} {_score(methods[other])}",
    ]


def _score(row: dict[str, Any]) -> str:
    span = row["corner_score_ci95"]
    if row["corner_score"] is None:
        return ""
    return f"{row['corner_score']:+.2f}" + ("" if span is None else f" ({span[0]:+.2f} to {span[1]:+.2f})")


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {PAGE}")
