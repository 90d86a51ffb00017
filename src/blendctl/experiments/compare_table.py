"""Compare methods in this process, in any environment and with controllers as objects; return a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import gymnasium
import pyarrow as pa

from blendctl.blender import Blender
from blendctl.controllers import Controller, open_controller
from blendctl.controllers.adapters import as_controller
from blendctl.controllers.lookahead_network import controller_label
from blendctl.envs.environment import CostFunction, EnvironmentSpec, as_environment, expect_cost
from blendctl.envs.lockstep import lock_step
from blendctl.episodes import drive_blend, episode_columns, jerk_columns, run_episodes
from blendctl.errors import InputError, MissingExtraError
from blendctl.experiments.certify_units import blender_maker
from blendctl.experiments.compare import ALONE, COLUMNS, TRAINING_SEEDS, Compared, saved_blend
from blendctl.experiments.method_training import train_method
from blendctl.experiments.standings import standings
from blendctl.switches.methods import METHODS, Method, check_controller_number, find_method, with_values
from blendctl.switches.requirements import missing_requirement

__all__ = ["compare", "ComparisonTable", "MethodRow"]

Environment = str | EnvironmentSpec | gymnasium.Env[Any, Any] | Callable[[], gymnasium.Env[Any, Any]]
SavedBlend = str | Path | Callable[[int], Blender]  # a directory, or a function from a seed to a blender


@dataclass(frozen=True)
class MethodRow:
    """Means of one method's episodes, with 95% intervals (None for one episode)."""

    method: str
    return_mean: float
    return_ci95: tuple[float, float] | None
    cost_mean: float
    cost_ci95: tuple[float, float] | None
    corner_score: float | None  # 0 on the mixing line, 1 at the corner; None if there is no corner
    corner_score_ci95: tuple[float, float] | None
    share: float | None  # of the first controller, by steps or by weight
    switches: float | None  # per episode
    switches_per_second: float | None  # None if the control period is not known
    jerk: float | None  # mean change of the action between control steps
    parameters: tuple[Mapping[str, Any], ...]  # settings that represent the method


@dataclass(frozen=True)
class ComparisonTable:
    """The results of a comparison; row i of every method is the same episode.

    rows: a row per method. episodes: a row per method, setting and episode. summary: JSON data, as in
    `compare.json`. left_out: methods that could not run, with the reason.
    """

    rows: tuple[MethodRow, ...]
    episodes: pa.Table
    summary: dict[str, Any]
    left_out: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, method: str) -> MethodRow:
        """Return the row of a method."""
        for row in self.rows:
            if row.method == method:
                return row
        raise KeyError(f'there is no method "{method}" among {", ".join(row.method for row in self.rows)}')

    def to_pandas(self) -> Any:
        """Return a DataFrame with a row per method; intervals are two columns each."""
        try:
            import pandas
        except ImportError:
            raise MissingExtraError("pandas", extra="dev") from None
        columns = []
        for row in self.rows:
            values = {name: getattr(row, name) for name in ("method", "return_mean", "cost_mean", "corner_score")}
            for name in ("return_ci95", "cost_ci95", "corner_score_ci95"):
                values[f"{name}_low"], values[f"{name}_high"] = getattr(row, name) or (None, None)
            columns.append(values | {"share": row.share, "switches": row.switches, "jerk": row.jerk})
        return pandas.DataFrame(columns).set_index("method")

    def __str__(self) -> str:
        """Return the table as text."""
        lines = [f"{'method':<18}{'return':>20}{'cost':>20}{'corner score':>24}"]
        for row in self.rows:
            score = "" if row.corner_score is None else f"{row.corner_score:+.2f}"
            lines.append(
                f"{row.method:<18}{row.return_mean:>8.2f} {_text(row.return_ci95):<12}"
                f"{row.cost_mean:>7.2f} {_text(row.cost_ci95):<12}{score:>9} {_text(row.corner_score_ci95)}".rstrip()
            )
        return "\n".join(lines)


def _text(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f"{interval[0]:.2f}..{interval[1]:.2f}"


def compare(
    env: Environment,
    controllers: Sequence[Controller | Callable[..., Any] | str],
    *,
    methods: Sequence[str] | None = None,
    episodes: int = 30,
    seed: int = 1_000_000,
    blends: Mapping[str, SavedBlend] | None = None,
    cost: str | CostFunction | None = None,
    episode_steps: int | None = None,
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    judge_every: int = 0,
    block: int = 15,
    on_progress: Callable[[float], None] | None = None,
) -> ComparisonTable:
    """Compare methods that switch between controllers, on the same episodes; episode i has seed + i.

    Args:
        env: A world, a Gymnasium id, FILE.py:FUNCTION, an environment, or a function that makes one.
        controllers: Two or more, performant first and safe last; functions, controllers, or names of controllers.
        methods: Names of `blendctl compare --list`; None: all that these controllers and this environment allow.
        episodes: Episodes per method and setting.
        seed: Seed of the first episode.
        blends: Saved blends to judge, by name: directories, or functions from a seed to a `Blender`. Every episode
            begins with the blend as it was saved.
        cost: An entry of `info`, or a function of (observation, action, info); None: `info["cost"]`.
        episode_steps: Limit of an episode.
        parameters: Other values of the methods' parameters: {"random": {"share": 0.5}}.
        judge_every: Evaluate the other arms from the same state every n-th step; 0: never. Needs exact copies.
        block: Episodes that run in lock-step; a learner learns from all episodes of a block.
        on_progress: Called with the finished share.
    """
    if episodes < 1 or block < 1:
        raise InputError(f"episodes and block must be whole numbers >= 1, actually: {episodes} and {block}")
    if len(controllers) < 2:
        raise InputError(f"a comparison needs two controllers or more, actually: {len(controllers)}")
    make, spec = as_environment(env, cost=cost, episode_steps=episode_steps)
    world = None if spec is None else spec.world
    drivers = [open_controller(one, world=world) if isinstance(one, str) else as_controller(one) for one in controllers]
    first = make()
    expect_cost(first)
    single = make().unwrapped is first.unwrapped  # an environment was passed, not a function
    runner = _MethodRunner(make, spec, drivers, judge_every, single=single)
    with closing(runner.open(1)) as worlds:
        chosen, left_out = _choose(methods, drivers, worlds, parameters or {})
    saved = dict(blends or {})
    table = chosen | {name: replace(saved_blend(source), name=name) for name, source in saved.items()}
    if clash := sorted(set(chosen) & set(saved)):
        raise InputError(f"a blend has the name of a method: {', '.join(clash)}; choose another")
    name = spec.name if spec is not None else getattr(first.spec, "id", None) or type(first.unwrapped).__name__
    plan = Compared(
        name, tuple(map(_label, controllers, drivers)), episodes, seed, episode_steps, 1 if single else block, table
    )
    total = sum(len(method.settings) for method in table.values())
    rows, done = [], 0
    for method in table.values():
        for number, setting in enumerate(method.settings):
            if method.name in saved:
                source = saved[method.name]
                maker = source if callable(source) else _open_blend(source, controllers)
                seeds = range(seed, seed + episodes)
                sums = [row for one in seeds for row in drive_blend(first, maker(one), seed=one)]
            else:
                try:
                    sums = runner.run(method, setting, episodes=episodes, seed=seed, block=block)
                except InputError as error:
                    if methods is not None or not method.trained:
                        raise
                    left_out[method.name] = str(error)  # its training found too little
                    total -= len(method.settings) - number
                    break
            about = {"method": method.name, "setting": number, "parameters": json.dumps(setting), "networks": 0}
            rows += [
                about | {"seed": seed + i} | episode_columns(row) | jerk_columns(row) for i, row in enumerate(sums)
            ]
            done += 1
            if on_progress is not None:
                on_progress(done / total)
    plan = replace(plan, methods={name: method for name, method in table.items() if name not in left_out})
    episodes_table = pa.Table.from_pylist([row for row in rows if row["method"] in plan.methods], schema=COLUMNS)
    summary = standings(plan, episodes_table)
    return ComparisonTable(tuple(_row(*item) for item in summary["methods"].items()), episodes_table, summary, left_out)


@dataclass(frozen=True)
class _MethodRunner:
    """Run methods in one environment with the same controllers."""

    make: Callable[[], gymnasium.Env[Any, Any]]
    spec: EnvironmentSpec | None
    controllers: Sequence[Controller]
    judge_every: int
    single: bool  # there is one environment only

    def open(self, count: int) -> Any:
        """Open environments in lock-step."""
        if self.spec is not None:
            return self.spec.make_vector(count)
        return lock_step([self.make() for _ in range(1 if self.single else count)], keep_open=self.single)

    def run(
        self, method: Method, setting: Mapping[str, Any], *, episodes: int, seed: int, block: int
    ) -> list[dict[str, Any]]:
        """Return the sums of the episodes of a method."""
        learned: dict[str, Any] = {}
        if method.trained:
            learned = train_method(
                method.name,
                setting,
                open_worlds=self.open,
                controllers=self.controllers,
                seed=(seed + TRAINING_SEEDS) % 2**32,
            )
        rows: list[dict[str, Any]] = []
        for first in range(0, episodes, 1 if self.single else block):
            count = 1 if self.single else min(block, episodes - first)
            with closing(self.open(count)) as worlds:
                sums = run_episodes(
                    worlds,
                    self.controllers,
                    make=lambda context: method.make(context, setting, learned),
                    seed=seed + first,
                    judge_every=self.judge_every if hasattr(worlds, "peek") else 0,
                )
            rows += sums.table().to_pylist()
        return rows


def _choose(
    asked: Sequence[str] | None, controllers: Sequence[Controller], worlds: Any, parameters: Mapping[str, Any]
) -> tuple[dict[str, Method], dict[str, str]]:
    """Return the methods to run, and those that cannot run, with the reason; raise if one of them was requested."""
    between = [f"controller-{number}" for number in range(2, len(controllers))]
    names = dict.fromkeys((*ALONE, *between, *(METHODS if asked is None else asked)))
    chosen, left_out = {}, {}
    for name in names:
        check_controller_number(name, controllers)
        values = {key: ",".join(map(str, _several(value))) for key, value in parameters.get(name, {}).items()}
        method = with_values(find_method(name), values)
        reason = missing_requirement(method, controllers, worlds=worlds)
        if reason is None:
            chosen[name] = method
        elif asked is not None and name in asked:
            raise InputError(f"the method {name} needs {reason}; leave it out, or use other controllers")
        else:
            left_out[name] = reason
    if unknown := [name for name in parameters if name not in names]:
        raise InputError(f"parameters are set for {', '.join(unknown)}, not among the methods compared")
    return chosen, left_out


def _several(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


def _open_blend(directory: str | Path, controllers: Sequence[Any]) -> Callable[[int], Blender]:
    return blender_maker({"blend": str(directory), "controllers": list(controllers), "changes": {}})


def _label(declared: Any, controller: Controller) -> str:
    return declared if isinstance(declared, str) else controller_label(controller)


def _row(name: str, summary: Mapping[str, Any]) -> MethodRow:
    keys = {one.name: one.name for one in fields(MethodRow)[1:]}
    keys |= {name: f"{name}_mean" for name in ("share", "switches", "jerk")}
    values: dict[str, Any] = {field_name: summary[key] for field_name, key in keys.items()}
    values |= {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
    return MethodRow(name, **values)
