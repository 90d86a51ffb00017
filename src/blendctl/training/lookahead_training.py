"""Train look-ahead networks for a set of controllers in an environment; an interrupted run can be resumed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from blendctl.controllers import Controller, Encoding, LookAheadNetwork, write_lookahead
from blendctl.controllers.adapters import act_rows
from blendctl.controllers.card import versions
from blendctl.controllers.lookahead_file import LOOKAHEAD_FILE
from blendctl.controllers.lookahead_network import Normalisation, controller_digest, controller_label
from blendctl.controllers.path_encoding import MapDeclaration, PathEncoding
from blendctl.errors import FileFormatError, InputError
from blendctl.training import lookahead_checkpoint as checkpoint
from blendctl.training.lookahead_config import LookAheadConfig, require_several
from blendctl.training.lookahead_data import DecisionBuffer, OptionCollector, first_layout
from blendctl.training.lookahead_learner import LookAheadLearner
from blendctl.training.path_fit import fit_paths

HELD_OUT_SHARE = 0.05  # share of the decisions, the latest, that measure the accuracy
FIRST_UPDATE = 4000  # decisions before the first gradient step
NORMALISATION_STEPS = 300
PATH_SHARE = 0.15  # share of the run that is spent on paths
REPORT_EVERY = 10  # decisions of each world between two calls of on_progress
CHANGEABLE = ("threads", "checkpoint_every", "dial_points", "dial_episodes", "budget")  # without effect on learning
TURN_END = 0.25  # probability that a random turn ends after an option
NOTE = (
    "R² on decisions that no network was trained on, against targets that look one option ahead and then use the "
    "networks. The difference is between controllers at the same state; it decides which of them drives."
)


@dataclass(frozen=True)
class LookAheadProgress:
    """The progress of a training run."""

    steps: int
    share: float  # of the run, 0 to 1
    seconds: float
    loss: float  # of the latest gradient step; NaN before the first
    episode_return: float  # mean of the latest episodes, over all weights, with exploration; NaN before the first
    episode_cost: float


class _Run:
    """The parts of one training run."""

    def __init__(
        self,
        controllers: Sequence[Controller],
        environment: VectorEnv[Any, Any, Any],
        *,
        encoding: Encoding | Normalisation,
        paths: PathEncoding | None,
        config: LookAheadConfig,
    ) -> None:
        self.config, self.encoding, self.paths, self.controllers = config, encoding, paths, controllers
        self.collector = OptionCollector(
            environment,
            controllers,
            encode=encoding,
            hold=config.hold,
            commit=config.first_options,
            follow=config.following_options,
            discount=config.discount,
            seed=config.seed,
            paths=paths,
        )
        self.inputs = encoding.size + (0 if paths is None else paths.size)
        self.worlds = environment.num_envs
        self.decisions = max(1, config.steps // self.collector.steps_per_decision)  # of each world
        held_out = int(self.decisions * HELD_OUT_SHARE) * self.worlds
        self.replay = DecisionBuffer(self.decisions * self.worlds - held_out, len(controllers), self.inputs)
        self.held_out = DecisionBuffer(held_out, len(controllers), self.inputs)
        # One difference network is enough to choose the states; the final fit has all of them.
        self.learner = LookAheadLearner(self.inputs, len(controllers), config=replace(config, members=1))
        self.rng = np.random.default_rng([config.seed, 2])
        self.done = 0  # decisions of each world
        self.final = False  # all decisions are there, the final networks are being fitted
        self.due = 0.0  # gradient steps that are due
        self.loss = math.nan
        self.weights = self._draw_weights(self.worlds)
        self.arms = self.rng.integers(len(controllers), size=self.worlds)

    @property
    def steps(self) -> int:
        """Environment steps so far."""
        return self.done * self.collector.steps_per_decision

    @property
    def share(self) -> float:
        """Share of the run that is done: half of what follows the paths is the collection, half the final fit."""
        before = 0.0 if self.paths is None else PATH_SHARE
        final = 0.5 * self.learner.updates / self.final_updates if self.final else 0.0
        return before + (1.0 - before) * (0.5 * self.done / self.decisions + final)

    @property
    def finished(self) -> bool:
        """Whether the final networks are fitted."""
        return self.final and self.learner.updates >= self.final_updates

    @property
    def final_updates(self) -> int:
        """Gradient steps of the final fit."""
        return max(1, round(self.config.final_reuse * self.replay.size / self.config.minibatch))

    def advance(self) -> None:
        """Take one decision in every world with its gradient steps, or one gradient step of the final fit."""
        if self.final:
            self._update(self.learner.updates / self.final_updates)
            return
        self._collect()
        if self.done == self.decisions:
            self.begin_final_fit()

    def begin_final_fit(self) -> None:
        """Begin to fit new networks to all decisions: those of the collection saw the latest ones the least."""
        self.final = True
        self.learner = LookAheadLearner(self.inputs, len(self.controllers), config=self.config)
        self.learner.set_units(self.replay.take(slice(0, self.replay.size)))

    def _collect(self) -> None:
        config, replay, n = self.config, self.replay, self.worlds
        progress = self.done / self.decisions
        random_arms = self.rng.integers(len(self.controllers), size=n)
        if progress < config.random_share or not self.learner.updates:
            self.arms = np.where(self.rng.random(n) < TURN_END, random_arms, self.arms)
            decisions, ended = self.collector.collect(self.arms)
        else:
            greedy = self._greedy(self.collector.inputs())
            self.arms = np.where(self.rng.random(n) < config.explore, random_arms, greedy)
            decisions, ended = self.collector.collect(self.arms, self._greedy)
            if self.collector.follow:  # otherwise the end of a branch is right for every weight
                decisions.weights[:] = self.weights
        (replay if replay.size < replay.capacity else self.held_out).add(decisions)
        self.weights = np.where(ended, self._draw_weights(n), self.weights)
        self.done += 1
        if replay.size < min(FIRST_UPDATE, replay.capacity // 10):
            return
        if not self.learner.updates:
            self.learner.set_units(replay.take(slice(0, replay.size)))
        self.due += config.reuse * n / config.minibatch
        while self.due >= 1.0:
            self._update(0.5)  # the states still change: the learning rate does not fall until the final fit
            self.due -= 1.0

    def _greedy(self, inputs: NDArray[np.float32]) -> NDArray[np.intp]:
        return self.learner.choose(inputs, self.weights)

    def _update(self, progress: float) -> None:
        replay, rng = self.replay, self.rng
        minibatch = replay.take(rng.integers(replay.size, size=self.config.minibatch))
        self.loss = self.learner.update(minibatch, progress)

    def network(self, card: dict[str, Any]) -> LookAheadNetwork:
        """Return the trained networks with their card."""
        if self.held_out.size:
            rows = self.held_out.take(slice(0, self.held_out.size))
            weight = math.sqrt(self.config.weight_low * self.config.weight_high)
            accuracy = self.learner.accuracy(rows, weight)
            card = card | {"r2_level": list(accuracy.level), "r2_weight": weight}
            # Without branches no state has labels of two controllers.
            card["r2_difference"] = list(accuracy.difference) if self.collector.branching else None
        return self.learner.network(
            self.encoding,
            digests=tuple(controller_digest(controller) for controller in self.controllers),
            names=tuple(controller_label(controller) for controller in self.controllers),
            card=card,
            paths=self.paths,
        )

    def _draw_weights(self, n: int) -> NDArray[np.float64]:
        low, high = np.log(self.config.weight_low), np.log(self.config.weight_high)
        return np.asarray(np.exp(self.rng.uniform(low, high, n)))


def train_lookahead(
    controllers: Sequence[Controller],
    environment: VectorEnv[Any, Any, Any],
    *,
    encoding: Encoding | None = None,
    declaration: MapDeclaration | None = None,
    config: LookAheadConfig | None = None,
    out: str | Path,
    resume: bool = False,
    card: dict[str, Any] | None = None,
    on_progress: Callable[[LookAheadProgress], None] = lambda progress: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> LookAheadNetwork:
    """Train look-ahead networks and write them to `out`/lookahead.safetensors; `resume` continues an interrupted run.

    A resumed run continues with the same networks, optimiser and decisions, but in new episodes, so it is not bit for
    bit the run without the interruption. A finished run that is resumed returns the same networks.

    Args:
        controllers: Two or more, in the order that the networks will have.
        environment: Vector environment with `autoreset_mode=AutoresetMode.SAME_STEP` and `infos["cost"]`. With
            `snapshot` and `restore`, every state is labelled with all controllers.
        encoding: Encoding of the observations; None standardises them.
        declaration: What the lidars of the world show, for predicted paths; None uses none. It needs an encoding.
        config: Settings; None uses the defaults, or those of the run that is resumed.
        out: Run directory.
        resume: Continue the run in `out`.
        card: Further entries of the card, such as world and command.
        on_progress: Called every few decisions.
        should_stop: Asked after every decision; True writes a checkpoint and raises KeyboardInterrupt.
    """
    require_several(controllers)
    directory = Path(out)
    digests = [controller_digest(controller) for controller in controllers]
    saved = checkpoint.read_checkpoint(directory) if resume else None
    inputs: Encoding | Normalisation
    if saved is None:
        for name in (checkpoint.CHECKPOINT_FILE, LOOKAHEAD_FILE):
            if (directory / name).exists():
                raise InputError(f"{directory} already holds a run; resume it, or use another directory")
        config = config or LookAheadConfig()
        inputs = encoding or estimate_normalisation(environment, controllers, seed=config.seed)
    else:
        config = config or saved.config
        if replace(config, **{name: getattr(saved.config, name) for name in CHANGEABLE}) != saved.config:
            raise InputError(
                f"the run in {directory} has other options; when it is resumed, only these may change: "
                f"{', '.join(CHANGEABLE)}"
            )
        if digests != saved.digests:
            raise InputError(f"the run in {directory} has other controllers, or another order of them")
        inputs = encoding or saved.normalisation()
    torch.set_num_threads(config.threads)
    paths = _paths(environment, controllers, encoding, declaration, config, directory, on_progress, should_stop)
    run = _Run(controllers, environment, encoding=inputs, paths=paths, config=config)
    if saved is not None:
        _restore(run, saved, directory)
    before = 0.0 if saved is None else saved.seconds
    started = last_saved = time.monotonic()

    def save() -> None:
        checkpoint.write_checkpoint(
            directory,
            config=config,
            digests=digests,
            replay=run.replay,
            held_out=run.held_out,
            learner=run.learner,
            encoding=inputs,
            done=run.done,
            seconds=before + time.monotonic() - started,
            rng=run.rng,
        )

    while not run.finished:
        run.advance()
        now = time.monotonic()
        finished = run.finished
        if finished or (run.learner.updates if run.final else run.done) % REPORT_EVERY == 0:
            totals = run.collector.totals.means()[:2]
            on_progress(LookAheadProgress(run.steps, run.share, before + now - started, run.loss, *totals))
        stop = should_stop() and not finished
        if finished or stop or now - last_saved > config.checkpoint_every:
            save()
            last_saved = now
        if stop:
            raise KeyboardInterrupt
    network = run.network(
        {
            "controllers": [controller_label(controller) for controller in controllers],
            "command": "",
            "config": config.to_dict(),
            "layout_seeds": f"from {first_layout(config.seed)}",
            "steps": run.steps,
            "decisions": run.replay.size,
            "branches": run.collector.branching,
            "gradient_steps": run.learner.updates,
            "seconds": round(before + time.monotonic() - started, 1),
            "note": NOTE,
            "path_errors": None if run.paths is None else [round(float(error), 4) for error in run.paths.spread],
            "versions": versions("numpy", "torch", "gymnasium"),
        }
        | (card or {})
    )
    write_lookahead(network, directory / LOOKAHEAD_FILE)
    return network


def _paths(
    environment: VectorEnv[Any, Any, Any],
    controllers: Sequence[Controller],
    encoding: Encoding | None,
    declaration: MapDeclaration | None,
    config: LookAheadConfig,
    directory: Path,
    on_progress: Callable[[LookAheadProgress], None],
    should_stop: Callable[[], bool],
) -> PathEncoding | None:
    """Return the paths of an earlier part of the run, or fit them; None if the world or the settings have none."""
    if declaration is None or encoding is None or not config.points:
        return None
    if (directory / checkpoint.PATHS_FILE).exists():
        return checkpoint.read_path_encoding(directory)
    started = time.monotonic()

    def report(share: float) -> None:
        seconds = time.monotonic() - started
        on_progress(LookAheadProgress(0, PATH_SHARE * share, seconds, math.nan, math.nan, math.nan))

    paths = fit_paths(
        environment,
        controllers,
        encoding=encoding,
        declaration=declaration,
        config=config,
        on_progress=report,
        should_stop=should_stop,
    )
    checkpoint.write_path_encoding(paths, directory)
    return paths


def estimate_normalisation(
    environment: VectorEnv[Any, Any, Any], controllers: Sequence[Controller], *, seed: int
) -> Normalisation:
    """Measure mean and standard deviation of each entry of the observation while the controllers take turns."""
    rng = np.random.default_rng([seed, 3])
    observations = np.asarray(environment.reset(seed=4_000_000 + seed)[0], np.float64)
    visited = [observations]
    for step in range(NORMALISATION_STEPS):
        controller = controllers[(step // 20) % len(controllers)]
        observations = np.asarray(environment.step(act_rows(controller, observations, rng))[0], np.float64)
        visited.append(observations)
    rows = np.concatenate(visited)
    scale = np.maximum(rows.std(axis=0), 1e-3)
    return Normalisation(rows.mean(axis=0).astype(np.float32), scale.astype(np.float32))


def _restore(run: _Run, saved: checkpoint.LookAheadCheckpoint, directory: Path) -> None:
    """Continue from a checkpoint, in new episodes with layouts that the run has not visited."""
    for replay, size, decisions in (
        (run.replay, saved.size, checkpoint.read_decisions(directory)),
        (run.held_out, saved.held_out, checkpoint.read_held_out(directory) if saved.held_out else ()),
    ):
        for part in decisions:
            if part.inputs.shape[1:] != replay.rows.inputs.shape[1:] or part.near_carry.shape[1:] != (
                len(saved.digests),
            ):
                raise FileFormatError(f"decisions in {directory} do not fit the encoding or the controllers")
            replay.add(part)
        if replay.size < size:
            raise FileFormatError(f"{directory} lacks decisions that its checkpoint refers to; start the run again")
        replay.size = size
    run.done = saved.done
    if run.done == run.decisions:
        run.begin_final_fit()
    run.learner.restore(saved.tensors, updates=saved.updates)
    run.rng.bit_generator.state = saved.rng
    seed = run.config.seed
    run.collector.start(first_layout(seed) + 10_000 + run.done, np.random.default_rng([seed, 1, run.done]))
