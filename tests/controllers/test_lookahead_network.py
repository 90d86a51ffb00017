"""Look-ahead networks without torch: rows and batches agree, other controllers and damaged files are refused."""

import json
import shutil
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from blendctl.controllers import (
    LookAheadNetwork,
    find_lookahead,
    load,
    read_lookahead,
    write_lookahead,
    zoo_names,
)
from blendctl.controllers import zoo as zoo_module
from blendctl.controllers.dense import Dense
from blendctl.controllers.encoding import identity_encoding
from blendctl.controllers.lookahead_network import Normalisation, controller_digest
from blendctl.controllers.zoo import add_to_zoo, lookahead_names
from blendctl.errors import FileFormatError, InputError

CARD = {
    "world": "PointGoal1",
    "command": "blendctl train-lookahead PointGoal1",
    "config": {"seed": 0},
    "steps": 1000,
    "seconds": 1.5,
    "versions": {"numpy": "2"},
    "note": "Held-out decisions.",
    "r2_level": [0.9, 0.8],
    "r2_difference": [0.5, 0.4],
    "dial": [
        {"weight": 0.1, "return_mean": 27.0, "cost_mean": 30.0, "over_budget": 0.5, "episodes": 200, "seed": 500_000}
    ],
}
HUGE = 10**40


def relu(*sizes, seed):
    rng = np.random.default_rng(seed)
    pairs = list(pairwise(sizes))
    weights = tuple((rng.normal(size=pair) / np.sqrt(pair[0])).astype(np.float32) for pair in pairs)
    return Dense(weights, tuple(rng.normal(size=m).astype(np.float32) for _, m in pairs), "relu")


def network(*, arms=3, encoding=None, **changes):
    parts = {
        "encoding": encoding or identity_encoding(5),
        "level": relu(6, 16, 9, 2, seed=1),
        "differences": (relu(6, 16, 9, 2 * arms, seed=2), relu(6, 16, 9, 2 * arms, seed=3)),
        "level_unit": np.array([10, 5], np.float32),
        "difference_unit": np.array([1, 0.5], np.float32),
        "weight_range": (0.02, 1.0),
        "hold": 5,
        "discount": 0.99,
        "digests": tuple(f"{arm:064d}" for arm in range(arms)),
        "names": tuple(f"controller {arm}" for arm in range(arms)),
        "card": CARD,
    }
    return LookAheadNetwork(**parts | changes)


@pytest.fixture
def pair():
    return [load("PointGoal1/ppo"), load("PointGoal1/ppo-lagrangian")]


def of_pair(pair):
    return network(arms=2, digests=tuple(c.digest for c in pair), names=tuple(c.name for c in pair))


@pytest.mark.parametrize("sizes", [(1, 1), (5, 3, 2), (165, 256, 256, 4), (7, 64, 33, 17, 4)])
def test_a_row_and_a_batch_of_a_relu_network_agree(sizes):
    dense = relu(*sizes, seed=0)
    rows = np.random.default_rng(1).normal(size=(9, sizes[0])).astype(np.float32)
    batch = dense.batch(rows)
    assert np.stack([dense.row(row) for row in rows]) == pytest.approx(batch, abs=1e-4)
    hidden = rows
    for weight, bias in zip(dense.weights[:-1], dense.biases[:-1], strict=True):
        hidden = np.maximum(hidden @ weight + bias, 0)
    assert batch == pytest.approx(hidden @ dense.weights[-1] + dense.biases[-1], abs=1e-4)


def test_one_row_is_foreseen_like_a_batch():
    networks = network()
    observations = np.random.default_rng(1).normal(size=(200, 5))
    weights = np.geomspace(0.02, 1.0, 200)
    foresight = networks.foresee(observations, weights)
    singles = [networks.foresee(o, w) for o, w in zip(observations, weights, strict=True)]
    rows = np.stack([np.stack([one.returns[0], one.costs[0]], axis=1) for one in singles])
    assert rows[..., 0] == pytest.approx(foresight.returns, abs=1e-4)
    assert rows[..., 1] == pytest.approx(foresight.costs, abs=1e-4)
    assert np.array_equal(networks.choose(observations, weights), foresight.best)
    one = networks.foresee(observations[:1], 0.02)
    assert one.returns == pytest.approx(foresight.returns[:1], abs=1e-4)


def test_differences_have_mean_zero_and_the_level_is_the_mean():
    networks = network()
    observations = np.random.default_rng(1).normal(size=(50, 5))
    foresight = networks.foresee(observations, 0.1)
    level = networks.level.batch(networks.inputs(observations, 0.1)) * networks.level_unit
    assert foresight.returns.mean(axis=1) == pytest.approx(level[:, 0], abs=1e-4)
    assert foresight.costs.mean(axis=1) == pytest.approx(level[:, 1], abs=1e-4)
    assert foresight.scores.sum(axis=1) == pytest.approx(np.zeros(50), abs=1e-4)
    total = foresight.returns - 0.1 * foresight.costs
    assert total - total.mean(axis=1, keepdims=True) == pytest.approx(foresight.scores, abs=1e-4)


@pytest.mark.parametrize("weight", [0.0, 0.01, 2.0, -1.0, float("nan"), float("inf")])
def test_a_weight_outside_of_the_trained_range_is_refused(weight):
    with pytest.raises(InputError, match=r"0\.02 to 1"):
        network().foresee(np.zeros((1, 5)), weight)


def test_an_observation_of_another_size_is_refused():
    for encoding in (None, Normalisation(np.zeros(5, np.float32), np.ones(5, np.float32))):
        with pytest.raises(InputError, match="shape"):
            network(encoding=encoding).foresee(np.zeros((3, 6)), 0.1)


@pytest.mark.parametrize("normalised", [False, True])
def test_a_file_holds_the_whole_network(normalised, tmp_path):
    scale = np.linspace(0.5, 2.0, 5, dtype=np.float32)
    written = network(encoding=Normalisation(scale - 1, scale) if normalised else None)
    write_lookahead(written, tmp_path / "lookahead.safetensors")
    for path in (tmp_path, tmp_path / "lookahead.safetensors"):
        again = read_lookahead(path)
        observations = np.random.default_rng(1).normal(size=(50, 5))
        assert np.array_equal(written.foresee(observations, 0.1).scores, again.foresee(observations, 0.1).scores)
        assert (again.digests, again.names, again.card) == (written.digests, written.names, written.card)
        assert (again.hold, again.discount, again.weight_range) == (5, 0.99, (0.02, 1.0))


def test_a_missing_foreign_or_cut_file_is_refused(tmp_path):
    path = tmp_path / "net.safetensors"
    with pytest.raises(FileFormatError, match="is not a file"):
        read_lookahead(path)
    write_lookahead(network(), path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FileFormatError, match="damaged"):
        read_lookahead(path)
    with pytest.raises(FileFormatError, match="no blendctl look-ahead networks"):
        read_lookahead(zoo_module.ZOO / "PointGoal1" / "ppo.safetensors")


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"encoding": None},
        {"encoding": 3},
        {"encoding": identity_encoding(6).to_dict()},
        {"weight_range": [1.0, 0.02]},
        {"weight_range": [0.0, 1.0]},
        {"weight_range": [0.02, float("inf")]},
        {"weight_range": [0.02]},
        {"weight_range": 3},
        {"hold": 0},
        {"hold": HUGE},
        {"hold": 5.0},
        {"hold": True},
        {"discount": 1.0},
        {"discount": "0.99"},
        {"discount": float("nan")},
        {"digests": []},
        {"digests": ["0" * 64]},
        {"digests": ["0" * 64] * 4},
        {"digests": "0" * 3},
        {"digests": [1, 2, 3]},
        {"names": ["a", "b"]},
        {"names": [1, 2, 3]},
        {"card": None},
        {"card": []},
        {"card": {"dial": 3}},
        {"card": {"dial": [3]}},
        {"card": {"dial": [{}]}},
        {"card": {"episode_steps": 0}},
        {"card": {"dial": [CARD["dial"][0] | {"cost_mean": float("nan")}]}},
        {"card": {"dial": [CARD["dial"][0] | {"weight": 0.0}]}},
        {"card": {"dial": [CARD["dial"][0] | {"over_budget": 2.0}]}},
        {"card": {"dial": [CARD["dial"][0] | {"episodes": -1}]}},
        {"card": {"dial": [CARD["dial"][0] | {"seed": HUGE}]}},
    ],
)
def test_a_header_with_a_wrong_value_is_refused(change, tmp_path):
    path = tmp_path / "net.safetensors"
    write_lookahead(network(), path)
    header, tensors = parts_of(path)
    save_file(tensors, path, metadata={"blendctl": json.dumps(header | change)})
    with pytest.raises(FileFormatError, match=r"damaged|version 2"):
        read_lookahead(path)


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("level_unit", np.zeros(2, np.float32)),
        ("level_unit", np.ones(3, np.float32)),
        ("difference_unit", np.array([1, np.nan], np.float32)),
        ("difference_unit", np.ones(2, np.float64)),
        ("difference_unit", None),
        ("level.0.weight", None),
        ("level.2.weight", np.zeros((9, 3), np.float32)),
        ("difference1.2.bias", np.zeros(4, np.float32)),
    ],
)
def test_a_wrong_or_missing_tensor_is_refused(name, tensor, tmp_path):
    path = tmp_path / "net.safetensors"
    write_lookahead(network(), path)
    header, tensors = parts_of(path)
    tensors.pop(name)
    save_file(tensors | ({} if tensor is None else {name: tensor}), path, metadata={"blendctl": json.dumps(header)})
    with pytest.raises(FileFormatError, match="damaged"):
        read_lookahead(path)


def parts_of(path):
    with safe_open(str(path), framework="numpy") as file:
        header = json.loads(file.metadata()["blendctl"])
        return header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a dict


def test_other_controllers_and_another_order_are_refused_by_their_digests(pair):
    networks = of_pair(pair)
    networks.check_controllers(pair)
    networks.check_controllers([replace(pair[0], name="renamed", context=None, longer=None), pair[1]])
    with pytest.raises(
        InputError, match=r"another order of controllers; use the order PointGoal1/ppo, PointGoal1/ppo-l"
    ):
        networks.check_controllers(pair[::-1])
    for others in ([pair[0], load("PointGoal1/cpo")], [*pair, pair[0]], [pair[0], SimpleNamespace(name="mine")]):
        with pytest.raises(InputError, match=r"trained for PointGoal1/ppo, .*blendctl train-lookahead"):
            networks.check_controllers(others)


def test_the_digest_depends_on_the_actions_alone(pair):
    first = pair[0]
    assert first.digest == controller_digest(first)
    assert first.digest == replace(first, name="other", card={}, context=None, longer=None).digest
    assert first.digest != pair[1].digest
    assert first.digest != replace(first, log_std=first.log_std + 1).digest
    # Networks of earlier trainings hold this digest.
    assert first.digest == "d2ce044fd38089ba6dba28d3eae4d48e2ef255f9d396bb1b3b2db2e0889b1684"


def test_networks_of_the_zoo_are_found_by_digests_in_order(pair, tmp_path, monkeypatch):
    zoo = tmp_path / "zoo"
    shutil.copytree(zoo_module.ZOO / "PointGoal1", zoo / "PointGoal1", ignore=shutil.ignore_patterns("*lookahead*"))
    monkeypatch.setattr(zoo_module, "ZOO", zoo)
    controllers = zoo_names()
    pair = [replace(controller, path=None) for controller in pair]  # nothing beside their files
    assert find_lookahead(pair) is None
    (tmp_path / "run").mkdir()
    write_lookahead(of_pair(pair), tmp_path / "run" / "lookahead.safetensors")
    with pytest.raises(InputError, match="named after their controllers"):
        add_to_zoo(tmp_path / "run", name="mine")
    path = add_to_zoo(tmp_path / "run")
    assert path == zoo / "PointGoal1" / "ppo+ppo-lagrangian.lookahead.safetensors"
    assert find_lookahead(pair).names == ("PointGoal1/ppo", "PointGoal1/ppo-lagrangian")
    assert find_lookahead(pair[::-1]) is None
    assert find_lookahead([*pair, pair[0]]) is None
    assert zoo_names() == controllers
    assert lookahead_names() == ["PointGoal1/ppo+ppo-lagrangian"]
    assert json.loads(path.with_suffix(".json").read_text()) == CARD
    page = path.with_suffix(".md").read_text()
    assert "| difference between controllers | 0.500 | 0.400 |" in page
    assert "| switch, cost weight 0.1 | 27.00 | 30.0 | 50% |" in page
    with pytest.raises(InputError, match="--replace"):
        add_to_zoo(tmp_path / "run")
    path.write_bytes(b"damaged")
    assert find_lookahead(pair) is None
