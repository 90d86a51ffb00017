"""Write a caption under a picture: controller, step, return, cost, and a legend of the colours."""

from __future__ import annotations

from functools import cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from blendctl.envs.drawing import Drawing, Picture, develop
from blendctl.envs.glyphs import INK, Color
from blendctl.envs.palette import kind_colors
from blendctl.envs.tasks import Task

PAPER: Color = (255, 255, 255)
FAINT: Color = (110, 116, 125)
ALARM: Color = (192, 64, 0)
HAPPY: Color = (0, 128, 92)


class Caption:
    """Put a strip under pictures, with a title on its left, and a legend if they show a task of blendctl."""

    def __init__(self, task: Task | None, title: str) -> None:
        self._title = title
        self._legend = {} if task is None else {"robot": task.robot_spec.color, **kind_colors(task)}
        self._blank: Image.Image | None = None

    def under(
        self, picture: Picture, *, step: int, total: float, cost: float, hurts: bool = False, meets: bool = False
    ) -> Picture:
        """Return the picture with its strip: the cost is red if the step costs, the return green if it meets a goal."""
        width = picture.shape[1]
        if self._blank is None or self._blank.width != width:
            self._blank = self._strip(width)
        strip = self._blank.copy()
        pen = ImageDraw.Draw(strip)
        size = _text_size(width)
        right = width - size
        for text, color in (
            (f"cost {cost:.0f}", ALARM if hurts else INK),
            (f"return {total:.2f}", HAPPY if meets else INK),
            (f"step {step}", INK),
        ):
            pen.text((right, round(1.1 * size)), text, fill=color, font=_font(size), anchor="rm")
            # right-aligned numbers, so that nothing moves
            right -= round(size * (4.6 if text.startswith("cost") else 6.4))
        return np.concatenate([picture, np.asarray(strip)])

    def _strip(self, width: int) -> Image.Image:
        """Draw the constant part: title and legend."""
        size = _text_size(width)

        def middle(row: int) -> float:
            return 2.1 * size + 1.5 * size * (row + 0.5)

        small, space = _font(round(0.85 * size)), 0.8 * size
        rows: list[list[tuple[float, str, Color]]] = [[]]  # where each label of the legend begins
        left = float(size)
        for name, color in self._legend.items():
            label = name.replace("_", " ")
            wide = 1.1 * size + small.getlength(label) + space
            if left + wide > width and rows[-1]:
                rows.append([])
                left = float(size)
            rows[-1].append((left, label, color))
            left += wide
        height = round(2.1 * size + 1.5 * size * len(rows) + 0.5 * size)
        height += height % 2
        dots = Drawing(center=(0.5 * width, 0.5 * height), scale=1.0, width=width, height=height)
        for n, row in enumerate(rows):
            for left, _, color in row:
                dots.disc((left + 0.4 * size, height - middle(n)), 0.38 * size, color=color)
        canvas = np.full((height, width, 3), PAPER, np.float32)
        dots.paint(canvas)
        strip = Image.fromarray(develop(canvas))
        pen = ImageDraw.Draw(strip)
        pen.text((size, round(1.1 * size)), self._title, fill=INK, font=_font(size), anchor="lm")
        for n, row in enumerate(rows):
            for left, label, _ in row:
                pen.text((left + 1.1 * size, middle(n)), label, fill=FAINT, font=small, anchor="lm")
        return strip


def _text_size(width: int) -> int:
    return max(8, round(width / 34))


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size)
    assert isinstance(font, ImageFont.FreeTypeFont)
    return font
