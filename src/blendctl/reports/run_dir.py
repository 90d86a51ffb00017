"""Find out what a directory holds: the output of blend, of reproduce, part of one, or something else."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blendctl.errors import FileFormatError, InputError
from blendctl.table_parts import list_parts

__all__ = ["Folder", "look_into", "read_json"]


@dataclass(frozen=True)
class Folder:
    """The files of one run that are there."""

    path: Path
    kind: str  # "blend" or "reproduce"
    summary: dict[str, Any]  # what a run that ended left behind, else empty
    about: dict[str, Any]  # what a run said of itself when it began, else empty
    record: list[Path]
    track: list[Path]
    missing: list[str] = field(default_factory=list)  # sentences for the banner


def look_into(path: str | Path) -> Folder:
    """Open the output directory of a run; refuse one that is none."""
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(
            f"{folder} is no directory; give the output directory of `blendctl blend` or `blendctl reproduce`"
        )
    record = list_parts(folder / "record") or list_parts(folder)
    about, summary = read_json(folder / "run.json"), read_json(folder / "summary.json")
    points = folder / "points.parquet"
    missing: list[str] = []
    experiment = about.get("experiment")
    if experiment == "reproduce" or (experiment is None and points.is_file()):
        return Folder(folder, "reproduce", read_json(folder / "verdict.json"), about, record, [], missing)
    if experiment not in (None, "blend") or ("names" not in summary | about and not record):
        inside = ", ".join(sorted(entry.name for entry in folder.iterdir())[:8]) or "nothing"
        raise FileFormatError(
            f"{folder} is no output of `blendctl blend` or `blendctl reproduce`: expected record/ and summary.json, "
            f"or points.parquet; actually it holds: {inside}"
        )
    if not record:
        missing.append("The record of the drive is missing; only the summary is shown.")
    elif about and not summary:
        missing.append("The run did not end: this is what it wrote down until then.")
    elif not summary:
        missing.append("There is no summary of the run; everything here is taken from its record.")
    track = list_parts(folder / "track")
    return Folder(folder, "blend", summary, about, record, track, missing)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object, empty if there is no file; refuse a damaged one."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise FileFormatError(f"{path} cannot be read as JSON ({error}); is it damaged?") from None
    if not isinstance(found, dict):
        raise FileFormatError(f"{path} must hold a JSON object, actually: {type(found).__name__}")
    return found
