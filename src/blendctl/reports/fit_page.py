"""Write the page of a fit: the verdict, the table of all methods, return against cost; one file that loads nothing."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from blendctl.reports.html import inline_hash, page_source
from blendctl.reports.scatter import draw_scatter, figure_bytes


def fit_html(card: Mapping[str, Any]) -> str:
    """Return the page of a fit's card; all names and texts are escaped."""
    style = page_source("certificate.css")
    policy = f"default-src 'none'; style-src {inline_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    title = f"{' and '.join(card['names'])} in {card['environment']}"
    kind = "verdict passed" if card["verdict"] == "blend" else "verdict"
    parts = [
        f'<p class="kind">blendctl fit</p><h1>{escape(title)}</h1><p class="{kind}">{escape(card["words"])}</p>',
        _section("Methods, on unseen test episodes", _methods(card)),
        _section("Return against cost", _scatter(card)),
        _section("Settings that were tried, on validation episodes", _candidates(card)),
        _section("How it was made", _facts(card)),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{escape(title)} · blendctl</title><style>{style}</style></head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body></html>\n"
    )


def _section(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>{content}</section>" if content else ""


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
    return _table(head, rows) + f"<p>{escape(note)}</p>"


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
    return _table(["context", *settings[1:], "utility"], rows) + f"<p>{escape(note)}</p>"


def _facts(card: Mapping[str, Any]) -> str:
    facts = {
        "command": card["command"],
        "controllers": ", ".join(card["controllers"]),
        "cost": card["cost"] or ('info["cost"]' if "-cost" in card["objectives"] else "none"),
        "seeds": ", ".join(f"{stage} from {first}" for stage, first in card["seeds"].items()),
        "data": f"{card['plan']['steps']} control steps; {card['seconds']:g} s in total",
        "versions": ", ".join(f"{name} {value}" for name, value in card["versions"].items()),
    }
    return _table(None, [[name, str(value)] for name, value in facts.items() if value], kind="facts")


def _table(head: Iterable[str] | None, rows: Iterable[Iterable[str]], *, kind: str = "") -> str:
    top = "" if head is None else f"<tr>{''.join(f'<th>{escape(cell)}</th>' for cell in head)}</tr>"
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<table class="{kind}">{top}{body}</table>'
