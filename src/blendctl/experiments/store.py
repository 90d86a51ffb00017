"""The store: finished units on disk, named by the hash of their content, and the sessions that ran them.

    DIR/run.json              what the directory is: experiment, identity, sessions (command, versions, machine)
    DIR/units/KEY.json        a unit's result without a table
    DIR/units/KEY.parquet     a unit's result with a table; the rest is in the file's metadata

Files are written atomically. A damaged file counts as not done.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import time
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from blendctl.atomic import write_atomically
from blendctl.controllers.card import versions
from blendctl.directory_lock import DirectoryLock
from blendctl.errors import BlendctlError, FileFormatError, InputError
from blendctl.experiments.units import Result, Unit
from blendctl.file_reading import parse_json, read_json_object, reading
from blendctl.table_parts import unpack_table
from blendctl.user_errors import describe_error

FORMAT, VERSION = "blendctl-unit", 1
_KEY = b"blendctl"  # metadata key of the JSON part in a Parquet file


def encode(key: str, unit_json: bytes, result: Result) -> bytes:
    """Return the content of a unit's file: JSON, or Parquet with the JSON part in its metadata."""
    content = {"unit": json.loads(unit_json), "values": result.values}
    try:
        text = json.dumps(content, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"a unit returned values that are not JSON data: {error}") from error
    digest = hashlib.sha256(text.encode()).hexdigest()
    head = {"format": FORMAT, "version": VERSION, "key": key, "digest": digest, "timing": result.timing}
    whole = json.dumps(head | {"content": text})
    if result.table is None:
        return whole.encode() + b"\n"
    table = result.table.replace_schema_metadata({_KEY: whole.encode()})
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue()


def decode(data: bytes, *, key: str) -> Result:
    """Read a unit's file; raise FileFormatError unless it is exactly what `encode` returned."""
    table = None
    try:
        if data[:4] == b"PAR1":
            table = unpack_table(io.BytesIO(data), len(data))
            whole = parse_json(table.schema.metadata[_KEY])
            table = table.replace_schema_metadata(None)
        else:
            whole = parse_json(data)
        if (whole["format"], whole["version"]) != (FORMAT, VERSION):
            raise FileFormatError(f"unit {key} is of format {whole['format']} {whole['version']}")
        if whole["key"] != key or hashlib.sha256(whole["content"].encode()).hexdigest() != whole["digest"]:
            raise FileFormatError(f"unit {key} was changed after it was written")
        return Result(json.loads(whole["content"])["values"], table, dict(whole["timing"]))
    except Exception as error:  # damaged bytes raise many kinds
        if isinstance(error, FileFormatError) and f"unit {key}" in str(error):
            raise
        raise FileFormatError(f"unit {key} is truncated or damaged: {describe_error(error)}") from error


class Store:
    """A directory of one experiment, locked until `close` or the end of the process.

    experiment: its name ("reproduce"). identity: JSON data that must not change between sessions (seed, options);
    the number of data points may grow and is not part of it. parts: named pieces that a later session may add, each
    with JSON data that must not change (a world's controllers). A directory with other data is refused.
    `version_changes` names packages whose versions differ from an earlier session; finished units are kept.
    """

    def __init__(
        self,
        directory: str | Path,
        experiment: str,
        *,
        identity: Mapping[str, Any],
        parts: Mapping[str, Any] | None = None,
        command: str = "",
    ) -> None:
        self.directory = Path(directory)
        self.units = self.directory / "units"
        self.experiment, self.identity = experiment, json.loads(json.dumps(dict(identity)))
        if self.directory.exists() and not self.directory.is_dir():
            raise InputError(f"{self.directory} is a file; expected a directory for the results")
        self._lock = DirectoryLock(self.directory)
        try:
            self._open(json.loads(json.dumps(dict(parts or {}))), command)
        except BaseException:
            self.close()
            raise

    def _open(self, new: dict[str, Any], command: str) -> None:
        run = self._known()
        stored = run.get("parts", {})
        self._expect_same(stored, new, names=stored.keys() & new.keys())
        if new:
            run["parts"] = stored | new
        session = {"command": command, "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **describe_machine()}
        earlier = run.get("sessions", [])
        self.version_changes = _version_changes([one.get("versions", {}) for one in earlier], session["versions"])
        run["sessions"] = [*earlier, session]
        self._run = run
        self.write_json("run.json", run)
        self.damaged: list[str] = []  # damaged files, whose units run again

    def _known(self) -> dict[str, Any]:
        """Read run.json; raise InputError if the directory holds another experiment."""
        fresh = {"experiment": self.experiment, "identity": self.identity}
        path = self.directory / "run.json"
        if not path.exists():
            names = sorted(p.name for p in self.directory.iterdir())
            if names:
                raise InputError(
                    f"{self.directory} holds other data ({', '.join(names[:3])}{', ...' if names[3:] else ''}); "
                    "choose a new or an empty directory"
                )
            return fresh
        with reading(path, "blendctl's (choose another directory)"):
            run = read_json_object(path)
            name, identity, _ = run["experiment"], dict(run["identity"]), dict(run.get("parts", {}))
            if not all(isinstance(one["versions"], dict) for one in run.get("sessions", [])):
                raise ValueError("its sessions have no versions")
        if name != self.experiment:
            raise InputError(
                f'{self.directory} holds the results of "{name}", this is "{self.experiment}"; choose another directory'
            )
        self._expect_same(identity, self.identity, names=identity.keys() | self.identity.keys())
        return dict(run)

    def _expect_same(self, stored: Mapping[str, Any], now: Mapping[str, Any], *, names: Set[str]) -> None:
        differences = "; ".join(
            f"{name} {json.dumps(stored.get(name))} there, {json.dumps(now.get(name))} now"
            for name in sorted(names)
            if stored.get(name) != now.get(name)
        )
        if differences:
            raise InputError(
                f"{self.directory} holds another run of {self.experiment}: {differences}; choose another directory, "
                "or the same options"
            )

    def get(self, unit: Unit) -> Result | None:
        """Return a finished unit's result, or None if it is not done or its file is damaged."""
        for suffix in (".parquet", ".json"):
            path = self.units / f"{unit.key}{suffix}"
            try:
                return decode(path.read_bytes(), key=unit.key)
            except FileNotFoundError:
                continue
            except FileFormatError:
                self.damaged.append(path.name)
                path.unlink(missing_ok=True)
        return None

    def read(self, unit: Unit) -> bytes:
        """Return the file of a finished unit."""
        for suffix in (".parquet", ".json"):
            path = self.units / f"{unit.key}{suffix}"
            if path.is_file():
                return path.read_bytes()
        raise FileFormatError(f"the file of unit {unit.key} is missing in {self.units}; run the same command again")

    def put(self, unit: Unit, data: bytes) -> Result:
        """Store the file of a finished unit, as `encode` returned it; return the result."""
        result = decode(data, key=unit.key)
        self.write(f"units/{unit.key}.{'json' if result.table is None else 'parquet'}", data)
        return result

    def write(self, name: str, data: bytes) -> Path:
        """Write a file of the directory atomically."""
        path = self.directory / name
        try:
            write_atomically(path, data)
        except OSError as error:
            raise BlendctlError(
                f"cannot write {path}: {error.strerror or error}; what is finished is kept; free disk space and run "
                "the same command again"
            ) from error
        return path

    def write_json(self, name: str, data: Any) -> None:
        """Write data as an indented JSON file of the directory, atomically."""
        self.write(name, (json.dumps(data, indent=2, allow_nan=False) + "\n").encode())

    def close(self) -> None:
        """Release the directory for other runs."""
        self._lock.close()

    def note(self, **facts: Any) -> None:
        """Add facts about this session to run.json (seconds, units run)."""
        self._run["sessions"][-1].update(facts)
        self.write_json("run.json", self._run)


def _version_changes(sessions: Iterable[Mapping[str, str]], now: Mapping[str, str]) -> str:
    """Describe versions that differ from earlier sessions; empty if all are equal.

    >>> _version_changes([{"numpy": "2.4.5", "numba": "0.62"}, {"numpy": "2.4.6"}], {"numpy": "2.4.6", "numba": "0.62"})
    'numpy 2.4.5, now 2.4.6'
    """
    before = dict.fromkeys(item for session in sessions for item in session.items())
    return "; ".join(f"{name} {old}, now {now.get(name)}" for name, old in before if old != now.get(name))


def describe_machine() -> dict[str, Any]:
    """Return the versions and the machine, to compare results."""
    return {
        "versions": versions("numpy", "numba", "mujoco", "gymnasium", "pyarrow"),
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "processor": _processor(),
            "cores": os.cpu_count(),
        },
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"
