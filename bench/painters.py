"""Time the painter and the film writer against Pillow, matplotlib and imageio, on the same shapes and pictures.

Painters draw every shape with a sharp edge of one scene. The error is the mean difference to eight-fold supersampling,
over the pixels that lie on an edge. Film writers write the same drive; the error is that of the decoded pictures.

    python bench/painters.py --pictures 100
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import imageio.v2 as imageio
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon
from PIL import Image, ImageDraw
from rich.console import Console
from rich.table import Table

from blendctl.envs import SingleWorld
from blendctl.envs.drawing import BOX, DISC, SEGMENT, Drawing, _paint, develop
from blendctl.envs.film import open_film
from blendctl.envs.topdown import TopDown

SIZE = 480
ROUNDS = 20


def shapes_of(world: str) -> np.ndarray:
    """Return the rows of all sharp shapes of a scene."""
    env = SingleWorld(world)
    env.reset(seed=3)
    rows: list[Any] = []

    class Recording(Drawing):
        def paint(self, canvas: np.ndarray) -> None:
            rows.extend(self._rows)
            super().paint(canvas)

    top = TopDown(env.task, width=SIZE, height=SIZE)
    top._blank = lambda center, scale: Recording(center=center, scale=scale, width=SIZE, height=SIZE)  # type: ignore[method-assign]  # shapes are read off
    top.draw(env.scene())
    return np.array([row for row in rows if row[9] <= 1.0])


def ours(rows: np.ndarray, *, times: int = 1) -> np.ndarray:
    """Paint with blendctl, enlarged by `times`."""
    scaled = rows.copy()
    scaled[:, 1:9] *= times
    turned = scaled[:, 0] == BOX
    scaled[turned, 5:7] /= times  # a box has its cosine and sine there
    canvas = np.full((SIZE * times, SIZE * times, 3), 232.0, np.float32)
    _paint(canvas, scaled)
    return develop(canvas)


def outline_of(row: np.ndarray) -> list[tuple[float, float]]:
    """Return the corners of a box or triangle; rounded corners are left out."""
    if int(row[0]) == BOX:
        x, y, wide, high, cosine, sine = row[1:7]
        return [
            (x + cosine * u * wide - sine * v * high, y + sine * u * wide + cosine * v * high)
            for u, v in ((1, 1), (-1, 1), (-1, -1), (1, -1))
        ]
    return [(row[1], row[2]), (row[3], row[4]), (row[5], row[6])]


def pillow(rows: np.ndarray, *, times: int = 3) -> np.ndarray:
    """Paint with Pillow, supersampled."""
    image = Image.new("RGB", (SIZE * times, SIZE * times), (232, 232, 232))
    pen = ImageDraw.Draw(image, "RGBA")
    for row in rows:
        color, width = (*(int(v) for v in row[10:13]), round(255 * row[13])), max(1, round(row[8] * times))
        if row[0] == DISC:
            x, y, r = row[1] * times, row[2] * times, (row[7] + 0.5 * row[8]) * times
            fill = {"outline": color, "width": width} if row[8] else {"fill": color}
            pen.ellipse((x - r, y - r, x + r, y + r), **fill)
        elif row[0] == SEGMENT:
            ends = [(row[1] * times, row[2] * times), (row[3] * times, row[4] * times)]
            pen.line(ends, fill=color, width=max(1, round(2 * row[7] * times)))
        else:
            corners = [(x * times, y * times) for x, y in outline_of(row)]
            if row[8]:
                pen.line([*corners, corners[0]], fill=color, width=width)
            else:
                pen.polygon(corners, fill=color)
    return np.asarray(image.resize((SIZE, SIZE), Image.Resampling.BOX))


def matplotlib(rows: np.ndarray) -> np.ndarray:
    """Paint with matplotlib's Agg."""
    figure = Figure(figsize=(SIZE / 100, SIZE / 100), dpi=100, facecolor=(232 / 255,) * 3)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, SIZE), ylim=(SIZE, 0), aspect="auto")
    axes.axis("off")
    for row in rows:
        color = (*(row[10:13] / 255.0), row[13])
        points = 72 / 100
        if row[0] == SEGMENT:
            width = 2 * row[7] * points
            axes.plot(row[[1, 3]], row[[2, 4]], color=color, lw=width, solid_capstyle="round")
            continue
        fill = {"fill": False, "ec": color, "lw": row[8] * points} if row[8] else {"fc": color, "lw": 0}
        axes.add_patch(Circle(row[1:3], row[7], **fill) if row[0] == DISC else Polygon(outline_of(row), **fill))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3]


def film_of(pictures: list[np.ndarray], path: Path) -> None:
    """Write with blendctl."""
    with open_film(path, fps=25) as film:
        for picture in pictures:
            film.add(picture)


def pillow_gif(pictures: list[np.ndarray], path: Path) -> None:
    """Write with Pillow, which chooses a palette per picture."""
    first, *others = (Image.fromarray(picture) for picture in pictures)
    first.save(path, save_all=True, append_images=others, duration=40, loop=0)


def imageio_film(pictures: list[np.ndarray], path: Path) -> None:
    """Write with imageio."""
    options = {"fps": 25, "quality": 8, "macro_block_size": 2} if path.suffix == ".mp4" else {"duration": 40, "loop": 0}
    imageio.mimsave(path, pictures, **options)  # type: ignore[arg-type]  # takes arrays


def best(function: Callable[[], Any]) -> float:
    """Return the shortest of some rounds, in milliseconds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


@click.command()
@click.option("--world", default="CarButton1", show_default=True)
@click.option("--pictures", "count", default=100, show_default=True)
def main(world: str, count: int) -> None:
    """Print both tables."""
    rows = shapes_of(world)
    fine = ours(rows, times=8).reshape(SIZE, 8, SIZE, 8, 3).mean(axis=(1, 3))
    edges = np.abs(np.diff(fine, axis=0, append=fine[-1:])).max(axis=2) > 4.0
    table = Table("painter", "ms", "error", title=f"{world}, {len(rows)} shapes, {SIZE} x {SIZE}")
    for name, paint in (("blendctl", ours), ("Pillow, 3 x 3 samples", pillow), ("matplotlib Agg", matplotlib)):
        error = np.abs(paint(rows) - fine)[edges].mean()
        table.add_row(name, f"{best(lambda paint=paint: paint(rows)):.1f}", f"{error:.1f}")  # type: ignore[misc]  # default binds now
    Console().print(table)

    env = SingleWorld(world, render_mode="topdown", view={"width": SIZE, "height": SIZE})
    env.reset(seed=3)
    shown: list[np.ndarray] = []
    for step in range(count):
        env.step(np.array([math.sin(step / 9), math.cos(step / 13)]))
        shown.append(env.render())  # type: ignore[arg-type]  # it has a render mode
    table = Table("film writer", "s", "MB", "error", title=f"{count} pictures")
    writers = {"blendctl": film_of, "Pillow, palette per picture": pillow_gif, "imageio": imageio_film}
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".gif", ".mp4"):
            for name, write in writers.items():
                path = Path(folder) / f"film{suffix}"
                if suffix == ".mp4" and write is pillow_gif:
                    continue
                start = time.perf_counter()
                write(shown, path)
                seconds = time.perf_counter() - start
                frames = [np.asarray(frame)[:, :, :3] for frame in imageio.mimread(path, memtest=False)]
                error = np.mean([np.abs(a.astype(int) - b).mean() for a, b in zip(shown, frames, strict=False)])
                size = path.stat().st_size / 1e6
                table.add_row(f"{name} {suffix}", f"{seconds:.2f}", f"{size:.2f}", f"{error:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
