"""A file as text, for the JSON data of a unit's result."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from blendctl.errors import InputError

T = TypeVar("T")


def file_text(write: Callable[[Path], object]) -> str:
    """Return what `write` writes to a file, as base64."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.safetensors"
        write(path)
        return base64.b64encode(path.read_bytes()).decode()


def read_file_text(text: str, read: Callable[[Path], T]) -> T:
    """Return what `read` reads from a file with the content of a `file_text`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.safetensors"
        try:
            path.write_bytes(base64.b64decode(text, validate=True))
        except ValueError as error:
            raise InputError(f"this is not the text of a file: {error}") from error
        return read(path)
