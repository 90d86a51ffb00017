"""Measure context networks on held-out states: levels, differences between controllers, and the resulting choices."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from blendctl import pareto
from blendctl.arrays import FloatArray
from blendctl.controllers import ContextNetwork
from blendctl.episodes import score
from blendctl.training.context_fit import ContextDataset

CHUNK = 20_000  # rows per call of a network
USUAL = 100.0  # medians: a difference of rewards beyond this is an event, such as a goal met by one controller only


@dataclass(frozen=True)
class Choices:
    """How well predictions choose between controllers, by the maximal loss of one step."""

    correct: float  # share of correct choices by the predictions
    correct_random: float  # of random choices
    loss_share: float  # average maximal loss of these choices, divided by that of random ones

    def card_entry(self) -> dict[str, float]:
        """Return the figures for a card."""
        return {name: round(value, 4) for name, value in asdict(self).items()}


@dataclass(frozen=True)
class DifferenceAccuracy:
    """Accuracy of the predicted differences between controllers, on states in which they take turns."""

    r2_reward: float  # of the usual differences
    r2_reward_all: float  # with events
    r2_cost: float  # NaN if the costs never differed
    usual: float  # share of the states whose rewards differ, and are predicted to differ, by a usual size
    cost_differs: float  # share of the states in which the costs differ
    choices: Choices

    def card_entry(self) -> dict[str, Any]:
        """Return the figures for a card."""
        r2 = {
            name: None if np.isnan(v) else round(v, 4)
            for name, v in (
                ("reward", self.r2_reward),
                ("cost", self.r2_cost),
                ("reward_with_events", self.r2_reward_all),
            )
        }
        return {"r2_difference": r2, "choices": self.choices.card_entry()}

    def note(self) -> str:
        """Return a note about what the figures exclude."""
        return (
            f"R² of the difference: between the controllers of the set at the same state, without the "
            f"{1.0 - self.usual:.2%} of the states in which the rewards differ, or are predicted to differ, by more "
            f"than {USUAL:.0f} times the median, such as a goal that one of them meets; with them, the R² of the "
            f"reward is {self.r2_reward_all:.3f}. The costs differ in {self.cost_differs:.2%}."
        )


def predictions(context: ContextNetwork, data: ContextDataset, arm: int) -> FloatArray:
    """Return the predictions (rows, 2 * horizons) for the actions of one controller."""
    inputs = np.concatenate([data.encoded.numpy(), data.actions[:, arm].numpy()], axis=1)
    parts = [context.rescale(context.network.batch(inputs[at : at + CHUNK])) for at in range(0, len(inputs), CHUNK)]
    return np.concatenate(parts).astype(np.float64)


def next_step_r_squared(context: ContextNetwork, data: ContextDataset) -> FloatArray:
    """Return R² (2,) of the next step's reward and cost, for the actions of all controllers."""
    predicted = np.stack([predictions(context, data, arm) for arm in range(data.actions.shape[1])], axis=1)
    known = data.next_step.numpy().astype(np.float64)
    return np.array([_r2(known[..., k].ravel(), predicted[..., k].ravel()) for k in (0, 1)])


def longer_r_squared(context: ContextNetwork, data: ContextDataset, *, driver: int) -> FloatArray:
    """Return R² (2 * horizons,) over windows that controller number `driver` drove; NaN where there are none."""
    predicted = predictions(context, data, min(driver, data.actions.shape[1] - 1))
    sums, drove = data.sums.numpy().astype(np.float64), data.driver.numpy() == driver
    valid = (data.counts.numpy() > 0) & drove[:, None]
    return np.array([_r2(sums[rows, k], predicted[rows, k]) for k, rows in enumerate(valid.T)])


def difference_accuracy(context: ContextNetwork, data: ContextDataset) -> DifferenceAccuracy:
    """Measure the predictions for the actions of all controllers at the same states."""
    arms = range(data.actions.shape[1])
    predicted = np.stack([predictions(context, data, arm) for arm in arms], axis=1)
    known = data.next_step.numpy().astype(np.float64)  # (rows, arms, 2)
    apart, apart_predicted = (values - values.mean(axis=1, keepdims=True) for values in (known, predicted))
    size = np.abs(apart[..., 0])
    largest = USUAL * np.median(size[size > 0] if (size > 0).any() else size)
    usual = ((size <= largest) & (np.abs(apart_predicted[..., 0]) <= largest)).all(axis=1)
    return DifferenceAccuracy(
        r2_reward=_r2(apart[usual, :, 0].ravel(), apart_predicted[usual, :, 0].ravel()),
        r2_reward_all=_r2(apart[..., 0].ravel(), apart_predicted[..., 0].ravel()),
        r2_cost=_r2(apart[..., 1].ravel(), apart_predicted[..., 1].ravel()),
        usual=float(usual.mean()),
        cost_differs=float((np.abs(apart[..., 1]) > 0).any(axis=1).mean()),
        choices=judge_choices(predicted, known),
    )


def judge_choices(predicted: FloatArray, known: FloatArray) -> Choices:
    """Measure the choices by predicted rewards and costs, (rows, arms, 2), against the known ones."""
    truth = known * (1.0, -1.0)
    scores = score(truth, pareto.maximal_loss(predicted * (1.0, -1.0)).argmin(axis=1))
    others = [score(truth, np.full(len(truth), arm)) for arm in range(truth.shape[1])]
    loss = float(np.mean([s.loss.mean() for s in others]))
    return Choices(
        correct=float(scores.correct.mean()),
        correct_random=float(np.mean([s.correct.mean() for s in others])),
        loss_share=float(scores.loss.mean() / max(loss, 1e-300)),
    )


def _r2(target: FloatArray, estimate: FloatArray) -> float:
    if not len(target) or target.var() == 0.0:
        return float("nan")
    return float(1.0 - np.mean((target - estimate) ** 2) / target.var())
