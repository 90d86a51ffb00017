"""highway-env: overtaking against keeping back; the cost is following closely, and a crash."""

import numpy as np

LEFT, IDLE, RIGHT, FASTER, SLOWER = range(5)
CLOSE = 0.12  # of the 100 m that observations are scaled by
LANE = 0.04 * 4  # half a lane, in the same way


def overtake(observation):
    """Drive fast; change to a lane that is free, or brake, where a vehicle is ahead."""
    own, others = observation[0], observation[1:]
    ahead = _gap(others, 0.0)
    if ahead > 0.3:
        return FASTER
    lanes = {LEFT: -2 * LANE, RIGHT: 2 * LANE}
    free = {action: _gap(others, side) for action, side in lanes.items() if _on_road(own, side)}
    best = max(free, key=free.get, default=SLOWER)
    return best if free and free[best] > ahead else SLOWER if ahead < CLOSE else IDLE


def keep_back(observation):
    """Drive slowly in the lane."""
    return SLOWER


def danger(observation, action, info):
    """Cost of a step: 10 for a crash, 1 for following closely."""
    return 10.0 * float(info["crashed"]) + float(_gap(observation[1:], 0.0) < CLOSE)


def _gap(others, side):
    """Return the distance to the next vehicle ahead on a lane; vehicles beside count as ahead on other lanes."""
    rear = -0.1 if side else 0.0
    there = (others[:, 0] > 0) & (np.abs(others[:, 2] - side) < LANE) & (others[:, 1] > rear)
    return float(others[there, 1].min()) if there.any() else 1.0


def _on_road(own, side):
    return -0.05 <= own[2] + side <= 0.8
