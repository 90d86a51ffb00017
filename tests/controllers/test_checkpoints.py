"""Checkpoints of other libraries: read to the bit, and without executing their content."""

import io
import json
import os
import pickle
import zipfile
from collections import OrderedDict
from itertools import pairwise

import numpy as np
import pytest
import torch

from blendctl.controllers import load
from blendctl.controllers.checkpoints import read_omnisafe, read_sb3
from blendctl.controllers.torch_zip import read_torch_zip
from blendctl.errors import FileFormatError, InputError


def network(*sizes, activation=torch.nn.Tanh):
    torch.manual_seed(0)
    layers = []
    for a, b in pairwise(sizes):
        layers += [torch.nn.Linear(a, b), activation()]
    return torch.nn.Sequential(*layers[:-1])


def omnisafe(path, *, normaliser=None, activation=torch.nn.Tanh):
    """Write what OmniSafe saves of a Gaussian actor."""
    net = network(6, 16, 16, 2, activation=activation)
    state = OrderedDict(log_std=torch.tensor([-0.5, -1.0]))
    state.update({f"mean.{key}": value for key, value in net.state_dict().items()})
    saved = {"pi": state}
    if normaliser is not None:
        saved["obs_normalizer"] = normaliser
    torch.save(saved, path)
    return net


def test_tensors_are_read_as_torch_would(tmp_path):
    torch.manual_seed(1)
    whole = torch.arange(24.0).reshape(4, 6)
    saved = {
        "float": whole, "transposed": whole.t(), "part": whole[1:3, 2:4], "double": torch.ones(3, dtype=torch.float64),
        "long": torch.tensor([1, 2]), "bool": torch.tensor([True, False]), "scalar": torch.tensor(3.5),
        "empty": torch.zeros(0), "parameter": torch.nn.Parameter(torch.ones(2)),
        "nested": {"list": [1, 2.5, None, True, "x", (1, 2)]},
    }  # fmt: skip
    torch.save(saved, tmp_path / "a.pt")
    content = read_torch_zip(tmp_path / "a.pt")
    for name, value in saved.items():
        if isinstance(value, torch.Tensor):
            assert np.array_equal(content[name], value.detach().numpy()), name
    assert content["nested"] == saved["nested"]


def test_a_checkpoint_that_would_run_code_is_refused_and_nothing_runs(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "pwned"),)

    torch.save({"pi": Evil()}, tmp_path / "evil.pt")
    with pytest.raises(FileFormatError, match=r"mkdir.*not called"):
        read_torch_zip(tmp_path / "evil.pt")
    assert not (tmp_path / "pwned").exists()


def test_damaged_and_foreign_files_are_refused(tmp_path):
    path = tmp_path / "a.pt"
    omnisafe(path)
    data = path.read_bytes()
    for damaged in (b"", b"hello", data[: len(data) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError, match="not a torch checkpoint"):
            read_omnisafe(path)
    with pytest.raises(FileFormatError):
        read_omnisafe(tmp_path / "missing.pt")
    torch.save([1, 2], path)
    with pytest.raises(FileFormatError, match="not a dictionary"):
        read_omnisafe(path)
    torch.save({"x": torch.ones(1)}, path)
    with pytest.raises(FileFormatError, match='no actor "pi", but: x'):
        read_omnisafe(path)
    torch.save({"pi": {"net.0.weight": torch.ones(1, 1)}}, path)
    with pytest.raises(FileFormatError, match="Gaussian"):
        read_omnisafe(path)
    torch.save(
        {"pi": {"mean.0.weight": torch.ones(2, 3), "mean.0.bias": torch.ones(5), "log_std": torch.ones(2)}},
        path,
    )
    with pytest.raises(FileFormatError, match="does not fit"):
        read_omnisafe(path)


def test_a_program_that_reaches_beyond_its_storage_is_refused(tmp_path):
    torch.save({"x": torch.arange(4.0)}, tmp_path / "a.pt")
    with zipfile.ZipFile(tmp_path / "a.pt") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    data = next(name for name in parts if name.endswith("data/0"))
    parts[data] = parts[data][:4]
    with zipfile.ZipFile(tmp_path / "b.pt", "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    with pytest.raises(FileFormatError, match="damaged"):
        read_torch_zip(tmp_path / "b.pt")


class _Call:
    """Pickle as the call of a function with arguments."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


FLOATS = np.arange(4, dtype="<f4").tobytes()


class _Storage:
    """Pickle as a reference to a storage of four floats."""


def write_program(path, content, *, storage=FLOATS, size=4):
    """Write a checkpoint whose program is the pickle of `content`."""

    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            return ("storage", torch.FloatStorage, "0", "cpu", size) if isinstance(value, _Storage) else None

    buffer = io.BytesIO()
    Pickler(buffer, protocol=2).dump(content)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", buffer.getvalue())
        archive.writestr("a/data/0", storage)


def tensor(*arguments):
    return _Call(torch._utils._rebuild_tensor_v2, _Storage(), *arguments, False, OrderedDict())


def nested_tuple():
    value = ()
    for _ in range(100):
        value = (value, value)
    return value


def test_a_written_program_is_read_as_a_tensor(tmp_path):
    write_program(tmp_path / "a.pt", {"x": tensor(1, (3,), (1,))})
    assert read_torch_zip(tmp_path / "a.pt")["x"].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "arguments",
    [
        (0, (5,), (1,)),
        (2, (3,), (1,)),
        (0, (-4,), (1,)),
        (0, (4,), (-1,)),
        (-1, (4,), (1,)),
        (0, (4,), (1, 1)),
        (0, (4.0,), (1,)),
        (0, (1 << 20, 1 << 20), (0, 0)),
        (0, (10**30,), (0,)),
        (0, (1 << 29,), (0,)),
        (0, ("4",), (1,)),
        (0, 4, 1),
        (0, (nested_tuple(),), (1,)),
    ],
)
def test_a_tensor_with_wrong_sizes_is_refused_before_it_is_allocated(arguments, tmp_path):
    write_program(tmp_path / "a.pt", {"x": tensor(*arguments)})
    with pytest.raises(FileFormatError, match="damaged"):
        read_torch_zip(tmp_path / "a.pt")


def test_an_element_of_an_empty_storage_is_refused(tmp_path):
    write_program(tmp_path / "a.pt", {"x": tensor(0, (), ())}, storage=b"", size=0)
    with pytest.raises(FileFormatError, match="damaged"):
        read_torch_zip(tmp_path / "a.pt")


@pytest.mark.parametrize("size", [-1, 5, 10**30, 4.0, None])
def test_a_storage_of_a_wrong_size_is_refused(size, tmp_path):
    write_program(tmp_path / "a.pt", {"x": tensor(0, (1,), (1,))}, size=size)
    with pytest.raises(FileFormatError, match="damaged"):
        read_torch_zip(tmp_path / "a.pt")


def test_nested_tuples_are_neither_hashed_nor_printed(tmp_path):
    write_program(tmp_path / "a.pt", {"x": nested_tuple()})
    read_torch_zip(tmp_path / "a.pt")
    program = pickle.dumps(nested_tuple(), protocol=2)[2:-1]  # without PROTO and STOP
    for code in (b"\x80\x02}" + program + b"K\x01s.", b"\x80\x02" + program + b")R."):  # {nested: 1}, nested()
        with zipfile.ZipFile(tmp_path / "b.pt", "w") as archive:
            archive.writestr("a/data.pkl", code)
        with pytest.raises(FileFormatError, match="damaged"):
            read_torch_zip(tmp_path / "b.pt")


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("blendctl.file_reading.LARGEST_JSON", 100)
    sb3_archive(tmp_path / "ppo.zip", settings={"text": "x" * 100})
    with pytest.raises(FileFormatError, match="bytes of JSON; allowed: 100"):
        read_sb3(tmp_path / "ppo.zip")
    monkeypatch.setattr("blendctl.controllers.torch_zip.LARGEST_PROGRAM", 10)
    omnisafe(tmp_path / "a.pt")
    with pytest.raises(FileFormatError, match="has a program of more than"):
        read_torch_zip(tmp_path / "a.pt")


@pytest.mark.parametrize(
    "change",
    [
        {"_mean": torch.zeros(5)},
        {"_mean": torch.full((6,), torch.nan)},
        {"_std": torch.zeros(())},
        {"_std": "wide"},
        {"_clip": torch.full((6,), -1.0)},
        {"_clip": torch.zeros(0)},
        {"_count": "many"},
        {"_count": None},
    ],
)
def test_a_damaged_normaliser_is_refused(change, tmp_path):
    normaliser = {
        "_mean": torch.zeros(6), "_std": torch.ones(6), "_clip": torch.ones(6), "_count": torch.tensor(9)
    }  # fmt: skip
    omnisafe(tmp_path / "a.pt", normaliser=normaliser)
    assert read_omnisafe(tmp_path / "a.pt").clip == 1.0
    omnisafe(tmp_path / "a.pt", normaliser=normaliser | change)
    with pytest.raises(FileFormatError, match="damaged"):
        read_omnisafe(tmp_path / "a.pt")


@pytest.mark.parametrize("log_std", [torch.full((2,), 1e6), torch.full((2,), torch.nan), torch.zeros(3), "wide", None])
def test_a_damaged_standard_deviation_is_refused(log_std, tmp_path):
    torch.save({"pi": {"mean.0.weight": torch.ones(2, 3), "mean.0.bias": torch.ones(2), "log_std": log_std}},
               tmp_path / "a.pt")  # fmt: skip
    with pytest.raises(FileFormatError, match="damaged"):
        read_omnisafe(tmp_path / "a.pt")


def test_an_omnisafe_actor_acts_as_it_did(tmp_path):
    net = omnisafe(tmp_path / "epoch-1.pt")
    policy = read_omnisafe(tmp_path / "epoch-1.pt")
    rows = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)
    with torch.no_grad():
        expected = net(torch.from_numpy(rows)).clamp(-1, 1).numpy()
    assert policy.act(rows) == pytest.approx(expected, abs=1e-6)
    assert policy.act(rows[0]) == pytest.approx(expected[0], abs=1e-6)
    assert (policy.observation_size, policy.action_size) == (6, 2)
    draws = np.stack([policy.act(np.zeros(6), np.random.default_rng(i)) for i in range(4000)])
    assert draws[:, 1].std() == pytest.approx(np.exp(-1.0), rel=0.05)
    with pytest.raises(InputError, match=r"takes \(6,\)"):
        policy.act(np.zeros(5))


def test_the_normaliser_and_activation_of_an_omnisafe_run_are_read(tmp_path):
    folder = tmp_path / "run" / "torch_save"
    folder.mkdir(parents=True)
    mean, std = torch.arange(6.0), torch.full((6,), 2.0)
    normaliser = {"_mean": mean, "_std": std, "_clip": torch.full((6,), 0.5), "_count": torch.tensor(10)}
    net = omnisafe(folder / "epoch-9.pt", normaliser=normaliser, activation=torch.nn.ReLU)
    config = {"model_cfgs": {"actor": {"activation": "relu"}}}
    (tmp_path / "run" / "config.json").write_text(json.dumps(config))
    policy = read_omnisafe(folder / "epoch-9.pt")
    rows = torch.randn(4, 6)
    with torch.no_grad():
        expected = net(((rows - mean) / std).clamp(-0.5, 0.5)).clamp(-1, 1).numpy()
    assert policy.act(rows.numpy()) == pytest.approx(expected, abs=1e-6)
    (tmp_path / "run" / "config.json").write_text("{}")
    with pytest.raises(FileFormatError, match="activation"):
        read_omnisafe(folder / "epoch-9.pt")
    with pytest.raises(FileFormatError, match='activation "mish"; allowed'):
        read_omnisafe(folder / "epoch-9.pt", activation="mish")


def sb3_archive(path, *, settings=None, weights=None):
    hidden, head = network(6, 8, 8, activation=torch.nn.Tanh), torch.nn.Linear(8, 2)
    state = {f"mlp_extractor.policy_net.{key}": value for key, value in hidden.state_dict().items()}
    state |= {
        "action_net.weight": head.weight.data,
        "action_net.bias": head.bias.data,
        "log_std": torch.zeros(2),
    }
    buffer = io.BytesIO()
    torch.save(weights or state, buffer)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("policy.pth", buffer.getvalue())
        archive.writestr("data", json.dumps(settings or {}))
    return hidden, head


@pytest.mark.parametrize("kind", ["Tanh", "ReLU"])
def test_a_stable_baselines3_archive_is_read_without_it(tmp_path, kind):
    named = f"<class 'torch.nn.modules.activation.{kind}'>"
    settings = {"policy_kwargs": {":type:": "dict", ":serialized:": "gASV", "activation_fn": named}}
    hidden, head = sb3_archive(tmp_path / "ppo.zip", settings=settings if kind != "Tanh" else None)
    policy = read_sb3(tmp_path / "ppo.zip")
    rows = torch.randn(4, 6)
    activation = getattr(torch.nn, kind)()
    with torch.no_grad():
        latent = activation(hidden[2](activation(hidden[0](rows))))
        expected = head(latent).clamp(-1, 1).numpy()
    assert policy.activation == kind.lower()
    assert policy.act(rows.numpy()) == pytest.approx(expected, abs=1e-6)


def test_controllers_are_printed_without_their_weights(tmp_path):
    sb3_archive(tmp_path / "ppo.zip")
    assert repr(read_sb3(tmp_path / "ppo.zip")) == "GaussianPolicy('ppo', 6-8-8-2, tanh)"
    shipped = load("PointGoal1/ppo")
    assert repr(shipped).startswith("NetworkController('PointGoal1/ppo', 60 observations, 2 actions, actor=Dense(")
    assert len(repr(shipped)) < 200
    assert len(repr(shipped.context)) < 2000


def test_other_archives_are_refused_with_a_way_out(tmp_path):
    sb3_archive(tmp_path / "sac.zip", weights={"actor.mu.weight": torch.ones(1, 1)})
    with pytest.raises(FileFormatError, match="load it with stable-baselines3"):
        read_sb3(tmp_path / "sac.zip")
    (tmp_path / "no.zip").write_bytes(b"no")
    with pytest.raises(FileFormatError, match="not a stable-baselines3 archive"):
        read_sb3(tmp_path / "no.zip")


def test_a_real_stable_baselines3_model_and_its_archive_agree(tmp_path):
    sb3 = pytest.importorskip("stable_baselines3")
    from blendctl.controllers.adapters import as_controller

    model = sb3.PPO("MlpPolicy", "Pendulum-v1", device="cpu")
    model.save(tmp_path / "ppo.zip")
    observation = np.array([0.1, 0.2, 0.3], np.float32)
    with torch.no_grad():
        mean = model.policy._predict(torch.from_numpy(observation)[None], deterministic=True)[0].numpy()
    assert read_sb3(tmp_path / "ppo.zip").act(observation) == pytest.approx(mean, abs=1e-5)
    assert as_controller(model).act(observation) == pytest.approx(mean, abs=1e-5)
