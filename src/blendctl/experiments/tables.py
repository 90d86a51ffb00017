"""Turn finished units into two tidy tables: a row per data point, a row per episode."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from blendctl.arrays import FloatArray
from blendctl.episodes import COLUMNS, episode_columns
from blendctl.experiments.moments import Moments
from blendctl.experiments.protocol import ROLES, Settings, UnitLocation, first_seed
from blendctl.experiments.units import Result
from blendctl.statistics import mean_interval

__all__ = ["Tables", "as_parquet", "EPISODES", "POINTS"]

_WHERE = [("world", pa.string()), ("trace", pa.int64()), ("role", pa.string()), ("data_point", pa.int64())]
_FLOAT, _COUNT, _LIST = pa.float64(), pa.int64(), pa.list_(pa.float64())

EPISODES = pa.schema([*_WHERE, ("episode", _COUNT), ("seed", _COUNT), *COLUMNS.items()])
POINTS = pa.schema(
    [
        *_WHERE,
        *[(name, _COUNT) for name in ("interactions", "episodes")],
        *[(f"{what}_{how}", _FLOAT) for what in ("return", "cost") for how in ("mean", "sd", "low", "high")],
        ("cost_rate", _FLOAT),
        *[(f"correct_ratio{how}", _FLOAT) for how in ("", "_sd", "_low", "_high")],
        ("switches", _COUNT),
        *[(name, _FLOAT) for name in ("share_performant", "pareto_regret", "regret_bound")],
        *[(f"max_loss{how}", _FLOAT) for how in ("", "_bound", "_mean", "_bound_mean", "_expected_mean")],
        *[(name, _LIST) for name in ("theta", "theta_star")],
        *[(name, _FLOAT) for name in ("theta_error", "context_r2_reward", "context_r2_cost")],
        *[(name, _COUNT) for name in ("rescaled", "events")],
    ]
)


class Tables:
    """The finished units, in the order of worlds, traces, roles and data points."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        # One entry per unit holds result and episodes, so that an interrupt cannot separate them.
        self._units: dict[UnitLocation, tuple[Result, pa.Table]] = {}

    def add(self, places: Iterable[UnitLocation], result: Result) -> None:
        """Add a unit's result."""
        assert result.table is not None
        for place in places:
            first = first_seed(self.settings.seed, place.trace, place.data_point)
            rows = [
                place._asdict() | {"episode": number, "seed": first + number} | episode_columns(sums)
                for number, sums in enumerate(result.table.to_pylist())
            ]
            self._units[place] = result, pa.Table.from_pylist(rows, schema=EPISODES)

    def _sorted(self) -> list[tuple[UnitLocation, Result, pa.Table]]:
        def order(place: UnitLocation) -> tuple[int, int, int, int]:
            return worlds.index(place.world), place.trace, ROLES.index(place.role), place.data_point

        worlds = list(self.settings.worlds)
        return [(place, *self._units[place]) for place in sorted(self._units, key=order)]

    def episodes(self) -> pa.Table:
        """Return a row per episode."""
        return pa.concat_tables([EPISODES.empty_table(), *(episodes for _, _, episodes in self._sorted())])

    def points(self) -> pa.Table:
        """Return a row per data point; sums over a trace run over its data points so far."""
        rows: list[dict[str, Any]] = []
        trace: _Trace | None = None
        stars = self._stars()
        for place, result, _ in self._sorted():
            if trace is None or trace.place != place[:3]:
                trace = _Trace(place[:3], stars.get((place.world, place.trace)))
            rows.append(place._asdict() | trace.point(place.data_point, result))
        return pa.Table.from_pylist(rows, schema=POINTS)

    def _stars(self) -> dict[tuple[str, int], FloatArray]:
        """Return theta* (m, d) of every trace: the ridge regression over all of its data points so far."""
        sums: dict[tuple[str, int], tuple[Moments, float]] = {}
        for place, result, _ in self._sorted():
            if "moments" in result.values:
                moments = Moments.from_plain(result.values["moments"])
                start = Moments(*moments.psi_y.shape), float(result.values["regularization"])
                sums.setdefault((place.world, place.trace), start)[0].join(moments)
        return {key: moments.fit(weight) for key, (moments, weight) in sums.items()}


class _Trace:
    """The running sums of one role along one trace."""

    def __init__(self, place: tuple[str, int, str], star: FloatArray | None) -> None:
        self.place, self.star = place, star
        self.points = self.steps = self.judged = self.decided = self.expected_stages = 0
        self.cost = self.gap = self.loss = self.bound = self.expected = 0.0

    def point(self, number: int, result: Result) -> dict[str, Any]:
        assert result.table is not None
        columns = {name: result.table[name].to_numpy() for name in result.table.column_names}
        self.points += 1
        self.steps += int(columns["length"].sum())
        self.cost += float(columns["cost"].sum())
        # Skipped data points of a role count too: all roles share one axis.
        whole = (number + 1) / self.points
        row: dict[str, Any] = {
            "interactions": round(self.steps * whole),
            "episodes": len(columns["return"]),
            "cost_rate": self.cost / self.steps,
        }
        row |= _spread("return", columns["return"]) | _spread("cost", columns["cost"])
        if "judged" in columns:
            row |= self._judged(columns, whole)
        if "decided" in columns:
            self.bound += float(columns["bound"].sum())
            self.decided += int(columns["decided"].sum())
            row |= {
                "max_loss_bound": self.bound * whole,
                "max_loss_bound_mean": self.bound / self.decided if self.decided else None,
                "share_performant": float(columns["driven_0"].sum() / columns["length"].sum()),
            }
            row |= self._learner(result.values)
        return row

    def _judged(self, columns: dict[str, FloatArray], whole: float) -> dict[str, Any]:
        self.judged += int(columns["judged"].sum())
        self.gap += float(columns["gap"].sum())
        self.loss += float(columns["loss"].sum())
        ratios = _spread("correct_ratio", columns["correct"] / np.maximum(columns["judged"], 1))
        ratios["correct_ratio"] = ratios.pop("correct_ratio_mean")
        return ratios | {
            "switches": int(columns["switches"].sum()),
            "pareto_regret": self.gap * whole,
            "max_loss": self.loss * whole,
            "max_loss_mean": self.loss / self.judged if self.judged else None,
        }

    def _learner(self, values: dict[str, Any]) -> dict[str, Any]:
        theta = np.array(values["theta"])
        reward, cost = Moments.from_plain(values["moments"]).explained()
        assert self.star is not None  # this data point is part of it
        self.expected += values["expected_loss"]["sum"]
        self.expected_stages += values["expected_loss"]["stages"]
        return {
            "max_loss_expected_mean": self.expected / self.expected_stages if self.expected_stages else None,
            "regret_bound": values["regret_bound"],
            "theta": theta.reshape(-1).tolist(),
            "theta_star": self.star.reshape(-1).tolist(),
            "theta_error": float(np.linalg.norm(theta - self.star)),
            "context_r2_reward": reward,
            "context_r2_cost": cost,
            "rescaled": values["rescaled"],
            "events": values["events"],
        }


def _spread(name: str, sample: FloatArray) -> dict[str, float | None]:
    """Return mean, standard deviation and 95% interval of the mean of a data point's episodes."""
    low, high = mean_interval(sample) or (None, None)
    deviation = float(sample.std(ddof=1)) if len(sample) > 1 else None
    return {f"{name}_mean": float(sample.mean()), f"{name}_sd": deviation, f"{name}_low": low, f"{name}_high": high}


def as_parquet(table: pa.Table) -> bytes:
    """Return a table as the content of a Parquet file."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()
