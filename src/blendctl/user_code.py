"""Import Python that a user names: "module:object" or "file.py:object"."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from blendctl.errors import InputError, did_you_mean


def is_python(spec: str) -> bool:
    """Return whether a specification has the form of "module:object" or "file.py:object".

    >>> is_python("volcano.py:volcano"), is_python("PointGoal1"), is_python("tcp://127.0.0.1:7001")
    (True, False, False)
    """
    where, colon, name = spec.rpartition(":")
    return bool(colon and where) and name.isidentifier()


def names_code(name: object) -> bool:
    """Return whether a world, a cost or a Gymnasium id imports code, so that only a user may name it, never a file.

    >>> names_code("volcano.py:volcano"), names_code("module:Volcano-v0"), names_code("PointGoal1")
    (True, True, False)
    """
    return ":" in str(name)


def load_object(spec: str, *, of: type | tuple[type, ...] | None = None) -> Any:
    """Import a module, or run a file, and return one of its objects. This runs the user's code.

    With types in `of`, the error about a missing object lists the objects of these types.
    """
    where, _, name = spec.rpartition(":")
    try:
        module = _run_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    except Exception as error:  # the user's code may raise anything
        raise InputError(f'"{where}" cannot be imported: {type(error).__name__}: {error}') from error
    if not hasattr(module, name):
        others = [key for key, value in vars(module).items() if of is not None and isinstance(value, of)]
        raise InputError(f'"{where}" has no "{name}"' + (f"; {did_you_mean(name, others)}" if others else ""))
    return getattr(module, name)


def _run_file(path: Path) -> Any:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    # dataclasses look their module up by name, so the name must be unique and known
    name = f"{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
