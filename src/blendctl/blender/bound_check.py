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
        self._estimated, self._observed = ([0.0] * bandit.n_objectives for _ in range(2))  # sums, scaled
        self.reason: str | None = None  # why the bound is not guaranteed; None without evidence against it
        self.loss = self.bound = 0.0  # sums over the stages whose true losses are known, in scaled units
        self.known = 0  # such stages
        self._objectives = bandit.n_objectives
        self._noise = options.noise
        self._scales = None if options.scales is None else np.asarray(options.scales, np.float64)
        self.spread = self._noise * math.sqrt(2.0 * math.log(2.0 * self._objectives / RATE))
        self._epoch = self._hits = 0  # the epoch of the last surprise, and surprises in it

    def observe(self, decision: Decision, row: int, feedback: FloatArray) -> None:
        """Compare the feedback (objectives,) of the arm in a row of the decision with its estimate."""
        self.stages += 1
        estimate, error = decision.expected(row)
        values = feedback.tolist() if self._scales is None else (feedback / self._scales).tolist()
        allowed = error + self.spread
        surprise = False
        for k, (value, expected) in enumerate(zip(values, estimate, strict=True)):
            self._observed[k] += value
            self._estimated[k] += expected
            surprise |= not -allowed <= value - expected <= allowed
        if surprise:
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
        scaled = truth if self._scales is None else truth / self._scales
        self.known += 1
        self.loss += float(pareto.maximal_loss(scaled)[arm])
        self.bound += decision.loss_bound_of(asked.index(arm))

    def feedback(self, names: Sequence[str]) -> dict[str, Any]:
        """Return stages compared, surprises, the alarm, and mean estimates and feedback by objective, unscaled.

        `alarm` is how many stages had been compared when the alarm was raised, None without one. A false alarm has
        probability FALSE_ALARM at most, over the whole run.
        """
        scales = np.ones(self._objectives) if self._scales is None else self._scales
        means: dict[str, Any] = {"estimated": None, "observed": None}
        if self.stages:
            sums = {"estimated": self._estimated, "observed": self._observed}
            means = {
                key: {
                    name: total / self.stages * scale
                    for name, total, scale in zip(names, part, scales.tolist(), strict=True)
                }
                for key, part in sums.items()
            }
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


def bound_words(status: Mapping[str, Any]) -> str | None:
    """Describe a bound that does not hold or is not guaranteed; return None if there is no evidence against it.

    >>> bound_words({"bound": "not guaranteed", "bound_reason": "the noise is larger"})
    'The bound on the loss is not guaranteed here: the noise is larger.'
    """
    words = {"contradicted": "does not hold", "not guaranteed": "is not guaranteed"}
    if status.get("bound") not in words:
        return None
    return f"The bound on the loss {words[status['bound']]} here: {status.get('bound_reason')}."
