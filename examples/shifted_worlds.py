"""PointGoal1 with something changed that no controller and no network was trained on.

    blendctl compare examples/shifted_worlds.py:weak_motor --controllers PointGoal1/ppo PointGoal1/ppo-lagrangian \
        --methods lookahead lookahead-frozen --episodes 200 --seed 10000000 --out out/weak_motor

`docs/lookahead.md` has the figures: where does it pay that the bandit calibrates the look-ahead while driving?
"""

from dataclasses import replace

from blendctl.envs import Goal, Hazards, Task, Vases, add_robot, find_task

POINT = find_task("PointGoal1").robot_spec
WEAK, SLIPPERY = "WeakPoint", "SlipperyPoint"
add_robot(replace(POINT, name=WEAK, actuator=POINT.actuator.replace('gear="0.3 ', 'gear="0.2 ')))
add_robot(replace(POINT, name=SLIPPERY, body=POINT.body.replace('damping="0.01"', 'damping="0.005"')))


def changed(*, robot: str = "Point", hazards: int = 8) -> Task:
    """Return PointGoal1 with another robot, or with another number of hazards."""
    return Task(robot, "goal", 1.5, (Goal(), Hazards(hazards), Vases(1, constrained=False)))


weak_motor = changed(robot=WEAK)  # two thirds of the thrust
slippery = changed(robot=SLIPPERY)  # half of the damping
crowded = changed(hazards=12)
