"""The page of a comparison: the verdict, the table, return against cost, and every episode of the leading methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from blendctl.errors import FileFormatError
from blendctl.file_reading import read_json_object
from blendctl.reports.charts import series
from blendctl.reports.page import Page, Section
from blendctl.reports.page_data import Chart, Color, Figure, Headline, Provenance, Table, TableRow
from blendctl.reports.page_warnings import few_episodes
from blendctl.reports.reproduce_page import embedded_figure, listed
from blendctl.reports.run_dir import RunDir
from blendctl.table_parts import read_table

ALONE = ("performant", "safe")
ORACLES = ("oracle", "ceiling")  # they simulate the true future, which a robot cannot
SHOWN = 3  # methods of the charts by episode, beside the controllers alone
NOTE = (
    "Means per episode with 95% confidence intervals, all methods on the same episodes. Corner score: 0 is random "
    "mixing of the first and the last controller, 1 is the return of the first at the cost of the last."
)


@dataclass(frozen=True)
class CompareRun:
    """A finished comparison."""

    folder: RunDir
    summary: dict[str, Any]  # compare.json
    episodes: pa.Table  # compare.parquet

    @property
    def names(self) -> list[str]:
        """The controllers that define the score."""
        return list(ALONE)

    @property
    def objectives(self) -> list[str]:
        """The objectives."""
        return ["reward", "-cost"]

    @property
    def methods(self) -> dict[str, Any]:
        """The standings by method, the best score first; the controllers alone lead."""
        rows: dict[str, Any] = self.summary["methods"]
        order = sorted(rows, key=lambda name: (name not in ALONE, -(rows[name]["corner_score"] or 0.0)))
        return {name: rows[name] for name in order}

    def shown(self, method: str) -> tuple[list[float], list[float]]:
        """Return the returns and costs of the episodes that represent a method, in the order of their seeds.

        With several look-ahead networks, an episode has the mean over them.
        """
        points: dict[int, list[tuple[float, float]]] = {}
        for row in self.episodes.to_pylist():
            if row["method"] == method and row.get("shown", True):
                points.setdefault(row["seed"], []).append((row["return"], row["cost"]))
        returns, costs = zip(*(np.mean(points[seed], axis=0).tolist() for seed in sorted(points)), strict=True)
        return list(returns), list(costs)


def read_compare_run(folder: RunDir) -> CompareRun:
    """Read the directory of a comparison; raise if it has not finished."""
    file = folder.path / "compare.json"
    if not file.is_file():
        raise FileFormatError(f"{folder.path} has no compare.json: the comparison did not finish; run it again")
    return CompareRun(folder, read_json_object(file), read_table(folder.path / "compare.parquet"))


def headline(run: CompareRun) -> Headline:
    """Return which method leads, and whether it is shown to be better than mixing."""
    summary = run.summary
    title = f"{summary['world']}: {len(run.methods)} methods, {summary['episodes']} episodes"
    if summary["corner"]["reason"] is not None:
        return Headline(title, f"No scores: {summary['corner']['reason']}.")
    rivals = {name: row for name, row in run.methods.items() if name not in (*ALONE, *ORACLES)}
    rivals = {name: row for name, row in rivals.items() if row["corner_score"] is not None}
    if not rivals:
        return Headline(title, "No method beside the controllers alone was compared.")
    blend = {"blend": rivals["blend"]} if "blend" in rivals else {}
    claims = [_claim(name, row) for name, row in (blend | rivals).items()]
    return Headline(title, claims[0], claims[1:4])


def _claim(name: str, row: dict[str, Any]) -> str:
    """Describe the score of a method in one sentence."""
    interval = row["corner_score_ci95"]
    score = f"corner score {row['corner_score']:+.2f}"
    if interval is None:
        return f"{name}: {score}, from too few episodes for an interval."
    words = f"{score}, 95% interval {interval[0]:+.2f} to {interval[1]:+.2f}"
    if interval[0] > 0:
        return f"{name} is better than mixing the controllers: {words}."
    if interval[1] < 0:
        return f"{name} is worse than mixing the controllers: {words}."
    return f"No difference between {name} and mixing is shown: {words}."


def table(run: CompareRun) -> Table:
    """List the methods with their scores."""
    rows = []
    for name, row in run.methods.items():
        interval = row["corner_score_ci95"]
        score = "" if row["corner_score"] is None else f"score {row['corner_score']:+.2f}"
        if interval is not None and name not in ALONE:
            score += f" ({interval[0]:+.2f} to {interval[1]:+.2f})"
        share = row.get("share_mean")
        rows.append(
            TableRow(
                name,
                f"{row['help']}; {score}" if score else row["help"],
                _color(name, run),
                highlighted=name == "blend",
                returns=(row["return_mean"], *(row["return_ci95"] or (None, None))),
                costs=(row["cost_mean"], *(row["cost_ci95"] or (None, None))),
                share=[share],
                switches=None if row.get("switches_mean") is None else round(row["switches_mean"]),
                correct=row.get("correct_ratio"),
            )
        )
    note = f"{NOTE} Who drove: the share of the first controller. Correct does not cover the episode."
    return Table(rows, note, "the next control step")


def figure(run: CompareRun) -> Figure | None:
    """Embed the scatter of return against cost."""
    words = "Return against cost of every method, with intervals, the mixing line and the corner"
    return embedded_figure(run.folder.path / "compare.png", words)


def charts(run: CompareRun) -> list[Chart]:
    """Chart return and cost of every episode, and the differences of the leading method to each controller alone."""
    leading = [name for name in run.methods if name not in (*ALONE, *ORACLES)][:SHOWN]
    leading = [*(["blend"] if "blend" in run.methods else []), *(name for name in leading if name != "blend")]
    values = {name: run.shown(name) for name in (*ALONE, *leading)}
    charts = []
    for at, quantity in enumerate(("Return", "Cost")):
        lines = [
            series(name, np.arange(1, len(rows[at]) + 1), rows[at], color=_color(name, run))
            for name, rows in values.items()
        ]
        charts.append(Chart(quantity, lines, "episode", "dots", low=0.0 if at and _positive(values, at) else None))
    if leading:
        charts += [_pairs(values, leading[0], at, quantity) for at, quantity in enumerate(("return", "cost"))]
    return charts


def _pairs(values: dict[str, Any], method: str, at: int, quantity: str) -> Chart:
    """Chart the difference of a method from each controller alone on the same episode, in ascending order."""
    lines = []
    for arm, name in enumerate(ALONE):
        more = np.sort(np.subtract(values[method][at], values[name][at]))
        lines.append(series(f"{method} - {name}", np.arange(1, len(more) + 1), more, color=arm))
    return Chart(
        f"Pairs: {quantity} of {method} against each controller",
        lines,
        "episode, in ascending order",
        "dots",
        note=f"difference on the same episode; above 0 {method} has more {quantity}",
    )


def _positive(values: dict[str, Any], at: int) -> bool:
    return all(value >= 0 for rows in values.values() for value in rows[at])


def _color(name: str, run: CompareRun) -> Color:
    if name in ALONE:
        return ALONE.index(name)
    others = [method for method in run.summary["methods"] if method not in (*ALONE, "blend")]
    return "blend" if name == "blend" else f"c{2 + others.index(name) % 6}"


def warnings(run: CompareRun) -> list[str] | None:
    """Warn if there are few episodes."""
    return few_episodes(run.summary["episodes"], "") or None


def provenance(run: CompareRun) -> Provenance:
    """List the data for repeating the comparison."""
    summary, about = run.summary, run.folder.about
    sessions = about.get("sessions") or []
    seeds = f"{summary['seed']} to {summary['seed'] + summary['episodes'] - 1}"
    environment = (about.get("identity") or {}).get("environment") or {}
    ahead = (about.get("parts") or {}).get("look-ahead") or {}
    facts = [
        *(("command", str(session.get("command") or "")) for session in sessions),
        ("controllers", ", ".join(summary["controllers"])),
        ("controllers of look-ahead", ", ".join(ahead.get("controllers") or ())),
        ("environment", ", ".join(f"{key} {value}" for key, value in environment.items() if value)),
        ("seeds", seeds),
        ("versions", listed(sessions[-1].get("versions") if sessions else {})),
    ]
    return Provenance([(name, text) for name, text in facts if text])


SECTIONS: tuple[Section[CompareRun], ...] = (
    Section("table", "", table),
    Section("figure", "Return against cost", figure),
    Section("charts", "Episodes", charts),
    Section("warnings", "Warnings", warnings),
    Section("provenance", "How it was made", provenance),
)
COMPARE_PAGE = Page("compare", headline, SECTIONS)
