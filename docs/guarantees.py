"""Write the figures of guarantees.md from results/verify.json of `make verify`: `python docs/guarantees.py`."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "guarantees.md"
VERIFIED = ROOT / "results" / "verify.json"
HEAD = "| check | repetitions | figures, with their limits | time |\n|---|---|---|---|\n"


def with_table(text: str) -> str:
    """Return the page's text with its table replaced."""
    before, rest = text.split(HEAD, 1)
    after = rest if rest.startswith("\n") else rest[rest.find("\n\n") + 1 :] if "\n\n" in rest else ""
    figures = json.loads(VERIFIED.read_text())["figures"]
    rows = [_cells(list(group)) for _, group in groupby(figures, key=lambda one: one["check"])]
    return before + HEAD + "".join(f"| {' | '.join(cells)} |\n" for cells in rows) + after


def _cells(figures: list[dict[str, Any]]) -> list[str]:
    first = figures[0]
    repetitions = f"{first['repetitions']:,}" if first["repetitions"] > 1 else ""
    return [first["check"], repetitions, "; ".join(map(_words, figures)), f"{first['seconds']:.0f} s"]


def _words(figure: dict[str, Any]) -> str:
    value = "not measured" if figure["figure"] is None else f"{figure['figure']:.3g}"
    failed = "" if figure["passed"] else " **failed**"
    return f"{figure['name']} {value} ({figure['limit']:.3g}){failed}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
