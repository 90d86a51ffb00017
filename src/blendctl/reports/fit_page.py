"""Write the page of a fit: the verdict, the table of all methods, return against cost; one file that loads nothing."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from html import escape
from typing import Any

from blendctl.reports.scatter import draw_scatter, figure_bytes
from blendctl.reports.sheet import section_html, sheet_html, table_html, verdict_html


def fit_html(card: Mapping[str, Any]) -> str:
    """Return the page of a fit's card; all names and texts are escaped."""
    title = f"{' and '.join(card['names'])} in {card['environment']}"
    parts = [
        f'<p class="kind">blendctl fit</p><h1>{escape(title)}</h1>'
        + verdict_html(card["words"], passed=card["verdict"] == "blend"),
        section_html("Methods, on unseen test episodes", _methods(card)),
        section_html("Return against cost", _scatter(card)),
        section_html("Settings that were tried, on validation episodes", _candidates(card)),
        section_html("How it was made", _facts(card)),
    ]
    return sheet_html(title, parts, kind="blendctl")


def _methods(card: Mapping[str, Any]) -> str:
    methods = card["methods"]
    components = [key for key in methods["blend"] if key.startswith("cost_") and key.endswith("_mean")]
    components = [key.removesuffix("_mean") for key in components if key != "cost_mean"]
    measures = ["return", *(["cost"] if "-cost" in card["objectives"] else []), *components]
    scored = card["corner_score"] is not None
    head = ["", *(name.removeprefix("cost_") for name in measures), *(["corner score"] if scored else [])]
    rows = []
    for name, row in methods.items():
        setting = f": {row['setting']}" if "setting" in row else ""
        cells = [name + setting, *(_interval(row, measure) for measure in measures)]
        rows.append([*cells, _interval(row, "corner_score", mean="corner_score")] if scored else cells)
    note = (
        f"Corner score: 0 is random mixing of {card['performant']} and {card['safe']}, 1 the return of "
        f"{card['performant']} at the cost of {card['safe']}."
        if scored
        else card["corner_score_reason"]
    )
    note = f"Means of {card['episodes']} episodes with 95% intervals. {note}"
    return table_html(head, rows) + f"<p>{escape(note)}</p>"


def _interval(row: Mapping[str, Any], measure: str, *, mean: str | None = None) -> str:
    value, span = row.get(mean or f"{measure}_mean"), row.get(f"{measure}_ci95")
    if value is None:
        return ""
    return f"{value:.4g}" if span is None else f"{value:.4g} ({span[0]:.4g} to {span[1]:.4g})"


def _scatter(card: Mapping[str, Any]) -> str:
    if "-cost" not in card["objectives"]:
        return ""
    picture = figure_bytes(draw_scatter({"world": card["environment"]} | dict(card)), "svg")
    source = f"data:image/svg+xml;base64,{base64.b64encode(picture).decode()}"
    return f'<img src="{source}" width="100%" alt="Return against cost of all methods">'


def _candidates(card: Mapping[str, Any]) -> str:
    settings = ("kind", "hold", "horizon", "dwell", "rule", "prefer")
    rows = [[*(str(one.get(name, "")) for name in settings), f"{one['utility']:.3f}"] for one in card["validation"]]
    chosen = card["context"]
    dwell = chosen.get("dwell", 1)
    note = (
        f"Chosen: {chosen['kind']} look-ahead, a decision every {chosen['hold']} control steps"
        f"{'' if dwell == 1 else f', at least {dwell} decisions from one switch to the next'}, prefer "
        f"{chosen['prefer']:g}. Utility: return / {card['scales']['return']:.4g} - cost / "
        f"{card['scales']['cost']:.4g}, in units of the difference between the controllers."
    )
    return table_html(["context", *settings[1:], "utility"], rows) + f"<p>{escape(note)}</p>"


def _facts(card: Mapping[str, Any]) -> str:
    facts = {
        "command": card["command"],
        "controllers": ", ".join(card["controllers"]),
        "cost": card["cost"] or ('info["cost"]' if "-cost" in card["objectives"] else "none"),
        "seeds": ", ".join(f"{stage} from {first}" for stage, first in card["seeds"].items()),
        "data": f"{card['plan']['steps']} control steps; {card['seconds']:g} s in total",
        "versions": ", ".join(f"{name} {value}" for name, value in card["versions"].items()),
    }
    return table_html(None, [[name, str(value)] for name, value in facts.items() if value], kind="facts")
