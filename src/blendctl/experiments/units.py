"""Units of work of an experiment, identified by the hash of their content.

A unit is a kind and plain parameters. The kind names a function, "package.module:function", that any process on any
machine can import. The function takes the parameters (and the result of the unit that it follows) and returns a
`Result`. The same unit returns the same result to the bit wherever it runs, so that it runs only once.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import gymnasium
import pyarrow as pa

from blendctl.envs.catalog import find_task, open_task
from blendctl.envs.environment import EnvironmentSpec
from blendctl.errors import FileFormatError, InputError
from blendctl.user_code import is_python

F = TypeVar("F", bound=Callable[..., "Result"])


@dataclass(frozen=True)
class Result:
    """Result of a unit: JSON data, at most one table, and its timing."""

    values: dict[str, Any]  # JSON data; floats are stored bit for bit
    table: pa.Table | None = None
    timing: dict[str, float] = field(default_factory=dict, compare=False)  # not compared

    def same_as(self, other: Result) -> bool:
        """Return whether two results are equal to the bit; the timing may differ."""
        if _canonical(self.values) != _canonical(other.values):
            return False
        if self.table is None or other.table is None:
            return self.table is other.table
        return bool(self.table.equals(other.table))


def unit_kind(*, version: int) -> Callable[[F], F]:
    """Declare a module's function as a kind of unit: `function(parameters, before) -> Result`.

    `before` is the result of the unit that it follows, or None. Increase `version` whenever the function would return
    another result for the same parameters: stored units then run again.
    """

    def mark(function: F) -> F:
        function.unit_version = version  # type: ignore[attr-defined]  # read by Unit and run_unit
        return function

    return mark


@dataclass(frozen=True)
class Unit:
    """One piece of an experiment. The files of `controllers` in its parameters are part of its identity.

    >>> unit = Unit("blendctl.experiments.baseline_units:baseline", {"world": "PointGoal1", "seed": 0})
    >>> len(unit.key), unit.after is None
    (32, True)
    """

    kind: str  # "package.module:function"
    parameters: Mapping[str, Any]  # JSON data
    after: Unit | None = None  # predecessor, whose result it needs
    digests: tuple[str, ...] = ()  # of the controllers' files in order, then of a world in Python
    key: str = field(default="", init=False)  # hash of the content

    def __post_init__(self) -> None:
        if not self.digests:
            object.__setattr__(self, "digests", tuple(_parameter_digests(self.parameters)))
        after = None if self.after is None else self.after.key
        content = [self.kind, _function(self.kind).unit_version, dict(self.parameters), list(self.digests), after]
        object.__setattr__(self, "key", hashlib.sha256(_canonical(content)).hexdigest()[:32])

    def to_json(self) -> bytes:
        """Return the unit as JSON for a worker, with absolute paths."""
        parameters = dict(self.parameters)
        if "controllers" in parameters:
            parameters["controllers"] = [_absolute_path(str(spec)) for spec in parameters["controllers"]]
        if is_python(str(parameters.get("world", ""))):
            parameters["world"] = _absolute_path(parameters["world"])
        if isinstance(parameters.get("environment"), Mapping):
            named = {key: value for key, value in parameters["environment"].items() if key in ("name", "cost")}
            paths = {key: _absolute_path(value) for key, value in named.items() if value and is_python(value)}
            parameters["environment"] = dict(parameters["environment"]) | paths
        content = {"kind": self.kind, "parameters": parameters, "digests": self.digests}
        return _canonical(content | {"version": _function(self.kind).unit_version})


def run_unit(unit_json: bytes, before: Result | None) -> Result:
    """Run a unit; raise InputError if code or controllers on this machine differ from those of the unit."""
    unit = json.loads(unit_json)
    function = _function(unit["kind"])
    if function.unit_version != unit["version"]:
        raise InputError(
            f"{unit['kind']} is version {function.unit_version} here, the unit was made for {unit['version']}; "
            "install the same blendctl on every machine"
        )
    parameters = unit["parameters"]
    world, controllers = str(parameters.get("world", "")), parameters.get("controllers", ())
    if is_python(world) and not isinstance(parameters.get("environment"), Mapping):
        open_task(world)
    if _parameter_digests(parameters) != unit["digests"]:
        files = ", ".join(map(str, [*controllers, world]))
        raise InputError(
            f"one of {files} is another file here than where the experiment was started; every machine must see the "
            "same files"
        )
    result: Result = function(parameters, before)
    return result


@functools.cache
def _function(kind: str) -> Any:
    module, _, name = kind.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f'there is no kind of unit "{kind}": {error}') from error
    if not hasattr(function, "unit_version"):
        raise InputError(f'"{kind}" is not declared with @unit_kind(version=...)')
    return function


def _parameter_digests(parameters: Mapping[str, Any]) -> list[str]:
    """Digest the files that the parameters of a unit name."""
    controllers, environment = parameters.get("controllers", ()), parameters.get("environment")
    if isinstance(environment, Mapping):
        return file_digests("", controllers) + environment_digests(EnvironmentSpec(**environment))
    return file_digests(str(parameters.get("world", "")), controllers)


def environment_digests(spec: EnvironmentSpec) -> list[str]:
    """Digest the files of an environment and its cost; of an id of Gymnasium, how it is registered."""
    named = [one for one in (spec.name, spec.cost or "") if is_python(one) and one not in gymnasium.registry]
    digests = [_controller_digest(one) for one in named]
    if spec.name in gymnasium.registry:
        digests.append(hashlib.sha256(repr(gymnasium.spec(spec.name)).encode()).hexdigest())
    return digests


def file_digests(world: str, controllers: Iterable[str]) -> list[str]:
    """Digest controllers, then the world if it is a task in Python: its file and its declaration."""
    digests = [_controller_digest(str(spec)) for spec in controllers]
    if is_python(world):
        task = find_task(world)
        digests += [_controller_digest(world), hashlib.sha256(repr((task, task.robot_spec)).encode()).hexdigest()]
    return digests


def _controller_digest(spec: str) -> str:
    """Return the digest of a controller's file, or its name if it has no file (classical, remote)."""
    from blendctl.controllers.zoo import find_controller_file

    path = Path(spec)
    if ":" in spec and not path.is_file():
        path = Path(spec.rpartition(":")[0])  # file.py:object; addresses and modules have no file
    elif not path.is_file():
        try:
            path = find_controller_file(spec)
        except InputError:
            return spec  # opening it raises the error
    try:
        stat = path.stat()
    except OSError:
        return spec
    return _digest(str(path), stat.st_mtime_ns, stat.st_size)


def _absolute_path(spec: str) -> str:
    """Make the path of a file absolute; leave zoo names, addresses and modules unchanged."""
    from blendctl.controllers.zoo import zoo_names

    file, colon, name = spec.rpartition(":")
    if colon and Path(file).is_file():
        return f"{Path(file).resolve()}:{name}"
    return str(Path(spec).resolve()) if Path(spec).exists() and spec not in zoo_names() else spec


@functools.lru_cache(maxsize=1024)
def _digest(path: str, changed: int, size: int) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise FileFormatError(f"cannot read the controller {path}: {error.strerror or error}") from error


def _canonical(content: Any) -> bytes:
    try:
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InputError(f"units take and return JSON data (no NaN, no arrays): {error}") from error
