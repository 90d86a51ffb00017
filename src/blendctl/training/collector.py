"""Collect rollouts in many worlds in lock-step, with advantages and targets for the critics."""

from __future__ import annotations

import functools
from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blendctl.errors import InputError, StateError
from blendctl.training.advantages import estimate_advantages
from blendctl.training.policy import Policy


class VectorEnvironment(Protocol):
    """The vector environment that training needs: Gymnasium's interface, same-step autoreset, snapshots."""

    num_envs: int

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start an episode in every world, or in those of options["reset_mask"]; world i gets seed + i."""

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Step every world; infos["cost"] (n,) and, where an episode ended, infos["final_obs"]."""

    def snapshot(self) -> list[bytes]:
        """Return the complete state of every world."""

    def restore(self, snapshots: list[bytes]) -> Any:
        """Continue from a snapshot, bit for bit."""


@dataclass(frozen=True)
class RolloutBatch:
    """One rollout, flattened: rows = steps * worlds. "Behaviour" is the policy that drove."""

    inputs: Tensor  # (rows, encoding.size)
    actions: Tensor  # (rows, action_size), before they are clipped to [-1, 1]
    means: Tensor  # (rows, action_size) of the behaviour
    log_std: Tensor  # (action_size,) of the behaviour
    log_probs: Tensor  # (rows,)
    advantages: Tensor  # (rows,) of rewards
    cost_advantages: Tensor  # (rows,)
    returns: Tensor  # (rows,) targets of the critic
    cost_returns: Tensor  # (rows,) targets of the cost critic
    episode_cost: float  # cost per episode of the behaviour
    episode_length: float


class EpisodeTotals:
    """Totals of the running and of the latest finished episodes."""

    def __init__(self, worlds: int, *, keep: int = 100) -> None:
        self.running = np.zeros((3, worlds))  # return, cost, length so far
        self.finished: deque[list[float]] = deque(maxlen=keep)

    def add(self, rewards: NDArray[Any], costs: NDArray[Any], ended: NDArray[np.bool_]) -> None:
        """Add one step of every world."""
        self.running += np.stack([rewards, costs, np.ones_like(rewards)])
        self.finished.extend(self.running[:, ended].T.tolist())
        self.drop(ended)

    def drop(self, worlds: NDArray[np.bool_]) -> None:
        """Discard the running episodes of some worlds."""
        self.running[:, worlds] = 0.0

    def restore(self, running: NDArray[np.float64], finished: list[list[float]]) -> None:
        """Continue with the totals (3, worlds) of running episodes, and those of the latest finished ones."""
        self.running = running.copy()
        self.finished.clear()
        self.finished.extend([float(a), float(b), float(c)] for a, b, c in finished)

    def means(self) -> tuple[float, float, float]:
        """Return mean return, cost and length of the latest finished episodes (NaN before the first)."""
        if not self.finished:
            return np.nan, np.nan, np.nan
        episode_return, cost, length = np.mean(np.array(self.finished), axis=0).tolist()
        return episode_return, cost, length


class RolloutCollector:
    """Collect rollouts of the present policy, across episodes.

    Worlds that start together end together, and a rollout would cover only one part of the episodes. So the first
    episode of each world ends at a different step; from then on every rollout covers all parts of the episodes.
    With `cut`, every episode ends after `cut` steps; costs are still per episode of full length.
    """

    def __init__(
        self, worlds: VectorEnvironment, policy: Policy, *, episode_length: int, seed: int, cut: int | None = None
    ) -> None:
        self.worlds = worlds
        self.policy = policy
        self.episode_length = episode_length  # used until an episode has ended
        self.rng = np.random.default_rng([seed, 1])  # action noise
        self.steps = 0  # steps of each world so far
        self.cut = cut
        self.first_ends = np.arange(1, worlds.num_envs + 1) * (cut or episode_length) // worlds.num_envs
        self.episodes = EpisodeTotals(worlds.num_envs)
        self.observations, _ = worlds.reset(seed=seed)
        size = policy.encoding.observation_size
        if self.observations.shape != (worlds.num_envs, size):
            raise InputError(f"the worlds return observations {self.observations.shape}; expected: (n, {size})")

    def rollout(self, steps: int, *, discount: float, gae: float) -> RolloutBatch:
        """Collect `steps` steps in every world."""
        policy, n = self.policy, self.worlds.num_envs
        size, action_size = policy.encoding.size, policy.log_std.numel()
        # One extra row: the state after the last step.
        inputs = np.empty((steps + 1, n, size), np.float32)
        actions = np.empty((steps, n, action_size), np.float32)
        means = np.empty((steps, n, action_size), np.float32)
        rewards, costs = np.empty((steps, n), np.float32), np.empty((steps, n), np.float32)
        terminated, ended = np.zeros((steps, n), np.bool_), np.zeros((steps, n), np.bool_)
        finals: list[tuple[int, int, NDArray[np.float32]]] = []  # step, world, encoded last observation
        std = torch.exp(policy.log_std.detach()).numpy()
        for t in range(steps):
            inputs[t] = policy.encoding(self.observations)
            means[t] = self._means(inputs[t])
            actions[t] = means[t] + std * self.rng.standard_normal((n, action_size), np.float32)
            step = self.worlds.step(np.clip(actions[t], -1.0, 1.0).astype(np.float64))
            self.observations, rewards[t], terminated[t], truncated, infos = step
            costs[t] = infos["cost"]
            ended[t] = terminated[t] | truncated
            self.episodes.add(rewards[t], costs[t], ended[t])
            finals += [(t, w, policy.encoding(last)) for w, last in final_observations(infos, ended[t]).items()]
            self.steps += 1
            cut = (self.first_ends == self.steps) & ~ended[t]
            if cut.any():
                finals += [(t, int(w), policy.encoding(self.observations[w])) for w in np.flatnonzero(cut)]
                ended[t] |= cut
                self.episodes.drop(cut)
                self.observations, _ = self.worlds.reset(options={"reset_mask": cut})
        inputs[steps] = policy.encoding(self.observations)
        if not (np.isfinite(rewards).all() and np.isfinite(costs).all() and np.isfinite(inputs).all()):
            raise StateError("the worlds returned NaN or infinite observations, rewards or costs")
        with torch.no_grad():
            every = torch.from_numpy(inputs.reshape(-1, size))
            value, cost_value = (v.numpy().reshape(steps + 1, n) for v in policy.values(every))
            next_value, next_cost_value = value[1:].copy(), cost_value[1:].copy()
            if finals:
                last_values = policy.values(torch.from_numpy(np.stack([row for _, _, row in finals])))
                for (t, world, _), v, c in zip(finals, *(v.numpy() for v in last_values), strict=True):
                    next_value[t, world], next_cost_value[t, world] = v, c
            action_rows = torch.from_numpy(actions.reshape(-1, action_size))
            mean_rows = torch.from_numpy(means.reshape(-1, action_size))
            log_probs = policy.log_prob(mean_rows, action_rows)
        estimate = functools.partial(
            estimate_advantages, terminated=terminated, ended=ended, discount=discount, gae=gae
        )
        estimates = (
            *estimate(rewards, value[:-1], next_values=next_value),
            *estimate(costs, cost_value[:-1], next_values=next_cost_value),
        )
        rows = [torch.from_numpy(np.ascontiguousarray(a).reshape(-1)) for a in estimates]
        length = self.episodes.means()[2]
        length = float(self.episode_length) if np.isnan(length) or self.cut else length
        return RolloutBatch(
            every[: steps * n],
            action_rows,
            mean_rows,
            policy.log_std.detach().clone(),
            log_probs,
            advantages=rows[0],
            returns=rows[1],
            cost_advantages=rows[2],
            cost_returns=rows[3],
            episode_cost=float(costs.mean(dtype=np.float64)) * length,
            episode_length=length,
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the present observations and the totals of running episodes; the worlds have a snapshot."""
        return {
            "worlds.observations": np.array(self.observations, np.float64),
            "episodes.running": self.episodes.running.copy(),
        }

    def state(self) -> dict[str, Any]:
        """Return the rest of the state as JSON data."""
        return {
            "world_steps": self.steps,
            "finished": list(self.episodes.finished),
            "noise_rng": self.rng.bit_generator.state,
        }

    def restore(self, arrays: dict[str, NDArray[Any]], state: dict[str, Any]) -> None:
        """Continue from `arrays()` and `state()` of an earlier collector, in worlds that were restored."""
        self.observations = arrays["worlds.observations"].copy()
        self.episodes.restore(arrays["episodes.running"], state["finished"])
        self.rng.bit_generator.state = state["noise_rng"]
        self.steps = int(state.get("world_steps", state["steps"]))  # older runs have one number for both

    def _means(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the actor's means; on one thread, because torch's threads slow the physics' threads down."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        with torch.inference_mode():
            means: NDArray[np.float32] = self.policy.actor(torch.from_numpy(inputs)).numpy()
        torch.set_num_threads(threads)
        return means


def final_observations(infos: dict[str, Any], ended: NDArray[np.bool_]) -> dict[int, NDArray[Any]]:
    """Return the last observation of each episode that just ended, by world."""
    where = np.flatnonzero(ended)
    if len(where) == 0:
        return {}
    if "final_obs" not in infos:
        raise StateError(
            "an episode ended without infos['final_obs']; make the worlds with same-step autoreset: training needs "
            "the last observation of an episode that a time limit ended"
        )
    return {int(world): np.asarray(infos["final_obs"][world]) for world in where}
