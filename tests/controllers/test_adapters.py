"""Adapters: functions, models, TorchScript and ONNX files act as controllers."""

import builtins
import importlib.util
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from blendctl.controllers import Controller
from blendctl.controllers.adapters import OnnxController, ScriptController, act_rows, as_controller
from blendctl.controllers.resolve import display_name, open_controller
from blendctl.errors import FileFormatError, InputError, MissingExtraError

AFFINE = Path(__file__).parent.parent / "data" / "affine.onnx"  # [o0 + o2 + 0.5, 2 o1 + o2 - 0.5]


def test_functions_with_and_without_a_generator():
    assert as_controller(lambda o: [o[0], 1.0]).act([3.0]).tolist() == [3.0, 1.0]
    drawn = as_controller(lambda o, rng: [rng.normal()])
    assert drawn.act([0.0], np.random.default_rng(0)) == drawn.act([0.0], np.random.default_rng(0))
    optional = as_controller(lambda o, gain=2.0: [gain])
    assert optional.act([0.0], np.random.default_rng(0)).tolist() == [2.0]
    named = as_controller(lambda o, *, rng=None: [0.0 if rng is None else 1.0])
    assert isinstance(named, Controller)


def test_a_function_of_one_observation_serves_many_worlds():
    rows = np.arange(12.0).reshape(4, 3)
    one = as_controller(lambda o: [float(o[0]), o.sum()])
    assert act_rows(one, rows, None).tolist() == [[row[0], row.sum()] for row in rows]
    drawn = as_controller(lambda o, rng: rng.normal(size=2))
    draws = act_rows(drawn, rows, np.random.default_rng(0))
    assert draws.tolist() == np.random.default_rng(0).normal(size=(4, 2)).tolist()  # the trial drew nothing
    many = as_controller(lambda o: np.stack([o[:, 0], o.sum(axis=1)], axis=1))
    assert act_rows(many, rows, None).tolist() == act_rows(one, rows, None).tolist()


def test_a_function_that_writes_into_its_observation_affects_no_other_row():
    def careless(observation):
        observation -= 1.0
        return observation[:2]

    rows = np.full((3, 4), 5.0)
    assert act_rows(as_controller(careless), rows, None).tolist() == [[4.0, 4.0]] * 3
    assert (rows == 5.0).all()


def test_a_recurrent_model_is_refused():
    class Recurrent:
        class policy:  # as stable-baselines3 calls it
            lstm_actor = object()

        def predict(self, observation, deterministic):
            return np.zeros(2), None

    with pytest.raises(InputError, match="Recurrent is a recurrent policy"):
        as_controller(Recurrent())


def test_a_model_of_several_inputs_gets_its_dictionary():
    class Multi:
        policy = None

        def predict(self, observation, deterministic):
            return np.array([observation["speed"]]), None

    assert as_controller(Multi()).act({"speed": 3.0}).tolist() == [3.0]


def test_a_controller_that_takes_no_batch_is_reported():
    class Single:
        name = "mine"

        def act(self, observation, rng=None):
            return np.zeros(2)

    with pytest.raises(InputError, match=r"mine returned actions of shape \(2,\) for 4 observations"):
        act_rows(Single(), np.zeros((4, 3)), None)


def test_a_controller_is_left_as_it_is():
    controller = as_controller(lambda o: o)
    assert as_controller(controller) is controller


def test_a_model_with_predict_is_asked_for_draws_or_means():
    class Model:
        policy = None

        def predict(self, observation, deterministic=False):
            return np.array([float(deterministic)]), None

    controller: Any = as_controller(Model())
    assert controller.act(np.zeros(2)).tolist() == [1.0]
    assert controller.act(np.zeros(2), np.random.default_rng(0)).tolist() == [0.0]
    assert controller.name == "Model"


def test_an_onnx_file_cannot_take_more_memory_than_its_limit():
    """The file has 180 bytes and asks for 8 GiB; it fails when it is used, as any controller may."""
    pytest.importorskip("onnxruntime")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    bomb = OnnxController(AFFINE.with_name("bomb.onnx"))
    with pytest.raises(Exception, match="memory"):
        bomb.act(np.zeros(3))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB
    assert OnnxController(AFFINE).act(np.zeros(3)).shape == (2,)


def test_onnx_models_drive():
    pytest.importorskip("onnxruntime")
    controller = open_controller(str(AFFINE))
    assert isinstance(controller, OnnxController)
    assert controller.act([1.0, 2.0, 3.0]).tolist() == [4.5, 6.5]
    assert controller.act(np.zeros((4, 3))).tolist() == [[0.5, -0.5]] * 4


def test_files_that_are_not_models_are_refused(tmp_path):
    (tmp_path / "bad.onnx").write_bytes(b"no")
    (tmp_path / "bad.pt").write_bytes(b"no")
    if importlib.util.find_spec("onnxruntime"):
        with pytest.raises(FileFormatError, match="not an ONNX model"):
            OnnxController(tmp_path / "bad.onnx")
    with pytest.raises(FileFormatError, match="not a TorchScript"):
        ScriptController(tmp_path / "bad.pt", trust_code=True)
    with pytest.raises(FileFormatError, match="is not a file"):
        ScriptController(tmp_path / "none.pt", trust_code=True)
    with pytest.raises(FileFormatError, match="is not a file"):
        open_controller(str(tmp_path / "none.pt"))


@pytest.mark.parametrize(
    ("adapter", "package", "extra"),
    [(OnnxController, "onnxruntime", "onnx"), (ScriptController, "torch", "train")],
)
def test_a_missing_package_says_how_to_get_it(monkeypatch, adapter, package, extra):
    real = builtins.__import__

    def absent(name, *rest, **more):
        if name == package:
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(MissingExtraError, match=rf"blendctl\[{extra}\]"):
        adapter("x")


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")  # of writing the file
def test_torchscript_files_drive(tmp_path):
    net = torch.nn.Linear(3, 2)
    torch.jit.trace(net, torch.zeros(1, 3)).save(str(tmp_path / "net.pt"))
    for refused in (lambda: open_controller(str(tmp_path / "net.pt")), lambda: ScriptController(tmp_path / "net.pt")):
        with pytest.raises(InputError, match="a program that torch would run; if you trust it, use --trust-code"):
            refused()
    controller = open_controller(str(tmp_path / "net.pt"), trust_code=True)
    with torch.no_grad():
        expected = net(torch.ones(3)).numpy()
    assert controller.act(np.ones(3)) == pytest.approx(expected, abs=1e-6)
    assert controller.act(np.ones((5, 3))).shape == (5, 2)


def test_python_objects_are_imported_by_name(tmp_path):
    (tmp_path / "mine.py").write_text(
        "class Brake:\n    def act(self, observation, rng=None):\n        return [0.0]\n\n"
        "def go(o):\n    return [1.0]\n"
    )
    assert open_controller(f"{tmp_path}/mine.py:go").act([0.0]).tolist() == [1.0]
    assert open_controller(f"{tmp_path}/mine.py:Brake").act([0.0]) == [0.0]
    assert open_controller("numpy:tanh").act([0.0]).tolist() == [0.0]
    with pytest.raises(InputError, match='has no "stop"'):
        open_controller(f"{tmp_path}/mine.py:stop")
    with pytest.raises(InputError, match="cannot be imported"):
        open_controller("no_such_module:go")
    with pytest.raises(InputError, match="cannot be imported"):
        open_controller(f"{tmp_path}/none.py:go")


def test_names_and_files_are_found(tmp_path):
    from blendctl.controllers.classical import PurePursuit

    assert isinstance(open_controller("pure-pursuit", world="CarGoal1"), PurePursuit)
    with pytest.raises(InputError, match="needs a world"):
        open_controller("stop")
    with pytest.raises(InputError, match="no controller"):
        open_controller("PointGoal1/nobody")
    assert display_name("tcp://127.0.0.1:1") == "remote"
