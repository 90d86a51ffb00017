"""Controllers without torch: rows and batches agree, damaged files are refused."""

import json
import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from blendctl.controllers import (
    ContextNetwork,
    Controller,
    NetworkController,
    Predictor,
    identity_encoding,
    load,
    read_controller,
    write_controller,
)
from blendctl.controllers.dense import Dense, fast_tanh
from blendctl.controllers.zoo import PAIRS, add_to_zoo
from blendctl.errors import FileFormatError, InputError, StateError


def dense(*sizes, seed=0):
    rng = np.random.default_rng(seed)
    pairs = list(pairwise(sizes))
    weights = tuple((rng.normal(size=s) / np.sqrt(s[0])).astype(np.float32) for s in pairs)
    return Dense(weights, tuple(rng.normal(size=m).astype(np.float32) for _, m in pairs))


def controller(*, context=True, card=None):
    encoding = identity_encoding(6)
    views = ContextNetwork(
        dense(6 + 4, 17, 4, seed=4),
        encoding,
        action_gains=(1.0, 20.0),
        horizons=(1, 10),
        discount=0.9,
        scale=np.array([1, 2, 3, 4], np.float32),
        shift=np.array([4, 3, 2, 1], np.float32),
    )
    return NetworkController(
        "test",
        encoding,
        dense(6, 33, 33, 2, seed=1),
        np.array([-0.5, -1.0], np.float32),
        critic=dense(6, 33, 33, 1, seed=2),
        cost_critic=dense(6, 33, 33, 1, seed=3),
        context=views if context else None,
        card=card or {"world": "PointGoal1", "algorithm": "ppo"},
    )


def test_tanh_is_tanh():
    x = np.linspace(-20, 20, 4001).astype(np.float32)
    assert np.array([fast_tanh(v) for v in x]) == pytest.approx(np.tanh(x.astype(np.float64)), abs=5e-7)


@pytest.mark.parametrize("sizes", [(1, 1), (5, 3, 2), (150, 256, 256, 2), (7, 64, 33, 17, 4)])
def test_a_row_and_a_batch_agree(sizes):
    network = dense(*sizes)
    rows = np.random.default_rng(1).normal(size=(9, sizes[0])).astype(np.float32)
    batch = network.batch(rows)
    assert np.stack([network.row(row) for row in rows]) == pytest.approx(batch, abs=1e-5)


def test_every_method_takes_one_row_or_a_batch():
    c: Any = controller()
    assert all(isinstance(c, protocol) for protocol in (Controller, Predictor))
    rows = np.random.default_rng(1).normal(size=(5, 6))
    actions = c.act(rows)
    assert actions.shape == (5, 2)
    rewards, costs = c.predict(rows, actions)
    for i, row in enumerate(rows):
        assert c.act(row) == pytest.approx(actions[i], abs=1e-5)
        assert c.value(row) == pytest.approx(c.value(rows)[i], abs=1e-5)
        assert c.cost_value(row) == pytest.approx(c.cost_value(rows)[i], abs=1e-5)
        reward, cost = c.predict(row, actions[i])
        assert [reward, cost] == pytest.approx([rewards[i], costs[i]], abs=1e-4)
        assert np.ndim(reward) == np.ndim(cost) == np.ndim(c.value(row)) == 0


def test_noise_has_the_policys_standard_deviation_and_uses_the_generator():
    c = controller()
    still = Dense((np.zeros((6, 2), np.float32),), (np.zeros(2, np.float32),))
    c = replace(c, actor=still)
    draws = c.act(np.zeros((20_000, 6)), np.random.default_rng(0))
    # The tighter of the two is hardly ever clipped at 1: its spread is exp(-1).
    assert draws[:, 1].std() == pytest.approx(np.exp(-1.0), rel=0.02)
    assert np.abs(draws).max() <= 1.0
    again = c.act(np.zeros((20_000, 6)), np.random.default_rng(0))
    assert np.array_equal(draws, again)
    assert np.array_equal(c.act(np.zeros(6)), np.zeros(2))


def test_a_controller_survives_its_file(tmp_path):
    c = controller()
    write_controller(c, tmp_path / "c.safetensors")
    back = load(tmp_path / "c.safetensors")
    rows = np.random.default_rng(1).normal(size=(5, 6))
    assert np.array_equal(back.act(rows), c.act(rows))
    assert np.array_equal(back.predict(rows, c.act(rows), horizon=10), c.predict(rows, c.act(rows), horizon=10))
    assert back.card == c.card
    assert back.encoding == c.encoding


def test_the_networks_of_the_next_step_and_of_longer_horizons_may_be_separate(tmp_path):
    c = controller()
    assert c.context is not None
    split = replace(c, context=c.context.select((1,)), longer=c.context.select((10,)))
    write_controller(split, tmp_path / "c.safetensors")
    back = load(tmp_path / "c.safetensors")
    assert back.horizons == c.horizons == (1, 10)
    row = np.random.default_rng(1).normal(size=6)
    for horizon in (1, 10):
        assert back.predict(row, c.act(row), horizon=horizon) == c.predict(row, c.act(row), horizon=horizon)
    with pytest.raises(InputError, match="need others of shorter horizons"):
        replace(c, longer=c.context)


def test_predictions_stay_within_their_limits(tmp_path):
    c = controller()
    assert c.context is not None
    rows = np.random.default_rng(1).normal(size=(50, 6))
    free = c.predict(rows, c.act(rows))
    low, high = np.quantile(free[1], [0.3, 0.7]).astype(np.float32)
    limits = np.array([[-np.inf, np.inf], [low, high], [-np.inf, np.inf], [-np.inf, 0.0]], np.float32)
    write_controller(replace(c, context=replace(c.context, limits=limits)), tmp_path / "c.safetensors")
    limited = load(tmp_path / "c.safetensors")
    reward, cost = limited.predict(rows, c.act(rows))
    assert np.array_equal(reward, free[0])
    assert np.array_equal(cost, np.clip(free[1], low, high))
    for i, row in enumerate(rows):
        assert limited.predict(row, c.act(row)) == pytest.approx((reward[i], cost[i]), abs=1e-4)
    assert limited.predict(rows, c.act(rows), horizon=10)[1].max() <= 0.0
    for wrong in (limits[:2], limits[:, ::-1]):
        with pytest.raises(InputError, match="limits"):
            replace(c.context, limits=np.ascontiguousarray(wrong))


def factored(*, factors=3, activation="relu", horizons=(1,)):
    """Return a context network whose reward has effects of the action times their worths."""
    made = dense(6 + 4, 17, 2 + 2 * factors, seed=5)
    return ContextNetwork(
        replace(made, activation=activation),
        identity_encoding(6),
        action_gains=(1.0, 20.0),
        horizons=horizons,
        discount=0.9,
        scale=np.array([2.0, 0.5], np.float32),
        shift=np.array([0.1, 0.5], np.float32),
        factors=factors,
    )


def test_a_reward_may_be_a_level_and_effects_times_their_worths(tmp_path):
    c = replace(controller(), context=factored())
    write_controller(c, tmp_path / "c.safetensors")
    back = load(tmp_path / "c.safetensors")
    assert back.context.factors == 3
    rng = np.random.default_rng(2)
    rows, actions = rng.normal(size=(20, 6)), rng.uniform(-1, 1, size=(20, 2))
    inputs = np.concatenate([np.clip(rows, -5, 5), actions, np.clip(20 * actions, -1, 1)], axis=1).astype(np.float32)
    out = c.context.network.batch(inputs).astype(np.float64)
    reward, cost = back.predict(rows, actions)
    np.testing.assert_allclose(reward, 0.1 + 2.0 * (out[:, 0] + (out[:, 2:5] * out[:, 5:]).sum(1)), rtol=1e-5)
    np.testing.assert_allclose(cost, 0.5 + 0.5 * np.tanh(out[:, 1]), atol=1e-6)
    for i, row in enumerate(rows):
        assert back.predict(row, actions[i]) == pytest.approx((reward[i], cost[i]), abs=1e-5)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"horizons": (10,)}, r"factors has the horizons \(10,\)"),
        ({"activation": "tanh"}, "tanh between its layers; expected relu"),
        ({"factors": -1}, "factors is -1"),
    ],
)
def test_factors_that_do_not_fit_the_network_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        factored(**wrong) if "factors" not in wrong else replace(factored(), **wrong)
    with pytest.raises(InputError, match="expected 6 outputs and 2 predictions"):
        replace(factored(), factors=2)


def test_a_controller_without_context_networks_says_how_to_get_them():
    with pytest.raises(StateError, match="train-context"):
        controller(context=False).predict(np.zeros(6), np.zeros(2))


def test_wrong_shapes_and_horizons_are_refused():
    with pytest.raises(InputError, match="horizon 7 was not trained; allowed: 1, 10"):
        controller().predict(np.zeros(6), np.zeros(2), horizon=7)
    with pytest.raises(InputError, match=re.escape("expected (3, 2)")):
        controller().predict(np.zeros((3, 6)), np.zeros(2))
    with pytest.raises(InputError, match="shape"):
        controller().act(np.zeros(7))


def test_damaged_and_foreign_files_are_refused(tmp_path):
    good, bad = tmp_path / "good.safetensors", tmp_path / "bad.safetensors"
    write_controller(controller(), good)
    data = good.read_bytes()
    for damaged in (data[: len(data) // 2], b"", b"hello", data + b"x"):
        bad.write_bytes(damaged)
        with pytest.raises(FileFormatError, match=r"bad\.safetensors"):
            read_controller(bad)
    save_file({"x": np.zeros(3)}, bad)
    with pytest.raises(FileFormatError, match="no blendctl controller"):
        read_controller(bad)
    with pytest.raises(FileFormatError, match="is not a file"):
        read_controller(tmp_path / "missing.safetensors")


def test_a_file_with_missing_infinite_or_misshapen_weights_is_refused(tmp_path):
    path = tmp_path / "c.safetensors"
    write_controller(controller(), path)
    with safe_open(str(path), framework="numpy") as file:
        header = json.loads(file.metadata()["blendctl"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    del header["digest"]  # somebody who changes the weights can do that
    header = {"blendctl": json.dumps(header)}
    for change in (
        {"actor.0.weight": np.full((6, 33), np.nan, np.float32)},
        {"actor.0.weight": np.zeros((5, 33), np.float32)},
        {"critic.2.weight": np.zeros((33, 2), np.float32), "critic.2.bias": np.zeros(2, np.float32)},
        {"context.scale": np.zeros(3, np.float32)},
        {"context.shift": np.zeros((4, 1), np.float32)},
        {"context.0.weight": np.zeros((11, 17), np.float32)},
        {"context.limits": np.zeros((4, 3), np.float32)},
        {"context.limits": np.tile(np.float32([1.0, 0.0]), (4, 1))},
        {"log_std": np.zeros(3, np.float32)},
        {"log_std": np.full(2, 100.0, np.float32)},
        {"actor.1.weight": np.zeros((33, 0), np.float32), "actor.1.bias": np.zeros(0, np.float32)},
        {"actor.0.weight": np.zeros(6, np.float32)},
    ):
        save_file(tensors | change, path, metadata=header)
        with pytest.raises(FileFormatError, match="damaged"):
            read_controller(path)
    fewer = {name: t for name, t in tensors.items() if not name.startswith("critic")}
    save_file(fewer, path, metadata=header)
    with pytest.raises(FileFormatError, match="'critic' is missing"):
        read_controller(path)
    newer = json.loads(header["blendctl"]) | {"version": 99}
    save_file(tensors, path, metadata={"blendctl": json.dumps(newer)})
    with pytest.raises(FileFormatError, match="version 99"):
        read_controller(path)


HUGE = 10**30


@pytest.mark.parametrize(
    "change",
    [
        {"name": 3},
        {"card": [1]},
        {"encoding": None},
        {"encoding": {"lidars": []}},
        {"context": 3},
        *(
            {"context": bad}
            for bad in (
                {"horizons": [1, -10]},
                {"horizons": [1, HUGE]},
                {"horizons": [1, 10, 20]},
                {"horizons": [1.0, 10]},
                {"horizons": 2},
                {"action_gains": []},
                {"action_gains": [1.0]},
                {"action_gains": [1.0, float("nan")]},
                {"action_gains": ["1", "2"]},
                {"action_gains": [1.0] * 3},
                {"discount": 1.5},
                {"discount": None},
                {"factors": 2},
                {"factors": "2"},
                {"factors": HUGE},
                {"encoding": identity_encoding(5).to_dict()},
                {"encoding": identity_encoding(8).to_dict()},
            )
        ),
    ],
)
def test_a_header_with_a_wrong_value_is_refused(change, tmp_path):
    path = tmp_path / "c.safetensors"
    write_controller(controller(), path)
    with safe_open(str(path), framework="numpy") as file:
        header = json.loads(file.metadata()["blendctl"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a dict
    if isinstance(change.get("context"), dict):
        change = {"context": header["context"] | change["context"]}
    save_file(tensors, path, metadata={"blendctl": json.dumps(header | change)})
    with pytest.raises(FileFormatError, match="damaged"):
        read_controller(path)


def test_a_deeply_nested_header_is_refused(tmp_path):
    path = tmp_path / "c.safetensors"
    save_file({"x": np.zeros(3)}, path, metadata={"blendctl": "[" * 100_000})
    with pytest.raises(FileFormatError, match="no blendctl controller"):
        read_controller(path)


def test_networks_that_do_not_fit_together_are_refused():
    c = controller()
    for change in (
        {"actor": dense(5, 2)},
        {"actor": dense(6, 3)},
        {"critic": dense(6, 2)},
        {"cost_critic": dense(7, 1)},
        {"log_std": np.full(2, 1e6, np.float32)},
        {"log_std": np.zeros((1, 2), np.float32)},
        {"encoding": identity_encoding(7)},
        {"context": replace(c.context, encoding=identity_encoding(8))},
    ):
        with pytest.raises(InputError):
            replace(c, **change)
    with pytest.raises(InputError, match=r"action has shape \(3,\)"):
        c.context.row(np.zeros(6), np.zeros(3))
    with pytest.raises(InputError, match="layer 1 of a network"):
        Dense((np.zeros((2, 3), np.float32),) * 2, (np.zeros(3, np.float32),) * 2)


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_a_shipped_pair_predicts_the_next_step_by_one_network(pair):
    # Predicted costs of two controllers are compared: with other units, a choice would compare different things.
    first, other = (load(name) for name in pair)
    size, actions = first.observation_size, first.action_size
    rows = np.random.default_rng(0).uniform(0, 1, size=(200, size))
    for action in (np.ones((200, actions)), -np.ones((200, actions))):
        np.testing.assert_array_equal(first.predict(rows, action), other.predict(rows, action))
    entries = [{k: c.card["context"][k] for k in ("set", "choices", "r2_difference")} for c in (first, other)]
    assert entries[0] == entries[1]


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(InputError, match='no controller "PointGoal1/ppp"'):
        load("PointGoal1/ppp")


def test_a_finished_run_joins_a_zoo_with_its_card(tmp_path):
    card = {
        "name": "PointGoal1/ppo",
        "world": "PointGoal1",
        "algorithm": "ppo",
        "command": "blendctl train PointGoal1",
        "seed": 0,
        "steps": 10,
        "training_seconds": 1,
        "versions": {"numpy": "2"},
        "learning_curve": [{"steps": 10, "return": 1.0, "cost": 2.0}],
        "evaluation": None,
        "context": None,
    }
    (tmp_path / "run").mkdir()
    write_controller(controller(card=card), tmp_path / "run" / "controller.safetensors")
    path = add_to_zoo(tmp_path / "run", zoo=tmp_path / "zoo")
    assert path == tmp_path / "zoo" / "PointGoal1" / "ppo.safetensors"
    assert load(path).card == card
    assert json.loads(path.with_suffix(".json").read_text()) == card
    assert "| 10 | 1.00 | 2.0 |" in path.with_suffix(".md").read_text()
    before = path.read_bytes()
    write_controller(controller(card=card | {"seed": 1}), tmp_path / "run" / "controller.safetensors")
    with pytest.raises(InputError, match=r'has a "PointGoal1/ppo" already.*--replace'):
        add_to_zoo(tmp_path / "run", zoo=tmp_path / "zoo")
    assert path.read_bytes() == before
    add_to_zoo(tmp_path / "run", zoo=tmp_path / "zoo", replace=True)
    assert load(path).card["seed"] == 1
    named = add_to_zoo(tmp_path / "run", name="ppo-2", zoo=tmp_path / "zoo")
    assert named == tmp_path / "zoo" / "PointGoal1" / "ppo-2.safetensors"
    assert load(named).name == load(named).card["name"] == "PointGoal1/ppo-2"
    assert load(named).digest == load(path).digest  # the weights are the same
    with pytest.raises(InputError, match=r'has a "PointGoal1/ppo-2" already'):
        add_to_zoo(tmp_path / "run", name="ppo-2", zoo=tmp_path / "zoo")
    for wrong in ("", "../ppo", "a+b", "-a", "a.b", "ppo-lookahead"):
        with pytest.raises(InputError, match=r"a name in the zoo has letters, digits, - and _"):
            add_to_zoo(tmp_path / "run", name=wrong, zoo=tmp_path / "zoo")


@pytest.mark.parametrize(
    "card",
    [
        {"world": "PointGoal1"},
        {"world": "../elsewhere", "algorithm": "ppo"},
        {"world": "..", "algorithm": "ppo"},
        {"world": ".", "algorithm": "ppo"},
        {"world": "PointGoal1", "algorithm": "ppo\0"},
    ],
)
def test_a_card_that_names_no_place_in_the_zoo_is_refused(card, tmp_path):
    write_controller(controller(card=card), tmp_path / "c.safetensors")
    with pytest.raises(InputError, match="must name a world and an algorithm"):
        add_to_zoo(tmp_path / "c.safetensors", zoo=tmp_path / "zoo")
    assert not (tmp_path / "zoo").exists()
