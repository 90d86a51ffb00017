"""Switches: the methods of `blendctl compare` to drive with two controllers, one idea per file."""

from blendctl.switches.base import RolloutContext, StepInput, Switch, open_worlds, switch_seed
from blendctl.switches.methods import METHODS, Method, find_method

__all__ = ["StepInput", "Switch", "RolloutContext", "open_worlds", "switch_seed", "METHODS", "Method", "find_method"]
