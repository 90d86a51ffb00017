"""Candidates for the context of a blend: learned look-ahead, and simulated look-ahead where copies are exact."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode, VectorEnv

from blendctl.blender import Blender
from blendctl.controllers import Controller, LookAheadNetwork
from blendctl.envs.copies import find_copier
from blendctl.envs.environment import EnvironmentSpec
from blendctl.envs.lockstep import LockStepEnvs, lock_step
from blendctl.features import LookAhead, SimulatedLookAhead
from blendctl.features.flattening import FlatEnv, Flattening, flat_controllers
from blendctl.fitting.plan import SEEDS, FitPlan
from blendctl.training import LookAheadConfig
from blendctl.training.encodings import world_encodings

MakeEnv = Callable[[], gymnasium.Env[Any, Any]]

DIAL_SPAN = 10.0  # the dial reaches from a tenth to ten times the weight at which the controllers are equal
PREFERENCES = (0.5, 0.35, 0.65)  # of the dial; the first is that weight
MINIBATCH = 256
COPY_STEPS = 10  # control steps that a copy of an environment counts as
HORIZONS = (4, 16)  # of simulated futures, in decisions


@dataclass(frozen=True)
class Candidate:
    """A context with its settings."""

    feature: LookAhead | SimulatedLookAhead
    hold: int

    @property
    def network(self) -> LookAheadNetwork | None:
        """The networks that belong to it."""
        return self.feature.network if isinstance(self.feature.network, LookAheadNetwork) else None

    def preferring(self, prefer: float) -> Candidate:
        """Return it with another setting of the dial."""
        return replace(self, feature=replace(self.feature, prefer=prefer))

    def about(self) -> dict[str, Any]:
        """Return its settings as JSON data."""
        kind = "learned" if isinstance(self.feature, LookAhead) else "simulated"
        about = {"kind": kind, "hold": self.hold, "prefer": self.feature.prefer}
        if isinstance(self.feature, SimulatedLookAhead):
            about |= {"horizon": self.feature.horizon, "samples": self.feature.samples}
        return about

    def blender(
        self,
        controllers: Sequence[Controller],
        names: Sequence[str],
        *,
        objectives: Sequence[str],
        fallback: str,
        seed: int,
    ) -> Blender:
        """Make the blender."""
        return Blender(
            controllers, names, features=self.feature, hold=self.hold, objectives=objectives, fallback=fallback,
            frozen=True, seed=seed,
        )  # fmt: skip


@dataclass(frozen=True)
class EnvSource:
    """The environment of a fit, made as often as needed."""

    make: MakeEnv
    spec: EnvironmentSpec | None = None  # None if it has no name

    @property
    def world(self) -> str | None:
        """The name of a world of blendctl with its own cost, None for another environment."""
        return self.spec.name if self.spec is not None and self.spec.is_plain_world else None

    def copies_exactly(self) -> bool:
        """Return whether a copy of the environment continues as the environment does."""
        return self.world is not None or find_copier(FlatEnv(self.make())).copier is not None

    def open(
        self, count: int, *, autoreset_mode: AutoresetMode = AutoresetMode.DISABLED, branching: bool = False
    ) -> VectorEnv[Any, Any, Any]:
        """Return environments in lock-step whose observations are vectors; with copies if `branching`."""
        if self.world is not None and self.spec is not None:
            return self.spec.make_vector(count, autoreset_mode=autoreset_mode)
        envs = [FlatEnv(self.make()) for _ in range(count)]
        kind = lock_step if branching else LockStepEnvs
        return kind(envs, autoreset_mode=autoreset_mode)

    def flattening(self) -> Flattening | None:
        """Return the flattening of the observations; None if they are vectors."""
        flattening = Flattening.of(self.make().observation_space)
        return None if flattening.plain else flattening


@dataclass(frozen=True)
class ContextTask:
    """What candidates are made for."""

    source: EnvSource
    controllers: Sequence[Controller]
    weight: float  # return that a unit of cost is worth to controllers that are equal in value
    plan: FitPlan
    length: float  # control steps of an episode
    seed: int

    @property
    def weight_range(self) -> tuple[float, float]:
        """Range of the dial."""
        return self.weight / DIAL_SPAN, self.weight * DIAL_SPAN


def learn_context(task: ContextTask, hold: int, *, branching: bool, on_progress: Callable[[float], None]) -> Candidate:
    """Train look-ahead networks that decide every `hold` steps; from branches where copies are exact."""
    from blendctl.training import train_lookahead  # needs torch

    plan, (low, high) = task.plan, task.weight_range
    worlds = task.source.open(plan.worlds, autoreset_mode=AutoresetMode.SAME_STEP, branching=branching)
    encoding = None if task.source.world is None else world_encodings(task.source.world).context
    branches = len(task.controllers) if branching else 1
    decisions = max(plan.steps // len(plan.holds) // (hold * branches), 10 * plan.worlds)
    config = LookAheadConfig(
        steps=decisions * hold * branches,
        seed=task.seed % SEEDS,
        hold=hold,
        discount=discount_of(task.length),
        weight_low=low,
        weight_high=high,
        worlds=plan.worlds,
        random_share=0.3,
        explore=0.15,
        hidden=(64, 64),
        minibatch=MINIBATCH,
        reuse=plan.updates * MINIBATCH / decisions,
        final_reuse=plan.updates * MINIBATCH / decisions,
        target_rate=0.01,
        checkpoint_every=1e9,
    )
    try:
        with tempfile.TemporaryDirectory() as folder:
            network = train_lookahead(
                flat_controllers(task.controllers, task.source.make()),
                worlds,
                encoding=encoding,
                config=config,
                out=folder,
                on_progress=lambda progress: on_progress(progress.share),
            )
    finally:
        worlds.close()
    return Candidate(LookAhead(network, episode_steps=round(task.length), flattening=task.source.flattening()), hold)


def simulated_contexts(
    task: ContextTask, networks: Sequence[LookAheadNetwork], *, most_steps: float
) -> list[Candidate]:
    """Return simulated contexts that simulate at most so many control steps in an episode; copies count as steps."""
    by_hold, arms = {network.hold: network for network in networks}, len(task.controllers)
    found = []
    for hold, decisions in itertools.product(task.plan.holds, HORIZONS):
        horizon = hold * decisions
        if task.length / hold * arms * (COPY_STEPS + horizon) > most_steps:
            continue
        feature = SimulatedLookAhead(
            horizon=horizon,
            samples=1,
            hold=hold,
            network=by_hold.get(hold, False),
            weight_range=task.weight_range,
            discount=discount_of(task.length),
            episode_steps=round(task.length),
            flattening=task.source.flattening(),
            seed=task.seed,
        )
        found.append(Candidate(feature, hold))
    return found


def discount_of(length: float) -> float:
    """Return the discount per control step: a horizon of a third of an episode, 20 to 200 steps."""
    return 1.0 - 1.0 / min(max(length / 3.0, 20.0), 200.0)
