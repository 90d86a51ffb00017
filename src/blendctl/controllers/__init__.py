"""What drives: the Controller protocol, networks that run without torch, the zoo of trained controllers."""

from blendctl.controllers.base import Controller, Critic, Predictor
from blendctl.controllers.encoding import Ahead, Encoding, Lidar, identity_encoding
from blendctl.controllers.library import load, zoo_names
from blendctl.controllers.network import ContextNetwork, NetworkController
from blendctl.controllers.saved import read_controller, write_controller

__all__ = [
    "Controller",
    "Critic",
    "Predictor",
    "load",
    "zoo_names",
    "NetworkController",
    "ContextNetwork",
    "read_controller",
    "write_controller",
    "Encoding",
    "Lidar",
    "Ahead",
    "identity_encoding",
]
