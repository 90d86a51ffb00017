"""Record small pictures of an environment while it is driven, for the replay on a page.

An episode is a ZIP file of WebP pictures, named by their control step: episode-000000.zip holds 000000.webp and so on.
A file is written when its episode is over, atomically.
"""

from __future__ import annotations

import io
import math
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from PIL import Image

from blendctl.atomic import write_atomically
from blendctl.envs.lockstep import episode_limit
from blendctl.errors import InputError
from blendctl.user_errors import describe_error

FRAMES = 200  # of an episode
FEWEST = 25  # of an episode, even if drawing is slow
PATIENCE = 15.0  # s, approximate time for all pictures of a run; it determines the number per episode
EPISODES = 10  # the costliest ones are kept; a page replays no more
WIDEST = 480  # pixels
LARGEST = 320 * 320  # pixels in total
QUALITY = 60  # of WebP
USUAL_STEPS = 1000  # of an episode without a limit


def list_frames(path: Path) -> list[Path]:
    """Return the files of recorded pictures in a directory, one per episode."""
    return sorted(path.glob("episode-*.zip"))


def open_drawn(
    make: Callable[..., gymnasium.Env[Any, Any]],
) -> tuple[gymnasium.Env[Any, Any], str | None]:
    """Make an environment that draws pictures if possible; also return the reason if it does not, else None."""
    env = make()
    if env.render_mode == "rgb_array":
        return env, None
    if "rgb_array" not in (env.metadata.get("render_modes") or ()):
        return env, 'the environment does not list "rgb_array" in metadata["render_modes"]'
    try:
        drawn = make(render_mode="rgb_array")
    except InputError as error:  # an argument or OpenGL is missing
        return env, str(error)
    env.close()
    return drawn, None if drawn.render_mode == "rgb_array" else 'its render_mode is not "rgb_array" when it is asked to'


class FrameRecorder(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Environment wrapper that keeps pictures of some steps of every episode, including the first and the last.

    path: directory of the pictures; older ones are removed. episodes: how many will be driven. frames: pictures per
    episode; None: 200, fewer if drawing is slow. A picture that cannot be drawn ends the recording, not the drive:
    `problem` says why.
    """

    only_watches = True  # observations, rewards and infos pass through unchanged

    def __init__(self, env: gymnasium.Env[Any, Any], path: Path, *, episodes: int, frames: int | None = None) -> None:
        super().__init__(env)
        self.path, self.frames, self.problem = path, frames, None if env.render_mode == "rgb_array" else "no pictures"
        self.taken = 0  # pictures
        self._episodes = episodes
        self._steps = episode_limit(env) or USUAL_STEPS
        self._every = 1  # control steps between two pictures
        self._episode, self._step, self._cost = -1, 0, 0.0
        self._pictures: dict[int, bytes] = {}  # of the present episode, by step
        self._kept: dict[int, float] = {}  # episode -> cost
        for file in list_frames(path):
            file.unlink()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Start an episode, and draw its initial state."""
        self._finish()
        result = self.env.reset(seed=seed, options=options)
        self._episode, self._step, self._cost = self._episode + 1, 0, 0.0
        if self.frames is None:
            self.frames = self._affordable()
        self._every = math.ceil(self._steps / max(self.frames - 1, 1))
        self._draw()
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment, and draw it at intervals."""
        result = self.env.step(action)
        self._step += 1
        self._cost += float(result[4].get("cost", 0.0))
        if self._step % self._every == 0 or result[2] or result[3]:
            self._draw()
        return result

    def close(self) -> None:
        """Write the pictures of the last episode, and close the environment."""
        self._finish()
        super().close()

    def _affordable(self) -> int:
        """Return how many pictures per episode take `PATIENCE` in total; the first one opens a window and is slow."""
        self._draw()
        started = time.perf_counter()
        self._draw()
        seconds = time.perf_counter() - started
        most = FRAMES * EPISODES // max(self._episodes, EPISODES)
        return max(FEWEST, min(most, int(PATIENCE / (self._episodes * max(seconds, 1e-6)))))

    def _draw(self) -> None:
        if self.problem is not None:
            return
        try:
            self._pictures[self._step] = encode_picture(self.env.render())
        except Exception as error:  # the user's environment may raise anything
            self.problem = f"a picture could not be drawn: {describe_error(error)}"
            return
        assert self.frames is None or self.frames > 0
        if self.frames is not None and len(self._pictures) > 2 * self.frames:  # the episode is longer than usual
            self._every *= 2
            self._pictures = {step: one for step, one in self._pictures.items() if step % self._every == 0}

    def _finish(self) -> None:
        """Write the pictures of an episode; of more than `EPISODES` the cheapest are removed."""
        if not self._pictures:
            return
        pictures, self._pictures = self._pictures, {}
        self.taken += len(pictures)
        write_atomically(self._file(self._episode), pack_pictures(pictures))
        self._kept[self._episode] = self._cost
        if len(self._kept) > EPISODES:
            cheapest = min(self._kept, key=lambda episode: (self._kept[episode], episode))
            del self._kept[cheapest]
            self._file(cheapest).unlink(missing_ok=True)

    def _file(self, episode: int) -> Path:
        return self.path / f"episode-{episode:06d}.zip"


def encode_picture(picture: Any) -> bytes:
    """Return a picture (height, width, 3) as WebP, scaled down for a page."""
    pixels = np.asarray(picture)
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8 or not pixels.size:
        raise InputError(
            f"render() must return bytes (height, width, 3), actually: {type(picture).__name__} of shape "
            f"{pixels.shape} and type {pixels.dtype}"
        )
    height, width = pixels.shape[:2]
    scale = min(1.0, WIDEST / width, math.sqrt(LARGEST / (width * height)))
    image = Image.fromarray(pixels)
    if scale < 1.0:
        image = image.resize((max(1, round(scale * width)), max(1, round(scale * height))), reducing_gap=2.0)
    out = io.BytesIO()
    image.save(out, "WEBP", quality=QUALITY)
    return out.getvalue()


def pack_pictures(pictures: dict[int, bytes]) -> bytes:
    """Return pictures by control step as a ZIP file; equal pictures are equal bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as file:
        for step, picture in sorted(pictures.items()):
            file.writestr(zipfile.ZipInfo(f"{step:06d}.webp"), picture)
    return out.getvalue()
