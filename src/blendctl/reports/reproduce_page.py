"""The page of a reproduction: its headline, and its sections from top to bottom."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blendctl.experiments.verdict import in_words, known_mean
from blendctl.reports.charts import loss_chart, series, share_chart, theta_chart
from blendctl.reports.figure import curve
from blendctl.reports.page import Page, Section
from blendctl.reports.page_data import Chart, Color, Figure, Headline, Provenance, Series, Table, TableRow
from blendctl.reports.page_warnings import few_episodes, low_context, too_long
from blendctl.reports.replay import moments, replay
from blendctl.reports.reproduce_run import ReproduceRun, Rows

COLORS: dict[str, Color] = {"performant": 0, "safe": 1, "random": "faint", "blended": "blend"}  # by role
LARGEST_FIGURE = 3_000_000  # bytes; the page stays under 5 MB
NOTE = (
    "Means per episode over all data points with 95% confidence intervals. Average loss: true maximal loss per step. "
    "Its bound: the average loss cannot exceed it if feedback is linear in the context."
)


def headline(run: ReproduceRun) -> Headline:
    """Count the claims that hold in each world, and list them."""
    verdicts, banner = run.verdicts, list(run.folder.missing)
    if not run.folder.summary or _counts(verdicts) != _counts(run.folder.summary):
        banner.append("The experiment has not finished; this page shows the results so far.")
    sentences = [_sentence(world, summary["claims"]) for world, summary in verdicts.items()]
    claims = [line for world, summary in verdicts.items() for line in in_words(world, summary)]
    title = ", ".join(verdicts) or "No results yet"
    return Headline(title, " ".join(sentences) or "No data point is finished yet.", claims, banner)


def _counts(verdicts: dict[str, Any]) -> dict[tuple[str, str], int]:
    """Return the number of episodes behind a verdict, by world and role."""
    roles = [(world, role) for world, summary in verdicts.items() for role in COLORS if role in summary]
    return {(world, role): verdicts[world][role]["episodes"] for world, role in roles}


def _sentence(world: str, claims: dict[str, Any]) -> str:
    held = [claim for claim in claims.values() if claim["holds"]]
    sure = sum(claim["ci95"] is not None and claim["ci95"][0] > 0 for claim in held)
    count = "all" if sure == len(held) else f"{sure or 'none'} of them"
    confidence = f", {count} with 95% confidence" if held else ""
    return f"In {world}, {len(held)} of the paper’s {len(claims)} claims hold{confidence}."


def table(run: ReproduceRun) -> Table | None:
    """List the roles of every world."""
    rows = [_row(run, world, role) for world, summary in run.verdicts.items() for role in COLORS if role in summary]
    return Table(rows, NOTE, "the next control step") if rows else None


def _row(run: ReproduceRun, world: str, role: str) -> TableRow:
    summary, points = run.verdicts[world], run.rows(world, role)
    mean = summary[role]
    share = known_mean(points, "share_performant") if role in ("random", "blended") else None
    return TableRow(
        role,
        "" if len(run.verdicts) == 1 else world,
        COLORS[role],
        highlighted=role == "blended",
        returns=(mean["return_mean"], *(mean["return_ci95"] or (None, None))),
        costs=(mean["cost_mean"], *(mean["cost_ci95"] or (None, None))),
        share=[None, None] if share is None else [share, 1.0 - share],
        switches=sum(row["switches"] or 0 for row in points) if share is not None else None,
        correct=summary.get({"blended": "correct_ratio", "random": "correct_ratio_random"}.get(role, "")),
        loss=_last(points, "max_loss_mean"),
        bound=_last(points, "max_loss_bound_mean"),
    )


def _last(points: Rows, column: str) -> float | None:
    """Return a column at the end of a trace, averaged over traces."""
    last = {row["trace"]: row for row in points if row[column] is not None}  # data points are in order
    return known_mean(last.values(), column)


def figure(run: ReproduceRun) -> Figure | None:
    """Embed the figure of the experiment."""
    words = "Return, cost, correct choices and loss with its bound by data point, one column per world"
    return embedded_figure(run.folder.path / "figure.png", words)


def embedded_figure(file: Path, words: str) -> Figure | None:
    """Return a PNG file as a figure that `words` describe; None if it does not exist or is too large."""
    if not file.is_file() or file.stat().st_size >= LARGEST_FIGURE:
        return None
    return Figure(f"data:image/png;base64,{base64.b64encode(file.read_bytes()).decode()}", words)


def charts(run: ReproduceRun) -> list[Chart] | None:
    """Chart every world by data point."""
    charts = [chart for world in run.verdicts for chart in _charts(run, world)]
    return [chart for chart in charts if chart.series] or None


def _charts(run: ReproduceRun, world: str) -> list[Chart]:
    points = run.points.filter(pc.field("world") == world)
    prefix, axis = "" if len(run.verdicts) == 1 else f"{world}: ", "data point"
    bound, loss, share = (
        curve(points, "blended", name) for name in ("max_loss_bound_mean", "max_loss_mean", "share_performant")
    )
    note = (
        "true maximal loss per step and its upper bound if feedback is linear in the context, "
        "both averaged since the start"
    )
    shares = {"performant": share.mean, "safe": 1.0 - share.mean}
    return [
        Chart(f"{prefix}Return", _roles(points, "return"), axis, "dots"),
        Chart(f"{prefix}Cost", _roles(points, "cost"), axis, "dots", low=0.0),
        Chart(
            f"{prefix}Correct choices",
            _roles(points, "correct_ratio", factor=100.0),
            axis,
            "dots",
            unit="%",
            note="no other controller is better in the next control step; this does not cover the episode",
        ),
        loss_chart(
            f"{prefix}Average loss and its bound",
            [(line.point + 1, line.mean) for line in (bound, loss)],
            x=axis,
            note=note,
        ),
        share_chart(prefix, share.point + 1, shares, axis=axis),
        *_theta(run, world, prefix),
    ]


def _roles(points: pa.Table, column: str, *, factor: float = 1.0) -> list[Series]:
    """Return a line with its confidence interval for every role whose column is known."""
    curves = {role: curve(points, role, column) for role in COLORS}
    return [
        series(
            role, line.point + 1, factor * line.mean, color=COLORS[role], band=(factor * line.low, factor * line.high)
        )
        for role, line in curves.items()
        if len(line.point)
    ]


def _theta(run: ReproduceRun, world: str, prefix: str) -> list[Chart]:
    rows = [row for row in run.rows(world, "blended") if row["theta"]]
    first = [row for row in rows if row["trace"] == rows[0]["trace"]]
    if not first:
        return []
    theta = np.array([row["theta"] for row in first]).reshape(len(first), len(run.objectives), -1)
    number = [row["data_point"] + 1 for row in first]
    return [theta_chart(prefix, number, theta, objectives=run.objectives, axis="data point")]


def warnings(run: ReproduceRun) -> list[str] | None:
    """List the warnings of every world."""
    warnings: list[str] = []
    for world, summary in run.verdicts.items():
        blended = run.rows(world, "blended")
        for what in ("reward", "cost"):
            share = known_mean(blended, f"context_r2_{what}")
            warnings += low_context(share, what, subject=f"In {world} the context")
        rescaled = sum({row["trace"]: row["rescaled"] or 0 for row in blended}.values())  # at the end of each trace
        warnings += [f"In {world} {text}" for text in too_long(rescaled)]
        events = sum(row["events"] or 0 for row in blended)
        if events:
            warnings.append(f"In {world} {events:,} faults occurred while driving; the controllers were benched.")
        warnings += few_episodes(summary.get("blended", {}).get("episodes", 0), f" in {world}")
    return warnings or None


def listed(values: dict[str, Any] | None) -> str:
    """Return named values in one line."""
    return ", ".join(f"{name} {value}" for name, value in (values or {}).items())


def provenance(run: ReproduceRun) -> Provenance:
    """List the data for repeating the experiment."""
    about = run.folder.about
    sessions, identity = about.get("sessions") or [], about.get("identity") or {}
    last = sessions[-1] if sessions else {}
    options = [f"{name} {value}" for name, value in identity.items() if name != "seed" and value not in (None, {})]
    seconds = sum(session.get("seconds") or 0 for session in sessions) if last.get("seconds") else 0
    facts = [
        *(("command", str(session.get("command") or "")) for session in sessions),
        ("seed", str(identity.get("seed", ""))),
        ("options", ", ".join(options)),
        *((name, listed(last.get(name))) for name in ("versions", "machine")),
        ("time", f"{seconds:,.0f} s" if seconds else ""),
    ]
    return Provenance([(name, text) for name, text in facts if text])


SECTIONS: tuple[Section[ReproduceRun], ...] = (
    Section("table", "", table),
    Section("replay", "Replay", replay),
    Section("moments", "Costliest moments", moments),
    Section("figure", "Figure", figure),
    Section("charts", "Charts", charts),
    Section("warnings", "Warnings", warnings),
    Section("provenance", "How it was made", provenance),
)
REPRODUCE_PAGE = Page("reproduce", headline, SECTIONS)
