"""Episodes with heavy-tailed, zero-inflated costs whose true means are known, for tests of certificates."""

import functools

import numpy as np

CEILING = 1000.0  # steps of an episode, each of which costs at most 1
RETURNS = (-100.0, 100.0)
# name -> share of episodes without cost, location and spread of the log-normal cost of the others
CASES = {"light": (0.4, 3.0, 0.8), "heavy": (0.6, 2.5, 1.4), "rare": (0.97, 6.0, 0.5), "dense": (0.0, 2.8, 0.4)}


def draw_episodes(rng, case, shape):
    """Return returns and costs of independent episodes, each of a shape."""
    zero, location, spread = CASES[case]
    costs = np.minimum(np.exp(rng.normal(location, spread, shape)).round(), CEILING)
    costs = np.where(rng.random(shape) < zero, 0.0, costs)
    returns = np.where(rng.random(shape) < 0.02, -60.0, rng.normal(25.0, 6.0, shape))
    return returns, costs


@functools.cache
def true_values(case, budget):
    """Return the true mean cost, share over the budget and mean return, from a million episodes."""
    returns, costs = draw_episodes(np.random.default_rng(99), case, 1_000_000)
    return costs.mean(), (costs > budget).mean(), np.clip(returns, *RETURNS).mean()
