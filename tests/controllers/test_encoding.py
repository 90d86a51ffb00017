"""The encoding decodes distances and angles from the lidar, and refuses what is not allowed."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blendctl.controllers import Encoding, Lidar, MarginAhead, identity_encoding
from blendctl.controllers.encoding import encode as kernel
from blendctl.errors import FileFormatError, InputError

BINS = 16


def lidar_of(points):
    """Return the lidar of points (n, 2) in the robot's frame, as Safety Gym defines it."""
    ring = np.zeros(BINS)
    for x, y in points:
        distance, angle = np.hypot(x, y), np.arctan2(y, x) % (2 * np.pi)
        place = angle / (2 * np.pi / BINS)
        b, f = int(place) % BINS, place - int(place)
        s = max(0.0, 3.0 - distance) / 3.0
        for k, v in ((b, s), ((b + 1) % BINS, f * s), ((b - 1) % BINS, (1 - f) * s)):
            ring[k] = max(ring[k], v)
    return ring


def one_ring(**options):
    return Encoding(BINS + 2, (1.0, 1.0), (Lidar("hazards", 2, objects=2),), velocity=0, **options)


def encode(encoding, points, velocity=(0.0, 0.0)):
    return encoding(np.concatenate([velocity, lidar_of(points)]))


coordinates = st.floats(-2.0, 2.0).map(lambda v: round(v, 3))


@settings(deadline=None)
@given(coordinates, coordinates)
def test_a_single_object_is_decoded_exactly(x, y):
    if not 0.05 < np.hypot(x, y) < 2.9:
        return
    out = encode(one_ring(), [(x, y)])
    first = 2 + 2 * BINS
    assert out[first : first + 2] == pytest.approx([x, y], abs=2e-5)
    assert out[first + 2] == pytest.approx(np.hypot(x, y), abs=1e-5)
    assert out[first + 5] == pytest.approx(0.0, abs=1e-5)  # the angle is not ambiguous


def test_two_objects_apart_are_both_decoded_nearest_first():
    out = encode(one_ring(), [(-1.0, 0.2), (0.3, 0.1)])
    first, second = 2 + 2 * BINS, 2 + 2 * BINS + 6
    assert out[first : first + 2] == pytest.approx([0.3, 0.1], abs=1e-5)
    assert out[second : second + 2] == pytest.approx([-1.0, 0.2], abs=1e-5)


@settings(deadline=None)
@given(st.lists(st.tuples(coordinates, coordinates), min_size=1, max_size=6))
def test_the_angle_of_the_nearest_object_lies_within_its_bounds(points):
    distances = [np.hypot(x, y) for x, y in points]
    if min(distances) < 0.05 or min(distances) > 2.9:
        return
    ahead = (MarginAhead(0.0, 10.0),)
    encoding = one_ring(ahead=ahead)
    out = encode(encoding, points)
    first = 2 + 2 * BINS
    assert out[first + 2] == pytest.approx(min(distances), abs=1e-5)
    assert 0.0 <= out[first + 5] <= 1.0
    x, y = min(points, key=lambda p: np.hypot(*p))
    apart = np.arctan2(out[first + 1], out[first]) - np.arctan2(y, x)
    apart = abs((apart + np.pi) % (2 * np.pi) - np.pi)
    # Two objects equally far may swap; otherwise the midpoint is off by half of the ambiguity at most.
    if sorted(distances)[min(1, len(points) - 1)] > min(distances) + 1e-3 or len(points) == 1:
        assert apart <= 0.5 * out[first + 5] * 2 * np.pi / BINS + 1e-4


def test_a_margin_ahead_moves_with_the_velocity():
    encoding = one_ring(ahead=(MarginAhead(0.1, 0.1),))
    margin = 2 + 2 * BINS + 6
    # 0.3 m ahead at 1 m/s: after 0.1 s the centre is 0.2 m away, exactly the radius.
    assert encode(encoding, [(0.3, 0.0)], velocity=(1.0, 0.0))[margin] == pytest.approx(0.0, abs=1e-4)
    assert encode(encoding, [(0.3, 0.0)], velocity=(0.5, 0.0))[margin] == pytest.approx(-0.5, abs=1e-4)
    assert encode(encoding, [(0.3, 0.0)], velocity=(1.5, 0.0))[margin] == pytest.approx(0.5, abs=1e-4)


def test_nothing_in_sight_reads_as_far_away():
    out = encode(one_ring(ahead=(MarginAhead(0.0, 0.2),)), [])
    first = 2 + 2 * BINS
    assert out[first : first + 6].tolist() == [0.0, 0.0, 3.0, 0.0, 0.0, 1.0]
    assert out[first + 6] == -1.0


def test_a_pair_relates_box_and_goal():
    encoding = Encoding(2 * BINS, (), (Lidar("box", 0), Lidar("goal", BINS)), pairs=((0, 1),))
    out = encoding(np.concatenate([lidar_of([(1.0, 0.0)]), lidar_of([(1.0, 0.5)])]))
    x, y, gap, _, _, along, across = out[-7:]
    assert [x, y, gap] == pytest.approx([0.0, 0.5, 0.5], abs=1e-5)
    assert [along, across] == pytest.approx([0.0, -1.0], abs=1e-5)


def test_rows_and_batches_agree_and_have_the_declared_size():
    encoding = one_ring(ahead=(MarginAhead(0.1, 0.1),))
    rows = np.random.default_rng(0).random((7, BINS + 2))
    batch = encoding(rows)
    assert batch.shape == (7, encoding.size)
    for row, encoded in zip(rows, batch, strict=True):
        assert np.array_equal(encoding(row), encoded)


def test_an_encoding_survives_json():
    encoding = one_ring(ahead=(MarginAhead(0.1, 0.1),), near=False)
    assert Encoding.from_dict(json.loads(json.dumps(encoding.to_dict()))) == encoding


HAZARDS = {"kind": "hazards", "start": 2, "bins": 16, "objects": 2, "radius": 0.2}
HUGE = 10**30


@pytest.mark.parametrize(
    "change",
    [
        {"robot_scale": [1.0]},
        {"robot_scale": [1.0, float("nan")]},
        {"robot_scale": [1.0, "1.0"]},
        {"robot_scale": 3},
        {"near": None, "extra": 1},
        {"near": 1},
        {"observation_size": 0},
        {"observation_size": -18},
        {"observation_size": 18.0},
        {"observation_size": HUGE},
        {"velocity": -5},
        {"velocity": 17},
        {"velocity": HUGE},
        {"velocity": True},
        {"max_distance": 0.0},
        {"max_distance": float("inf")},
        {"pairs": [[0, 1]]},
        {"pairs": [[-1, 0]]},
        {"pairs": [[0, 0, 0]]},
        {"ahead": [{"time": 0.1, "width": 0.0}]},
        {"ahead": [{"time": float("nan"), "width": 0.1}]},
        {"ahead": [{"time": "soon", "width": 0.1}]},
        {"lidars": [{"kind": 1}]},
        {"lidars": ["hazards"]},
        *(
            {"lidars": [HAZARDS | bad]}
            for bad in (
                {"objects": -1},
                {"objects": 17},
                {"objects": HUGE},
                {"objects": 1.5},
                {"objects": True},
                {"start": -1},
                {"start": 3},
                {"start": HUGE},
                {"bins": 0},
                {"bins": -16},
                {"bins": HUGE},
                {"radius": float("inf")},
                {"radius": -0.1},
                {"kind": ["hazards"]},
            )
        ),
    ],
)
def test_a_file_with_a_wrong_number_is_refused(change):
    good = one_ring().to_dict()
    assert Encoding.from_dict(good | {"lidars": [HAZARDS]}) == one_ring()
    with pytest.raises(FileFormatError, match="the encoding cannot be read"):
        Encoding.from_dict(good | change)


def test_too_many_network_inputs_are_refused():
    many = tuple(MarginAhead(0.1, 0.1) for _ in range(40_000))
    with pytest.raises(InputError, match="the number of network inputs"):
        one_ring(ahead=many)


@pytest.mark.parametrize(("rows", "missing"), [(2, 1), (1, 0), (0, 0)])
def test_the_kernel_refuses_a_buffer_that_is_too_small(rows, missing):
    encoding = one_ring(ahead=(MarginAhead(0.1, 0.1),))
    buffer = np.empty((rows, encoding.size - missing), np.float32)
    with pytest.raises(ValueError, match="the buffer is smaller"):
        kernel(np.zeros((2, BINS + 2)), buffer, *encoding.plan)


def test_an_observation_of_the_wrong_size_is_refused():
    with pytest.raises(InputError, match="Does this controller belong"):
        identity_encoding(5)(np.zeros(4))
