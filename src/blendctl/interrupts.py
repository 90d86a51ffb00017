"""Deliver Ctrl-C to the command line once and for certain, also while modules are imported."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

EXIT_INTERRUPTED = 130  # as in shells
INTERRUPTED = "blendctl: interrupted"
RESEND_AFTER = 0.01  # s; time to leave the code that dropped the interrupt


class Interrupt(KeyboardInterrupt):
    """Ctrl-C; if other code drops it, Ctrl-C is sent again.

    Imports with `except:`, destructors and callbacks from C (numba has some) drop any exception. The command would then
    run on. Code that handles the interrupt keeps a reference, so the end of the last one means that it was dropped.
    """

    def __del__(self) -> None:
        if _state.handling:
            _thread.start_new_thread(_resend, ())  # a signal sent from here would be raised here, and dropped again


class _State:
    """What happened since the start of the command."""

    def __init__(self) -> None:
        self.handling = False
        self.pressed = False


_state = _State()


def run_interruptibly(run: Callable[[], None]) -> None:
    """Run the whole life of a command; at Ctrl-C, end it with one line and exit code 130.

    Afterwards, while the interpreter ends, Ctrl-C ends it at once and without a traceback. A process that was started
    to ignore Ctrl-C, such as a background job of a shell, goes on ignoring it.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        run()
        return
    previous_hook = sys.unraisablehook

    def report_unraisable(unraisable: Any) -> None:
        if not isinstance(unraisable.exc_value, Interrupt):  # that one is sent again
            previous_hook(unraisable)

    sys.unraisablehook = report_unraisable
    _state.handling, _state.pressed = True, False
    try:
        signal.signal(signal.SIGINT, _on_signal)
        run()
    except KeyboardInterrupt:
        _exit()
    except Exception:
        if not _state.pressed:
            raise
        _exit()  # an interrupted import or callback may raise any other exception instead
    finally:
        _state.handling = False
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        # Python would end by the signal, not by the exit code, if the interrupt came while a string was executed, as
        # for every dataclass; executing another string makes it forget that.
        exec("")


def _exit() -> NoReturn:
    print(f"\n{INTERRUPTED}", file=sys.stderr, flush=True)
    raise SystemExit(EXIT_INTERRUPTED) from None


def _on_signal(number: int, frame: object) -> None:
    _state.pressed = True
    raise Interrupt


def _resend() -> None:
    time.sleep(RESEND_AFTER)
    if _state.handling:
        # To the main thread itself, because a call in which it waits must end.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
