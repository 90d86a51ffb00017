"""Compare episodes in the field with a certificate, and raise an alarm when they no longer agree."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from blendctl.certificates.betting import SHARES, log_factors
from blendctl.certificates.certificate import Certificate, read_certificate
from blendctl.errors import InputError

FALSE_ALARM = 0.01  # largest probability of an alarm in a whole run, while all bounds of the certificate hold


class ChangeMartingale:
    """Evidence that the mean of values lies, from some time on, on the other side of `mean` than `limit`.

    A single test martingale loses its wealth during a long time without a change, and then detects a change late. So
    the bets of `betting.py` restart at every value, with the share 1 / (s (s + 1)) of the wealth at the s-th; the
    sum over all starts is again a test martingale.
    """

    def __init__(self, mean: float, limit: float) -> None:
        self.mean, self.limit, self.count = mean, limit, 0
        self._logs = np.full(len(SHARES), -np.inf)  # wealth of each fraction, over all starts so far

    def add(self, value: float) -> None:
        """Bet on a value."""
        self.count += 1
        start = np.log(SHARES) - math.log(self.count * (self.count + 1))
        self._logs = np.logaddexp(self._logs, start) + log_factors(value, mean=self.mean, limit=self.limit)[:, 0]

    @property
    def log_wealth(self) -> float:
        """Logarithm of the wealth, the share of later starts included."""
        return float(np.logaddexp(np.logaddexp.reduce(self._logs), -math.log(self.count + 1)))


class CertificateMonitor:
    """Test the bounds of a certificate against episodes as they end, for as long as the robot runs.

    For each bound (mean cost, share over the budget, mean return) a test martingale bets that it no longer holds.
    While all bounds hold, the probability that an alarm is ever raised is at most `false_alarm`.

    >>> from blendctl.certificates import Claim, certify
    >>> certificate = certify(np.full(200, 20.0), np.zeros(200), Claim(budget=25.0, cost_ceiling=1000.0))
    >>> monitor = CertificateMonitor(certificate)
    >>> for _ in range(2):
    ...     alarms = monitor.add(20.0, 80.0)
    >>> alarms
    ['after 2 episodes, more of them cost over 25 than the certified 1.5%']
    """

    def __init__(self, certificate: Certificate | str | Path, *, false_alarm: float = FALSE_ALARM) -> None:
        if not 0.0 < false_alarm < 1.0:
            raise InputError(f"false_alarm must be a probability between 0 and 1, actually: {false_alarm!r}")
        if not isinstance(certificate, Certificate):
            certificate = read_certificate(certificate)
        self.certificate, self.false_alarm = certificate, false_alarm
        self.episodes = 0
        self.alarms: list[str] = []
        shown, claim = certificate.bounds, certificate.claim
        self._tests = {
            "cost": ChangeMartingale(shown.cost_mean_upper, 0.0),
            "share": ChangeMartingale(shown.share_over_upper, 0.0),
        }
        self._words = {  # of the alarms that were not raised yet
            "cost": f"their mean cost is above the certified {shown.cost_mean_upper:.1f}",
            "share": f"more of them cost over {claim.budget:g} than the certified {shown.share_over_upper:.1%}",
        }
        if shown.return_mean_lower is not None and claim.return_range is not None:
            self._tests["return"] = ChangeMartingale(shown.return_mean_lower, claim.return_range[1])
            self._words["return"] = f"their mean return is below the certified {shown.return_mean_lower:.2f}"
        self._threshold = math.log(len(self._tests) / false_alarm)
        self._return = self._cost = 0.0  # of the present episode

    def observe(self, reward: float | None, cost: float | None) -> None:
        """Add the feedback of a control step to the present episode; missing, NaN and infinite numbers count as 0."""
        self._return += reward if reward is not None and math.isfinite(reward) else 0.0
        self._cost += cost if cost is not None and math.isfinite(cost) else 0.0

    def end_episode(self) -> list[str]:
        """End the present episode; return the alarms that it raises."""
        totals, self._return, self._cost = (self._return, self._cost), 0.0, 0.0
        return self.add(totals[0], max(totals[1], 0.0))

    def add(self, episode_return: float, cost: float) -> list[str]:
        """Add a whole episode; return the alarms that it raises, each once."""
        if not (math.isfinite(episode_return) and math.isfinite(cost)) or cost < 0.0:
            raise InputError(f"expected a finite return and a cost >= 0, actually: {episode_return} and {cost}")
        self.episodes += 1
        claim = self.certificate.claim
        values = {"cost": cost, "share": float(cost > claim.budget)}
        if "return" in self._tests and claim.return_range is not None:
            values["return"] = float(np.clip(episode_return, *claim.return_range))
        new = []
        for name, value in values.items():
            self._tests[name].add(value)
            if name in self._words and self._tests[name].log_wealth >= self._threshold:
                new.append(f"after {self.episodes} episodes, {self._words.pop(name)}")
        self.alarms += new
        return new

    def status(self) -> dict[str, Any]:
        """Return episodes, alarms and the evidence against each bound (1: none; `alarm_at` raises the alarm)."""
        return {
            "episodes": self.episodes,
            "alarms": list(self.alarms),
            "evidence": {name: math.exp(min(martingale.log_wealth, 700.0)) for name, martingale in self._tests.items()},
            "alarm_at": math.exp(self._threshold),
            "false_alarm": self.false_alarm,
        }


def as_monitor(certificate: CertificateMonitor | Certificate | str | Path | None) -> CertificateMonitor | None:
    """Return the monitor of a certificate or of its file; None for None."""
    if certificate is None or isinstance(certificate, CertificateMonitor):
        return certificate
    if not isinstance(certificate, Certificate | str | Path):
        raise InputError(f"certificate must be a file, a Certificate or its monitor, actually: {certificate!r}")
    return CertificateMonitor(certificate)
