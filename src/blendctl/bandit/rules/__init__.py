"""Decision rules, one file each: the paper's, alternatives, and baselines.

A rule is chosen by name (`rule="linear"`) or passed as an object (`rule=Linear(weights=(1, 3))`);
anything with a `name` and a method `candidates(stage)` is a rule (see `Rule`).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from blendctl.bandit.rules.base import BoundedRule, CheckedRule, DecisionInput, Rule
from blendctl.bandit.rules.chebyshev import Chebyshev
from blendctl.bandit.rules.cost_budget import CostBudget
from blendctl.bandit.rules.fixed import Fixed
from blendctl.bandit.rules.greedy import Greedy
from blendctl.bandit.rules.lexicographic import Lexicographic
from blendctl.bandit.rules.linear import Linear
from blendctl.bandit.rules.maximal_loss import MaximalLoss
from blendctl.bandit.rules.pareto_uniform import ParetoUniform
from blendctl.bandit.rules.random import Random
from blendctl.bandit.rules.thompson import Thompson
from blendctl.errors import InputError, did_you_mean

__all__ = [
    "Rule",
    "CheckedRule",
    "BoundedRule",
    "DecisionInput",
    "RULES",
    "make_rule",
    "describe_rule",
    "MaximalLoss",
    "ParetoUniform",
    "Linear",
    "Greedy",
    "Chebyshev",
    "Lexicographic",
    "CostBudget",
    "Thompson",
    "Fixed",
    "Random",
]

RULES: dict[str, type[Any]] = {
    rule.name: rule
    for rule in (
        MaximalLoss,
        ParetoUniform,
        Linear,
        Greedy,
        Chebyshev,
        Lexicographic,
        CostBudget,
        Thompson,
        Fixed,
        Random,
    )
}


def make_rule(rule: str | Rule, parameters: dict[str, Any] | None = None) -> Rule:
    """Return the rule of that name with its parameters; a rule object is returned unchanged.

    >>> make_rule("linear", {"weights": [1, 3]})
    Linear(weights=[1, 3])
    """
    if isinstance(rule, str):
        if rule not in RULES:
            raise InputError(f'there is no decision rule "{rule}"; {did_you_mean(rule, RULES)}')
        try:
            made = RULES[rule](**(parameters or {}))
        except TypeError as error:
            raise InputError(f'the rule "{rule}" does not take these parameters: {error}') from None
        assert isinstance(made, Rule)
        return made
    if isinstance(rule, type):
        raise InputError(f"rule must be an object, actually: the class {rule.__name__}; try {rule.__name__}()")
    if not isinstance(rule, Rule):
        raise InputError(
            f"rule must be a name ({', '.join(RULES)}) or an object with `name` and `candidates(stage)`, "
            f"actually: {rule!r}"
        )
    return rule


def describe_rule(rule: Rule) -> dict[str, Any]:
    """Describe a rule as plain data: its name, its parameters, and whether it is part of blendctl."""
    built_in = type(rule) is RULES.get(rule.name)
    data: Any = rule
    parameters = {name: _plain(value) for name, value in asdict(data).items()} if built_in else {}
    return {"name": rule.name, "own": built_in, "parameters": parameters}


def _plain(value: Any) -> Any:
    """Convert a parameter to JSON data."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, (list, tuple, range)):
        return [_plain(entry) for entry in value]
    return value
