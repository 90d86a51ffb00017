"""Look-ahead networks with random weights, with predicted paths or without: fast to make."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from blendctl.controllers.dense import Dense
from blendctl.controllers.lookahead_network import LookAheadNetwork, controller_digest
from blendctl.controllers.path_encoding import PathEncoding
from blendctl.envs import SingleWorld

POINTS = 6


def random_relu(rng, *sizes):
    """Return a network with max(0, x) and random weights."""
    weights = [rng.normal(0.0, 1.0 / np.sqrt(n), (n, m)).astype(np.float32) for n, m in pairwise(sizes)]
    return Dense(tuple(weights), tuple(rng.normal(0.0, 0.2, m).astype(np.float32) for m in sizes[1:]), "relu")


def random_paths(rng, declaration, *, inputs, controllers, hold=5):
    """Return an encoding of paths of about a metre."""
    return PathEncoding(
        declaration,
        random_relu(rng, inputs, 16, controllers * POINTS * 2),
        unit=np.linspace(0.05, 0.8, POINTS, dtype=np.float32),
        spread=np.linspace(0.005, 0.1, POINTS, dtype=np.float32),
        hold=hold,
        discount=0.99,
        controllers=controllers,
    )


def random_network(rng, controllers, *, encoding, declaration, hold=5):
    """Return look-ahead networks for controllers; inputs from paths weigh most; no declaration, no paths."""
    arms, paths = len(controllers), None
    if declaration is not None:
        paths = random_paths(rng, declaration, inputs=encoding.size, controllers=arms)
    size = encoding.size + (0 if paths is None else paths.size) + 1

    def network(*sizes):
        made = random_relu(rng, size, *sizes)
        made.weights[0][encoding.size : -1] *= 4.0
        return Dense(made.weights, made.biases, "relu")

    point = {"over_budget": 0.1, "episodes": 3, "seed": 0, "return_mean": 1.0}
    return LookAheadNetwork(
        encoding,
        network(8, 2),
        tuple(network(12, 2 * arms) for _ in range(2)),
        level_unit=np.array([3.0, 20.0], np.float32),
        difference_unit=np.array([0.3, 1.5], np.float32),
        weight_range=(0.05, 1.0),
        hold=hold,
        discount=0.97,
        digests=tuple(map(controller_digest, controllers)),
        names=tuple(f"c{arm}" for arm in range(arms)),
        card={"dial": [point | {"weight": w, "cost_mean": c} for w, c in ((0.05, 30.0), (0.2, 12.0), (1.0, 4.0))]},
        paths=paths,
    )


def network_of_world(world, controllers, *, seed=0, paths=True):
    """Return look-ahead networks for controllers of a world."""
    from blendctl.training.encodings import world_encodings

    encodings = world_encodings(world)
    assert encodings.declaration is not None
    declaration = encodings.declaration if paths else None
    rng = np.random.default_rng(seed)
    made = random_network(rng, controllers, encoding=encodings.context, declaration=declaration)
    env = SingleWorld(world)
    inputs = made.inputs(np.array([env.reset(seed=place)[0] for place in range(20)]), 0.2)
    env.close()
    return replace(made, differences=tuple(_centred(one, inputs) for one in made.differences))


def _centred(network, inputs):
    """Return a network whose mean output is 0, so that every controller drives."""
    last = network.biases[-1] - network.batch(inputs).mean(axis=0)
    return Dense(network.weights, (*network.biases[:-1], last), network.activation)
