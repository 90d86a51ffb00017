"""Read and write tables that are split into Parquet files `part-000001.parquet`, ... of one directory.

A file is written atomically. What all of its rows share is JSON in its metadata, under the name of the format.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blendctl.errors import FileFormatError

if TYPE_CHECKING:
    import pyarrow


def list_parts(directory: Path) -> list[Path]:
    """Return the files of a table in order."""
    return sorted(directory.glob("part-*.parquet"))


def write_part(directory: Path, number: int, table: pyarrow.Table, *, format_name: str, header: dict[str, Any]) -> None:
    """Write one file; readers never see an incomplete one."""
    import pyarrow.parquet

    name = f"part-{number:06d}.parquet"
    # readers skip names that start with a dot
    hidden = directory / f".{name}"
    described = table.replace_schema_metadata({format_name: json.dumps(header)})
    pyarrow.parquet.write_table(described, hidden, compression="zstd")
    hidden.replace(directory / name)


def read_part(path: Path, *, format_name: str, version: int) -> tuple[dict[str, Any], pyarrow.Table]:
    """Return the header and the rows of one file; raise `FileFormatError` if it is damaged or of another kind."""
    table = read_table(path)
    header: dict[str, Any] = json.loads((table.schema.metadata or {}).get(format_name.encode(), b"{}"))
    if header.get("version") != version:
        raise FileFormatError(
            f"{path} must be a {format_name} file of version {version}, "
            f"actually: {header.get('version', 'another kind of table')}"
        )
    return header, table


def read_table(path: Path) -> pyarrow.Table:
    """Return the table in a Parquet file; raise `FileFormatError` if it cannot be read."""
    import pyarrow
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_table(path)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise FileFormatError(f"{path} is damaged or not a Parquet file: {error}") from None
