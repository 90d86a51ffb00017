"""Fit a blend to an environment and its controllers: one call from two black boxes to a verdict."""

from blendctl.fitting.fit_files import FitResult
from blendctl.fitting.pipeline import fit

__all__ = ["fit", "FitResult"]
