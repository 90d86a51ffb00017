"""Read a run of `blendctl blend`, complete or not, for its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from blendctl.arrays import FloatArray
from blendctl.blender.episode_stats import over_budget
from blendctl.blender.run_status import stage_in_words
from blendctl.errors import InputError
from blendctl.features.base import VALUES_TO_GO
from blendctl.reports.entry_choice import choose_entries
from blendctl.reports.replay import ReplayData, ReplayedEpisode, episode_sums
from blendctl.reports.run_data import PoseTable, StageTable, read_poses, read_stages
from blendctl.reports.run_dir import RunDir
from blendctl.reports.run_pictures import MEGABYTES, read_pictures
from blendctl.statistics import mean_interval


@dataclass(frozen=True)
class BlendRun:
    """Data for the sections of a blend's page."""

    folder: RunDir
    stages: StageTable | None  # None without a record
    poses: PoseTable | None
    summary: dict[str, Any]  # of the run, or computed from its record; empty if nothing was recorded
    recording: ReplayData | None
    damaged_pictures: list[str] = field(default_factory=list)  # names of files

    @property
    def about(self) -> dict[str, Any]:
        """Metadata of the run: run.json and summary.json together."""
        return self.folder.about | self.folder.summary

    @property
    def names(self) -> list[str]:
        """Names of the controllers, in the order of the arms."""
        return list(self.about.get("names") or (self.stages.names if self.stages else []))

    @property
    def objectives(self) -> list[str]:
        """Names of the objectives, or of the values to go that a look-ahead run estimates."""
        if self.stages is None:
            return ["reward", "-cost"]
        names = self.stages.objectives
        return list(VALUES_TO_GO)[: len(names)] if self.stages.header.get("lookahead") else names

    @property
    def has_cost(self) -> bool:
        """Whether the blend minimises a cost, or one occurred."""
        objectives = self.stages.objectives if self.stages else ["-cost"]
        return any("cost" in name for name in objectives) or any(self.summary.get("costs") or ())

    @property
    def judged(self) -> str:
        """Time that `correct`, the loss and its bound cover: "the next 20 ms", or a number of control steps."""
        if self.about.get("judged") or self.stages is None:
            return str(self.about.get("judged") or "the next control step")
        return stage_in_words(int(self.stages.column("steps").max()), self.about.get("control_period"))


def read_blend_run(folder: RunDir, *, replays: int, megabytes: float = MEGABYTES) -> BlendRun:
    """Read a run with its `replays` costliest episodes, for a replay, and with pictures up to a size in megabytes."""
    stages, poses = read_stages(folder.record), read_poses(folder.track)
    about = folder.about | folder.summary
    if stages is None:
        return BlendRun(folder, None, poses, about, None)
    sums = episode_sums(stages)
    costliest = sorted(sums, key=lambda episode: -episode.cost)[:replays]
    shown = sorted(costliest, key=lambda episode: episode.number)
    note = f"The {len(shown)} costliest of {len(sums)} episodes." if len(shown) < len(sums) else ""
    numbers = [episode.number for episode in shown]
    pictures, damaged = read_pictures(folder.path / "frames", numbers, megabytes=megabytes)
    recording = ReplayData(
        stages,
        poses,
        shown,
        about.get("seed"),
        note,
        entries=choose_entries(poses, numbers, None),
        pictures=pictures,
        control_period=about.get("control_period"),
        no_picture=_no_picture(about, poses),
    )
    return BlendRun(folder, stages, poses, _summary_of_record(stages, sums) | about, recording, damaged)


def plot_entries(run: BlendRun, wanted: Sequence[str]) -> BlendRun:
    """Plot these entries of the observation, see `choose_entries`."""
    if run.recording is None:
        raise InputError("nothing was recorded, so there are no entries of observations to plot")
    return replace(run, recording=replace(run.recording, entries=choose_entries(run.poses, [], wanted)))


def _no_picture(about: dict[str, Any], poses: PoseTable | None) -> str:
    """Return the reason why an episode has neither a map nor pictures."""
    if about.get("no_pictures"):
        return f"No pictures: {about['no_pictures']}."
    if poses is not None and poses.scenery is not None:
        return "The poses of this episode were not recorded."
    return 'No pictures of this run. `blendctl blend` records them with --out, if render_mode="rgb_array" works.'


def true_loss(stages: StageTable) -> FloatArray:
    """Return the true maximal loss of each stage (n,) in scaled units, NaN where the counterfactuals are unknown."""
    truth = stages.by_arm_and_objective("truth") / stages.scales  # (n, arms, objectives)
    arms = stages.column("arm")
    chosen = np.take_along_axis(truth, np.clip(arms, 0, None)[:, None, None].astype(np.int64), axis=1)[:, 0]
    best = np.where(np.isnan(truth), -np.inf, truth).max(axis=1)  # over the arms whose feedback is known
    loss: FloatArray = np.maximum(0.0, (best - chosen).max(axis=1))
    loss[(arms < 0) | ~np.isfinite(loss)] = np.nan
    return loss


def _summary_of_record(stages: StageTable, sums: list[ReplayedEpisode]) -> dict[str, Any]:
    """Compute a summary; means are over complete episodes if there are any."""
    complete = [episode for episode in sums if episode.complete]
    counted = complete or sums
    returns = np.array([episode.total_return for episode in counted])
    costs = np.array([episode.cost for episode in counted])
    arms, steps = stages.column("arm"), stages.column("steps")
    budget = (stages.header.get("lookahead") or {}).get("cost_budget")
    return over_budget(costs.tolist() if complete else [], budget) | {
        "episodes": len(complete),
        "steps": int(steps.sum()),
        "return_mean": float(returns.mean()),
        "return_ci95": mean_interval(returns) if complete else None,
        "cost_mean": float(costs.mean()),
        "cost_ci95": mean_interval(costs) if complete else None,
        "returns": returns.tolist() if complete else [],
        "costs": costs.tolist() if complete else [],
        "arm_share": {name: float(steps[arms == arm].sum() / steps.sum()) for arm, name in enumerate(stages.names)},
        "switches": int(stages.column("switched").sum()),
        "correct_ratio": _known_mean(stages.floats("correct")),
        "average_loss": _known_mean(true_loss(stages)),
        "loss_bound": _known_mean(stages.floats("loss_bound")),
    }


def _known_mean(values: FloatArray) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None
