"""The methods of `blendctl compare`: their parameters with allowed values, and how to make each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from blendctl.bandit.rules import Linear
from blendctl.errors import InputError, did_you_mean
from blendctl.features import LookAhead, SimulatedLookAhead, Twin
from blendctl.switches.bandits import long_context, pooled_bandit
from blendctl.switches.base import RolloutContext, Switch
from blendctl.switches.epsilon_greedy import EpsilonGreedy
from blendctl.switches.foresight import LeastLoss, PredictedAhead
from blendctl.switches.offline import Fitted, FittedAhead
from blendctl.switches.oracles import NextStep, Rollouts
from blendctl.switches.random_switch import RandomSwitch
from blendctl.switches.shared import SharedControl
from blendctl.switches.simplex import Simplex
from blendctl.switches.single_controller import SingleController
from blendctl.switches.threshold import Threshold, ThresholdSwitch

Value = float | int


@dataclass(frozen=True)
class Parameter:
    """A parameter of a method: the values to try, and the allowed range."""

    values: tuple[Value, ...]
    help: str
    least: float = 0.0
    most: float = float("inf")

    @property
    def whole(self) -> bool:
        """Whether its values are whole numbers."""
        return isinstance(self.values[0], int)


@dataclass(frozen=True)
class Method:
    """A switch by name. With several values of a parameter, all their combinations are run.

    shown: which combination represents the method in the table; None: the best by corner score, chosen on other
    episodes than the reported ones. make: makes the switch from a context, the parameters, and the
    result of offline training.
    """

    name: str
    help: str
    make: Callable[[RolloutContext, Mapping[str, Any], Mapping[str, Any]], Switch]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    shown: int | None = 0
    trained: bool = False  # offline, before the comparison
    needs: Literal["", "critic", "context", "lookahead"] = ""  # what the controllers must have
    heavy: bool = False  # its episodes take many times longer than others
    # Environments it supports: any, those with array actions, those with exact copies, the worlds of blendctl.
    on: Literal["", "arrays", "copies", "worlds"] = ""

    @property
    def settings(self) -> list[dict[str, Value]]:
        """Every combination of the parameters' values."""
        values = itertools.product(*(parameter.values for parameter in self.parameters.values()))
        return [dict(zip(self.parameters, row, strict=True)) for row in values]


SHARES = Parameter((0.25, 0.5, 0.75), "share of the performant controller", most=1.0)
EVERY = Parameter((20,), "control steps from one decision to the next", least=1)
COST_WEIGHT = Parameter((0.1,), "reward that one cost is worth")
PREFER = Parameter((0.3, 0.4, 0.5, 0.6, 0.7), "setting of the dial: 0 safest, 1 most performant", most=1.0)
COST_WEIGHTS = Parameter((0.03, 0.1, 0.3, 1.0), "reward that one cost is worth")
SIMULATED = {
    "prefer": Parameter((0.5,), "setting of the dial: 0 safest, 1 most performant", most=1.0),
    "horizon": Parameter((SimulatedLookAhead.horizon,), "control steps to look ahead", least=1),
    "samples": Parameter((SimulatedLookAhead.samples,), "futures per controller at most", least=1),
    "hold": Parameter((SimulatedLookAhead.hold,), "control steps per decision", least=1),
}

_ALL = (
    Method("performant", "the first controller alone", lambda context, p, _: SingleController(0)),
    Method("safe", "the last controller alone", lambda context, p, _: SingleController(-1)),
    Method(
        "random",
        "a coin at every step",
        lambda context, p, _: RandomSwitch(context, per="step", **p),
        {"share": SHARES},
        shown=1,
    ),
    Method(
        "random-episode",
        "a coin before every episode: the mixing line",
        lambda context, p, _: RandomSwitch(context, per="episode", **p),
        {"share": SHARES},
        shown=1,
    ),
    Method(
        "epsilon-greedy",
        "the best estimated reward - weight * cost, sometimes a random arm",
        lambda context, p, _: pooled_bandit(context, rule=EpsilonGreedy(**p)),
        {
            "epsilon": Parameter((0.1,), "probability of a random arm", most=1.0),
            "cost_weight": COST_WEIGHTS,
        },
        shown=None,
    ),
    Method(
        "linucb",
        "scalarised LinUCB: the best optimistic reward - weight * cost",
        lambda context, p, _: pooled_bandit(context, rule=Linear(weights=(1.0, p["cost_weight"]))),
        {"cost_weight": COST_WEIGHTS},
        shown=None,
    ),
    Method(
        "pareto-ucb",
        "a random arm on the front of the optimistic indices",
        lambda context, p, _: pooled_bandit(context, rule="pareto-uniform"),
    ),
    Method("paper", "least maximal loss of the next step", lambda context, p, _: pooled_bandit(context)),
    Method(
        "paper-previous",
        "the same from the state before, as printed",
        lambda context, p, _: pooled_bandit(context, previous=True),
    ),
    Method(
        "horizon",
        "the paper's bandit with a longer horizon and longer stages",
        lambda context, p, _: _horizon(context, p),
        {
            "horizon": Parameter((50,), "control steps that the context predicts", least=1),
            "hold": Parameter((10, 20), "control steps per decision", least=1),
            "cost_weight": Parameter((0.05, 0.1), "reward that one cost is worth"),
        },
        shown=None,
        needs="context",
    ),
    Method(
        "lookahead",
        "look-ahead networks, calibrated by the bandit",
        lambda context, p, _: pooled_bandit(context, features=LookAhead(context.lookahead, prefer=p["prefer"])),
        {"prefer": PREFER},
        shown=None,
        needs="lookahead",
    ),
    Method(
        "lookahead-frozen",
        "look-ahead networks as they are, without calibration",
        lambda context, p, _: pooled_bandit(
            context, features=LookAhead(context.lookahead, prefer=p["prefer"]), frozen=True
        ),
        {"prefer": PREFER},
        shown=None,
        needs="lookahead",
    ),
    Method(
        "lookahead-budget",
        "look-ahead with a cost budget per episode",
        lambda context, p, _: pooled_bandit(
            context,
            features=LookAhead(
                context.lookahead, cost_budget=p["cost_budget"], episode_steps=_whole_episodes(context.worlds)
            ),
        ),
        {"cost_budget": Parameter((25.0,), "cost that an episode may have")},
        needs="lookahead",
    ),
    Method(
        "simulated",
        "rolls every controller out from a copy of the state",
        lambda context, p, _: _simulated(context, context.worlds, p),
        SIMULATED,
        heavy=True,
        on="copies",
    ),
    Method(
        "twin",
        "the same from a world that is rebuilt from the observation",
        lambda context, p, _: _twin(context, **p),
        SIMULATED | {"memory": Parameter((1,), "1 remembers what was seen in the episode, 0 does not", most=1)},
        heavy=True,
        on="worlds",
    ),
    Method(
        "predicted",
        "least loss as predicted by the context networks, no learning",
        lambda context, p, _: LeastLoss(
            PredictedAhead(context, horizon=p["horizon"]),
            every=p["every"],
            cost_weight=p["cost_weight"],
        ),
        {
            "horizon": Parameter((50,), "control steps to look ahead, of those that were trained", least=1),
            "every": EVERY,
            "cost_weight": Parameter((0.05, 0.1, 0.2), "reward that one cost is worth"),
        },
        shown=None,
        needs="context",
    ),
    Method(
        "simplex",
        "safe while a cost critic is above a threshold",
        lambda context, p, _: Simplex(context, **p),
        {
            "threshold": Parameter((0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0), "discounted cost that alarms"),
            "hold": Parameter((1,), "control steps per decision", least=1),
        },
        shown=None,
        needs="critic",
    ),
    Method(
        "threshold",
        "the best threshold on an entry of the observation, swept before",
        lambda context, p, learned: ThresholdSwitch(context, Threshold(**learned)),
        {
            "episodes": Parameter((10,), "training episodes of the best thresholds", least=2),
            "tried": Parameter((60,), "thresholds to try at most, drawn at random", least=1),
        },
        trained=True,
    ),
    Method(
        "shared",
        "weighted sum of the actions",
        lambda context, p, _: SharedControl(context, **p),
        {"share": SHARES},
        shown=None,
        on="arrays",
    ),
    Method(
        "offline",
        "a switch trained on logged rollouts, then frozen",
        lambda context, p, learned: LeastLoss(
            FittedAhead(context, Fitted.from_dict(dict(learned))),
            every=p["every"],
            cost_weight=p["cost_weight"],
        ),
        {
            "every": EVERY,
            "cost_weight": COST_WEIGHT,
            "episodes": Parameter((100,), "logged episodes", least=1),
            "ridge": Parameter((0.1, 1.0), "shrinkage per window"),
            "discount": Parameter((0.99,), "of a control step", most=1.0),
        },
        shown=None,
        trained=True,
    ),
    Method(
        "oracle",
        "true feedback of the next step: least maximal loss",
        lambda context, p, _: LeastLoss(NextStep(context), every=1, cost_weight=p["cost_weight"]),
        {"cost_weight": Parameter((1.0,), "reward that one cost is worth")},
        on="copies",
    ),
    Method(
        "ceiling",
        "look-ahead oracle: rolls every controller out",
        lambda context, p, _: LeastLoss(
            Rollouts(context, horizon=p["horizon"], samples=p["samples"]),
            every=p["every"],
            cost_weight=p["cost_weight"],
        ),
        {
            "horizon": Parameter((60,), "control steps to look ahead", least=1),
            "every": EVERY,
            "cost_weight": COST_WEIGHT,
            "samples": Parameter((3,), "futures per controller", least=1),
        },
        heavy=True,
        on="copies",
    ),
)

METHODS: dict[str, Method] = {method.name: method for method in _ALL}


def _horizon(context: RolloutContext, p: Mapping[str, Any]) -> Switch:
    # A step's reward is a few hundredths, a cost is 0 or 1: in these units the context, the sums of a stage and
    # the learner's coefficients are all about 1 in size.
    reward_unit = 0.05
    cost_unit = reward_unit / max(p["cost_weight"], 1e-6)
    hold = p["hold"]
    return pooled_bandit(
        context,
        features=long_context(context, horizon=p["horizon"], units=(reward_unit, cost_unit)),
        hold=hold,
        scales=(reward_unit * hold, cost_unit * hold),
    )


def _whole_episodes(worlds: Any) -> int | None:
    """Return the control steps of an episode in worlds of blendctl; None for others, whose episodes may end earlier."""
    return int(worlds.max_episode_steps) if hasattr(worlds, "task") else None


def _simulated(context: RolloutContext, simulator: Any, p: Mapping[str, Any]) -> Switch:
    feature = SimulatedLookAhead(
        simulator, network=context.lookahead, threads=context.worlds.threads, seed=context.seed, **p
    )
    return pooled_bandit(context, features=feature)


def _twin(context: RolloutContext, *, memory: int, **p: Any) -> Switch:
    return _simulated(context, Twin(context.worlds.task, context.worlds.max_episode_steps, bool(memory)), p)


def find_method(name: str) -> Method:
    """Return a method by name; "controller-2" is the second controller alone.

    >>> find_method("controller-2").help
    'controller 2 alone'
    """
    number = name.removeprefix("controller-")
    if number != name and number.isdecimal() and int(number) > 0:
        return Method(name, f"controller {number} alone", lambda context, p, _: SingleController(int(number) - 1))
    if name not in METHODS:
        raise InputError(f'there is no method "{name}"; {did_you_mean(name, METHODS)}')
    return METHODS[name]


def check_controller_number(name: str, controllers: Sequence[object]) -> None:
    """Raise InputError for "controller-N" if there are fewer than N controllers."""
    number = name.removeprefix("controller-")
    if number != name and number.isdecimal() and int(number) > len(controllers):
        raise InputError(f'there is no "{name}": the methods switch between {len(controllers)} controllers')


def with_values(method: Method, assignments: Mapping[str, str]) -> Method:
    """Return the method with other values of its parameters, each written as "60" or "30,60".

    >>> with_values(METHODS["ceiling"], {"horizon": "30,60"}).parameters["horizon"].values
    (30, 60)
    """
    parameters = dict(method.parameters)
    for name, text in assignments.items():
        if name not in parameters:
            known = did_you_mean(name, parameters) if parameters else f"{method.name} has no parameters"
            raise InputError(f'the method "{method.name}" has no parameter "{name}"; {known}')
        parameters[name] = replace(parameters[name], values=_read(method, name, text))
    changed = replace(method, parameters=parameters)
    if method.shown is None or changed.settings == method.settings:
        return changed
    return replace(changed, shown=0 if len(changed.settings) == 1 else None)


def _read(method: Method, name: str, text: str) -> tuple[Value, ...]:
    parameter = method.parameters[name]
    kind = int if parameter.whole else float
    wanted = f"{'whole numbers' if parameter.whole else 'numbers'} from {parameter.least:g} to {parameter.most:g}"
    try:
        values = tuple(kind(word) for word in text.split(","))
    except ValueError:
        values = ()
    if not values or not all(parameter.least <= v <= parameter.most and abs(v) < 1e9 for v in values):
        raise InputError(f"{method.name}.{name} must be {wanted}, separated by commas, actually: {text!r}")
    return tuple(dict.fromkeys(values))
