"""One run at a time in an output directory, until it ends in any way."""

import signal
import subprocess
import sys

import pytest

from blendctl.blender import Recorder
from blendctl.directory_lock import DirectoryLock
from blendctl.errors import StateError

HOLD = """
import sys, time
from blendctl.directory_lock import DirectoryLock
lock = DirectoryLock(sys.argv[1])
print("locked", flush=True)
time.sleep(60)
"""


def test_another_process_is_kept_out_until_the_first_is_killed(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HOLD, tmp_path / "out"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "locked\n"
        with pytest.raises(StateError, match="in use by another run"):
            DirectoryLock(tmp_path / "out")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(20)
        process.stdout.close()
    DirectoryLock(tmp_path / "out").close()
    assert not list((tmp_path / "out").iterdir())


def test_a_lock_ends_when_it_is_closed_or_dropped(tmp_path):
    for _ in range(3):
        with DirectoryLock(tmp_path):
            pass
        DirectoryLock(tmp_path)


def test_two_records_cannot_share_a_directory(tmp_path):
    first = Recorder(tmp_path)
    with pytest.raises(StateError, match="in use by another run"):
        Recorder(tmp_path, overwrite=True)
    first.close()
    Recorder(tmp_path).close()
