"""The learner: a multi-objective bandit on arrays, without any knowledge of robots."""

from blendctl.bandit.batch import BanditBatch
from blendctl.bandit.decision import Decision, DecisionBatch
from blendctl.bandit.learner import BlendingBandit
from blendctl.bandit.options import Options

__all__ = ["BlendingBandit", "BanditBatch", "Decision", "DecisionBatch", "Options"]
