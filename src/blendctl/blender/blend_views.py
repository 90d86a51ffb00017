"""Read-only views of a blender: the current stage, its bound, and which controllers are fit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from blendctl.errors import InputError

if TYPE_CHECKING:
    from blendctl.bandit import BlendingBandit
    from blendctl.blender.bound_check import BoundCheck
    from blendctl.blender.chooser import Chooser
    from blendctl.blender.drivers import Drivers
    from blendctl.blender.handover import Handover, HandoverFilter
    from blendctl.blender.ledger import Ledger
    from blendctl.blender.record import Record, RunInfo, StageDecision
    from blendctl.blender.recorder import Recorder


class BlendViews:
    """Properties of `Blender` that change nothing.

    Most are no attributes because Python finds the attributes of an object faster if it has 30 at most.
    """

    bandit: BlendingBandit
    drivers: Drivers
    names: list[str]
    step: int
    _chooser: Chooser
    _filter: HandoverFilter
    _ledger: Ledger
    _run_info: RunInfo
    _earlier_decisions: tuple[int, float]
    _bound_extra: float

    @property
    def feature_name(self) -> str:
        """The features that decide, in words."""
        return self._run_info.feature_name

    @property
    def hold(self) -> int:
        """Control steps per decision."""
        return self._ledger.hold

    @property
    def frozen(self) -> bool:
        """Whether it decides without learning."""
        return self._ledger.frozen

    @property
    def fallback(self) -> tuple[int, ...]:
        """All arms, in the order in which they take over when the one that drives fails."""
        return self._chooser.fallback

    @property
    def handover(self) -> Handover | None:
        """How the action changes after a switch, None: at once."""
        return self._filter.handover

    @property
    def recorder(self) -> Recorder | None:
        """The recorder of its stages, None without one."""
        return self._ledger.recorder

    @property
    def bound_check(self) -> BoundCheck:
        """The test of the assumptions of the loss bound."""
        return self._ledger.bound_check

    @property
    def last(self) -> Record | None:
        """The present stage as it is now, None before the first."""
        present = self._ledger.present
        return None if present is None else present.record()

    @property
    def choice(self) -> StageDecision | None:
        """The decision of the present stage, None before the first."""
        present = self._ledger.present
        return None if present is None else present.choice

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of the numbers in a decision: the objectives, or values to go if the features look ahead."""
        return self._run_info.quantities

    @property
    def holding(self) -> bool:
        """Whether the present stage lasts for another control step (hold > 1)."""
        return self._ledger.holding

    @property
    def loss_bound(self) -> float:
        """Upper bound of the average maximal loss per stage of this blender's decisions, in scaled units.

        Like the bandit's, but for the arms that drove, and for this blender's decisions only. It holds for
        context="current"; inf before the first decision.
        """
        count, total = self.decided, self._earlier_decisions[1]
        return (self.bandit.bound_sum - total + self._bound_extra) / count if count else math.inf

    @property
    def decided(self) -> int:
        """Number of decisions of the bandit since this blender was made, by `act` or by the compiled loop."""
        return self.bandit.decisions - self._earlier_decisions[0]

    @property
    def pending(self) -> int:
        """Number of earlier stages that wait for feedback."""
        return len(self._ledger.pending)

    def fit(self, name: str) -> bool:
        """Return whether a controller is fit to drive at the next step, not benched."""
        if name not in self.names:
            raise InputError(f'there is no controller "{name}"; allowed: {", ".join(self.names)}')
        return self.drivers.bench.fit(self.names.index(name), self.step + 1)
