"""The checker finds what is wrong with a controller, and passes those that are right."""

import re
import threading

import numpy as np
import pytest

from blendctl.controllers import controller_check
from blendctl.controllers.adapters import as_controller
from blendctl.controllers.classical import PurePursuit
from blendctl.controllers.controller_check import check_controller, world_observations

OBSERVATIONS = np.random.default_rng(0).normal(size=(30, 4))


def findings(controller, **options):
    results = check_controller(controller, OBSERVATIONS, action_size=2, calls=50, deadline=10.0, **options)
    return {result.check: result for result in results}


def good(observation, rng=None):
    action = np.tanh(np.asarray(observation)[..., :2])
    return action if rng is None else np.clip(action + 0.1 * rng.normal(size=action.shape), -1, 1)


def test_a_sound_controller_passes():
    results = findings(as_controller(good))
    assert {f.verdict for f in results.values()} <= {"good", "note"}
    assert "the same seed yields the same actions" in results["with rng"].message
    assert results["batch"].verdict == "good"


def test_a_shipped_controller_passes_in_its_world():
    observations, action_size = world_observations("PointGoal1", 40)
    assert observations.shape == (40, 60)
    results = check_controller(PurePursuit("PointGoal1"), observations, action_size=action_size, deadline=10.0)
    assert all(f.verdict != "bad" for f in results)


def remembers(state=[0]):  # noqa: B006  # its memory is what the test needs
    def act(observation):
        state[0] += 1
        return [np.sin(state[0]), 0.0]

    return act


def raises_with_rng(observation, rng):
    if rng is not None:
        raise OSError("no dice")
    return [0.0, 0.0]


def scribbles(observation):
    observation[0] = 0.0
    return [0.0, 0.0]


def fragile(observation):
    if np.abs(observation).max() > 100:
        raise OverflowError("too much")
    return [0.0, 0.0]


def batch_differs(observation):
    return np.zeros((*np.shape(observation)[:-1], 2)) + (np.ndim(observation) == 2)


@pytest.mark.parametrize(
    ("function", "check", "message"),
    [
        (lambda o: 1 / 0, "act", "ZeroDivisionError"),
        (lambda o: [0.0], "act", r"shape \(1,\); expected \(2,\)"),
        (lambda o: [np.nan, 0.0], "act", "NaN"),
        (lambda o: "left", "act", "expected numbers"),
        (lambda o: [0.0, np.nan if o[0] > 0 else 0.0], "act", "NaN.*observations"),
        (remembers(), "without rng", "samples, or it has memory"),
        (lambda o, rng: [np.random.default_rng().random(), 0.0], "with rng", "does not sample from rng alone"),
        (raises_with_rng, "with rng", "raised OSError: no dice"),
        (lambda o, rng: [0.0] * (2 if rng is None else 3), "with rng", r"shape \(3,\); expected \(2,\)"),
        (scribbles, "observation", "modifies the observation"),
        (fragile, "odd input", "huge numbers it raised OverflowError"),
        (batch_differs, "batch", "other actions than its rows"),
    ],
)
def test_what_is_wrong_is_found(function, check, message):
    results = findings(as_controller(function))
    assert results[check].verdict == "bad"
    assert re.search(message, results[check].message)


def test_a_slow_controller_is_found_by_the_clock():
    now = [0.0]

    def slow(observation):
        now[0] += 0.02
        return [0.0, 0.0]

    results = check_controller(
        as_controller(slow), OBSERVATIONS, action_size=2, deadline=0.01, calls=20, clock=lambda: now[0]
    )
    latency = next(f for f in results if f.check == "latency")
    assert latency.verdict == "bad"
    assert "20 of 20 calls took over 10 ms" in latency.message


def test_notes_are_not_faults():
    buffer = np.zeros(2)

    def reuses(observation):
        buffer[0] = 3.0 * np.sign(observation[0])
        return buffer

    class Reuses:
        def act(self, observation, rng=None):
            return reuses(observation)

    assert "it has no method act" in findings(3)["act"].message
    results = findings(Reuses())
    assert results["memory"].verdict in ("note", "good")
    assert results["act"].verdict == "note"
    assert "beyond [-1, 1]" in results["act"].message


def test_predictions_are_checked():
    class Predicts:
        def __init__(self, answer):
            self.answer = answer

        def act(self, observation, rng=None):
            return np.zeros(2)

        def predict(self, observation, action):
            return self.answer

    assert findings(Predicts((0.1, 0.0)))["predict"].verdict == "good"
    assert findings(Predicts((np.nan, 0.0)))["predict"].verdict == "bad"
    assert findings(Predicts((np.zeros(2), 0.0)))["predict"].verdict == "bad"


def test_a_controller_that_hangs_does_not_hang_the_check(monkeypatch):
    monkeypatch.setattr(controller_check, "FIRST_ACTION_TIMEOUT", 0.05)
    gate = threading.Event()
    results = findings(as_controller(lambda observation: gate.wait(60)))
    gate.set()
    assert results["act"].verdict == "bad"
    assert "no action within 0.05 s" in results["act"].message
