"""Write the README's tables and scatters from the published results and the zoo's cards: `python docs/results.py`."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from blendctl.arrays import FloatArray
from blendctl.controllers import load, zoo_names
from blendctl.controllers.zoo import PAIRS
from blendctl.experiments.compare import ALONE
from blendctl.experiments.standings import point_means
from blendctl.reports.scatter import draw_scatter, figure_bytes

ROOT = Path(__file__).parent.parent
README, LOOKAHEAD, ALL = ROOT / "README.md", ROOT / "docs" / "lookahead.md", ROOT / "docs" / "lookahead-results.md"
PICTURES = ROOT / "docs" / "pictures"
RESULTS = ROOT / "results"
JUDGED = range(10_000_000, 10_000_200)  # seeds of the episodes
VERDICT = RESULTS / "quick" / "verdict.json"
COMPARED = {  # methods of `compare` in the first table, if their results are published
    "performant": "performant alone: {}",
    "safe": "safe alone: {}",
    "random-episode": "a coin before each episode",
    "paper": "the paper's blend",
    "lookahead": "look-ahead with these two",
}
ORACLE = {"ceiling": "look-ahead oracle"}
WITH_BUDGET = {"lookahead-budget": "look-ahead with these two, cost budget 25"}  # the same where a pair has a budget


def _with(others: str, *, default: bool = False) -> dict[str, str]:
    """Return labels of look-ahead with more controllers; `default`: with those that the commands use."""
    label = f"look-ahead with {others}, three training seeds"
    budget = f"look-ahead with {others}, cost budget 25, three training seeds"
    return {"lookahead": label, "lookahead-budget": f"**{budget}**" if default else budget}


def _set(others: str) -> dict[str, str]:
    """Return short names of look-ahead with more controllers, for a scatter."""
    return {method: f"{method}, {others}" for method in ("lookahead", "lookahead-budget")}


WITH_PUSH = {"controller-3": "classical alone: `push`", **_with("ppo-lagrangian and `push` besides", default=True)}
WITH_WINDOW = {"controller-3": "classical alone: `dwa`", **_with("trpo and `dwa` besides", default=True)}
WITH_WINDOW_AND_STOP = {"controller-2": "classical alone: `dwa`", **_with("`dwa` and `stop` besides", default=True)}
WITH_FIELD = _with("`potential-field` and `stop` besides")
WITH_THREE = _with("ppo-lagrangian besides")
WITH_FIVE = _with("all five trained controllers")
WITH_HISTOGRAM = _with("all five trained controllers and `vfh`")
SIMULATED = {  # the same for comparisons on fewer episodes
    "simulated": "look-ahead by simulation of the true world",
    "twin": "look-ahead by simulation of a world rebuilt from the observation",
}
PUBLISHED = {  # by directory
    "compare-{}": COMPARED,
    "compare-{}-dwa": WITH_WINDOW,
    "compare-{}-push": WITH_PUSH,
    "compare-{}-dwa-stop": WITH_WINDOW_AND_STOP,
}
MEASURED = {  # the same for docs/lookahead-results.md: all variants
    **PUBLISHED,
    "compare-{}": COMPARED | ORACLE,
    "compare-{}-ceiling": ORACLE,
    "compare-PointPush1": WITH_BUDGET,
    "compare-{}-four-seeds": WITH_FIELD,
    "compare-{}-vfh": WITH_HISTOGRAM,
    "compare-{}-three": WITH_THREE,
    "compare-{}-seeds": WITH_FIVE,
    "compare-{}-plain": {"lookahead": "look-ahead with these two, networks without paths"},
    "compare-{}-stop": {
        "lookahead": "look-ahead with `stop` besides",
        "lookahead-budget": "look-ahead with `stop` besides, cost budget 25",
    },
    "simulated-{}": SIMULATED,
}
PAGES = {LOOKAHEAD: PUBLISHED, ALL: MEASURED}
SCATTERED = {  # the same for the scatter of a world: short names, of which the part before a comma is the method
    "compare-{}": {
        **{name: name for name in ("performant", "safe", "random-episode", "simplex", "paper", "ceiling")},
        "lookahead": "lookahead, pair",
        "lookahead-budget": "lookahead-budget, pair",
    },
    "compare-{}-0.1": {"paper": "paper, release 0.1"},
    "compare-{}-push": {"controller-3": "controller-3, push", **_set("push")},
    "compare-{}-dwa": {"controller-3": "controller-3, dwa", **_set("dwa")},
    "compare-{}-dwa-stop": {"controller-2": "controller-2, dwa", **_set("dwa, stop")},
    "compare-{}-seeds": _set("5 trained"),
    "compare-{}-four-seeds": _set("field, stop"),
    "compare-{}-vfh": _set("5 and vfh"),
    "compare-{}-ceiling": {"ceiling": "ceiling"},
    "simulated-{}": {m: m for m in SIMULATED},
}
RULE = "|---|---|---|---|---|\n"
COMPARE_HEAD = "| world | driver | return | cost | over 25 | corner score |\n|---|---|---|---|---|---|\n"
PAPER_HEAD = f"| world | driver | return | cost | correct choices |\n{RULE}"
ZOO_HEAD = f"| controller | steps | return | cost | R² of next-step reward, cost while blending |\n{RULE}"


def with_tables(text: str) -> str:
    """Return the README's text with its tables replaced."""
    tables = {COMPARE_HEAD: _compare_rows(PUBLISHED), PAPER_HEAD: _paper_rows(), ZOO_HEAD: _zoo_rows()}
    return _replaced(text, tables)


def with_compared(text: str, directories: dict[str, dict[str, str]]) -> str:
    """Return a text with its table of comparisons replaced: `directories` of `PAGES`."""
    return _replaced(text, {COMPARE_HEAD: _compare_rows(directories)})


def _replaced(text: str, tables: dict[str, list[list[str]]]) -> str:
    for head, rows in tables.items():
        before, rest = text.split(head, 1)
        after = rest if rest.startswith("\n") else rest[rest.index("\n\n") + 1 :]
        text = before + head + "".join(f"| {' | '.join(cells)} |\n" for cells in rows) + after
    return text


def _compare_rows(directories: dict[str, dict[str, str]]) -> list[list[str]]:
    rows = []
    for world in PAIRS:
        for method, label, summary in _published(world, directories):
            alone = method in ALONE
            name = PAIRS[world][ALONE.index(method)].rpartition("/")[2] if alone else ""
            low, high = summary["corner_score_ci95"]
            score = "" if alone else f"{summary['corner_score']:+.2f} ({low:.2f} to {high:.2f})"
            rows.append([world, label.format(name), *_return_and_cost(summary), f"{summary['over_budget']:.0%}", score])
    return rows


def scattered(world: str) -> dict[str, Any]:
    """Return the data of a scatter with all published methods of a world."""
    compared: dict[str, Any] = json.loads((RESULTS / f"compare-{world}" / "compare.json").read_text())
    line = [_alone(world, name).mean(axis=(0, 1)).tolist() for name in ALONE]
    corner = {"return": line[0][0], "cost": line[1][1], "reason": None}
    methods = {label: summary for _, label, summary in _published(world, SCATTERED)}
    return compared | {"methods": methods, "mixing_line": line, "corner": corner}


def _published(world: str, directories: dict[str, dict[str, str]]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (method, label, summary) of the published comparisons in a world, with scores by one corner.

    DIRECTORY-seed-* are comparisons of the same controllers with networks of further training seeds.
    """
    for directory, labels in directories.items():
        folder = RESULTS / directory.format(world)
        if not folder.is_dir():
            continue
        compared = json.loads((folder / "compare.json").read_text())
        if compared["world"] != world:
            continue
        runs = [_shown_rows(run) for run in (folder, *sorted(RESULTS.glob(f"{folder.name}-seed-*")))]
        for method, label in labels.items():
            if method in compared["methods"]:
                yield method, label, compared["methods"][method] | _scored(world, method, runs)


def _shown_rows(folder: Path) -> list[dict[str, Any]]:
    return [row for row in pq.read_table(folder / "compare.parquet").to_pylist() if row["shown"]]


def _scored(world: str, method: str, runs: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Sum up a controller alone over all runs; score other methods by these, not by the controllers of their own run.

    Methods that were run on other episodes, as of release 0.1, keep their score.

    In a run of 200 episodes the safe controller of PointPush1 costs 7 or 22 on average, by chance: rare episodes cost
    hundreds. The action noise of a controller depends on its place among the controllers, so runs differ.
    """
    if runs[0][0]["seed"] not in JUDGED:
        return {}
    points = _alone(world, method) if method in ALONE else np.concatenate([_points(run, method) for run in runs])
    performant, safe = (_alone(world, name)[:, : points.shape[1]] for name in ALONE)
    return point_means(points[:, : performant.shape[1]], performant, safe)


@functools.cache
def _alone(world: str, method: str) -> FloatArray:
    """Return (runs, episodes, 2): return and cost of a controller alone, of all runs in which they differ."""
    runs: dict[bytes, FloatArray] = {}
    for file in sorted(RESULTS.glob(f"*-{world}*/compare.parquet")):
        rows = [row for row in pq.read_table(file).to_pylist() if row["seed"] in JUDGED]
        points = _points(rows, method)[0] if rows else np.empty((0, 2))
        if len(points) == len(JUDGED):
            runs.setdefault(points.tobytes(), points)
    return np.array(list(runs.values()))


def _points(rows: list[dict[str, Any]], method: str) -> FloatArray:
    """Return (networks, episodes, 2): return and cost of a method's episodes."""
    own = sorted(
        (row.get("networks") or 0, row["seed"], row["return"], row["cost"]) for row in rows if row["method"] == method
    )
    return np.array([row[2:] for row in own]).reshape(len({row[0] for row in own}), -1, 2)


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
    for page, directories in PAGES.items():
        page.write_text(with_compared(page.read_text(), directories))
    for world in PAIRS:
        (PICTURES / f"compare-{world}.svg").write_bytes(figure_bytes(draw_scatter(scattered(world)), "svg"))
