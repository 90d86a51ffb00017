"""Film a look-ahead blend with a cost budget for the README: `python docs/film.py` writes docs/pictures/blend.gif.

PointGoal1 from above; the colour of the path is the controller that drove, and a ring marks every step with a cost.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import gymnasium
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from blendctl import Blender
from blendctl.controllers import open_controller
from blendctl.controllers.zoo import LOOKAHEAD_SETS
from blendctl.envs.film import open_film
from blendctl.envs.topdown import MARGIN

TARGET = Path(__file__).parent / "pictures" / "blend.gif"
SIZE, STRIP = 360, 46  # pixels
COLORS = dict(
    zip(
        (name.rpartition("/")[2] for name in LOOKAHEAD_SETS["PointGoal1"]),
        ((170, 51, 119), (213, 94, 0), (0, 158, 115), (0, 114, 178)),
        strict=True,
    )
)
STEPS, EVERY, TRAIL, SEED = 420, 5, 200, 3
BUDGET = 25.0  # cost per episode


def film(target: Path, *, steps: int = STEPS, seed: int = SEED) -> None:
    """Drive and film `steps` steps."""
    env = gymnasium.make(
        "blendctl/PointGoal1-v0", render_mode="topdown", view={"width": SIZE, "height": SIZE, "lidar": False}
    )
    world = env.unwrapped
    scale = 0.5 * SIZE / (world.task.extents + MARGIN)  # pixels per metre while the robot is in the square
    names = list(COLORS)
    blender = Blender(
        [open_controller(name, world="PointGoal1") for name in LOOKAHEAD_SETS["PointGoal1"]],
        names,
        features="lookahead",
        cost_budget=BUDGET,
        fallback=names[-1],
        seed=seed,
    )
    path: list[tuple[tuple[float, float], str, bool]] = []
    total = cost = 0.0
    observation, _ = env.reset(seed=seed)
    with open_film(target, fps=50 / EVERY) as made:
        for step in range(steps):
            action = blender.act(observation)
            observation, reward, _, _, info = env.step(action)
            blender.observe(float(reward), float(info["cost"]))
            total, cost = total + float(reward), cost + float(info["cost"])
            scene = world.scene()
            place = (SIZE / 2 + scale * scene.x, SIZE / 2 - scale * scene.y)
            path.append((place, blender.last.name, bool(info["cost"])))
            if step % EVERY == 0:
                made.add(_frame(env.render(), path, total=total, cost=cost))
    env.close()


def _frame(picture, path, *, total: float, cost: float):
    """Draw the path over a picture and a caption below it."""
    image = Image.new("RGB", (SIZE, SIZE + STRIP), (255, 255, 255))
    image.paste(Image.fromarray(picture))
    pen = ImageDraw.Draw(image)
    for (start, _, _), (end, name, hurt) in pairwise(path[-TRAIL:]):
        pen.line([start, end], fill=COLORS[name], width=3)
        if hurt:
            x, y = end
            pen.ellipse([x - 4, y - 4, x + 4, y + 4], outline=(160, 0, 0), width=1)
    font, driver = ImageFont.load_default(15), path[-1][1]
    for place, name in enumerate(COLORS):
        x, y = 10 + 70 * (place // 2), SIZE + 13 + 20 * (place % 2)
        pen.ellipse([x, y - 5, x + 10, y + 5], fill=COLORS[name] if name == driver else (215, 215, 215))
        pen.text((x + 18, y), name, fill=(34, 40, 49) if name == driver else (150, 150, 150), font=font, anchor="lm")
    pen.text((SIZE - 10, SIZE + 13), f"return {total:5.2f}", fill=(34, 40, 49), font=font, anchor="rm")
    pen.text((SIZE - 10, SIZE + 33), f"cost {cost:.0f} of {BUDGET:.0f}", fill=(34, 40, 49), font=font, anchor="rm")
    return np.asarray(image)


if __name__ == "__main__":
    film(TARGET)
    print(f"wrote {TARGET}, {TARGET.stat().st_size / 1e6:.2f} MB")
