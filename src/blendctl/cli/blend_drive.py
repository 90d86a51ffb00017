"""Drive whole episodes for `blendctl blend`, shown in the terminal and on a live page."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    failures: dict[str, str] = field(default_factory=dict)  # controller -> how it failed first, in all drives
    seconds_per_step: float | None = None  # known after a drive, if the environment says it

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
        self, blender: Blender, *, title: str, track: Path | None = None, budget: float | None = None
    ) -> dict[str, Any]:
        """Drive all episodes and return the summary; track: directory for poses; budget: cost per episode."""
        from blendctl.blender import run
        from blendctl.blender.episode_stats import EpisodeStats, over_budget
        from blendctl.cli.blend_display import live_display
        from blendctl.envs.lockstep import PeekingCopy, episode_limit

        stats = EpisodeStats(blender.names)
        with ExitStack() as stack:
            stack.enter_context(blender)
            env: Any = self.environment.make()
            stack.callback(env.close)
            fps = env.metadata.get("render_fps")
            self.seconds_per_step = getattr(env.unwrapped, "dt", None) or (1.0 / fps if fps else None)
            tracker: Any = env
            if self.environment.is_plain_world:
                from blendctl.envs.pose_recorder import PoseRecorder

                tracker = PoseRecorder(env, track, theta=lambda: blender.bandit.theta, live=self.live is not None)
                stack.callback(tracker.close)
            elif self.counterfactual:
                tracker = PeekingCopy(env)
            total = self.episodes * (episode_limit(env) or 1000)
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
        for arm, reason in blender.drivers.first_failures.items():
            self.failures.setdefault(self.names[arm], reason)
        finished = stats.ended
        costs = stats.costs[:finished]
        return stats.summary() | over_budget(costs, budget) | {"returns": stats.returns[:finished], "costs": costs}
