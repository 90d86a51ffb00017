"""Write numbers and arrays as C99."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

WORDS_PER_LINE = 64
ALIGNED = """\
#if defined(__GNUC__) /* a vector that is read from two cache lines takes twice as long */
#define ALIGNED __attribute__((aligned(64)))
#else
#define ALIGNED
#endif
"""


def number(value: float) -> str:
    """Return a double as a C constant that reads back to the same bits.

    >>> number(0.1), number(3), number(-math.inf)
    ('0.1', '3.0', '-HUGE_VAL')
    """
    value = float(value)
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "HUGE_VAL" if value > 0 else "-HUGE_VAL"
    return repr(value)


def array(name: str, values: ArrayLike, *, kind: str = "double") -> str:
    """Return a constant array of any number of dimensions; kind is double, real, float or int."""
    entries = np.asarray(values)
    sizes = "".join(f"[{max(size, 1)}]" for size in entries.shape)
    return f"static const {kind} {name}{sizes} = {_braces(entries, kind)};\n"


def _braces(entries: NDArray[np.generic], kind: str) -> str:
    if entries.ndim > 1:
        return "{" + ",\n    ".join(_braces(row, kind) for row in entries) + "}"
    if entries.size == 0:
        return "{0}"
    if kind == "int":
        return "{" + ", ".join(str(int(entry)) for entry in entries) + "}"
    cast = {"real": "R({})", "float": "{}f", "double": "{}"}[kind]
    return "{" + ", ".join(cast.format(_float(entry) if kind == "float" else number(entry)) for entry in entries) + "}"


def _float(value: np.generic) -> str:
    """Return a float32 as decimal digits that read back to the same bits.

    >>> _float(np.float32(0.1))
    '0.1'
    """
    text = str(np.float32(value))
    return text if any(mark in text for mark in ".en") else f"{text}.0"


def weights(name: str, values: NDArray[np.float32]) -> str:
    """Return float32 weights as their bits in hexadecimal digits: exact, and shorter than decimal numbers."""
    words = np.ascontiguousarray(values, np.float32).view(np.uint32)
    padded = np.zeros(-(-words.size // WORDS_PER_LINE) * WORDS_PER_LINE, np.uint32)
    padded[: words.size] = words
    lines = "\n".join(
        f"W({','.join(f'{word:08x}' for word in row)})" for row in padded.reshape(-1, WORDS_PER_LINE).tolist()
    )
    return f"ALIGNED static const union weights_{padded.size} {name} = {{{{\n{lines}\n}}}};\n"


def weights_prologue(sizes: Iterable[int]) -> str:
    """Return the macro and the types that `weights` needs, for networks of these numbers of weights."""
    names = [f"w{i}" for i in range(WORDS_PER_LINE)]
    macro = f"#define W({','.join(names)}) {','.join(f'0x##{name}' for name in names)},\n"
    padded = sorted({-(-size // WORDS_PER_LINE) * WORDS_PER_LINE for size in sizes})
    types = "".join(
        f"union weights_{size} {{\n    uint32_t bits[{size}];\n    float values[{size}];\n}};\n" for size in padded
    )
    return f"/* Weights are the bits of IEEE 754 single precision. */\n{ALIGNED}{macro}{types}"


def define(**values: float | int | bool | str) -> str:
    """Return macros; numbers are written so that they keep their bits.

    >>> print(define(HOLD=5, NOISE=0.1), end="")
    #define HOLD 5
    #define NOISE 0.1
    """
    return "".join(f"#define {name} {_constant(value)}\n" for name, value in values.items())


def _constant(value: float | int | bool | str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    if isinstance(value, int | np.integer):
        return str(int(value))
    text = number(value)
    return f"({text})" if text.startswith("-") else text


def braced_words(words: NDArray[np.uint64]) -> str:
    """Return 64-bit words as an initialiser."""
    return "{" + ", ".join(f"UINT64_C(0x{int(word):016x})" for word in words) + "}"


def comment(text: str) -> str:
    r"""Return text that can neither end a C comment nor change how a line is read.

    >>> comment("a */ b"), comment("a *\\ b")
    ('a * / b', 'a * / b')
    """
    # Control characters and marks that turn the direction of writing hide what follows.
    visible = "".join(letter if letter.isprintable() else " " for letter in text.replace("\\", "/"))
    return visible.replace("*/", "* /").replace("/*", "/ *").replace("?", "? ").strip()
