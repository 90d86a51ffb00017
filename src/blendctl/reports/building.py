"""Build the report of a run: from its output directory to one HTML file."""

from __future__ import annotations

from pathlib import Path

from blendctl.reports.blend_page import blend_page
from blendctl.reports.html import page_html
from blendctl.reports.reproduce_page import reproduce_page
from blendctl.reports.run_dir import look_into

__all__ = ["build_report"]

REPLAYS = {"blend": 10, "reproduce": 3}  # episodes; of a longer drive the costliest


def build_report(run: str | Path, *, replays: int | None = None) -> str:
    """Give the page of a run as HTML; `run` is the output directory of `blendctl blend` or `blendctl reproduce`.

    A run that did not end gets a page of what is there, with a banner. replays: episodes to show, 10 of a drive; of an
    experiment 3, which are driven again for it.
    """
    folder = look_into(run)
    count = REPLAYS[folder.kind] if replays is None else replays
    build = reproduce_page if folder.kind == "reproduce" else blend_page
    return page_html(build(folder, replays=count))
