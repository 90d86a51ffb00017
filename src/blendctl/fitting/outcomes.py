"""Return, cost and cost components of whole episodes, joined from the tables of several units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from blendctl.arrays import FloatArray
from blendctl.episodes import SUMS


@dataclass(frozen=True)
class Outcomes:
    """Whole episodes, in order of their seeds."""

    returns: FloatArray  # (episodes,)
    costs: FloatArray  # (episodes,)
    lengths: FloatArray  # (episodes,) control steps
    components: Mapping[str, FloatArray] = field(default_factory=dict)  # "cost_NAME" -> (episodes,)

    @property
    def points(self) -> FloatArray:
        """Return and cost, (episodes, 2)."""
        return np.stack([self.returns, self.costs], axis=1)

    def table(self) -> pa.Table:
        """Return a table with a row per episode."""
        columns = dict(zip(SUMS, (self.returns, self.costs, self.lengths.astype(np.int64)), strict=True))
        return pa.table(columns | dict(self.components))

    @classmethod
    def of(cls, tables: Sequence[pa.Table]) -> Outcomes:
        """Join tables, in order; a missing cost component counts as 0."""
        present = dict.fromkeys(name for table in tables for name in table.column_names)
        names = [*SUMS, *(name for name in present if name.startswith("cost_"))]
        columns = {
            name: np.concatenate(
                [
                    table.column(name).to_numpy() if name in table.column_names else np.zeros(table.num_rows)
                    for table in tables
                ]
            )
            for name in names
        }
        returns, costs, lengths = (columns.pop(name) for name in SUMS)
        return cls(returns, costs, lengths, columns)
