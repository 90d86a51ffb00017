"""Train the context networks: predict reward and cost of an action, on states that blending visits."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from blendctl.controllers import ContextNetwork, NetworkController
from blendctl.errors import InputError
from blendctl.switches.base import open_worlds
from blendctl.training.context_config import ContextConfig
from blendctl.training.context_data import Drives, collect
from blendctl.training.context_evaluation import difference_accuracy, longer_r_squared, next_step_r_squared
from blendctl.training.context_fit import context_dataset, fit_next_step
from blendctl.training.context_limit import observation_limit
from blendctl.training.context_longer import fit_longer
from blendctl.training.encodings import world_encodings

LONG_TURN = 50  # steps: the shortest of the long turns
NOTE = (
    "R² over episodes that no network was trained on. Blending: the controllers of this world take turns of random "
    "length; alone: this controller drives. Longer horizons count windows that this controller drove."
)


def train_contexts(
    controllers: Sequence[NetworkController],
    *,
    world: str,
    config: ContextConfig,
    on_progress: Callable[[str, float], None] = lambda stage, share: None,
) -> list[NetworkController]:
    """Return the controllers of one world with context networks, and the held-out R² in their cards.

    The network of the next step is the same for all controllers: the worlds evaluate the actions of all of them from
    the same states, and it learns levels and differences. For controllers that were trained in different sets, only the
    levels are known. With `horizons=(1,)` the controllers keep their networks of longer horizons.
    """
    torch.set_num_threads(config.threads)
    encodings = world_encodings(world)
    for controller in controllers:
        if controller.observation_size != encodings.context.observation_size:
            raise InputError(
                f"controller {controller.name!r} takes observations of {controller.observation_size}, {world} has "
                f"{encodings.context.observation_size}; all controllers must belong to the same world"
            )

    def drive(stage: str, drivers: Sequence[NetworkController], *, steps: int, seed: int) -> Drives:
        """Collect about `steps` transitions in new worlds."""
        each = -(-steps // config.worlds)

        def on_step(done: int) -> None:
            if done % 50 == 0:
                on_progress(stage, done / each)

        with closing(open_worlds(world, config.worlds, threads=config.threads)) as worlds:
            longest, first = max(config.horizons[-1], LONG_TURN), config.seed + seed
            return collect(
                worlds, drivers, steps=each, seed=first, longest=longest, counterfactual=True, on_step=on_step
            )

    dataset = functools.partial(context_dataset, encodings=encodings, config=config)
    learned = dataset(drive("driving in turns", controllers, steps=config.steps, seed=0))
    on_share = functools.partial(on_progress, "learning the next step")
    shared = fit_next_step(learned, encodings=encodings, config=config, on_progress=on_share)
    held_out = drive("held out: in turns", controllers, steps=config.steps // 5, seed=10_000_000)
    blending = dataset(held_out)
    entry = {"discount": config.discount, "steps": config.steps, "command": _command(controllers, config)}
    note = NOTE
    if len(controllers) > 1:
        difference = difference_accuracy(shared, blending)
        on_share = functools.partial(on_progress, "choosing by the simulator")
        limit = observation_limit(held_out, world=world, seed=config.seed, on_progress=on_share)
        entry |= difference.card_entry() | {"set": [controller.name for controller in controllers]}
        entry["choices_limit"] = None if limit is None else limit.card_entry()
        note += " " + difference.note()
    out = []
    for index, controller in enumerate(controllers):
        drove = drive(
            f"held out: {controller.name} alone",
            [controller],
            steps=config.steps // 10,
            seed=20_000_000 + 100_000 * index,
        )
        alone = dataset(drove)
        r2 = {"blending": next_step_r_squared(shared, blending), "alone": next_step_r_squared(shared, alone)}
        rows = _rows((1,), r2)
        longer, own = _longer(controller), dict(entry)
        if len(config.horizons) > 1:
            on_share = functools.partial(on_progress, f"learning {controller.name}, longer horizons")
            longer = fit_longer(learned, driver=index, encodings=encodings, config=config, on_progress=on_share)
            r2 = {
                "blending": longer_r_squared(longer, blending, driver=index),
                "alone": longer_r_squared(longer, alone, driver=0),
            }
            rows += _rows(longer.horizons, r2)
        elif longer is not None:
            before = controller.card.get("context") or {}
            rows += [row for row in before.get("r2", ()) if row["horizon"] != 1]
            own["longer_command"] = before.get("longer_command", before.get("command"))
        card = controller.card | {"context": {"r2": rows, **own, "note": note}}
        out.append(replace(controller, context=shared, longer=longer, card=card))
    return out


def _longer(controller: NetworkController) -> ContextNetwork | None:
    """Return the network of longer horizons that a controller has."""
    context = controller.context
    if controller.longer is not None or context is None or context.horizons == (1,):
        return controller.longer
    return context.select(tuple(horizon for horizon in context.horizons if horizon != 1))


def _rows(horizons: tuple[int, ...], r2: Mapping[str, NDArray[np.float64]]) -> list[dict[str, Any]]:
    """Return the R² (2 * horizons,) of reward and cost by the states as rows of a card."""
    return [
        {"horizon": horizon}
        | {
            f"{target}_{states}": round(float(values[2 * k + offset]), 4)
            for states, values in r2.items()
            for offset, target in enumerate(("reward", "cost"))
        }
        for k, horizon in enumerate(horizons)
    ]


def _command(controllers: Sequence[NetworkController], config: ContextConfig) -> str:
    """Return the command that trains these networks again."""
    words = ["blendctl train-context", *(controller.name for controller in controllers)]
    for field in fields(ContextConfig):
        value: Any = getattr(config, field.name)
        if value != field.default and field.name != "threads":
            shown = ",".join(map(str, value)) if isinstance(value, tuple) else value
            words.append(f"--{field.name.replace('_', '-')} {shown}")
    return " ".join(words)
