"""Blend controllers with a multi-objective bandit that bounds its own loss."""

from blendctl import errors
from blendctl._version import __version__

__all__ = ["errors", "__version__"]
