"""The paper's experiment as units: three worlds, performant, safe and blended controller on the same episodes.

A data point is 30 episodes of 1,000 steps. Episode e of data point p of trace t has, for every role, the seed

    first_seed(seed, t, p) + e,    first_seed = the first word of numpy's SeedSequence([seed, t, p]), mod 2^32 - 2^16

so that all roles see the same layouts, and further data points or traces do not change earlier ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from blendctl.controllers import Controller, open_controller, zoo_names
from blendctl.controllers.zoo import PAIRS
from blendctl.envs import VectorWorld
from blendctl.envs.catalog import find_task, world_name
from blendctl.errors import InputError, did_you_mean
from blendctl.experiments.units import Unit, file_digests
from blendctl.features import as_feature
from blendctl.rollout import check_fits

# Per iteration, including counterfactual steps.
PAPER_MILLISECONDS = {"PointGoal1": 2.0, "PointPush1": 3.0, "CarButton1": 5.0}
SCALES = {"quick": 10, "paper": 110}  # data points
ROLES = ("performant", "safe", "random", "blended")
EVERY = 10  # random switching does not learn: after these data points only every tenth is run
# Features without learning: a trace passes on only its bandit.
FEATURES = ("predictions", "critics", "one-hot")

# Where the authors' code differs from the paper's text.
AUTHORS: dict[str, Any] = {
    "context": "previous",
    "options": {
        "noise": 0.01,
        "delta": 0.2,
        "radius": "paper",
        "union_bound": False,
        "prior": None,
        "theta_bound": 1.5,
    },
}


@dataclass(frozen=True)
class Settings:
    """The options of an experiment."""

    worlds: Mapping[str, tuple[str, str]]  # world -> performant and safe controller
    seed: int = 0
    traces: int = 1  # independent learners, each with its own episodes
    data_points: int = SCALES["quick"]
    episodes: int = 30  # per data point
    steps: int | None = None  # per episode; None: the world's limit, 1,000
    features: str = "predictions"
    context: str = "current"  # "previous": decide with the indices of the state before, as printed in the paper
    options: Mapping[str, Any] = field(default_factory=dict)  # of the bandit; its defaults are the paper's

    def __post_init__(self) -> None:
        for name, least in (("seed", 0), ("traces", 1), ("data_points", 1), ("episodes", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InputError(f"{name} must be a whole number >= {least}, actually: {value!r}")
        if self.episodes > 2**16:
            raise InputError(f"episodes must be at most {2**16} per data point, actually: {self.episodes}")
        if self.features not in FEATURES:
            raise InputError(
                f'features must not learn in this experiment, actually: "{self.features}"; '
                f"{did_you_mean(self.features, FEATURES)}"
            )
        if not self.worlds:
            raise InputError(f"expected at least one world; the paper's are {', '.join(PAIRS)}")

    def parts(self) -> dict[str, Any]:
        """Return the parts that a run may add: worlds, each with controllers and weights that must not change."""
        digests = {f"{world} digests": file_digests(world, pair) for world, pair in self.worlds.items()}
        return dict(self.worlds) | digests

    def identity(self) -> dict[str, Any]:
        """Return the data that must not change when a run continues; worlds, traces and data points may be added."""
        names = ("seed", "episodes", "steps", "features", "context")
        return {name: getattr(self, name) for name in names} | {"options": dict(self.options)}


class UnitLocation(NamedTuple):
    """The place of a unit in the experiment."""

    world: str
    trace: int
    role: str
    data_point: int  # 0, 1, ...


def first_seed(seed: int, trace: int, data_point: int) -> int:
    """Return the seed of a data point's first episode.

    >>> first_seed(0, 0, 0), first_seed(0, 0, 1) == first_seed(0, 1, 0)
    (2968811710, False)
    """
    word = int(np.random.SeedSequence([seed, trace, data_point]).generate_state(1)[0])
    return word % (2**32 - 2**16)


def noise_seed(seed: int, trace: int, data_point: int, role: str) -> int:
    """Return the seed of a role's draws of actions and ties."""
    key = [seed, trace, data_point, 1 + ROLES.index(role)]
    return int(np.random.SeedSequence(key).generate_state(1)[0])


def pair_of(
    world: str, controllers: tuple[str, ...] = (), *, features: str | None = None
) -> tuple[str, tuple[str, str]]:
    """Return a world's short name and its performant and safe controller, checked for the world and the features."""
    if len(controllers) not in (0, 2):
        raise InputError(f"expected two controllers, performant and safe, actually: {', '.join(controllers)}")
    place, (performant, safe) = controllers_of(world, controllers, features=features)
    return place, (performant, safe)


def controllers_of(
    world: str, controllers: tuple[str, ...] = (), *, features: str | None = None
) -> tuple[str, tuple[str, ...]]:
    """Return a world's short name and its controllers, performant first and safe last, checked as by `pair_of`."""
    task, place = find_task(world), world_name(world)  # raises InputError for an unknown world
    if len(controllers) == 1:
        raise InputError(
            f"expected two controllers or more, performant first and safe last, actually: {controllers[0]}"
        )
    pair = controllers or PAIRS.get(place, ())
    if not pair:
        raise InputError(f"the paper has no pair of controllers for {place}; name two: --controllers PERFORMANT SAFE")
    missing = [name for name in pair if name in PAIRS.get(place, ()) and name not in zoo_names()]
    if missing and not controllers:
        raise InputError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not in the zoo; train "
            f'with "blendctl train {place}", or name two others: --controllers PERFORMANT SAFE'
        )
    drivers = [open_controller(spec, world=place) for spec in pair]
    with closing(VectorWorld(task, 1, threads=1)) as worlds:
        for driver in drivers:
            _expect_fit(driver, worlds)
    if features in FEATURES:
        try:
            as_feature(features, drivers).bind(drivers, objectives=2)
        except InputError as error:
            reason = str(error).partition(";")[0]
            raise InputError(f"{reason}; without them: --features one-hot, which only names the arms") from error
    return place, tuple(pair)


def _expect_fit(controller: Controller, worlds: VectorWorld) -> None:
    """Raise InputError for a controller of another world: by its shapes, or by one action."""
    check_fits(controller, worlds)
    observations, _ = worlds.reset(seed=0)
    action = np.asarray(controller.act(observations[0]))
    need = worlds.single_action_space.shape
    if action.shape != need:
        raise InputError(
            f"{getattr(controller, 'name', 'a controller')} returns actions of shape {action.shape}, expected {need}"
        )


def plan(settings: Settings) -> tuple[list[Unit], dict[str, list[UnitLocation]]]:
    """Split the experiment into units; return them and the locations of each key.

    The chains come first, because they take longest: blended units follow each other along a trace, all others are
    independent. Random switching runs at the first ten data points and at every tenth after them.
    """
    units: list[Unit] = []
    places: dict[str, list[UnitLocation]] = {}

    def add(kind: str, place: UnitLocation, parameters: dict[str, Any], after: Unit | None = None) -> Unit:
        common = {
            "world": place.world,
            "first_seed": first_seed(settings.seed, place.trace, place.data_point),
            "noise_seed": noise_seed(settings.seed, place.trace, place.data_point, place.role),
            "episodes": settings.episodes,
            "steps": settings.steps,
        }
        unit = Unit(f"blendctl.experiments.{kind}", common | parameters, after=after)
        units.append(unit)
        places.setdefault(unit.key, []).append(place)
        return unit

    learner = {
        "names": ["performant", "safe"],
        "features": settings.features,
        "context": settings.context,
        "options": dict(settings.options),
    }
    traces = [(world, pair, trace) for world, pair in settings.worlds.items() for trace in range(settings.traces)]
    for world, pair, trace in traces:
        before: Unit | None = None
        for point in range(settings.data_points):
            place = UnitLocation(world, trace, "blended", point)
            before = add("blended:blended", place, {"controllers": list(pair)} | learner, before)
    for point in range(settings.data_points):
        for world, pair, trace in traces:
            teams: dict[str, tuple[str, ...]] = {"performant": pair[:1], "safe": pair[1:]}
            teams |= {"random": pair} if point < EVERY or point % EVERY == 0 else {}
            for role, team in teams.items():
                add("baseline_units:baseline", UnitLocation(world, trace, role, point), {"controllers": list(team)})
    return units, places
