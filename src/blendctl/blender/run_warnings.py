"""Warn while a blender runs: of its budget, features too long, an empty context, failures, a cost that stays 0."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from blendctl.arrays import FloatArray

if TYPE_CHECKING:
    from blendctl.bandit import BlendingBandit
    from blendctl.blender.bench import Bench
    from blendctl.blender.bound_check import BoundCheck

LOG = logging.getLogger("blendctl")
FEATURE = "feature"  # key of the feature's warning, such as of a budget
EVERY = 200  # stages between two checks
OFTEN = 0.05  # share of decisions whose features were shortened
LEAST_STAGES = 500  # before a context is judged
LOW = 0.05  # share of the feedback's variance; a context that explains less decides nothing
MANY_FAILURES = 10
SILENT_EPISODES = 5  # without any cost


class RunWarnings:
    """Collect warnings during a run; log each one once, and keep it."""

    def __init__(
        self,
        names: Sequence[str],
        objectives: Sequence[str],
        bandit: BlendingBandit,
        bench: Bench,
        bound_check: BoundCheck,
        *,
        judged: bool,
        knows_costs: bool,
        looks_ahead: bool = False,
    ) -> None:
        self.messages: list[str] = []
        self._names, self._objectives, self._bandit, self._bench = names, objectives, bandit, bench
        self._bound_check = bound_check
        # The unit of values to go is that of the networks' training.
        self._remedy = (
            "The values to go are larger than in training" if looks_ahead else "Use features.Scaled, or scales="
        )
        self._judged = judged  # whether estimates are compared with the feedback
        self._known: set[str] = set()
        self._rescaled = bandit.rescaled, bandit.decisions
        self._count = 0  # stages
        # Costs that were always 0 so far. A blend that is frozen or looks ahead knows them and may avoid all of them.
        self._silent = [k for k, name in enumerate(objectives) if name.startswith("-") and not knows_costs]
        self._episodes = 0

    def add_stage(self, total: FloatArray) -> None:
        """Check a completed stage; total (objectives,) is the sum of its feedback, unscaled."""
        self._count += 1
        for k in self._silent:
            if total[k]:
                self._silent = [other for other in self._silent if other != k]
        if self._count % EVERY == 0:
            self._look()

    def end_episode(self) -> None:
        """Check at the end of an episode."""
        self._episodes += 1
        if self._episodes == SILENT_EPISODES:
            for name in (self._objectives[k] for k in self._silent):
                self.say(
                    f"the {name[1:]} was 0 in every step of {SILENT_EPISODES} episodes, though it is an objective; is "
                    "it the right signal?",
                    key=name,
                )
        self._look_at_failures()

    def _look(self) -> None:
        rescaled, decisions = self._bandit.rescaled - self._rescaled[0], self._bandit.decisions - self._rescaled[1]
        if decisions and rescaled > OFTEN * decisions:
            self.say(
                f"{rescaled} features of {decisions} decisions were longer than feature_bound and were shortened: the "
                f"learner sees them distorted, and the bound on the loss does not hold. {self._remedy}",
                key="shortened",
            )
        self._look_at_failures()
        if self._judged and self._count >= LEAST_STAGES:
            for name, share in zip(self._objectives, self._bound_check.explained(), strict=True):
                if share is not None and share < LOW:
                    self.say(
                        f"the context explains {max(0.0, share):.0%} of the {name.removeprefix('-')} of "
                        f"a stage after {self._count} stages: the choices are hardly better than chance in it. Try "
                        "blendctl fit, other features, or a longer hold",
                        key=f"context {name}",
                    )

    def _look_at_failures(self) -> None:
        for name, failures in zip(self._names, self._bench.failures, strict=True):
            if failures >= MANY_FAILURES:
                self.say(
                    f"{name} has failed {failures} times: the blend is driven by the others. Test it with "
                    "blendctl check-controller",
                    key=f"failures {name}",
                )

    def say(self, message: str, *, key: str, logged: bool = False) -> None:
        """Keep a warning and log it, unless one with this key was kept before, or the user has seen it (`logged`)."""
        if key not in self._known:
            self._known.add(key)
            self.messages.append(message)
            if not logged:
                LOG.warning(message)
