"""Bandits as methods: one learner for all worlds of a rollout, with any rule and context."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blendctl.bandit import BlendingBandit
from blendctl.bandit.rules import Rule
from blendctl.blender.arguments import bandit_options
from blendctl.blender.bandit_switch import BanditSwitch
from blendctl.features import Feature, Scaled, bind_feature, next_step_feature
from blendctl.features.predictions import Predictions
from blendctl.switches.base import RolloutContext
from blendctl.switches.requirements import expect_context_networks


def pooled_bandit(
    context: RolloutContext,
    *,
    rule: str | Rule | None = None,
    features: Feature | None = None,
    hold: int | None = None,
    previous: bool = False,
    frozen: bool = False,
    scales: Sequence[float] | None = None,
    noise: float = 0.1,
) -> BanditSwitch:
    """Make a switch that decides by a bandit over (reward, -cost).

    rule: by default that of the features. features: by default the next step, as in the paper. hold, previous and
    frozen: as of `BanditSwitch`. scales: unit of each objective, summed over a stage.
    """
    declared = next_step_feature(context.controllers) if features is None else features
    bound = bind_feature(declared, context.controllers, objectives=["reward", "-cost"])
    bound.attach(context.worlds)
    chosen = {} if rule is None else {"rule": rule}
    options = bandit_options(bound, chosen | {"scales": scales, "noise": noise})
    bandit = BlendingBandit(bound.size, seed=context.seed, **options)
    return BanditSwitch(
        bandit,
        bound,
        worlds=context.worlds.num_envs,
        names=[f"controller {arm}" for arm in range(context.arms)],
        rng=np.random.default_rng(context.seed),
        hold=bound.hold if hold is None else hold,
        previous=previous,
        frozen=frozen,
    )


def long_context(context: RolloutContext, *, horizon: int, units: tuple[float, float]) -> Feature:
    """Return predictions over a long horizon, in units of (reward, cost) per control step."""
    expect_context_networks(context.controllers, "a longer horizon")
    return Scaled(Predictions((horizon,)), units)
