"""Put a page together: one HTML file with its style, its script and its data inside, and nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import html
from functools import cache
from importlib import resources
from typing import Any

from blendctl.reports.binary_columns import as_script_text

__all__ = ["page_html"]

# in the order in which they build on one another
SCRIPTS = (
    "basics", "episodes", "player", "world", "panel", "timeline", "charts", "sections", "live", "main",
)  # fmt: skip


def page_html(data: dict[str, Any]) -> str:
    """Give the page; names and texts in `data` do no harm, whatever they hold."""
    style, script = _source("style.css"), _script()
    connect = "'self'" if data["kind"] == "live" else "'none'"
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": html.escape(policy, quote=True).replace("&#x27;", "'"),
        "title": html.escape(f"{data['title']} · blendctl"),
        "verdict": html.escape(str(data["verdict"])),
        "style": style,
        "data": as_script_text(data),
        "script": script,
    }
    pieces = _source("index.html").split("{{")
    built = [pieces[0]]
    for piece in pieces[1:]:  # one pass, so that nothing in the data is taken for a place to fill
        name, _, rest = piece.partition("}}")
        built += [parts[name], rest]
    return "".join(built)


@cache
def _source(name: str) -> str:
    return resources.files("blendctl.reports").joinpath("page", name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    files = "\n".join(_source(f"{name}.js") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{files}\n}})();\n'


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
