"""Report the progress of a long unit from a worker process to the process that shows it."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

DIRECTORY = "BLENDCTL_FIT_PROGRESS"  # environment variable: the directory to which workers write, one file per process
EVERY = 0.5  # seconds between two reports


@contextmanager
def reporting() -> Iterator[Callable[[float], None]]:
    """Yield a function that reports progress; without a listener it does nothing."""
    place = os.environ.get(DIRECTORY)
    file = None if place is None else Path(place) / str(os.getpid())
    last = 0.0

    def report(share: float) -> None:
        nonlocal last
        if file is not None and time.monotonic() - last >= EVERY:
            last = time.monotonic()
            file.write_text(f"{share:.4f}")

    try:
        yield report
    finally:
        if file is not None:
            file.unlink(missing_ok=True)


class ProgressListener:
    """Listen to workers that are started after it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="blendctl-fit-", ignore_cleanup_errors=True)
        os.environ[DIRECTORY] = self._folder.name

    def shares(self) -> float:
        """Return the sum of the shares of all running units."""
        total = 0.0
        for file in Path(self._folder.name).glob("*"):
            try:
                total += float(file.read_text())
            except (OSError, ValueError):  # the unit has just ended, or the file is being written
                continue
        return total

    @contextmanager
    def every_second(self, call: Callable[[float], None]) -> Iterator[None]:
        """Call a function with the shares, in a thread."""
        done = threading.Event()

        def listen() -> None:
            while not done.wait(1.0):
                call(self.shares())

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def close(self) -> None:
        """Stop listening; closing twice is allowed."""
        if os.environ.get(DIRECTORY) == self._folder.name:
            del os.environ[DIRECTORY]
        self._folder.cleanup()
