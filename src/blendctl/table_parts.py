"""Read and write tables that are split into Parquet files `part-000001.parquet`, ... of one directory.

A file is written atomically. Its metadata hold what all rows share, as JSON under the name of the format.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from blendctl.atomic import naming_file, sync_file, sync_folder
from blendctl.errors import FileFormatError
from blendctl.file_reading import check_unpacked, parse_json, reading
from blendctl.parquet_footer import claimed_size

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
    with naming_file(directory / name):
        try:
            pyarrow.parquet.write_table(described, hidden, compression="zstd", write_page_checksum=True)
            sync_file(hidden)
            hidden.replace(directory / name)
        except BaseException:
            hidden.unlink(missing_ok=True)
            raise
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
    with reading(path, "a Parquet file"), path.open("rb") as file:
        return unpack_table(file, path.stat().st_size)


def unpack_table(source: IO[bytes], size: int) -> pyarrow.Table:
    """Return the table of a Parquet file of `size` bytes; raise unless it unpacks to an allowed size."""
    import pyarrow
    import pyarrow.compute
    import pyarrow.parquet

    values, unpacked = claimed_size(source)
    check_unpacked(8 * values, size)
    check_unpacked(unpacked, size)
    source.seek(0)
    # Threads that hold a Python file can outlive the read and abort the interpreter at its end (apache/arrow#33975).
    data = pyarrow.BufferReader(source.read())
    schema = pyarrow.parquet.read_schema(data)
    # A repeated text is stored once: read it as a code, and sum up its length before it is decoded.
    texts = [field.name for field in schema if pyarrow.types.is_string(field.type)]
    if any(_holds_bytes(field.type) for field in schema if field.name not in texts):
        raise ValueError("it has columns of bytes or of lists of texts")
    with pyarrow.parquet.ParquetFile(data, page_checksum_verification=True, read_dictionary=texts) as file:
        table = file.read(use_threads=False)
    spelled = 0
    for name in texts:
        for chunk in table[name].chunks:
            lengths = pyarrow.compute.binary_length(chunk.dictionary).take(chunk.indices)
            spelled += pyarrow.compute.sum(lengths).as_py() or 0
    check_unpacked(spelled, size)
    # The schema may hold an older copy of the metadata.
    return table.cast(schema.with_metadata(table.schema.metadata))


def _holds_bytes(kind: pyarrow.DataType) -> bool:
    """Return whether a type or one of its parts has values of any length; lists of numbers do not count."""
    parts = [kind.field(i).type for i in range(kind.num_fields)]
    return any(map(_holds_bytes, parts)) if parts else "string" in str(kind) or "binary" in str(kind)
