"""The exported C form keeps the counters of Python's monitor: the same alarm at the same stage; quantiles of times."""

import numpy as np
import pytest
from compiled_blend import CompiledBlend, needs_gcc
from parity import Comparison

from blendctl import Blender
from blendctl.blender import BenchRules
from blendctl.export import exportable

pytestmark = needs_gcc

SIZES = {"observation_size": 1, "action_size": 1}


@exportable("action[0] = 1.0;", **SIZES)
def fast(observation):
    return [1.0]


@exportable("action[0] = observation[0] > 0.99 ? NAN : 0.2;", **SIZES)
def weak(observation):
    return [np.nan if observation[0] > 0.99 else 0.2]


def make(folder, *, frozen=False, hold=1, scales=None):
    """Return a blender that has learned that both controllers bring (0.2, -0.1), and its compiled form."""
    rng = np.random.default_rng(0)
    parts = {"features": "one-hot", "bench": BenchRules(first=3), "hold": hold, "stochastic": False}
    blender = Blender([fast, weak], ["fast", "weak"], seed=0, noise=0.2, scales=scales, **parts)
    for _ in range(150):
        blender.act([0.0])
        blender.observe(*noisy(rng))
    blender.end_episode()
    folder.mkdir()
    blender.save(folder / "blend.safetensors")
    again = Blender([fast, weak], ["fast", "weak"], bandit=folder / "blend.safetensors", frozen=frozen, **parts)
    again.export(folder / "c")
    return again, CompiledBlend(folder / "c")


def noisy(rng, mean=(0.2, 0.1)):
    return tuple(float(value) for value in rng.normal(mean, 0.05))


@pytest.mark.parametrize(("frozen", "hold", "scales"), [(False, 1, None), (True, 2, None), (False, 3, [0.5, 2.0])])
def test_the_drift_alarm_is_raised_at_the_same_stage(tmp_path, frozen, hold, scales):
    comparison = Comparison(*make(tmp_path / "blend", frozen=frozen, hold=hold, scales=scales))
    check = comparison.blender.bound_check
    rng = np.random.default_rng(1)
    for step in range(2400):
        comparison.step(rng.random(1))
        drifted = step >= 1500 and rng.random() < 0.3
        comparison.observe(*noisy(rng, (2.0, 0.1) if drifted else (0.2, 0.1)), done=step % 100 == 99)
        assert comparison.compiled.status.alarm == check.alarm
        assert step >= 1500 or not check.alarm
    comparison.expect_equal()
    status = comparison.compiled.status
    assert 1500 // hold < status.alarm < 2400 // hold
    assert status.surprises >= 2
    assert status.failures[1] > 3, "the bench"
    assert status.learned == (0 if frozen else comparison.blender.counts.learned)
    assert status.observed[0] > status.estimated[0] > 0.15


def test_times_are_kept_as_a_histogram(tmp_path):
    _, compiled = make(tmp_path / "blend")
    assert (compiled.status.timed, compiled.status.p99) == (0, 0.0)
    times = 10.0 ** np.random.default_rng(2).uniform(-6.5, -0.5, 5000)
    for seconds in times:
        compiled.record_time(seconds)
    status = compiled.status
    ordered = np.sort(times)
    for share, quantile in ((0.5, status.p50), (0.99, status.p99), (0.999, status.p999)):
        exact = ordered[int(share * len(times))]
        assert exact <= quantile <= 1.125 * exact
    assert (status.timed, status.longest) == (5000, times.max())
    for seconds in (float("nan"), -1.0):
        compiled.record_time(seconds)
    assert compiled.status.timed == 5000
    for seconds in (0.0, 1e-9, 100.0, float("inf")):
        compiled.record_time(seconds)
    assert compiled.status.timed == 5004
    assert compiled.status.longest == float("inf")
