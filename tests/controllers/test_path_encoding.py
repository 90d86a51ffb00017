"""Paths and what they meet on the map: geometry by hand, damaged declarations, and the file."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest
from path_networks import random_network, random_paths
from safetensors import safe_open
from safetensors.numpy import save_file

from blendctl.controllers import identity_encoding, read_lookahead, write_lookahead
from blendctl.controllers.dense import Dense
from blendctl.controllers.path_encoding import FARTHEST, HORIZONS, Avoided, MapDeclaration, PathEncoding
from blendctl.errors import FileFormatError, InputError
from blendctl.scene_map import LAG, MappedKind

KINDS = (
    MappedKind("goal", 12, 1),
    MappedKind("hazards", 28, 3, keepout=0.2),
    MappedKind("gremlins", 44, 2, motion="circling", travel=0.2),
)
DECLARATION = MapDeclaration(
    60, period=0.1, tilts=False, kinds=KINDS, avoided=(Avoided(1, 0.1), Avoided(2, 0.1)), targets=(0,)
)
HOLD, POINTS = 10, 4
HAZARDS, GREMLINS, GOAL = (
    slice(0, HORIZONS),
    slice(HORIZONS, 2 * HORIZONS),
    slice(2 * HORIZONS, 2 * HORIZONS + POINTS + 1),
)


def along(*paths, discount=1.0, spread=1e-9):
    """Return an encoding whose controllers drive along fixed paths (points, 2), whatever they observe."""
    places = np.array(paths, np.float32)
    network = Dense((np.zeros((1, places.size), np.float32),), (places.ravel(),), "relu")
    ones = np.ones(places.shape[1], np.float32)
    return PathEncoding(DECLARATION, network, ones, spread * ones, HOLD, discount, len(paths))


AHEAD = [(0.1, 0.0), (0.2, 0.0), (0.3, 0.0), (0.4, 0.0)]
STILL = [(0.0, 0.0)] * 4


def memory_of(*, robot=(0.0, 0.0), heading=0.0, steps=0, **places):
    """Return a memory of one world in which these objects are known."""
    memory = DECLARATION.open(1)
    memory.maps.robot[0], memory.maps.heading[0], memory.maps.steps[0] = robot, heading, steps
    for kind, declared in enumerate(KINDS):
        known = places.get(declared.name, [])
        memory.maps.known[0, kind] = len(known)
        for index, place in enumerate(known):
            memory.maps.places[0, memory.kinds.first[kind] + index] = place
    return memory


def inputs(encoding, memory):
    return encoding(np.zeros((1, 1), np.float32), memory)[0]


def test_an_object_on_a_straight_path_counts_the_steps_inside_of_it_until_each_horizon():
    # Forty steps of a centimetre; the hazard covers 0.15 m to 0.35 m, and a step at its edge counts half.
    found = inputs(along(AHEAD), memory_of(hazards=[(0.25, 0.0)]))
    assert found[HAZARDS] == pytest.approx([0.0, 5.5, 20.0], abs=1e-3)
    assert found[GREMLINS] == pytest.approx(0.0)


def test_the_place_and_heading_of_the_robot_do_not_matter():
    turned = memory_of(robot=(2.0, 3.0), heading=math.pi / 2, hazards=[(2.0, 3.25)], goal=[(2.0, 3.5)])
    straight = memory_of(hazards=[(0.25, 0.0)], goal=[(0.5, 0.0)])
    assert inputs(along(AHEAD), turned) == pytest.approx(inputs(along(AHEAD), straight), abs=1e-3)


def test_costs_are_discounted_and_overlapping_objects_count_once():
    found = inputs(along(AHEAD, discount=0.9), memory_of(hazards=[(0.25, 0.0)]))
    weights = 0.9 ** np.arange(40.0)
    assert found[2] == pytest.approx(weights[15:34].sum() + 0.5 * (weights[14] + weights[34]), abs=1e-3)
    twice = inputs(along(AHEAD), memory_of(hazards=[(0.25, 0.0), (0.25, 0.0), (5.0, 5.0)]))
    assert twice[2] == pytest.approx(20.0, abs=0.6), "but for the edges"


def test_an_uncertain_path_is_partly_inside():
    beside = memory_of(hazards=[(0.25, 0.12)])  # 2 cm beside the path
    assert inputs(along(AHEAD), beside)[2] == 0.0
    assert 0.5 < inputs(along(AHEAD, spread=0.05), beside)[2] < 10.0


def test_unknown_objects_give_zero():
    found = inputs(along(AHEAD), memory_of())
    assert found[: -2 * POINTS] == pytest.approx(0.0)
    assert found[-2 * POINTS :].reshape(POINTS, 2) == pytest.approx(np.array(AHEAD))


def test_targets_show_how_much_nearer_each_point_is_and_the_least_distance():
    near = inputs(along(AHEAD), memory_of(goal=[(0.5, 0.0)]))
    assert near[GOAL] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.1])
    behind = inputs(along(AHEAD), memory_of(goal=[(-3.0, 0.0)]))
    assert behind[GOAL] == pytest.approx([-0.1, -0.2, -0.3, -0.4, FARTHEST])


def test_every_controller_has_its_own_inputs():
    encoding, memory = along(AHEAD, STILL), memory_of(hazards=[(0.25, 0.0)], goal=[(0.5, 0.0)])
    found = inputs(encoding, memory).reshape(2, -1)
    assert encoding.size == found.size
    assert found[0] == pytest.approx(inputs(along(AHEAD), memory))
    assert found[1] == pytest.approx(inputs(along(STILL), memory))
    assert found[1, HAZARDS] == pytest.approx(0.0)


@pytest.mark.parametrize("steps", [0, 17, 40])
def test_circling_objects_are_where_they_will_be(steps):
    middle = np.array([-0.2, 0.0])  # of a circle through the robot
    times = 0.1 * (steps + np.arange(1, 41)) - LAG
    distance = np.linalg.norm(middle + 0.2 * np.stack([np.sin(times), np.cos(times)], axis=1), axis=1)
    found = inputs(along(STILL), memory_of(steps=steps, gremlins=[middle]))
    for at, until in zip(range(HORIZONS), (10, 20, 40), strict=True):
        assert found[GREMLINS][at] == pytest.approx((distance[:until] < 0.1).sum(), abs=1.0)
    assert 2.0 < found[GREMLINS][2] < 38.0
    assert found[HAZARDS] == pytest.approx(0.0)


def test_a_batch_equals_its_rows():
    encoding = along(AHEAD, STILL)
    memory = DECLARATION.open(3)
    rng = np.random.default_rng(0)
    observations = rng.uniform(0.0, 0.9, (3, 60))
    memory.observe(observations, 0)
    batch = encoding(np.zeros((3, 1), np.float32), memory)
    for row, observation in enumerate(observations):
        alone = DECLARATION.open(1)
        alone.observe(observation[None], 0)
        assert batch[row] == pytest.approx(inputs(encoding, alone), abs=1e-6)
    assert len(np.unique(batch[:, GOAL], axis=0)) == 3


def changed_kind(**changes):
    kinds = [asdict(kind) for kind in KINDS]
    return {"kinds": [kinds[0] | changes, *kinds[1:]]}


@pytest.mark.parametrize(
    "change",
    [
        {"observation_size": 10},
        {"observation_size": 10**40},
        {"observation_size": 60.0},
        {"period": 0.0},
        {"period": float("nan")},
        {"period": "0.1"},
        {"tilts": 1},
        {"tilts": None},
        {"kinds": None},
        {"kinds": [3]},
        {"kinds": [{}]},
        {"unknown": 3},
        changed_kind(start=45),
        changed_kind(start=-1),
        changed_kind(count=0),
        changed_kind(count=10**40),
        changed_kind(count=2),
        changed_kind(motion="flying"),
        changed_kind(motion=["fixed"]),
        changed_kind(name=3),
        changed_kind(keepout=-1.0),
        changed_kind(travel=float("inf")),
        changed_kind(pushed="no"),
        changed_kind(dark=[]),
        changed_kind(colour="red"),
        {"avoided": [{"kind": 3, "radius": 0.1}]},
        {"avoided": [{"kind": -1, "radius": 0.1}]},
        {"avoided": [{"kind": 1, "radius": -0.1}]},
        {"avoided": [{"kind": 1, "radius": float("nan")}]},
        {"avoided": [{"kind": 1}]},
        {"avoided": 3},
        {"targets": [3]},
        {"targets": [1]},
        {"targets": [0.0]},
        {"targets": 0},
    ],
)
def test_a_damaged_declaration_is_refused(change, tmp_path):
    with pytest.raises((FileFormatError, InputError)):
        MapDeclaration.from_dict(asdict(DECLARATION) | change)
    path = tmp_path / "net.safetensors"
    write_lookahead(small_network(), path)
    header, tensors = parts_of(path)
    header["paths"]["map"] |= change
    save_file(tensors, path, metadata={"blendctl": json.dumps(header)})
    with pytest.raises(FileFormatError):
        read_lookahead(path)


@pytest.mark.parametrize("missing", ["observation_size", "period", "tilts", "kinds", "avoided", "targets"])
def test_an_incomplete_declaration_is_refused(missing):
    data = asdict(DECLARATION)
    del data[missing]
    with pytest.raises(FileFormatError, match="declaration of the map"):
        MapDeclaration.from_dict(data)


def test_a_declaration_survives_json():
    assert MapDeclaration.from_dict(json.loads(json.dumps(asdict(DECLARATION)))) == DECLARATION


@pytest.mark.parametrize(
    "change",
    [
        {"unit": np.zeros(6, np.float32)},
        {"unit": np.ones(5, np.float32)},
        {"unit": np.ones((6, 1), np.float32)},
        {"spread": np.full(6, np.nan, np.float32)},
        {"spread": np.ones(5, np.float32)},
        {"hold": 0},
        {"hold": 2.0},
        {"discount": 1.5},
        {"discount": float("nan")},
        {"controllers": 3},
        {"controllers": 0},
    ],
)
def test_paths_that_do_not_fit_are_refused(change):
    paths = random_paths(np.random.default_rng(0), DECLARATION, inputs=60, controllers=2)
    parts = {name: getattr(paths, name) for name in ("declaration", "network", "unit", "spread", "hold", "discount")}
    with pytest.raises(InputError):
        PathEncoding(**parts | {"controllers": 2} | change)


def test_a_path_needs_a_point_for_each_horizon():
    short = along(AHEAD)
    with pytest.raises(InputError, match="points of a path"):
        PathEncoding(DECLARATION, short.network, short.unit[:3], short.spread[:3], HOLD, 1.0, 1)


class Named:
    """A controller that is known by its name."""

    def __init__(self, name):
        self.name = name


def small_network():
    pair = [Named("a"), Named("b")]
    return random_network(np.random.default_rng(0), pair, encoding=identity_encoding(60), declaration=DECLARATION)


def parts_of(path):
    with safe_open(str(path), framework="numpy") as file:
        header = json.loads(file.metadata()["blendctl"])
        return header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a dict


def test_a_file_holds_networks_with_paths(tmp_path):
    written = small_network()
    write_lookahead(written, tmp_path / "lookahead.safetensors")
    again = read_lookahead(tmp_path)
    assert again.paths is not None
    assert again.paths.declaration == DECLARATION
    assert (again.paths.hold, again.paths.discount, again.paths.size) == (5, 0.99, written.paths.size)
    observations = np.random.default_rng(1).uniform(0.0, 0.9, (20, 2, 60))
    memories = [one.paths.declaration.open(2) for one in (written, again)]
    for step, rows in enumerate(observations):
        for memory in memories:
            memory.observe(rows, step)
        mine, theirs = (one.foresee(rows, 0.1, memory) for one, memory in zip((written, again), memories, strict=True))
        assert np.array_equal(mine.scores, theirs.scores)


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("paths.unit", None),
        ("paths.unit", np.zeros(6, np.float32)),
        ("paths.spread", np.ones(7, np.float32)),
        ("paths.network.0.weight", None),
        ("paths.network.1.bias", np.zeros(5, np.float32)),
    ],
)
def test_a_wrong_or_missing_tensor_of_paths_is_refused(name, tensor, tmp_path):
    path = tmp_path / "net.safetensors"
    write_lookahead(small_network(), path)
    header, tensors = parts_of(path)
    tensors.pop(name)
    save_file(tensors | ({} if tensor is None else {name: tensor}), path, metadata={"blendctl": json.dumps(header)})
    with pytest.raises(FileFormatError, match="damaged"):
        read_lookahead(path)


@pytest.mark.parametrize("change", [{"hold": 0}, {"discount": None}, {"controllers": 3}, {"map": None}, {"map": []}])
def test_a_wrong_header_of_paths_is_refused(change, tmp_path):
    path = tmp_path / "net.safetensors"
    write_lookahead(small_network(), path)
    header, tensors = parts_of(path)
    header["paths"] |= change
    save_file(tensors, path, metadata={"blendctl": json.dumps(header)})
    with pytest.raises(FileFormatError, match=r"damaged|map"):
        read_lookahead(path)
