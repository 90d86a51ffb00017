"""Rollouts repeat recorded numbers: evaluation, comparison, baselines, blends, collected data and films.

The numbers in data/rollout_numbers.json were recorded when each of these had a loop of its own. Matrix products have
another order of sums on processors without AVX-512, and trajectories amplify the last bits: there the numbers in
data/rollout_numbers_avx2.json count, which an earlier release repeated.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from blendctl.blender import BlenderBatch, run
from blendctl.cli.play import play
from blendctl.controllers import load
from blendctl.episodes import episode_columns
from blendctl.evaluation import evaluate
from blendctl.experiments.baseline_units import baseline
from blendctl.experiments.comparison_units import episodes, train
from blendctl.switches import METHODS, open_worlds
from blendctl.training.context_data import collect

# SHA-256 of the outputs of a network for small batches, on processors without AVX-512.
AVX2_DIGEST = "e34037ccdbf062de75c9351272bef805f2c730057814e3dad20e1172e71603ff"


def rounding_digest():
    """Return a digest of the last bits of matrix products on this processor."""
    network = load("PointGoal1/ppo").actor
    rows = np.random.default_rng(0).normal(size=(50, network.inputs)).astype(np.float32)
    return hashlib.sha256(b"".join(network.batch(rows[:n]).tobytes() for n in (2, 3, 8))).hexdigest()


FILE = "rollout_numbers_avx2.json" if rounding_digest() == AVX2_DIGEST else "rollout_numbers.json"
RECORDED = json.loads((Path(__file__).parent / "data" / FILE).read_text())
PAIR = ["PointGoal1/ppo", "PointGoal1/ppo-lagrangian"]
WORLD = {"world": "PointGoal1", "steps": 60}


@pytest.fixture(scope="module")
def zoo():
    return [load(name) for name in PAIR]


def same(measured, recorded):
    """Compare columns; the last bits may differ on another processor."""
    assert set(recorded) <= set(measured)
    for name, values in recorded.items():
        assert measured[name] == (values if values is None or None in values else pytest.approx(values, rel=1e-9)), name


def test_evaluate(zoo):
    measured = evaluate(zoo[0], "PointGoal1", episodes=3, seed=7, worlds_at_once=2, threads=1)
    same({"return": measured.returns, "cost": measured.costs, "length": measured.lengths}, RECORDED["evaluate"])


@pytest.mark.parametrize(("role", "controllers"), [("performant", PAIR[:1]), ("random", PAIR)])
def test_the_baselines_of_the_experiment(role, controllers):
    table = baseline(WORLD | {"controllers": controllers, "first_seed": 11, "episodes": 3, "noise_seed": 5}, None).table
    assert set(table.column_names) - {"moved"} == set(RECORDED["baseline"][role])
    same(table.to_pydict(), RECORDED["baseline"][role])


@pytest.mark.parametrize("name", list(RECORDED["compare"]))
def test_every_recorded_method_of_the_comparison(name):
    method, before = METHODS[name], None
    setting = dict(method.settings[-1])
    common = WORLD | {"controllers": PAIR}
    if method.trained:
        setting["episodes"] = 8
        before = train(common | {"method": name, "setting": setting, "seed": 99}, None)
        sums = {key: np.asarray(before.values[key]).sum(axis=0).ravel()[:8] for key in RECORDED["train"]}
        for key, values in RECORDED["train"].items():
            np.testing.assert_allclose(sums[key], values, rtol=1e-6, atol=1e-9)
    parameters = common | {"method": name, "setting": setting, "seed": 21, "count": 3, "judge_every": 10}
    rows = [episode_columns(sums) for sums in episodes(parameters, before).table.to_pylist()]
    same({key: [row.get(key) for row in rows] for key in RECORDED["compare"][name]}, RECORDED["compare"][name])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("each", {"learner": "each"}),
        ("pooled", {"learner": "pooled"}),
        ("held", {"learner": "pooled", "hold": 4, "context": "previous"}),
    ],
)
def test_a_blend_of_many_worlds(name, options, zoo):
    worlds = open_worlds("PointGoal1", 3, steps=30)
    judged = name != "held"
    blender = BlenderBatch(zoo, 3, features="predictions", seed=4, **options)
    records = list(run(worlds, blender, episodes=2, seed=13, counterfactual=judged))
    worlds.close()
    recorded = RECORDED["blend"][name]
    assert len(records) == recorded.pop("steps")
    measured = {
        key: np.sum([getattr(r, a) for r in records], axis=0) for key, a in (("return", "reward"), ("arm", "arm"))
    }
    measured["correct"] = np.sum([r.correct for r in records], axis=0) if judged else None
    same(measured, recorded)


def test_the_data_of_the_context_networks(zoo):
    worlds = open_worlds("PointGoal1", 3, steps=40)
    drives = collect(worlds, zoo, steps=100, seed=2, longest=12)
    worlds.close()
    for name, recorded in RECORDED["collect"].items():
        values = np.asarray(getattr(drives, name), np.float64).reshape(100, 3, -1).sum(axis=(0, 2))
        assert values == pytest.approx(recorded, rel=1e-6), name


@pytest.mark.parametrize(("recorded", "controller"), [("play", PAIR[0]), ("play random", "random")])
def test_a_film(recorded, controller, tmp_path):
    options = ["--episodes", "2", "--steps", "40", "--seed", "3", "--size", "96"]
    files = ["--out", str(tmp_path / "film.gif"), "--json", str(tmp_path / "film.json")]
    done = CliRunner().invoke(play, ["PointGoal1", "--controller", controller, *options, *files])
    assert done.exit_code == 0, done.output
    for measured, episode in zip(
        json.loads((tmp_path / "film.json").read_text())["episodes"], RECORDED[recorded], strict=True
    ):
        assert measured == pytest.approx(episode, rel=1e-9)
