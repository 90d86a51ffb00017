"""Build the report of a run: from its output directory to one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from blendctl.errors import InputError
from blendctl.file_reading import reading
from blendctl.reports.blend_page import BLEND_PAGE
from blendctl.reports.blend_run import plot_entries, read_blend_run
from blendctl.reports.compare_page import COMPARE_PAGE, read_compare_run
from blendctl.reports.fit_page import fit_html
from blendctl.reports.html import page_html
from blendctl.reports.reproduce_page import REPRODUCE_PAGE
from blendctl.reports.reproduce_run import read_reproduce_run
from blendctl.reports.run_dir import open_run_dir
from blendctl.reports.run_pictures import MEGABYTES

REPLAYS = {"blend": 10, "reproduce": 3, "compare": 0, "fit": 0}  # episodes


def build_report(
    run: str | Path,
    *,
    replays: int | None = None,
    entries: Sequence[str] | None = None,
    picture_megabytes: float = MEGABYTES,
) -> str:
    """Return the page of a run as HTML; `run` is the output directory of `blend`, `reproduce`, `compare` or `fit`.

    The page of an incomplete run shows what exists, with a banner. replays: number of episodes to replay. The default
    is 10 for a blend, the costliest ones, and 3 for an experiment, which are rerun. entries: names or numbers of the
    entries of the observation to plot, of a blend in another environment than blendctl's worlds; by default those that
    vary most. picture_megabytes: size of all pictures of the page.
    """
    folder = open_run_dir(run)
    count = REPLAYS[folder.kind] if replays is None else replays
    if entries is not None and folder.kind != "blend":
        raise InputError(f"entries of the observation are for the page of a blend, actually: of a {folder.kind}")
    with reading(folder.path, "a run"):
        if folder.kind == "fit":
            return fit_html(folder.summary)
        if folder.kind == "compare":
            return page_html(COMPARE_PAGE, read_compare_run(folder))
        if folder.kind == "reproduce":
            return page_html(REPRODUCE_PAGE, read_reproduce_run(folder, replays=count))
        read = read_blend_run(folder, replays=count, megabytes=picture_megabytes)
    if entries is not None:
        read = plot_entries(read, entries)
    with reading(folder.path, "a run"):
        return page_html(BLEND_PAGE, read)
