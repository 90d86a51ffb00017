"""Open a controller by its specification: a zoo name, file, address, classical name or Python object."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from blendctl.controllers.adapters import OnnxController, ScriptController, as_controller
from blendctl.controllers.base import Controller
from blendctl.controllers.checkpoints import read_omnisafe, read_sb3
from blendctl.controllers.classical import CLASSICAL, classical
from blendctl.controllers.remote import RemoteController
from blendctl.controllers.zoo import load
from blendctl.errors import FileFormatError, InputError
from blendctl.user_code import load_object

TOKEN_VARIABLE = "BLENDCTL_TOKEN"  # environment variable with the token of remote controllers
TRUST_VARIABLE = "BLENDCTL_TRUST_CODE"  # environment variable that is "1" if files may run code


def open_controller(
    spec: str, *, world: str | None = None, trust_code: bool = False, deadline: float | None = None
) -> Controller:
    """Open a controller.

    spec: a zoo name ("PointGoal1/ppo"), a run directory, a file (.safetensors, .onnx, .pt of OmniSafe or TorchScript,
    .zip of stable-baselines3), an address ("tcp://host:port", "unix:/path"; its token is read from the environment
    variable BLENDCTL_TOKEN), a classical controller ("pure-pursuit"), or Python ("module:object", "file.py:object").
    trust_code: run a TorchScript file, which is a program; the variable BLENDCTL_TRUST_CODE=1 allows it too.
    deadline: seconds that a call of a remote controller may take, see `RemoteController`.
    """
    if spec.startswith(("tcp://", "unix:")):
        limit = {} if deadline is None else {"deadline": deadline}
        return RemoteController(spec, token=os.environ.get(TOKEN_VARIABLE, ""), **limit)
    if spec in CLASSICAL:
        if world is None:
            raise InputError(f'the classical controller "{spec}" needs a world')
        return classical(spec, world)
    path = Path(spec)
    if not path.is_file() and ":" in spec:
        return _from_python(spec)
    match path.suffix:
        case ".onnx":
            return OnnxController(path)
        case ".zip":
            return read_sb3(path)
        case ".pt" | ".pth":
            if _is_torchscript(path):
                return ScriptController(path, trust_code=trust_code or code_is_trusted())
            return read_omnisafe(path)
    return load(spec)


def code_is_trusted() -> bool:
    """Return whether the user allowed files to run code, by `--trust-code` or by the environment."""
    return os.environ.get(TRUST_VARIABLE) == "1"


def needs_naming(spec: str) -> bool:
    """Return whether only a user may name this controller: opening it would run code, or send a token to an address.

    >>> needs_naming("PointGoal1/ppo"), needs_naming("mine.py:drive"), needs_naming("tcp://127.0.0.1:7001")
    (False, True, True)
    """
    if spec.startswith(("tcp://", "unix:")) or (":" in spec and not Path(spec).is_file()):
        return True
    return Path(spec).suffix in (".pt", ".pth") and _is_torchscript(Path(spec))


def display_name(spec: str) -> str:
    """Return a short name for tables and captions.

    >>> display_name("PointGoal1/ppo-lagrangian"), display_name("runs/fast.onnx"), display_name("mine.py:brake")
    ('ppo-lagrangian', 'fast', 'brake')
    """
    if spec.startswith(("tcp://", "unix:")):
        return "remote"
    last = spec.rsplit(":", 1)[-1].rstrip("/").rsplit("/", 1)[-1]
    return Path(last).stem or spec


def _is_torchscript(path: Path) -> bool:
    if not path.is_file():
        raise FileFormatError(f"{path} is not a file")
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith("constants.pkl") for name in archive.namelist())
    except zipfile.BadZipFile:
        return False


def _from_python(spec: str) -> Controller:
    """Import "module:object" or "file.py:object"; this executes the user's code."""
    controller = load_object(spec)
    if isinstance(controller, type):
        try:
            controller = controller()
        except Exception as error:
            raise InputError(f'"{spec}" is a class; calling it raised {type(error).__name__}: {error}') from error
    return as_controller(controller)
