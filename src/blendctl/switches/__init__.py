"""Rivals: every way to drive with two controllers that `blendctl compare` knows, one idea per file."""

from blendctl.switches.base import RolloutContext, StepInput, Switch
from blendctl.switches.driving import Episodes, drive, open_worlds
from blendctl.switches.methods import METHODS, Method, find_method

__all__ = [
    "StepInput",
    "Switch",
    "RolloutContext",
    "Episodes",
    "drive",
    "open_worlds",
    "METHODS",
    "Method",
    "find_method",
]
