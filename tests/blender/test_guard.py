"""A guard falls back to a controller that the blend is shown to be worse than, and to no other; runs warn in time."""

import logging

import numpy as np
import pytest
from corridor import Corridor, drivers

from blendctl import Blender, run
from blendctl.bandit.rules import Fixed
from blendctl.blender import BenchRules, Guard
from blendctl.blender.run_warnings import MANY_FAILURES
from blendctl.controllers import load
from blendctl.errors import InputError
from blendctl.features import Custom

KNOWN = {"good": [[10.0, -1.0], [11.0, -2.0], [9.0, -1.5]], "poor": [[2.0, -8.0], [3.0, -9.0], [1.0, -7.0]]}


def blend(guard, rule, **options):
    return Blender(
        [lambda o: [1.0], lambda o: [0.0]],
        ["good", "poor"],
        features="one-hot",
        rule=rule,
        guard=guard,
        seed=0,
        **options,
    )


def drive(blender, episodes, steps=3):
    """The first controller has 10 of reward and 1 of cost in an episode, the second 2 and 8."""
    drove = []
    for _ in range(episodes):
        for step in range(steps):
            action = blender.act(np.zeros(2))
            drove.append(blender.last.name)
            good = action[0] > 0.5
            blender.observe((10.0 if good else 2.0) / steps, (1.0 if good else 8.0) / steps, done=step == steps - 1)
    return drove


def test_a_blend_that_is_worse_in_every_objective_falls_back_and_says_so():
    blender = blend(Guard(KNOWN), Fixed(1), dwell=2)
    drove = drive(blender, 20)
    switched = drove.index("good")
    assert set(drove[:switched]) == {"poor"}
    assert set(drove[switched:]) == {"good"}
    assert 3 * 3 < switched < 3 * 15
    status = blender.status()["guard"]
    assert status["fallen_back_to"] == "good"
    assert status["evidence"]["good"] >= status["falls_back_at"]
    assert status["evidence"]["poor"] < status["falls_back_at"]
    assert blender.counts.events == 1
    assert blender.last.cause == "guard"
    assert "the guard has fallen back to it" in blender.last.reason


def test_a_blend_that_is_worse_in_one_objective_only_goes_on():
    cheap = {"good": [[10.0, -1.0], [11.0, -2.0]], "poor": [[20.0, -99.0], [21.0, -98.0]]}
    blender = blend(Guard(cheap), Fixed(0))
    drive(blender, 40)
    assert blender.guard.arm is None
    assert blender.status()["guard"]["episodes"] == 40


def test_a_blend_as_good_as_its_controller_rarely_falls_back():
    rng = np.random.default_rng(0)
    fallen = 0
    for _ in range(100):
        guard = Guard({"one": rng.normal(size=(30, 2))}, false_alarm=0.05)
        guard.bind(["one", "two"], ["reward", "-cost"])
        for _ in range(60):
            guard.add(rng.normal(size=2) + 0.2)
        fallen += guard.arm is not None
    assert fallen <= 5


def test_a_benched_controller_is_not_fallen_back_to():
    def failing(observation):
        raise RuntimeError("no motor")

    blender = Blender(
        [failing, lambda o: [0.0]], ["good", "poor"], features="one-hot", guard=Guard(KNOWN), fallback="poor", seed=0
    )
    assert set(drive(blender, 20)) == {"poor"}
    assert blender.guard.arm == 0


@pytest.mark.parametrize(
    ("guard", "message"),
    [
        (True, "guard=True needs known episodes"),
        ({"outcomes": {"fast": [[1.0, 2.0]] * 2}}, '"fast", which is not a controller'),
        ({"outcomes": {"good": [[1.0]] * 3}}, r"shape \(3, 1\)"),
        ({"outcomes": {}}, "needs known episodes"),
        (3, "guard must be a Guard"),
    ],
)
def test_wrong_guards_are_refused(guard, message):
    with pytest.raises(InputError, match=message):
        blend(guard, "maximal-loss")


def test_a_guard_can_be_made_again_from_json():
    made = Guard(KNOWN, false_alarm=0.1)
    again = blend(made.to_dict(), "maximal-loss").guard
    assert again.false_alarm == 0.1
    assert np.array_equal(again.outcomes["good"], made.outcomes["good"])


def test_long_features_an_empty_context_and_a_silent_cost_are_reported_while_running(caplog):
    rng = np.random.default_rng(0)
    blender = Blender(
        [lambda o: [1.0], lambda o: [0.0]], ["a", "b"], seed=0,
        features=Custom(lambda o, a, arm: [3.0 * (arm == 0), 3.0 * (arm == 1)], size=2),
    )  # fmt: skip
    with caplog.at_level(logging.WARNING, "blendctl"):
        for step in range(600):
            blender.act(rng.normal(size=2))
            blender.observe(float(rng.normal()), 0.0, done=step % 100 == 99)
    words = blender.status()["warnings"]
    assert [record.message for record in caplog.records] == words
    assert sum("were shortened" in word for word in words) == 1
    assert any("of the reward of a stage after 600 stages" in word for word in words)
    assert any("the cost was 0 in every step of 5 episodes" in word for word in words)


def test_a_blend_that_looks_ahead_may_have_no_cost():
    blender = Blender([load("PointGoal1/ppo"), load("PointGoal1/ppo-lagrangian")], seed=0)
    rng = np.random.default_rng(0)
    for step in range(60):
        blender.act(rng.normal(size=60))
        blender.observe(0.01, 0.0, done=step % 10 == 9)
    assert not any("was 0 in every step" in word for word in blender.status()["warnings"])


def test_a_frozen_blend_may_have_no_cost():
    blender = Blender([lambda o: [1.0], lambda o: [0.0]], ["a", "b"], features="one-hot", frozen=True, rule="fixed")
    for _ in range(10):
        blender.act(np.zeros(2))
        blender.observe(1.0, 0.0, done=True)
    assert blender.status()["warnings"] == []


def test_a_controller_that_fails_again_and_again_is_reported():
    def failing(observation):
        raise RuntimeError("no motor")

    blender = Blender(
        [failing, lambda o: [0.0]],
        ["a", "b"],
        features="one-hot",
        fallback="b",
        bench=BenchRules(first=2, longest=3),
        seed=0,
    )
    for step in range(300):
        blender.act(np.zeros(1))
        blender.observe(0.1, 1.0, done=step % 50 == 49)
        if blender.drivers.bench.failures[0] > MANY_FAILURES:
            break
    blender.end_episode()
    (word,) = blender.warnings.messages
    assert word.startswith("a has failed 1")


def test_a_context_that_explains_nothing_is_reported():
    rng = np.random.default_rng(0)
    blender = Blender([lambda o: [1.0], lambda o: [0.0]], ["a", "b"], features="one-hot", seed=0)
    for _ in range(600):
        blender.act(np.zeros(1))
        blender.observe(rng.normal(0, 0.1), 0.1 + rng.normal(0, 0.02))
    assert len(blender.warnings.messages) == 2
    assert all(word.startswith("the context explains 0% of the") for word in blender.warnings.messages)
    assert "cost" in blender.warnings.messages[1]


def test_a_good_run_has_no_warnings():
    def context(observation, action, arm):
        """Describe danger and speed: the feedback is linear in it."""
        danger = float(observation[0] > 0)
        return np.array([float(action[0]), danger * float(action[0])]) / 2.0

    blender = Blender(drivers(), ["fast", "slow"], features=Custom(context, size=2), seed=0)
    for _ in run(Corridor(), blender, episodes=12, seed=0):
        pass
    assert blender.status()["warnings"] == []
