"""The settings of context training, importable without torch."""

from __future__ import annotations

from dataclasses import dataclass

from blendctl.errors import InputError


@dataclass(frozen=True)
class ContextConfig:
    """The settings of the context networks of one world."""

    horizons: tuple[int, ...] = (1, 10, 50)  # steps of each prediction; 1 is the paper's
    discount: float = 0.99
    steps: int = 500_000  # training transitions; a fifth more is held out
    worlds: int = 50
    hidden: tuple[int, ...] = (224, 192, 128)
    passes: int = 20
    minibatch: int = 2000
    lr: float = 2e-3
    seed: int = 0
    threads: int = 2

    def __post_init__(self) -> None:
        if not self.horizons or self.horizons[0] != 1 or sorted(set(self.horizons)) != list(self.horizons):
            raise InputError(f"horizons are {self.horizons}; expected rising numbers of steps that begin with 1")
        if self.steps < 10 * self.worlds * self.horizons[-1]:
            raise InputError(
                f"{self.steps} steps in {self.worlds} worlds are too few for windows of {self.horizons[-1]} steps; "
                f"use at least {10 * self.worlds * self.horizons[-1]}"
            )
