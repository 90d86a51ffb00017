"""The ONNX graph computes what Python computes, as far as single precision allows."""

import hashlib
import json

import numpy as np
import pytest
from path_networks import network_of_world

from blendctl import Blender, run
from blendctl.controllers import PurePursuit, load
from blendctl.controllers.zoo import PAIRS
from blendctl.errors import InputError
from blendctl.features import Critics, LookAhead, OneHot, OnlineLinear, Predictions, Stack, UnitLength

onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra export")
pytest.importorskip("onnx", reason="needs the extra export")


def lookahead(world, *, paths=False, **dial):
    """Return look-ahead networks of a shipped pair with random weights."""
    pair = [load(name) for name in PAIRS[world]]
    return LookAhead(network_of_world(world, pair, paths=paths), **dial)


CASES = {
    "look-ahead": ("PointGoal1", {"features": lambda: lookahead("PointGoal1", cost_budget=25.0)}),
    "look-ahead by preference": ("CarButton1", {"features": lambda: lookahead("CarButton1", prefer=0.3)}),
    "predictions": ("PointPush1", {"features": Predictions((1, 10)), "rule": "linear"}),
    "predictions with factors": ("CarButton1", {"features": "predictions"}),  # these networks have some
    "critics": ("PointGoal1", {"features": Critics()}),
    "a linear model": ("PointGoal1", {"features": Stack(OneHot(), UnitLength(OnlineLinear(normalize=False)))}),
}


def session_of(folder):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3  # it warns of inputs with defaults
    return onnxruntime.InferenceSession(str(folder / "blend.onnx"), options, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("case", CASES)
def test_the_graph_decides_as_python(case, tmp_path):
    world, settings = CASES[case]
    if callable(settings["features"]):
        settings = settings | {"features": settings["features"]()}
    blender = Blender([load(name) for name in PAIRS[world]], ["a", "b"], stochastic=False, seed=1, **settings)
    for record, _ in zip(run(world, blender, episodes=1, seed=1), range(60), strict=False):
        assert record.arm >= 0
    blender.export(tmp_path, format="onnx", world=world)
    session = session_of(tmp_path)
    frozen = {"frozen": True, "stochastic": False, "features": blender.declared_feature}
    with Blender(blender.controllers, ["a", "b"], bandit=_saved(blender, tmp_path), **frozen) as again:
        golden = json.loads((tmp_path / "contract.json").read_text())["golden"]
        names = [one.name for one in session.get_outputs()]
        for row in np.array(golden["observations"]):
            again.end_episode()
            action = again.act(row)
            out = dict(zip(names, session.run(None, {"observation": row}), strict=True))
            choice = again.choice
            np.testing.assert_allclose(out["psi"], choice.features, atol=2e-5)
            np.testing.assert_allclose(out["ucb"], choice.decision.ucb, atol=2e-5)
            np.testing.assert_allclose(out["proposals"], np.array(choice.proposals), atol=2e-5)
            scores = choice.decision.loss if blender.bandit.rule.name != "linear" else choice.decision.ucb.sum(axis=1)
            if abs(scores[0] - scores[1]) > 1e-4:
                assert out["arm"] == choice.arm
                np.testing.assert_allclose(out["action"], action, atol=2e-5)


def _saved(blender, folder):
    blender.save(folder / "saved.safetensors")
    return folder / "saved.safetensors"


def test_the_learner_is_an_input(tmp_path):
    blender = Blender([load(name) for name in PAIRS["PointGoal1"]], features="predictions", seed=1)
    blender.export(tmp_path, format="onnx")
    content = (tmp_path / "contract.json").read_bytes()
    session = session_of(tmp_path)
    assert session.get_modelmeta().custom_metadata_map["contract"] == hashlib.sha256(content).hexdigest()
    observation = np.full(60, 0.3)
    root = np.hstack([2.0 * np.eye(2), np.array([[1.0, 0.0], [0.0, 1.0]])])
    psi, estimate, ucb = session.run(
        ["psi", "estimate", "ucb"], {"observation": observation, "root": root, "radius": np.array([3.0])}
    )
    np.testing.assert_allclose(estimate, psi / 2.0)
    np.testing.assert_allclose(ucb, psi / 2.0 + 1.5 * np.linalg.norm(psi, axis=1, keepdims=True))


def test_a_map_of_the_episode_has_no_graph(tmp_path):
    pair = [load(name) for name in PAIRS["PointGoal1"]]
    blender = Blender(pair, features=lookahead("PointGoal1", paths=True), stochastic=False, seed=0)
    with pytest.raises(InputError, match=r'map of the episode.*features="predictions"; use --format c'):
        blender.export(tmp_path, format="onnx")
    assert not list(tmp_path.iterdir())


def test_what_has_no_graph_is_listed(tmp_path):
    blender = Blender([PurePursuit("PointGoal1"), load("PointGoal1/ppo")], ["pursuit", "ppo"], rule="thompson", seed=0)
    with pytest.raises(InputError) as caught:
        blender.export(tmp_path, format="onnx", stochastic=True)
    for part in ('controller "pursuit"', '"thompson"', "random generator", "--format c"):
        assert part in str(caught.value)
