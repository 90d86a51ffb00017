"""The exported C form equals Python: every arm and action, psi and indices, for the shipped pairs."""

import json
from itertools import product
from typing import Any

import numpy as np
import pytest
from compiled_blend import CompiledBlend, needs_gcc
from example_files import example
from parity import Comparison, drive_world
from replay import record_drive, replay_drive
from short_drive import blend_to

from blendctl import Blender
from blendctl.controllers import load
from blendctl.controllers.classical import CLASSICAL, Stop, classical
from blendctl.controllers.zoo import PAIRS
from blendctl.envs import SingleWorld
from blendctl.features import OnlineLinear

pytestmark = needs_gcc

STEPS = 100_000
CASES = {
    "PointGoal1 within a budget": ("PointGoal1", {"cost_budget": 15.0}),
    "PointPush1 by preference, frozen": ("PointPush1", {"prefer": 0.7, "frozen": True}),
    "CarButton1 by predictions": (
        "CarButton1",
        {"features": "predictions", "hold": 2, "dwell": 2, "scales": [0.1, 2.0]},
    ),
}
MORE = {
    "PointGoal1 by predictions": ("PointGoal1", {"features": "predictions"}),
    "PointGoal1 by longer predictions": ("PointGoal1", {"features": "critics", "rule": "thompson"}),
    "PointPush1 within a budget": ("PointPush1", {"cost_budget": 25.0}),
    "CarButton1 within a budget": ("CarButton1", {"cost_budget": 25.0}),
    "CarButton1 by preference": ("CarButton1", {}),
    "PointGoal1 by a linear model": ("PointGoal1", {"features": ["one-hot", OnlineLinear(normalize=False)]}),
}


def make_pair(world, settings):
    """Return the blender of a shipped pair."""
    pair = [load(name) for name in PAIRS[world]]
    return Blender(pair, ["performant", "safe"], stochastic=False, fallback="safe", seed=3, **settings)


def export_pair(folder, world, settings, **options):
    """Return the blender of a shipped pair and its compiled form."""
    blender = make_pair(world, settings)
    blender.export(folder, world=world, **options)
    return blender, CompiledBlend(folder)


@pytest.mark.parametrize("case", CASES)
def test_a_shipped_pair_drives_as_in_python(case, tmp_path):
    world, settings = CASES[case]
    blender, compiled = export_pair(tmp_path, world, settings)
    assert compiled.selfcheck() == 0
    comparison = Comparison(blender, compiled)
    drive_world(comparison, world, steps=400, seed=11, missing=range(100, 103))
    comparison.expect_equal()
    assert blender.counts.switches > 3, "both controllers drove"


class CartWorld:
    """The cart of examples/robot as an environment."""

    def __init__(self, cart):
        self.cart, self.state, self.steps = cart, np.zeros(4), 0

    def reset(self, *, seed):
        self.rng, self.steps = np.random.default_rng(seed), 0
        return self.state, {}

    def step(self, action):
        if self.steps % 70 == 0:
            self.state[2:] = self.rng.uniform(-2.0, 2.0), self.rng.integers(2)
        self.state, reward, cost = self.cart.step(self.state, float(action[0]))
        self.steps += 1
        return self.state, reward, False, self.steps == 1000, {"cost": cost}

    def close(self):
        """Nothing is to be released."""


def long_case(case):
    """Return a function that makes the blender, its environment, and the arguments of its export."""
    if case == "examples/robot/cart.py":
        cart = example("robot/cart")
        options = {"observations": np.random.default_rng(1).uniform(-1.0, 1.0, (20, 4))}
        return lambda: cart.blend(scales=[4.0, 1.0], seed=0), CartWorld(cart), options
    if case == "examples/new_requirement.py":
        made = example("new_requirement")
        options = {"world": made.WORLD}
        return lambda: made.blend("maximal-loss", stochastic=False), made.SpeedLimit(SingleWorld(made.WORLD)), options
    world, settings = (CASES | MORE)[case]
    return lambda: make_pair(world, settings), SingleWorld(world), {"world": world}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("case", [*CASES, *MORE, "examples/robot/cart.py", "examples/new_requirement.py"])
def test_100000_steps_are_equal(case, tmp_path):
    """One drive in Python, with lost observations; replayed in double and in single precision."""
    make, env, options = long_case(case)
    make().export(tmp_path / "double", **options)
    make().export(tmp_path / "single", float32=True, **options)
    contract = json.loads((tmp_path / "double" / "contract.json").read_text())
    sizes = contract["observation"]["size"], contract["action"]["size"]
    drive = record_drive(make(), env, steps=STEPS, seed=1000, sizes=sizes, missing=range(500, STEPS, 1999))
    double = replay_drive(drive, tmp_path / "double", exact=True)
    single = replay_drive(drive, tmp_path / "single", exact=False)
    print(f"{case}: double {double}, single: {single.arms} arms differ")
    double.expect_none(1e-12)
    assert single.arms <= STEPS // 1000, "99.9% of the arms"
    assert len(np.unique(drive.arms)) >= 2


@pytest.mark.parametrize(
    ("name", "world"),
    [
        *product(sorted({*CLASSICAL} - {"push"}), ("PointGoal0", "PointGoal1", "CarButton1")),
        *product(["push"], ("PointPush0", "PointPush1", "CarPush2")),
    ],
)
def test_a_classical_controller_drives_as_in_python(tmp_path, name, world):
    blender = Blender([classical(name, world), Stop(world)], features="one-hot", rule="random", seed=0)
    blender.export(tmp_path, world=world)
    compiled = CompiledBlend(tmp_path)
    assert compiled.selfcheck() == 0
    comparison = Comparison(blender, compiled)
    drive_world(comparison, world, steps=300, seed=11, missing=[100])
    comparison.expect_equal()
    assert min(compiled.status.driven) > 50


def test_the_export_of_a_directory_starts_where_the_run_stopped(tmp_path):
    folder = blend_to(
        tmp_path / "run", "--no-alone", "--no-counterfactual", "--features", "one-hot", episodes=1, steps=120
    )
    with Blender.load(folder, stochastic=False, safe_action=[0.0, 0.1]) as blender:
        blender.export(tmp_path / "c", world="PointGoal1")
        compiled = CompiledBlend(tmp_path / "c")
        assert blender.bandit.stage == 120
        assert compiled.selfcheck() == 0
        comparison = Comparison(blender, compiled)
        drive_world(comparison, "PointGoal1", steps=150, seed=4, missing=[40, 41])
    comparison.expect_equal()
    assert compiled.status.safe_actions == 2
    contract = json.loads((tmp_path / "c" / "contract.json").read_text())
    assert contract["safe_action"] == {"declared": True, "action": [0.0, 0.1]}
    assert contract["learner"]["updates"] == 120


@pytest.mark.parametrize("before", [7, 40])  # before and after its inputs are normalised for the first time
def test_the_default_context_of_black_boxes_is_exported(tmp_path, before):
    folder = blend_to(tmp_path / "run", "--no-alone", "--no-counterfactual", episodes=1, steps=before)
    with Blender.load(folder, stochastic=False) as blender:
        stack: Any = blender.feature
        assert stack.parts[1].count == before
        blender.export(tmp_path / "c", world="PointGoal1")
        compiled = CompiledBlend(tmp_path / "c")
        assert compiled.selfcheck() == 0
        comparison = Comparison(blender, compiled)
        drive_world(comparison, "PointGoal1", steps=300, seed=11, missing=range(100, 103))
    comparison.expect_equal()


def test_sampled_actions_are_reproducible_and_differ_from_means(tmp_path):
    blender, compiled = export_pair(tmp_path, "PointGoal1", {"features": "one-hot", "rule": "random"}, stochastic=True)
    assert compiled.selfcheck() == 0, "Python sampled the golden vectors with the same generator"
    observation = np.zeros(60)
    actions = np.array([compiled.act(observation)[1] for _ in range(400)])
    std = blender.controllers[0].std, blender.controllers[1].std
    assert len(np.unique(actions[:, 0])) > 100
    assert np.abs(actions).max() <= 1.0
    assert actions.std(axis=0).max() < 3 * max(float(one.max()) for one in std)
