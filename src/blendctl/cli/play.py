"""`blendctl play`: film a controller in a world, as GIF or MP4."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import ArrayLike, NDArray

from blendctl.cli import completers
from blendctl.cli import shared_options as shared
from blendctl.cli.environment_argument import EITHER, environment_argument
from blendctl.cli.output import make_table, progress_bar, table_console, write_json
from blendctl.controllers.base import Controller, Stateful
from blendctl.envs.catalog import find_task, world_label
from blendctl.envs.drawing import Picture
from blendctl.envs.environment import EnvironmentSpec
from blendctl.envs.lockstep import LockStepEnvs
from blendctl.envs.vector import VectorWorld
from blendctl.errors import BlendctlError, InputError, StateError
from blendctl.rollout import Rng, StepInput, Switch, check_fits, rollout

RENDER_MODES = {"topdown": "topdown", "camera": "rgb_array"}  # --view -> render mode
RANDOM_HOLD = 15  # steps per random action; a new one at every step would average out
TRAIL = 150  # positions
FPS = 30  # control steps per second, if the environment does not declare them
Worlds = VectorWorld | LockStepEnvs  # of one world


@dataclass(frozen=True)
class FilmStep:
    """One step of an episode, with a picture if the film shows it."""

    episode: int
    step: int  # since the start of the episode
    total: float  # return so far
    cost: float  # so far
    goals: int  # reached so far
    costs_now: bool  # a cost since the last picture
    goal_now: bool  # a goal since the last picture
    picture: Picture | None  # None where the film skips a step


class _FirstPicture(Switch):
    """Let the only controller drive; render before the first step of every episode."""

    def __init__(self, worlds: Worlds) -> None:
        self.worlds, self.picture = worlds, np.zeros((0, 0, 3), np.uint8)

    def choose(self, frame: StepInput) -> NDArray[np.intp]:
        if frame.episode_step[0] == 0:
            self.picture = _render(self.worlds)
        return np.zeros(1, np.intp)


def film_steps(
    worlds: Worlds, controller: Controller, *, rng: Rng, episodes: int, seed: int, every: int
) -> Iterator[FilmStep]:
    """Run episodes in one world, with a picture of every `every`-th step.

    Episode i uses seed + i, as in `blendctl evaluate`. The world sets the length of the episodes.
    """
    switch = _FirstPicture(worlds)
    episode, total, cost, goals = 0, 0.0, 0.0, 0
    costs_now = goal_now = False
    for batch in rollout(worlds, switch, controllers=[controller], seed=seed, rngs=[rng], episodes=episodes):
        step, over = int(batch.input.episode_step[0]) + 1, bool(batch.ended[0])
        if step == 1:
            total, cost, goals, costs_now, goal_now = 0.0, 0.0, 0, False, False
            yield FilmStep(episode, 0, total, cost, goals, costs_now, goal_now, switch.picture)
        met = bool(batch.infos.get("goal_met", [False])[0])
        total, cost, goals = total + float(batch.reward[0]), cost + float(batch.cost[0]), goals + met
        costs_now, goal_now = costs_now or bool(batch.cost[0]), goal_now or met
        shown = over or step % every == 0
        yield FilmStep(episode, step, total, cost, goals, costs_now, goal_now, _render(worlds) if shown else None)
        if shown:
            costs_now = goal_now = False
        episode += over


def _render(worlds: Worlds) -> Picture:
    pictures = worlds.render()
    if pictures is None or not isinstance(pictures[0], np.ndarray) or pictures[0].ndim != 3:
        raise InputError("the environment has no pictures; blendctl check-env ENV says why")
    height, width = pictures[0].shape[:2]
    return np.asarray(pictures[0][: height - height % 2, : width - width % 2, :3])  # films need even sizes


class _RandomActions:
    """Draw random actions, each held for some steps."""

    name = "random"

    def __init__(self, space: Any, seed: int) -> None:
        self.space, self.step = copy.deepcopy(space), 0
        self.space.seed(seed)

    def reset(self) -> None:
        self.step = 0

    def act(self, observation: ArrayLike, rng: Rng = None) -> NDArray[np.float64]:
        if self.step % RANDOM_HOLD == 0:
            self.action = np.asarray(self.space.sample(), np.float64).reshape(1, -1)
        self.step += 1
        return self.action


class _OneWorld:
    """Call a controller with single observations, because not every controller takes a batch; name it in errors."""

    def __init__(self, controller: Controller, *, name: str, world: str, size: int) -> None:
        self.controller, self.name, self.world, self.size, self.step = controller, name, world, size, 0

    def reset(self) -> None:
        self.step = 0

    def act(self, observation: ArrayLike, rng: Rng = None) -> NDArray[np.float64]:
        self.step += 1
        try:
            if self.step == 1 and isinstance(self.controller, Stateful):
                self.controller.reset()
            action = np.atleast_1d(np.asarray(self.controller.act(np.asarray(observation)[0].copy(), rng), np.float64))
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


def _open(name: str, worlds: Worlds, *, environment: EnvironmentSpec, seed: int) -> Controller:
    """Open a controller by any of its names; "random" draws random actions."""
    if name == "random":
        return _RandomActions(worlds.single_action_space, seed)
    from blendctl.cli.controller_argument import open_named_controller

    try:
        controller = open_named_controller(name, world=environment.world)
    except InputError as error:
        raise InputError(f'{error}; --controller also takes "random"') from error
    check_fits(controller, worlds)
    size = int(np.prod(worlds.single_action_space.shape or (1,)))
    return _OneWorld(controller, name=name, world=environment.name, size=size)


def _open_worlds(environment: EnvironmentSpec, *, view: str, size: int) -> Worlds:
    """Make one world that renders."""
    if not environment.is_plain_world:
        return LockStepEnvs([environment.make(render_mode="topdown" if environment.is_world else "rgb_array")])
    task = find_task(environment.name)
    return VectorWorld(
        task,
        1,
        threads=1,
        autoreset_mode=AutoresetMode.DISABLED,
        max_episode_steps=min(environment.episode_steps or task.max_episode_steps, task.max_episode_steps),
        render_mode=RENDER_MODES[view],
        view={"width": size, "height": size, "trail": TRAIL},
    )


@click.command(epilog="Example: blendctl play PointGoal1 --controller PointGoal1/ppo --out ppo.gif")
@partial(environment_argument, flags=EITHER, steps=300)
@click.option(
    "--controller", default="random", metavar="random|NAME|PATH", shell_complete=completers.controllers_or_random,
    help="random actions, a zoo name such as PointGoal1/ppo, a run directory, a file, an address, a classical "
    "controller such as pure-pursuit, or Python code such as mine.py:drive.",
)  # fmt: skip
@shared.number_option("--episodes", "Number of episodes.", default=1)
@shared.seed_option(per_episode=True)
@shared.deterministic_option
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), default=Path("play.gif"), help="Film, .gif or .mp4."
)
@click.option(
    "--view", type=click.Choice(list(RENDER_MODES)), default="topdown",
    help="From above, or MuJoCo's camera (needs OpenGL); of blendctl's worlds.",
)  # fmt: skip
@click.option("--fps", type=click.FloatRange(1, 50), default=25, help="Frames per second.")
@click.option("--size", type=click.IntRange(96, 2048), default=480, help="Width in pixels, of blendctl's worlds.")
@shared.json_option("the results of the episodes")
@shared.trust_code_option
def play(
    environment: EnvironmentSpec,
    controller: str,
    episodes: int,
    seed: int,
    deterministic: bool,
    out: Path,
    view: str,
    fps: float,
    size: int,
    json_file: Path | None,
) -> None:
    """Film a controller in an environment, in real time.

    ENV is a world such as PointGoal1, FILE.py:TASK, a Gymnasium id such as Pendulum-v1, MODULE:ID, or FILE.py:FUNCTION.
    An environment other than a world of blendctl is shown as its render_mode="rgb_array" draws it.
    """
    from blendctl.controllers.resolve import display_name
    from blendctl.envs.caption import Caption
    from blendctl.envs.film import open_film

    name, steps = world_label(environment.name), environment.episode_steps or 0
    worlds = _open_worlds(environment, view=view, size=size)
    steps_per_second = worlds.metadata.get("render_fps") or FPS
    every = max(1, round(steps_per_second / fps))
    driver = _open(controller, worlds, environment=environment, seed=seed)
    rng = None if deterministic else np.random.default_rng(seed)
    caption = Caption(
        worlds.task if isinstance(worlds, VectorWorld) else None, f"{name}  ·  {display_name(controller)}"
    )
    last: dict[int, FilmStep] = {}  # by episode
    with progress_bar() as progress, open_film(out, fps=steps_per_second / every) as film:
        bar = progress.add_task("filming", total=episodes * (steps + 1))
        for now in film_steps(worlds, driver, rng=rng, episodes=episodes, seed=seed, every=every):
            last[now.episode] = now
            if now.picture is not None:
                picture = caption.under(
                    now.picture, step=now.step, total=now.total, cost=now.cost, hurts=now.costs_now, meets=now.goal_now
                )
                film.add(picture)
            progress.update(bar, completed=now.episode * (steps + 1) + now.step)
        progress.update(bar, description="writing")
    worlds.close()
    columns = ("episode", "seed", "length", "return", "cost", "goals")
    table, results = make_table(*columns, left=0), []
    for episode, end in last.items():
        row = (episode, seed + episode, end.step, end.total, end.cost, end.goals)
        results.append(dict(zip(columns, row, strict=True)))
        table.add_row(*map(str, row[:3]), f"{end.total:.2f}", f"{end.cost:.0f}", str(end.goals))
    console = table_console(json_file)
    console.print(table)
    write_json(json_file, {"world": name, "controller": controller, "episodes": results})
    seconds = film.frames * every / steps_per_second
    size_mb = out.stat().st_size / 1e6
    console.print(f"wrote {out}: {film.frames} pictures, {seconds:.1f} s, {size_mb:.1f} MB", soft_wrap=True)
