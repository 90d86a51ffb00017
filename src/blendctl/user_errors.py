"""Handle errors of user code: describe them, and recognise interrupts that the code did not raise."""

from __future__ import annotations

import dis
import signal
from types import CodeType, TracebackType
from typing import Any

LONGEST = 200  # characters of a message


def printable(text: str, replacement: str = "?") -> str:
    r"""Replace control characters, which could steer a terminal; lines and tabs stay.

    >>> printable("peer\x1b[2J\n")
    'peer?[2J\n'
    """
    return "".join(
        letter if (letter >= " " and not "\x7f" <= letter < "\xa0") or letter in "\n\t" else replacement
        for letter in text
    )


def describe_error(error: BaseException) -> str:
    """Return the type and message of an error in plain text, even if the error cannot be printed.

    >>> describe_error(ValueError("boom"))
    'ValueError: boom'
    """
    try:
        name, message = type(error).__name__, str(error)
        # A message may be a subclass of str, and it may hold surrogates, which no file can store.
        return printable(str.encode(f"{name}: {str.__str__(message)[:LONGEST]}", "utf-8", "replace").decode())
    except BaseException as another:
        if raised_by_signal(another):
            raise
        return "an error that cannot be printed"


def raised_by_signal(error: BaseException) -> bool:
    """Return whether an error comes from a signal (Ctrl-C, SIGTERM), not from the code that it interrupted.

    A handler in Python is part of the traceback. The default handler of Ctrl-C is not; it raises KeyboardInterrupt
    between two instructions, while the user's own code raises it by the instruction `raise`. An ordinary exception
    counts as the code's own, because the code may set an alarm for itself.
    """
    if isinstance(error, Exception):
        return False
    trace, handlers = error.__traceback__, _handlers()
    last: TracebackType | None = None
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        trace, last = trace.tb_next, trace
    return isinstance(error, KeyboardInterrupt) and (last is None or not _raises(last))


def _handlers() -> set[CodeType]:
    """Return the code of the installed signal handlers that are written in Python."""
    codes = set()
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        if callable(handler):
            function = getattr(handler, "__func__", handler)
            code = getattr(function, "__code__", None) or getattr(type(handler).__call__, "__code__", None)
            if isinstance(code, CodeType):
                codes.add(code)
    return codes


def _raises(trace: TracebackType) -> bool:
    """Return whether a frame is at the instruction `raise`."""
    code = trace.tb_frame.f_code.co_code
    return dis.opname[code[trace.tb_lasti]] == "RAISE_VARARGS"
