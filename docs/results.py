"""Write the README's table of the paper's experiment from the published verdict: `python docs/results.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from blendctl.controllers.zoo import PAIRS

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
VERDICT = ROOT / "results" / "paper" / "verdict.json"
HEAD = "| world | who drives | return | cost | correct choices |\n|---|---|---|---|---|\n"


def table() -> str:
    """Give the table, four rows per world."""
    verdict = json.loads(VERDICT.read_text())
    return HEAD + "".join(row for world in PAIRS for row in _rows(world, verdict[world]))


def with_table(text: str) -> str:
    """Give the README's text with the table in the place of the one that is there."""
    before, rest = text.split(HEAD, 1)
    after = rest[rest.index("\n\n") :]
    return before + table().rstrip("\n") + after


def _rows(world: str, found: dict[str, Any]) -> list[str]:
    performant, safe = (name.partition("/")[2] for name in PAIRS[world])
    labels = {
        "performant": f"performant: {performant}",
        "safe": f"safe: {safe}",
        "random": "a coin at every step",
        "blended": "**blended**, as in the paper",
    }
    ratios = {"random": "correct_ratio_random", "blended": "correct_ratio"}
    rows = []
    for role, label in labels.items():
        cells = [world, label]
        for quantity in ("return", "cost"):
            low, high = found[role][f"{quantity}_ci95"]
            cells.append(f"{found[role][f'{quantity}_mean']:.1f} ({low:.1f} to {high:.1f})")
        cells.append(f"{found[ratios[role]]:.1%}" if role in ratios else "")
        rows.append(f"| {' | '.join(cells)} |\n")
    return rows


if __name__ == "__main__":
    README.write_text(with_table(README.read_text()))
