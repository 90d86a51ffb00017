"""Read the recorded pictures of a run, up to the size limit of a page."""

from __future__ import annotations

import base64
import re
import zipfile
from pathlib import Path

from blendctl.errors import FileFormatError
from blendctl.file_reading import reading
from blendctl.reports.page_data import Pictures

MEGABYTES = 3.0  # of all pictures in a page
LARGEST_FILE = 64 << 20  # bytes
_NAME = re.compile(r"(\d{6,9})\.webp")


def read_pictures(
    folder: Path, episodes: list[int], *, megabytes: float = MEGABYTES
) -> tuple[dict[int, Pictures], list[str]]:
    """Return the pictures of episodes, thinned equally so that all fit in, and the names of unreadable files."""
    read: dict[int, dict[int, bytes]] = {}
    damaged = []
    for episode in episodes:
        file = folder / f"episode-{episode:06d}.zip"
        if not file.is_file():
            continue
        try:
            read[episode] = read_episode_pictures(file)
        except FileFormatError:
            damaged.append(file.name)
    most = max((len(pictures) for pictures in read.values()), default=0)
    for every in range(1, most + 1):
        kept = {episode: _thin(pictures, every) for episode, pictures in read.items()}
        size = sum(4 * len(one) / 3 for pictures in kept.values() for one in pictures.values())
        if size <= megabytes * 1e6:
            texts = {
                episode: Pictures(list(pictures), [base64.b64encode(one).decode() for one in pictures.values()])
                for episode, pictures in kept.items()
                if pictures
            }
            return texts, damaged
    return {}, damaged


def read_episode_pictures(file: Path) -> dict[int, bytes]:
    """Return the WebP pictures of an episode, by control step."""
    with reading(file, "recorded pictures"):
        size = file.stat().st_size
        if size > LARGEST_FILE:
            raise ValueError(f"it has {size} bytes; allowed: {LARGEST_FILE}")
        pictures = {}
        with zipfile.ZipFile(file) as archive:
            parts = archive.infolist()
            if sum(part.file_size for part in parts) > size:
                raise ValueError("it unpacks to more than its size")
            for part in parts:
                named = _NAME.fullmatch(part.filename)
                data = archive.read(part) if named else b""
                if named is None or data[:4] != b"RIFF" or data[8:12] != b"WEBP":
                    raise ValueError(f"{part.filename!r} is not a picture of a control step")
                pictures[int(named[1])] = data
        return dict(sorted(pictures.items()))


def _thin(pictures: dict[int, bytes], every: int) -> dict[int, bytes]:
    return {step: pictures[step] for step in list(pictures)[::every]}
