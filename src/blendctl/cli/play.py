"""`blendctl play`: film a controller in a world, as GIF or MP4."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import ArrayLike, NDArray

from blendctl.cli import completers
from blendctl.cli import shared_options as shared
from blendctl.cli.output import make_table, progress_bar, table_console, write_json
from blendctl.envs.drawing import Picture
from blendctl.envs.vector import VectorWorld
from blendctl.errors import BlendctlError, InputError, StateError
from blendctl.rollout import Rng, StepInput, Switch, check_fits, rollout

__all__ = ["play", "FilmStep", "film_steps"]

RENDER_MODES = {"topdown": "topdown", "camera": "rgb_array"}  # --view -> render mode
RANDOM_HOLD = 15  # steps per random action; a new one at every step would average out
TRAIL = 150  # positions

Policy = Callable[[NDArray[np.float64], int], NDArray[np.float64]]  # observations (1, obs), step -> actions (1, act)


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


def film_steps(
    worlds: VectorWorld, policy: Policy, *, episodes: int, steps: int, seed: int, every: int
) -> Iterator[FilmStep]:
    """Drive one world through episodes of at most `steps` steps, with a picture of every `every` steps.

    Episode i uses seed + i, as in `blendctl evaluate`.
    """
    for episode in range(episodes):
        observations, _ = worlds.reset(seed=seed + episode)
        total, cost, goals = 0.0, 0.0, 0
        costs_now = goal_now = False
        yield FilmStep(episode, 0, total, cost, goals, costs_now, goal_now, _render(worlds))
        for step in range(1, steps + 1):
            actions = policy(observations, step - 1)
            if not np.isfinite(actions).all():
                raise StateError(f"the controller returned the action {actions[0]} in step {step}; it must be finite")
            observations, rewards, terminated, truncated, infos = worlds.step(actions)
            step_cost, goal_met = float(infos["cost"][0]), bool(infos["goal_met"][0])
            total, cost, goals = total + float(rewards[0]), cost + step_cost, goals + goal_met
            costs_now, goal_now = costs_now or bool(step_cost), goal_now or goal_met
            over = bool(terminated[0] or truncated[0]) or step == steps
            shown = over or step % every == 0
            yield FilmStep(episode, step, total, cost, goals, costs_now, goal_now, _render(worlds) if shown else None)
            if shown:
                costs_now = goal_now = False
            if over:
                break


def _render(worlds: VectorWorld) -> Picture:
    pictures = worlds.render()
    assert pictures is not None
    return pictures[0]


def _random_policy(size: int, *, seed: int) -> Policy:
    rng = np.random.default_rng(seed)
    action = np.zeros((1, size))

    def act(observations: NDArray[np.float64], step: int) -> NDArray[np.float64]:
        if step % RANDOM_HOLD == 0:
            action[:] = rng.uniform(-1.0, 1.0, (1, size))
        return action

    return act


def _controller_policy(name: str, worlds: VectorWorld, *, world: str, seed: int, deterministic: bool) -> Policy:
    from blendctl.cli.controller_argument import open_named_controller
    from blendctl.controllers.base import Stateful
    from blendctl.controllers.classical import CLASSICAL
    from blendctl.controllers.evaluation import check_fits
    from blendctl.envs.catalog import add_task

    rng = np.random.default_rng(seed)
    size = worlds.batch.act_size
    if name in CLASSICAL:
        add_task(world, worlds.task)  # they look up their world, which may be the user's own
    try:
        controller = open_named_controller(name, world=world)
    except InputError as error:
        raise InputError(f'{error}; --controller also takes "random"') from error
    check_fits(controller, worlds)

    def act(observations: NDArray[np.float64], step: int) -> NDArray[np.float64]:
        try:
            if step == 0 and isinstance(controller, Stateful):
                controller.reset()
            # A single observation, because not every controller accepts a batch.
            action = np.asarray(controller.act(observations[0].copy(), None if deterministic else rng), np.float64)
        except (BlendctlError, OSError):
            raise
        except Exception as error:  # a user's own code may raise anything
            raise StateError(
                f'controller "{name}" raised {type(error).__name__} in step {step + 1}: {error}'
            ) from error
        if action.shape != (size,):
            raise InputError(f'controller "{name}" returned an action of shape {action.shape}; {world} takes ({size},)')
        return action[None]

    return act


@click.command(epilog="Example: blendctl play PointGoal1 --controller PointGoal1/ppo --out ppo.gif")
@shared.world_argument
@click.option(
    "--controller", default="random", metavar="random|NAME|PATH", shell_complete=completers.controllers_or_random,
    help="random actions, a zoo name such as PointGoal1/ppo, a run directory, a file, an address, a classical "
    "controller such as pure-pursuit, or Python code such as mine.py:drive.",
)  # fmt: skip
@shared.number_option("--episodes", "Number of episodes.", default=1)
@shared.number_option("--steps", "Maximum steps per episode.", default=300)
@shared.seed_option(per_episode=True)
@shared.deterministic_option
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), default=Path("play.gif"), help="Film, .gif or .mp4."
)
@click.option(
    "--view", type=click.Choice(list(RENDER_MODES)), default="topdown",
    help="From above, or MuJoCo's camera (needs OpenGL).",
)  # fmt: skip
@click.option("--fps", type=click.FloatRange(1, 50), default=25, help="Frames per second.")
@click.option("--size", type=click.IntRange(96, 2048), default=480, help="Width in pixels.")
@shared.json_option("the results of the episodes")
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
    """Film a controller in a world, in real time.

    WORLD is a name such as PointGoal1, or FILE.py:TASK for a task that is defined in a Python file.
    """
    from blendctl.cli.world_argument import name_and_task
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
        render_mode=RENDER_MODES[view],
        view={"width": size, "height": size, "trail": TRAIL},
    )
    steps_per_second = worlds.metadata["render_fps"]
    every = max(1, round(steps_per_second / fps))
    if controller == "random":
        policy = _random_policy(worlds.batch.act_size, seed=seed)
    else:
        policy = _controller_policy(controller, worlds, world=name, seed=seed, deterministic=deterministic)
    caption = Caption(task, f"{name}  ·  {display_name(controller)}")
    last: dict[int, FilmStep] = {}  # by episode
    with progress_bar() as progress, open_film(out, fps=steps_per_second / every) as film:
        bar = progress.add_task("filming", total=episodes * (steps + 1))
        for moment in film_steps(worlds, policy, episodes=episodes, steps=steps, seed=seed, every=every):
            last[moment.episode] = moment
            if moment.picture is not None:
                film.add(
                    caption.under(
                        moment.picture,
                        step=moment.step,
                        total=moment.total,
                        cost=moment.cost,
                        hurts=moment.costs_now,
                        meets=moment.goal_now,
                    )
                )
            progress.update(bar, completed=moment.episode * (steps + 1) + moment.step)
        progress.update(bar, description="writing")
    worlds.close()
    results = [
        {
            "episode": episode,
            "seed": seed + episode,
            "steps": end.step,
            "return": end.total,
            "cost": end.cost,
            "goals": end.goals,
        }
        for episode, end in last.items()
    ]
    table = make_table("episode", "seed", "steps", "return", "cost", "goals", left=0)
    for row in results:
        rounded = row | {"return": f"{row['return']:.2f}", "cost": f"{row['cost']:.0f}"}
        table.add_row(*(str(cell) for cell in rounded.values()))
    console = table_console(json_file)
    console.print(table)
    write_json(json_file, {"world": name, "controller": controller, "episodes": results})
    seconds = film.frames * every / steps_per_second
    size_mb = out.stat().st_size / 1e6
    console.print(f"wrote {out}: {film.frames} pictures, {seconds:.1f} s, {size_mb:.1f} MB", soft_wrap=True)
