"""Read recordings of the reference: steps with the states before and after them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blendctl.envs.catalog import NAMES
from blendctl.errors import FileFormatError, InputError, did_you_mean
from blendctl.file_reading import read_json_object, read_npz, reading

__all__ = ["Recording", "find_recordings", "load_recording"]

MOST_STEPS = 20_000  # every step becomes a world of some kilobytes

# bits of step_pairs_*: contacts whose routines differ between MuJoCo versions
_HARD_PAIRS = 4 | 8 | 16 | 32  # sphere-cylinder, cylinder-box, cylinder-cylinder, box-box

ARRAYS = [
    "row_qpos", "row_qvel", "row_qacc_warmstart", "row_time", "row_goal_pos", "row_obs", "row_last_dist_goal",
    "row_ep_step", "step_row", "step_episode", "step_action", "step_reward", "step_cost", "step_cost_components",
    "step_goal_met", "step_pairs_agent", "step_pairs_other", "goal_met_step", "goal_met_rng_key", "goal_met_rng_pos",
    "ep_seed", "ep_layout_xy", "ep_layout_rot", "ep_body_pos",
]  # fmt: skip


@dataclass(frozen=True)
class Recording:
    """The recorded steps of one world; array names are those of the recording's own description."""

    name: str  # of the world here, as PointGoal1
    arrays: dict[str, NDArray[Any]]
    bodies: tuple[str, ...]
    layout_names: tuple[str, ...]  # (items,) robot first
    cost_names: tuple[str, ...]  # columns of step_cost_components, without prefix, cost_sum excepted

    def __getitem__(self, array: str) -> NDArray[Any]:
        return self.arrays[array]

    @property
    def steps(self) -> int:
        """How many steps were recorded."""
        return int(self["step_row"].shape[0])

    @property
    def before(self) -> NDArray[np.int64]:
        """Row of the state before each step, (steps,)."""
        return self["step_row"].astype(np.int64)

    @property
    def strict(self) -> NDArray[np.bool_]:
        """Steps (steps,) whose physics every MuJoCo version must reproduce closely.

        Excluded are the first step of an episode, in which a rounding error decides which contacts are active, and
        steps with pairs of bodies whose collision routine has changed.
        """
        pairs = self["step_pairs_agent"] | self["step_pairs_other"]
        strict: NDArray[np.bool_] = ((pairs & _HARD_PAIRS) == 0) & (self["row_ep_step"][self.before] > 0)
        return strict

    def body_at_reset(self, body: str) -> NDArray[np.float64]:
        """Return the positions (episodes, 3) of a body after each episode's reset."""
        position: NDArray[np.float64] = self["ep_body_pos"][:, self.bodies.index(body)]
        return position


def find_recordings(folder: Path) -> list[Path]:
    """List a folder's recordings, `Safety<world>-v0.npz` each, in the order of the worlds."""
    if not folder.is_dir():
        raise InputError(f"expected a folder with recordings, actually: {folder}")
    paths = [folder / f"Safety{name}-v0.npz" for name in NAMES]
    existing = [path for path in paths if path.exists()]
    if not existing:
        raise InputError(f"{folder} has no recording; expected files such as {paths[0].name}")
    return existing


def load_recording(path: Path) -> Recording:
    """Read an .npz recording and the .json beside it."""
    name = path.stem.removeprefix("Safety").removesuffix("-v0")
    if name not in NAMES:
        raise InputError(f'{path.name}: there is no world "{name}"; {did_you_mean(name, NAMES)}')
    with reading(path, "a recording"):
        arrays = read_npz(path)
        meta = read_json_object(path.with_suffix(".json"))
        missing = sorted(set(ARRAYS) - set(arrays))
        if missing:
            raise FileFormatError(f"{path.name} is not a recording: {', '.join(missing)} missing")
        for key, array in arrays.items():
            if array.dtype.kind not in "fiubU":
                raise ValueError(f"{key} holds {array.dtype}, neither numbers nor names")
        if not 0 < len(arrays["step_row"]) <= MOST_STEPS or not 0 < len(arrays["ep_seed"]) <= MOST_STEPS:
            raise ValueError(f"it has {len(arrays['step_row'])} steps; allowed: 1 to {MOST_STEPS}")
        return Recording(
            name=name,
            arrays=arrays,
            bodies=tuple(meta["bodies"]),
            layout_names=tuple(meta["layout_names"]),
            cost_names=tuple(key.removeprefix("cost_") for key in meta["cost_components"] if key != "cost_sum"),
        )
