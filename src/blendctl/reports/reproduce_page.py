"""Collect everything that the page of a reproduction shows, as JSON data."""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blendctl.experiments.rerun import rerun_episodes
from blendctl.experiments.tables import EPISODES, POINTS
from blendctl.experiments.verdict import in_words, known_mean, verdict
from blendctl.reports.binary_columns import Packer
from blendctl.reports.charts import chart, series
from blendctl.reports.figure import Curve, curve
from blendctl.reports.page_warnings import FEW, LOW
from blendctl.reports.replay import costliest_moments, episode_sums, pack_replay
from blendctl.reports.run_data import read_poses, read_stages
from blendctl.reports.run_dir import Folder
from blendctl.table_parts import read_table

__all__ = ["reproduce_page"]

ROLES: dict[str, int | str] = {
    "performant": 0,
    "safe": 1,
    "random": "faint",
    "blended": "blend",
}  # and colours
LARGEST_FIGURE = 3_000_000  # bytes; the page stays under 5 MB

Rows = list[dict[str, Any]]


def reproduce_page(folder: Folder, *, replays: int) -> dict[str, Any]:
    """Collect the data of a page from the output of `blendctl reproduce`, finished or not; replay so many episodes."""
    points = _read(folder.path / "points.parquet", POINTS)
    episodes = _read(folder.path / "episodes.parquet", EPISODES)
    found = verdict(episodes, points) or {w: told for w, told in folder.summary.items() if "claims" in told}
    banner = list(folder.missing)
    if not folder.summary or _counts(found) != _counts(folder.summary):
        banner.append("The experiment did not end, or goes on: this is what is finished so far.")
    rows: Rows = points.to_pylist()
    figure = folder.path / "figure.png"
    return {
        "kind": "reproduce",
        "title": ", ".join(found) or "Nothing is finished yet",
        "verdict": _sentence(found),
        "claims": [line for world, told in found.items() for line in in_words(world, told)],
        "banner": banner,
        "names": ["performant", "safe"],
        "objectives": ["reward", "-cost"],
        "table": _table(found, rows),
        "table_note": "Means per episode over all data points with their 95% intervals. "
        "Loss: true maximal loss per step; its bound: what that cannot exceed if feedback is linear in the context.",
        "figure": _inline(figure) if figure.is_file() and figure.stat().st_size < LARGEST_FIGURE else None,
        "figure_words": "Return, cost, correct choices and loss under its bound by data point, a column per world",
        "charts": [entry for world in found for entry in _charts(world, points, alone=len(found) == 1)],
        "cautions": _cautions(found, rows),
        "provenance": _provenance(folder.about),
    } | _replay(folder, rows, replays)


def _replay(folder: Folder, points: Rows, replays: int) -> dict[str, Any]:
    """Drive the first episodes of the last data point again, in the first world in which that can be done."""
    last = {row["world"]: row["data_point"] for row in points if row["role"] == "blended" and row["trace"] == 0}
    for world, point in last.items() if replays else ():
        with tempfile.TemporaryDirectory() as place:
            again = rerun_episodes(
                folder.path, folder.about, world=world, data_point=point, episodes=replays, into=Path(place)
            )
            drive = None if again is None else read_stages(again.record)
            places = None if again is None else read_poses(again.track)
        if again is None or drive is None:
            continue
        packer, sums = Packer(), episode_sums(drive)
        episodes = pack_replay(drive, places, packer, sums=sums, seed=again.seed)
        return {
            "scenery": None if places is None else places.scenery,
            "episodes": episodes,
            "columns": packer.directory,
            "blob": packer.text(),
            "moments": costliest_moments(drive, sums),
            "replay_note": f"{world}, data point {point + 1}: its first episodes, driven again.",
        }
    return {"scenery": None, "episodes": [], "columns": {}, "blob": "", "moments": []}


def _counts(found: dict[str, Any]) -> dict[tuple[str, str], int]:
    """Tell how many episodes of each role a verdict is about."""
    return {(world, role): told[role]["episodes"] for world, told in found.items() for role in ROLES if role in told}


def _read(path: Path, schema: pa.Schema) -> pa.Table:
    """Read a table, an empty one if there is none yet."""
    if not path.is_file():
        return schema.empty_table()
    return read_table(path)


def _sentence(found: dict[str, Any]) -> str:
    if not found:
        return "No data point is finished yet."
    parts = []
    for world, told in found.items():
        claims = list(told["claims"].values())
        held = [claim for claim in claims if claim["holds"]]
        sure = sum(claim["ci95"] is not None and claim["ci95"][0] > 0 for claim in held)
        known = f"{sure or 'none'} of them beyond chance" if sure < len(held) else "beyond chance"
        told_so = f", {known}" if held else ""
        parts.append(f"in {world} {len(held)} of the {len(claims)} claims hold{told_so}")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _table(found: dict[str, Any], points: Rows) -> Rows:
    rows = []
    for world, told in found.items():
        for role, color in ROLES.items():
            if role not in told:
                continue
            mine = [row for row in points if row["world"] == world and row["role"] == role]
            share = known_mean(mine, "share_performant") if role in ("random", "blended") else None
            ratio = {"blended": "correct_ratio", "random": "correct_ratio_random"}.get(role)
            rows.append(
                {
                    "name": role,
                    "role": ("blend" if role == "blended" else "") if len(found) == 1 else world,
                    "color": color,
                    "return": [told[role]["return_mean"], *(told[role]["return_ci95"] or [None, None])],
                    "cost": [told[role]["cost_mean"], *(told[role]["cost_ci95"] or [None, None])],
                    "share": [None, None] if share is None else [share, 1.0 - share],
                    "switches": sum(row["switches"] or 0 for row in mine) if share is not None else None,
                    "correct": told.get(ratio) if ratio else None,
                    "loss": _last(mine, "max_loss_mean"),
                    "bound": _last(mine, "max_loss_bound_mean"),
                }
            )
    return rows


def _charts(world: str, points: pa.Table, *, alone: bool) -> Rows:
    """Give the charts of one world, by data point."""
    here = points.filter(pc.field("world") == world)
    prefix = "" if alone else f"{world}: "
    made = []
    for title, column, factor, unit in (
        ("Return", "return", 1.0, ""),
        ("Cost", "cost", 1.0, ""),
        ("Correct choices", "correct_ratio", 100.0, "%"),
    ):
        lines = [_band(role, curve(here, role, column), factor=factor) for role in ROLES]
        low = 0.0 if column == "cost" else None
        made.append(
            chart(prefix + title, _there(lines), x="data point", kind="dots", unit=unit, factor=factor, low=low)
        )
    bound, loss = (curve(here, "blended", name) for name in ("max_loss_bound_mean", "max_loss_mean"))
    lines = [
        series("its bound", bound.point + 1, bound.mean, color="ink", dashed=True),
        series("average loss", loss.point + 1, loss.mean, color="blend"),
    ]
    note = (
        "true maximal loss per step, and what it cannot exceed if feedback is linear in the context, "
        "both averaged since the start"
    )
    made.append(chart(f"{prefix}Average loss under its bound", _there(lines), x="data point", log=True, note=note))
    share = curve(here, "blended", "share_performant")
    stack = [
        series("performant", share.point + 1, share.mean, color=0),
        series("safe", share.point + 1, 1.0 - share.mean, color=1),
    ]
    made.append(
        chart(
            f"{prefix}Who drove",
            _there(stack),
            x="data point",
            kind="stack",
            unit="%",
            factor=100,
            low=0.0,
            high=100.0,
        )
    )
    made.append(_theta(prefix, [row for row in here.to_pylist() if row["role"] == "blended"]))
    return [entry for entry in made if entry["series"]]


def _theta(prefix: str, rows: Rows) -> dict[str, Any]:
    first = [row for row in rows if row["trace"] == rows[0]["trace"] and row["theta"]]
    lines = []
    for i in range(len(first[0]["theta"]) if first else 0):
        objective, feature = divmod(i, max(len(first[0]["theta"]) // 2, 1))
        word = f"{('reward', '-cost')[min(objective, 1)]} · feature {feature + 1}"
        where = np.array([row["data_point"] + 1 for row in first])
        lines.append(series(word, where, np.array([row["theta"][i] for row in first]), color=f"c{i % 8}"))
    note = "weight of each feature in each objective, at the end of each data point"
    return chart(f"{prefix}What it learned, theta", lines, x="data point", note=note)


def _band(role: str, line: Curve, *, factor: float) -> dict[str, Any]:
    """Give a line with its 95% intervals."""
    told = series(role, line.point + 1, line.mean, color=ROLES[role])
    for end, values in (("low", line.low), ("high", line.high)):
        thinned = series(role, line.point + 1, values, color=ROLES[role])["y"]
        told[end] = [None if value is None else factor * value for value in thinned]
    return told


def _there(lines: Rows) -> Rows:
    return [line for line in lines if any(value is not None for value in line["y"])]


def _last(rows: Rows, column: str) -> float | None:
    """Give a column at the end of a trace, the mean of several traces."""
    last = {row["trace"]: row[column] for row in rows if row[column] is not None}  # data points are in order
    return float(np.mean(list(last.values()))) if last else None


def _cautions(found: dict[str, Any], points: Rows) -> list[str]:
    cautions = []
    for world in found:
        blended = [row for row in points if row["world"] == world and row["role"] == "blended"]
        for word in ("reward", "cost"):
            share = known_mean(blended, f"context_r2_{word}")
            if share is not None and share < LOW:
                cautions.append(
                    f"In {world} the context explains {100 * max(share, 0.0):.0f}% of the {word}; "
                    "do not expect the blend to help."
                )
        rescaled = sum({row["trace"]: row["rescaled"] or 0 for row in blended}.values())  # at the traces' ends
        if rescaled:
            cautions.append(
                f"In {world} {rescaled:,.0f} feature vectors were longer than the learner’s bound "
                "and were shortened to it."
            )
        events = sum(row["events"] or 0 for row in blended)
        if events:
            cautions.append(f"In {world} {events:,} things went wrong while driving; controllers were benched for it.")
        episodes = found[world].get("blended", {}).get("episodes", 0)
        if episodes < FEW:
            cautions.append(f"Only {episodes} episodes in {world}: the intervals are wide, or missing.")
    return cautions


def _provenance(about: dict[str, Any]) -> dict[str, Any]:
    sessions = about.get("sessions") or []
    facts = [["command", str(session["command"])] for session in sessions if session.get("command")]
    last = sessions[-1] if sessions else {}
    identity = about.get("identity") or {}
    if "seed" in identity:
        facts.append(["seed", str(identity["seed"])])
    told = [f"{name} {value}" for name, value in identity.items() if name != "seed" and value not in (None, {})]
    if told:
        facts.append(["options", ", ".join(told)])
    facts += [
        [name, ", ".join(f"{key} {value}" for key, value in last[name].items())]
        for name in ("versions", "machine")
        if last.get(name)
    ]
    if last.get("seconds"):
        facts.append(["time", f"{sum(session.get('seconds') or 0 for session in sessions):,.0f} s"])
    return {"facts": facts, "cards": []}


def _inline(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"
