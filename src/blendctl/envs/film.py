"""Write pictures to a film: a GIF, or an MP4 if ffmpeg is installed. The file is complete or does not appear."""

from __future__ import annotations

import importlib
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Self

from PIL import Image

from blendctl.envs.drawing import Picture
from blendctl.errors import InputError, MissingExtraError, StateError, did_you_mean

FORMATS = (".gif", ".mp4")
GIF_COLORS = 192  # drawings have few colours and their mixtures; more would enlarge the file, not improve it
GIF_FRAMES = 1500  # a GIF is assembled in memory
GIF_TICK = 0.01  # s, time unit of a GIF
PALETTE_FROM = 16  # first pictures, which contain nearly all colours of the film


class Film(ABC):
    """A film that takes pictures of one size; a `with` block completes it, or removes it after an error."""

    def __init__(self, path: Path) -> None:
        self.frames = 0  # pictures so far
        self._path = path
        self._part = path.with_name(f".{path.stem}.part{path.suffix}")
        path.parent.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        complete = kind is None and self.frames > 0
        try:
            self._close(complete=complete)
            if complete:
                os.replace(self._part, self._path)
            elif kind is None:
                raise StateError("a film needs at least one picture")
        finally:
            self._part.unlink(missing_ok=True)

    @abstractmethod
    def add(self, picture: Picture) -> None:
        """Append a picture (height, width, 3)."""

    @abstractmethod
    def _close(self, *, complete: bool) -> None:
        """Close the file, and keep it only if it is complete."""


def open_film(path: str | Path, *, fps: float) -> Film:
    """Begin a film of `fps` pictures a second; the name's ending chooses the format. Use it in a `with` block."""
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        hint = did_you_mean(target.suffix, FORMATS)
        raise InputError(f'cannot write a film "{target}"; its name must end with a known format; {hint}')
    if not 0.0 < fps <= 200.0:
        raise InputError(f"expected 0 < fps <= 200, actually: {fps}")
    return _Gif(target, fps) if target.suffix.lower() == ".gif" else _Mp4(target, fps)


class _Gif(Film):
    def __init__(self, path: Path, fps: float) -> None:
        super().__init__(path)
        self._duration = max(2 * GIF_TICK, round(1.0 / fps / GIF_TICK) * GIF_TICK)  # viewers slow down faster films
        self._waiting: list[Image.Image] = []  # pictures waiting for the palette
        self._palette: Image.Image | None = None
        self._pictures: list[Image.Image] = []

    def add(self, picture: Picture) -> None:
        if self.frames == GIF_FRAMES:
            raise InputError(f"a GIF holds at most {GIF_FRAMES} pictures here; write an .mp4, or fewer steps")
        self._waiting.append(Image.fromarray(picture))
        self.frames += 1
        if self._palette is not None or len(self._waiting) == PALETTE_FROM:
            self._quantize()

    def _quantize(self) -> None:
        """Reduce to one palette for the whole film, so that static parts take no space."""
        palette = self._palette = self._palette or _common_palette(self._waiting)
        self._pictures += [p.quantize(palette=palette, dither=Image.Dither.NONE) for p in self._waiting]
        self._waiting.clear()

    def _close(self, *, complete: bool) -> None:
        if complete:
            self._quantize()
            first, *others = self._pictures
            options = {"duration": round(1000 * self._duration), "loop": 0, "optimize": True}
            first.save(self._part, format="GIF", save_all=True, append_images=others, **options)


class _Mp4(Film):
    def __init__(self, path: Path, fps: float) -> None:
        super().__init__(path)
        try:
            self._ffmpeg: Any = importlib.import_module("imageio_ffmpeg")
        except ImportError as error:
            raise MissingExtraError("imageio-ffmpeg", extra="video") from error
        self._fps = fps
        self._writer: Any = None

    def add(self, picture: Picture) -> None:
        height, width = (size - size % 2 for size in picture.shape[:2])  # the codec needs even sizes
        if self._writer is None:
            self._writer = self._ffmpeg.write_frames(
                str(self._part), (width, height), fps=self._fps, quality=8, macro_block_size=2
            )
            self._writer.send(None)
        self._writer.send(picture[:height, :width].tobytes())
        self.frames += 1

    def _close(self, *, complete: bool) -> None:
        if self._writer is not None:
            self._writer.close()


def _common_palette(pictures: list[Image.Image]) -> Image.Image:
    width, height = pictures[0].size
    strip = Image.new("RGB", (width, height * len(pictures)))
    for n, picture in enumerate(pictures):
        strip.paste(picture, (0, n * height))
    # by area, for smooth floors, and by coverage, so that a small robot keeps its colour
    halves = (
        strip.quantize(GIF_COLORS // 2, method=method).getpalette() or []
        for method in (Image.Quantize.MEDIANCUT, Image.Quantize.MAXCOVERAGE)
    )
    palette = Image.new("P", (1, 1))
    palette.putpalette([value for half in halves for value in half])
    return palette
