"""Assemble a page: one HTML file that contains its style, its scripts and its data, and loads nothing else."""

from __future__ import annotations

import base64
import hashlib
import html
from functools import cache
from importlib import resources

from blendctl.reports.binary_columns import as_script_text
from blendctl.reports.page import Page, R

# each uses the ones before it; the scripts of the sections follow, then main
SCRIPTS = ("basics", "charts", "scatter", "episodes", "player", "world", "pictures", "panel", "timeline", "live")


def page_html(page: Page[R], run: R) -> str:
    """Return the page of a run; all names and texts in its data are escaped."""
    data = page.data(run)
    style, script = page_source("style.css"), _script([part.name for part in page.sections])
    connect = "'self'" if page.kind == "live" else "'none'"
    policy = (
        f"default-src 'none'; script-src {inline_hash(script)}; style-src {inline_hash(style)}; img-src data:; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )
    values = {
        "policy": html.escape(policy, quote=True).replace("&#x27;", "'"),
        "title": html.escape(f"{data.headline.title} · blendctl"),
        "verdict": html.escape(data.headline.verdict),
        "style": style,
        "data": as_script_text(data),
        "script": script,
    }
    first, *pieces = page_source("index.html").split("{{")
    built = [first]
    # one pass, so that braces in the data are never replaced
    for piece in pieces:
        name, _, rest = piece.partition("}}")
        built += [values[name], rest]
    return "".join(built)


@cache
def page_source(name: str) -> str:
    """Return a file of the pages' style, scripts and templates."""
    return resources.files("blendctl.reports").joinpath("page", name).read_text(encoding="utf-8")


def _script(sections: list[str]) -> str:
    names = [*SCRIPTS, *(f"sections/{name}" for name in sections), "main"]
    files = "\n".join(page_source(f"{name}.js") for name in names)
    return f'"use strict";\n(() => {{\n{files}\n}})();\n'


def inline_hash(text: str) -> str:
    """Return the hash by which a page's policy allows an inline style or script."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
