"""Read the directory that `blendctl blend` or `fit` wrote: controllers, settings, and the learner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blendctl.blender.guard import Guard
from blendctl.controllers import Controller
from blendctl.controllers.adapters import as_controller
from blendctl.controllers.lookahead_network import controller_digest
from blendctl.controllers.number_checks import check_whole
from blendctl.controllers.resolve import needs_naming, open_controller
from blendctl.errors import FileFormatError, InputError
from blendctl.features import Twin
from blendctl.features.flattening import Flattening
from blendctl.features.registry import FEATURES
from blendctl.file_reading import read_json_object, reading

BLEND_FILES = ("bandit.safetensors", "blend.safetensors")
# Arguments of `Blender` that run.json holds; the learner's file has its own options (rule, noise, scales).
SETTINGS = (
    "objectives", "features", "hold", "dwell", "context", "frozen", "fallback", "stochastic", "guard", "handover",
)  # fmt: skip

MOST_STEPS = 10**9  # of an episode
Driver = Controller | Callable[..., Any]


@dataclass(frozen=True)
class BlendDir:
    """Content of the directory of a saved blend."""

    path: Path
    file: Path  # the learner
    world: str
    specs: tuple[str, ...]  # of the controllers, as `open_controller` takes them
    names: tuple[str, ...]
    digests: tuple[str, ...]  # of the controllers' weights; empty if they are not known
    steps: int | None  # maximum steps per episode, None: the world's limit
    settings: dict[str, Any]  # arguments of `Blender`
    environment: dict[str, Any]  # arguments, cost and episode_steps if it is not a world of blendctl; may be empty

    def open_controllers(self, named: Sequence[str | Driver] | None = None) -> list[Controller]:
        """Open its controllers, or the `named` ones; raise InputError if they are not those of the blend.

        Nothing that a file names may run code: Python, TorchScript and addresses must be named again.
        """
        unnamed = [spec for spec in self.specs if needs_naming(spec)] if named is None else []
        if unnamed:
            raise InputError(
                f"{self.path} has controllers that run code or are remote: {', '.join(unnamed)}; name all of its "
                f"controllers again, in this order: {' '.join(self.specs)}"
            )
        chosen = self.specs if named is None else named
        if len(chosen) != len(self.specs):
            raise InputError(f"the blend in {self.path} has {len(self.specs)} controllers, actually: {len(chosen)}")
        opened = [
            open_controller(driver, world=self.world) if isinstance(driver, str) else as_controller(driver)
            for driver in chosen
        ]
        for name, before, controller in zip(self.names, self.digests, opened, strict=False):
            if before != controller_digest(controller):
                raise InputError(
                    f'the controller "{name}" is another one than when {self.path} was written; run the blend again'
                )
        return opened


def read_blend_dir(path: str | Path) -> BlendDir:
    """Read the directory of a blend; raise if it is not one, or if its run did not finish."""
    folder = Path(path)
    about = _read_run_file(folder)
    file = next((folder / name for name in BLEND_FILES if (folder / name).is_file()), None)
    if file is None:
        raise FileFormatError(f"{folder} has no {BLEND_FILES[0]}: its run did not finish; run the blend again")
    with reading(folder / "run.json", "the description of a blend"):
        options = about["options"]
        settings = {name: options[name] for name in SETTINGS if name in options}
        for name, value in settings.items():
            _check_setting(name, value)
        settings["features"] = _restore_feature(settings.get("features"), folder)
        if settings.get("guard") is not None:
            settings["guard"] = Guard(**settings["guard"])
        steps = about.get("steps")
        return BlendDir(
            path=folder,
            file=file,
            world=str(about["world"]),
            specs=tuple(map(str, about["controllers"])),
            names=tuple(map(str, about["names"])),
            digests=tuple(map(str, about.get("digests", ()))),
            steps=None if steps is None else check_whole(steps, "steps", low=1, high=MOST_STEPS),
            settings=settings,
            environment=_environment(about.get("environment") or {}),
        )


def _read_run_file(folder: Path) -> dict[str, Any]:
    path = folder / "run.json"
    if not path.is_file():
        raise InputError(f"{folder} is not the directory of a blend: expected what `blendctl blend` or `fit` wrote")
    about = read_json_object(path)
    if about.get("experiment") not in ("blend", "fit"):
        raise InputError(f"{folder} is not the directory of a blend: its run.json is of another experiment")
    return about


def _check_setting(name: str, value: Any) -> None:
    """Raise ValueError unless a setting has a type that `Blender` takes; `Blender` checks the value."""
    if isinstance(value, list) and name in ("objectives", "features", "fallback"):
        allowed = all(isinstance(word, str | dict) for word in value)
    else:
        kinds = {
            "features": str | dict | None, "hold": int | None, "dwell": int, "context": str, "frozen": bool,
            "fallback": str | None, "stochastic": bool, "handover": str | dict | None, "guard": dict | None,
        }  # fmt: skip
        allowed = name in kinds and isinstance(value, kinds[name])
    if not allowed:
        raise ValueError(f"{name} is {str(value)[:100]!r}")


def _environment(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments, cost and episode_steps of an environment, each checked, without its name."""
    chosen = {key: value for key, value in dict(described).items() if key != "name"}
    if unknown := chosen.keys() - {"arguments", "cost", "episode_steps"}:
        raise ValueError(f"its environment has unknown entries: {', '.join(map(repr, sorted(unknown)))[:100]}")
    if not isinstance(chosen.get("arguments", {}), dict) or not isinstance(chosen.get("cost"), str | None):
        raise ValueError("the arguments of its environment must be an object, and its cost a text")
    if chosen.get("episode_steps") is not None:
        check_whole(chosen["episode_steps"], "episode_steps", low=1, high=MOST_STEPS)
    return chosen


def _restore_feature(declared: Any, folder: Path) -> Any:
    """Return a feature from its description in run.json: a name, None, or dataclasses with their kind.

    The file of networks may be in the directory of the blend.
    """
    if not isinstance(declared, dict):
        return declared
    kinds = {kind.__name__: kind for kind in (*FEATURES.values(), Twin, Flattening)}
    arguments = {name: _restore_feature(value, folder) for name, value in declared.items()}
    network = arguments.get("network")
    if isinstance(network, str) and Path(network).name == network and (folder / network).is_file():
        arguments["network"] = folder / network
    return kinds[arguments.pop("kind")](**arguments)
