"""The card of a controller: its training and its evaluation, as data and as Markdown."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any

from blendctl._version import __version__

CURVE_POINTS = 60


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of blendctl, Python and the packages."""
    base = {"blendctl": __version__, "python": platform.python_version()}
    return base | {package: metadata.version(package) for package in packages}


def make_card(
    name: str,
    *,
    config: dict[str, Any],
    command: str,
    history: list[dict[str, Any]],
    evaluation: dict[str, Any] | None,
) -> dict[str, Any]:
    """Build the card of a training run. `history` has one row per update."""
    kept = [row for row in history if row["episode_return"] is not None]
    stride = max(1, -(-len(kept) // CURVE_POINTS))
    curve = [
        {
            "steps": row["steps"],
            "return": round(row["episode_return"], 2),
            "cost": round(row["episode_cost"], 1),
        }
        for row in kept[::-1][::stride][::-1]  # backwards, so that the last row is kept
    ]
    seconds = sum(row["simulate_seconds"] + row["learn_seconds"] for row in history)
    return {
        "name": name,
        "world": config["world"],
        "algorithm": config["algo"],
        "command": command,
        "seed": config["seed"],
        "steps": history[-1]["steps"] if history else 0,
        "training_seconds": round(seconds),
        "versions": versions("numpy", "torch", "mujoco", "gymnasium"),
        "config": config,
        "learning_curve": curve,
        "evaluation": evaluation,
        "context": None,
    }


def card_markdown(card: dict[str, Any]) -> str:
    """Return the card as a Markdown page."""
    lines = [f"# {card['name']}", "", f"{card['algorithm']} on {card['world']}, {card['steps']:,} steps.", ""]
    if card.get("evaluation"):
        lines += ["| | mean | 95% interval |", "|---|---|---|"]
        seen = card["evaluation"]
        for quantity in ("return", "cost"):
            interval = seen[f"{quantity}_ci95"]
            span = "" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}"
            lines.append(f"| {quantity} | {seen[f'{quantity}_mean']:.2f} | {span} |")
        kind = "mean actions" if seen["deterministic"] else "actions drawn from the policy"
        lines += ["", f"Over {seen['episodes']} episodes from seed {seen['seed']}, {kind}.", ""]
    if card.get("context"):
        context = card["context"]
        lines += ["## Context networks", "", "R² on held-out states:", ""]
        lines += ["| horizon | reward, blending | cost, blending | reward, alone | cost, alone |"]
        lines += ["|---|---|---|---|---|"]
        for row in context["r2"]:
            cells = (row["horizon"], *(f"{row[k]:.3f}" for k in R2_COLUMNS))
            lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
        lines += ["", *_difference_lines(context), context["note"], ""]
    context = card.get("context") or {}
    commands = [card["command"], context.get("longer_command"), context.get("command")]
    lines += ["## How it was made", "", "```", *(command for command in commands if command), "```", ""]
    lines += [f"Seed {card['seed']}, {card['training_seconds']} s of training. Versions: "]
    lines[-1] += ", ".join(f"{package} {version}" for package, version in card["versions"].items()) + "."
    lines += ["", "## Learning curve", "", "| steps | return | cost |", "|---|---|---|"]
    lines += [f"| {p['steps']:,} | {p['return']:.2f} | {p['cost']:.1f} |" for p in card["learning_curve"]]
    return "\n".join(lines) + "\n"


def _difference_lines(context: dict[str, Any]) -> list[str]:
    """Return the lines about the differences between the controllers of a set that was trained together."""
    if "r2_difference" not in context:
        return []
    r2 = [f"{what} {optional_number(context['r2_difference'][what])}" for what in ("reward", "cost")]
    choices, limit = context["choices"], context.get("choices_limit")
    allowed = (
        f" By the simulator, from what the observation shows: {limit['correct']:.1%} correct, with "
        f"{limit['loss_share']:.2f} of that loss."
        if limit
        else ""
    )
    return [
        f"Difference between {' and '.join(context['set'])} at the same state: R² of {', '.join(r2)}. Choices of one "
        f"step by these predictions: {choices['correct']:.1%} correct (random: {choices['correct_random']:.1%}), with "
        f"{choices['loss_share']:.2f} of the average maximal loss of random choices.{allowed}",
        "",
    ]


def optional_number(value: float | None) -> str:
    """Return a number with three digits, or "unknown"."""
    return "unknown" if value is None else f"{value:.3f}"


def _limit_lines(limit: dict[str, Any] | None) -> list[str]:
    """Return the lines about R² beside the highest that the state allows; older cards have none."""
    if not limit:
        return []
    lines = ["R² on validation states, and the highest that the state allows:", "", *R2_HEAD]
    for name, row in (("level", "level"), ("difference between controllers", "difference")):
        cells = [f"{r2:.3f} of {most:.3f}" for r2, most in zip(limit[f"r2_{row}"], limit[f"limit_{row}"], strict=True)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    about = f"Of {limit['states']:,} states at cost weight {limit['weight']:.3g}, each labelled twice with independent"
    return [*lines, "", f"{about} action noise.", ""]


def lookahead_markdown(card: dict[str, Any]) -> str:
    """Return the card of look-ahead networks as a Markdown page."""
    title = " + ".join(card.get("controllers", [])) or "these controllers"
    lines = [f"# Look-ahead networks of {title}", "", f"{card['steps']:,} environment steps.", ""]
    if card.get("r2_level"):
        lines += ["Held-out R²:", "", *R2_HEAD]
        for name, key in (("level", "r2_level"), ("difference between controllers", "r2_difference")):
            # Without branches there is no R² of the difference.
            lines.append(f"| {name} | " + " | ".join(f"{value:.3f}" for value in card[key] or ()) + " |")
        lines += ["", card["note"], ""]
    lines += _limit_lines(card.get("limit"))
    rows = [(point["name"], point) for point in card.get("alone", [])]
    rows += [(f"switch, cost weight {point['weight']:.3g}", point) for point in card.get("dial", [])]
    if rows:
        lines += ["| driver | return | cost | episodes over the budget |", "|---|---|---|---|"]
        for name, p in rows:
            lines.append(f"| {name} | {p['return_mean']:.2f} | {p['cost_mean']:.1f} | {100 * p['over_budget']:.0f}% |")
        point = rows[0][1]
        lines += ["", f"Over {point['episodes']} episodes each, from validation seed {point['seed']}.", ""]
    lines += ["## How they were made", "", "```", card["command"], "```", ""]
    lines += [f"Seed {card['config']['seed']}, {card['seconds']:.0f} s of training. Versions: "]
    lines[-1] += ", ".join(f"{package} {version}" for package, version in card["versions"].items()) + "."
    return "\n".join(lines) + "\n"


R2_HEAD = ("| | return | cost |", "|---|---|---|")
R2_COLUMNS = ("reward_blending", "cost_blending", "reward_alone", "cost_alone")
