"""The record on disk: every stage as a row, streamed to Parquet in groups.

A record is a directory of Parquet files, two per group, which pandas, polars, duckdb and pyarrow read as one table. A
file is written atomically. A thread writes one half of a group while the other fills; no more is in memory, so a crash
loses at most the last group. A stage with late feedback has a second row, with `late` true, which replaces the first.
The numbers of decisions are in scaled units.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blendctl._version import __version__
from blendctl.arrays import FloatArray
from blendctl.bandit import DecisionBatch
from blendctl.blender.record import Record
from blendctl.directory_lock import DirectoryLock
from blendctl.errors import InputError, StateError
from blendctl.table_parts import list_parts, write_part

FORMAT = "blendctl-record"
VERSION = 1
TEXTS = ("name", "cause", "reason", "event")


class Recorder:
    """Write records to a directory; at most the last `group` stages are not on disk yet.

    Stages that await counterfactual feedback are not counted. The directory must be new, empty, or hold nothing but an
    older record, which `overwrite` removes; it is locked until `close`. An error while writing does not stop the drive:
    `close` raises it. If the disk is too slow, the recorder waits for it; with patient=False, as on a robot, it drops
    groups, and `close` raises an error with the number of lost stages.
    """

    def __init__(self, path: str | Path, *, group: int = 1000, overwrite: bool = False, patient: bool = True) -> None:
        if isinstance(group, bool) or group < 1:
            raise InputError(f"group must be a whole number >= 1, actually: {group!r}")
        self.path = Path(path)
        self._lock = DirectoryLock(self.path)
        old = list_parts(self.path)
        if old and not overwrite:
            raise InputError(f"{self.path} holds a record already; choose another directory or overwrite it")
        for part in old:
            part.unlink()
        self.group = group
        self._half = max(group // 2, 1)  # stages per file
        self.patient = patient
        self.lost = 0  # stages dropped because the disk was too slow
        self.rows = 0  # records added so far
        self.error: Exception | None = None
        self._open: list[Record | Callable[[], Record]] = []
        self._full: queue.Queue[list[Record | Callable[[], Record]] | None] = queue.Queue(maxsize=2)
        self._parts = 0
        self._writer: threading.Thread | None = None

    def append(self, record: Record | Callable[[], Record]) -> None:
        """Add a record, or a function that makes it in the writer's thread, which saves time in the control loop."""
        self.rows += 1
        self._open.append(record)
        if len(self._open) >= self._half:
            self.flush()

    def flush(self) -> None:
        """Send the open records to the writer, as one file."""
        if not self._open or self.error is not None:
            self._open = []
            return
        if self._writer is None:
            self._writer = threading.Thread(target=self._work, name="blendctl-recorder", daemon=True)
            self._writer.start()
        full, self._open = self._open, []
        if self.patient:
            self._full.join()  # until the previous half is on disk
        try:
            self._full.put_nowait(full)
        except queue.Full:
            self.lost += len(full)

    def _work(self) -> None:
        while True:
            group = self._full.get()
            try:
                if group is None:
                    return
                if self.error is None:
                    self._write([record if isinstance(record, Record) else record() for record in group])
            except Exception as error:
                self.error = error
            finally:
                self._full.task_done()

    def _write(self, group: list[Record]) -> None:
        import pyarrow

        columns = columns_of(group)
        types = dict.fromkeys(("correct", "latched"), pyarrow.bool_()) | dict.fromkeys(TEXTS, pyarrow.string())
        arrays = {
            name: pyarrow.array(values, type=types.get(name), from_pandas=True) for name, values in columns.items()
        }
        self._parts += 1
        write_part(self.path, self._parts, pyarrow.table(arrays), format_name=FORMAT, header=_header(group[0]))

    def close(self) -> None:
        """Write the last group and wait for it; raise the error of an earlier write."""
        self.flush()
        if self._writer is not None:
            self._full.put(None)
            self._writer.join()
            self._writer = None
        self._lock.close()
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        if self.lost:
            lost, self.lost = self.lost, 0
            raise StateError(f"the disk could not keep up: {lost} stages are missing from {self.path}")


def as_recorder(record: str | Path | Recorder | None) -> Recorder | None:
    """Return the declared recorder, or make one for a directory."""
    if isinstance(record, str | Path):
        return Recorder(record)
    if record is not None and not isinstance(record, Recorder):
        raise InputError(f"record must be a directory or a Recorder, actually: {record!r}")
    return record


def columns_of(group: list[Record]) -> dict[str, Any]:
    """Convert records to typed columns, NaN or None where a value is missing."""
    info = group[0].run_info
    arms, goals = _words(info.names), info.objectives.columns()
    out: dict[str, Any] = {
        "stage": np.array([r.stage for r in group], np.int64),
        "step": np.array([r.step for r in group], np.int64),
        "steps": np.array([r.steps for r in group], np.int32),
        "episode": np.array([r.episode for r in group], np.int32),
        "arm": np.array([r.arm for r in group], np.int32),
        "name": [r.name for r in group],
        "picked": np.array([r.picked for r in group], np.int32),
        "previous": np.array([r.previous for r in group], np.int32),
        "switched": np.array([r.switched for r in group]),
        "cause": [r.cause for r in group],
        "reason": [r.reason if r.switched or r.cause != "rule" else None for r in group],
        "event": [r.event for r in group],
        "reward": np.array([r.reward for r in group]),
        "cost": np.array([r.cost for r in group]),
        "learned": np.array([r.learned for r in group]),
        "late": np.array([r.late for r in group]),
        "ended": np.array([r.ended for r in group]),
        "correct": [r.correct for r in group],
    }
    decisions = DecisionBatch.stack([(r.decision, r.asked) for r in group], len(arms), len(goals))
    out["loss_bound"] = np.where(out["arm"] < 0, np.nan, decisions.loss_bounds[np.arange(len(group)), out["arm"]])
    out["radius"] = decisions.radius
    _spread(out, "feedback", _rows([r.feedback for r in group], (len(goals),)), [goals])
    _spread(out, "psi", _rows([r.features for r in group], (len(arms), info.features)), [arms, None])
    _spread(out, "width", decisions.width, [arms])
    _spread(out, "loss", decisions.loss, [arms])
    _spread(out, "candidate", decisions.candidate, [arms])
    _spread(out, "estimate", decisions.estimate, [arms, goals])
    _spread(out, "ucb", decisions.ucb, [arms, goals])
    _spread(out, "action", _rows([r.action for r in group], None), [None])
    for arm, name in enumerate(arms):
        _spread(out, f"action_{name}", _rows([r.proposals[arm] for r in group], group[0].action.shape), [None])
    if info.lookahead is not None:
        _add_foresight(out, group, arms, goals)
    _spread(out, "truth", _rows([r.truth for r in group], (len(arms), len(goals))), [arms, goals])
    return out


def _add_foresight(out: dict[str, Any], group: list[Record], arms: list[str], goals: list[str]) -> None:
    """Add the predictions of a look-ahead feature, in the objectives' own units, and the dial."""
    known = [r.foresight for r in group]
    out["cost_weight"] = np.array([np.nan if f is None else f.weight for f in known])
    out["spent"] = np.array([np.nan if f is None else f.spent for f in known])
    out["latched"] = [None if f is None else f.latched for f in known]
    _spread(out, "unit", _rows([None if f is None else f.units for f in known], (len(goals),)), [goals])
    shape = (len(arms), len(goals))
    _spread(out, "foreseen", _rows([None if f is None else f.foreseen for f in known], shape), [arms, goals])


def _spread(out: dict[str, Any], name: str, values: NDArray[Any], axes: list[list[str] | None]) -> None:
    """Add a column per entry of values (rows, ...): "ucb_fast_reward", "psi_safe_0"."""
    flat = values.reshape(len(values), -1)
    labels = [name]
    for size, axis in zip(values.shape[1:], axes, strict=False):
        words = [str(i) for i in range(size)] if axis is None else axis
        labels = [f"{label}_{word}" for label in labels for word in words]
    if len(labels) != flat.shape[1]:  # actions of more than one dimension
        labels = [f"{name}_{i}" for i in range(flat.shape[1])]
    out.update(zip(labels, np.ascontiguousarray(flat.T), strict=True))


def _rows(values: list[Any], shape: tuple[int, ...] | None) -> FloatArray:
    """Stack arrays of one shape, NaN for None."""
    empty = np.full(shape, np.nan) if shape is not None else None
    return np.array([empty if value is None else value for value in values], np.float64)


def _words(names: tuple[str, ...]) -> list[str]:
    """Return unique names for columns: letters, digits and _."""
    words = ["".join(c if c.isalnum() else "_" for c in name).strip("_") or "arm" for name in names]
    return [word if words.count(word) == 1 else f"{word}_{i}" for i, word in enumerate(words)]


def _header(record: Record) -> dict[str, Any]:
    info = record.run_info
    return {
        "version": VERSION,
        "blendctl": __version__,
        "names": list(info.names),
        "columns": _words(info.names),
        "objectives": list(info.objectives.names),
        "objective_columns": info.objectives.columns(),
        "scales": info.scales.tolist(),
        "rule": info.rule,
        "dwell": info.dwell,
        "features": info.feature_name,
        "lookahead": None if info.lookahead is None else asdict(info.lookahead),
    }
