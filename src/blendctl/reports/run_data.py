"""Read a drive back from its record and its track, as arrays."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blendctl.blender.explain import record_tables, restore_record
from blendctl.errors import FileFormatError
from blendctl.reports.pose_recorder import TRACK_FORMAT, TRACK_VERSION

__all__ = ["Drive", "Places", "read_drive", "read_places"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Drive:
    """Every stage of a drive, a row each; n rows, a arms, m objectives."""

    names: list[str]
    objectives: list[str]
    scales: FloatArray  # (m,)
    rule: str
    table: Any  # pyarrow's, the whole record without rows that a late one replaced
    header: dict[str, Any]
    damaged: list[str]  # names of files that could not be read

    def __len__(self) -> int:
        return len(self.table)

    def column(self, name: str) -> NDArray[Any]:
        """Give one column (n,)."""
        return np.asarray(self.table[name].to_numpy(zero_copy_only=False))

    def floats(self, name: str) -> FloatArray:
        """Give one column (n,) as numbers, NaN where there is nothing."""
        return np.asarray(self.column(name), dtype=np.float64)

    def by_arm(self, name: str) -> FloatArray:
        """Give (n, a) of a quantity that every controller has."""
        return np.stack([self.floats(f"{name}_{arm}") for arm in self.header["columns"]], axis=1)

    def by_arm_and_feature(self, name: str) -> FloatArray:
        """Give (n, a, d)."""
        arms, known = self.header["columns"], set(self.table.column_names)
        size = 0
        while f"{name}_{arms[0]}_{size}" in known:
            size += 1
        rows = [[self.floats(f"{name}_{arm}_{i}") for i in range(size)] for arm in arms]
        return np.moveaxis(np.array(rows), 2, 0)

    def by_arm_and_objective(self, name: str) -> FloatArray:
        """Give (n, a, m)."""
        goals = self.header["objective_columns"]
        rows = [[self.floats(f"{name}_{arm}_{goal}") for goal in goals] for arm in self.header["columns"]]
        return np.moveaxis(np.array(rows), 2, 0)

    def reasons(self, rows: NDArray[np.int64]) -> list[str]:
        """Say for some rows why their controller drove."""
        part = self.table.take(rows)
        told = part["reason"].to_pylist()
        return [
            reason if reason is not None else restore_record(row, self.header).reason
            for row, reason in zip(part.to_pylist(), told, strict=True)
        ]


def read_drive(parts: list[Path]) -> Drive | None:
    """Read a record, as much of it as can be read; None if that is nothing."""
    import pyarrow

    tables, damaged = [], []
    header: dict[str, Any] = {}
    for part in parts:
        try:
            ((found, table),) = record_tables([part])
        except FileFormatError:
            damaged.append(part.name)
            continue
        if header and found["names"] != header["names"]:
            damaged.append(part.name)
            continue
        header = found
        tables.append(table)
    if not tables:
        if parts:
            raise FileFormatError(f"none of the {len(parts)} files of the record in {parts[0].parent} can be read")
        return None
    table = pyarrow.concat_tables(tables, promote_options="permissive")
    stages = table["stage"].to_numpy()
    _, last = np.unique(stages[::-1], return_index=True)  # a late row replaces the one before
    return Drive(
        names=list(header["names"]),
        objectives=list(header["objectives"]),
        scales=np.array(header["scales"], np.float64),
        rule=header["rule"],
        table=table.take(len(stages) - 1 - last),
        header=header,
        damaged=damaged,
    )


@dataclass(frozen=True)
class Places:
    """Where everything was, a row per step and one for how each episode began."""

    scenery: dict[str, Any] | None  # None in a world that cannot be drawn
    layouts: dict[int, list[list[float]]]  # by episode
    columns: dict[str, NDArray[Any]]  # (rows,)
    damaged: list[str]


def read_places(parts: list[Path]) -> Places | None:
    """Read a track, as much of it as can be read."""
    import pyarrow
    import pyarrow.parquet

    tables, damaged = [], []
    scenery: dict[str, Any] | None = None
    layouts: dict[int, list[list[float]]] = {}
    for part in parts:
        try:
            table = pyarrow.parquet.read_table(part)
            header = json.loads((table.schema.metadata or {})[TRACK_FORMAT.encode()])
            if header["version"] != TRACK_VERSION:
                raise ValueError(f"version {header['version']}")
        except (pyarrow.ArrowInvalid, OSError, KeyError, ValueError):
            damaged.append(part.name)
            continue
        scenery = header["scenery"]
        for episode in set(table["episode"].to_pylist()):
            layouts[episode] = header["layout"]
        tables.append(table)
    if not tables:
        return None
    table = pyarrow.concat_tables(tables, promote_options="permissive")
    columns = {name: np.asarray(table[name].to_numpy()) for name in table.column_names}
    return Places(scenery, layouts, columns, damaged)
