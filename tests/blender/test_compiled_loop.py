"""The compiled loop equals the blender to the bit, and leaves unusual steps to it."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from blendctl.blender import Blender, run
from blendctl.blender.compiled_loop import STEPS_PER_CALL, CompiledLoop, supports, unsupported
from blendctl.blender.guard import Guard
from blendctl.certificates import Claim, certify
from blendctl.controllers import load
from blendctl.envs import SingleWorld
from blendctl.errors import InputError
from blendctl.experiments import blended as module
from blendctl.experiments.blended import EpisodeAggregator, blended, drive_plainly

PAIR = ["PointGoal1/ppo", "PointGoal1/ppo-lagrangian"]
CERTIFICATE = certify(np.full(200, 20.0), np.zeros(200), Claim(budget=25.0, cost_ceiling=1000.0))


def unit(controllers=PAIR, world="PointGoal1", **changes):
    return {
        "world": world,
        "controllers": list(controllers),
        "names": [f"arm {i}" for i in range(len(controllers))],
        "first_seed": 7,
        "noise_seed": 3,
        "episodes": 2,
        "steps": STEPS_PER_CALL + 30,
        "features": "predictions",
        "context": "current",
        "options": {},
    } | changes


def same(one, other):
    assert one.table.equals(other.table)
    assert one.values == other.values  # the learner among them, as text: every bit of it
    return True


def plainly(parameters, before, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(module, "drive_compiled", lambda *_: False)
        return blended(parameters, before)


@pytest.mark.parametrize(
    "parameters",
    [
        unit(),
        unit(steps=2 * STEPS_PER_CALL),
        unit(steps=1, episodes=3),
        unit(options={"noise": 0.01, "delta": 0.2, "radius": "paper", "union_bound": False}),
        unit(options={"discount": 0.99, "scales": [0.01, 2.0]}),
        unit([*PAIR, PAIR[0]]),
        unit(["CarButton1/trpo", "CarButton1/trpo-lagrangian"], "CarButton1"),
        unit(["PointPush1/trpo", "PointPush1/cpo"], "PointPush1"),
    ],
    ids=["chunks and a rest", "chunks", "one step", "authors", "options", "three arms", "car", "push"],
)
def test_two_data_points_are_the_blenders_to_the_bit(parameters, monkeypatch):
    used = []
    monkeypatch.setattr(
        CompiledLoop,
        "episode",
        lambda self, seed, was=CompiledLoop.episode: used.append(seed) or was(self, seed),
    )
    later = parameters | {"first_seed": 1234, "noise_seed": 5}
    first = blended(parameters, None)
    second = blended(later, first)
    assert len(used) == 2 * parameters["episodes"]
    assert same(first, plainly(parameters, None, monkeypatch))
    assert same(second, plainly(later, first, monkeypatch))
    assert first.values["stage"] == parameters["episodes"] * parameters["steps"]


class Fragile(SingleWorld):
    """A world whose physics goes bad in the middle of some episodes: they end early."""

    def reset(self, *, seed=None, options=None):
        start = super().reset(seed=seed, options=options)
        if seed % 2:
            self.batch.worlds.qvel[0] = 2e10  # beyond what MuJoCo calls sane; the observation does not show it yet
        return start


def test_an_episode_that_ends_early_draws_no_more_than_it_drove():
    gathered = []
    for way in ("compiled", "plain"):
        blender = Blender([load(name) for name in PAIR], ["a", "b"], features="predictions", seed=1)
        with closing(Fragile("PointGoal1", max_episode_steps=STEPS_PER_CALL)) as world, blender:
            aggregator = EpisodeAggregator(blender)
            if way == "compiled":
                with CompiledLoop(world, blender) as loop:
                    for seed in (1, 2, 3, 4):
                        aggregator.add_episode(loop.episode(seed))
            else:
                drive_plainly(world, blender, aggregator, range(1, 5))
            states = [rng.bit_generator.state for rng in blender.drivers.rngs]
            gathered.append((aggregator.table(), blender.bandit.theta.tolist(), aggregator.moments.plain(), states))
    assert gathered[0] == gathered[1]
    assert gathered[0][0]["length"].to_pylist() == [1, STEPS_PER_CALL, 1, STEPS_PER_CALL]


def broken(at):
    """Make a controller whose network returns NaN where the `at`-th entry of its input is not 0."""
    good = load(PAIR[0])
    weights = list(good.actor.weights)
    weights[0] = weights[0].copy()
    weights[0][at] = np.nan
    return replace(good, actor=replace(good.actor, weights=tuple(weights)))


def test_what_is_unusual_is_done_again_by_the_blender(monkeypatch):
    monkeypatch.setattr(module, "open_controller", lambda spec, world: broken(0) if spec == PAIR[0] else load(spec))
    spoiled = []
    monkeypatch.setattr(
        CompiledLoop,
        "episode",
        lambda self, seed, was=CompiledLoop.episode: spoiled.append(was(self, seed)) or spoiled[-1],
    )
    result = blended(unit(), None)
    assert spoiled == [None]
    assert result.values["events"] > 0
    assert result.table["driven_1"].to_pylist() == result.table["length"].to_pylist()
    assert same(result, plainly(unit(), None, monkeypatch))


def test_other_parts_are_left_to_the_blender(monkeypatch):
    monkeypatch.setattr(CompiledLoop, "episode", lambda self, seed: pytest.fail("this is not for the loop"))
    short = {"steps": 5, "episodes": 1}
    for changes in ({"context": "previous"}, {"features": "critics"}, {"options": {"rule": "linear"}}):
        assert blended(unit(**short, **changes), None).values["stage"] == 5
    assert blended(unit(PAIR[:1], **short), None).values["stage"] == 5  # one arm has no other to be judged


def test_the_loop_takes_only_controllers_of_the_world_and_of_one_kind():
    def supported(controllers, world="PointGoal1"):
        with closing(SingleWorld(world)) as made:
            return supports(Blender(controllers, ["a", "b"], features="predictions", seed=0), made)

    good = load(PAIR[0])
    assert supported([good, load(PAIR[1])])
    assert not supported([good, load(PAIR[1])], world="CarButton1")  # it would read entries that are not there
    wide = replace(good, context=replace(good.context, scale=good.context.scale.astype(np.float64)))
    assert not supported([good, wide])  # works, but not in a loop that was compiled for one kind
    assert supported([good, replace(good, encoding=replace(good.encoding, max_distance=3))])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"hold": 2}, "a hold of more than one step"),
        ({"dwell": 2}, "a dwell of more than one stage"),
        ({"frozen": True, "rule": "fixed"}, "a frozen learner"),
        ({"deadline": 1.0}, "deadlines"),
        ({"stochastic": False}, "actions without noise"),
        ({"context": "previous"}, 'context="previous"'),
        ({"features": "critics"}, "features other than next-step predictions"),
        ({"objectives": ["-cost", "reward"]}, "objectives other than reward and -cost"),
        ({"objectives": [("reward", lambda feedback: 0.0), "-cost"]}, "objectives that are functions"),
        ({"rule": "linear"}, 'the rule "linear"'),
        ({"handover": "slew:0.1"}, "a handover"),
        ({"guard": Guard({"a": [[10.0, -5.0], [11.0, -6.0]]})}, "a guard"),
        ({"certificate": CERTIFICATE}, "a certificate"),
    ],
)
def test_the_loop_refuses_what_it_cannot_do_and_says_why(options, reason):
    with closing(SingleWorld("PointGoal1")) as world:
        blender = Blender([load(name) for name in PAIR], ["a", "b"], seed=0, **{"features": "predictions"} | options)
        assert unsupported(blender, world) == f"the blender has {reason}"
        with pytest.raises(InputError, match=re.escape(reason)):
            CompiledLoop(world, blender)


def test_the_loop_takes_a_fresh_blender_without_a_recorder(tmp_path):
    with closing(SingleWorld("PointGoal1")) as world:
        blender = Blender([load(name) for name in PAIR], ["a", "b"], features="predictions", seed=0, record=tmp_path)
        assert unsupported(blender, world) == "the blender has a recorder"
        blender = Blender([load(name) for name in PAIR], ["a", "b"], features="predictions", seed=0)
        assert "not a SingleWorld" in unsupported(blender, object())
        blender.act(world.reset(seed=0)[0])
        assert unsupported(blender, world) == "the blender has stages driven before"


def test_the_loop_does_not_take_a_blender_that_it_has_driven():
    blender = Blender([load(name) for name in PAIR], ["a", "b"], features="predictions", seed=0)
    with closing(SingleWorld("PointGoal1", max_episode_steps=5)) as world:
        with CompiledLoop(world, blender) as loop:
            assert len(loop.episode(0).arm) == 5
        assert unsupported(blender, world) == "the blender has stages driven before"


def test_a_loop_that_fails_before_its_first_decision_leaves_the_blender_as_it_was():
    blender = Blender([broken(0), load(PAIR[1])], ["a", "b"], features="predictions", seed=0)
    before = [rng.bit_generator.state for rng in blender.drivers.rngs]
    with closing(SingleWorld("PointGoal1", max_episode_steps=5)) as world, CompiledLoop(world, blender) as loop:
        assert loop.episode(0) is None
        assert [rng.bit_generator.state for rng in blender.drivers.rngs] == before
        assert supports(blender, world)


def test_the_loop_stages_what_run_records():
    def made():
        return Blender([load(name) for name in PAIR], ["a", "b"], features="predictions", seed=1)

    with closing(SingleWorld("PointGoal1", max_episode_steps=40)) as world:
        records = list(run(world, made(), episodes=1, seed=9, counterfactual=True))
        with CompiledLoop(world, made()) as loop:
            stages = loop.episode(9)
    assert stages.arm.tolist() == [r.arm for r in records]
    assert stages.switched.tolist() == [r.switched for r in records]
    assert stages.reward.tolist() == [r.reward for r in records]
    assert stages.cost.tolist() == [r.cost for r in records]
    assert stages.bound.tolist() == [r.loss_bound for r in records]
    assert stages.truth.tolist() == [r.truth.tolist() for r in records]
    assert stages.psi.tolist() == [r.features.tolist() for r in records]
    assert len(set(stages.arm)) == 2  # both have driven: the test saw a switch
