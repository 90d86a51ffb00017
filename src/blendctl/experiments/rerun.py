"""Rerun episodes of the paper's experiment with a record and poses; every step is bit-identical to the first run.

The experiment stores sums, not steps. Every data point has its seeds, and the previous unit holds its initial learner,
so its episodes can be driven again at any time.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blendctl.blender import Recorder, run
from blendctl.controllers.resolve import code_is_trusted, needs_naming
from blendctl.envs import SingleWorld
from blendctl.envs.pose_recorder import PoseRecorder
from blendctl.errors import BlendctlError
from blendctl.experiments.blended import make_blender
from blendctl.experiments.protocol import Settings, plan
from blendctl.experiments.store import decode
from blendctl.experiments.units import Result, Unit
from blendctl.table_parts import list_parts


@dataclass(frozen=True)
class Rerun:
    """Files of the repeated episodes of one data point."""

    seed: int  # of the first episode
    record: list[Path]
    track: list[Path]


def rerun_episodes(
    folder: Path, about: dict[str, Any], *, world: str, data_point: int, episodes: int, into: Path
) -> Rerun | None:
    """Repeat the first episodes of a blended data point of trace 0; None if its units or controllers are missing.

    folder: output of `blendctl reproduce`; about: its run.json; into: directory for the record and the track.
    """
    try:
        # The directory may come from someone else: names in it must not run code here.
        if not code_is_trusted() and any(map(needs_naming, [world, *about["parts"][world]])):
            return None
        unit, before = _unit(folder, about, world, data_point)
        seed = int(unit.parameters["first_seed"])
        blender = make_blender(unit.parameters, before, record=Recorder(into / "record"))
        env = SingleWorld(world, max_episode_steps=unit.parameters["steps"])
        with closing(PoseRecorder(env, into / "track", theta=lambda: blender.bandit.theta)) as recorded, blender:
            count = min(episodes, int(unit.parameters["episodes"]))
            for _ in run(recorded, blender, episodes=count, seed=seed, counterfactual=True):
                pass
    # also catches a run.json that was edited by hand
    except (BlendctlError, OSError, KeyError, TypeError, ValueError):
        return None
    return Rerun(seed, list_parts(into / "record"), list_parts(into / "track"))


def _unit(folder: Path, about: dict[str, Any], world: str, data_point: int) -> tuple[Unit, Result | None]:
    """Find the unit of a data point, and read the result of the unit before it."""
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
