"""Read the tensors of a torch checkpoint without torch and without executing its pickle program.

A checkpoint is a zip with a program for Python's pickle machine and a file per tensor. The program is *read* here,
opcode by opcode. Only the opcodes that a dictionary of tensors needs are understood; anything else, such as the call
of a function, is refused. Nothing in the file is executed.
"""

from __future__ import annotations

import math
import os
import pickletools
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blendctl.controllers.number_checks import check_whole
from blendctl.errors import FileFormatError
from blendctl.file_reading import check_archive, reading, unpacked_limit

Tensors = dict[str, Any]  # nested dictionaries of arrays and plain values

_DTYPES: dict[str, np.dtype[Any]] = {
    "FloatStorage": np.dtype("<f4"),
    "DoubleStorage": np.dtype("<f8"),
    "HalfStorage": np.dtype("<f2"),
    "LongStorage": np.dtype("<i8"),
    "IntStorage": np.dtype("<i4"),
    "ShortStorage": np.dtype("<i2"),
    "CharStorage": np.dtype("i1"),
    "ByteStorage": np.dtype("u1"),
    "BoolStorage": np.dtype("?"),
}
LARGEST = 1 << 30  # bytes of all tensors
LARGEST_PROGRAM = 1 << 18  # bytes of the pickle program: about 200 per tensor
MOST_DIMENSIONS = 16


class _Name(NamedTuple):
    """A global that the program names; it is never imported."""

    module: str
    name: str


def read_torch_zip(source: str | Path | Any) -> Tensors:
    """Read a dictionary of tensors as arrays, from a path or an open file; raise FileFormatError for anything else."""
    label = source if isinstance(source, str | Path) else "the checkpoint"
    with reading(label, "a torch checkpoint"):
        with zipfile.ZipFile(source) as archive:
            size = archive.fp.seek(0, os.SEEK_END) if archive.fp is not None else 0
            check_archive(archive, size)
            programs = [name for name in archive.namelist() if name.endswith("data.pkl")]
            if len(programs) != 1:
                raise FileFormatError(f"{label} is a zip, but not a torch checkpoint: it has no data.pkl")
            if archive.getinfo(programs[0]).file_size > LARGEST_PROGRAM:
                raise ValueError(f"it has a program of more than {LARGEST_PROGRAM >> 10} KiB")
            root = programs[0].removesuffix("data.pkl")
            if f"{root}byteorder" in archive.namelist() and archive.read(f"{root}byteorder").strip() != b"little":
                raise FileFormatError(f"{label} was written on a big-endian machine")
            interpreter = _PickleInterpreter(archive, root, room=min(unpacked_limit(size), LARGEST))
            content = interpreter.run(archive.read(programs[0]))
        if not isinstance(content, dict):
            raise FileFormatError(f"{label} holds a {type(content).__name__}, not a dictionary of tensors")
        return content


class _PickleInterpreter:
    def __init__(self, archive: zipfile.ZipFile, root: str, *, room: int) -> None:
        self.archive, self.root = archive, root
        self.stack: list[Any] = []
        self.marks: list[int] = []  # positions in the stack
        self.memo: dict[int, Any] = {}
        self.files: dict[str, bytes] = {}  # storages that were read
        self.room = room  # bytes that tensors may still take

    def run(self, program: bytes) -> Any:
        """Interpret the program with the opcodes below."""
        for opcode, argument, _ in pickletools.genops(program):
            if opcode.name == "STOP":
                return self.stack.pop()
            self._step(opcode.name, argument)
        raise ValueError("it ends too soon")

    def _step(self, code: str, argument: Any) -> None:
        stack = self.stack
        match code:
            case "PROTO" | "FRAME":
                pass
            case "EMPTY_DICT" | "EMPTY_LIST" | "EMPTY_TUPLE":
                stack.append({"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}[code]())
            case "MARK":
                self.marks.append(len(stack))
            case "NONE" | "NEWTRUE" | "NEWFALSE":
                stack.append({"NONE": None, "NEWTRUE": True, "NEWFALSE": False}[code])
            case "BININT" | "BININT1" | "BININT2" | "LONG1" | "BINFLOAT" | "BINUNICODE" | "SHORT_BINUNICODE":
                stack.append(argument)
            case "BINPUT" | "LONG_BINPUT":
                self.memo[argument] = stack[-1]
            case "MEMOIZE":
                self.memo[len(self.memo)] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(self.memo[argument])
            case "GLOBAL":
                stack.append(_Name(*argument.split(" ", 1)))
            case "STACK_GLOBAL":
                name, module = stack.pop(), stack.pop()
                if not isinstance(name, str) or not isinstance(module, str):
                    raise ValueError("it names a global by something else than text")
                stack.append(_Name(module, name))
            case "TUPLE":
                stack.append(tuple(self._to_mark()))
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                count = int(code[-1])
                stack[-count:] = [tuple(stack[-count:])]
            case "APPEND":
                value = stack.pop()
                self._top(list).append(value)
            case "APPENDS":
                values = self._to_mark()
                self._top(list).extend(values)
            case "SETITEM":
                value, key = stack.pop(), stack.pop()
                self._fill([(key, value)])
            case "SETITEMS":
                flat = self._to_mark()
                self._fill(list(zip(flat[::2], flat[1::2], strict=True)))
            case "BINPERSID":
                stack.append(self._storage(stack.pop()))
            case "REDUCE":
                arguments, what = stack.pop(), stack.pop()
                stack.append(self._rebuild(what, arguments))
            case "BUILD":
                stack.pop()  # attributes of a dictionary: not needed
                self._top(dict)
            case _:
                raise ValueError(f"it uses the opcode {code}, which a dictionary of tensors does not need")

    def _top(self, kind: type) -> Any:
        if type(self.stack[-1]) is not kind:
            raise ValueError(f"it treats a {type(self.stack[-1]).__name__} as a {kind.__name__}")
        return self.stack[-1]

    def _fill(self, items: list[tuple[Any, Any]]) -> None:
        # Other keys are not needed, and hashing a nested tuple may take forever.
        if not all(isinstance(key, str | int) for key, _ in items):
            raise ValueError("a dictionary has keys that are neither text nor numbers")
        self._top(dict).update(items)

    def _to_mark(self) -> list[Any]:
        at = self.marks.pop()
        if at > len(self.stack):
            raise ValueError("it takes more from its stack than there is")
        values = self.stack[at:]
        del self.stack[at:]
        return values

    def _storage(self, reference: Any) -> NDArray[Any]:
        kind, storage, key, _, size = reference
        if kind != "storage" or not isinstance(storage, _Name) or storage.name not in _DTYPES:
            raise ValueError(f"it holds a tensor of an unknown kind, {_shown(storage)}")
        if not isinstance(key, str) or not key.isalnum():
            raise ValueError("it has a storage without a plain name")
        if key not in self.files:
            self.files[key] = self.archive.read(f"{self.root}data/{key}")
        count = check_whole(size, "the size of a storage", low=0, high=LARGEST)
        return np.frombuffer(self.files[key], _DTYPES[storage.name], count=count)

    def _rebuild(self, what: Any, arguments: tuple[Any, ...]) -> Any:
        if what == _Name("collections", "OrderedDict") and arguments == ():
            return {}
        if what == _Name("torch._utils", "_rebuild_tensor_v2"):
            return self._tensor(*arguments[:4])
        if what == _Name("torch._utils", "_rebuild_parameter"):
            return arguments[0]
        raise ValueError(f"it calls {_shown(what)}, which a dictionary of tensors does not need; it was not called")

    def _tensor(self, storage: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> NDArray[Any]:
        if not isinstance(storage, np.ndarray) or not isinstance(shape, tuple) or not isinstance(strides, tuple):
            raise ValueError("a tensor has no storage, shape or strides")
        if len(shape) != len(strides) or len(shape) > MOST_DIMENSIONS:
            raise ValueError(f"a tensor must have one stride for each of at most {MOST_DIMENSIONS} dimensions")
        for number in (offset, *shape, *strides):
            check_whole(number, "a size of a tensor", low=0, high=LARGEST)
        self.room -= math.prod(shape) * storage.itemsize
        if self.room < 0:
            raise ValueError("its tensors take more memory than is allowed for a file of its size")
        if math.prod(shape) > storage.size:
            raise ValueError("a tensor has more entries than its storage")
        if math.prod(shape) == 0:
            return np.empty(shape, storage.dtype)
        if offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) >= storage.size:
            raise ValueError("a tensor reaches beyond its storage")
        steps = [s * storage.itemsize for s in strides]
        return np.array(np.lib.stride_tricks.as_strided(storage[offset:], shape, steps, writeable=False))


def _shown(value: Any) -> str:
    """Return a short text; the repr of a nested value may take forever."""
    return f"{value.module}.{value.name}" if isinstance(value, _Name) else f"a {type(value).__name__}"
