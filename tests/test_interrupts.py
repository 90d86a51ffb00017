"""Ctrl-C in code that drops or replaces exceptions: the command ends all the same."""

import subprocess
import sys

import pytest

from blendctl.interrupts import EXIT_INTERRUPTED, INTERRUPTED

PRESS = "signal.raise_signal(signal.SIGINT)"
PLACES = {
    "code that passes it on": PRESS,
    "a bare except": f"try: {PRESS}\n    except: pass\n    time.sleep(60)",
    "a destructor": f"type('A', (), {{'__del__': lambda self: {PRESS}}})()\n    time.sleep(60)",
    "a callback from C": f"ctypes.CFUNCTYPE(None)(lambda: {PRESS})()\n    time.sleep(60)",
    "an executed string": f"exec({PRESS!r})",
    "an import that raises another error": (
        f"try: {PRESS}\n    except KeyboardInterrupt as error: raise ImportError('initialization failed') from error"
    ),
}


def run(body, tmp_path, *, before=""):
    script = tmp_path / "command.py"  # run as a module, because Python ends scripts and modules differently
    script.write_text(
        "import ctypes, signal, sys, time\nfrom blendctl.interrupts import run_interruptibly\n"
        f"def run():\n    {body}\n{before}\nrun_interruptibly(run)\n"
    )
    return subprocess.run(
        [sys.executable, "-m", "command"], cwd=tmp_path, capture_output=True, text=True, timeout=50
    )  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_ctrl_c_ends_the_command_from_anywhere(place, tmp_path):
    done = run(PLACES[place], tmp_path)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (EXIT_INTERRUPTED, "", INTERRUPTED)


def test_an_error_without_ctrl_c_keeps_its_traceback(tmp_path):
    done = run("raise ZeroDivisionError", tmp_path)
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_a_process_that_ignores_ctrl_c_goes_on_ignoring_it(tmp_path):
    done = run(f"{PRESS}; print('done')", tmp_path, before="signal.signal(signal.SIGINT, signal.SIG_IGN)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
