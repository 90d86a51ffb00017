"""`blendctl play`: watch a controller drive, as a GIF or MP4."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import ArrayLike, NDArray

from blendctl.cli.completers import players
from blendctl.cli.output import json_option, progress_bar, table_console, write_json
from blendctl.cli.world_argument import world_argument
from blendctl.controllers.base import Controller, Stateful
from blendctl.envs.drawing import Picture
from blendctl.envs.vector import VectorWorld
from blendctl.errors import BlendctlError, InputError, StateError
from blendctl.rollout import Rng, StepInput, Switch, check_fits, rollout

__all__ = ["play", "Shot", "shoot"]

VIEWS = {"topdown": "topdown", "camera": "rgb_array"}
HELD = 15  # steps for which a random action is held; fresh draws at every step would cancel out
TRAIL = 150  # places
PATIENCE = 5.0  # s for an answer from an address: no robot is waiting for it

_EMPTY = np.zeros((0, 0, 3), np.uint8)


@dataclass(frozen=True)
class Shot:
    """One moment of an episode."""

    episode: int
    step: int  # since the episode began
    total: float  # return so far
    cost: float  # so far
    goals: int  # met so far
    hurts: bool  # this step costs
    meets: bool  # this step meets a goal
    picture: Picture | None  # None where the film skips a step


class _FirstPicture(Switch):
    """Let the only controller drive, and take a picture before the first step of every episode."""

    def __init__(self, worlds: VectorWorld) -> None:
        self.worlds, self.picture = worlds, _EMPTY

    def choose(self, frame: StepInput) -> NDArray[np.intp]:
        if frame.episode_step[0] == 0:
            self.picture = _picture(self.worlds)
        return np.zeros(1, np.intp)


def shoot(
    worlds: VectorWorld, controller: Controller, *, rng: Rng, episodes: int, seed: int, every: int
) -> Iterator[Shot]:
    """Run episodes in one world; take a picture of every `every`-th step.

    Episode i has seed + i, as in `blendctl evaluate`. The world sets the length of the episodes.
    """
    switch = _FirstPicture(worlds)
    episode, total, cost, goals = 0, 0.0, 0.0, 0
    hurts = meets = False  # since the last picture
    for batch in rollout(worlds, switch, controllers=[controller], seed=seed, rngs=[rng], episodes=episodes):
        step, over = int(batch.input.episode_step[0]) + 1, bool(batch.ended[0])
        if step == 1:
            total, cost, goals, hurts, meets = 0.0, 0.0, 0, False, False
            yield Shot(episode, 0, total, cost, goals, hurts, meets, switch.picture)
        met = bool(batch.infos["goal_met"][0])
        total, cost, goals = total + float(batch.reward[0]), cost + float(batch.cost[0]), goals + met
        hurts, meets = hurts or bool(batch.cost[0]), meets or met
        shown = over or step % every == 0
        yield Shot(episode, step, total, cost, goals, hurts, meets, _picture(worlds) if shown else None)
        if shown:
            hurts = meets = False
        episode += over


def _picture(worlds: VectorWorld) -> Picture:
    pictures = worlds.render()
    assert pictures is not None
    return pictures[0]


class _RandomActions:
    """Draw uniform actions, each held for some steps."""

    name = "random"

    def __init__(self, size: int, seed: int) -> None:
        self.rng, self.size = np.random.default_rng(seed), size
        self.reset()

    def reset(self) -> None:
        self.step, self.held = 0, np.zeros((1, self.size))

    def act(self, observation: ArrayLike, rng: Rng = None) -> NDArray[np.float64]:
        if self.step % HELD == 0:
            self.held = self.rng.uniform(-1.0, 1.0, (1, self.size))
        self.step += 1
        return self.held


class _OneWorld:
    """Ask a controller for one observation at a time, as not every controller takes a batch; name it in errors."""

    def __init__(self, controller: Controller, *, name: str, world: str, size: int) -> None:
        self.controller, self.name, self.world, self.size = controller, name, world, size
        self.reset()

    def reset(self) -> None:
        self.step = 0

    def act(self, observation: ArrayLike, rng: Rng = None) -> NDArray[np.float64]:
        self.step += 1
        try:
            if self.step == 1 and isinstance(self.controller, Stateful):
                self.controller.reset()
            action = np.asarray(self.controller.act(np.asarray(observation)[0].copy(), rng), np.float64)
        except (BlendctlError, OSError):
            raise
        except Exception as error:  # a user's own code may raise anything
            raise StateError(
                f'controller "{self.name}" raised {type(error).__name__} in step {self.step}: {error}'
            ) from error
        if action.shape != (self.size,):
            raise InputError(
                f'controller "{self.name}" returned an action of shape {action.shape}; '
                f"{self.world} takes ({self.size},)"
            )
        return action[None]


def _open(name: str, worlds: VectorWorld, *, world: str, seed: int) -> Controller:
    """Open a controller by any of its names; "random" draws random actions."""
    size = worlds.batch.act_size
    if name == "random":
        return _RandomActions(size, seed)
    from blendctl.controllers import RemoteController
    from blendctl.controllers.resolve import open_controller

    try:
        controller = open_controller(name, world=world)
    except InputError as error:
        raise InputError(f'{error}; --controller also takes "random"') from error
    if isinstance(controller, RemoteController):
        controller.deadline = PATIENCE
        click.get_current_context().call_on_close(controller.close)
    check_fits(controller, worlds)
    return _OneWorld(controller, name=name, world=world, size=size)


@click.command(epilog="Example: blendctl play PointGoal1 --controller PointGoal1/ppo --out ppo.gif")
@world_argument
@click.option(
    "--controller", default="random", show_default=True, metavar="random|NAME|PATH", shell_complete=players,
    help="random actions, a controller of the zoo such as PointGoal1/ppo, a run directory, a file, an address, a "
    "classical one such as pure-pursuit, or Python of yours such as mine.py:drive",
)  # fmt: skip
@click.option("--episodes", type=click.IntRange(1), default=1, show_default=True, help="episodes to show")
@click.option("--steps", type=click.IntRange(1), default=300, show_default=True, help="steps per episode at most")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="episode i gets seed + i")
@click.option("--deterministic", is_flag=True, help="mean actions instead of draws from the policy")
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), default=Path("play.gif"), show_default=True,
    help="film to write, .gif or .mp4",
)  # fmt: skip
@click.option(
    "--view", type=click.Choice(list(VIEWS)), default="topdown", show_default=True,
    help="from above, or MuJoCo's camera (needs OpenGL)",
)  # fmt: skip
@click.option("--fps", type=click.FloatRange(1, 50), default=25, show_default=True, help="pictures a second")
@click.option("--size", type=click.IntRange(96, 2048), default=480, show_default=True, help="pixels across")
@json_option("the episodes' figures")
def play(
    world: str,
    controller: str,
    episodes: int,
    steps: int,
    seed: int,
    deterministic: bool,
    out: Path,
    view: str,
    fps: float,
    size: int,
    json_file: Path | None,
) -> None:
    """Watch a controller drive in a world, in real time.

    WORLD is a name such as PointGoal1, or FILE.py:TASK for a task of your own, defined in a Python file.
    """
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.table import Table

    from blendctl.controllers.resolve import display_name
    from blendctl.envs.caption import Caption
    from blendctl.envs.catalog import find_task, world_label
    from blendctl.envs.film import open_film

    name, task = world_label(world), find_task(world)
    worlds = VectorWorld(
        task,
        1,
        threads=1,
        autoreset_mode=AutoresetMode.DISABLED,
        max_episode_steps=min(steps, task.max_episode_steps),
        render_mode=VIEWS[view],
        view={"width": size, "height": size, "trail": TRAIL},
    )
    real = worlds.metadata["render_fps"]  # steps a second
    every = max(1, round(real / fps))
    player = _open(controller, worlds, world=world, seed=seed)
    rng = None if deterministic else np.random.default_rng(seed)
    caption = Caption(task, f"{name}  ·  {display_name(controller)}")
    last: dict[int, Shot] = {}
    with (
        progress_bar(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(),
        ) as progress,
        open_film(out, fps=real / every) as film,
    ):
        bar = progress.add_task("filming", total=episodes * (steps + 1))
        for shot in shoot(worlds, player, rng=rng, episodes=episodes, seed=seed, every=every):
            last[shot.episode] = shot
            if shot.picture is not None:
                film.add(
                    caption.under(
                        shot.picture,
                        step=shot.step,
                        total=shot.total,
                        cost=shot.cost,
                        hurts=shot.hurts,
                        meets=shot.meets,
                    )
                )
            progress.update(bar, completed=shot.episode * (steps + 1) + shot.step)
        progress.update(bar, description="writing")
    worlds.close()
    table = Table("episode", "seed", "steps", "return", "cost", "goals")
    for episode, shot in last.items():
        cells = (episode, seed + episode, shot.step, f"{shot.total:.2f}", f"{shot.cost:.0f}", shot.goals)
        table.add_row(*(str(cell) for cell in cells))
    console = table_console(json_file)
    console.print(table)
    seconds = film.frames * every / real
    size_mb = out.stat().st_size / 1e6
    episode_figures = [
        {
            "episode": episode,
            "seed": seed + episode,
            "steps": shot.step,
            "return": shot.total,
            "cost": shot.cost,
            "goals": shot.goals,
        }
        for episode, shot in last.items()
    ]
    write_json(json_file, {"world": name, "controller": controller, "episodes": episode_figures})
    console.print(f"wrote {out}: {film.frames} pictures, {seconds:.1f} s, {size_mb:.1f} MB", soft_wrap=True)
