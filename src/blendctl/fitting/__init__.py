"""Fit a blend to an environment and its controllers, and judge it: one call, for black-box controllers."""

from blendctl.fitting.fit_files import FitResult
from blendctl.fitting.pipeline import fit

__all__ = ["fit", "FitResult"]
