"""Collect everything that the page of a blend shows, as JSON data."""

from __future__ import annotations

from typing import Any

import numpy as np

from blendctl.reports.binary_columns import Packer
from blendctl.reports.blend_verdict import verdict_of
from blendctl.reports.charts import charts_of_drive, true_loss
from blendctl.reports.page_warnings import cautions_of
from blendctl.reports.replay import costliest_moments, episode_sums, pack_replay
from blendctl.reports.run_data import StageTable, read_poses, read_stages
from blendctl.reports.run_dir import Folder
from blendctl.statistics import mean_interval

__all__ = ["blend_page", "table_row"]


def blend_page(folder: Folder, *, replays: int) -> dict[str, Any]:
    """Collect the data of a page from the output of `blendctl blend`, whole or not; replay so many episodes."""
    drive, places = read_stages(folder.record), read_poses(folder.track)
    banner = list(folder.missing)
    for what, found in (("record", drive), ("track", places)):
        if found is not None and found.damaged:
            banner.append(f"Damaged files of the {what} were left out: {', '.join(found.damaged)}.")
    about = folder.about | folder.summary
    sums = [] if drive is None else episode_sums(drive)
    told = _sums_of_record(drive, sums) | folder.about | folder.summary if drive else about
    names = list(about.get("names") or (drive.names if drive else []))
    planned = folder.about.get("planned_episodes")
    if planned and not folder.summary and drive:
        banner.append(f"{told['episodes']} of {planned} episodes ended, {len(drive)} stages were recorded.")
    packer, episodes, moments = Packer(), [], []
    if drive is not None:
        shown = sorted(sorted(sums, key=lambda e: -e["cost"])[:replays], key=lambda e: e["number"])
        episodes = pack_replay(drive, places, packer, sums=shown, seed=about.get("seed"))
        moments = costliest_moments(drive, shown)
    rows = [
        table_row(name, (about.get("alone") or {})[name], names, role=_role(arm, len(names)), color=arm)
        for arm, name in enumerate(names)
        if name in (about.get("alone") or {})
    ]
    if "return_mean" in told:
        rows.append(table_row("blended", told, names, role="blend", color="blend"))
    return {
        "kind": "blend",
        "title": about.get("world") or "A drive",
        "verdict": verdict_of(told, names) if "return_mean" in told else "Nothing was recorded.",
        "banner": banner,
        "names": names,
        "objectives": drive.objectives if drive else ["reward", "-cost"],
        "rule": drive.rule if drive else None,
        "table": rows,
        "scenery": places.scenery if places is not None else None,
        "episodes": episodes,
        "left_out": len(sums) - len(episodes),
        "columns": packer.directory,
        "blob": packer.text(),
        "moments": moments,
        "charts": charts_of_drive(drive, told, places) if drive is not None else [],
        "cautions": cautions_of(told, drive, folder.about.get("cards") or {}),
        "provenance": _provenance(folder, about, drive),
    }


def table_row(name: str, told: dict[str, Any], names: list[str], *, role: str, color: int | str) -> dict[str, Any]:
    """Give a row of the table: means with their intervals, and what else is known."""
    share = told.get("arm_share") or {}
    return {
        "name": name,
        "role": role,
        "color": color,
        "return": [told["return_mean"], *(told.get("return_ci95") or [None, None])],
        "cost": [told["cost_mean"], *(told.get("cost_ci95") or [None, None])],
        "share": [share.get(other) for other in names],
        "switches": told.get("switches"),
        "correct": told.get("correct_ratio"),
        "loss": told.get("average_loss"),
        "bound": told.get("loss_bound"),
    }


def _role(arm: int, arms: int) -> str:
    if arms < 2:
        return ""
    return "performant" if arm == 0 else "safe" if arm == arms - 1 else ""


def _sums_of_record(drive: StageTable, sums: list[dict[str, Any]]) -> dict[str, Any]:
    """Add up a drive of which there is no summary; means are over episodes that ended, if any did."""
    whole = [told for told in sums if told["complete"]]
    counted = whole or sums
    returns = np.array([told["return"] for told in counted])
    costs = np.array([told["cost"] for told in counted])
    arms, steps = drive.column("arm"), drive.column("steps")
    correct = [value for value in drive.table["correct"].to_pylist() if value is not None]
    loss, bound = true_loss(drive), drive.floats("loss_bound")
    return {
        "episodes": len(whole),
        "steps": int(steps.sum()),
        "return_mean": float(returns.mean()),
        "return_ci95": mean_interval(returns) if whole else None,
        "cost_mean": float(costs.mean()),
        "cost_ci95": mean_interval(costs) if whole else None,
        "returns": [told["return"] for told in whole],
        "costs": [told["cost"] for told in whole],
        "arm_share": {name: float(steps[arms == arm].sum() / steps.sum()) for arm, name in enumerate(drive.names)},
        "switches": int(drive.column("switched").sum()),
        "correct_ratio": float(np.mean(correct)) if correct else None,
        "average_loss": float(np.nanmean(loss)) if np.isfinite(loss).any() else None,
        "loss_bound": float(np.nanmean(bound)) if np.isfinite(bound).any() else None,
    }


def _provenance(folder: Folder, about: dict[str, Any], drive: StageTable | None) -> dict[str, Any]:
    facts: list[list[str]] = []
    if about.get("command"):
        facts.append(["command", str(about["command"])])
    seed, episodes = about.get("seed"), about.get("episodes") or about.get("planned_episodes")
    if seed is not None:
        last = f" to {seed + episodes - 1}" if episodes and episodes > 1 else ""
        facts.append(["seeds", f"{seed}{last}"])
    if about.get("controllers"):
        facts.append(["controllers", ", ".join(str(spec) for spec in about["controllers"])])
    if drive is not None:
        facts.append(["objectives", ", ".join(drive.objectives)])
        facts.append(["rule", drive.rule])
    options = about.get("options") or {}
    told = [
        f"{name} {value}" for name, value in options.items() if name not in ("objectives", "rule") and value is not None
    ]
    if told:
        facts.append(["options", ", ".join(told)])
    versions = about.get("versions") or {"blendctl": (drive.header.get("blendctl") if drive else None) or "?"}
    facts.append(["versions", ", ".join(f"{name} {version}" for name, version in versions.items())])
    if about.get("seconds"):
        facts.append(["time", f"{about['seconds']} s"])
    return {
        "facts": facts,
        "cards": [_card(name, card) for name, card in (folder.about.get("cards") or {}).items()],
    }


def _card(name: str, card: dict[str, Any] | None) -> dict[str, Any]:
    """Shorten a controller's card to what a reader of the page wants to know."""
    if not card:
        return {"name": name, "facts": [["card", "none: it was not trained by blendctl"]]}
    facts = [["made by", f"{card.get('algorithm')} on {card.get('world')}, {card.get('steps', 0):,} steps"]]
    seen = card.get("evaluation")
    if seen:
        facts.append(["return alone", f"{seen['return_mean']:.2f} over {seen['episodes']} episodes"])
        facts.append(["cost alone", f"{seen['cost_mean']:.1f}"])
    context = card.get("context")
    for row in (context or {}).get("r2") or []:
        shares = f"{100 * row['reward_blending']:.0f}% of the reward, {100 * row['cost_blending']:.0f}% of the cost"
        facts.append([f"context, {row['horizon']} step{'s' if row['horizon'] != 1 else ''}", f"explains {shares}"])
    facts.append(["command", str(card.get("command", ""))])
    return {"name": name, "facts": facts}
