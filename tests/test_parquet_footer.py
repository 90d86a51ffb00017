"""The size of a Parquet file is read from its footer without pyarrow, which ends the process on damaged ones."""

import io
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blendctl.errors import FileFormatError
from blendctl.parquet_footer import _ThriftReader, claimed_size
from blendctl.table_parts import unpack_table

TABLES = [
    pa.table({"x": [1, 2], "y": [0.5, 1.5], "name": ["a", "b"]}),
    pa.table({"lists": [[1, 2, 3], [], [4]], "flags": [True, None, False]}),
    pa.table({f"c{i}": np.arange(300) for i in range(40)}),
    pa.table({"x": pa.array([], pa.int64())}),
]


def parquet(table, **options):
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True, **options)
    return sink.getvalue()


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("rows", [2, 1000])
def test_the_claimed_size_is_pyarrows(table, rows):
    data = parquet(table, row_group_size=rows)
    metadata = pq.read_metadata(io.BytesIO(data))
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    columns = [group.column(i) for group in groups for i in range(group.num_columns)]
    cells = sum(group.num_rows * group.num_columns for group in groups)
    values, unpacked = claimed_size(io.BytesIO(data))
    assert values == max(sum(column.num_values for column in columns), cells)
    assert unpacked == sum(column.total_uncompressed_size for column in columns)  # headers of pages included
    assert unpack_table(io.BytesIO(data), len(data)).equals(table)


EVERY_BIT = """
import io, sys
from blendctl.table_parts import unpack_table
refused = 0
data = bytearray(open(sys.argv[1], "rb").read())
for at in range(len(data) - 8 - int.from_bytes(data[-8:-4], "little"), len(data)):
    for bit in range(8):
        data[at] ^= 1 << bit
        try:
            unpack_table(io.BytesIO(data), len(data))
        except Exception:
            refused += 1
        data[at] ^= 1 << bit
print(refused)
"""


def test_no_changed_bit_ends_the_process(tmp_path):
    """The reader of column metadata in pyarrow of column metadata aborts at some bits of the footer."""
    (tmp_path / "table.parquet").write_bytes(parquet(TABLES[0]))
    done = subprocess.run(
        [sys.executable, "-c", EVERY_BIT, str(tmp_path / "table.parquet")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100


@pytest.mark.parametrize(
    "footer",
    [
        b"",
        b"\x19",
        b"\x19\xfc" + b"\xff" * 11,
        b"\x1c" * 40 + b"\x00" * 41,
        b"\x1f\x00",
        b"\x49\x1c\x19\x0c\x26\x01\x00\x00",
    ],
    ids=["empty", "truncated", "long number", "deep", "unknown kind", "negative rows"],
)
def test_a_damaged_footer_is_refused(footer):
    data = b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(FileFormatError, match="footer"):
        claimed_size(io.BytesIO(data))
    for other in (data[:-1], b"", b"PAR1", b"\xff" * 8):
        with pytest.raises(FileFormatError, match="no footer"):
            claimed_size(io.BytesIO(other))


class Positions(_ThriftReader):
    """A reader that notes where the whole numbers are."""

    def __init__(self, data):
        super().__init__(data)
        self.found = []

    def integer(self):
        start = self.at
        value = super().integer()
        self.found.append((start, self.at, value))
        return value


def with_lies(data, lies):
    """Replace whole numbers of the footer by smaller ones, in as many bytes."""
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = bytearray(data[start:-8])
    reader = Positions(bytes(footer))
    reader.struct()
    for begin, end, value in reader.found:
        if value in lies:
            digits = [(2 * lies[value] >> 7 * i & 127) | 128 for i in range(end - begin)]
            footer[begin:end] = bytes([*digits[:-1], digits[-1] & 127])
    return data[:start] + bytes(footer) + data[-8:]


def test_a_footer_that_hides_values_is_refused():
    """300 bytes that pyarrow reads as one list of 40 million numbers."""
    many = 1_000_003
    lists = pa.ListArray.from_arrays(pa.array([0, many], pa.int32()), pa.array(np.zeros(many)))
    data = with_lies(parquet(pa.table({"x": lists}), write_statistics=False), {many: 1})
    assert pq.read_metadata(io.BytesIO(data)).row_group(0).column(0).num_values == 1
    with pytest.raises(FileFormatError, match=f"announces 1 values of a column, its pages have {many}"):
        unpack_table(io.BytesIO(data), len(data))


def test_encodings_that_multiply_texts_are_refused():
    table = pa.table({"x": list(range(1000))})
    data = parquet(table, use_dictionary=False, column_encoding={"x": "DELTA_BINARY_PACKED"})
    with pytest.raises(FileFormatError, match="encoding"):
        unpack_table(io.BytesIO(data), len(data))
