"""Candidates for a blend: learned look-ahead, and simulated look-ahead where copies are exact, with their settings."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

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
DWELLS = (1, 3)  # minimum decisions per controller
MINIBATCH = 256
COPY_STEPS = 3  # cost of copying an environment, in control steps
HORIZONS = (4, 16)  # of simulated futures, in decisions


@dataclass(frozen=True)
class EnvSource:
    """The environment of a fit; makes instances on demand."""

    make: MakeEnv
    spec: EnvironmentSpec | None = None  # None if it has no name

    @property
    def world(self) -> str | None:
        """The name of a world of blendctl with its own cost, None for another environment."""
        return self.spec.name if self.spec is not None and self.spec.is_plain_world else None

    def copy_seconds(self) -> float | None:
        """Return the time to copy the environment; None if copies are not exact."""
        if self.world is not None:
            return 0.0
        env = FlatEnv(self.make())
        copier = find_copier(env).copier
        if copier is None:
            return None
        env.reset(seed=0)
        copier.copy(env)
        started = time.perf_counter()
        copier.copy(env)
        return time.perf_counter() - started

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
    """The task for which candidates are made."""

    source: EnvSource
    controllers: Sequence[Controller]
    weight: float  # cost weight at which the controllers have equal value
    length: float  # control steps of an episode
    seed: int

    @property
    def weight_range(self) -> tuple[float, float]:
        """Range of the dial."""
        return self.weight / DIAL_SPAN, self.weight * DIAL_SPAN


@dataclass(frozen=True)
class Candidate:
    """The settings of a blend, without its networks."""

    kind: Literal["learned", "simulated"]
    hold: int
    horizon: int | None = None  # control steps of a simulated future
    prefer: float = PREFERENCES[0]
    dwell: int = DWELLS[0]
    rule: str | None = None  # None: the context's

    def about(self) -> dict[str, Any]:
        """Return its settings as JSON data."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def feature(self, task: ContextTask, network: LookAheadNetwork | None) -> LookAhead | SimulatedLookAhead:
        """Return its context."""
        flattening = task.source.flattening()
        if self.kind == "learned":
            return LookAhead(
                network, prefer=self.prefer, episode_steps=round(task.length), flattening=flattening
            )  # fmt: skip
        assert self.horizon is not None
        return SimulatedLookAhead(
            horizon=self.horizon,
            samples=1,
            hold=self.hold,
            network=False if network is None else network,
            prefer=self.prefer,
            weight_range=task.weight_range,
            discount=discount_of(task.length),
            episode_steps=round(task.length),
            flattening=flattening,
            seed=task.seed,
        )

    def blender(self, task: ContextTask, network: LookAheadNetwork | None, about: Mapping[str, Any]) -> Blender:
        """Make the blender; about: names, objectives and fallback."""
        rule: dict[str, Any] = {} if self.rule is None else {"rule": self.rule}
        return Blender(
            task.controllers,
            list(about["names"]),
            features=self.feature(task, network),
            hold=self.hold,
            dwell=self.dwell,
            objectives=list(about["objectives"]),
            fallback=about["fallback"],
            frozen=True,
            seed=task.seed,
            **rule,
        )


def learn_network(
    task: ContextTask, hold: int, *, plan: FitPlan, on_progress: Callable[[float], None]
) -> LookAheadNetwork:
    """Train look-ahead networks that decide every `hold` steps; from branches if copies are exact."""
    from blendctl.training import train_lookahead  # needs torch

    low, high = task.weight_range
    worlds = task.source.open(plan.worlds, autoreset_mode=AutoresetMode.SAME_STEP, branching=plan.branching)
    encoding = None if task.source.world is None else world_encodings(task.source.world).context
    branches = len(task.controllers) if plan.branching else 1
    decisions = max(plan.steps // len(plan.holds) // (hold * branches), 10 * plan.worlds)
    config = LookAheadConfig(
        steps=decisions * hold * branches,
        seed=task.seed % SEEDS,
        hold=hold,
        commit=0,
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
            return train_lookahead(
                flat_controllers(task.controllers, task.source.make()),
                worlds,
                encoding=encoding,
                config=config,
                out=folder,
                on_progress=lambda progress: on_progress(progress.share),
            )
    finally:
        worlds.close()


def simulated_candidates(holds: Sequence[int], *, length: float, arms: int, most_steps: float) -> list[Candidate]:
    """Return simulated contexts within a budget of simulated control steps per episode; copies count as steps."""
    found = []
    for hold, decisions in itertools.product(holds, HORIZONS):
        horizon = hold * decisions
        if length / hold * arms * (COPY_STEPS + horizon) <= most_steps:
            found.append(Candidate("simulated", hold, horizon))
    return found


def discount_of(length: float) -> float:
    """Return the discount per control step: a horizon of a third of an episode, 20 to 200 steps."""
    return 1.0 - 1.0 / min(max(length / 3.0, 20.0), 200.0)
