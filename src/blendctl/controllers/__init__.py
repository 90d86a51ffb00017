"""Controllers: the protocol, networks that run without torch, the zoo, adapters for models of other libraries."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from blendctl.controllers.adapters import OnnxController, ScriptController, as_controller
from blendctl.controllers.base import Controller, Critic, Predictor
from blendctl.controllers.checkpoints import read_omnisafe, read_sb3
from blendctl.controllers.controller_file import read_controller, write_controller
from blendctl.controllers.encoding import Encoding, Lidar, MarginAhead, identity_encoding
from blendctl.controllers.lookahead_file import read_lookahead, write_lookahead
from blendctl.controllers.lookahead_network import Foresight, LookAheadNetwork
from blendctl.controllers.network import ContextNetwork, NetworkController
from blendctl.controllers.remote import RemoteController
from blendctl.controllers.server import ControllerServer
from blendctl.controllers.zoo import find_lookahead, load, zoo_names

if TYPE_CHECKING:
    from blendctl.controllers.classical import (
        DynamicWindow,
        HeadingPID,
        PotentialField,
        PurePursuit,
        Push,
        Stop,
        VectorFieldHistogram,
    )
    from blendctl.controllers.resolve import open_controller

__all__ = [
    "Controller",
    "Critic",
    "Predictor",
    "load",
    "zoo_names",
    "open_controller",
    "as_controller",
    "NetworkController",
    "ContextNetwork",
    "LookAheadNetwork",
    "Foresight",
    "find_lookahead",
    "read_lookahead",
    "write_lookahead",
    "PurePursuit",
    "PotentialField",
    "VectorFieldHistogram",
    "DynamicWindow",
    "Push",
    "HeadingPID",
    "Stop",
    "OnnxController",
    "ScriptController",
    "RemoteController",
    "ControllerServer",
    "read_omnisafe",
    "read_sb3",
    "read_controller",
    "write_controller",
    "Encoding",
    "Lidar",
    "MarginAhead",
    "identity_encoding",
]

# Loaded on first use: they import the worlds and MuJoCo.
_LAZY = {"open_controller": "resolve"} | dict.fromkeys(
    ("PurePursuit", "PotentialField", "VectorFieldHistogram", "DynamicWindow", "Push", "HeadingPID", "Stop"),
    "classical",
)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
