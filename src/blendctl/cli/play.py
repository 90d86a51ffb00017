"""`blendctl play`: watch a controller drive, as a GIF or MP4."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from blendctl.cli.completers import players
from blendctl.cli.completers import worlds as world_names
from blendctl.cli.output import json_option, progress_bar, table_console, write_json
from blendctl.envs.drawing import Picture
from blendctl.envs.vector import VectorWorld
from blendctl.errors import BlendctlError, InputError, StateError

__all__ = ["play", "Shot", "shoot"]

VIEWS = {"topdown": "topdown", "camera": "rgb_array"}
HELD = 15  # steps for which a random action is held; fresh draws at every step would cancel out
TRAIL = 150  # places
PATIENCE = 5.0  # s for an answer from an address: no robot is waiting for it

Act = Callable[[NDArray[np.float64], int], NDArray[np.float64]]  # observations (1, obs), step -> actions (1, act)


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


def shoot(worlds: VectorWorld, act: Act, *, episodes: int, steps: int, seed: int, every: int) -> Iterator[Shot]:
    """Drive one world through episodes of at most so many steps; take a picture of every so many.

    Episode i has seed + i, as `blendctl evaluate` has it.
    """
    for episode in range(episodes):
        observations, _ = worlds.reset(seed=seed + episode)
        total, cost, goals = 0.0, 0.0, 0
        hurts = meets = False  # since the last picture
        yield Shot(episode, 0, total, cost, goals, hurts, meets, _picture(worlds))
        for step in range(1, steps + 1):
            actions = act(observations, step - 1)
            if not np.isfinite(actions).all():
                raise StateError(f"the controller gave {actions[0]} in step {step}; it cannot be played")
            observations, rewards, terminated, truncated, infos = worlds.step(actions)
            total, cost = total + float(rewards[0]), cost + float(infos["cost"][0])
            goals += int(infos["goal_met"][0])
            hurts, meets = hurts or bool(infos["cost"][0]), meets or bool(infos["goal_met"][0])
            over = bool(terminated[0] or truncated[0]) or step == steps
            shown = over or step % every == 0
            yield Shot(episode, step, total, cost, goals, hurts, meets, _picture(worlds) if shown else None)
            if shown:
                hurts = meets = False
            if over:
                break


def _picture(worlds: VectorWorld) -> Picture:
    pictures = worlds.render()
    assert pictures is not None
    return pictures[0]


def _driver(name: str, worlds: VectorWorld, *, world: str, seed: int, deterministic: bool) -> Act:
    """Make what drives: random actions, or a controller from anywhere."""
    rng = np.random.default_rng(seed)
    size = worlds.batch.act_size
    if name == "random":
        held = np.zeros((1, size))

        def draw(observations: NDArray[np.float64], step: int) -> NDArray[np.float64]:
            if step % HELD == 0:
                held[:] = rng.uniform(-1.0, 1.0, (1, size))
            return held

        return draw
    from blendctl.controllers import RemoteController
    from blendctl.controllers.base import Stateful
    from blendctl.controllers.classical import CLASSICAL
    from blendctl.controllers.evaluation import check_fits
    from blendctl.controllers.resolve import open_controller
    from blendctl.envs.catalog import add_task

    if name in CLASSICAL:
        add_task(world, worlds.task)  # they look their world up; this one may be the user's own
    try:
        controller = open_controller(name, world=world)
    except InputError as error:
        raise InputError(f'{error}; --controller also takes "random"') from error
    if isinstance(controller, RemoteController):
        controller.deadline = PATIENCE
        click.get_current_context().call_on_close(controller.close)
    check_fits(controller, worlds)

    def act(observations: NDArray[np.float64], step: int) -> NDArray[np.float64]:
        # One observation, which every controller takes; a batch not everyone.
        try:
            if step == 0 and isinstance(controller, Stateful):
                controller.reset()  # what it remembers of the episode before
            action = np.asarray(controller.act(observations[0].copy(), None if deterministic else rng), np.float64)
        except (BlendctlError, OSError):
            raise
        except Exception as error:  # a user's own code may raise anything
            raise StateError(
                f'controller "{name}" raised {type(error).__name__} in step {step + 1}: {error}'
            ) from error
        if action.shape != (size,):
            raise InputError(f'controller "{name}" gave an action of shape {action.shape}; {world} takes ({size},)')
        return action[None]

    return act


@click.command(epilog="Example: blendctl play PointGoal1 --controller PointGoal1/ppo --out ppo.gif")
@click.argument("world", shell_complete=world_names)
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

    from blendctl.cli.world_argument import name_and_task
    from blendctl.controllers.resolve import display_name
    from blendctl.envs.caption import Caption
    from blendctl.envs.film import open_film

    name, task = name_and_task(world)
    worlds = VectorWorld(
        task,
        1,
        threads=1,
        autoreset_mode=AutoresetMode.DISABLED,
        render_mode=VIEWS[view],
        view={"width": size, "height": size, "trail": TRAIL},
    )
    real = worlds.metadata["render_fps"]  # steps a second
    every = max(1, round(real / fps))
    act = _driver(controller, worlds, world=name, seed=seed, deterministic=deterministic)
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
        for shot in shoot(worlds, act, episodes=episodes, steps=steps, seed=seed, every=every):
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
