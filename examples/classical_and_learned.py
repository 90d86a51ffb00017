"""Blend a safe potential field with a fast neural network on PointGoal1.

    python examples/classical_and_learned.py

The classical controller cannot predict the feedback of its actions; the network can. So the context is a prediction of
the network: whether it would enter a hazard within a second. In each of the two cases the learner estimates the
feedback of both controllers.

The example shows how to build such a blend, not that this one is good. The few episodes of a run vary a lot, and these
are favourable: over 30 others (seeds from 5000) the network alone had return 27.9 at cost 47.8, the field 8.3 at 1.7,
and the blend 27.1 at 55.5, which is not safer than the network. When the field takes over at the edge of a hazard, it
does not leave the hazard any sooner.
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
HORIZON = 50  # control steps of the network's prediction
HOLD = 10  # control steps per decision

network = load("PointGoal1/ppo")
field = PotentialField(WORLD)


def context(observation, action, arm):
    """Return psi (4,): one-hot over the controller and whether the network would enter a hazard."""
    planned = action if arm == LEARNED else network.act(observation)
    _, cost = network.predict(observation, planned, horizon=HORIZON)
    psi = np.zeros(4)
    psi[2 * arm + int(cost > 0.5)] = 1.0
    return psi


def main(episodes: int = 8) -> dict[str, dict]:
    """Drive with each controller alone and with the blend on the same episodes; print and return the results."""
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
            scales=[0.2, HOLD],  # a reward of 0.2 weighs as much as ten steps in a hazard
            fallback="field",
            seed=0,
        )
        stats = EpisodeStats(blender.names)
        for record in run(WORLD, blender, episodes=episodes, seed=0):
            stats.add(record)
        results[title] = summary = stats.summary()
        shares = "  ".join(f"{100 * share:3.0f}%" for share in summary["arm_share"].values())
        print(f"{title:<10}{summary['return_mean']:>8.1f}{summary['cost_mean']:>8.1f}   {shares}")
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=8)
    main(parser.parse_args().episodes)
