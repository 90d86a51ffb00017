"""Make the small sample of recordings that the tests always check: `python subset_recordings.py FULL SAMPLE`.

From each full recording it keeps about twenty steps that show something: an episode's first step, reached goals,
the onset of each cost, contacts whose routines changed, and some plain ones.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

PLAIN, LOOSE, EVENTS = 7, 3, 2  # steps of each sort
LAYOUTS = 20  # seeds of each variant
UNUSED = ("row_sensordata", "row_obj_xyz", "row_agent_mat", "row_mocap_pos", "model_", "step_agent_contacts")


def choose_steps(arrays: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Choose step indices, sorted."""
    hard = ((arrays["step_pairs_agent"] | arrays["step_pairs_other"]) & (4 | 8 | 16 | 32)) != 0
    first = arrays["row_ep_step"][arrays["step_row"]] == 0
    groups = [(np.flatnonzero(first), 1), (np.flatnonzero(arrays["step_goal_met"]), EVENTS)]
    groups += [(np.flatnonzero(column > 0), EVENTS) for column in arrays["step_cost_components"].T[:-1]]
    groups += [(np.flatnonzero(hard), LOOSE), (np.flatnonzero(~hard & ~first), PLAIN)]
    chosen = [rng.choice(steps, size=min(count, steps.size), replace=False) for steps, count in groups]
    return np.unique(np.concatenate(chosen)).astype(np.int64)


def subset(source: Path, target: Path) -> None:
    """Write a recording that holds the chosen steps only, with their rows."""
    with np.load(source, allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files if not key.startswith(UNUSED)}
    meta = json.loads(source.with_suffix(".json").read_text(encoding="utf-8"))
    steps = choose_steps(arrays, np.random.default_rng(0))
    before = arrays["step_row"][steps]
    rows = np.unique(np.concatenate([before, before + 1]))
    kept = np.flatnonzero(np.isin(arrays["goal_met_step"], steps))
    small = {}
    for key, value in arrays.items():
        if key.startswith("goal_met_"):
            small[key] = value[kept]
        elif key.startswith("row_"):
            small[key] = value[rows]
        elif key.startswith("step_"):
            small[key] = value[steps]
        else:
            small[key] = value
    small["step_row"] = np.searchsorted(rows, before).astype(np.int32)
    small["goal_met_step"] = np.searchsorted(steps, small["goal_met_step"]).astype(np.int32)
    np.savez_compressed(target, **small)
    slim = {key: meta[key] for key in ("env_id", "reference", "bodies", "layout_names", "cost_components")}
    target.with_suffix(".json").write_text(json.dumps(slim, indent=1) + "\n", encoding="utf-8")


def subset_layouts(source: Path, target: Path) -> None:
    """Keep the exact layouts of the first seeds of every variant in one file."""
    small = {}
    for path in sorted(source.glob("*.npz")):
        with np.load(path, allow_pickle=False) as file:
            for key in ("exact_seeds", "exact_xy", "exact_rot", "exact_goal_xy", "goal_button"):
                if key in file.files:
                    small[f"{path.stem}.{key}"] = file[key][:LAYOUTS]
    np.savez_compressed(target, **small)


if __name__ == "__main__":
    full, sample = (Path(argument) for argument in sys.argv[1:3])
    subset_layouts(full / "layouts", sample / "layouts.npz")
    for path in sorted(full.glob("Safety*.npz")):
        subset(path, sample / path.name)
