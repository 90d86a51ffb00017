"""Blend controllers with a multi-objective bandit that bounds its own loss."""

from blendctl import errors, pareto
from blendctl._version import __version__
from blendctl.bandit import BanditBatch, BlendingBandit, Decision, DecisionBatch

__all__ = ["BlendingBandit", "BanditBatch", "Decision", "DecisionBatch", "pareto", "errors", "__version__"]
