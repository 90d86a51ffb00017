"""Moments of true feedback and context, for a linear fit over any range of stages."""

from __future__ import annotations

from typing import Any

import numpy as np

from blendctl.arrays import FloatArray

SUMS = ("psi_psi", "psi_y", "y", "y_y")


class Moments:
    """Sums for a linear fit of true feedback y (m,) on the context psi (d,), over any range of stages."""

    def __init__(self, d: int, m: int) -> None:
        self.count = 0
        self.psi_psi = np.zeros((d, d))
        self.psi_y = np.zeros((d, m))
        self.y = np.zeros(m)
        self.y_y = np.zeros(m)

    def add(self, psi: FloatArray, y: FloatArray) -> None:
        """Add contexts psi (n, d) with feedback y (n, m)."""
        self.count += len(psi)
        self.psi_psi += psi.T @ psi
        self.psi_y += psi.T @ y
        self.y += y.sum(axis=0)
        self.y_y += (y * y).sum(axis=0)

    def join(self, other: Moments) -> None:
        """Add the sums of another range."""
        self.count += other.count
        for name in SUMS:
            getattr(self, name)[...] += getattr(other, name)

    def fit(self, regularization: float) -> FloatArray:
        """Return theta* (m, d): the ridge regression of the true feedback of all arms on their contexts."""
        d = len(self.psi_psi)
        return np.asarray(np.linalg.solve(self.psi_psi + regularization * np.eye(d), self.psi_y).T)

    def explained(self) -> list[float | None]:
        """Return R2 per objective: the share of the true feedback's variance that a linear function of psi explains.

        None if the feedback did not vary.

        >>> moments = Moments(1, 1)
        >>> moments.add(np.array([[0.0], [1.0], [2.0]]), np.array([[0.0], [3.0], [6.0]]))
        >>> moments.explained()
        [1.0]
        """
        theta = np.linalg.lstsq(self.psi_psi, self.psi_y, rcond=None)[0]  # (d, m)
        error = self.y_y - 2 * (theta * self.psi_y).sum(axis=0) + (theta * (self.psi_psi @ theta)).sum(axis=0)
        total = self.y_y - self.y**2 / max(self.count, 1)
        return [
            None if t <= 1e-12 * max(s, 1e-300) else float(1.0 - e / t)
            for e, t, s in zip(error, total, self.y_y, strict=True)
        ]

    def plain(self) -> dict[str, Any]:
        """Return the sums as JSON data."""
        return {"count": self.count} | {name: getattr(self, name).tolist() for name in SUMS}

    @classmethod
    def from_plain(cls, data: dict[str, Any]) -> Moments:
        """Read the result of `plain`."""
        moments = cls(*np.shape(data["psi_y"]))
        moments.count = data["count"]
        for name in SUMS:
            setattr(moments, name, np.array(data[name], dtype=np.float64))
        return moments
