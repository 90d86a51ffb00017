"""Write features as C: psi of an arm, and what the features learn while driving."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from blendctl.controllers.network import NetworkController
from blendctl.export.c_builder import CBuilder
from blendctl.export.c_paths import path_constants, write_paths
from blendctl.export.c_predictions import write_predictions
from blendctl.export.c_text import array, define, number
from blendctl.export.exportable import c_source
from blendctl.export.spec import BlendSpec
from blendctl.features.base import Custom, OneHot, Scaled, Stack, UnitLength
from blendctl.features.dial import LARGEST_EXCESS, LOWEST_AIM, RATE, RESERVE
from blendctl.features.lookahead import HEADROOM, BoundLookAhead, LookAhead
from blendctl.features.online import HEADROOM as ONLINE_HEADROOM
from blendctl.features.online import LARGEST_INPUT, WARM_UP, OnlineLinear
from blendctl.features.predictions import Critics, Predictions
from blendctl.features.simulated import SimulatedLookAhead

SIGNATURE = (
    "(struct blend_state *s, struct work *w, const double *observation, const double *action, int arm, double *psi)"
)
COMPUTE_PSI = (
    "static void compute_psi(struct blend_state *s, struct work *w, const double *observation, const int *proposed)"
)
UNUSED = "    (void)s;\n    (void)w;\n    (void)observation;\n    (void)action;\n    (void)arm;\n"


@dataclass
class FeatureParts:
    """The C code of the features: constants, functions, and the online model that they have learned."""

    constants: str = ""
    functions: list[str] = field(default_factory=list)
    online: Any = None  # bound OnlineLinear
    online_options: OnlineLinear | None = None


def write_features(builder: CBuilder, spec: BlendSpec) -> FeatureParts:
    """Return the function `compute_psi` and what it needs."""
    if isinstance(spec.feature, LookAhead) and isinstance(spec.bound, BoundLookAhead):
        return _lookahead(builder, spec, spec.bound)
    parts = FeatureParts()
    writer = _Writer(builder, spec, parts)
    name, _ = writer.feature(spec.feature, spec.bound)
    parts.functions.append(
        "/* The context of every arm that has proposed an action. */\n"
        f"{COMPUTE_PSI}\n"
        f"{{\n    int a;\n    w->proposed = proposed;\n    for (a = 0; a < ARMS; a++)\n        if (proposed[a])\n"
        f"            {name}(s, w, observation, s->proposals[a], a, s->psi[a]);\n}}\n"
    )
    if parts.online_options is not None:
        builder.flag("HAS_ONLINE")
        if parts.online_options.normalize:
            builder.flag("ONLINE_NORMALIZES")
            parts.constants += define(
                ONLINE_WARM_UP=WARM_UP, ONLINE_HEADROOM=ONLINE_HEADROOM, ONLINE_LARGEST=LARGEST_INPUT
            )
        if not spec.frozen:
            builder.flag("TEACHES")
            clip, discount = parts.online_options.clip, parts.online_options.discount
            kind = "normalized" if parts.online_options.normalize else "online"
            parts.functions.append(
                "static void teach(struct blend_state *s, const double *observation, const double *action, "
                "const double *feedback)\n{\n"
                f"    {kind}_learn(&s->online, observation, action, {number(clip)}, {number(discount)}, feedback);\n"
                "}\n"
            )
    return parts


@dataclass
class _Writer:
    builder: CBuilder
    spec: BlendSpec
    parts: FeatureParts
    count: int = 0

    def feature(self, declared: Any, bound: Any) -> tuple[str, int]:
        """Write a feature; return the name of its function and its size."""
        if type(declared) is OneHot:
            size = len(self.spec.names)
            return self._add(
                f"    int i;\n    for (i = 0; i < {size}; i++)\n        psi[i] = i == arm ? 1.0 : 0.0;\n"
            ), size
        if type(declared) is Stack:
            return self._stack(declared, bound)
        if type(declared) is Predictions:
            return self._predictions(declared.horizons), 2 * len(declared.horizons)
        if type(declared) is Critics:
            inner = self._critics()
            by = None if declared.unit else np.full(2, float(declared.scale))
            return self._mapped(inner, 2, by), 2
        if type(declared) is Scaled:
            inner, size = self.feature(declared.feature, getattr(bound, "inner", None))
            return self._mapped(inner, size, np.broadcast_to(np.asarray(declared.by, np.float64), (size,))), size
        if type(declared) is UnitLength:
            inner, size = self.feature(declared.feature, getattr(bound, "inner", None))
            return self._mapped(inner, size, None), size
        if type(declared) is OnlineLinear:
            return self._online(declared, bound)
        source = c_source(declared.function) if type(declared) is Custom else None
        if source is not None:
            return self._add(f"    {source.body}\n"), declared.size
        self.builder.problems.append(_reason(declared))
        return "none", 0

    def _add(self, body: str) -> str:
        name = f"feature_{self.count}"
        self.count += 1
        self.parts.functions.append(f"static void {name}{SIGNATURE}\n{{\n{_declarations_first(body)}}}\n")
        return name

    def _stack(self, declared: Stack, bound: Any) -> tuple[str, int]:
        calls, at = [], 0
        for index, part in enumerate(declared.parts):
            name, size = self.feature(part, bound.parts[index])
            calls.append(f"    {name}(s, w, observation, action, arm, psi + {at});\n")
            at += size
        factor = f"D({number(bound.factor)})"
        scale = f"    for (i = 0; i < {at}; i++)\n        psi[i] *= {factor};\n"
        return self._add("    int i;\n" + "".join(calls) + scale), at

    def _mapped(self, inner: str, size: int, by: Any) -> str:
        call = f"    {inner}(s, w, observation, action, arm, psi);\n"
        if by is None:
            return self._add(
                "    double square = 0.0, length;\n    int i;\n" + call + f"    for (i = 0; i < {size}; i++)\n"
                f"        square += psi[i] * psi[i];\n    length = sqrt(square);\n"
                f"    for (i = 0; i < {size}; i++)\n        psi[i] /= length > 0.0 ? length : 1.0;\n"
            )
        divisors = ", ".join(f"D({number(one)})" for one in by)
        return self._add(
            f"    static const double by[] = {{{divisors}}};\n    int i;\n{call}"
            f"    for (i = 0; i < {size}; i++)\n        psi[i] /= by[i];\n"
        )

    def _per_arm(self, bodies: list[str]) -> str:
        cases = "".join(f"    case {arm}: {{\n{body}        break;\n    }}\n" for arm, body in enumerate(bodies))
        return self._add(f"    switch (arm) {{\n{cases}    default:\n        break;\n    }}\n")

    def _predictions(self, horizons: tuple[int, ...]) -> str:
        return self._per_arm(write_predictions(self.builder, self.spec, self.parts.functions, horizons))

    def _critics(self) -> str:
        bodies = []
        for name, controller in zip(self.spec.names, self.spec.controllers, strict=True):
            if type(controller) is not NetworkController:
                self.builder.problems.append(
                    f'the critics of controller "{name}" are Python code; use features="online" or "one-hot"'
                )
                continue
            encoded = self.builder.encoding(controller.encoding)
            reward = self.builder.network(controller.critic, f"critic of {name}")
            cost = self.builder.network(controller.cost_critic, f"cost critic of {name}")
            bodies.append(
                f"        float value[2];\n        {reward}({encoded}(w, observation), value);\n"
                f"        {cost}({encoded}(w, observation), value + 1);\n"
                "        psi[0] = D(value[0]);\n        psi[1] = -D(value[1]);\n"
            )
        return self._per_arm(bodies)

    def _online(self, declared: OnlineLinear, bound: Any) -> tuple[str, int]:
        if bound.actions:
            self.builder.problems.append(
                "the online model takes the discrete actions of its environment one-hot, which has no C form; run the "
                "blend with features.OnlineLinear(normalize=False)"
            )
        if self.parts.online_options is not None:
            self.builder.problems.append("two online models in one blend cannot be exported; stack one of them only")
        self.parts.online_options, self.parts.online = declared, bound
        kind, clip = "normalized" if declared.normalize else "online", number(declared.clip)
        body = f"    {kind}_predict(&s->online, observation, action, D({clip}), psi);\n"
        return self._add(body), len(self.spec.objectives)


def _declarations_first(body: str) -> str:
    """Insert the lines against warnings of unused parameters after the declarations of a body."""
    lines = body.splitlines(keepends=True)
    at = 0
    while at < len(lines) and lines[at].startswith(("    int ", "    double ", "    static ", "    float ")):
        at += 1
    return "".join(lines[:at]) + UNUSED + "".join(lines[at:])


def _reason(declared: Any) -> str:
    way_out = 'use features="predictions", "lookahead", "online" or "one-hot"'
    if isinstance(declared, SimulatedLookAhead):
        return f"simulated look-ahead needs a simulator at every decision; {way_out}"
    if isinstance(declared, Custom):
        declare = "declare it with blendctl.export.exportable"
        return f"a custom feature is a Python function without a C form; {declare}, or {way_out}"
    return f"the feature {type(declared).__name__} is Python code without a C form; {way_out}"


def _lookahead(builder: CBuilder, spec: BlendSpec, bound: BoundLookAhead) -> FeatureParts:
    network, dial = bound.network, bound.dial
    if bound.flattening is not None and not bound.flattening.plain:
        builder.problems.append("observations are not vectors; wrap the environment in gymnasium's FlattenObservation")
    if dial.cost_budget is not None and "-cost" not in spec.objectives:
        builder.problems.append(
            'a cost budget needs the objective "-cost", by which the exported blend learns the cost'
        )
    builder.flag("BOOTSTRAPS")
    encoded = builder.encoding(network.encoding, room=network.input_size - network.encoding.size)
    level = builder.network(network.level, "look-ahead, level")
    differences = [
        builder.network(one, f"look-ahead, difference {index}") for index, one in enumerate(network.differences)
    ]
    low, high = network.weight_range
    constants = define(
        LOOKAHEAD_INPUTS=network.input_size,
        LOOKAHEAD_DIFFERENCES=len(differences),
        HEADROOM=HEADROOM,
        STAGE_DISCOUNT=network.discount**spec.hold,
    )
    constants += array("level_unit", network.level_unit, kind="float")
    constants += array("difference_unit", network.difference_unit, kind="float")
    if dial.cost_budget is not None:
        builder.flag("HAS_BUDGET")
        costs, log_weights = dial.curve
        constants += define(
            COST_BUDGET=dial.cost_budget,
            COST_OBJECTIVE=list(spec.objectives).index("-cost") if "-cost" in spec.objectives else 0,
            EPISODE_STEPS=dial.episode_steps,
            SAFEST_COST=dial.safest_cost,
            RESERVE=RESERVE * dial.cost_budget,
            LOWEST_WEIGHT=low,
            SAFEST_WEIGHT=dial.safest_weight,
            MIDDLE_WEIGHT=float(np.sqrt(low * high)),
            HALF_LOG_RANGE=float(0.5 * np.log(high / low)),
            AIM_RATE=RATE,
            LOWEST_AIM=LOWEST_AIM,
            LARGEST_EXCESS=LARGEST_EXCESS,
            DIAL_POINTS=len(costs),
        )
        constants += array("dial_costs", costs, kind="double") + array("dial_log_weights", log_weights, kind="double")
    cases = "".join(f"    case {i}:\n        {name}(x, y);\n        break;\n" for i, name in enumerate(differences))
    constants += (
        f"\nstatic void lookahead_level(const float *x, float *y)\n{{\n    {level}(x, y);\n}}\n\n"
        "static void lookahead_difference(int n, const float *x, float *y)\n{\n"
        f"    switch (n) {{\n{cases}    default:\n        break;\n    }}\n}}\n"
    )
    set_weight = (
        "\n/* Set the dial from what is left of the budget. */\n"
        "static void set_weight(struct blend_state *s, struct work *w)\n{\n"
        "    const double weight = weight_of(s->aim, s->spent, s->episode_steps);\n"
        "    if (weight != s->weight) {\n        s->weight = weight;\n        s->position = position_of(weight);\n"
        "        w->foresaw = 0;\n    }\n}\n"
    )
    notice, inputs = "", f"    float *inputs = {encoded}(w, observation);\n"
    asked = "(void)proposed;"
    if network.paths is not None:
        constants += path_constants(network.paths)
        notice, inputs = write_paths(builder, network.paths, encoded, encoding_size=network.encoding.size)
        # Python computes no context, and notices nothing, if no controller has proposed an action.
        asked = (
            "int a, any = 0;\n    for (a = 0; a < ARMS; a++)\n        any = any || proposed[a];\n"
            "    if (!any)\n        return;\n    notice_at(s, w, observation, s->episode_steps);"
        )
    functions = [
        notice,
        "/* Look ahead from an observation, once per control step and weight. */\n"
        "static void foresee_at(struct blend_state *s, struct work *w, const double *observation)\n{\n"
        f"{inputs}    if (!w->foresaw)\n        foresee(inputs, s->weight, s->position, &w->foresight);\n"
        "    w->foresaw = 1;\n}\n",
        "/* The context of every arm. */\n"
        f"{COMPUTE_PSI}\n"
        f"{{\n    {asked}\n    foresee_at(s, w, observation);\n"
        "    lookahead_psi(&w->foresight, s->weight, s->psi);\n}\n",
    ]
    if dial.cost_budget is not None:
        functions.append(set_weight)
    return FeatureParts(constants, functions)
