"""Drive whole episodes for `blendctl blend`, in sight of the terminal and of a live page."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from blendctl.blender import Blender
    from blendctl.reports.live import LiveView

__all__ = ["DriveSession", "drive"]


class DriveSession:
    """Where drives of one command are watched from; what they have in common."""

    def __init__(
        self,
        world: str,
        names: list[str],
        *,
        episodes: int,
        steps: int | None,
        seed: int,
        counterfactual: bool,
    ) -> None:
        self.world, self.names = world, names
        self.episodes, self.steps, self.seed = episodes, steps, seed
        self.counterfactual = counterfactual
        self.live: LiveView | None = None

    def go_live(self, port: int, *, objectives: list[str]) -> str:
        """Open the live page; give its address."""
        from blendctl.reports.live import LiveView

        self.live = LiveView(self.world, self.names, objectives=objectives, port=port)
        return self.live.url

    @property
    def url(self) -> str:
        """The address of the live page, empty without one."""
        return "" if self.live is None else self.live.url

    def __enter__(self) -> DriveSession:
        return self

    def __exit__(self, *what: object) -> None:
        if self.live is not None:
            self.live.close()


def drive(stand: DriveSession, blender: Blender, *, title: str, track: Path | None = None) -> dict[str, Any]:
    """Drive, and give the summary; `track` is where poses go."""
    from blendctl.blender import run
    from blendctl.blender.episode_stats import EpisodeStats
    from blendctl.cli.blend_display import watch
    from blendctl.envs import SingleWorld
    from blendctl.envs.pose_recorder import PoseRecorder

    tally = EpisodeStats(blender.names)
    with ExitStack() as stack:
        stack.enter_context(blender)
        world = SingleWorld(stand.world, max_episode_steps=stand.steps)
        tracker = PoseRecorder(world, track, theta=lambda: blender.bandit.theta, live=stand.live is not None)
        stack.callback(tracker.close)
        total = stand.episodes * world.batch.plan.max_steps
        hint = f"live: {stand.url}" if stand.live is not None else ""
        show = stack.enter_context(watch(title, names=stand.names, total=total, hint=hint))
        publish = None if stand.live is None else stand.live.follow(title, tracker)
        for record in run(
            tracker, blender, episodes=stand.episodes, seed=stand.seed, counterfactual=stand.counterfactual
        ):
            tally.add(record)
            show(tally, record)
            if publish is not None:
                publish(record)
        if stand.live is not None:
            stand.live.catch_up()
    whole = tally.ended
    return tally.summary() | {"returns": tally.returns[:whole], "costs": tally.costs[:whole]}
