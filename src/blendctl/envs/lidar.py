"""See objects as the robot does: a ring of sixteen bins around it, brighter when nearer."""

from __future__ import annotations

import math

import numpy as np

from blendctl.compiled import compiled
from blendctl.envs.compiled_task import FloatArray
from blendctl.lidar_ring import LIDAR_BINS, LIDAR_RANGE

_BIN = 2.0 * np.pi / LIDAR_BINS


@compiled
def see(bins: FloatArray, position: FloatArray, rotation: FloatArray, x: float, y: float) -> None:
    """Add one object at (x, y) to the bins (16,).

    `position` (3,) and `rotation` (9,), row-major from body to world, are the robot's. The object is
    taken to lie on the floor, and the robot's own tilt turns the ring, so a tilted robot's height leaks in.
    An object lights its bin with 1 - distance / range and leaks into both neighbours.
    """
    dx = x - position[0]
    dy = y - position[1]
    dz = -position[2]
    ahead = rotation[0] * dx + rotation[3] * dy + rotation[6] * dz
    left = rotation[1] * dx + rotation[4] * dy + rotation[7] * dz
    distance = math.sqrt(ahead * ahead + left * left)
    brightness = max(0.0, LIDAR_RANGE - distance) / LIDAR_RANGE
    angle = math.atan2(left, ahead) % (2.0 * np.pi)
    sector = int(angle / _BIN)
    share = angle / _BIN - sector
    middle = sector % LIDAR_BINS  # the angle may round to a full turn
    after = (middle + 1) % LIDAR_BINS
    before = (middle - 1) % LIDAR_BINS
    bins[middle] = max(bins[middle], brightness)
    bins[after] = max(bins[after], share * brightness)
    bins[before] = max(bins[before], (1.0 - share) * brightness)
