"""Blend a classical controller, a safe potential field, with a learned one, a fast network, on PointGoal1.

    python examples/classical_and_learned.py

The classical controller cannot say what its action will bring; the network can. The context therefore is what the
network foresees: whether it would meet a hazard within a second, if it drove on. In each of the two cases the learner
finds out what either of them brings.

It shows how to build such a blend, not that this one pays. The few episodes of a run vary much, and these flatter it:
over 30 others (seeds from 5000) the network alone had return 27.9 at cost 47.8, the field 8.3 at 1.7, the blend 27.1 at
55.5, no safer than the network. Taken over at the edge of a hazard, the field does not get out any sooner.
"""

import argparse

import numpy as np

from blendctl import Blender, run
from blendctl.bandit.rules import Fixed
from blendctl.blender.episode_stats import EpisodeStats
from blendctl.controllers import PotentialField, load
from blendctl.features import Custom

WORLD = "PointGoal1"
LEARNED, CLASSICAL = 0, 1
AHEAD = 50  # control steps that the network foresees
HOLD = 10  # control steps per decision

network = load("PointGoal1/ppo")
field = PotentialField(WORLD)


def context(observation, action, arm):
    """Give psi (4,): who drives, and whether the network would meet a hazard."""
    planned = action if arm == LEARNED else network.act(observation)
    _, cost = network.predict(observation, planned, horizon=AHEAD)
    psi = np.zeros(4)
    psi[2 * arm + int(cost > 0.5)] = 1.0
    return psi


def main(episodes: int = 8) -> dict[str, dict]:
    """Drive with each alone and with the blend, on the same episodes; print and give the figures."""
    results = {}
    print(f"{'':<10}{'return':>8}{'cost':>8}   driven by network, field")
    for title, rule in {
        "network": Fixed(arm=LEARNED),
        "field": Fixed(arm=CLASSICAL),
        "blended": "maximal-loss",
    }.items():
        blender = Blender(
            [network, field],
            ["network", "field"],
            features=Custom(context, size=4),
            rule=rule,
            hold=HOLD,
            scales=[0.2, HOLD],  # 0.2 of return weigh as much as ten steps in a hazard
            fallback="field",
            seed=0,
        )
        tally = EpisodeStats(blender.names)
        for record in run(WORLD, blender, episodes=episodes, seed=0):
            tally.add(record)
        results[title] = told = tally.summary()
        shares = "  ".join(f"{100 * share:3.0f}%" for share in told["arm_share"].values())
        print(f"{title:<10}{told['return_mean']:>8.1f}{told['cost_mean']:>8.1f}   {shares}")
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=8)
    main(parser.parse_args().episodes)
