"""highway-env: one driver overtakes at full speed, one keeps back; the cost is a short headway, or a crash."""

import numpy as np

LEFT, IDLE, RIGHT, FASTER, SLOWER = range(5)
LANE = 4.0  # m
HEADWAY = 0.8  # s, to the vehicle ahead


def overtake(observation):
    """Drive as fast as possible; change to the lane with the most room where a vehicle is ahead."""
    ahead = _gap(observation, 0.0)
    if ahead > 40.0:
        return FASTER
    sides = {LEFT: -LANE, RIGHT: LANE}
    room = {action: _gap(observation, side) for action, side in sides.items() if _on_road(observation, side)}
    best = max(room, key=room.get)
    return best if room[best] > ahead + 5.0 and _clear(observation, sides[best]) else FASTER


def keep_back(observation):
    """Drive slowly in the lane."""
    return SLOWER


def danger(observation, action, info):
    """Cost of a step: 1 for a short headway, 10 for a crash."""
    return 10.0 * float(info["crashed"]) + float(_gap(observation, 0.0) < HEADWAY * observation[0][3])


def _others(observation, side):
    others = observation[1:]
    return others[(others[:, 0] > 0) & (np.abs(others[:, 2] - side) < LANE / 2)]


def _gap(observation, side):
    """Return the distance to the next vehicle ahead on a lane beside, m."""
    lane = _others(observation, side)
    lane = lane[lane[:, 1] > 0]
    return float(lane[:, 1].min()) - 5.0 if len(lane) else 100.0


def _clear(observation, side):
    return not (np.abs(_others(observation, side)[:, 1]) < 12.0).any()


def _on_road(observation, side):
    return -1.0 < observation[0][2] + side < 9.0
