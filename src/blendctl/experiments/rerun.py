"""Drive episodes of the paper's experiment again, to be looked at: the same to the bit, with a record and poses.

The experiment keeps sums, not steps. But every data point has its seeds, and the learner that it began with lies in the
unit before: so its episodes can be driven again whenever someone wants to see them.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blendctl.blender import Recorder, run
from blendctl.blender.recorder import parts_of
from blendctl.envs import SingleWorld
from blendctl.errors import BlendctlError
from blendctl.experiments.blended import make_blender
from blendctl.experiments.protocol import Settings, plan
from blendctl.experiments.store import decode
from blendctl.experiments.units import Result, Unit
from blendctl.reports.pose_recorder import Tracker, track_parts
from blendctl.reports.run_data import Drive, Places, read_drive, read_places

__all__ = ["Rerun", "drive_again"]


@dataclass(frozen=True)
class Rerun:
    """Episodes of one data point, driven again."""

    world: str
    data_point: int  # 0, 1, ...
    seed: int  # of the first episode
    drive: Drive
    places: Places | None


def drive_again(
    folder: Path, about: dict[str, Any], *, world: str, data_point: int, episodes: int, into: Path
) -> Rerun | None:
    """Drive the first episodes of a blended data point of trace 0 again; None if its units or controllers are gone."""
    try:
        unit, before = _unit(folder, about, world, data_point)
        seed = int(unit.parameters["first_seed"])
        blender = make_blender(unit.parameters, before, record=Recorder(into / "record"))
        made = SingleWorld(world, max_episode_steps=unit.parameters["steps"])
        with closing(Tracker(made, into / "track", theta=lambda: blender.bandit.theta)) as seen, blender:
            count = min(episodes, int(unit.parameters["episodes"]))
            for _ in run(seen, blender, episodes=count, seed=seed, counterfactual=True):
                pass
    except (BlendctlError, OSError, KeyError, TypeError, ValueError):  # also a run.json that was edited
        return None
    drive = read_drive(parts_of(into / "record"))
    return None if drive is None else Rerun(world, data_point, seed, drive, read_places(track_parts(into / "track")))


def _unit(folder: Path, about: dict[str, Any], world: str, data_point: int) -> tuple[Unit, Result | None]:
    """Find a data point's unit by what the directory says of itself, and read the unit before it."""
    first, second = about["parts"][world]
    settings = Settings({world: (first, second)}, data_points=data_point + 1, **about["identity"])
    units, places = plan(settings)
    unit = next(
        unit for unit in units if places[unit.key][0].role == "blended" and places[unit.key][0].data_point == data_point
    )
    if unit.after is None:
        return unit, None
    data = (folder / "units" / f"{unit.after.key}.parquet").read_bytes()
    return unit, decode(data, key=unit.after.key)
