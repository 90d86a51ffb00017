"""Algorithm 1 written as in a textbook, with explicit V and W: the reference for the compiled learner."""

import math

import numpy as np


class Textbook:
    def __init__(self, d, m, *, lam, sigma, s, length, delta, radius="determinant", union=True):
        self.v, self.w, self.t = lam * np.eye(d), np.zeros((m, d)), 0
        self.d, self.m, self.lam, self.sigma, self.s, self.length = d, m, lam, sigma, s, length
        self.delta = delta / m if union else delta
        self.kind = radius

    @property
    def radius(self):
        if self.kind == "paper":
            inner = self.d * math.log((1 + self.t * self.length**2 / self.lam) / self.delta)
        else:
            log_det = np.linalg.slogdet(self.v)[1] - self.d * math.log(self.lam)
            inner = 2 * (0.5 * log_det + math.log(1 / self.delta))
        return self.sigma * math.sqrt(inner) + math.sqrt(self.lam) * self.s

    def indices(self, psi):
        inverse = np.linalg.inv(self.v)
        width = np.sqrt(np.einsum("ai,ij,aj->a", psi, inverse, psi))
        estimate = psi @ (inverse @ self.w.T)
        ucb = estimate + self.radius * width[:, None]
        loss = np.maximum(0, (ucb.max(axis=0) - ucb).max(axis=1))
        return estimate, width, ucb, loss

    def update(self, psi, y):
        self.v += np.outer(psi, psi)
        self.w += np.outer(y, psi)
        self.t += 1
