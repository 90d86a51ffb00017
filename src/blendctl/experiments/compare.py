"""Compare methods: the units of a comparison, and the table of all their episodes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from blendctl.controllers.lookahead_file import LOOKAHEAD_FILE
from blendctl.controllers.zoo import lookahead_file
from blendctl.envs import find_task
from blendctl.envs.batch import LARGEST_SEED
from blendctl.envs.catalog import world_name
from blendctl.envs.environment import EnvironmentSpec
from blendctl.episodes import COLUMNS as EPISODE_COLUMNS
from blendctl.episodes import episode_columns, jerk_columns
from blendctl.errors import InputError
from blendctl.experiments.comparison_units import BLEND_EPISODES, EPISODES, TRAIN, describe_blend
from blendctl.experiments.engines import FinishedUnit
from blendctl.experiments.units import Unit, environment_digests, file_digests
from blendctl.switches.methods import METHODS, Method, check_controller_number, find_method, with_values

ALONE = ("performant", "safe")  # the methods that define the corner: they always run
BLEND = "blend"  # the method of a saved blend
TRAINING_SEEDS = 2**31  # distance of the seeds of offline training from those of the comparison
ROOM = 2**20  # seeds of a training

COLUMNS = pa.schema(
    [
        ("method", pa.string()),
        ("setting", pa.int32()),  # number of the method's setting
        ("parameters", pa.string()),  # of the setting, as JSON
        ("networks", pa.int32()),  # number of the look-ahead networks, from 0
        ("seed", pa.int64()),  # of the episode's layout
        *EPISODE_COLUMNS.items(),
        ("jerk", pa.float64()),  # mean change of the action between control steps
    ]
)


def saved_blend(source: object) -> Method:
    """Return the method of a saved blend; it has its own unit function and makes no switch."""

    def make(*_: Any) -> Any:
        raise NotImplementedError("a saved blend drives one environment at a time")

    return Method(BLEND, f"the saved blend {source}", make)


@dataclass(frozen=True)
class Compared:
    """The data of a comparison that its standings need."""

    world: str  # name of the environment
    controllers: Sequence[str]  # performant first and safe last
    episodes: int  # per method and setting
    seed: int  # of the first episode
    steps: int | None  # limit of an episode; None: that of the environment
    block: int  # episodes that share a learner
    methods: Mapping[str, Method]
    lookahead_controllers: Sequence[str] = ()  # of the methods that look ahead; empty: `controllers`

    def controllers_of(self, method: Method) -> Sequence[str]:
        """Return the controllers that a method switches between."""
        return (self.lookahead_controllers if method.needs == "lookahead" else ()) or self.controllers


@dataclass(frozen=True)
class ComparisonUnit:
    """One unit of a comparison, with its method and setting."""

    unit: Unit
    method: str
    setting: int  # number of the method's setting; -1 for a training
    count: int  # episodes
    networks: int = 0  # number of the look-ahead networks


@dataclass(frozen=True)
class Comparison:
    """A comparison of methods that drive the same world, on the same seeds.

    controllers: performant first, safe last: these define the corner score. lookahead_controllers: those of the methods
    that look ahead with networks; empty: the same. values: other values of the methods' parameters,
    {"ceiling": {"samples": "5"}}.
    lookahead: files, run directories or zoo names of look-ahead networks, such as those of several training seeds: a
    method that looks ahead runs with each. Empty: those found for the controllers, with the digest `found_networks`.
    environment: an environment other than a world of blendctl; `world` is then its name. blend: directory of a saved
    blend, which is one more method; every episode starts with it as it was saved.
    Blocks of episodes run in lock-step; in a block, one learner of a bandit learns from all worlds.
    """

    world: str
    controllers: tuple[str, ...]
    methods: tuple[str, ...] = tuple(METHODS)
    episodes: int = 30
    seed: int = 1_000_000  # episode i has seed + i; far from the layouts of training
    steps: int | None = None  # shortens the episodes
    block: int = 15  # episodes per unit
    judge_every: int = 10  # control steps between two evaluated choices; 0: none
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    lookahead: tuple[str, ...] = ()
    lookahead_controllers: tuple[str, ...] = ()
    found_networks: str = ""
    environment: EnvironmentSpec | None = None
    blend: str | None = None

    def __post_init__(self) -> None:
        if self.environment is None:
            find_task(self.world)
            object.__setattr__(self, "world", world_name(self.world))
        asked = [find_method(name).name for name in self.methods if name != BLEND]
        between = [f"controller-{number}" for number in range(2, len(self.controllers))]
        saved = [] if self.blend is None else [BLEND]
        object.__setattr__(self, "methods", tuple(dict.fromkeys((*ALONE, *between, *saved, *asked))))
        for name, least in (("episodes", 1), ("block", 1), ("judge_every", 0), ("seed", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} must be a whole number >= {least}, actually: {getattr(self, name)}")
        if self.steps is not None and self.steps < 1:
            raise InputError(f"steps must be a whole number >= 1, actually: {self.steps}")
        if self.seed + self.episodes > LARGEST_SEED:
            raise InputError(f"seeds end at 2**32 - 1, actually: {self.seed} and {self.episodes} episodes")
        if len(self.controllers) < 2:
            raise InputError(
                "a comparison needs two controllers or more, performant first and safe last, "
                f"actually: {len(self.controllers)}"
            )
        for name in self.methods:
            check_controller_number(name, self.controllers)
        paths = map(lookahead_file, self.lookahead)
        files = [str(path / LOOKAHEAD_FILE if path.is_dir() else path) for path in paths]
        if len(set(files)) < len(files):
            raise InputError(f"look-ahead networks must differ, actually: {' '.join(self.lookahead)}")
        object.__setattr__(self, "lookahead", tuple(files))
        for name in self.values:
            if find_method(name).name not in self.methods:
                raise InputError(f"parameters are set for {name}, which is not among the methods compared")
        self.table_of_methods()  # raises InputError for wrong values

    @property
    def identity(self) -> dict[str, Any]:
        """Data that must not change in a directory of results; methods and episodes may be added."""
        return (
            {
                "world": self.world,
                "controllers": list(self.controllers),
                "digests": self._digests(),
                "seed": self.seed,
                "steps": self.steps,
            }
            | ({} if self.environment is None else {"environment": self.environment.to_dict()})
            | ({"lookahead": file_digests(self.world, self.lookahead)} if self.lookahead else {})
        )

    @property
    def parts(self) -> dict[str, Any]:
        """Data that may come later and must not change then: the controllers of methods that look ahead."""
        names = self.lookahead_controllers
        if not names or all(method.needs != "lookahead" for method in self.table_of_methods().values()):
            return {}
        return {"look-ahead": {"controllers": list(names), "digests": file_digests(self.world, names)}}

    def _digests(self) -> list[str]:
        if self.environment is None:
            return file_digests(self.world, self.controllers)
        return file_digests("", self.controllers) + environment_digests(self.environment)

    def table_of_methods(self) -> dict[str, Method]:
        """Return the methods by name, with their parameters as set."""
        return {
            name: saved_blend(self.blend)
            if name == BLEND
            else with_values(find_method(name), self.values.get(name, {}))
            for name in self.methods
        }

    def compared(self) -> Compared:
        """Return the data that the standings need."""
        numbers = self.episodes, self.seed, self.steps, self.block
        return Compared(self.world, self.controllers, *numbers, self.table_of_methods(), self.lookahead_controllers)

    def units(self) -> list[ComparisonUnit]:
        """Split the comparison into units: those that define the score, trainings, then the longest first."""
        common: dict[str, Any] = {"world": self.world, "steps": self.steps}
        common |= {"lookahead": self.lookahead[0]} if self.lookahead else {}
        common |= {} if self.environment is None else {"environment": self.environment.to_dict()}
        training_seed = (self.seed + TRAINING_SEEDS) % (LARGEST_SEED - ROOM)
        ranked: list[tuple[int, ComparisonUnit]] = []
        compared = self.compared()
        for method in compared.methods.values():
            common |= {"controllers": list(compared.controllers_of(method))}
            rank = 0 if method.name in ALONE else 2 if method.heavy else 3
            ahead = method.needs == "lookahead"
            several = self.lookahead[1:] if ahead else ()
            found = {"found_networks": self.found_networks} if ahead and self.found_networks else {}
            for number, setting in enumerate(method.settings):
                after = None
                if method.trained:
                    training = {"method": method.name, "setting": dict(setting), "seed": training_seed}
                    after = Unit(TRAIN, common | training)
                    ranked.append((1, ComparisonUnit(after, method.name, -1, 0)))
                for networks, first in itertools.product(range(1 + len(several)), range(0, self.episodes, self.block)):
                    count = min(self.block, self.episodes - first)
                    parameters = common | {
                        "method": method.name,
                        "setting": dict(setting),
                        "seed": self.seed + first,
                        "count": count,
                        "judge_every": self.judge_every,
                    }
                    parameters |= {"lookahead": several[networks - 1]} if networks else found
                    unit = Unit(EPISODES, parameters, after=after)
                    if method.name == BLEND:
                        seeds = {"seed": self.seed + first, "count": count}
                        unit = Unit(BLEND_EPISODES, common | seeds | describe_blend(str(self.blend)))
                    ranked.append((rank, ComparisonUnit(unit, method.name, number, count, networks)))
        return [entry for _, entry in sorted(ranked, key=lambda pair: pair[0])]

    def finished(self, done: Iterable[FinishedUnit]) -> Comparison | None:
        """Return the comparison of the finished methods; None if the two controllers alone are not among them."""
        keys = {one.unit.key for one in done}
        left = {entry.method for entry in self.units() if entry.unit.key not in keys}
        if left & set(ALONE):
            return None
        whole = tuple(name for name in self.methods if name not in left)
        values = {name: chosen for name, chosen in self.values.items() if find_method(name).name in whole}
        made = replace(self, values={})
        for name, value in (("methods", whole), ("values", values)):  # without those that are implied
            object.__setattr__(made, name, value)
        return made

    def rows(self, planned: Sequence[ComparisonUnit], finished: Iterable[FinishedUnit]) -> pa.Table:
        """Return the table of all episodes: a row per method, networks, setting and episode, in that order."""
        results = {done.unit.key: done.result for done in finished}
        methods = self.table_of_methods()
        ordered = sorted(
            (entry for entry in planned if entry.setting >= 0),
            key=lambda entry: (
                self.methods.index(entry.method),
                entry.networks,
                entry.setting,
                entry.unit.parameters["seed"],
            ),
        )
        rows = []
        for entry in ordered:
            about = {
                "method": entry.method,
                "setting": entry.setting,
                "parameters": json.dumps(methods[entry.method].settings[entry.setting]),
                "networks": entry.networks,
            }
            first = entry.unit.parameters["seed"]
            table = results[entry.unit.key].table
            assert table is not None
            for index, sums in enumerate(table.to_pylist()):
                rows.append(about | {"seed": first + index} | episode_columns(sums) | jerk_columns(sums))
        return pa.Table.from_pylist(rows, schema=COLUMNS)
