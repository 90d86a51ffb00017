"""Write the README's tables from the published results and the zoo's cards: `python docs/results.py`."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from blendctl.controllers import load, zoo_names
from blendctl.controllers.zoo import PAIRS

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
VERDICT = ROOT / "results" / "quick" / "verdict.json"
COMPARED = {  # methods of `compare` in the first table, if their results are published
    "performant": "performant alone: {}",
    "safe": "safe alone: {}",
    "random-episode": "a coin before each episode",
    "paper": "the paper's blend",
    "lookahead": "look-ahead",
    "ceiling": "look-ahead oracle",
}
WITH_BUDGET = {"lookahead-budget": "look-ahead, cost budget 25"}  # the same where a pair has a budget
WITH_THREE = {  # the same with all controllers of PointPush1
    "lookahead": "look-ahead with three controllers",
    "lookahead-budget": "**look-ahead with three controllers, cost budget 25**",
}
TRAINED_AGAIN = {  # the same with all trained controllers of PointGoal1 and several trainings of the networks
    "lookahead": "look-ahead with five controllers, three training seeds",
    "lookahead-budget": "look-ahead with five controllers, cost budget 25, three training seeds",
}
WITH_CLASSICAL = {  # the same with `potential-field` and `stop`
    "lookahead": "look-ahead with `potential-field` and `stop`",
    "lookahead-budget": "**look-ahead with `potential-field` and `stop`, cost budget 25**",
}
WITH_HISTOGRAM = {  # the same with all trained controllers and `vfh`
    "lookahead": "look-ahead with these five and `vfh`, two training seeds",
    "lookahead-budget": "**look-ahead with these five and `vfh`, cost budget 25, two training seeds**",
}
SIMULATED = {  # the same for comparisons on fewer episodes
    "simulated": "look-ahead by simulation of the true world",
    "twin": "look-ahead by simulation of a world rebuilt from the observation",
}
PUBLISHED = {  # by directory
    "compare-{}": COMPARED,
    "compare-PointPush1": WITH_BUDGET,
    "compare-{}-three": WITH_THREE,
    "compare-{}-seeds": TRAINED_AGAIN,
    "compare-{}-four": WITH_CLASSICAL,
    "compare-{}-vfh": WITH_HISTOGRAM,
    "simulated-{}": SIMULATED,
}
RULE = "|---|---|---|---|---|\n"
COMPARE_HEAD = "| world | driver | return | cost | over 25 | corner score |\n|---|---|---|---|---|---|\n"
PAPER_HEAD = f"| world | driver | return | cost | correct choices |\n{RULE}"
ZOO_HEAD = f"| controller | steps | return | cost | R² of next-step reward, cost while blending |\n{RULE}"


def with_tables(text: str) -> str:
    """Return the README's text with its tables replaced."""
    for head, rows in ((COMPARE_HEAD, _compare_rows()), (PAPER_HEAD, _paper_rows()), (ZOO_HEAD, _zoo_rows())):
        before, rest = text.split(head, 1)
        after = rest if rest.startswith("\n") else rest[rest.index("\n\n") + 1 :]
        text = before + head + "".join(f"| {' | '.join(cells)} |\n" for cells in rows) + after
    return text


def _compare_rows() -> list[list[str]]:
    rows = []
    for world, (directory, labels) in itertools.product(PAIRS, PUBLISHED.items()):
        file = ROOT / "results" / directory.format(world) / "compare.json"
        compared = json.loads(file.read_text()) if file.is_file() else {"world": None}
        if compared["world"] != world:
            continue
        for method, label in labels.items():
            summary = compared["methods"].get(method)
            if summary is None:
                continue
            alone = {"performant": 0, "safe": -1}.get(method)
            name = "" if alone is None else compared["controllers"][alone].rpartition("/")[2]
            over = summary.get("over_budget")
            low, high = summary["corner_score_ci95"] or (None, None)
            score = (
                "" if low is None or alone is not None else f"{summary['corner_score']:+.2f} ({low:.2f} to {high:.2f})"
            )
            cells = [*_return_and_cost(summary), "" if over is None else f"{over:.0%}", score]
            rows.append([world, label.format(name), *cells])
    return rows


def _paper_rows() -> list[list[str]]:
    verdicts = json.loads(VERDICT.read_text())
    ratios = {"random": "correct_ratio_random", "blended": "correct_ratio"}
    rows = []
    for world, pair in PAIRS.items():
        performant, safe = (name.partition("/")[2] for name in pair)
        labels = {
            "performant": f"performant: {performant}",
            "safe": f"safe: {safe}",
            "random": "random switching",
            "blended": "**blended**, as in the paper",
        }
        for role, label in labels.items():
            ratio = f"{verdicts[world][ratios[role]]:.1%}" if role in ratios else ""
            rows.append([world, label, *_return_and_cost(verdicts[world][role]), ratio])
    return rows


def _zoo_rows() -> list[list[str]]:
    rows = []
    for card in (load(name).card for name in zoo_names()):
        r2 = card["context"]["r2"][0] if card["context"] else None
        context = f"{r2['reward_blending']:.2f}, {r2['cost_blending']:.2f}" if r2 else "no context networks"
        rows.append([card["name"], f"{card['steps'] / 1e6:.1f} M", *_return_and_cost(card["evaluation"]), context])
    return rows


def _return_and_cost(summary: dict[str, Any]) -> list[str]:
    cells = []
    for quantity in ("return", "cost"):
        low, high = summary[f"{quantity}_ci95"]
        cells.append(f"{summary[f'{quantity}_mean']:.1f} ({low:.1f} to {high:.1f})")
    return cells


if __name__ == "__main__":
    README.write_text(with_tables(README.read_text()))
