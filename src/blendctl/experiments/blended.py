"""Units of the blended controller: one data point of a trace, which continues with the learner of the previous one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa

from blendctl.arrays import ArmArray, FloatArray
from blendctl.bandit import BlendingBandit
from blendctl.blender import Blender, Record, Recorder, run
from blendctl.blender.compiled_loop import CompiledLoop, Stages, empty_stages, supports
from blendctl.controllers import open_controller
from blendctl.envs import SingleWorld
from blendctl.episodes import score
from blendctl.errors import StateError
from blendctl.experiments.file_text import file_text, read_file_text
from blendctl.experiments.moments import Moments
from blendctl.experiments.units import Result, unit_kind

CHUNK = 1000  # stages per sum


@unit_kind(version=2)
def blended(parameters: Mapping[str, Any], before: Result | None) -> Result:
    """Run episodes one after another with one learner, and evaluate every choice by counterfactual steps.

    Parameters: world, controllers, names, first_seed (episode i has first_seed + i), episodes, noise_seed, steps (None:
    the world's own), features, context, and the bandit's options. The result's table has a row per episode; its values
    hold the learner for the next data point, its estimate theta, the moments of true feedback and context, and the sum
    of the losses of the choices in the feedback that the context leads to expect.
    """
    seeds = range(int(parameters["first_seed"]), int(parameters["first_seed"]) + int(parameters["episodes"]))
    # If the compiled loop does not support the run, the plain loop starts from the beginning.
    for drive in (drive_compiled, drive_plainly):
        blender = make_blender(parameters, before)
        aggregator = EpisodeAggregator(blender)
        with closing(SingleWorld(str(parameters["world"]), max_episode_steps=parameters.get("steps"))) as env, blender:
            started = time.perf_counter()
            complete = drive(env, blender, aggregator, seeds)
            seconds = time.perf_counter() - started
        if complete:
            break
    bandit = blender.bandit
    values = {
        "learner": file_text(bandit.save),
        "theta": bandit.theta.tolist(),
        "stage": bandit.stage,
        "radius": bandit.radius,
        "regret_bound": bandit.regret_bound() if bandit.has_regret_bound else None,
        "regularization": bandit.options.regularization,
        "rescaled": bandit.rescaled,
        "events": blender.counts.events,
        "moments": aggregator.moments.plain(),
        "expected_loss": aggregator.expected_loss(bandit.options.regularization),
    }
    return Result(values, aggregator.table(), {"seconds": seconds, "iterations": float(aggregator.steps)})


def make_blender(parameters: Mapping[str, Any], before: Result | None, *, record: Recorder | None = None) -> Blender:
    """Make the blender of a unit; it continues with the learner of the unit before."""
    learner = None if before is None else read_file_text(before.values["learner"], BlendingBandit.load)
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


def drive_compiled(env: SingleWorld, blender: Blender, aggregator: EpisodeAggregator, seeds: range) -> bool:
    """Run the episodes in the compiled loop; return False if it does not support them: then discard `aggregator`."""
    if not supports(blender, env):
        return False
    with CompiledLoop(env, blender) as loop:
        for seed in seeds:
            stages = loop.episode(seed)
            if stages is None:
                return False
            aggregator.add_episode(stages)
    return True


def drive_plainly(env: SingleWorld, blender: Blender, aggregator: EpisodeAggregator, seeds: range) -> bool:
    """Run the episodes in the plain loop, which supports every blender."""
    for record in run(env, blender, episodes=len(seeds), seed=seeds.start, counterfactual=True):
        aggregator.add(record)
    return True


class EpisodeAggregator:
    """Sum up a run by episode, a thousand stages at a time, because sums at every control step would slow it down."""

    def __init__(self, blender: Blender) -> None:
        arms, m, bandit = len(blender.names), len(blender.objectives), blender.bandit
        scales = bandit.options.scales
        self.scales = np.ones(m) if scales is None else np.asarray(scales, np.float64)
        self.feature_bound = bandit.options.feature_bound
        self.moments = Moments(bandit.n_features, m)
        self.steps = 0
        self._rows: list[dict[str, float]] = []  # finished episodes
        self._episode: dict[str, float] = {}  # sums of the running episode
        self._pending = 0  # stages in the buffer
        self._choices: list[tuple[FloatArray, ArmArray]] = []  # contexts (n, arms, features) and arms (n,)
        self._buffer = empty_stages(CHUNK, arms, objectives=m, features=bandit.n_features)

    def add(self, record: Record) -> None:
        """Add one stage; this takes microseconds."""
        at, buffer = self._pending, self._buffer
        buffer.reward[at], buffer.cost[at], buffer.bound[at] = record.reward, record.cost, record.loss_bound
        buffer.arm[at], buffer.switched[at] = record.arm, record.switched
        buffer.truth[at] = np.nan if record.truth is None else record.truth
        buffer.psi[at] = np.nan if record.features is None else record.features
        self._pending = at + 1
        if record.ended or self._pending == CHUNK:
            self._sum(Stages._make(column[: self._pending] for column in buffer))
            self._pending = 0
        if record.ended:
            self._end_episode()

    def add_episode(self, stages: Stages) -> None:
        """Add all stages of an episode."""
        for start in range(0, len(stages.arm), CHUNK):
            self._sum(Stages._make(column[start : start + CHUNK] for column in stages))
        self._end_episode()

    def _end_episode(self) -> None:
        self._rows.append(self._episode)
        self._episode = {}

    def _sum(self, stages: Stages) -> None:
        arm, truth, psi = stages.arm, stages.truth / self.scales, stages.psi
        known = (arm >= 0) & np.isfinite(truth).all(axis=(1, 2))
        scores = score(truth[known], arm[known])
        decided = np.isfinite(stages.bound)
        sums = {
            "return": stages.reward.sum(),
            "cost": stages.cost.sum(),
            "length": np.int64(len(arm)),
            "correct": scores.correct.sum(),
            "judged": known.sum(),
            "gap": scores.gap.sum(),
            "loss": scores.loss.sum(),
            "switches": stages.switched.sum(),
            "bound": stages.bound[decided].sum(),
            "decided": decided.sum(),
        } | {f"driven_{index}": (arm == index).sum() for index in range(truth.shape[1])}
        for name, total in sums.items():
            self._episode[name] = self._episode.get(name, 0) + total.item()
        self.steps += len(arm)
        usable = known & np.isfinite(psi).all(axis=(1, 2))
        psi = psi[usable] / np.maximum(np.linalg.norm(psi[usable], axis=2, keepdims=True) / self.feature_bound, 1.0)
        self.moments.add(psi.reshape(-1, psi.shape[-1]), truth[usable].reshape(-1, truth.shape[-1]))
        self._choices.append((psi, arm[usable]))

    def expected_loss(self, regularization: float) -> dict[str, float]:
        """Return the sum of the choices' maximal losses in the expected feedback, and the stages that it is of.

        Expected is theta* psi, with theta* of these stages. The bound of the loss is about this part. What is not
        linear in the context, such as the effect of an unobserved speed, is noise to the learner and adds to the loss.
        """
        star = self.moments.fit(regularization)
        losses = [score(psi @ star.T, arm).loss for psi, arm in self._choices]
        return {"sum": float(sum(loss.sum() for loss in losses)), "stages": sum(map(len, losses))}

    def table(self) -> pa.Table:
        """Return a row per episode."""
        if self._pending or self._episode:
            raise StateError("the run stopped within an episode")
        return pa.Table.from_pylist(self._rows)
