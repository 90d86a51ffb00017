"""Find an OpenGL backend that draws without a screen: EGL or OSMesa, each tried in a separate process.

A broken driver can crash the process that loads it, so it is first loaded in another process.
"""

from __future__ import annotations

import importlib
import os
import platform
import subprocess
import sys
from functools import cache
from typing import Any

from blendctl.errors import StateError

_ON = {"Linux": ("egl", "osmesa"), "Darwin": ("cgl", "glfw"), "Windows": ("glfw",)}
_OFF = ("disable", "disabled", "off", "false", "0")
_KNOWN = ("egl", "osmesa", "glfw", "cgl")
_PATIENCE = 60  # s

# the trial of a backend: make a context and draw into memory
_TRIAL = """
import importlib, sys
import mujoco, numpy
context = importlib.import_module(sys.argv[1]).GLContext(32, 32)
context.make_current()
model = mujoco.MjModel.from_xml_string("<mujoco/>")
drawer = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, drawer)
assert drawer.currentBuffer == mujoco.mjtFramebuffer.mjFB_OFFSCREEN
mujoco.mjr_readPixels(numpy.zeros((8, 8, 3), numpy.uint8), None, mujoco.MjrRect(0, 0, 8, 8), drawer)
drawer.free()
context.free()
"""


def find_backend() -> str | None:
    """Name the first backend that works here, or None; MUJOCO_GL, if set, names the only candidate."""
    return _search(_candidates())[0]


def explain_missing() -> str:
    """Return why there is no backend, and what to do."""
    tried = "; ".join(f"{name}: {reason}" for name, reason in _search(_candidates())[1].items())
    return (
        f"no OpenGL works without a screen here ({tried or 'MUJOCO_GL switches it off'}); install libegl1 or "
        'libosmesa6 (apt-get install libosmesa6), or use render_mode="topdown", which needs neither'
    )


def open_context(width: int, height: int) -> Any:
    """Make a context for pictures of this size; it must be freed."""
    backend = find_backend()
    if backend is None:
        raise StateError(explain_missing())
    return importlib.import_module(f"mujoco.{backend}").GLContext(width, height)


def _candidates() -> tuple[str, ...]:
    wish = os.environ.get("MUJOCO_GL", "").strip().lower()
    if wish in _OFF:
        return ()
    return (wish,) if wish in _KNOWN else _ON.get(platform.system(), ())


@cache
def _search(candidates: tuple[str, ...]) -> tuple[str | None, dict[str, str]]:
    """Try the candidates in turn; return the first that works, and the errors of those before it."""
    reasons: dict[str, str] = {}
    for backend in candidates:
        command = [sys.executable, "-c", _TRIAL, f"mujoco.{backend}"]
        try:
            trial = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            reasons[backend] = str(error)
            continue
        if trial.returncode == 0:
            return backend, reasons
        lines = trial.stderr.strip().splitlines()
        reasons[backend] = lines[-1].strip() if lines else f"ended with code {trial.returncode}"
    return None, reasons
