"""The page of a blend: its headline, and its sections from top to bottom."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from blendctl.reports.blend_run import BlendRun
from blendctl.reports.blend_verdict import relations, verdict_sentence
from blendctl.reports.charts import blend_charts
from blendctl.reports.foresight_chart import foresight_charts
from blendctl.reports.page import Page, Section
from blendctl.reports.page_data import Card, Color, Headline, Interval, Provenance, Table, TableRow
from blendctl.reports.page_warnings import blend_warnings
from blendctl.reports.replay import moments, replay
from blendctl.reports.standing import Standing, mean_and_interval, standing_chart, standing_of

NOTE = "Means per episode with 95% confidence intervals."
SCORE_NOTE = "Corner score: 0 on the line of all mixtures, 1 at the return of the first at the cost of the last."


def headline(run: BlendRun) -> Headline:
    """Return the headline: the verdict about the blend, and the missing parts of the run."""
    banner = list(run.folder.missing)
    damaged = {"record": run.stages and run.stages.damaged, "track": run.poses and run.poses.damaged}
    for what, files in (damaged | {"pictures": run.damaged_pictures}).items():
        if files:
            banner.append(f"Unreadable files of the {what} were left out: {', '.join(files)}.")
    planned = run.folder.about.get("planned_episodes")
    if planned and not run.folder.summary and run.stages:
        banner.append(f"{run.summary['episodes']} of {planned} episodes ended; {len(run.stages)} stages were recorded.")
    known = "return_mean" in run.summary
    verdict = verdict_sentence(run.summary, run.names, has_cost=run.has_cost) if known else "Nothing was recorded."
    claims = [*relations(run.summary, run.names, has_cost=run.has_cost), *_claims(run)] if known else []
    return Headline(run.about.get("world") or "Recorded run", verdict, claims, banner)


def _claims(run: BlendRun) -> list[str]:
    """Return the features that decided, and the compliance with the budget."""
    summary, features = run.summary, run.stages.header.get("features") if run.stages else ""
    claims = [f"Features that decided: {features}."] if features else []
    if "over_budget_ci95" in summary:
        low, high = summary["over_budget_ci95"]
        claims.append(
            f"{summary['over_budget']:.0%} of the episodes cost more than the budget of {summary['cost_budget']:g} "
            f"(95% interval {low:.0%} to {high:.0%}); the mean cost is {summary['cost_mean']:.1f}."
        )
    return claims


def table(run: BlendRun) -> Table | None:
    """List each controller alone and the blend."""
    alone, names = run.about.get("alone") or {}, run.names
    labels = ["performant", *[""] * (len(names) - 2), "safe"] if len(names) > 1 else [""]
    lookahead = run.stages is not None and bool(run.stages.header.get("lookahead"))
    rows = [
        _row(name, alone[name], names, label=labels[arm], color=arm, lookahead=lookahead)
        for arm, name in enumerate(names)
        if name in alone
    ]
    standing = standing_of(run.summary, names) if run.has_cost else None
    if standing is not None:
        rows.append(_mixing(standing))
    if "return_mean" in run.summary:
        score = None if standing is None else _score(standing)
        row = _row("blended", run.summary, names, label="", color="blend", lookahead=lookahead)
        rows.append(replace(row, score=score))
    if not rows:
        return None
    if not run.has_cost:
        rows = [replace(row, costs=(None, None, None)) for row in rows]
    note = NOTE
    if standing is not None:
        note += f" Mixing: {standing.performant} drives random episodes, {standing.safe} the others. {SCORE_NOTE}"
    if not any(value is not None for row in rows for value in (row.correct, row.loss, row.bound)):
        return Table(rows, note)
    return Table(rows, f"{note} {_judged_note(run.judged)}", run.judged)


def _judged_note(judged: str) -> str:
    """Explain the scope of correct choices, losses and their bound."""
    return (
        f"Correct, loss and bound cover {judged} after a decision, not the episode: the share of "
        "choices that no other controller’s feedback dominates, the mean of the true maximal losses in scaled units, "
        "and the upper bound of this mean."
    )


def _mixing(standing: Standing) -> TableRow:
    """Return the row of random mixing whose return is nearest to that of the blend."""
    return TableRow(
        "mixing",
        f"{standing.share:.0%} of the episodes with {standing.performant}",
        "faint",
        highlighted=False,
        returns=mean_and_interval(standing.mixture[:, 0]),
        costs=mean_and_interval(standing.mixture[:, 1]),
        share=[],
        score=None if standing.score.value is None else (0.0, None, None),
    )


def _score(standing: Standing) -> Interval | None:
    if standing.score.value is None:
        return None
    low, high = standing.score.interval or (None, None)
    return standing.score.value, low, high


def _row(
    name: str, summary: dict[str, Any], names: list[str], *, label: str, color: Color, lookahead: bool
) -> TableRow:
    share, over = summary.get("arm_share") or {}, summary.get("over_budget_ci95")
    return TableRow(
        name,
        label,
        color,
        highlighted=color == "blend",
        returns=(summary["return_mean"], *(summary.get("return_ci95") or (None, None))),
        costs=(summary["cost_mean"], *(summary.get("cost_ci95") or (None, None))),
        share=[share.get(arm) for arm in names],
        switches=summary.get("switches"),
        correct=summary.get("correct_ratio"),
        loss=summary.get("average_loss"),
        bound=None if lookahead else summary.get("loss_bound"),
        over_budget=None if over is None else (summary["over_budget"], *over),
    )


def provenance(run: BlendRun) -> Provenance:
    """List the data for repeating the run, and the cards of its controllers."""
    about, stages = run.about, run.stages
    seed, episodes = about.get("seed"), about.get("episodes") or about.get("planned_episodes") or 1
    options = [
        f"{name} {value}"
        for name, value in (about.get("options") or {}).items()
        if name not in ("objectives", "rule") and value is not None
    ]
    versions = about.get("versions") or {"blendctl": (stages.header.get("blendctl") if stages else None) or "?"}
    facts = [
        ("command", str(about.get("command") or "")),
        ("environment", _environment(about)),
        ("seeds", "" if seed is None else f"{seed} to {seed + episodes - 1}" if episodes > 1 else str(seed)),
        ("controllers", ", ".join(str(spec) for spec in about.get("controllers") or ())),
        ("objectives", ", ".join(stages.objectives) if stages else ""),
        ("features", str(stages.header.get("features") or "") if stages else ""),
        ("rule", stages.rule if stages else ""),
        ("options", ", ".join(options)),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("time", f"{about['seconds']} s" if about.get("seconds") else ""),
    ]
    cards = [_card(name, card) for name, card in (run.folder.about.get("cards") or {}).items()]
    return Provenance([(name, text) for name, text in facts if text], cards)


def _environment(about: dict[str, Any]) -> str:
    """Describe the settings of an environment, "" if there are none."""
    made = about.get("environment") or {}
    parts = [f"{name} {value}" for name, value in (made.get("arguments") or {}).items()]
    parts += [f"cost {made['cost']}"] if made.get("cost") else []
    parts += [f"episodes of {made['episode_steps']} steps"] if made.get("episode_steps") else []
    if about.get("control_period"):
        parts.append(f"control period {1000 * about['control_period']:.4g} ms")
    return ", ".join([made["name"], *parts] if made else parts)


def _card(name: str, card: dict[str, Any] | None) -> Card:
    """Shorten the card of a controller."""
    if not card:
        return Card(name, [("card", "none: it was not trained by blendctl")])
    facts = [("trained by", f"{card.get('algorithm')} on {card.get('world')}, {card.get('steps', 0):,} steps")]
    evaluation = card.get("evaluation")
    if evaluation:
        facts.append(("return alone", f"{evaluation['return_mean']:.2f} over {evaluation['episodes']} episodes"))
        facts.append(("cost alone", f"{evaluation['cost_mean']:.1f}"))
    for row in (card.get("context") or {}).get("r2") or []:
        shares = f"{100 * row['reward_blending']:.0f}% of the reward, {100 * row['cost_blending']:.0f}% of the cost"
        facts.append((f"context, {row['horizon']} step{'s' if row['horizon'] != 1 else ''}", f"explains {shares}"))
    return Card(name, [*facts, ("command", str(card.get("command", "")))])


SECTIONS: tuple[Section[BlendRun], ...] = (
    Section("table", "", table),
    Section("replay", "Replay", replay),
    Section("moments", "Costliest moments", moments),
    Section("foresight", "Foresight", foresight_charts),
    Section("standing", "Return against cost", standing_chart),
    Section("charts", "Charts", blend_charts),
    Section("warnings", "Warnings", blend_warnings),
    Section("provenance", "How it was made", provenance),
)
BLEND_PAGE = Page("blend", headline, SECTIONS)
