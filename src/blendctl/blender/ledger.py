"""The ledger: which feedback belongs to which stage, and what is learned from it, once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from blendctl.bandit import BlendingBandit
from blendctl.blender.counts import Counts
from blendctl.blender.finite_check import finite_vector
from blendctl.blender.record import Record
from blendctl.blender.recorder import Recorder
from blendctl.errors import BlendctlError, InputError

__all__ = ["Ledger", "Observed"]

FloatArray = NDArray[np.float64]
Observed = Literal["learned", "counted", "late", "duplicate", "unknown", "refused"]


class Ledger:
    """Stages that wait for feedback.

    A stage is learned from when it is over and the feedback of each of its steps has come, at most once, with the
    context of the arm that drove. A stage that was written down before stays as it was written: what comes late
    goes into a second record of it.
    """

    def __init__(
        self,
        bandit: BlendingBandit,
        *,
        teach: Callable[[Any, Any, FloatArray], object] | None,
        frozen: bool,
        window: int,
        recorder: Recorder | None,
        counts: Counts,
    ) -> None:
        self.bandit, self.teach, self.frozen = bandit, teach, frozen
        self.window, self.recorder, self.counts = window, recorder, counts
        self.pending: dict[int, Record] = {}  # by stage, oldest first; never the present one

    def addressee(self, last: Record, stage: int | None, step: int | None, now: int) -> tuple[Record | None, int]:
        """Find the record that feedback belongs to, and which of its steps (from 0); `now` is the present step."""
        if stage is None and step is None:
            if last.step + last.steps <= now:
                return None, 0  # the present step has no record: no controller could drive, and `act` raised
            return self.pending.get(last.stage, last), last.steps - 1
        for name, number in (("stage", stage), ("step", step)):
            if number is not None and (isinstance(number, bool) or not isinstance(number, int | np.integer)):
                raise InputError(f"{name} must be a whole number, actually: {number!r}")
        if step is not None:
            for record in (*self.pending.values(), last):
                if record.step <= step < record.step + record.steps and stage in (None, record.stage):
                    return record, step - record.step
            return None, 0
        assert stage is not None
        record = self.pending.get(stage, last)
        if record.stage != stage:
            return None, 0
        waiting = [bit for bit in range(record.steps) if not record.seen >> bit & 1]
        return record, waiting[0] if waiting else 0

    def book(self, record: Record | None, bit: int, feedback: FloatArray, signals: Mapping[str, Any]) -> Observed:
        """Book feedback (objectives,) to step `bit` of a record."""
        counts = self.counts
        if record is None:
            counts.unknown += 1
            return "unknown"
        if record.seen >> bit & 1:
            counts.duplicates += 1
            return "duplicate"
        late = record.retired
        if late:
            counts.late += 1
            if not record.late:
                record = self.pending[record.stage] = record.as_late()
        record.seen |= 1 << bit
        counts.observed += 1
        outcome: Observed = "late" if late else "counted"
        if finite_vector(feedback):
            record.reward += signals["reward"] or 0.0
            record.cost += signals["cost"] or 0.0
            record.feedback = feedback if record.feedback is None else record.feedback + feedback
            if record.closed and self.learn(record) and not late:
                outcome = "learned"
        else:
            record.spoiled = True
            counts.refused += 1
            self._mention(record, f"the feedback {feedback.tolist()} was refused")
            outcome = "refused"
        if late and record.complete:
            del self.pending[record.stage]
            self._write(record)
        return outcome

    def learn(self, record: Record) -> bool:
        """Learn from a stage if all of it is known, and a controller with a context drove."""
        psi, feedback = record.features, record.feedback
        if self.frozen or record.spoiled or record.learned or record.arm < 0:
            return False
        if psi is None or feedback is None or not record.complete:
            return False
        row = psi[record.arm]
        if not finite_vector(row):
            return False
        try:
            self.bandit.update(row, feedback)
        except BlendctlError as error:
            record.spoiled = True
            self.counts.refused += 1
            self._mention(record, str(error))
            return False
        record.learned = True
        self.counts.learned += 1
        if self.teach is not None:
            self.teach(record.observation, record.action, feedback)
        return True

    def retire(self, record: Record) -> None:
        """Close a stage and write it down; if feedback is missing, wait for it within the window."""
        if record.retired:
            return
        if not record.closed:
            record.closed = True
            self.learn(record)
        record.retired = True
        self._write(record)
        if not record.complete:
            self.pending[record.stage] = record
            if len(self.pending) > self.window:
                self._give_up(next(iter(self.pending)))

    def close(self) -> None:
        """Give up all that is still waiting."""
        for stage in list(self.pending):
            self._give_up(stage)
        if self.recorder is not None:
            self.recorder.close()

    def _give_up(self, stage: int) -> None:
        record = self.pending.pop(stage)
        self.counts.missing += 1
        if record.late:
            self._write(record)

    def _write(self, record: Record) -> None:
        if self.recorder is not None:
            self.recorder.append(record)

    def _mention(self, record: Record, event: str) -> None:
        self.counts.events += 1
        record.event = event if record.event is None else f"{record.event}; {event}"
