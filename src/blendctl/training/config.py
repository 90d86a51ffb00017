"""The hyper-parameters of a training run: each with its default and its help text."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from blendctl.errors import InputError, did_you_mean
from blendctl.file_reading import read_json_object

ALGORITHMS = ("ppo", "ppo-lagrangian", "trpo", "trpo-lagrangian", "cpo")
SAFE_ALGORITHMS = ("ppo-lagrangian", "trpo-lagrangian", "cpo")


def option(default: Any, help_text: str, *, least: float | None = None, above: float | None = None) -> Any:
    """Declare a hyper-parameter with its help text, and its least value or a number that it must exceed."""
    return field(default=default, metadata={"help": help_text, "least": least, "above": above})


def option_help(name: str, config: type[Any] | None = None) -> str:
    """Return the help text of a hyper-parameter of a configuration class, `TrainConfig` by default."""
    return next(str(f.metadata["help"]) for f in fields(config or TrainConfig) if f.name == name)


@dataclass(frozen=True)
class TrainConfig:
    """The settings of a training run."""

    world: str = option("PointGoal1", "world to train in")
    algo: str = option("ppo", f"algorithm: {', '.join(ALGORITHMS)}")
    steps: int = option(3_000_000, "environment steps to train for", least=1)
    seed: int = option(0, "random seed of worlds, weights, action noise and minibatches", least=0)
    # Rollouts.
    worlds: int = option(32, "worlds that run in lock-step", least=1)
    rollout: int = option(500, "steps of each world per update", least=1)
    episode: int = option(0, "limit of training episodes in steps (0: none)", least=0)
    # Networks.
    hidden: tuple[int, ...] = option((256, 256), "sizes of the hidden layers of every network")
    log_std: float = option(-0.5, "initial logarithm of the standard deviation of the action noise")
    encoding: str = option("full", "network inputs: full (near field, decoded objects), near, raw")
    # Learning.
    discount: float = option(0.99, "discount factor of rewards and costs")
    gae: float = option(0.95, "lambda of the generalised advantage estimate, for rewards and costs")
    policy_lr: float = option(3e-4, "learning rate of the policy (PPO)", above=0)
    value_lr: float = option(1e-3, "learning rate of the critics", above=0)
    anneal: bool = option(True, "decay the learning rates linearly to a tenth")
    minibatch: int = option(2000, "rows per gradient step", least=1)
    passes: int = option(6, "passes over a rollout, for policy (PPO) and critics", least=1)
    clip: float = option(0.2, "PPO: clip the probability ratio to 1 - clip .. 1 + clip", above=0)
    entropy: float = option(0.0, "weight of the entropy bonus", least=0)
    target_kl: float = option(
        0.02, "KL divergence: limit of the passes (PPO), size of the trust region (TRPO, CPO)", above=0
    )
    max_grad: float = option(1.0, "clip gradients to this norm", above=0)
    # Trust regions (TRPO, CPO).
    cg_steps: int = option(10, "iterations of the conjugate gradient", least=1)
    damping: float = option(0.1, "damping of the Fisher matrix", above=0)
    fisher_rows: int = option(16_000, "approximate number of rows to estimate the Fisher matrix on", least=1)
    backtracks: int = option(10, "most steps of the line search", least=0)
    backtrack: float = option(0.8, "factor by which the line search shortens a step")
    # Safety.
    cost_limit: float = option(25.0, "allowed cost per episode (safe algorithms)", least=0)
    margin_rate: float = option(0.0, "CPO: tighten the limit by this share of each update's excess of cost", least=0)
    multiplier: float = option(0.1, "initial Lagrange multiplier: return that a unit of cost is worth", least=0)
    multiplier_p: float = option(0.05, "multiplier: proportional gain, per relative excess of cost", least=0)
    multiplier_i: float = option(0.01, "multiplier: integral gain, per relative excess of cost and update", least=0)
    multiplier_d: float = option(0.0, "multiplier: derivative gain, per rise of the relative excess", least=0)
    multiplier_max: float = option(10.0, "multiplier: largest value")
    # Execution.
    threads: int = option(2, "threads of the physics and of torch", least=1)
    eval_episodes: int = option(100, "episodes of the final evaluation (0: none)", least=0)

    def __post_init__(self) -> None:
        if self.algo not in ALGORITHMS:
            raise InputError(f'there is no algorithm "{self.algo}"; {did_you_mean(self.algo, ALGORITHMS)}')
        require_limits(self)
        require(self, "multiplier_max", self.multiplier_max >= self.multiplier, "at least the initial multiplier")
        require(self, "discount", 0 <= self.discount < 1, "0 to below 1")
        require(self, "gae", 0 <= self.gae <= 1, "0 to 1")
        require(self, "backtrack", 0 < self.backtrack < 1, "between 0 and 1")
        require(self, "hidden", len(self.hidden) >= 1 and min(self.hidden) >= 1, "sizes such as 256,256")
        require(self, "encoding", self.encoding in ("full", "near", "raw"), "full, near or raw")

    @property
    def safe(self) -> bool:
        """Whether the algorithm has a cost limit."""
        return self.algo in SAFE_ALGORITHMS

    @property
    def batch(self) -> int:
        """Rows per update."""
        return self.worlds * self.rollout

    def to_json(self) -> str:
        """Return the configuration as the JSON text that `from_json` reads."""
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TrainConfig:
        """Build a configuration from named values and the defaults of its algorithm; refuse unknown names."""
        values = convert_options(cls, data)
        return cls(**(DEFAULTS.get(values.get("algo", cls.algo), {}) | values))

    @classmethod
    def from_json(cls, path: Path) -> TrainConfig:
        """Read a configuration file: a JSON object of options, all optional."""
        return cls.from_dict(read_json_object(path))


# Defaults that differ from the common ones, by algorithm.
# A trust region takes one step per rollout: more and smaller rollouts work better.
TRUST_REGION = {"rollout": 250, "target_kl": 0.02, "passes": 4}
DEFAULTS: dict[str, dict[str, Any]] = dict.fromkeys(("trpo", "trpo-lagrangian", "cpo"), TRUST_REGION)


def convert_options(config: type[Any], data: dict[str, Any]) -> dict[str, Any]:
    """Convert named values to the types of a configuration's defaults; raise InputError for unknown names."""
    kinds = {f.name: type(f.default) for f in fields(config)}
    for name in data:
        if name not in kinds:
            raise InputError(f'there is no option "{name}"; {did_you_mean(name, kinds)}')
    return {name: _converted(config, name, value, kinds[name]) for name, value in data.items()}


def _converted(config: type[Any], name: str, value: Any, kind: type) -> Any:
    try:
        if kind is tuple:
            return tuple(int(part) for part in (value.split(",") if isinstance(value, str) else value) if part)
        if kind is bool or kind is str:
            if not isinstance(value, kind):
                raise TypeError
            return value
        number = float(value)
        if isinstance(value, bool) or not math.isfinite(number) or (kind is int and not number.is_integer()):
            raise TypeError
        return kind(number)
    except (TypeError, ValueError) as error:
        help_text = option_help(name, config)
        raise InputError(f"option {name} is {value!r}; expected {kind.__name__}: {help_text}") from error


def require_limits(config: Any) -> None:
    """Raise InputError unless every hyper-parameter keeps the limits of its declaration."""
    for one in fields(config):
        value, least, above = getattr(config, one.name), one.metadata.get("least"), one.metadata.get("above")
        if least is not None:
            require(config, one.name, value >= least, f"at least {least}" if least else "0 or more")
        if above is not None:
            require(config, one.name, value > above, f"above {above}")


def require(config: Any, name: str, holds: bool, allowed: str) -> None:
    """Raise InputError with the allowed values of a hyper-parameter unless the condition holds."""
    if not holds:
        help_text = option_help(name, type(config))
        raise InputError(f"option {name} is {getattr(config, name)!r}; allowed: {allowed} ({help_text})")
