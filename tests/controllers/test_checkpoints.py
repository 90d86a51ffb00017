"""Weights from elsewhere: read to the bit, and never by running what is in the file."""

import io
import json
import os
import zipfile
from collections import OrderedDict
from itertools import pairwise

import numpy as np
import pytest
import torch

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
    found = read_torch_zip(tmp_path / "a.pt")
    for name, value in saved.items():
        if isinstance(value, torch.Tensor):
            assert np.array_equal(found[name], value.detach().numpy()), name
    assert found["nested"] == saved["nested"]


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
        with pytest.raises(FileFormatError, match="no torch checkpoint"):
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
    with pytest.raises(FileFormatError, match="do not fit"):
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


def test_an_omnisafe_run_brings_its_normaliser_and_activation(tmp_path):
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


def sb3_archive(path, *, told=None, weights=None):
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
        archive.writestr("data", json.dumps(told or {}))
    return hidden, head


@pytest.mark.parametrize("kind", ["Tanh", "ReLU"])
def test_a_stable_baselines3_archive_is_read_without_it(tmp_path, kind):
    named = f"<class 'torch.nn.modules.activation.{kind}'>"
    told = {"policy_kwargs": {":type:": "dict", ":serialized:": "gASV", "activation_fn": named}}
    hidden, head = sb3_archive(tmp_path / "ppo.zip", told=told if kind != "Tanh" else None)
    policy = read_sb3(tmp_path / "ppo.zip")
    rows = torch.randn(4, 6)
    activation = getattr(torch.nn, kind)()
    with torch.no_grad():
        latent = activation(hidden[2](activation(hidden[0](rows))))
        expected = head(latent).clamp(-1, 1).numpy()
    assert policy.activation == kind.lower()
    assert policy.act(rows.numpy()) == pytest.approx(expected, abs=1e-6)


def test_other_archives_are_refused_with_a_way_out(tmp_path):
    sb3_archive(tmp_path / "sac.zip", weights={"actor.mu.weight": torch.ones(1, 1)})
    with pytest.raises(FileFormatError, match="load it with stable-baselines3"):
        read_sb3(tmp_path / "sac.zip")
    (tmp_path / "no.zip").write_bytes(b"no")
    with pytest.raises(FileFormatError, match="no stable-baselines3 archive"):
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
