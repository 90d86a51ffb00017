"""A saved blend as a controller that can be served: it decides without learning, because it gets no feedback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from blendctl.blender.blend_dir import BLEND_FILES
from blendctl.blender.core import Blender


def is_blend_dir(name: str) -> bool:
    """Return whether a name is the directory of a blend."""
    folder = Path(name)
    return (folder / "run.json").is_file() and any((folder / file).is_file() for file in BLEND_FILES)


class ServedBlend:
    """Act as the blend of a directory does."""

    def __init__(self, directory: str | Path, **changes: Any) -> None:
        self.blender = Blender.load(directory, **{"frozen": True} | changes)
        self.name = f"blend of {', '.join(self.blender.names)}"
        sizes = [getattr(one, "observation_size", None) for one in self.blender.controllers]
        self.observation_size = next((size for size in sizes if isinstance(size, int)), None)
        shape = self.blender.drivers.shape
        self.action_size = shape[0] if shape is not None and len(shape) == 1 else None

    def act(self, observation: Any, rng: np.random.Generator | None = None) -> Any:
        """Return the action of the controller that drives."""
        return self.blender.act(observation)

    def reset(self) -> None:
        """End the episode."""
        self.blender.end_episode()
