"""Write files atomically: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from blendctl.errors import BlendctlError


@contextlib.contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Turn an OSError into one that names the file: a full disk raises errors without a name.

    >>> with naming_file(Path("out/run.json")):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    OSError: [Errno 28] No space left on device: 'out/run.json'
    """
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OSError(error.errno or 0, reason, str(path)) from error


def write_atomically(path: Path, data: bytes, *, make_folder: bool = True) -> None:
    """Write a file so that a crash or a full disk leaves the old content in place.

    Raise `OSError` if the system refuses, `BlendctlError` if the path is a directory, a pipe or a device.
    """
    if path.exists() and not path.is_file():
        raise BlendctlError(f"cannot write {path}: it exists and is not a regular file")
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    with naming_file(path):
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    sync_folder(path.parent)


def append_line(path: Path, line: str) -> None:
    """Append a line to a file, whole or not at all: a full disk leaves the file as it was."""
    data = (line + "\n").encode()
    with naming_file(path), path.open("ab", buffering=0) as file:
        start = file.tell()
        try:
            written = file.write(data)
            if written != len(data):
                file.write(data[written:])  # raises the cause of the short write
        except BaseException:
            file.truncate(start)
            raise


def sync_file(path: Path) -> None:
    """Wait until the content of a file is on the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, if the file system can do that."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
