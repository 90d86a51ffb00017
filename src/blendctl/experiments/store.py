"""The store: finished units on disk, each under the name of its content, and who made them.

    DIR/run.json              what the directory is: experiment, identity, sessions (command, versions, machine)
    DIR/units/KEY.json        a unit's result without a table
    DIR/units/KEY.parquet     a unit's result with a table; the rest is in the file's metadata

Every file appears whole or not at all. A damaged one counts as not done.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import sys
import time
from collections.abc import Iterable, Mapping, Set
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from blendctl._version import __version__
from blendctl.atomic import write_atomically
from blendctl.errors import BlendctlError, FileFormatError, InputError
from blendctl.experiments.units import Result, Unit

__all__ = ["Store", "encode", "decode", "describe_machine"]

FORMAT, VERSION = "blendctl-unit", 1
_KEY = b"blendctl"  # where the JSON part is in a Parquet file


def encode(key: str, order: bytes, result: Result) -> bytes:
    """Give the content of a unit's file: JSON, or Parquet with the JSON part in its metadata."""
    content = {"unit": json.loads(order), "values": result.values}
    try:
        text = json.dumps(content, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"a unit gave values that are not JSON data: {error}") from error
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
    """Read a unit's file back, refusing whatever is not exactly what `encode` gave."""
    table = None
    try:
        if data[:4] == b"PAR1":
            table = pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True).read()
            whole = json.loads(table.schema.metadata[_KEY])
            table = table.replace_schema_metadata(None)
        else:
            whole = json.loads(data)
        if (whole["format"], whole["version"]) != (FORMAT, VERSION):
            raise FileFormatError(f"unit {key} is of format {whole['format']} {whole['version']}")
        if whole["key"] != key or hashlib.sha256(whole["content"].encode()).hexdigest() != whole["digest"]:
            raise FileFormatError(f"unit {key} was changed after it was written")
        return Result(json.loads(whole["content"])["values"], table, dict(whole["timing"]))
    except (ValueError, KeyError, TypeError, AttributeError, OSError, pa.ArrowException) as error:
        raise FileFormatError(f"unit {key} is truncated or damaged: {error}") from error


class Store:
    """A directory of one experiment.

    experiment: its name ("reproduce"); identity: what must not change between sessions, JSON data (seed, options);
    what may grow, such as the number of data points, is not part of it. parts: pieces that may be added, each with what
    it is made of (the world's controllers), which must not change either. A directory with other data is refused.
    `changed` tells if versions are others than in an earlier session: units that are done are kept all the same.
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
        run = self._known()
        mine = json.loads(json.dumps(dict(parts or {})))
        there = run.get("parts", {})
        self._expect_same(there, mine, names=there.keys() & mine.keys())
        if mine:
            run["parts"] = there | mine
        session = {"command": command, "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **describe_machine()}
        earlier = run.get("sessions", [])
        self.changed = _changes([one.get("versions", {}) for one in earlier], session["versions"])
        run["sessions"] = [*earlier, session]
        self._run = run
        self.write("run.json", _json(run))
        self.damaged: list[str] = []  # files that had to be run again

    def _known(self) -> dict[str, Any]:
        """Read what the directory is; refuse another experiment's."""
        fresh = {"experiment": self.experiment, "identity": self.identity}
        if self.directory.exists() and not self.directory.is_dir():
            raise InputError(f"{self.directory} is a file; expected a directory for the results")
        path = self.directory / "run.json"
        if not path.exists():
            found = sorted(p.name for p in self.directory.iterdir()) if self.directory.exists() else []
            if found:
                raise InputError(
                    f"{self.directory} holds other data ({', '.join(found[:3])}{', ...' if found[3:] else ''}); "
                    "choose a new or an empty directory"
                )
            return fresh
        try:
            run = json.loads(path.read_text())
            name, identity, _ = run["experiment"], dict(run["identity"]), dict(run.get("parts", {}))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FileFormatError(f"{path} is damaged or not blendctl's: {error}; choose another directory") from error
        if name != self.experiment:
            raise InputError(
                f'{self.directory} holds the results of "{name}", this is "{self.experiment}"; choose another directory'
            )
        self._expect_same(identity, self.identity, names=identity.keys() | self.identity.keys())
        return dict(run)

    def _expect_same(self, there: Mapping[str, Any], now: Mapping[str, Any], *, names: Set[str]) -> None:
        told = "; ".join(
            f"{name} {json.dumps(there.get(name))} there, {json.dumps(now.get(name))} now"
            for name in sorted(names)
            if there.get(name) != now.get(name)
        )
        if told:
            raise InputError(
                f"{self.directory} holds another run of {self.experiment}: {told}; choose another directory, or the "
                "same options"
            )

    def get(self, unit: Unit) -> Result | None:
        """Give a finished unit's result; None if it is not done, or its file is damaged."""
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
        """Give the file of a unit that is done."""
        for suffix in (".parquet", ".json"):
            path = self.units / f"{unit.key}{suffix}"
            if path.is_file():
                return path.read_bytes()
        raise FileFormatError(f"the file of unit {unit.key} has vanished from {self.units}; run the same command again")

    def put(self, unit: Unit, data: bytes) -> Result:
        """Keep a finished unit's file, as `encode` gave it; give its result."""
        result = decode(data, key=unit.key)
        self.write(f"units/{unit.key}.{'json' if result.table is None else 'parquet'}", data)
        return result

    def write(self, name: str, data: bytes) -> Path:
        """Write a file of the directory whole or not at all."""
        path = self.directory / name
        try:
            write_atomically(path, data)
        except OSError as error:
            raise BlendctlError(
                f"cannot write {path}: {error.strerror or error}; what is finished is kept, make room and run the "
                "same command again"
            ) from error
        return path

    def note(self, **facts: Any) -> None:
        """Add facts about the present session to run.json (seconds, units run)."""
        self._run["sessions"][-1].update(facts)
        self.write("run.json", _json(self._run))


def _changes(sessions: Iterable[Mapping[str, str]], now: Mapping[str, str]) -> str:
    """Tell which versions are others than in earlier sessions, in words; empty if none is.

    >>> _changes([{"numpy": "2.4.5", "numba": "0.62"}, {"numpy": "2.4.6"}], {"numpy": "2.4.6", "numba": "0.62"})
    'numpy 2.4.5, now 2.4.6'
    """
    told = (
        f"{name} {old}, now {now.get(name)}"
        for before in sessions
        for name, old in before.items()
        if old != now.get(name)
    )
    return "; ".join(dict.fromkeys(told))


def describe_machine() -> dict[str, Any]:
    """Tell versions and machine, for whoever compares results."""
    packages = ("numpy", "numba", "mujoco", "gymnasium", "pyarrow")
    return {
        "versions": {"blendctl": __version__, "python": sys.version.split()[0]}
        | {name: metadata.version(name) for name in packages},
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


def _json(data: Any) -> bytes:
    return (json.dumps(data, indent=2) + "\n").encode()
