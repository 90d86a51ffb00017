"""A file is written whole or not at all."""

import os
import resource

import pytest

from blendctl.atomic import append_line, write_atomically
from blendctl.errors import BlendctlError


def test_a_file_is_created_with_its_folder_and_replaced(tmp_path):
    path = tmp_path / "folder" / "file"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_write_keeps_the_old_content(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full_disk(descriptor):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_only_regular_files_are_replaced(tmp_path):
    with pytest.raises(BlendctlError, match="not a regular file"):
        write_atomically(tmp_path, b"")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BlendctlError, match="not a regular file"):
        write_atomically(tmp_path / "pipe", b"")


def test_a_missing_folder_is_an_error_if_it_may_not_be_made(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "folder" / "file", b"", make_folder=False)


def test_a_line_is_appended_whole_or_not_at_all(tmp_path):
    path = tmp_path / "log"
    append_line(path, "first")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))
    try:
        with pytest.raises(OSError, match="log"):
            append_line(path, "x" * 30)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    append_line(path, "second")
    assert path.read_text() == "first\nsecond\n"
