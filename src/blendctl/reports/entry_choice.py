"""Choose the entries of the observation that a page plots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from blendctl.envs.pose_recorder import ENTRY
from blendctl.errors import InputError, did_you_mean
from blendctl.reports.run_data import PoseTable

SHOWN = 3  # entries, unless some are named
BLOCKS = 200  # blocks of rows whose means are compared: a plot cannot show faster changes


def choose_entries(
    poses: PoseTable | None, episodes: Sequence[int], wanted: Sequence[str] | None
) -> list[tuple[str, str]]:
    """Return labels and columns of the entries to plot: the wanted ones, or those that vary most within episodes.

    wanted: names or numbers of entries, or ENTRY=LABEL for another label.
    """
    names = [] if poses is None else poses.entries
    if wanted is None:
        if poses is None or not names:
            return []
        rows = np.isin(poses.columns["episode"], episodes)
        spreads = np.array([_spread(poses.columns[f"{ENTRY}{at}"][rows]) for at in range(len(names))])
        most = np.argsort(-spreads, kind="stable")[:SHOWN]
        return [(_label(names[at]), f"{ENTRY}{at}") for at in sorted(most) if spreads[at] > 0]
    if not names and wanted:
        raise InputError("the run has no entries of observations; `blend --out` records those of other environments")
    chosen = []
    for text in wanted:
        name, _, label = (text, "", "") if text in names else text.partition("=")
        if name not in names:
            raise InputError(f'the observation has no entry "{name}"; {did_you_mean(name, names)}')
        chosen.append((label or _label(name), f"{ENTRY}{names.index(name)}"))
    return chosen


def _spread(values: NDArray[np.float32]) -> float:
    """Return the standard deviation of the means of blocks of rows."""
    known = values[np.isfinite(values)].astype(np.float64)
    size = max(1, len(known) // BLOCKS)
    means = known[: len(known) // size * size].reshape(-1, size).mean(axis=1)
    return float(means.std()) if len(means) else 0.0


def _label(name: str) -> str:
    return f"observation[{name}]" if name[:1].isdigit() else name
