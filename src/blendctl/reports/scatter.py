"""Draw a comparison: return against cost, with intervals, the mixing line, the corner and the ceiling."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Families of methods: colour (Okabe and Ito's), marker, which distinguishes them in greyscale.
_FAMILIES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "one controller": ("#000000", "s", ("performant", "safe")),
    "chance": ("#7A7A7A", "X", ("random", "random-episode")),
    "bandits, one step ahead": ("#E69F00", "v", ("epsilon-greedy", "linucb", "pareto-ucb", "paper", "paper-previous")),
    "looking ahead, learned": (
        "#0072B2",
        "o",
        ("horizon", "predicted", "offline", "lookahead", "lookahead-frozen", "lookahead-budget"),
    ),
    "looking ahead, simulated": ("#56B4E9", "p", ("simulated", "twin")),
    "rules without learning": ("#009E73", "D", ("simplex", "shared")),
    "oracles": ("#CC3311", "^", ("oracle", "ceiling")),
}
_OTHER = ("#CC79A7", "P")
# World -> (method, return, cost): the highest published within a cost of 25, from lidar.
# DMPO: an unreviewed note; SAC-Lag and TRPO-PID: OmniSafe; TRPO-Lag: Safety Gym.
PUBLISHED = {
    "PointGoal1": (("DMPO", 25.70, 24.7), ("SAC-Lag", 21.45, 19.2), ("TRPO-PID", 19.24, 21.4)),
    "PointPush1": (("TRPO-Lag", 3.80, 24.7),),
    "CarButton1": (("PPO, early termination", 4.47, 25.0), ("TRPO-PID", -0.31, 15.2)),
}
_DARKER = {"#E69F00": "#9A6A00", "#56B4E9": "#1B75A8"}  # for text, which needs more contrast than markers
LABEL = 32  # characters of a line of a label
INK, PALE, QUIET = "#222222", "#6A6A6A", "#9A9A9A"


def draw_scatter(standings: Mapping[str, Any]) -> Figure:
    """Draw the results of `blendctl compare`, from its JSON data alone.

    What follows a comma in the name of a method tells results of the same method apart: "lookahead, 6 controllers".
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 5.6), layout="constrained")
    axes = figure.subplots()
    methods = standings["methods"]
    for name, method in methods.items():
        _sweep(axes, name, method)
    for name, method in methods.items():
        _point(axes, name, method)
    _lines(axes, standings)
    _limits(axes, standings)
    published = PUBLISHED.get(standings["world"], ())
    for name, value, cost in published:
        _published_point(axes, name, value, cost)
    axes.set_xlabel("cost per episode  (better: left)")
    axes.set_ylabel("return per episode  (better: up)")
    axes.set_title(
        f"{standings['world']}: {standings['episodes']} episodes per method, means with 95% intervals",
        loc="left",
        fontsize=10.5,
    )
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(alpha=0.2, linewidth=0.5)
    axes.set_axisbelow(True)
    _labels(axes, methods)
    _legend(axes, methods, published=bool(published))
    return figure


def figure_bytes(figure: Figure, kind: str) -> bytes:
    """Return the figure as the bytes of a png, svg or pdf file; equal data make equal bytes."""
    import matplotlib

    sink = io.BytesIO()
    undated: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with matplotlib.rc_context({"svg.hashsalt": "blendctl", "svg.fonttype": "none", "pdf.fonttype": 42}):
        figure.savefig(sink, format=kind, dpi=160, metadata=undated.get(kind, {}))
    return sink.getvalue()


def _style(name: str) -> tuple[str, str]:
    return _FAMILIES[family][:2] if (family := _family(name)) else _OTHER


def _family(name: str) -> str | None:
    method = name.partition(",")[0]
    if method.startswith("controller-"):  # those between the performant and the safe one
        return "one controller"
    return next((family for family, (*_, members) in _FAMILIES.items() if method in members), None)


def _point(axes: Axes, name: str, method: Mapping[str, Any]) -> None:
    color, marker = _style(name)
    x, y = method["cost_mean"], method["return_mean"]
    spans = [
        [[mean - span[0]], [span[1] - mean]] if span else None
        for mean, span in ((x, method["cost_ci95"]), (y, method["return_ci95"]))
    ]
    axes.errorbar(x, y, xerr=spans[0], yerr=spans[1], fmt="none", ecolor=color, elinewidth=0.8, alpha=0.45, zorder=3)
    size = 150 if name == "ceiling" else 62
    axes.scatter(x, y, s=size, c=color, marker=marker, edgecolors="white", linewidths=0.8, zorder=5)


def _published_point(axes: Axes, name: str, value: float, cost: float) -> None:
    """Draw a published figure, with its name on the side where there is room."""
    axes.scatter(cost, value, s=40, facecolors="none", edgecolors=PALE, marker="o", linewidths=1.0, zorder=4)
    low, high = axes.get_xlim()
    side, at = ("right", -6) if cost > low + 0.2 * (high - low) else ("left", 6)
    axes.annotate(name, (cost, value), xytext=(at, 3), textcoords="offset points", fontsize=7.5, color=PALE, ha=side)


def _sweep(axes: Axes, name: str, method: Mapping[str, Any]) -> None:
    """Join the settings of a swept method by a thin line."""
    if "sweep" not in method:
        return
    color, marker = _style(name)
    x = [setting["cost_mean"] for setting in method["sweep"]]
    y = [setting["return_mean"] for setting in method["sweep"]]
    axes.plot(x, y, color=color, alpha=0.5, linewidth=0.9, marker=marker, markersize=2.8, zorder=2)


def _lines(axes: Axes, standings: Mapping[str, Any]) -> None:
    """Draw the mixing line, lines of equal score, and the corner."""
    (top, high), (bottom, low) = standings["mixing_line"]  # (return, cost) of performant and safe
    axes.plot([high, low], [top, bottom], color=INK, linewidth=1.4, linestyle=(0, (5, 3)), zorder=4)
    if standings["corner"]["reason"] is not None:
        return
    gain, price = top - bottom, high - low
    small: dict[str, Any] = {"textcoords": "offset points", "fontsize": 7.5}
    for score in (0.5, 1.0):
        left = 1.0 - score
        # x + y = 1 - score in scaled units, drawn a little beyond the two controllers' box
        ends = np.array([-0.25, left + 0.25])
        cost, value = low + price * (left - ends), top - gain * ends
        axes.plot(cost, value, color=QUIET, linewidth=0.8, linestyle=":", zorder=1)
        axes.annotate(f"score {score:g}", (cost[1], value[1]), xytext=(0, -9), color=PALE, ha="center", **small)
    near_safe = (low + 0.1 * price, bottom + 0.1 * gain)
    axes.annotate("mixing line: score 0", near_safe, xytext=(10, -6), color=INK, **small)
    axes.scatter(low, top, s=120, facecolors="none", edgecolors=INK, marker="*", linewidths=1.1, zorder=4)
    axes.annotate("corner", (low, top), xytext=(-7, 5), textcoords="offset points", fontsize=8, ha="right")


def _limits(axes: Axes, standings: Mapping[str, Any]) -> None:
    """Fit the axes to all means; intervals may extend beyond them."""
    points = [(method["cost_mean"], method["return_mean"]) for method in standings["methods"].values()]
    for method in standings["methods"].values():
        points += [(setting["cost_mean"], setting["return_mean"]) for setting in method.get("sweep", ())]
    points.append((standings["corner"]["cost"], standings["corner"]["return"]))
    points += [(cost, value) for _, value, cost in PUBLISHED.get(standings["world"], ())]
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    margin = 0.12 * np.maximum(high - low, 1e-3)
    axes.set_xlim(low[0] - margin[0], high[0] + margin[0])
    axes.set_ylim(low[1] - margin[1], high[1] + margin[1])


def _labels(axes: Axes, methods: Mapping[str, Any]) -> None:
    """Label every point beside the axes, with a thin line to it, so that labels do not overlap."""
    low, high = axes.get_ylim()
    order = sorted(methods, key=lambda name: methods[name]["return_mean"])
    wanted = [(methods[name]["return_mean"] - low) / (high - low) for name in order]
    for name, place in zip(order, _spread(wanted, gap=0.052), strict=True):
        method = methods[name]
        color, _ = _style(name)
        score = method["corner_score"]
        axes.annotate(
            _wrapped(name) if score is None else f"{_wrapped(name)}  {score:+.2f}",
            (method["cost_mean"], method["return_mean"]),
            xytext=(1.03, place),
            textcoords="axes fraction",
            fontsize=8.5,
            color=_DARKER.get(color, color),
            va="center",
            fontweight="bold" if name in ("paper", "ceiling") else "normal",
            arrowprops={"arrowstyle": "-", "color": color, "alpha": 0.3, "lw": 0.6, "shrinkB": 4, "relpos": (0.0, 0.5)},
            annotation_clip=False,
        )
    axes.text(1.03, 1.03, "method, corner score", transform=axes.transAxes, fontsize=7.5, color=PALE)


def _wrapped(name: str) -> str:
    """Break a long name into lines, so that it leaves room for the axes."""
    return "\n".join(textwrap.wrap(name, LABEL)) or name


def _spread(wanted: Sequence[float], *, gap: float) -> list[float]:
    """Move ascending places apart by at least a gap, as little as possible, within 0 to 1 if they fit.

    >>> [round(place, 2) for place in _spread([0.5, 0.5, 0.9], gap=0.1)]
    [0.45, 0.55, 0.9]
    """
    gap = min(gap, 1.0 / max(len(wanted) - 1, 1))
    groups: list[tuple[float, int]] = []  # (sum of the preferred places of the first member, members)
    for place in wanted:
        total, members = place, 1
        while groups and groups[-1][0] / groups[-1][1] + groups[-1][1] * gap > total / members:
            before, count = groups.pop()
            total, members = before + total - members * count * gap, members + count
        groups.append((total, members))
    places = [total / members + index * gap for total, members in groups for index in range(members)]
    last = len(places) - 1
    return [min(max(place, i * gap), 1.0 - (last - i) * gap) for i, place in enumerate(places)]


def _legend(axes: Axes, methods: Mapping[str, Any], *, published: bool) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=color, marker=marker, linestyle="none", markersize=6, label=family)
        for family, (color, marker, _) in _FAMILIES.items()
        if family in map(_family, methods)
    ]
    if published:
        ring: dict[str, Any] = {"markerfacecolor": "none", "color": PALE}
        handles.append(Line2D([], [], marker="o", linestyle="none", markersize=6, label="published", **ring))
    axes.figure.legend(
        handles=handles, loc="outside lower center", ncols=3, fontsize=8, frameon=False, handletextpad=0.2
    )
