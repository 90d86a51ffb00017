"""The files of a fit: blend, networks, card, page, and run.json, from which `Blender.load` makes the blender."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blendctl.atomic import write_atomically
from blendctl.blender import Blender, Guard
from blendctl.controllers import LookAheadNetwork, write_lookahead
from blendctl.controllers.card import versions
from blendctl.controllers.lookahead_file import LOOKAHEAD_FILE
from blendctl.controllers.lookahead_network import controller_digest
from blendctl.errors import InputError
from blendctl.fitting.fit_work import UNFINISHED
from blendctl.reports.fit_page import fit_html

BLEND_FILE, CARD_FILE, PAGE_FILE, RUN_FILE = "blend.safetensors", "card.json", "report.html", "run.json"
FILES = (BLEND_FILE, CARD_FILE, PAGE_FILE, RUN_FILE, LOOKAHEAD_FILE)


@dataclass(frozen=True)
class FitResult:
    """A finished fit: its directory and its card."""

    directory: Path
    card: dict[str, Any]

    @property
    def verdict(self) -> str:
        """Return "blend", the name of a controller, or "no difference"."""
        return str(self.card["verdict"])

    @property
    def corner_score(self) -> float | None:
        """Return the corner score of the blend on the test episodes; None without a corner."""
        return self.card["corner_score"]  # type: ignore[no-any-return]  # as `judge` wrote it


def check_directory(directory: Path, *, replace: bool) -> None:
    """Raise InputError if the directory holds a finished run that must not be replaced."""
    old = [name for name in FILES if (directory / name).exists()]
    if old and not replace and not (directory / UNFINISHED).exists():
        raise InputError(f"{directory} holds an earlier run ({old[0]}); use another directory, or replace it")


def write_fit(
    directory: Path, card: dict[str, Any], blender: Blender, network: LookAheadNetwork | None, *, guard: Guard
) -> FitResult:
    """Write all files in place of earlier ones; card.json last, so that a directory with a card is complete."""
    feature: Any = blender.declared_feature
    for name in FILES:
        (directory / name).unlink(missing_ok=True)
    if network is not None:
        measured = {"dial": card["dial"], "episode_steps": max(round(card["episode_length"]), 1)}
        network = dataclasses.replace(network, card=network.card | measured)
        write_lookahead(network, directory / LOOKAHEAD_FILE)
        feature = dataclasses.replace(feature, network=LOOKAHEAD_FILE)
    packages = ("numpy", "gymnasium", *(("torch",) if network is not None else ()))
    card = card | {"versions": versions(*packages)}
    about = {
        "experiment": "fit",
        "world": card["environment"],
        "controllers": card["controllers"],
        "names": card["names"],
        "digests": [controller_digest(controller) for controller in blender.controllers],
        "steps": card["episode_steps"],
        "environment": {
            "name": card["environment"],
            "arguments": card["env_args"],
            "cost": card["cost"],
            "episode_steps": card["episode_steps"],
        },
        "seed": card["seed"],
        "command": card["command"],
        "versions": card["versions"],
        "options": {
            "objectives": card["objectives"],
            "features": plain(feature),
            "hold": blender.hold,
            "dwell": blender.dwell,
            "frozen": blender.frozen,
            "fallback": card["fallback"],
            "guard": guard.to_dict(),
        },
    }
    write_atomically(directory / RUN_FILE, _json(about))
    blender.save(directory / BLEND_FILE)
    write_atomically(directory / PAGE_FILE, fit_html(card).encode())
    write_atomically(directory / CARD_FILE, _json(card))
    return FitResult(directory, card)


def plain(value: Any) -> Any:
    """Return a feature as JSON data, as `Blender.load` reads it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"kind": type(value).__name__} | {
            field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    return list(value) if isinstance(value, tuple) else value


def _json(data: Any) -> bytes:
    return (json.dumps(data, indent=2, default=float) + "\n").encode()
