"""The hyper-parameters of a training run: each with its default and its help at one place."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from blendctl.errors import FileFormatError, InputError, did_you_mean

__all__ = ["TrainConfig", "ALGORITHMS", "SAFE_ALGORITHMS", "default_config", "option_help"]

ALGORITHMS = ("ppo", "ppo-lagrangian", "trpo", "trpo-lagrangian", "cpo")
SAFE_ALGORITHMS = ("ppo-lagrangian", "trpo-lagrangian", "cpo")


def option(default: Any, help_text: str) -> Any:
    """Declare a hyper-parameter with its help."""
    return field(default=default, metadata={"help": help_text})


def option_help(name: str) -> str:
    """Give the help of a hyper-parameter."""
    return next(str(f.metadata["help"]) for f in fields(TrainConfig) if f.name == name)


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides a training run, besides the machine it runs on."""

    world: str = option("PointGoal1", "world to train in")
    algo: str = option("ppo", f"algorithm: {', '.join(ALGORITHMS)}")
    steps: int = option(3_000_000, "environment steps to train for")
    seed: int = option(0, "seed of everything random: worlds, weights, action noise, batches")
    # What the rollouts look like.
    worlds: int = option(32, "worlds that run in lock-step")
    rollout: int = option(500, "steps of each world per update")
    episode: int = option(0, "cut training episodes after so many steps, to see more beginnings (0: never)")
    # What the networks are.
    hidden: tuple[int, ...] = option((256, 256), "sizes of the hidden layers of every network")
    log_std: float = option(-0.5, "logarithm of the action noise at the start")
    encoding: str = option("full", "what the networks see: full (near field, decoded objects), near, raw")
    # What is learned from a rollout.
    discount: float = option(0.99, "discount of rewards and costs")
    gae: float = option(0.95, "lambda of the generalised advantage estimate, for rewards and costs")
    policy_lr: float = option(3e-4, "learning rate of the policy (PPO)")
    value_lr: float = option(1e-3, "learning rate of the critics")
    anneal: bool = option(True, "let the learning rates fall linearly to a tenth")
    minibatch: int = option(2000, "rows per gradient step")
    passes: int = option(6, "passes over a rollout, for policy (PPO) and critics")
    clip: float = option(0.2, "largest change of an action's probability that PPO rewards")
    entropy: float = option(0.0, "weight of the entropy bonus")
    target_kl: float = option(0.02, "divergence: PPO ends its passes beyond it; others: trust region")
    max_grad: float = option(1.0, "largest norm of a gradient")
    # Trust regions.
    cg_steps: int = option(10, "iterations of the conjugate gradient")
    damping: float = option(0.1, "damping of the Fisher matrix")
    fisher_rows: int = option(16_000, "rows of the rollout that the Fisher matrix is estimated on, about")
    backtracks: int = option(10, "steps of the line search")
    backtrack: float = option(0.8, "factor of each step of the line search")
    # Safety.
    cost_limit: float = option(25.0, "allowed cost per episode (safe algorithms)")
    margin_rate: float = option(
        0.0, "CPO: share of each update's excess of cost by which the limit is tightened, against noise"
    )
    multiplier: float = option(0.1, "Lagrange multiplier at the start: return that a unit of cost is worth")
    multiplier_p: float = option(0.05, "multiplier: proportional gain, per relative excess of cost")
    multiplier_i: float = option(0.01, "multiplier: integral gain, per relative excess of cost and update")
    multiplier_d: float = option(0.0, "multiplier: derivative gain, per rise of the relative excess")
    multiplier_max: float = option(10.0, "multiplier: largest value")
    # How it runs.
    threads: int = option(2, "threads of the physics while simulating, of torch while learning")
    eval_episodes: int = option(100, "episodes of the evaluation at the end (0: none)")

    def __post_init__(self) -> None:
        if self.algo not in ALGORITHMS:
            raise InputError(f'there is no algorithm "{self.algo}"; {did_you_mean(self.algo, ALGORITHMS)}')
        for name in (
            "steps",
            "worlds",
            "rollout",
            "minibatch",
            "passes",
            "cg_steps",
            "fisher_rows",
            "threads",
        ):
            _require(self, name, getattr(self, name) >= 1, "at least 1")
        for name in ("eval_episodes", "backtracks", "seed", "entropy", "episode"):
            _require(self, name, getattr(self, name) >= 0, "0 or more")
        for name in ("policy_lr", "value_lr", "clip", "target_kl", "max_grad", "damping"):
            _require(self, name, getattr(self, name) > 0, "above 0")
        for name in (
            "cost_limit",
            "margin_rate",
            "multiplier",
            "multiplier_p",
            "multiplier_i",
            "multiplier_d",
        ):
            _require(self, name, getattr(self, name) >= 0, "0 or more")
        _require(self, "multiplier_max", self.multiplier_max >= self.multiplier, "at least the multiplier's start")
        _require(self, "discount", 0 <= self.discount < 1, "0 to below 1")
        _require(self, "gae", 0 <= self.gae <= 1, "0 to 1")
        _require(self, "backtrack", 0 < self.backtrack < 1, "between 0 and 1")
        _require(self, "hidden", len(self.hidden) >= 1 and min(self.hidden) >= 1, "sizes such as 256,256")
        _require(self, "encoding", self.encoding in ("full", "near", "raw"), "full, near or raw")

    @property
    def safe(self) -> bool:
        """Whether the algorithm keeps a cost limit."""
        return self.algo in SAFE_ALGORITHMS

    @property
    def batch(self) -> int:
        """Rows per update."""
        return self.worlds * self.rollout

    def to_json(self) -> str:
        """Give the configuration as the JSON text that `from_json` reads."""
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TrainConfig:
        """Build a configuration on its algorithm's defaults from named values; unknown names are refused."""
        kinds = {f.name: type(f.default) for f in fields(cls)}
        values: dict[str, Any] = {}
        for name, value in data.items():
            if name not in kinds:
                raise InputError(f'there is no option "{name}"; {did_you_mean(name, kinds)}')
            values[name] = _converted(name, value, kinds[name])
        algo = values.get("algo", cls.algo)
        if algo not in ALGORITHMS:
            raise InputError(f'there is no algorithm "{algo}"; {did_you_mean(str(algo), ALGORITHMS)}')
        return cls(**(DEFAULTS.get(algo, {}) | values))

    @classmethod
    def from_json(cls, path: Path) -> TrainConfig:
        """Read a configuration file: a JSON object of options, all optional."""
        return cls.from_dict(read_options(path))


def read_options(path: Path) -> dict[str, Any]:
    """Read the options of a configuration file as they stand there."""
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{path} cannot be read as a JSON configuration: {error}") from error
    if not isinstance(data, dict):
        raise FileFormatError(f"{path} must hold a JSON object of options, not a {type(data).__name__}")
    return data


# Where an algorithm's best default is not the common one.
# A trust region takes one step per rollout: it does better with more and smaller rollouts.
TRUST_REGION = {"rollout": 250, "target_kl": 0.02, "passes": 4}
DEFAULTS: dict[str, dict[str, Any]] = {
    "trpo": TRUST_REGION,
    "trpo-lagrangian": TRUST_REGION,
    "cpo": TRUST_REGION,
}


def default_config(algo: str) -> TrainConfig:
    """Give the defaults of an algorithm."""
    return TrainConfig.from_dict({"algo": algo})


def _converted(name: str, value: Any, kind: type) -> Any:
    try:
        if kind is tuple:
            return tuple(int(v) for v in value)
        if kind is bool or kind is str:
            if not isinstance(value, kind):
                raise TypeError
            return value
        if isinstance(value, bool) or not math.isfinite(float(value)):
            raise TypeError
        if kind is int and int(float(value)) != float(value):
            raise TypeError
        return kind(float(value)) if kind is int else float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"option {name} is {value!r}; expected {kind.__name__}: {option_help(name)}") from error


def _require(config: TrainConfig, name: str, holds: bool, allowed: str) -> None:
    if not holds:
        raise InputError(f"option {name} is {getattr(config, name)!r}; allowed: {allowed} ({option_help(name)})")
