"""Read how much a Parquet file holds from its footer and the headers of its pages, in plain Python.

pyarrow aborts the process when it is asked for the metadata of columns in a damaged footer; one changed bit is
enough. Reading the table is safe, but pyarrow trusts the pages: a footer may announce one value, and a page hold a
billion equal ones.
"""

from __future__ import annotations

import io
from typing import IO, Any

from blendctl.errors import FileFormatError

MAGIC = b"PAR1"
LARGEST_FOOTER = 4 << 20  # bytes
LARGEST_HEADER = 1 << 16  # bytes of a page's header
MOST_PAGES = 20_000
DEEPEST = 16  # structs and lists inside each other
DICTIONARY_PAGE = 2
ENCODINGS = {0, 2, 3, 8}  # plain, run lengths, and dictionaries: no value is longer than its stored bytes
# Kinds of values in Thrift's compact protocol.
TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
INTEGERS = (4, 5, 6)


def claimed_size(file: IO[bytes]) -> tuple[int, int]:
    """Return the number of values and of unpacked bytes that a Parquet file holds; raise if its pages disagree."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(size - 8, 0))
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or length > min(LARGEST_FOOTER, size - 8):
        raise FileFormatError("it has no footer of a Parquet file")
    file.seek(size - 8 - length)
    values = unpacked = cells = pages = 0
    for group in _ThriftReader(file.read(length)).struct().get(4, ()):
        columns = [chunk[3] for chunk in group[1]]
        cells += group[3] * len(columns)
        if min([group[3], *(column[key] for column in columns for key in (5, 6, 7, 9))]) < 0:
            raise FileFormatError("its footer has negative sizes")
        for column in columns:
            count, stored, number = _sum_pages(file, column, left=MOST_PAGES - pages)
            if count != column[5]:
                raise FileFormatError(f"its footer announces {column[5]} values of a column, its pages have {count}")
            values, unpacked, pages = values + count, unpacked + max(stored, column[6]), pages + number
    return max(values, cells), unpacked


def _sum_pages(file: IO[bytes], column: dict[int, Any], *, left: int) -> tuple[int, int, int]:
    """Return the values, the unpacked bytes and the number of a column's pages; raise if there are more than `left`."""
    if column[5] == 0:
        return 0, 0, 0  # no page is read
    at = min(column[9], column.get(11) or column[9])
    end = at + column[7]
    values = unpacked = number = 0
    while at < end:
        file.seek(max(at, 0))
        reader = _ThriftReader(file.read(min(LARGEST_HEADER, end - at)))
        page = reader.struct()
        kind, stored, packed = page[1], page[2], page[3]
        number += 1
        if number > left or min(stored, packed) < 0:
            raise FileFormatError("its pages are too many, or have negative sizes")
        about = page.get(5) or page.get(8) or {}
        if kind != DICTIONARY_PAGE:
            if about[4 if 8 in page else 2] not in ENCODINGS or about[1] < 0:
                raise FileFormatError("its pages have an encoding that is not allowed")
            values += about[1]
        unpacked += stored + reader.at
        at += reader.at + packed
    return values, unpacked, number


class _ThriftReader:
    """A reader of Thrift's compact protocol: structs as dictionaries by the numbers of their fields."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Read the fields of a struct up to its stop mark."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.integer()
            kind = head & 15
            # The kind of a boolean field is its value.
            fields[number] = kind == TRUE if kind in (TRUE, FALSE) else self.value(kind, depth + 1)
        return fields

    def value(self, kind: int, depth: int) -> Any:
        """Read one value; every value has at least one byte, so that the work is limited by the footer's size."""
        if depth > DEEPEST:
            raise FileFormatError("its footer is nested too deeply")
        if kind in INTEGERS:
            return self.integer()
        if kind in (TRUE, FALSE, BYTE):
            return self.byte()
        if kind in (DOUBLE, BINARY):
            return self.skip(8 if kind == DOUBLE else self.varint())
        if kind == STRUCT:
            return self.struct(depth)
        if kind in (LIST, SET):
            head = self.byte()
            count = self.varint() if head >> 4 == 15 else head >> 4
            return [self.value(head & 15, depth + 1) for _ in range(min(count, len(self.data)))]
        raise FileFormatError(f"its footer has a value of the unknown kind {kind}")

    def byte(self) -> int:
        """Read one byte."""
        self.skip(1)
        return self.data[self.at - 1]

    def skip(self, count: int) -> None:
        """Skip bytes."""
        self.at += count
        if self.at > len(self.data):
            raise FileFormatError("its footer is truncated")

    def varint(self) -> int:
        """Read an unsigned number of up to ten bytes."""
        total = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            total |= (byte & 127) << shift
            if byte < 128:
                return total
        raise FileFormatError("its footer has a number of more than ten bytes")

    def integer(self) -> int:
        """Read a signed number."""
        raw = self.varint()
        return raw >> 1 ^ -(raw & 1)
