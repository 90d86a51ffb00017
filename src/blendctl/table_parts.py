"""Read and write tables that are split into Parquet files `part-000001.parquet`, ... of one directory.

A file is written atomically. What all of its rows share is JSON in its metadata, under the name of the format.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blendctl.atomic import sync_file, sync_folder
from blendctl.errors import FileFormatError
from blendctl.file_reading import check_unpacked, parse_json, reading

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
    pyarrow.parquet.write_table(described, hidden, compression="zstd", write_page_checksum=True)
    sync_file(hidden)
    hidden.replace(directory / name)
    sync_folder(directory)


def read_part(path: Path, *, format_name: str, version: int) -> tuple[dict[str, Any], pyarrow.Table]:
    """Return the header and the rows of one file; raise `FileFormatError` if it is damaged or of another kind."""
    table = read_table(path)
    with reading(path, f"a {format_name} file"):
        header: dict[str, Any] = parse_json((table.schema.metadata or {}).get(format_name.encode(), b"{}"))
        if header.get("version") != version:
            raise FileFormatError(
                f"{path} must be a {format_name} file of version {version}, "
                f"actually: {header.get('version', 'another kind of table')}"
            )
        return header, table


def read_table(path: Path) -> pyarrow.Table:
    """Return the table in a Parquet file; raise `FileFormatError` if it cannot be read."""
    import pyarrow
    import pyarrow.compute
    import pyarrow.parquet

    with reading(path, "a Parquet file"):
        size = path.stat().st_size
        schema = pyarrow.parquet.read_schema(path)
        # A repeated text is stored once: read it as a code, and add up how long it is before it is spelled out.
        texts = [field.name for field in schema if pyarrow.types.is_string(field.type)]
        if any(_holds_bytes(field.type) for field in schema if field.name not in texts):
            raise ValueError("it has columns of bytes or of lists of texts")
        with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True, read_dictionary=texts) as file:
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            columns = [group.column(i) for group in groups for i in range(group.num_columns)]
            values = max(sum(c.num_values for c in columns), sum(g.num_rows * g.num_columns for g in groups))
            check_unpacked(8 * values, size)
            check_unpacked(sum(column.total_uncompressed_size for column in columns), size)
            table = file.read()
        spelled = 0
        for name in texts:
            for chunk in table[name].chunks:
                lengths = pyarrow.compute.binary_length(chunk.dictionary).take(chunk.indices)
                spelled += pyarrow.compute.sum(lengths).as_py() or 0
        check_unpacked(spelled, size)
        return table.cast(schema)


def _holds_bytes(kind: pyarrow.DataType) -> bool:
    """Return whether a type or one of its parts has values of any length; lists of numbers do not count."""
    parts = [kind.field(i).type for i in range(kind.num_fields)]
    return any(map(_holds_bytes, parts)) if parts else "string" in str(kind) or "binary" in str(kind)
