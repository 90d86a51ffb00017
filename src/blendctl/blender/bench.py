"""The bench: a controller that fails sits out for some steps, longer each time."""

from __future__ import annotations

from dataclasses import dataclass

from blendctl.errors import InputError


@dataclass(frozen=True)
class BenchRules:
    """How long a controller that failed sits out, in control steps."""

    first: int = 10  # after a first failure
    growth: int = 2  # factor for each further failure
    longest: int = 1000  # limit

    def __post_init__(self) -> None:
        if not (1 <= self.first <= self.longest) or self.growth < 1:
            raise InputError(
                f"the bench needs 1 <= first <= longest and growth >= 1, actually: first={self.first}, "
                f"longest={self.longest}, growth={self.growth}"
            )


class Bench:
    """Track which arms are fit to drive.

    After as many steps without a failure as its last bench lasted, a controller has a clean record again: its next
    failure counts as the first.
    """

    def __init__(self, arms: int, rules: BenchRules) -> None:
        self.rules = rules
        self.until = [0] * arms  # first step at which the arm is fit again
        self.back_off = [0] * arms  # steps of the last bench, 0 with a clean record
        self.failures = [0] * arms  # total
        self.failed_at = [0] * arms  # step of the last failure

    def fit(self, arm: int, step: int) -> bool:
        """Return whether an arm may be asked at a step."""
        return step >= self.until[arm]

    def fail(self, arm: int, step: int) -> int:
        """Bench an arm; return for how many steps."""
        rules = self.rules
        clean = self.back_off[arm] == 0 or step >= self.until[arm] + self.back_off[arm]
        back_off = rules.first if clean else min(self.back_off[arm] * rules.growth, rules.longest)
        self.back_off[arm] = back_off
        self.until[arm] = step + 1 + back_off
        self.failures[arm] += 1
        self.failed_at[arm] = step
        return back_off

    def reinstate(self, arm: int, step: int) -> None:
        """Let a benched arm drive, because no other can. Its back-off is kept."""
        self.until[arm] = min(self.until[arm], step)
