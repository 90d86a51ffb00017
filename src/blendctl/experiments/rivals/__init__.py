"""Rivals: every way to drive with two controllers that `blendctl compare` knows, one idea per file."""

from blendctl.experiments.rivals.base import Frame, Rival, Seat
from blendctl.experiments.rivals.driving import Episodes, drive, open_worlds
from blendctl.experiments.rivals.methods import METHODS, Method, find_method

__all__ = ["Frame", "Rival", "Seat", "Episodes", "drive", "open_worlds", "METHODS", "Method", "find_method"]
