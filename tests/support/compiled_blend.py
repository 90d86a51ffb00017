"""Compile an exported blend and call it through ctypes."""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest

GCC = shutil.which("gcc")
needs_gcc = pytest.mark.skipif(GCC is None, reason="no gcc: install it with `make setup-compilers` as root")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
CAUSES = ("", "first", "rule", "alone", "dwell", "fallback", "no context", "no decision", "safe action", "guard")
OBSERVED = {1: "learned", 0: "counted", -1: "duplicate", -2: "unknown", -3: "refused"}


def constants(folder):
    """Return the whole-number macros of blend.h."""
    found = re.findall(r"^#define (BLEND_\w+) \(?(-?\d+)\)?\b", (folder / "blend.h").read_text(), re.MULTILINE)
    return {name: int(value) for name, value in found}


def compile_blend(folder, *options, compiler=GCC):
    """Compile blend.c to a shared library with strict warnings; return its path."""
    library = folder / "blend.so"
    command = [compiler, *STRICT, "-O1", *options, "-shared", "-fPIC", folder / "blend.c", "-o", library, "-lm"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[:3000]
    return library


class CompiledBlend:
    """The functions of an exported blend, on one state."""

    def __init__(self, folder, *options):
        sizes = constants(folder)
        self.n_obs, self.n_act = sizes["BLEND_OBSERVATION_SIZE"], sizes["BLEND_ACTION_SIZE"]
        self.arms, self.objectives = sizes["BLEND_ARMS"], sizes["BLEND_OBJECTIVES"]
        self.features, self.sizes = sizes["BLEND_FEATURES"], sizes
        self.library = ctypes.CDLL(str(compile_blend(folder, *options)))
        self.library.blend_state_size.restype = ctypes.c_size_t
        self.library.blend_digest.restype = ctypes.c_char_p
        arms, d, m = self.arms, self.features, self.objectives
        double = ctypes.c_double

        class Info(ctypes.Structure):
            _fields_ = [
                *((name, ctypes.c_int) for name in ("arm", "picked", "cause", "decided")),
                ("radius", double), ("weight", double), ("psi", double * (arms * d)),
                ("width", double * arms), ("loss", double * arms),
                ("estimate", double * (arms * m)), ("ucb", double * (arms * m)),
                ("proposals", double * (arms * self.n_act)),
            ]  # fmt: skip

        counts = ("steps", "stages", "switches", "safe_actions", "learned", "refused", "episodes")

        class Status(ctypes.Structure):
            _fields_ = [
                *((name, ctypes.c_int64) for name in counts),
                *((name, ctypes.c_int64 * arms) for name in ("driven", "failures", "benched")),
                ("guard_arm", ctypes.c_int),
                *((name, ctypes.c_int64) for name in ("compared", "surprises", "alarm")),
                ("estimated", double * m), ("observed", double * m), ("timed", ctypes.c_int64),
                *((name, double) for name in ("p50", "p99", "p999", "longest")),
            ]  # fmt: skip

        self._info, self._status = Info(), Status()
        self.size = self.library.blend_state_size()
        self.state = ctypes.create_string_buffer(self.size)
        self.library.blend_init(self.state)
        self._action = np.empty(self.n_act)

    def act(self, observation):
        """Return the arm and the action."""
        row = np.ascontiguousarray(observation, np.float64)
        assert row.shape == (self.n_obs,)
        arm = self.library.blend_act(self.state, _pointer(row), _pointer(self._action))
        return arm, self._action.copy()

    def observe(self, feedback):
        """Return in words what was done with the feedback."""
        return OBSERVED[self.library.blend_observe(self.state, _pointer(np.array(feedback, np.float64)))]

    def end_episode(self):
        self.library.blend_end_episode(self.state)

    @property
    def info(self):
        """The latest decision."""
        self.library.blend_inspect(self.state, ctypes.byref(self._info))
        return self._info

    @property
    def psi(self):
        return np.array(self.info.psi).reshape(self.arms, self.features)

    @property
    def ucb(self):
        return np.array(self.info.ucb).reshape(self.arms, self.objectives)

    @property
    def status(self):
        """Counters and the monitor's numbers."""
        self.library.blend_status(self.state, ctypes.byref(self._status))
        return self._status

    def record_time(self, seconds):
        self.library.blend_record_time(self.state, ctypes.c_double(seconds))

    def selfcheck(self):
        return self.library.blend_selfcheck()


def _pointer(array):
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
