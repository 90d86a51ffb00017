"""Build the report of a run: from its output directory to one HTML file."""

from __future__ import annotations

from pathlib import Path

from blendctl.reports.blend_page import blend_page
from blendctl.reports.folder import look_into
from blendctl.reports.page_file import page_html
from blendctl.reports.reproduce_page import reproduce_page

__all__ = ["build_report"]

REPLAYS = 10  # episodes; of a longer drive the costliest


def build_report(run: str | Path, *, replays: int = REPLAYS) -> str:
    """Give the page of a run as HTML; `run` is the output directory of `blendctl blend` or `blendctl reproduce`.

    A run that did not end gets a page of what is there, with a banner.
    """
    folder = look_into(run)
    data = reproduce_page(folder) if folder.kind == "reproduce" else blend_page(folder, replays=replays)
    return page_html(data)
