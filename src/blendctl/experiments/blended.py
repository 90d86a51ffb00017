"""Units of the blended controller: one data point of a trace, with the learner handed on from the one before."""

from __future__ import annotations

import base64
import json
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from blendctl.bandit import BlendingBandit
from blendctl.blender import Blender, Record, Recorder, run
from blendctl.blender.compiled_loop import CompiledLoop, Stages, supports
from blendctl.controllers import open_controller
from blendctl.envs import SingleWorld
from blendctl.episodes import score
from blendctl.errors import InputError, StateError
from blendctl.experiments.moments import Moments
from blendctl.experiments.units import Result, unit_kind

FloatArray = NDArray[np.float64]

CHUNK = 1000  # stages that are added up at once


@unit_kind(version=1)
def blended(parameters: Mapping[str, Any], before: Result | None) -> Result:
    """Drive whole episodes one after another with one learner, and judge every choice by counterfactual steps.

    Parameters: world, controllers, names, first_seed (episode i has first_seed + i), episodes, noise_seed, steps (None:
    the world's own), features, context, and the bandit's options. The result's table has a row per episode; its values
    hold the learner for the next data point, its estimate theta, and the moments of true feedback and context.
    """
    seeds = range(int(parameters["first_seed"]), int(parameters["first_seed"]) + int(parameters["episodes"]))
    for drive in (drive_compiled, drive_plainly):  # if the first cannot, the second can
        blender = make_blender(parameters, before)
        gather = EpisodeAggregator(blender)
        with (
            closing(SingleWorld(str(parameters["world"]), max_episode_steps=parameters.get("steps"))) as env,
            blender,
        ):
            started = time.perf_counter()
            whole = drive(env, blender, gather, seeds)
            seconds = time.perf_counter() - started
        if whole:
            break
    bandit = blender.bandit
    values = {
        "learner": pack_learner(bandit),
        "theta": bandit.theta.tolist(),
        "stage": bandit.stage,
        "radius": bandit.radius,
        "regret_bound": bandit.regret_bound() if bandit.has_regret_bound else None,
        "regularization": bandit.options.regularization,
        "rescaled": bandit.rescaled,
        "events": blender.counts.events,
        "moments": gather.moments.plain(),
    }
    return Result(values, gather.table(), {"seconds": seconds, "iterations": float(gather.steps)})


def make_blender(parameters: Mapping[str, Any], before: Result | None, *, record: Recorder | None = None) -> Blender:
    """Make the blender of a unit; its learner goes on where that of the unit before stopped."""
    learner = None if before is None else unpack_learner(before.values["learner"])
    return Blender(
        [open_controller(spec, world=str(parameters["world"])) for spec in parameters["controllers"]],
        list(parameters["names"]),
        features=parameters["features"],
        context=parameters["context"],
        bandit=learner,
        fallback=parameters["names"][-1],
        seed=int(parameters["noise_seed"]),
        record=record,
        **({} if learner is not None else dict(parameters["options"])),
    )


def drive_compiled(env: SingleWorld, blender: Blender, gather: EpisodeAggregator, seeds: range) -> bool:
    """Drive in compiled loops; False if that cannot be done, and nothing of it may be used then."""
    if not supports(blender, env):
        return False
    with CompiledLoop(env, blender) as express:
        for seed in seeds:
            stages = express.episode(seed)
            if stages is None:
                return False
            gather.add_episode(stages)
    return True


def drive_plainly(env: SingleWorld, blender: Blender, gather: EpisodeAggregator, seeds: range) -> bool:
    """Drive as everyone does."""
    for record in run(env, blender, episodes=len(seeds), seed=seeds.start, counterfactual=True):
        gather.add(record)
    return True


class EpisodeAggregator:
    """Add up a drive by episode, a thousand stages at a time: a control loop should not wait for its statistics."""

    def __init__(self, blender: Blender) -> None:
        arms, m = len(blender.names), len(blender.objectives)
        bandit = blender.bandit
        scales = bandit.options.scales
        self.scales = np.ones(m) if scales is None else np.asarray(scales, np.float64)
        self.longest = bandit.options.feature_bound
        self.moments = Moments(bandit.n_features, m)
        self.steps = 0
        self._arms = arms
        self._rows: list[dict[str, float]] = []  # episodes
        self._now: dict[str, float] = {}
        self._at = 0
        self._reward, self._cost, self._bound = np.zeros(CHUNK), np.zeros(CHUNK), np.zeros(CHUNK)
        self._arm, self._switched = np.zeros(CHUNK, np.intp), np.zeros(CHUNK, np.bool_)
        self._truth = np.zeros((CHUNK, arms, m))
        self._psi = np.zeros((CHUNK, arms, bandit.n_features))

    def add(self, record: Record) -> None:
        """Take a record; microseconds."""
        at = self._at
        self._reward[at], self._cost[at] = record.reward, record.cost
        self._arm[at], self._switched[at] = record.arm, record.switched
        self._bound[at] = record.loss_bound
        self._truth[at] = np.nan if record.truth is None else record.truth
        self._psi[at] = np.nan if record.features is None else record.features
        self._at = at + 1
        if record.ended or self._at == CHUNK:
            self._flush()
        if record.ended:
            self._rows.append(self._now)
            self._now = {}

    def add_episode(self, stages: Stages) -> None:
        """Take all stages of an episode."""
        for start in range(0, len(stages.arm), CHUNK):
            reward, cost, arm, switched, bound, truth, psi = (part[start : start + CHUNK] for part in stages)
            self._at = n = len(arm)
            self._reward[:n], self._cost[:n], self._bound[:n] = reward, cost, bound
            self._arm[:n], self._switched[:n] = arm, switched
            self._truth[:n], self._psi[:n] = truth, psi
            self._flush()
        self._rows.append(self._now)
        self._now = {}

    def _flush(self) -> None:
        n, self._at = self._at, 0
        arm, truth, psi = self._arm[:n], self._truth[:n] / self.scales, self._psi[:n]
        known = (arm >= 0) & np.isfinite(truth).all(axis=(1, 2))
        told = score(truth[known], arm[known])
        bounds = self._bound[:n]
        decided = np.isfinite(bounds)
        sums = {
            "return": self._reward[:n].sum(),
            "cost": self._cost[:n].sum(),
            "length": np.int64(n),
            "correct": told.correct.sum(),
            "judged": known.sum(),
            "gap": told.gap.sum(),
            "loss": told.loss.sum(),
            "switches": self._switched[:n].sum(),
            "bound": bounds[decided].sum(),
            "decided": decided.sum(),
        } | {f"driven_{index}": (arm == index).sum() for index in range(self._arms)}
        for name, total in sums.items():
            self._now[name] = self._now.get(name, 0) + total.item()
        self.steps += n
        seen = known & np.isfinite(psi).all(axis=(1, 2))
        rows, feedback = psi[seen].reshape(-1, psi.shape[-1]), truth[seen].reshape(-1, truth.shape[-1])
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        self.moments.add(rows * np.minimum(1.0, self.longest / np.maximum(length, 1e-300)), feedback)

    def table(self) -> pa.Table:
        """Give a row per episode."""
        if self._at or self._now:
            raise StateError("the drive stopped within an episode")
        return pa.table({name: [row[name] for row in self._rows] for name in self._rows[0]})


def pack_learner(bandit: BlendingBandit) -> str:
    """Give a learner as text that JSON can hold, the same text for the same learner."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learner.safetensors"
        bandit.save(path)
        return base64.b64encode(_in_order(path.read_bytes())).decode()


def _in_order(data: bytes) -> bytes:
    """Sort the header of a safetensors file: its writer leaves the order of the metadata to chance."""
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.dumps(json.loads(data[8:end]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)  # the numbers stay aligned
    return len(header).to_bytes(8, "little") + header + data[end:]


def unpack_learner(text: str) -> BlendingBandit:
    """Read a learner back; it continues bit for bit."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learner.safetensors"
        try:
            path.write_bytes(base64.b64decode(text, validate=True))
        except ValueError as error:
            raise InputError(f"this is no saved learner: {error}") from error
        return BlendingBandit.load(path)
