"""Write the README's tables and scatters from the published results and the zoo's cards: `python docs/results.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from blendctl.controllers import load, zoo_names
from blendctl.controllers.zoo import PAIRS
from blendctl.reports.scatter import draw_scatter, figure_bytes

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PICTURES = ROOT / "docs" / "pictures"
RESULTS = ROOT / "results"
VERDICT = RESULTS / "quick" / "verdict.json"
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
    "compare-{}-ceiling": {"ceiling": COMPARED["ceiling"]},
    "simulated-{}": SIMULATED,
}
SCATTERED = {  # the same for the scatter of a world: short names, of which the part before a comma is the method
    "compare-{}": {
        **{name: name for name in ("performant", "safe", "random-episode", "simplex", "paper", "ceiling")},
        "lookahead": "lookahead, pair",
        "lookahead-budget": "lookahead-budget, pair",
    },
    "compare-{}-0.1": {"paper": "paper, release 0.1"},
    "compare-{}-three": {m: f"{m}, 3 controllers" for m in WITH_THREE},
    "compare-{}-seeds": {m: f"{m}, 5 controllers" for m in TRAINED_AGAIN},
    "compare-{}-four": {m: f"{m}, 4 controllers" for m in WITH_CLASSICAL},
    "compare-{}-vfh": {m: f"{m}, 6 controllers" for m in WITH_HISTOGRAM},
    "compare-{}-ceiling": {"ceiling": "ceiling"},
    "simulated-{}": {m: m for m in SIMULATED},
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
    for world in PAIRS:
        for compared, method, label in _published(world, PUBLISHED):
            summary = compared["methods"][method]
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


def scattered(world: str) -> dict[str, Any]:
    """Return the data of a scatter with all published methods of a world; the mixing line is of the pair's run."""
    base = json.loads((RESULTS / f"compare-{world}" / "compare.json").read_text())
    methods = {label: compared["methods"][method] for compared, method, label in _published(world, SCATTERED)}
    return base | {"methods": methods}


def _published(world: str, directories: dict[str, dict[str, str]]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yield (results, method, label) of the published comparisons in a world."""
    for directory, labels in directories.items():
        file = RESULTS / directory.format(world) / "compare.json"
        compared = json.loads(file.read_text()) if file.is_file() else {"world": None}
        if compared["world"] == world:
            yield from ((compared, method, label) for method, label in labels.items() if method in compared["methods"])


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
    for world in PAIRS:
        (PICTURES / f"compare-{world}.svg").write_bytes(figure_bytes(draw_scatter(scattered(world)), "svg"))
