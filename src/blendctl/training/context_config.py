"""The settings of context training, importable without torch: each with its default and its help text."""

from __future__ import annotations

from dataclasses import dataclass

from blendctl.errors import InputError
from blendctl.training.config import option, require, require_limits


@dataclass(frozen=True)
class ContextConfig:
    """The settings of the context networks of one world."""

    horizons: tuple[int, ...] = option((1, 10, 50), "prediction horizons in steps; the first is 1, the paper's")
    discount: float = option(0.99, "discount within a horizon", least=0)
    steps: int = option(500_000, "transitions to learn from; a fifth more is held out", least=1)
    worlds: int = option(50, "worlds that run in lock-step", least=1)
    hidden: tuple[int, ...] = option((448, 320, 192), "sizes of the hidden layers, next step")
    hidden_longer: tuple[int, ...] = option((224, 192, 128), "sizes of the hidden layers, longer horizons")
    passes: int = option(20, "passes over the transitions", least=1)
    minibatch: int = option(2000, "rows per gradient step", least=1)
    lr: float = option(2e-3, "initial learning rate", above=0)
    seed: int = option(0, "random seed", least=0)
    threads: int = option(2, "threads of physics and torch", least=1)

    def __post_init__(self) -> None:
        require_limits(self)
        require(self, "discount", self.discount <= 1, "0 to 1")
        for name in ("hidden", "hidden_longer"):
            sizes = getattr(self, name)
            require(self, name, len(sizes) >= 1 and min(sizes) >= 1, "sizes such as 224,192,128")
        if not self.horizons or self.horizons[0] != 1 or sorted(set(self.horizons)) != list(self.horizons):
            raise InputError(f"horizons are {self.horizons}; expected rising numbers of steps that begin with 1")
        if self.steps < 10 * self.worlds * self.horizons[-1]:
            raise InputError(
                f"{self.steps} steps in {self.worlds} worlds are too few for windows of {self.horizons[-1]} steps; "
                f"use at least {10 * self.worlds * self.horizons[-1]}"
            )
