"""Write the deterministic part of a blend as one ONNX graph: observation and learner to psi, indices, arm, action."""

from __future__ import annotations

from typing import Any

import numpy as np

from blendctl.bandit import memory_layout
from blendctl.bandit.rules import Fixed, Greedy, Linear, MaximalLoss
from blendctl.controllers.network import NetworkController
from blendctl.errors import InputError
from blendctl.export.onnx_builder import GraphBuilder
from blendctl.export.spec import BlendSpec
from blendctl.features.base import OneHot, Scaled, Stack, UnitLength
from blendctl.features.lookahead import HEADROOM, BoundLookAhead
from blendctl.features.online import OnlineLinear
from blendctl.features.predictions import Critics, Predictions

LONGEST = 64  # entries of psi: the triangular solve is written out
WAY_OUT = "use --format c"


class OnnxBlend:
    """The ONNX form of a blend. Making it raises InputError with every part that cannot be exported."""

    def __init__(self, spec: BlendSpec) -> None:
        self.spec = spec
        self.problems = _problems(spec)
        if self.problems:
            listed = "".join(f"\n  - {problem}; {WAY_OUT}" for problem in self.problems)
            raise InputError(f"the blend cannot be exported to ONNX:{listed}")
        self.graph = GraphBuilder()
        self.arms, self.d, self.m = len(spec.names), spec.options.n_features, spec.options.n_objectives

    def model(self, about: dict[str, str]) -> bytes:
        """Return the model; `about` is stored as its metadata."""
        if not self.graph.outputs:
            self._write()
        return self.graph.model("blend", about)

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of every network's weights."""
        if not self.graph.outputs:
            self._write()
        return self.graph.digests

    def _write(self) -> None:
        g, spec = self.graph, self.spec
        self.observation = g.input("observation", (spec.observation_size,))
        proposals = [self._propose(arm) for arm in range(self.arms)]
        psi = self._psi(proposals)  # (arms, d)
        stacked = g.op("Concat", *(g.op("Unsqueeze", one, g.const([0], np.int64)) for one in proposals), axis=0)
        width, estimate, ucb = self._indices(psi)
        best = g.op("ReduceMax", ucb, axes=[0], keepdims=1)
        loss = g.op("ReduceMax", g.op("Sub", best, ucb), axes=[1], keepdims=0)
        arm = self._arm(loss, ucb, estimate)
        action = g.op("Squeeze", g.op("Gather", stacked, arm, axis=0), g.const([0], np.int64))
        shapes: dict[str, tuple[str, tuple[int, ...]]]
        shapes = {"psi": (psi, (self.arms, self.d)), "estimate": (estimate, (self.arms, self.m))}
        shapes |= {"ucb": (ucb, (self.arms, self.m)), "width": (width, (self.arms,)), "loss": (loss, (self.arms,))}
        shapes |= {"proposals": (stacked, (self.arms, spec.action_size)), "action": (action, (spec.action_size,))}
        for name, (value, shape) in shapes.items():
            g.output(name, value, shape)
        g.output("arm", arm, (1,), integer=True)

    def _propose(self, arm: int) -> str:
        g, controller = self.graph, self._networks()[arm]
        encoded = g.encode(controller.encoding, self.observation)
        return g.clip(g.double(g.network(controller.actor, encoded, f"actor of {self.spec.names[arm]}")), -1.0, 1.0)

    def _networks(self) -> list[NetworkController]:
        return [controller for controller in self.spec.controllers if isinstance(controller, NetworkController)]

    def _psi(self, proposals: list[str]) -> str:
        g = self.graph
        if isinstance(self.spec.bound, BoundLookAhead):
            return self._lookahead(self.spec.bound)
        rows = [self._feature(self.spec.feature, self.spec.bound, arm, one) for arm, one in enumerate(proposals)]
        return g.op("Concat", *(g.op("Unsqueeze", row, g.const([0], np.int64)) for row in rows), axis=0)

    def _feature(self, declared: Any, bound: Any, arm: int, action: str) -> str:
        """Return psi of an arm as a vector."""
        g = self.graph
        if isinstance(declared, OneHot):
            return g.const(np.eye(self.arms)[arm])
        if isinstance(declared, Stack):
            parts = [self._feature(part, bound.parts[i], arm, action) for i, part in enumerate(declared.parts)]
            return g.op("Mul", g.concat(*parts), g.const(bound.factor))
        if isinstance(declared, Scaled | UnitLength):
            inner = self._feature(declared.feature, getattr(bound, "inner", None), arm, action)
            return g.op("Div", inner, g.const(declared.by)) if isinstance(declared, Scaled) else self._unit(inner)
        if isinstance(declared, OnlineLinear):
            return self._online(declared, bound, action)
        controller, name = self._networks()[arm], self.spec.names[arm]
        if isinstance(declared, Critics):
            encoded = g.encode(controller.encoding, self.observation)
            value = g.network(controller.critic, encoded, f"critic of {name}")
            cost = g.op("Neg", g.network(controller.cost_critic, encoded, f"cost critic of {name}"))
            pair = g.double(g.concat(value, cost))
            return self._unit(pair) if declared.unit else g.op("Div", pair, g.const(float(declared.scale)))
        assert isinstance(declared, Predictions)
        parts = []
        for horizon in declared.horizons:
            context = next(
                c for c in (controller.context, controller.longer) if c is not None and horizon in c.horizons
            )
            kept = context.select((horizon,))
            scaled = [g.single(g.clip(g.op("Mul", action, g.const(gain)), -1.0, 1.0)) for gain in kept.action_gains]
            inputs = g.concat(g.encode(kept.encoding, self.observation), *scaled)
            out = g.double(g.network(kept.network, inputs, f"context of {name}, horizon {horizon}"))
            if kept.factors:
                out = self._combined(out, kept.factors)
            limited = g.op("Add", g.op("Mul", out, g.const(kept.scale)), g.const(kept.shift))
            limited = g.clip(limited, kept.low.astype(np.float64), kept.high.astype(np.float64))
            parts.append(g.op("Mul", limited, g.const(np.array([1.0, -1.0]) / horizon)))
        return g.concat(*parts)

    def _combined(self, out: str, factors: int) -> str:
        """Return reward and cost for the outputs of a context network with factors."""
        g, effects = self.graph, np.arange(2, 2 + factors)
        products = g.op("Mul", g.gather(out, effects), g.gather(out, effects + factors))
        apart = g.op("ReduceSum", products, g.const([0], np.int64), keepdims=1)
        return g.concat(g.op("Add", g.gather(out, [0]), apart), g.op("Tanh", g.gather(out, [1])))

    def _unit(self, psi: str) -> str:
        g = self.graph
        length = g.op("Sqrt", g.op("ReduceSum", g.op("Mul", psi, psi), g.const([0], np.int64), keepdims=1))
        return g.op("Div", psi, g.op("Where", g.op("Greater", length, g.const([0.0])), length, g.const([1.0])))

    def _online(self, declared: OnlineLinear, bound: Any, action: str) -> str:
        g, spec = self.graph, self.spec
        basis = (1 + spec.observation_size) * (1 + spec.action_size)
        weights = bound.weights if bound.basis else np.zeros((self.m, basis))
        if "online_weights" not in [one.name for one in g.inputs]:
            g.input("online_weights", (self.m, basis), weights)
        clipped = g.clip(self.observation, -declared.clip, declared.clip)
        row = g.concat(g.const([1.0]), clipped)
        column = g.op("Unsqueeze", g.concat(g.const([1.0]), action), g.const([1], np.int64))
        flat = g.op("Reshape", g.op("Mul", column, row), g.const([basis, 1], np.int64))
        return g.op("Squeeze", g.op("MatMul", "online_weights", flat), g.const([1], np.int64))

    def _lookahead(self, bound: BoundLookAhead) -> str:
        g, network = self.graph, bound.network
        low, high = network.weight_range
        start = bound.dial.weights(np.zeros(1), np.zeros(1))
        weight = g.input("cost_weight", (1,), start)
        middle, half = np.sqrt(low * high), 0.5 * np.log(high / low)
        position = g.op("Div", g.op("Log", g.op("Div", weight, g.const([middle]))), g.const([half]))
        inputs = g.concat(g.encode(network.encoding, self.observation), g.single(position))
        level = g.op(
            "Mul", g.network(network.level, inputs, "look-ahead, level"), g.const(network.level_unit, np.float32)
        )
        outputs = [g.network(n, inputs, f"look-ahead, difference {i}") for i, n in enumerate(network.differences)]
        total = outputs[0]
        for one in outputs[1:]:
            total = g.op("Add", total, one)
        shape = g.const([self.arms, 2], np.int64)
        raw = g.op("Reshape", g.op("Div", total, g.const(len(outputs), np.float32)), shape)
        centred = g.op("Sub", raw, g.op("ReduceMean", raw, axes=[0], keepdims=1))
        difference = g.double(g.op("Mul", centred, g.const(network.difference_unit, np.float32)))
        values = g.op("Add", g.double(level), difference)  # (arms, 2) return, cost
        mean = g.op("ReduceMean", values, axes=[0], keepdims=1)
        factors = g.concat(g.const([1.0]), g.op("Neg", weight))
        entries = [g.op("Mul", g.op("Sub", values, mean), factors)]
        entries.append(g.op("Expand", g.op("Mul", mean, factors), shape))
        units = [float(one) for one in network.level_unit]
        unit = g.op(
            "Mul", g.op("Add", g.op("Mul", weight, g.const([units[1]])), g.const([units[0]])), g.const([HEADROOM])
        )
        return g.op("Div", g.op("Concat", *entries, axis=1), unit)

    def _indices(self, psi: str) -> tuple[str, str, str]:
        """Return widths (arms,), estimates and optimistic indices (arms, m)."""
        g, d, m, options = self.graph, self.d, self.m, self.spec.options
        row = self.spec.learner.state
        start = memory_layout.FEEDBACK + m
        root = g.input("root", (d, d + m), row[start:].reshape(d, d + m))
        radius = g.input("radius", (1,), np.array([_radius(self.spec)]))
        psi = self._rescaled(psi) if options.on_large_feature == "rescale" else psi
        columns: list[str] = []  # z_j of every arm, (arms,)
        for j in range(d):
            column = g.op("Gather", psi, g.const(j, np.int64), axis=1)
            for i, z in enumerate(columns):
                column = g.op("Sub", column, g.op("Mul", z, self._entry(root, i, j)))
            columns.append(g.op("Div", column, self._entry(root, j, j)))
        z = g.op("Concat", *(g.op("Unsqueeze", one, g.const([1], np.int64)) for one in columns), axis=1)
        width = g.op("Sqrt", g.op("ReduceSum", g.op("Mul", z, z), g.const([1], np.int64), keepdims=0))
        right = g.op("Slice", root, *(g.const([n], np.int64) for n in (d, d + m, 1)))
        estimate = g.op("MatMul", z, right)
        wide = g.op("Unsqueeze", g.op("Mul", width, radius), g.const([1], np.int64))
        return width, estimate, g.op("Add", estimate, wide)

    def _entry(self, root: str, i: int, j: int) -> str:
        g = self.graph
        return g.op("Gather", g.op("Gather", root, g.const(i, np.int64), axis=0), g.const(j, np.int64), axis=0)

    def _rescaled(self, psi: str) -> str:
        """Scale features that are longer than allowed."""
        g, bound = self.graph, self.spec.options.feature_bound
        length = g.op("Sqrt", g.op("ReduceSum", g.op("Mul", psi, psi), g.const([1], np.int64), keepdims=1))
        long = g.op("Greater", length, g.const(bound * (1.0 + 1e-6)))
        return g.op("Where", long, g.op("Div", g.op("Mul", psi, g.const(bound)), length), psi)

    def _arm(self, loss: str, ucb: str, estimate: str) -> str:
        """Return the first candidate of the rule, (1,)."""
        g, rule, options = self.graph, self.spec.options.made_rule, self.spec.options
        if isinstance(rule, Fixed):
            return g.const([rule.arm], np.int64)
        largest = g.op("ReduceMax", g.op("Abs", ucb), axes=[0, 1], keepdims=0)
        tolerance = g.op("Mul", largest, g.const(options.tie_tolerance))
        if isinstance(rule, Linear | Greedy):
            weights = np.ones(self.m) if rule.weights is None else np.asarray(rule.weights, np.float64)
            score = g.op("MatMul", estimate if isinstance(rule, Greedy) else ucb, g.const(weights))
            tolerance = g.op("Mul", tolerance, g.const(float(weights.sum())))
        else:
            score = g.op("Neg", loss)
        least = g.op("Sub", g.op("ReduceMax", score, axes=[0], keepdims=0), tolerance)
        marked = g.op("GreaterOrEqual", score, least)
        if isinstance(rule, MaximalLoss) and not rule.printed and self.arms > 2:
            marked = self._undominated(marked, ucb, tolerance)
        return g.op("ArgMax", self._number(marked), axis=0, keepdims=1)

    def _undominated(self, marked: str, ucb: str, tolerance: str) -> str:
        g = self.graph
        other, own = (g.op("Unsqueeze", ucb, g.const([axis], np.int64)) for axis in (0, 1))
        gain = g.op("Sub", other, own)  # (arm, other arm, objective)
        no_worse = g.op("GreaterOrEqual", gain, g.op("Neg", tolerance))
        better = g.op("Greater", gain, tolerance)
        both = g.op(
            "Mul",
            g.op("ReduceMin", self._number(no_worse), axes=[2], keepdims=0),
            g.op("ReduceMax", self._number(better), axes=[2], keepdims=0),
        )
        dominated = g.op("ReduceMax", both, axes=[1], keepdims=0)
        kept = g.op("Mul", self._number(marked), g.op("Sub", g.const(1.0), dominated))
        some = g.op("Greater", g.op("ReduceMax", kept, axes=[0], keepdims=0), g.const(0.0))
        return g.op("Greater", g.op("Where", some, kept, self._number(marked)), g.const(0.0))

    def _number(self, mask: str) -> str:
        return self.graph.double(mask)


def _radius(spec: BlendSpec) -> float:
    from blendctl.bandit import kernels

    return float(kernels.radius_of(spec.learner.state, spec.learner.config, spec.options.n_features))


def _problems(spec: BlendSpec) -> list[str]:
    problems = [
        f'controller "{name}" is not a network'
        for name, controller in zip(spec.names, spec.controllers, strict=True)
        if type(controller) is not NetworkController
    ]
    if isinstance(spec.bound, BoundLookAhead):
        if spec.bound.flattening is not None and not spec.bound.flattening.plain:
            problems.append("observations are not vectors")
        if spec.bound.network.paths is not None:
            problems.append(
                "its look-ahead networks keep a map of the episode, and a graph keeps nothing from one observation to "
                "the next; export it as C, or blend with look-ahead networks without paths, such as "
                '--lookahead PointGoal1/ppo+ppo-lagrangian.plain, or with features="predictions"'
            )
    else:
        problems += _feature_problems(spec.feature)
    rule = spec.options.made_rule
    if not isinstance(rule, MaximalLoss | Linear | Greedy | Fixed):
        problems.append(
            f'the rule "{rule.name}" is not written as a graph; allowed: maximal-loss, linear, greedy, fixed'
        )
    if spec.options.n_features > LONGEST:
        problems.append(f"psi has {spec.options.n_features} entries; allowed: {LONGEST}")
    if spec.previous:
        problems.append('context="previous" needs the state before')
    if spec.noise is not None:
        problems.append("sampled actions need a random generator")
    return problems


def _feature_problems(declared: Any) -> list[str]:
    if isinstance(declared, Stack):
        return [problem for part in declared.parts for problem in _feature_problems(part)]
    if isinstance(declared, Scaled | UnitLength):
        return _feature_problems(declared.feature)
    if isinstance(declared, OnlineLinear) and declared.normalize:
        return ["the online model normalises its inputs while driving; use features.OnlineLinear(normalize=False)"]
    if isinstance(declared, OneHot | Predictions | Critics | OnlineLinear):
        return []
    return [f"the feature {type(declared).__name__} is Python code or a simulation"]
