"""The exported C form equals Python: every arm and action, psi and indices, for the shipped pairs."""

import json
from typing import Any

import numpy as np
import pytest
from compiled_blend import CompiledBlend, needs_gcc
from parity import Comparison, drive_world
from short_drive import blend_to

from blendctl import Blender
from blendctl.controllers import load
from blendctl.controllers.zoo import PAIRS
from blendctl.features import OnlineLinear

pytestmark = needs_gcc

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


def export_pair(folder, world, settings, **options):
    """Return the blender of a shipped pair and its compiled form."""
    pair = [load(name) for name in PAIRS[world]]
    blender = Blender(pair, ["performant", "safe"], stochastic=False, fallback="safe", seed=3, **settings)
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


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("case", CASES | MORE)
def test_100000_steps_are_equal(case, tmp_path):
    world, settings = (CASES | MORE)[case]
    comparison = Comparison(*export_pair(tmp_path, world, settings))
    drive_world(comparison, world, steps=100_000, seed=1000, missing=range(500, 100_000, 1999))
    comparison.expect_equal()


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("case", CASES)
def test_single_precision_chooses_nearly_always_the_same_arms(case, tmp_path):
    world, settings = CASES[case]
    comparison = Comparison(*export_pair(tmp_path, world, settings, float32=True))
    drive_world(comparison, world, steps=20_000, seed=1000)
    assert comparison.arms_differ <= 20, "99.9% of the arms"


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
