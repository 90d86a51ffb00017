"""The training loop: simulate, learn, yield a record; a saved state resumes bit for bit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium.vector import AutoresetMode

from blendctl.controllers import NetworkController
from blendctl.controllers.encoding import Encoding
from blendctl.envs import VectorWorld, find_task
from blendctl.errors import StateError
from blendctl.training.algorithm import Algorithm, Metrics, optimiser_tensors, restore_optimiser
from blendctl.training.collector import RolloutCollector, VectorEnvironment
from blendctl.training.config import TrainConfig
from blendctl.training.cpo import CPO
from blendctl.training.encodings import world_encodings
from blendctl.training.lagrangian import PPOLagrangian, TRPOLagrangian
from blendctl.training.policy import Policy
from blendctl.training.ppo import PPO
from blendctl.training.trpo import TRPO

ALGORITHM_CLASSES: dict[str, type[Algorithm]] = {
    "ppo": PPO,
    "ppo-lagrangian": PPOLagrangian,
    "trpo": TRPO,
    "trpo-lagrangian": TRPOLagrangian,
    "cpo": CPO,
}
FINAL_RATE_FACTOR = 0.1  # annealed learning rates end at this share of their start


@dataclass(frozen=True)
class UpdateRecord:
    """One update of a training run."""

    update: int
    steps: int  # environment steps so far
    episode_return: float  # mean of the latest finished episodes; NaN before the first
    episode_cost: float
    episode_length: float
    rollout_cost: float  # cost per episode at this rollout's rate
    simulate_seconds: float
    learn_seconds: float
    metrics: Metrics

    def to_dict(self) -> dict[str, float | int | None]:
        """Return the record as flat JSON data; NaN becomes None."""
        flat = {k: v for k, v in vars(self).items() if k != "metrics"} | self.metrics
        return {k: None if v != v else v for k, v in flat.items()}


def make_worlds(world: str, *, count: int, threads: int, episode: int | None = None) -> VectorWorld:
    """Make worlds that run in lock-step, with same-step autoreset."""
    return VectorWorld(world, count, threads=threads, autoreset_mode=AutoresetMode.SAME_STEP, max_episode_steps=episode)


class Trainer:
    """One training run in memory; `tensors()` and `state()` are all that a resumed run needs."""

    def __init__(
        self,
        config: TrainConfig,
        *,
        worlds: VectorEnvironment | None = None,
        encoding: Encoding | None = None,
        action_size: int = 2,
        episode_length: int | None = None,
        start_from: NetworkController | None = None,
    ) -> None:
        self.config = config
        torch.set_num_threads(config.threads)
        encoding = encoding or world_encodings(config.world, encoding=config.encoding).policy
        self.worlds: VectorEnvironment = worlds or make_worlds(
            config.world, count=config.worlds, threads=config.threads, episode=config.episode or None
        )
        self.policy = Policy(
            encoding,
            action_size,
            hidden=config.hidden,
            log_std=config.log_std,
            generator=torch.Generator().manual_seed(config.seed),
        )
        if start_from is not None:
            self.policy.copy_from(start_from)
        self.algorithm = ALGORITHM_CLASSES[config.algo](self.policy, config)
        length = episode_length or find_task(config.world).max_episode_steps
        self.collector = RolloutCollector(
            self.worlds, self.policy, episode_length=length, cut=config.episode or None, seed=config.seed
        )
        self.rng = np.random.default_rng([config.seed, 2])  # minibatches
        self.update = 0
        self.steps = 0

    def configure(self, config: TrainConfig) -> None:
        """Continue with another configuration of the same networks and worlds."""
        self.config = config
        self.algorithm.config = config

    def records(self) -> Iterator[UpdateRecord]:
        """Train until `config.steps`; yield a record after each update. Raise StateError if it diverges."""
        config = self.config
        while self.steps < config.steps:
            start = time.perf_counter()
            batch = self.collector.rollout(config.rollout, discount=config.discount, gae=config.gae)
            simulated = time.perf_counter()
            self._set_rates()
            metrics = self.algorithm.update(batch, self.rng)
            self.update += 1
            self.steps += config.batch
            self._check(metrics)
            episode_return, cost, length = self.collector.episodes.means()
            yield UpdateRecord(
                self.update,
                self.steps,
                episode_return,
                cost,
                episode_length=length,
                rollout_cost=batch.episode_cost,
                simulate_seconds=simulated - start,
                learn_seconds=time.perf_counter() - simulated,
                metrics=metrics,
            )

    def _set_rates(self) -> None:
        done = min(self.steps / self.config.steps, 1.0)
        factor = 1.0 - (1.0 - FINAL_RATE_FACTOR) * done if self.config.anneal else 1.0
        rates = {"policy": self.config.policy_lr, "critics": self.config.value_lr}
        for name, optimiser in self.algorithm.optimisers.items():
            for group in optimiser.param_groups:
                group["lr"] = rates[name] * factor

    def _check(self, metrics: Metrics) -> None:
        numbers = [*metrics.values(), *(float(p.detach().abs().max()) for p in self.policy.parameters())]
        if not np.isfinite(numbers).all():
            raise StateError(
                f"training diverged at step {self.steps:,} (NaN or infinity in networks or metrics); "
                "try a smaller policy_lr, value_lr or target_kl"
            )

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return networks, optimisers and worlds as named tensors."""
        out = {f"policy.{name}": tensor for name, tensor in self.policy.state_dict().items()}
        for name, optimiser in self.algorithm.optimisers.items():
            out |= {f"optimiser.{name}.{key}": tensor for key, tensor in optimiser_tensors(optimiser).items()}
        snapshots = self.worlds.snapshot()
        out["worlds.bytes"] = torch.frombuffer(bytearray(b"".join(snapshots)), dtype=torch.uint8)
        out["worlds.sizes"] = torch.tensor([len(s) for s in snapshots], dtype=torch.int64)
        out |= {name: torch.from_numpy(array) for name, array in self.collector.arrays().items()}
        return {name: tensor.detach().clone().contiguous() for name, tensor in out.items()}

    def state(self) -> dict[str, Any]:
        """Return the rest of the state as JSON data."""
        return {
            "update": self.update,
            "steps": self.steps,
            "algorithm": self.algorithm.state(),
            "batch_rng": self.rng.bit_generator.state,
        } | self.collector.state()

    def restore(self, tensors: dict[str, torch.Tensor], state: dict[str, Any]) -> None:
        """Continue from `tensors()` and `state()` of an earlier run."""

        def under(prefix: str) -> dict[str, torch.Tensor]:
            return {key.removeprefix(prefix): t for key, t in tensors.items() if key.startswith(prefix)}

        self.policy.load_state_dict(under("policy."))
        for name, optimiser in self.algorithm.optimisers.items():
            restore_optimiser(optimiser, under(f"optimiser.{name}."))
        data = tensors["worlds.bytes"].numpy().tobytes()
        ends = np.cumsum(tensors["worlds.sizes"].numpy())
        starts = np.concatenate([[0], ends[:-1]])
        self.worlds.restore([data[a:b] for a, b in zip(starts, ends, strict=True)])
        self.collector.restore({name: tensor.numpy() for name, tensor in tensors.items()}, state)
        self.rng.bit_generator.state = state["batch_rng"]
        self.algorithm.restore(state["algorithm"])
        self.update, self.steps = int(state["update"]), int(state["steps"])
