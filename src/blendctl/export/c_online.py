"""Write where the online model of a saved blend stopped."""

from __future__ import annotations

from typing import Any

import numpy as np

from blendctl.export.c_features import FeatureParts
from blendctl.export.c_text import array, number


def online_start(features: FeatureParts) -> tuple[str, list[str]]:
    """Return tables and lines that start the online model where it was saved."""
    if features.online_options is None:
        return "", []
    model = features.online
    units = _units(model) if features.online_options.normalize else ("", [])
    if not model.basis:
        diagonal = number(1.0 / features.online_options.regularization)
        start = ["    for (i = 0; i < BASIS; i++)", f"        s->online.spread[i][i] = D({diagonal});"]
        return units[0], units[1] + start
    tables = units[0] + array("initial_weights", model.weights, kind="double")
    # It is symmetric to the bit: the upper triangle is enough.
    upper = model.spread[np.triu_indices(model.basis)]
    tables += array("initial_spread", upper, kind="double")
    return tables, units[1] + [
        "    for (i = 0; i < OBJECTIVES; i++)",
        "        for (j = 0; j < BASIS; j++)",
        "            s->online.weights[i][j] = initial_weights[i][j];",
        "    at = 0;",
        "    for (i = 0; i < BASIS; i++)",
        "        for (j = i; j < BASIS; j++)",
        "            s->online.spread[i][j] = s->online.spread[j][i] = initial_spread[at++];",
    ]


def _units(model: Any) -> tuple[str, list[str]]:
    """Return tables and lines that start the units of the online model."""
    if not model.basis:
        return "", ["    for (i = 0; i < BLEND_OBSERVATION_SIZE; i++)", "        s->online.inputs[1][i] = 1.0;"]
    tables = array("initial_unit", model.unit) + array("initial_inputs", model.inputs)
    lines = [
        f"    s->online.count = {model.count};",
        "    for (i = 0; i < OBJECTIVES; i++)",
        "        s->online.unit[i] = initial_unit[i];",
        "    for (i = 0; i < 4; i++)",
        "        for (j = 0; j < BLEND_OBSERVATION_SIZE; j++)",
        "            s->online.inputs[i][j] = initial_inputs[i][j];",
    ]
    early = model.state()["early"]
    if len(early):
        tables += array("initial_early", early)
        lines += [
            f"    s->online.waiting = {len(early)};",
            f"    for (i = 0; i < {len(early)}; i++)",
            f"        for (j = 0; j < {early.shape[1]}; j++)",
            "            s->online.early[i][j] = initial_early[i][j];",
        ]
    return tables, lines
