"""Lock an output directory, so that two runs cannot mix their files."""

from __future__ import annotations

import fcntl
import os
import weakref
from pathlib import Path

from blendctl.errors import StateError


class DirectoryLock:
    """Hold a directory for one run; create it if it is missing, raise StateError if another run holds it.

    The lock is on the directory itself: no file remains. The system releases it when the process ends, however it
    ends. A file system without locks is used without one.
    """

    def __init__(self, directory: str | Path) -> None:
        path = Path(directory)
        path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise StateError(
                f"{path} is in use by another run; wait until it ends, or choose another directory"
            ) from None
        except OSError:
            pass  # no locks here
        self._release = weakref.finalize(self, os.close, descriptor)

    def close(self) -> None:
        """Release the directory; closing twice is allowed."""
        self._release()

    def __enter__(self) -> DirectoryLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
