"""The verdict: which of the paper's claims hold in each world, and with what confidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from blendctl.experiments.protocol import EVERY
from blendctl.statistics import FloatArray, mean_interval, mean_sign_confidence

ROUNDING = 1e-12  # differences up to this count as 0

# claim -> the claim in words, and its negation
CLAIMS = {
    "return_above_safe": (
        "the blended controller returns more than the safe one",
        "the blended controller does NOT return more than the safe one",
    ),
    "cost_below_performant": (
        "the blended controller costs less than the performant one",
        "the blended controller does NOT cost less than the performant one",
    ),
    "correct_above_half": (
        "more than half of its choices are correct",
        "NOT more than half of its choices are correct",
    ),
    "correct_above_random": (
        "its choices are correct more often than those of random switching",
        "its choices are NOT correct more often than those of random switching",
    ),
}


def verdict(episodes: pa.Table, points: pa.Table) -> dict[str, Any]:
    """Test the claims per world on the tables of episodes and of data points, as JSON data.

    Differences between roles are paired by episode, on the same seeds. With one trace the sample is its episodes, with
    more it is the traces' means. A claim holds if the difference has the claimed sign; its interval is Student's, 95%,
    and its confidence is the probability, by the same distribution, that the true mean has that sign.
    Beside the claims are the loss and its bound, which is a theorem if the feedback is linear in the context.
    """
    result = {}
    for world in episodes["world"].unique().to_pylist():
        here = pc.field("world") == world
        result[world] = _world(episodes.filter(here))
        blended = points.filter(here & (pc.field("role") == "blended"))
        if blended.num_rows:
            result[world]["loss"] = _loss(blended)
    return result


def _world(episodes: pa.Table) -> dict[str, Any]:
    by_role = {role: episodes.filter(pc.field("role") == role) for role in episodes["role"].unique().to_pylist()}
    traces = len(episodes["trace"].unique())
    result: dict[str, Any] = {"traces": traces, "over": "episodes" if traces == 1 else "traces"}
    for role, table in by_role.items():
        result[role] = {"episodes": table.num_rows}
        for what in ("return", "cost"):
            sample = _by_trace(table["trace"].to_numpy(), table[what].to_numpy())
            deviation = float(table[what].to_numpy().std(ddof=1)) if table.num_rows > 1 else None
            result[role] |= _summary(what, sample) | {f"{what}_sd": deviation}
        result[role]["cost_rate"] = float(pc.sum(table["cost"]).as_py() / pc.sum(table["length"]).as_py())
    for role, name in (("blended", "correct_ratio"), ("random", "correct_ratio_random")):
        if role in by_role:
            table = by_role[role]
            ratio = _summary(name, _by_trace(table["trace"].to_numpy(), table["correct_ratio"].to_numpy()))
            result |= {name: ratio.pop(f"{name}_mean")} | ratio
    result["claims"] = _claims(by_role)
    return result


def _loss(points: pa.Table) -> dict[str, Any]:
    """Compare the average maximal loss with its bound: over whole traces, and at every data point."""
    rows = points.to_pylist()
    last = {row["trace"]: row for row in rows}.values()  # data points are in order
    known = [row for row in rows if row["max_loss_mean"] is not None and row["max_loss_bound_mean"] is not None]
    above = sum(row["max_loss_mean"] > row["max_loss_bound_mean"] for row in known)
    return {
        "mean": known_mean(last, "max_loss_mean"),
        "bound_mean": known_mean(last, "max_loss_bound_mean"),
        "below_bound": above == 0 if known else None,
        "data_points": len(known),
        "data_points_above": above,
        "expected_mean": known_mean(last, "max_loss_expected_mean"),
        "context_r2_reward": known_mean(rows, "context_r2_reward"),
        "context_r2_cost": known_mean(rows, "context_r2_cost"),
    }


def known_mean(rows: Iterable[Mapping[str, Any]], name: str) -> float | None:
    """Return the mean of the known values of a column, which older tables may lack; None if there are none."""
    values = [row[name] for row in rows if row.get(name) is not None]
    return float(np.mean(values)) if values else None


def _claims(by_role: dict[str, pa.Table]) -> dict[str, Any]:
    claims: dict[str, Any] = {}
    if "blended" not in by_role:
        return claims
    blended = by_role["blended"]
    if "safe" in by_role:
        claims["return_above_safe"] = _claim(*_paired(blended, by_role["safe"], "return"))
    if "performant" in by_role:
        claims["cost_below_performant"] = _claim(*_paired(by_role["performant"], blended, "cost"))
    ratio = blended["correct_ratio"].to_numpy()
    claims["correct_above_half"] = _claim(blended["trace"].to_numpy(), ratio - 0.5)
    if "random" in by_role:
        claims["correct_above_random"] = _claim(*_paired(blended, by_role["random"], "correct_ratio", evenly=True))
    return {name: claim for name, claim in claims.items() if claim is not None}


def _paired(
    this: pa.Table, other: pa.Table, what: str, *, evenly: bool = False
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the trace and the difference this - other of every episode that both have run.

    `evenly` leaves out the denser first data points of random switching: a learner changes along its trace, and its
    beginning should not weigh more.
    """
    keys = ["trace", "data_point", "episode"]
    both = this.select([*keys, what]).join(
        other.select([*keys, what]), keys=keys, join_type="inner", right_suffix="_other"
    )
    both = both.sort_by([(key, "ascending") for key in keys])
    points = both["data_point"].to_numpy()
    if evenly and points.max(initial=0) >= EVERY:
        both = both.filter(pa.array(points % EVERY == 0))
    return both["trace"].to_numpy(), both[what].to_numpy() - both[f"{what}_other"].to_numpy()


def _claim(trace: NDArray[np.int64], ahead: FloatArray) -> dict[str, Any] | None:
    """Test the claim that a difference is above 0."""
    sample = _by_trace(trace, ahead)
    if not len(sample):
        return None  # no common episode, or no known values
    mean = float(sample.mean())
    confidence = mean_sign_confidence(sample)
    return {
        "holds": mean > ROUNDING,
        "difference": mean,
        "ci95": mean_interval(sample),
        "confidence": None if confidence is None else round(confidence, 6),
        "sample": len(sample),
    }


def _by_trace(trace: NDArray[np.int64], values: FloatArray) -> FloatArray:
    """Return the episodes' values if there is one trace, else the means of the traces."""
    known = np.isfinite(values)
    trace, values = trace[known], values[known]
    names = np.unique(trace)
    return values if len(names) == 1 else np.array([values[trace == name].mean() for name in names])


def _summary(what: str, sample: FloatArray) -> dict[str, Any]:
    return {f"{what}_mean": float(sample.mean()) if len(sample) else None, f"{what}_ci95": mean_interval(sample)}


def in_words(world: str, result: dict[str, Any]) -> list[str]:
    """Describe a world's verdict in sentences."""
    lines = []
    for name, (holds, fails) in CLAIMS.items():
        claim = result["claims"].get(name)
        if claim is None:
            lines.append(f"{world}: not known whether {holds}: episodes are missing.")
            continue
        sentence = holds if claim["holds"] else fails
        lines.append(f"{world}: {sentence}: {_figures(name, result)} {_confidence_in_words(claim)}")
    loss = result.get("loss")
    if loss is not None and loss["mean"] is not None and loss["bound_mean"] is not None:
        lines.append(f"{world}: {_loss_in_words(loss)}")
    return lines


def _loss_in_words(loss: dict[str, Any]) -> str:
    figures = f"{loss['mean']:.3g} per step, bound {loss['bound_mean']:.3g}"
    if loss["below_bound"]:
        return f"the average maximal loss stays under its bound: {figures}."
    r2 = [loss[f"context_r2_{what}"] for what in ("reward", "cost")]
    shares = " and ".join("nothing known" if share is None else f"{100 * share:.0f}%" for share in r2)
    expected = loss.get("expected_mean")
    return (
        f"the average maximal loss does NOT stay under its bound, at {loss['data_points_above']} of "
        f"{loss['data_points']} data points ({figures}). The bound is a theorem for feedback that is linear in the "
        f"current context, up to noise of the size that is set; here the context explains {shares} of reward and cost"
        + ("." if expected is None else f"; in the feedback that it leads to expect, the loss is {expected:.3g}.")
    )


def _figures(name: str, result: dict[str, Any]) -> str:
    blended = result["blended"]
    match name:
        case "return_above_safe":
            return f"{blended['return_mean']:.2f} against {result['safe']['return_mean']:.2f},"
        case "cost_below_performant":
            return f"{blended['cost_mean']:.1f} against {result['performant']['cost_mean']:.1f},"
        case "correct_above_half":
            return f"{result['correct_ratio']:.3f},"
    ratios = f"{result['correct_ratio']:.3f} against {result['correct_ratio_random']:.3f}"
    return f"{ratios}; on the same episodes, spread evenly,"


def _confidence_in_words(claim: dict[str, Any]) -> str:
    if claim["ci95"] is None:
        return "from a single value: there is no confidence."
    low, high = claim["ci95"]
    sentence = f"difference {claim['difference']:+.3g}, 95% interval {low:+.3g} to {high:+.3g}"
    if low <= 0 <= high:
        return f"{sentence}: it may be chance."
    if claim["confidence"] is None:
        return f"{sentence}."
    sure = "above 99.99%" if claim["confidence"] > 0.9999 else f"{100 * claim['confidence']:.2f}%"
    return f"{sentence}, confidence {sure}."
