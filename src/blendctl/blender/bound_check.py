"""Detect feedback that contradicts the assumptions of the loss bound."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from blendctl import pareto
from blendctl.arrays import FloatArray
from blendctl.bandit import BlendingBandit
from blendctl.bandit.decision import Decision
from blendctl.bandit.memory_layout import INDICES, RADIUS, decision_size
from blendctl.compiled import compiled

FALSE_ALARM = 0.01  # false-alarm probability of a whole run
RATE = 0.01  # largest probability of a surprise per stage, under the assumptions
STAKES = (0.002, 0.02, 0.2)  # shares of the wealth that are bet on a surprise
EPOCH = 1000  # stages after which the bet restarts


class BoundCheck:
    """Test the bound's assumptions; the result is valid after every stage.

    If theta lies in the confidence sets and the noise is sub-Gaussian with the declared sigma, then feedback differs
    from its estimate by more than radius * width + sigma sqrt(2 log(2 m / RATE)), in any of the m objectives, with
    probability RATE at most. It bets against that: in each epoch the mean of a few wealths, which multiply by
    1 - stake, plus stake / RATE at a surprise, exceeds 1 / error with probability `error` at most (Ville). The
    errors of all epochs add up to FALSE_ALARM.
    """

    def __init__(self, bandit: BlendingBandit) -> None:
        options = bandit.options
        self.stages = self.surprises = 0
        self.alarm = 0  # stages compared when the alarm was raised; 0 without an alarm
        self.reason: str | None = None  # why the bound is not guaranteed; None without evidence against it
        self.loss = self.bound = 0.0  # sums over the stages whose true losses are known, in scaled units
        self.known = 0  # such stages
        self._objectives = bandit.n_objectives
        self._noise = options.noise
        self._scales = np.ones(self._objectives) if options.scales is None else np.array(options.scales, np.float64)
        # Estimates, feedback, their squared difference, squared feedback; scaled.
        self._sums = np.zeros((4, self._objectives))
        self.spread = self._noise * math.sqrt(2.0 * math.log(2.0 * self._objectives / RATE))
        self._epoch = self._hits = 0  # the epoch of the last surprise, and surprises in it

    def observe(self, decision: Decision, row: int, feedback: FloatArray) -> None:
        """Compare the feedback (objectives,) of the arm in a row of the decision with its estimate."""
        self.stages += 1
        if _surprises(decision.row, row, feedback, self._scales, self.spread, self._sums):
            self._count_surprise()

    def _count_surprise(self) -> None:
        epoch, stages = divmod(self.stages - 1, EPOCH)
        if epoch != self._epoch:
            self._epoch, self._hits = epoch, 0
        self._hits += 1
        self.surprises += 1
        misses = stages + 1 - self._hits
        logs = (misses * math.log1p(-s) + self._hits * math.log1p(s / RATE - s) for s in STAKES)
        wealth = sum(math.exp(min(log, 700.0)) for log in logs) / len(STAKES)
        if self.reason is None and wealth > (math.pi * (epoch + 1)) ** 2 / (6.0 * FALSE_ALARM):
            self.alarm = self.stages
            self.reason = (
                f"{self.surprises} of {self.stages} stages had feedback that the context and noise = "
                f"{self._noise:g} do not allow; raise noise, scale the feedback, or use features that predict it"
            )

    def observe_truth(self, decision: Decision, asked: Sequence[int], arm: int, truth: FloatArray) -> None:
        """Add the true loss of a stage, by the feedback (arms, objectives) of every arm, and its bound."""
        if arm not in asked or not np.isfinite(truth).all():
            return
        self.known += 1
        self.loss += float(pareto.maximal_loss(truth / self._scales)[arm])
        self.bound += decision.loss_bound_of(asked.index(arm))

    def explained(self) -> list[float | None]:
        """Return the share of the feedback's variance that the estimates explain; None if it does not vary."""
        _, total, errors, squares = self._sums
        varies = squares - total * total / max(self.stages, 1)
        known = varies > 1e-9 * squares
        shares = 1.0 - errors / np.where(known, varies, 1.0)
        return [share if sure else None for share, sure in zip(shares.tolist(), known.tolist(), strict=True)]

    def feedback(self, names: Sequence[str]) -> dict[str, Any]:
        """Return stages compared, surprises, the alarm, and mean estimates and feedback by objective, unscaled.

        `alarm` is how many stages had been compared when the alarm was raised, None without one. A false alarm has
        probability FALSE_ALARM at most, over the whole run.
        """
        means: dict[str, Any] = {"estimated": None, "observed": None}
        if self.stages:
            rows = (self._sums[:2] / self.stages * self._scales).tolist()
            means = {key: dict(zip(names, row, strict=True)) for key, row in zip(means, rows, strict=True)}
        return {"stages": self.stages, "surprises": self.surprises, "alarm": self.alarm or None, **means}

    def status(self) -> dict[str, Any]:
        """Return whether the bound can be relied on: "consistent", "not guaranteed" or "contradicted", and why."""
        if self.loss > self.bound:
            reason = (
                f"the average loss of {self.known} stages is {self.loss / self.known:.4g}, above its bound of "
                f"{self.bound / self.known:.4g}"
            )
            return {"bound": "contradicted", "bound_reason": reason}
        return {"bound": "consistent" if self.reason is None else "not guaranteed", "bound_reason": self.reason}


@compiled
def _surprises(
    decision: FloatArray, arm: int, feedback: FloatArray, scales: FloatArray, spread: float, sums: FloatArray
) -> bool:
    """Add an arm's estimates and feedback to sums (4, m); return whether they are too far apart in any objective."""
    m = feedback.size
    arms = (decision.size - INDICES) // (3 + 2 * m)
    estimates = INDICES + 3 * arms + arm * m
    allowed = decision[RADIUS] * decision[INDICES + arm] + spread
    surprise = False
    for k in range(m):
        estimate, value = decision[estimates + k], feedback[k] / scales[k]
        sums[0, k] += estimate
        sums[1, k] += value
        sums[2, k] += (value - estimate) * (value - estimate)
        sums[3, k] += value * value
        surprise |= not -allowed <= value - estimate <= allowed
    return surprise


# load it now, not in the first control step
_surprises(np.zeros(decision_size(1, 1)), 0, np.zeros(1), np.ones(1), 0.0, np.zeros((4, 1)))


def bound_words(status: Mapping[str, Any]) -> str | None:
    """Describe a bound that does not hold or is not guaranteed; return None if there is no evidence against it.

    >>> bound_words({"bound": "not guaranteed", "bound_reason": "the noise is larger"})
    'The bound on the loss is not guaranteed here: the noise is larger.'
    """
    words = {"contradicted": "does not hold", "not guaranteed": "is not guaranteed"}
    if status.get("bound") not in words:
        return None
    return f"The bound on the loss {words[status['bound']]} here: {status.get('bound_reason')}."
