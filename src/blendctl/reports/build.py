"""Build the report of a run: from its output directory to one HTML file."""

from __future__ import annotations

from pathlib import Path

from blendctl.file_reading import reading
from blendctl.reports.blend_page import BLEND_PAGE
from blendctl.reports.blend_run import read_blend_run
from blendctl.reports.compare_page import COMPARE_PAGE, read_compare_run
from blendctl.reports.fit_page import fit_html
from blendctl.reports.html import page_html
from blendctl.reports.reproduce_page import REPRODUCE_PAGE
from blendctl.reports.reproduce_run import read_reproduce_run
from blendctl.reports.run_dir import open_run_dir

REPLAYS = {"blend": 10, "reproduce": 3, "compare": 0, "fit": 0}  # episodes


def build_report(run: str | Path, *, replays: int | None = None) -> str:
    """Return the page of a run as HTML; `run` is the output directory of `blend`, `reproduce`, `compare` or `fit`.

    The page of an incomplete run shows what exists, with a banner. replays: number of episodes to replay. The default
    is 10 for a blend, the costliest ones, and 3 for an experiment, which are rerun.
    """
    folder = open_run_dir(run)
    count = REPLAYS[folder.kind] if replays is None else replays
    with reading(folder.path, "a run"):
        if folder.kind == "fit":
            return fit_html(folder.summary)
        if folder.kind == "compare":
            return page_html(COMPARE_PAGE, read_compare_run(folder))
        if folder.kind == "reproduce":
            return page_html(REPRODUCE_PAGE, read_reproduce_run(folder, replays=count))
        return page_html(BLEND_PAGE, read_blend_run(folder, replays=count))
