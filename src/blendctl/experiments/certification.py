"""Certify a driver: run fresh episodes as units, test the dial's settings in order, and digest all parts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from blendctl.arrays import FloatArray
from blendctl.blender import Blender
from blendctl.blender.blend_dir import read_blend_dir
from blendctl.certificates import Bounds, Certificate, Claim, boldest_proven, certify
from blendctl.envs import find_task
from blendctl.envs.batch import LARGEST_SEED
from blendctl.envs.environment import EnvironmentSpec
from blendctl.errors import InputError
from blendctl.experiments.certify_units import CERTIFIED, blender_maker
from blendctl.experiments.engines import run_units
from blendctl.experiments.units import Unit, environment_digests, file_digests
from blendctl.user_code import is_python

RETURN_RATE = 0.1  # m per control step; returns of blendctl's worlds are clipped at five metres per second
GOALS = 10.0  # added to the upper end for the rewards of reached goals


@dataclass(frozen=True)
class Certification:
    """The episodes of one driver in one environment.

    Every episode starts with the driver as it was saved: frozen, and without state from other episodes.
    """

    controllers: tuple[str, ...]
    names: tuple[str, ...]
    blend: str | None = None  # directory; None: the controller alone
    world: str = ""  # a world of blendctl
    environment: EnvironmentSpec | None = None  # or another environment
    changes: dict[str, Any] = field(default_factory=dict)  # arguments of `Blender`
    episodes: int = 500
    seed: int = 50_000_000  # episode i has seed + i; far from the layouts of training and comparison
    steps: int | None = None  # maximum steps per episode
    block: int = 10  # episodes per unit

    def __post_init__(self) -> None:
        if self.seed + self.episodes > LARGEST_SEED:
            raise InputError(f"seeds end at 2**32 - 1, actually: {self.seed} and {self.episodes} episodes")

    @property
    def length(self) -> int:
        """Control steps of an episode in a world of blendctl; each costs 0 or 1."""
        return self.steps or find_task(self.world).max_episode_steps

    @property
    def return_range(self) -> tuple[float, float]:
        """Range of the returns in a world of blendctl beyond which they are clipped."""
        return -RETURN_RATE * self.length, RETURN_RATE * self.length + GOALS

    def at(self, prefer: float) -> Certification:
        """Return the same driver with another setting of its dial."""
        return replace(self, changes=self.changes | {"prefer": prefer, "cost_budget": None})

    def units(self) -> list[Unit]:
        """Split the episodes into units, in order."""
        names = ("controllers", "names", "blend", "world", "environment", "changes", "steps")
        common = {name: getattr(self, name) for name in names}
        common |= {"controllers": list(self.controllers), "names": list(self.names)}
        common["environment"] = "" if self.environment is None else self.environment.to_dict()
        return [
            Unit(CERTIFIED, common | {"seed": self.seed + first, "count": min(self.block, self.episodes - first)})
            for first in range(0, self.episodes, self.block)
        ]

    def make_blender(self) -> Blender:
        """Make its blender in this process, to check the settings."""
        return blender_maker(self.units()[0].parameters)(self.seed)

    def run(
        self, *, stop: Callable[[FloatArray], bool] | None = None, **engine_settings: Any
    ) -> tuple[FloatArray, FloatArray]:
        """Run the episodes and return their returns and costs, in the order of their seeds.

        `stop` is called after every unit with the costs so far. Only episodes without a gap before them count, so the
        order in which units finish cannot influence when it stops. engine_settings: arguments of `run_units`.
        """
        units = self.units()
        results: dict[str, FloatArray] = {}
        known = 0  # finished units before the first gap
        rows = np.zeros((2, 0))
        with closing(run_units(units, **engine_settings)) as finished:
            for done in finished:
                table = done.result.table
                assert table is not None
                results[done.unit.key] = np.stack([table["return"].to_numpy(), table["cost"].to_numpy()])
                while known < len(units) and units[known].key in results:
                    rows = np.concatenate([rows, results[units[known].key]], axis=1)
                    known += 1
                    if stop is not None and stop(rows[1]):
                        return rows[0], rows[1]
        return rows[0], rows[1]

    def digests(self) -> dict[str, Any]:
        """Return SHA-256 digests of controllers, networks, learner and environment."""
        found: dict[str, Any] = {
            "controllers": dict(zip(self.names, file_digests("", self.controllers), strict=True)),
            "environment": self._environment_digest(),
        }
        if self.blend is not None:
            found["blend"] = hashlib.sha256(read_blend_dir(self.blend).file.read_bytes()).hexdigest()
            with self.make_blender() as blender:
                network = blender.feature.network
            found |= {} if network is None else {"networks": digest_arrays(network)}
        return found

    def _environment_digest(self) -> str:
        if self.world:
            task = find_task(self.world)
            parts = [repr((task, task.robot_spec, self.length))]
            parts += file_digests(self.world, ()) if is_python(self.world) else []
        else:
            assert self.environment is not None
            parts = [*environment_digests(self.environment), repr(self.environment)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@dataclass(frozen=True)
class DialTest:
    """One setting of the dial, and the result of its episodes."""

    prefer: float
    certificate: Certificate

    def row(self) -> dict[str, Any]:
        """Return its numbers as JSON data."""
        shown = self.certificate.bounds
        values = {one.name: getattr(shown, one.name) for one in fields(Bounds)}
        return {"prefer": self.prefer, "passed": self.certificate.passed} | values


def certify_driver(
    plan: Certification, claim: Claim, *, sequential: bool = False, settings: int = 1, **engine_settings: Any
) -> Certificate:
    """Run the episodes and judge the claim; a sequential run stops when it is proven or hopeless."""

    def decided(costs: FloatArray) -> bool:
        return claim.outcome(costs, planned=plan.episodes) != "open"

    returns, costs = plan.run(stop=decided if sequential else None, **engine_settings)
    return certify(returns, costs, claim, sequential=sequential, settings=settings)


def certify_dial(
    plan: Certification, dial: Sequence[float], judge: Callable[[Certification], Certificate]
) -> tuple[int | None, list[DialTest]]:
    """Test settings from the safest to the boldest, until one does not pass; return the last that passed, and all."""
    tests: list[DialTest] = []
    for prefer in dial:
        tests.append(DialTest(prefer, judge(plan.at(prefer))))
        if not tests[-1].certificate.passed:
            break
    error = tests[0].certificate.claim.error
    return boldest_proven([test.certificate.bounds.p_value for test in tests], error=error), tests


def digest_arrays(value: Any) -> str:
    """Return the SHA-256 of all arrays in a dataclass and the dataclasses and sequences in it."""
    digest = hashlib.sha256()

    def add(part: Any) -> None:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.shape}{part.dtype}".encode() + np.ascontiguousarray(part).tobytes())
        elif is_dataclass(part) and not isinstance(part, type):
            for one in fields(part):
                add(getattr(part, one.name))
        elif isinstance(part, list | tuple):
            for one in part:
                add(one)
        elif isinstance(part, str | int | float | Path):
            digest.update(str(part).encode())

    add(value)
    return digest.hexdigest()
