"""The table that `blendctl blend` ends with: each controller alone, then the blend."""

from __future__ import annotations

from typing import Any

__all__ = ["blend_table"]


def blend_table(summary: dict[str, Any], names: list[str]) -> Any:
    """Lay a summary out as a table of rich's."""
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    title = f"{summary['world']}, {summary['episodes']} episodes from seed {summary['seed']}"
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    columns = ("", "return", "cost", "share", "switches", "correct", "loss", "bound")
    for column in columns:
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    table.caption = (
        f"means of {summary['episodes']} episodes, 95% intervals in the summary; loss: true maximal loss per stage; "
        "bound: what it cannot exceed, on average"
    )
    rows = summary.get("alone", {}) | {"blended": summary}
    for title, told in rows.items():
        share = "/".join(f"{100 * told['arm_share'][name]:.0f}" for name in names) + "%"
        table.add_row(
            escape(title),
            f"{told['return_mean']:.2f}",
            f"{told['cost_mean']:.1f}",
            share,
            str(told["switches"]),
            "" if told["correct_ratio"] is None else f"{100 * told['correct_ratio']:.1f}%",
            "" if told["average_loss"] is None else f"{told['average_loss']:.5f}",
            "" if told.get("loss_bound") is None else f"{told['loss_bound']:.4f}",
            style="bold" if title == "blended" else None,
        )
    return table
