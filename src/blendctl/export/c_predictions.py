"""Write the predictions of context networks as C; arms with the same network are computed two at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from blendctl.controllers.network import ContextNetwork, NetworkController
from blendctl.export.c_builder import CBuilder
from blendctl.export.c_text import array, number
from blendctl.export.spec import BlendSpec


@dataclass(frozen=True)
class _Piece:
    """What one network predicts about one arm."""

    arm: int
    network: str  # function
    encoded: str  # function
    context: ContextNetwork
    wanted: tuple[tuple[int, int], ...]  # pair of psi's entries, horizon

    @property
    def group(self) -> tuple[object, ...]:
        """What is equal for arms that share a network."""
        return self.network, self.encoded, tuple(self.context.action_gains), self.context.action_size

    @property
    def outputs(self) -> int:
        return self.context.network.outputs


def write_predictions(builder: CBuilder, spec: BlendSpec, functions: list[str], horizons: tuple[int, ...]) -> list[str]:
    """Return the statements that write psi, one text per arm; append the functions that they call."""
    # Next steps differ by less between controllers than the rounding of single precision changes them.
    builder.double_geometry |= 1 in horizons
    pieces: list[_Piece] = []
    for arm, (name, controller) in enumerate(zip(spec.names, spec.controllers, strict=True)):
        if type(controller) is not NetworkController:
            builder.problems.append(
                f'the predictions of controller "{name}" are Python code; use features="online", or a controller '
                "with context networks (blendctl train-context)"
            )
            continue
        for context in (controller.context, controller.longer):
            wanted = [] if context is None else [(at, h) for at, h in enumerate(horizons) if h in context.horizons]
            if context is not None and wanted:
                pieces.append(_piece(builder, arm, name, context, tuple(wanted)))
    bodies = [""] * len(spec.names)
    groups: dict[tuple[object, ...], list[_Piece]] = {}
    for piece in pieces:
        groups.setdefault(piece.group, []).append(piece)
    for members in groups.values():
        function = _shared(builder, members, functions) if len(members) > 1 else None
        for piece in members:
            bodies[piece.arm] += _body(piece, function)
    return bodies


def _piece(
    builder: CBuilder, arm: int, name: str, context: ContextNetwork, wanted: tuple[tuple[int, int], ...]
) -> _Piece:
    kept = context.select(tuple(h for _, h in wanted))
    network = builder.network(kept.network, f"context of {name}, horizons {', '.join(str(h) for _, h in wanted)}")
    encoded = builder.encoding(kept.encoding, room=kept.action_size * len(kept.action_gains))
    if kept.factors:
        builder.flag("BLEND_TANH_LAYERS")
    columns = np.stack([kept.scale, kept.shift, kept.low, kept.high]).astype(np.float64)
    builder.late_tables.append(array(f"context_{arm}_{wanted[0][1]}", columns, kind="double"))
    return _Piece(arm, network, encoded, kept, wanted)


def _inputs(piece: _Piece, target: str, action: str, indent: str) -> str:
    """Return the loops that write the action behind the encoded observation."""
    size, entries = piece.context.encoding.size, piece.context.action_size
    return "".join(
        f"{indent}for (i = 0; i < {entries}; i++)\n"
        f"{indent}    {target}[{size + k * entries} + i] = (float)limit({action}[i] * D({number(gain)}), -1.0, 1.0);\n"
        for k, gain in enumerate(piece.context.action_gains)
    )


def _body(piece: _Piece, function: str | None) -> str:
    """Return the statements that compute one piece of psi."""
    table = f"context_{piece.arm}_{piece.wanted[0][1]}"
    declared, combined, made = _factored(piece.context.factors)
    outputs = combined + "".join(
        f"            psi[{2 * at + k}] = {'-' * k}limit({made(2 * row + k)} * {table}[0][{2 * row + k}] + "
        f"{table}[1][{2 * row + k}], {table}[2][{2 * row + k}], {table}[3][{2 * row + k}])"
        f"{'' if horizon == 1 else f' / D({horizon})'};\n"
        for row, (at, horizon) in enumerate(piece.wanted)
        for k in (0, 1)
    )
    if function is not None:
        return (
            f"        {{\n            const float *y = {function}(s, w, observation, arm);\n{declared}{outputs}"
            "        }\n"
        )
    return (
        f"        {{\n            float *x = {piece.encoded}(w, observation), y[{piece.outputs}];\n"
        f"{declared}            int i;\n{_inputs(piece, 'x', 'action', ' ' * 12)}"
        f"            {piece.network}(x, y);\n{outputs}        }}\n"
    )


def _factored(factors: int) -> tuple[str, str, Callable[[int], str]]:
    """Return how outputs y are combined: declarations, statements, and the expression of a combined output."""
    if not factors:
        return "", "", lambda output: f"D(y[{output}])"
    return (
        "            double reward;\n            float cost;\n            int k;\n",
        "            reward = D(y[0]);\n"
        f"            for (k = 0; k < {factors}; k++)\n"
        f"                reward += D(y[2 + k]) * D(y[{2 + factors} + k]);\n"
        "            cost = y[1];\n            tanh_units(&cost, 1);\n",
        lambda output: ("reward", "D(cost)")[output],
    )


def _shared(builder: CBuilder, members: list[_Piece], functions: list[str]) -> str:
    """Write the function that computes a network for all its arms, once in a control step; return its name."""
    one, number_of = members[0], len(builder.scratch)
    pair = builder.network_pair(one.network, shared=one.context.encoding.size)
    field, size = f"predicted_{number_of}", one.context.network.sizes[0]
    arms = ", ".join(str(piece.arm) for piece in members)
    builder.scratch.append(
        (f"    int has_{field};\n    float {field}[BLEND_ARMS][{one.outputs}];\n", f"    w->has_{field} = 0;\n")
    )
    builder.scratch_size += 4 + 4 * len(members) * one.outputs + 4 * int(size)
    functions.append(
        f"static const float *{field}(struct blend_state *s, struct work *w, const double *observation, int arm)\n{{\n"
        f"    static const int arms[{len(members)}] = {{{arms}}};\n"
        f"    if (!w->has_{field}) {{\n"
        f"        float *x = {one.encoded}(w, observation), other[{size}];\n"
        "        int i, k, first = -1;\n"
        f"        for (i = 0; i < {one.context.encoding.size}; i++)\n            other[i] = x[i];\n"
        f"        for (k = 0; k < {len(members)}; k++) {{\n"
        "            const double *action = s->proposals[arms[k]];\n"
        "            float *inputs = first < 0 ? x : other;\n"
        "            if (!w->proposed[arms[k]])\n                continue;\n"
        f"{_inputs(one, 'inputs', 'action', ' ' * 12)}"
        "            if (first < 0) {\n                first = arms[k];\n            } else {\n"
        f"                {pair}(x, other, w->{field}[first], w->{field}[arms[k]]);\n"
        "                first = -1;\n            }\n        }\n"
        f"        if (first >= 0)\n            {one.network}(x, w->{field}[first]);\n"
        f"        w->has_{field} = 1;\n    }}\n    return w->{field}[arm];\n}}\n"
    )
    return field
