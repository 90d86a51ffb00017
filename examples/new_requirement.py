"""Add a safety requirement by blending an old policy with a new controller, without retraining.

    python examples/new_requirement.py

The old policy was trained on PointGoal1 to reach goals and to avoid hazards. Then a speed limit is introduced, which it
breaks in four of ten steps. Pure pursuit keeps the limit but ignores hazards. The blend of both, with one objective per
requirement, meets both requirements at a lower return. Over 15 other episodes (seeds from 5000) the old policy had
return 21.7, 23.8 steps in hazards and 397.7 steps above the limit, pure pursuit 16.1, 76.3 and 0, and the blend 14.5,
17.5 and 31.4. The episodes of this run have a higher return.
"""

import argparse

import gymnasium
import numpy as np

from blendctl import Blender, run
from blendctl.bandit.rules import Fixed
from blendctl.blender.episode_stats import EpisodeStats
from blendctl.controllers import PurePursuit, load
from blendctl.export import exportable
from blendctl.features import Custom

WORLD = "PointGoal1"
LIMIT = 1.0  # m/s, the new requirement
HOLD = 3  # control steps per decision


def speed(observation) -> float:
    """Return the robot's speed in m/s, from its velocimeter."""
    return float(np.hypot(observation[3], observation[4]))


class SpeedLimit(gymnasium.Wrapper):
    """Add a cost for every step above the speed limit."""

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        info["cost_speed"] = float(speed(observation) > LIMIT)
        return observation, reward, terminated, truncated, info


@exportable(
    """
    const double speed = hypot(observation[3], observation[4]);
    (void)action;
    psi[0] = psi[1] = psi[2] = psi[3] = 0.0;
    psi[2 * arm + (speed > 0.8)] = 1.0;
    """
)
def context(observation, action, arm):
    """Return psi (4,): one-hot over the controller and whether the robot is close to the limit."""
    psi = np.zeros(4)
    psi[2 * arm + int(speed(observation) > 0.8 * LIMIT)] = 1.0
    return psi


def blend(rule, **options) -> Blender:
    """Return the blend of the old policy and the new controller, with an objective per requirement."""
    return Blender(
        [load("PointGoal1/ppo-lagrangian"), PurePursuit(WORLD)],
        ["old", "new"],
        objectives=["reward", "-cost_hazards", "-cost_speed"],
        scales=[0.1, HOLD, HOLD],  # one unit of each: 0.1 m of progress, a whole stage of violation
        features=Custom(context, size=4),
        rule=rule,
        hold=HOLD,
        fallback="old",
        seed=0,
        **options,
    )


def main(episodes: int = 6) -> dict[str, dict]:
    """Drive with each controller alone and with the blend on the same episodes; print and return the results."""
    results = {}
    print(f"{'':<9}{'return':>8}{'hazards':>9}{'speed':>8}   driven by old, new")
    for title, rule in {"old": Fixed(arm=0), "new": Fixed(arm=1), "blended": "maximal-loss"}.items():
        blender = blend(rule)
        stats, hazards, fast = EpisodeStats(blender.names), 0.0, 0.0
        world = SpeedLimit(gymnasium.make(f"blendctl/{WORLD}-v0"))
        for record in run(world, blender, episodes=episodes, seed=0):
            stats.add(record)
            hazards -= float(record.feedback[1])
            fast -= float(record.feedback[2])
        summary = stats.summary() | {"hazards_mean": hazards / episodes, "speed_mean": fast / episodes}
        results[title] = summary
        shares = "  ".join(f"{100 * share:3.0f}%" for share in summary["arm_share"].values())
        figures = f"{summary['return_mean']:>8.1f}{summary['hazards_mean']:>9.1f}{summary['speed_mean']:>8.1f}"
        print(f"{title:<9}{figures}   {shares}")
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=6)
    main(parser.parse_args().episodes)
