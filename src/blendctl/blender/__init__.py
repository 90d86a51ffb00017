"""The blender: drive with several controllers, survive their failures, and explain every switch."""

from blendctl.blender.batch import BatchRecord, BlenderBatch
from blendctl.blender.bench import BenchRules
from blendctl.blender.core import Blender
from blendctl.blender.counterfactual import correct_choices
from blendctl.blender.counts import Counts
from blendctl.blender.env import BlendEnv
from blendctl.blender.explain import explain_record, read_record
from blendctl.blender.guard import Guard
from blendctl.blender.handover import CrossFade, SlewLimit
from blendctl.blender.objectives import Objectives
from blendctl.blender.prometheus import prometheus_text
from blendctl.blender.record import SAFE_ACTION, Record, StageDecision
from blendctl.blender.recorder import Recorder
from blendctl.blender.run_loop import run

__all__ = [
    "Blender",
    "Record",
    "StageDecision",
    "run",
    "BlenderBatch",
    "BatchRecord",
    "BlendEnv",
    "Recorder",
    "read_record",
    "explain_record",
    "BenchRules",
    "SlewLimit",
    "CrossFade",
    "Guard",
    "Counts",
    "Objectives",
    "prometheus_text",
    "SAFE_ACTION",
    "correct_choices",
]
