"""Write a sheet: an HTML page of headings, tables and pictures without scripts, which loads nothing and prints well."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from blendctl.reports.html import inline_hash, page_source


def sheet_html(title: str, parts: Iterable[str], *, kind: str) -> str:
    """Return a page of HTML parts, the empty ones left out; `kind` follows the title in the browser's tab."""
    style = page_source("certificate.css")
    policy = f"default-src 'none'; style-src {inline_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{escape(title)} · {kind}</title><style>{style}</style></head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body></html>\n"
    )


def verdict_html(words: str, *, passed: bool) -> str:
    """Return the verdict as a paragraph."""
    return f'<p class="{"verdict passed" if passed else "verdict"}">{escape(words)}</p>'


def section_html(title: str, content: str) -> str:
    """Return a section, nothing without content; both are HTML."""
    return f"<section><h2>{title}</h2>{content}</section>" if content else ""


def table_html(head: Iterable[str] | None, rows: Iterable[Iterable[str]], *, kind: str = "") -> str:
    """Return a table of texts."""
    top = "" if head is None else f"<tr>{''.join(f'<th>{escape(cell)}</th>' for cell in head)}</tr>"
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    opening = f'<table class="{kind}">' if kind else "<table>"
    return f"{opening}{top}{body}</table>"
