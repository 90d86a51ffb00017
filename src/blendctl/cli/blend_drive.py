"""Drive whole episodes for `blendctl blend`, shown in the terminal and on a live page."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blendctl.errors import InputError

if TYPE_CHECKING:
    from blendctl.blender import Blender
    from blendctl.envs.environment import EnvironmentSpec
    from blendctl.reports.live import LiveView


@dataclass(kw_only=True)
class DriveSession:
    """Several drives on the same episodes of one world."""

    environment: EnvironmentSpec
    names: list[str]
    episodes: int
    seed: int
    counterfactual: bool
    live: LiveView | None = None
    failures: dict[str, str] = field(default_factory=dict)  # controller -> its first failure, over all drives
    control_period: float | None = None  # s, known after a drive, if the environment declares it
    frames: int | None = None  # pictures per episode; None: 200, fewer if drawing is slow
    no_pictures: str | None = None  # why there are none

    def open_live_page(self, port: int, *, objectives: list[str]) -> str:
        """Open the live page and return its address."""
        from blendctl.reports.live import LiveView

        self.live = LiveView(self.environment.name, self.names, objectives=objectives, port=port)
        return self.live.url

    @property
    def url(self) -> str:
        """The address of the live page, or an empty string."""
        return "" if self.live is None else self.live.url

    def __enter__(self) -> DriveSession:
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.close()

    def drive(
        self,
        blender: Blender,
        *,
        title: str,
        track: Path | None = None,
        pictures: Path | None = None,
        budget: float | None = None,
    ) -> dict[str, Any]:
        """Drive all episodes and return the summary; track, pictures: directories; budget: cost per episode."""
        from blendctl.blender import run
        from blendctl.blender.episode_stats import EpisodeStats, over_budget
        from blendctl.cli.blend_display import live_display
        from blendctl.envs.lockstep import PeekingCopy, control_period, episode_limit

        stats = EpisodeStats(blender.names)
        with ExitStack() as stack:
            stack.enter_context(blender)
            tracker: Any = self.environment.make() if pictures is None else self._open_drawn()
            stack.callback(lambda: tracker.close())
            self.control_period = control_period(tracker)
            if self.counterfactual and not self.environment.is_plain_world:
                tracker = PeekingCopy(tracker)
            if self.environment.is_plain_world or track is not None:
                from blendctl.envs.pose_recorder import PoseRecorder

                tracker = PoseRecorder(tracker, track, theta=lambda: blender.bandit.theta, live=self.live is not None)
            if pictures is not None and self.no_pictures is None:
                from blendctl.envs.frame_recorder import FrameRecorder

                tracker = FrameRecorder(tracker, pictures, episodes=self.episodes, frames=self.frames)
            total = self.episodes * (episode_limit(tracker) or 1000)
            hint = f"live: {self.url}" if self.live is not None else ""
            show = stack.enter_context(live_display(title, names=self.names, total=total, hint=hint))
            publish = None if self.live is None else self.live.follow(title, tracker)
            for record in run(
                tracker, blender, episodes=self.episodes, seed=self.seed, counterfactual=self.counterfactual
            ):
                stats.add(record)
                show(stats, record)
                if publish is not None:
                    publish(record)
            if self.live is not None:
                self.live.catch_up()
            if pictures is not None:
                self.no_pictures = self.no_pictures or tracker.problem
        for arm, reason in blender.drivers.first_failures.items():
            self.failures.setdefault(self.names[arm], reason)
        finished = stats.ended
        costs = stats.costs[:finished]
        return stats.summary() | over_budget(costs, budget) | {"returns": stats.returns[:finished], "costs": costs}

    def check_pictures(self) -> None:
        """Raise InputError if pictures were requested and cannot be drawn."""
        if self.frames and self.environment.is_world:
            raise InputError("--frames is for other environments: a page draws the worlds of blendctl itself")
        if self.frames:
            self._open_drawn().close()
            if self.no_pictures is not None:
                raise InputError(f"--frames: there are no pictures: {self.no_pictures}; leave it out")

    def _open_drawn(self) -> Any:
        """Make an environment that draws pictures, or remember why it does not."""
        from blendctl.envs.frame_recorder import open_drawn

        env, self.no_pictures = open_drawn(self.environment.make)
        return env
