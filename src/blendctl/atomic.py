"""Write files atomically: whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from blendctl.errors import BlendctlError


def write_atomically(path: Path, data: bytes, *, make_folder: bool = True) -> None:
    """Write a file so that a crash or a full disk leaves the old content in place.

    Raise `OSError` if the system refuses, `BlendctlError` if the path is a directory, a pipe or a device.
    """
    if path.exists() and not path.is_file():
        raise BlendctlError(f"cannot write {path}: it exists and is not a regular file")
    if make_folder:
        path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
