"""Small blends of all kinds of parts equal their C form, faults included."""

import itertools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from compiled_blend import CompiledBlend, needs_gcc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from parity import Comparison
from path_networks import random_network

from blendctl import Blender
from blendctl.blender import BenchRules
from blendctl.controllers.adapters import as_controller
from blendctl.controllers.classical import classical
from blendctl.controllers.dense import Dense
from blendctl.controllers.encoding import Encoding, Lidar, MarginAhead
from blendctl.controllers.lookahead_network import LookAheadNetwork, Normalisation, controller_digest
from blendctl.controllers.network import ContextNetwork, NetworkController
from blendctl.controllers.path_encoding import Avoided, MapDeclaration
from blendctl.export import exportable
from blendctl.features import Critics, Custom, LookAhead, OneHot, OnlineLinear, Predictions, Scaled, Stack, UnitLength
from blendctl.scene_map import MappedKind

pytestmark = needs_gcc

WORLD, SIZE = "PointGoal1", 60
ENCODING = Encoding(
    SIZE,
    tuple(np.linspace(0.2, 1.5, SIZE - 32)),
    (Lidar("goal", 28, objects=1), Lidar("hazards", 44, objects=2, radius=0.3)),
    pairs=((0, 1),),
    ahead=(MarginAhead(0.5, 0.4), MarginAhead(1.0, 0.8)),
    velocity=3,
)
PLAIN = Encoding(SIZE, (1.0,) * (SIZE - 16), (Lidar("ring", 44, objects=0),), near=False)

KINDS = (
    MappedKind("goal", 28, 1),
    MappedKind("hazards", 44, 4, keepout=0.1),
    MappedKind("gremlins", 44, 3, motion="circling", travel=0.3, dark=True),
    MappedKind("box", 28, 1, motion="sliding", pushed=True),
)


@exportable("action[0] = observation[0] > 0.5 ? 0.3 : -observation[1]; action[1] = 0.25 * observation[2];")
def by_hand(observation):
    return [0.3 if observation[0] > 0.5 else -observation[1], 0.25 * observation[2]]


@exportable("psi[0] = 0.5 * action[0]; psi[1] = arm + observation[0] > 1.0 ? 0.5 : 0.1;")
def effort(observation, action, arm):
    return [0.5 * action[0], 0.5 if arm + observation[0] > 1.0 else 0.1]


def dense(rng, *sizes, activation="tanh"):
    weights = [rng.normal(0.0, 1.0 / np.sqrt(n), (n, m)).astype(np.float32) for n, m in itertools.pairwise(sizes)]
    return Dense(tuple(weights), tuple(rng.normal(0, 0.2, m).astype(np.float32) for m in sizes[1:]), activation)


def predictor(rng, encoding, horizons, *, factors=0):
    """Return a context network."""
    limits = np.array([[-0.3, 0.3], [0.0, 1.0], [-1.0, 1.0], [0.0, 3.0]], np.float32)[: 2 * len(horizons)]
    one = np.ones(len(limits), np.float32)
    outputs, activation = len(limits) + 2 * factors, "relu" if factors else "tanh"
    made = dense(rng, encoding.size + 4, 9, 16, outputs, activation=activation)
    return ContextNetwork(made, encoding, (1.0, 3.0), horizons, 0.99, 0.2 * one, 0.1 * one, limits, factors=factors)


def network(rng, name, context=None):
    """Return a network controller, with another one's context network if there is one."""
    encoding = ENCODING if rng.random() < 0.7 else PLAIN
    if context is None:
        factors = int(rng.integers(0, 4))
        context = predictor(rng, encoding, (1,) if factors else (1, 10), factors=factors)
    longer = None if 10 in context.horizons else predictor(rng, encoding, (10,))
    critics = [dense(rng, encoding.size, 6, 1) for _ in range(2)]
    actor = dense(rng, encoding.size, 11, 7, 2)
    return NetworkController(name, encoding, actor, np.zeros(2, np.float32), *critics, context=context, longer=longer)


def lookahead(rng, controllers, **dial):
    size = ENCODING.size if rng.random() < 0.5 else SIZE
    encoding = ENCODING
    if size == SIZE:
        encoding = Normalisation(np.full(SIZE, 0.4, np.float32), np.full(SIZE, 0.3, np.float32))
    arms = len(controllers)
    point = {"over_budget": 0.1, "episodes": 3, "seed": 0, "return_mean": 1.0}
    points = [point | {"weight": w, "cost_mean": c} for w, c in ((0.05, 30.0), (0.2, 12.0), (0.5, 12.0), (1.0, 4.0))]
    made = LookAheadNetwork(
        encoding, dense(rng, size + 1, 8, 2, activation="relu"),
        tuple(dense(rng, size + 1, 8, 2 * arms, activation="relu") for _ in range(int(rng.integers(1, 4)))),
        np.array([3.0, 20.0], np.float32), np.array([0.3, 1.5], np.float32), (0.05, 1.0), 3, 0.97,
        tuple(map(controller_digest, controllers)), tuple(f"c{i}" for i in range(arms)), {"dial": points},
    )  # fmt: skip
    return LookAhead(made, episode_steps=40, **dial)


def with_paths(rng, controllers):
    avoided = (Avoided(1, 0.3), Avoided(2, 0.2))
    shown = MapDeclaration(
        SIZE, period=0.05, tilts=bool(rng.random() < 0.5), kinds=KINDS, avoided=avoided, targets=(0, 3)
    )
    made = random_network(rng, controllers, encoding=ENCODING, declaration=shown, hold=int(rng.integers(1, 4)))
    return LookAhead(made, episode_steps=40, **rng.choice([{"prefer": 0.5}, {"cost_budget": 10.0}]))


def make_controllers(rng, kinds):
    shared = network(rng, "first").context if rng.random() < 0.5 else None
    made = {"function": lambda _: as_controller(by_hand), "network": lambda at: network(rng, f"net {at}", shared)}
    return [made.get(kind, lambda _, kind=kind: classical(kind, WORLD))(index) for index, kind in enumerate(kinds)]


FEATURES = {
    "lookahead": lambda rng, c: lookahead(rng, c, prefer=float(rng.random())),
    "budget": lambda rng, c: lookahead(rng, c, cost_budget=float(rng.choice([0.0, 3.0, 10.0, 100.0]))),
    "paths": with_paths,
    "predictions": lambda rng, c: Predictions((1,) if rng.random() < 0.5 else (10, 1)),
    "critics": lambda rng, c: Critics(unit=bool(rng.random() < 0.5)),
    "one-hot": lambda rng, c: OneHot(),
    "custom": lambda rng, c: Stack(OneHot(), Scaled(Custom(effort, size=2), by=[1.5, 2.0])),
    "online": lambda rng, c: Stack(OneHot(), UnitLength(OnlineLinear(discount=0.999, normalize=False))),
    "normalised": lambda rng, c: OnlineLinear(),
}
RULES = (
    "maximal-loss",
    "pareto-uniform",
    "linear",
    "greedy",
    "chebyshev",
    "lexicographic",
    "cost-budget",
    "thompson",
    "fixed",
    "random",
)
NEED_NETWORKS = ("lookahead", "budget", "paths", "predictions", "critics")


def known_episodes(blend):
    """Return the data of a guard that soon falls back to the second controller, or None."""
    better = np.array([[50.0, 1.0], [60.0, 2.0], [-50.0, 3.0]])
    return {"outcomes": {f"1 {blend['arms'][1]}": better}, "false_alarm": 0.8} if blend["guard"] else None


@st.composite
def blends(draw):
    """Draw the arguments of a small blender, and a seed."""
    feature = draw(st.sampled_from(sorted(FEATURES)))
    kinds = ["network"]
    if feature not in ("predictions", "critics"):  # which need networks
        kinds.append("function")
    if feature not in NEED_NETWORKS:
        kinds += ["pure-pursuit", "potential-field", "vfh", "dwa", "heading-pid", "stop"]
    arms = draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=4))
    options = {"rule": draw(st.sampled_from(RULES)), "noise": draw(st.sampled_from([0.0, 0.1]))}
    options["hold"] = draw(st.sampled_from([None, 1, 2, 3]))
    if feature not in ("lookahead", "budget", "paths"):
        options["scales"] = draw(st.sampled_from([[1.0, 1.0], [0.5, 3.0]]))
        options["discount"] = draw(st.sampled_from([1.0, 0.99]))
    options["radius"] = draw(st.sampled_from(["determinant", "paper"]))
    return {
        "feature": feature, "arms": arms, "options": options, "dwell": draw(st.integers(1, 3)),
        "safe_action": draw(st.sampled_from([None, [0.1, -0.2]])), "guard": draw(st.booleans()),
        "handover": draw(st.sampled_from([None, "slew:0.1", "slew:0.05,0.2", "fade:4"])),
        "seed": draw(st.integers(0, 10**6)),
    }  # fmt: skip


def observations(rng, steps):
    """Return observations with lidars; some are NaN, infinite or so large that networks overflow."""
    rows = rng.normal(0.0, 0.6, (steps, SIZE))
    rows[:, 28:] = rng.uniform(0.0, 1.0, (steps, SIZE - 28)) * (rng.random((steps, SIZE - 28)) < 0.5)
    for row in rows[rng.random(steps) < 0.08]:
        row[rng.integers(SIZE)] = rng.choice([np.nan, np.inf])
    for row in np.flatnonzero(rng.random(steps) < 0.08):
        rows[row, 44 + rng.integers(16)] = rng.choice([1e300, -1e300, 1e38, 1e8])
    for row in np.flatnonzero(rng.random(steps) < 0.05):
        rows[row, rng.integers(SIZE)] = np.nan
    return rows


def test_the_reward_alone_can_be_foreseen(tmp_path):
    rng = np.random.default_rng(5)
    controllers = make_controllers(rng, ["network"] * 3)
    feature = lookahead(rng, controllers, prefer=0.4)
    blender = Blender(controllers, features=feature, objectives=["reward"], stochastic=False, seed=0)
    assert blender.bandit.rule.name == "greedy"
    blender.export(tmp_path)
    compiled = CompiledBlend(tmp_path, "-O0")
    assert compiled.selfcheck() == 0
    for row in rng.uniform(0.0, 1.0, (60, SIZE)):
        arm, action = compiled.act(row)
        np.testing.assert_array_equal(blender.act(row), action)
        assert arm == blender.choice.arm
        reward = float(rng.normal())
        assert compiled.observe([reward]) == blender.observe(reward)


@pytest.mark.parametrize("factors", [0, 3])
def test_a_context_network_is_shared_by_three_controllers(factors, tmp_path):
    rng = np.random.default_rng(8)
    first = network(rng, "first", predictor(rng, ENCODING, (1,) if factors else (1, 10), factors=factors))
    controllers = [first, *(network(rng, f"net {index}", first.context) for index in range(2))]
    blender = Blender(
        controllers, features=Predictions((10, 1)), bench=BenchRules(first=2), stochastic=False, noise=0.1, seed=0
    )
    blender.export(tmp_path, observations=rng.uniform(0.0, 1.0, (6, SIZE)))
    assert "_pair(x, other, " in (tmp_path / "blend.c").read_text()
    comparison = Comparison(blender, CompiledBlend(tmp_path))
    with np.errstate(all="ignore"):
        for row in observations(rng, 300):
            comparison.step(row)
            comparison.observe(float(rng.normal(0.0, 0.3)), float(rng.random() < 0.3))
    comparison.expect_equal()
    assert min(comparison.compiled.status.driven) > 10


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(blends())
def test_a_small_blend_equals_its_c_form(blend):
    rng = np.random.default_rng(blend["seed"])
    controllers = make_controllers(rng, blend["arms"])
    feature = FEATURES[blend["feature"]](rng, controllers)
    blender = Blender(
        controllers, [f"{i} {kind}" for i, kind in enumerate(blend["arms"])], features=feature, dwell=blend["dwell"],
        safe_action=blend["safe_action"], bench=BenchRules(first=2, longest=9), action_shape=(2,), stochastic=False,
        handover=blend["handover"], guard=known_episodes(blend), seed=blend["seed"], **blend["options"],
    )  # fmt: skip
    rows = observations(rng, 120)
    for row in rows[np.isfinite(rows).all(axis=1) & (np.abs(rows).max(axis=1) < 100)][:10]:  # learn something first
        blender.act(row)
        blender.observe(float(rng.normal()), float(rng.random() < 0.3))
    blender.end_episode()
    with tempfile.TemporaryDirectory() as folder:
        blender.export(folder, observations=rng.uniform(0.0, 1.0, (6, SIZE)))
        saved = Path(folder) / "blend.safetensors"
        blender.save(saved)
        again = Blender(
            make_controllers(np.random.default_rng(blend["seed"]), blend["arms"]), blender.names, features=feature,
            hold=blender.hold, dwell=blend["dwell"], safe_action=blend["safe_action"],
            bench=BenchRules(first=2, longest=9), action_shape=(2,), stochastic=False, bandit=saved,
            handover=blend["handover"], guard=known_episodes(blend),
        )  # fmt: skip
        compiled = CompiledBlend(Path(folder), "-O0")
    assert compiled.selfcheck() == 0
    comparison = Comparison(again, compiled)
    with np.errstate(all="ignore"):  # the overflows that are tested
        for step, row in enumerate(rows):
            comparison.step(row)
            if rng.random() < 0.05:
                continue  # the feedback is lost
            reward, cost = float(rng.normal(0.0, 0.3)), float(rng.random() < 0.3)
            comparison.observe(float("nan") if rng.random() < 0.03 else reward, cost, done=step % 17 == 16)
            if rng.random() < 0.05 and step % 17 != 16:
                comparison.observe(reward, cost)  # twice
    comparison.expect_equal()
