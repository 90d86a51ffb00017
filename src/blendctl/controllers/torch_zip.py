"""Read the tensors of a torch checkpoint without torch and without executing its pickle program.

A checkpoint is a zip with a program for Python's pickle machine and a file per tensor. The program is *read* here,
opcode by opcode. Only the opcodes that a dictionary of tensors needs are understood; anything else, such as the call
of a function, is refused. Nothing in the file is executed.
"""

from __future__ import annotations

import math
import pickletools
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blendctl.controllers.number_checks import check_whole
from blendctl.errors import FileFormatError

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
LARGEST_PROGRAM = 1 << 24  # bytes of the pickle program


class _Name(NamedTuple):
    """A global that the program names; it is never imported."""

    module: str
    name: str


_MARK = object()


def read_torch_zip(source: str | Path | Any) -> Tensors:
    """Read a dictionary of tensors as arrays, from a path or an open file; raise FileFormatError for anything else."""
    try:
        with zipfile.ZipFile(source) as archive:
            programs = [name for name in archive.namelist() if name.endswith("data.pkl")]
            if len(programs) != 1:
                raise FileFormatError(f"{source} is a zip, but not a torch checkpoint: it has no data.pkl")
            if sum(item.file_size for item in archive.infolist()) > LARGEST:
                raise FileFormatError(f"{source} unpacks to more than {LARGEST >> 20} MiB")
            if archive.getinfo(programs[0]).file_size > LARGEST_PROGRAM:
                raise FileFormatError(f"{source} has a program of more than {LARGEST_PROGRAM >> 20} MiB")
            root = programs[0].removesuffix("data.pkl")
            if f"{root}byteorder" in archive.namelist() and archive.read(f"{root}byteorder").strip() != b"little":
                raise FileFormatError(f"{source} was written on a big-endian machine")
            content = _Reader(archive, root).run(archive.read(programs[0]))
    except (zipfile.BadZipFile, OSError, EOFError, KeyError) as error:
        raise FileFormatError(f"{source} is not a torch checkpoint, or is damaged: {error}") from None
    except (ValueError, IndexError, TypeError, OverflowError) as error:
        raise FileFormatError(f"{source} is damaged: {error}") from None
    if not isinstance(content, dict):
        raise FileFormatError(f"{source} holds a {type(content).__name__}, not a dictionary of tensors")
    return content


class _Reader:
    def __init__(self, archive: zipfile.ZipFile, root: str) -> None:
        self.archive, self.root = archive, root
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.files: dict[str, bytes] = {}  # storages that were read
        self.room = LARGEST  # bytes that tensors may still take

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
                stack.append(_MARK)
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
        # Other keys are not needed, and hashing a nested tuple may take for ever.
        if not all(isinstance(key, str | int) for key, _ in items):
            raise ValueError("a dictionary has keys that are neither text nor numbers")
        self._top(dict).update(items)

    def _to_mark(self) -> list[Any]:
        at = max(i for i, value in enumerate(self.stack) if value is _MARK)
        values = self.stack[at + 1 :]
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
        if not isinstance(storage, np.ndarray) or len(shape) != len(strides):
            raise ValueError("a tensor has no storage, or not one stride per dimension")
        for number in (offset, *shape, *strides):
            check_whole(number, "a size of a tensor", low=0, high=LARGEST)
        self.room -= math.prod(shape) * storage.itemsize
        if self.room < 0:
            raise ValueError(f"its tensors take more than {LARGEST >> 20} MiB")
        if math.prod(shape) == 0:
            return np.empty(shape, storage.dtype)
        if offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) >= storage.size:
            raise ValueError("a tensor reaches beyond its storage")
        steps = [s * storage.itemsize for s in strides]
        return np.array(np.lib.stride_tricks.as_strided(storage[offset:], shape, steps, writeable=False))


def _shown(value: Any) -> str:
    """Return a short text; the repr of a nested value may take for ever."""
    return f"{value.module}.{value.name}" if isinstance(value, _Name) else f"a {type(value).__name__}"
