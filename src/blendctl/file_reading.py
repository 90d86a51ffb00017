"""Read files that may be damaged or hostile: every failure is a FileFormatError, and the unpacked size is limited."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blendctl.errors import BlendctlError, FileFormatError, MissingExtraError
from blendctl.user_errors import describe_error

LARGEST_JSON = 4 << 20  # bytes
SPARE = 64 << 20  # bytes that any file may unpack to


@contextmanager
def reading(path: str | Path, content: str) -> Iterator[None]:
    """Turn errors while a file is read into a FileFormatError that names the file.

    >>> with reading("run.json", "a run"):
    ...     json.loads("?")
    Traceback (most recent call last):
    blendctl.errors.FileFormatError: run.json is damaged or not a run: Expecting value: line 1 column 1 (char 0)
    """
    try:
        yield
    except MissingExtraError:
        raise
    except Exception as error:
        if isinstance(error, FileFormatError) and str(path) in str(error):
            raise
        reason = describe_error(error).partition(": ")[2] or type(error).__name__
        if isinstance(error, BlendctlError):
            reason = str(error)
        elif isinstance(error, KeyError):
            reason = f"it lacks {reason}"
        raise FileFormatError(f"{path} is damaged or not {content}: {reason}") from error


def unpacked_limit(size: int) -> int:
    """Return how many bytes a file of `size` bytes may unpack to."""
    return 10 * size + SPARE


def check_unpacked(unpacked: int, size: int) -> None:
    """Raise FileFormatError if a file of `size` bytes unpacks to more than is allowed."""
    if unpacked > unpacked_limit(size):
        raise FileFormatError(
            f"it unpacks to {unpacked >> 20} MiB; allowed for a file of its size: {unpacked_limit(size) >> 20} MiB"
        )


def parse_json(text: str | bytes) -> Any:
    """Return JSON data; raise ValueError if it is too long or holds text that cannot be written.

    >>> parse_json('{"name": "PointGoal1"}')
    {'name': 'PointGoal1'}
    """
    if len(text) > LARGEST_JSON:
        raise ValueError(f"it has {len(text)} bytes of JSON; allowed: {LARGEST_JSON}")
    data = json.loads(text)
    # A lone surrogate is valid JSON, but it cannot be encoded for a file or a terminal.
    if "\\ud" in (text if isinstance(text, str) else text.decode("utf-8", "replace")).lower():
        json.dumps(data, ensure_ascii=False).encode()
    return data


def read_json_object(path: Path) -> dict[str, Any]:
    """Read a file that holds one JSON object."""
    with reading(path, "JSON"):
        if path.stat().st_size > LARGEST_JSON:
            raise ValueError(f"it has {path.stat().st_size} bytes; allowed: {LARGEST_JSON}")
        content = parse_json(path.read_bytes().decode("utf-8"))
        if not isinstance(content, dict):
            raise ValueError(f"expected an object, actually: {type(content).__name__}")
        return content


def check_archive(archive: zipfile.ZipFile, size: int) -> None:
    """Raise FileFormatError if the files of a zip of `size` bytes unpack to more than is allowed."""
    check_unpacked(sum(item.file_size for item in archive.infolist()), size)


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of an .npz; the checksum and the size of each are compared with its content."""
    with reading(path, "arrays"), zipfile.ZipFile(path) as archive:
        check_archive(archive, path.stat().st_size)
        return {name.removesuffix(".npy"): _array(archive.read(name)) for name in archive.namelist()}


def _array(data: bytes) -> NDArray[Any]:
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[version]
    shape, fortran, dtype = read_header(stream)
    if dtype.hasobject or len(shape) > 8 or any(n < 0 for n in shape):
        raise ValueError(f"an array has type {dtype} and {len(shape)} dimensions")
    # The header alone could claim any size: reshape the bytes that exist.
    return np.frombuffer(data, dtype, offset=stream.tell()).reshape(shape, order="F" if fortran else "C").copy()
