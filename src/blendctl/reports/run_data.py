"""Read a run from its record and its track, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import FloatArray
from blendctl.blender.explain import restore_record
from blendctl.blender.recorder import FORMAT, VERSION
from blendctl.envs.pose_recorder import TRACK_FORMAT, TRACK_VERSION
from blendctl.errors import FileFormatError
from blendctl.table_parts import read_part

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class StageTable:
    """Every stage of a run, one row each: n rows, a arms, m objectives."""

    names: list[str]
    objectives: list[str]
    scales: FloatArray  # (m,)
    rule: str
    table: pyarrow.Table  # the record, without rows that a later one replaced
    header: dict[str, Any]
    damaged: list[str]  # names of files that could not be read

    def __len__(self) -> int:
        return len(self.table)

    def column(self, name: str) -> NDArray[Any]:
        """Return one column (n,)."""
        return np.asarray(self.table[name].to_numpy(zero_copy_only=False))

    def floats(self, name: str) -> FloatArray:
        """Return one column (n,) as numbers, NaN for missing values."""
        return np.asarray(self.column(name), dtype=np.float64)

    def by_arm(self, name: str) -> FloatArray:
        """Return a quantity of every controller, (n, a)."""
        return np.stack([self.floats(f"{name}_{arm}") for arm in self.header["columns"]], axis=1)

    def by_arm_and_feature(self, name: str) -> FloatArray:
        """Return a quantity of every controller and feature, (n, a, d)."""
        arms, known = self.header["columns"], set(self.table.column_names)
        size = 0
        while f"{name}_{arms[0]}_{size}" in known:
            size += 1
        return self._grid(name, [str(i) for i in range(size)])

    def by_arm_and_objective(self, name: str) -> FloatArray:
        """Return a quantity of every controller and objective, (n, a, m)."""
        return self._grid(name, self.header["objective_columns"])

    def _grid(self, name: str, words: list[str]) -> FloatArray:
        rows = [[self.floats(f"{name}_{arm}_{word}") for word in words] for arm in self.header["columns"]]
        return np.moveaxis(np.array(rows), 2, 0)

    @property
    def units(self) -> FloatArray:
        """Return the value of one unit of the decisions' numbers, (m,), or (n, 1, m) in a look-ahead run."""
        if not self.header.get("lookahead"):
            return self.scales
        units = np.stack([self.floats(f"unit_{goal}") for goal in self.header["objective_columns"]], axis=1)
        return np.asarray(units * self.scales)[:, None, :]

    @property
    def loss_unit(self) -> FloatArray:
        """Return the value of one unit of a loss in the first objective, () or (n, 1)."""
        return np.asarray(self.units[..., 0])

    def reasons(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the reason of the decision of each given row."""
        part = self.table.take(rows)
        return [
            reason if reason is not None else restore_record(row, self.header).reason
            for row, reason in zip(part.to_pylist(), part["reason"].to_pylist(), strict=True)
        ]


def read_stages(parts: list[Path]) -> StageTable | None:
    """Read the files of a record that can be read; None if there are no files."""
    read, damaged = _read_parts(parts, format_name=FORMAT, version=VERSION)
    for name in [
        name for name, (header, _) in read.items() if header["names"] != next(iter(read.values()))[0]["names"]
    ]:
        del read[name]
        damaged.append(name)
    if not read:
        if parts:
            raise FileFormatError(f"none of the {len(parts)} files of the record in {parts[0].parent} can be read")
        return None
    table, header = _concatenate(read), list(read.values())[-1][0]
    stages = table["stage"].to_numpy()
    # a late row replaces the earlier one of its stage
    _, last = np.unique(stages[::-1], return_index=True)
    return StageTable(
        names=list(header["names"]),
        objectives=list(header["objectives"]),
        scales=np.array(header["scales"], np.float64),
        rule=header["rule"],
        table=table.take(len(stages) - 1 - last),
        header=header,
        damaged=sorted(damaged),
    )


@dataclass(frozen=True)
class PoseTable:
    """Poses of all bodies: one row per step, and one for the initial state of each episode."""

    scenery: dict[str, Any] | None  # None if the world cannot be drawn
    layouts: dict[int, list[list[float]]]  # by episode
    columns: dict[str, NDArray[Any]]  # (rows,)
    damaged: list[str]
    entries: list[str]  # names of the entries of the observation, in the order of their columns


def read_poses(parts: list[Path]) -> PoseTable | None:
    """Read the files of a track that can be read; None if there is none."""
    read, damaged = _read_parts(parts, format_name=TRACK_FORMAT, version=TRACK_VERSION)
    if not read:
        return None
    layouts = {
        episode: header["layout"] for header, table in read.values() for episode in set(table["episode"].to_pylist())
    }
    table = _concatenate(read)
    columns = {name: np.asarray(table[name].to_numpy()) for name in table.column_names}
    last = list(read.values())[-1][0]
    return PoseTable(last["scenery"], layouts, columns, damaged, list(last.get("entries") or ()))


_Parts = dict[str, tuple[dict[str, Any], "pyarrow.Table"]]  # file name -> header, rows


def _read_parts(parts: list[Path], *, format_name: str, version: int) -> tuple[_Parts, list[str]]:
    """Return the readable files of a table, and the names of the others."""
    read: _Parts = {}
    damaged = []
    for part in parts:
        try:
            read[part.name] = read_part(part, format_name=format_name, version=version)
        except FileFormatError:
            damaged.append(part.name)
    return read, damaged


def _concatenate(parts: _Parts) -> pyarrow.Table:
    import pyarrow

    return pyarrow.concat_tables([table for _, table in parts.values()], promote_options="permissive")
