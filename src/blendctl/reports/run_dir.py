"""Identify a directory: the complete or partial output of `blend`, `reproduce`, `compare` or `fit`, or another one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blendctl.errors import FileFormatError, InputError
from blendctl.file_reading import read_json_object
from blendctl.table_parts import list_parts


@dataclass(frozen=True)
class RunDir:
    """The files of one run that exist."""

    path: Path
    kind: str  # "blend", "reproduce", "compare" or "fit"
    summary: dict[str, Any]  # written at the end of the run, empty if it did not finish
    about: dict[str, Any]  # written at the start of the run, empty without run.json
    record: list[Path]
    track: list[Path]
    missing: list[str]  # sentences for the banner


def open_run_dir(path: str | Path) -> RunDir:
    """Open the output directory of a run; raise if it is not one."""
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(
            f"{folder} is not a directory; expected the output directory of `blendctl blend`, `reproduce` or `compare`"
        )
    record = list_parts(folder / "record") or list_parts(folder)
    about, summary = _read_json(folder / "run.json"), _read_json(folder / "summary.json")
    experiment = about.get("experiment")
    if experiment == "reproduce" or (experiment is None and (folder / "points.parquet").is_file()):
        return RunDir(folder, "reproduce", _read_json(folder / "verdict.json"), about, record, [], [])
    if experiment == "compare" or (experiment is None and (folder / "compare.parquet").is_file()):
        return RunDir(folder, "compare", {}, about, record, [], [])
    if experiment == "fit":
        card = _read_json(folder / "card.json")
        if not card:
            raise FileFormatError(f"{folder} has no card.json: its fit did not finish; run it again")
        return RunDir(folder, "fit", card, about, record, [], [])
    if experiment not in (None, "blend") or ("names" not in summary | about and not record):
        inside = ", ".join(sorted(entry.name for entry in folder.iterdir())[:8]) or "nothing"
        raise FileFormatError(
            f"{folder} is not an output of `blendctl blend`, `reproduce` or `compare`: expected record/ and "
            f"summary.json, points.parquet or compare.parquet; actually it holds: {inside}"
        )
    missing = []
    if not record:
        missing.append("The record of the run is missing; this page shows only its summary.")
    elif about and not summary:
        missing.append("The run did not finish; this page shows what it recorded.")
    elif not summary:
        missing.append("The summary of the run is missing; this page is computed from its record.")
    return RunDir(folder, "blend", summary, about, record, list_parts(folder / "track"), missing)


def _read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object, empty if the file does not exist; raise if it is damaged."""
    if not path.is_file():
        return {}
    return read_json_object(path)
