"""Write a blend as two C99 files, blend.c and blend.h."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import numpy as np

from blendctl._version import __version__
from blendctl.bandit import memory_layout
from blendctl.bandit.memory_layout import LARGEST_FEEDBACK
from blendctl.bandit.rules import (
    Chebyshev,
    CostBudget,
    Fixed,
    Greedy,
    Lexicographic,
    Linear,
    MaximalLoss,
    ParetoUniform,
    Random,
    Rule,
    Thompson,
)
from blendctl.certificates.betting import FRACTIONS, SHARES
from blendctl.controllers.path_encoding import PathEncoding
from blendctl.errors import InputError
from blendctl.export.c_builder import CBuilder
from blendctl.export.c_controllers import write_controllers
from blendctl.export.c_features import write_features
from blendctl.export.c_header import header_text
from blendctl.export.c_online import online_start
from blendctl.export.c_paths import path_stack_bytes, path_state_bytes
from blendctl.export.c_text import array, braced_words, comment, define, number, weights_prologue
from blendctl.export.spec import BlendSpec
from blendctl.features.lookahead import BoundLookAhead
from blendctl.features.online import WARM_UP

FLAGS = (
    "BLEND_WIDE_LAYERS", "BLEND_NARROW_LAYERS", "BLEND_PAIRS", "BLEND_TANH_LAYERS", "BLEND_RELU_LAYERS", "HAS_ENCODING",
    "HAS_CLASSICAL", "HAS_BEARING", "HAS_PURSUIT", "HAS_FIELD", "HAS_HISTOGRAM", "HAS_PUSH", "HAS_WINDOW", "HAS_PID",
    "HAS_ONLINE", "ONLINE_NORMALIZES", "BOOTSTRAPS", "HAS_PATHS", "HAS_BUDGET", "TEACHES", "BLEND_NORMALS",
)  # fmt: skip
PARTS = (
    ("HAS_PATHS", "scene_map.c"), ("HAS_PATHS", "paths.c"), ("BOOTSTRAPS", "lookahead.c"), ("HAS_ONLINE", "online.c"),
    ("HAS_CLASSICAL", "classical.c"),
)  # fmt: skip
RULE_FLAGS: dict[type[Any], str] = {
    MaximalLoss: "RULE_MAXIMAL_LOSS",
    ParetoUniform: "RULE_PARETO_UNIFORM",
    Linear: "RULE_LINEAR",
    Greedy: "RULE_GREEDY",
    Chebyshev: "RULE_CHEBYSHEV",
    Lexicographic: "RULE_LEXICOGRAPHIC",
    CostBudget: "RULE_COST_BUDGET",
    Thompson: "RULE_THOMPSON",
    Fixed: "RULE_FIXED",
    Random: "RULE_RANDOM",
}
GOLDEN_TOLERANCE = {False: 1e-6, True: 1e-4}  # of an action: libraries for mathematics differ in the last digits
HISTOGRAM = 24 * 8  # buckets, see runtime/monitor.c
LONGEST_DISCOUNTS = 256  # steps of a stage whose discounts are a table


class CBlend:
    """The C form of a blend. Making it raises InputError with every part that cannot be exported."""

    def __init__(self, spec: BlendSpec, *, float32: bool) -> None:
        self.spec = spec
        self.builder = CBuilder()
        self._controllers = write_controllers(
            self.builder, spec.names, spec.controllers, stochastic=spec.noise is not None
        )
        self._features = write_features(self.builder, spec)
        self.float32 = float32 and not self.builder.double_geometry
        self._rule_text = self._rule(spec.options.made_rule)
        if self.builder.problems:
            listed = "".join(f"\n  - {problem}" for problem in self.builder.problems)
            raise InputError(f"the blend cannot be exported to C:{listed}")
        if self.builder.flags.get("BLEND_NORMALS") is None and spec.options.made_rule.name == "thompson":
            self.builder.flag("BLEND_NORMALS")
        self._work = self.builder.work()

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of the networks in one decision: all controllers and the context, at most."""
        counts = self.builder.multiply_adds
        # Where a stage ends, what is foreseen changes with the weight and, unless the stage was a whole one, with time.
        changes = self.builder.flags.get("HAS_BUDGET") or self.builder.flags.get("HAS_PATHS")
        twice = 2 if changes and not self.spec.frozen else 1
        lookahead = {name for name in counts if self._is_lookahead(name)}
        return sum(count * (twice if name in lookahead else 1) for name, count in counts.items())

    def _is_lookahead(self, name: str) -> bool:
        return f"{name}(" in self._features.constants

    @property
    def _paths(self) -> PathEncoding | None:
        return self.spec.bound.network.paths if isinstance(self.spec.bound, BoundLookAhead) else None

    @property
    def state_bytes(self) -> int:
        """Size of the state at most, a multiple of 64."""
        spec = self.spec
        arms, d, m = len(spec.names), spec.options.n_features, spec.options.n_objectives
        size, actions = 8, spec.action_size
        learner = 8 * 7 + size * (2 + m + d * (d + m))
        decision = 8 * 2 + size * (1 + arms * (2 + 2 * m + d)) + 4 * arms
        stage = 4 * 10 + 8 * 2 + size * (d + m)
        if self.builder.flags.get("TEACHES"):
            stage += 8 * (spec.observation_size + actions)
        rest = 8 * 3 + 4 * (3 + 2 * arms) + 8 * (4 * arms + arms * actions) + size * (arms * d + 4)
        rest += 8 * (4 + 4 * arms) + size * (arms * d + arms) + 4 * arms
        if spec.guard is not None:
            rest += 24 + 8 * m * (1 + len(spec.guard["outcomes"]) * len(SHARES))
        rest += 24 + 16 * actions
        rest += 8 * (17 + 3 * arms + 2 * m)  # the status
        rest += 8 * (8 + 2 * m + HISTOGRAM)  # the monitor
        if self.builder.flags.get("HAS_ONLINE"):
            basis = (1 + spec.observation_size) * (1 + actions)
            rest += size * basis * (m + basis)
        if self.builder.flags.get("ONLINE_NORMALIZES"):
            rest += 16 + 8 * (m + 4 * spec.observation_size + WARM_UP * (spec.observation_size + actions + m))
        if self._paths is not None:
            rest += path_state_bytes(self._paths)
        return -(-(learner + decision + stage + rest + 128) // 64) * 64

    @property
    def constant_bytes(self) -> int:
        """Size of the weights."""
        return 4 * sum(self.builder.network_sizes)

    def header(self) -> str:
        """Return blend.h."""
        return header_text(
            self.spec,
            float32=self.float32,
            state_bytes=self.state_bytes,
            stack_bytes=self.stack_bytes,
            constant_bytes=self.constant_bytes,
            multiply_adds=self.multiply_adds,
        )

    @property
    def stack_bytes(self) -> int:
        """Estimate of the stack that `blend_act` uses, without the library for mathematics."""
        spec = self.spec
        basis = (1 + spec.observation_size) * (1 + spec.action_size) if self.builder.flags.get("HAS_ONLINE") else 0
        hidden = 4 * 2 * self.builder.widest + self.builder.controller_bytes
        arms, d, m = len(spec.names), spec.options.n_features, spec.options.n_objectives
        hidden += 0 if self._paths is None else path_stack_bytes(self._paths)
        return -(-(self.builder.scratch_bytes() + hidden + 16 * basis + 16 * arms * (d + m) + 1024) // 256) * 256

    def source(self, digest: str) -> str:
        """Return blend.c, which carries the digest of the contract."""
        builder, spec, flags = self.builder, self.spec, self.builder.flags
        teaches = bool(flags.get("TEACHES"))
        runtime = [_runtime("base.c"), *builder.tables]
        if builder.network_sizes:
            runtime += [weights_prologue(builder.network_sizes), *builder.network_tables(), _runtime("dense.c")]
            runtime += builder.functions
        if flags.get("HAS_ENCODING"):
            runtime.append(_runtime("encoding.c"))
        runtime += [_runtime("generator.c"), self._learner_tables(), _runtime("learner.c"), _runtime("rules.c")]
        if not spec.frozen:
            runtime.append(_runtime("update.c"))
        runtime.append(self._features.constants)
        if spec.guard is not None:
            runtime += [self._guard_tables(spec.guard), _runtime("guard.c")]
        for flag, file in PARTS:
            if flags.get(flag):
                runtime.append(_runtime(file))
        runtime += [
            _runtime("monitor.c"),
            _runtime("state.c"),
            *builder.late_tables,
            self._work,
            self._controllers,
            *self._features.functions,
        ]
        runtime += [_runtime("act.c"), self._init(), self._golden(), _runtime("observe.c")]
        return "\n".join([self._prologue(digest, teaches=teaches), *(part.rstrip() + "\n" for part in runtime if part)])

    def _prologue(self, digest: str, *, teaches: bool) -> str:
        spec, options = self.spec, self.spec.options
        safe = np.zeros(spec.action_size) if spec.safe_action is None else spec.safe_action
        macros = define(
            BLEND_FLOAT32=self.float32,
            BLEND_STOCHASTIC=spec.noise is not None,
            BLEND_LEARNS=not spec.frozen,
            BLEND_HOLD=spec.hold,
            BLEND_DWELL=spec.dwell,
            BLEND_RINGS=self.builder.rings,
            SIGHTINGS=self.builder.sightings,
            PREVIOUS_CONTEXT=spec.previous,
            HAS_SAFE_ACTION=spec.safe_action is not None,
            HAS_GUARD=spec.guard is not None,
            HAS_HANDOVER=spec.slew_limits is not None or spec.fade_steps > 0,
            FADE_STEPS=spec.fade_steps,
            BENCH_FIRST=spec.bench[0],
            BENCH_GROWTH=spec.bench[1],
            BENCH_LONGEST=spec.bench[2],
            REGULARIZATION=options.regularization,
            NOISE=options.noise,
            THETA_BOUND=options.theta_bound,
            FEATURE_BOUND=options.feature_bound,
            DELTA=options.delta_each(),
            PAPER_RADIUS=options.radius == "paper",
            FORGETS=options.discount < 1.0,
            DISCOUNT=options.discount,
            TIE=options.tie_tolerance,
            RESCALES=options.on_large_feature == "rescale",
            LOG_PRIOR=float(spec.learner.config[memory_layout.LOG_PRIOR]),
            LARGEST_FEEDBACK=LARGEST_FEEDBACK,
            LARGEST_PRODUCT=1e100,
            GOLDEN_TOLERANCE=GOLDEN_TOLERANCE[self.float32],
            GOLDEN_STEPS=len(spec.golden.arms),
        )
        macros += define(DECODED_SIZE=self.builder.flags.get("DECODED_SIZE", 6))
        macros += self.builder.flag_macros([*FLAGS, *RULE_FLAGS.values()])
        tables = array("safe_action", safe) + array("fallback_order", list(spec.fallback), kind="int")
        if spec.slew_limits is not None:
            tables += array("slew_limits", spec.slew_limits)
        lines = [
            "/* blend.c: a blend of controllers as C99, written by `blendctl export` "
            f"(blendctl {comment(__version__)}).",
            f"   Controllers: {comment(', '.join(spec.names))}.",
            f"   Contract: sha256 {digest}. Do not edit: export again.",
            "   Compile without fused multiply-adds (gcc and clang: -std=c99 or -ffp-contract=off) and without",
            "   -ffast-math, so that results equal Python's. */",
            "",
            '#include "blend.h"',
            "",
            "#include <math.h>",
            "#include <stdint.h>",
            "",
            "#if defined(__clang__)",
            "#pragma STDC FP_CONTRACT OFF",
            "#endif",
            "#if defined(__FAST_MATH__)",
            '#error "-ffast-math changes results and removes the checks for NaN; compile without it"',
            "#endif",
            "#if defined(__GNUC__)",
            "#define MAYBE_UNUSED __attribute__((unused))",
            "#else",
            "#define MAYBE_UNUSED",
            "#endif",
            "",
            f'#define BLEND_CONTRACT_DIGEST "{digest}"',
        ]
        text = "\n".join(lines) + "\n" + macros + "\n" + tables
        return text

    def _learner_tables(self) -> str:
        options = self.spec.options
        scales = np.ones(options.n_objectives) if options.scales is None else np.asarray(options.scales)
        drift = self.spec.drift
        text = array("objective_scales", scales, kind="double")
        if not self.builder.flags.get("BOOTSTRAPS"):
            text += define(
                DRIFT_FALSE_ALARM=drift.false_alarm,
                DRIFT_RATE=drift.rate,
                DRIFT_SPREAD=drift.spread,
                DRIFT_EPOCH=drift.epoch,
                DRIFT_STAKES=len(drift.stakes),
            ) + array("drift_stakes", drift.stakes)
        return text + self._step_discounts() + self._rule_text

    def _guard_tables(self, guard: Mapping[str, Any]) -> str:
        """Return the known episodes of the controllers and the bets of the guard."""
        outcomes = {name: np.asarray(rows, np.float64) for name, rows in guard["outcomes"].items()}
        starts = np.cumsum([0, *(len(rows) for rows in outcomes.values())])
        text = define(GUARD_CONTROLLERS=len(outcomes), GUARD_FRACTIONS=len(SHARES))
        text += define(GUARD_FALSE_ALARM=float(guard["false_alarm"]))
        text += array("guard_outcomes", np.concatenate(list(outcomes.values())))
        text += array("guard_starts", starts, kind="int")
        text += array("guard_arms", [list(self.spec.names).index(name) for name in outcomes], kind="int")
        return text + array("guard_shares", SHARES) + array("guard_fractions", FRACTIONS)

    def _step_discounts(self) -> str:
        """Return the discount of the n-th step of a stage as a macro."""
        discount, hold = self.spec.bound.discount, self.spec.hold
        if discount == 1.0:
            return "#define STEP_DISCOUNT(n) 1.0\n"
        if hold > LONGEST_DISCOUNTS:
            return f"#define STEP_DISCOUNT(n) pow(D({number(discount)}), D(n))\n"
        table = array("step_discounts", [discount**n for n in range(hold)], kind="double")
        return f"{table}#define STEP_DISCOUNT(n) step_discounts[n]\n"

    def _rule(self, rule: Rule) -> str:
        m = self.spec.options.n_objectives
        flag = RULE_FLAGS.get(type(rule))
        if flag is None:
            self.builder.problems.append(
                f'the rule "{rule.name}" is Python code; use one of: {", ".join(kind.name for kind in RULE_FLAGS)}'
            )
            return ""
        self.builder.flag(flag)
        greatest = not isinstance(rule, ParetoUniform | Fixed | Random)
        dominance = isinstance(rule, ParetoUniform | Chebyshev | CostBudget) or (
            isinstance(rule, MaximalLoss) and not rule.printed and len(self.spec.names) > 2
        )
        text = define(NEEDS_GREATEST=greatest, NEEDS_DOMINANCE=dominance)
        if isinstance(rule, MaximalLoss):
            text += define(RULE_PRINTED=rule.printed or len(self.spec.names) < 3)
        if isinstance(rule, Linear | Greedy | Chebyshev):
            chosen = np.ones(m) if rule.weights is None else np.asarray(rule.weights, np.float64)
            text += array("rule_weights", chosen, kind="double")
        if isinstance(rule, Chebyshev):
            text += define(RULE_REFERENCE=rule.reference is not None)
            if rule.reference is not None:
                text += array("rule_reference", np.asarray(rule.reference, np.float64), kind="double")
        if isinstance(rule, Lexicographic):
            order = list(range(m) if rule.order is None else rule.order)
            shortfall = np.broadcast_to(np.asarray(rule.tolerances, np.float64), (len(order),))
            text += define(RULE_ORDERED=len(order)) + array("rule_order", order, kind="int")
            text += array("rule_shortfall", shortfall, kind="double")
        if isinstance(rule, CostBudget):
            text += define(RULE_COST=rule.objective % m, RULE_BUDGET=float(rule.budget))
        if isinstance(rule, Thompson):
            self.builder.flag("BLEND_NORMALS")
            text += define(RULE_SCALE=float(rule.scale))
        if isinstance(rule, Fixed):
            text += define(RULE_ARM=int(rule.arm))
        return text

    def _init(self) -> str:
        spec, options = self.spec, self.spec.options
        d, m = options.n_features, options.n_objectives
        row = spec.learner.state
        base = memory_layout.FEEDBACK
        root = row[base + m :].reshape(d, d + m)
        tables = array("initial_root", root, kind="double") + array(
            "initial_feedback", row[base : base + m], kind="double"
        )
        tables += f"static const uint64_t initial_rng[4] = {braced_words(spec.learner.rng)};\n"
        lines = [
            f"    s->learner.updates = {int(row[memory_layout.STAGE])};",
            f"    s->learner.decisions = {int(row[memory_layout.DECISIONS])};",
            f"    s->learner.rescaled = {int(row[memory_layout.RESCALED])};",
            f"    s->learner.log_det = D({number(row[memory_layout.LOG_DET])});",
            f"    s->learner.bound_sum = D({number(row[memory_layout.BOUND_SUM])});",
            "    for (i = 0; i < 4; i++)",
            "        s->learner.rng[i] = initial_rng[i];",
            "    for (i = 0; i < OBJECTIVES; i++)",
            "        s->learner.feedback[i] = initial_feedback[i];",
            "    for (i = 0; i < FEATURES; i++)",
            "        for (j = 0; j < STRIDE; j++)",
            "            s->learner.root[i][j] = initial_root[i][j];",
            "    s->picked = -1;",
        ]
        if spec.guard is not None:
            lines.append("    guard_init(&s->guard);")
        if spec.previous:
            tables += f"static const uint64_t initial_first[4] = {braced_words(spec.first)};\n"
            lines += ["    for (i = 0; i < 4; i++)", "        s->first_rng[i] = initial_first[i];"]
        if spec.noise is not None:
            rows = ", ".join(braced_words(words) for words in spec.noise)
            tables += f"static const uint64_t initial_noise[ARMS][4] = {{{rows}}};\n"
            lines += [
                "    for (i = 0; i < ARMS; i++)",
                "        for (j = 0; j < 4; j++)",
                "            s->noise[i][j] = initial_noise[i][j];",
            ]
        online_tables, online_lines = online_start(self._features)
        body = "\n".join(lines + self._dial_start() + online_lines)
        return (
            f"{tables}{online_tables}\nvoid blend_init(blend_state *s)\n{{\n"
            "    unsigned char *bytes = (unsigned char *)s;\n    size_t at;\n    int i, j;\n"
            f"    for (at = 0; at < sizeof *s; at++)\n        bytes[at] = 0;\n{body}\n}}\n"
        )

    def _dial_start(self) -> list[str]:
        bound = self.spec.bound
        dial, network = getattr(bound, "dial", None), getattr(bound, "network", None)
        if not self.builder.flags.get("BOOTSTRAPS") or dial is None or network is None:
            return []
        weight = float(dial.weights(np.zeros(1), np.zeros(1))[0])
        lines = [
            f"    s->weight = D({number(weight)});",
            f"    s->position = D({number(float(network.position(weight)))});",
        ]
        if dial.cost_budget is not None:
            lines.append(f"    s->aim = D({number(dial.aim)});")
        return lines

    def _golden(self) -> str:
        golden = self.spec.golden
        return (
            array("golden_observations", golden.observations)
            + array("golden_feedback", golden.feedback)
            + array("golden_actions", golden.actions)
            + array("golden_arms", golden.arms, kind="int")
        )


def _runtime(name: str) -> str:
    return (files("blendctl.export") / "runtime" / name).read_text(encoding="utf-8")
