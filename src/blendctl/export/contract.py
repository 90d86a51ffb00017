"""Write contract.json: what an exported blend takes and returns, what it is made of, and how to check it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from blendctl.bandit.rules import describe_rule
from blendctl.controllers.card import versions
from blendctl.controllers.lookahead_network import controller_digest
from blendctl.export.spec import BlendSpec

VERSION = 1


def contract_bytes(spec: BlendSpec, *, files: str, limits: dict[str, Any], weights: dict[str, str]) -> bytes:
    """Return the contract as JSON; its SHA-256 identifies the export."""
    options, golden = spec.options, spec.golden
    scales = [1.0] * options.n_objectives if options.scales is None else list(options.scales)
    interface = dict(spec.interface)
    contract = {
        "contract": VERSION,
        "format": files,
        "world": interface.pop("world", None),
        "control_period": interface.pop("control_period", None),  # s
        "observation": {"size": spec.observation_size, "entries": interface.pop("observation", None)},
        "action": {"size": spec.action_size, "entries": interface.pop("action", None)},
        "objectives": [
            {"name": name, "scale": scale, "maximised": True}
            for name, scale in zip(spec.objectives, scales, strict=True)
        ],
        "controllers": [
            {"arm": arm, "name": name, "digest": controller_digest(controller)}
            for arm, (name, controller) in enumerate(zip(spec.names, spec.controllers, strict=True))
        ],
        "actions_are": "means" if spec.noise is None else "samples",
        "features": interface.pop("features", type(spec.feature).__name__),
        "rule": describe_rule(options.made_rule),
        "hold": spec.hold,
        "dwell": spec.dwell,
        "frozen": spec.frozen,
        "fallback": [spec.names[arm] for arm in spec.fallback],
        "safe_action": {
            "declared": spec.safe_action is not None,
            "action": (np.zeros(spec.action_size) if spec.safe_action is None else spec.safe_action).tolist(),
        },
        "handover": {
            "slew_limits": None if spec.slew_limits is None else spec.slew_limits.tolist(),
            "fade_steps": spec.fade_steps,
        },
        "guard": spec.guard is not None,
        "drift_alarm": {"applies": not spec.bound.bootstraps, "false_alarm": spec.drift.false_alarm},
        "learner": {
            "features": options.n_features,
            "updates": int(spec.learner.state[0]),
            "digest": hashlib.sha256(spec.learner.state.tobytes() + spec.learner.rng.tobytes()).hexdigest(),
        },
        "weights": weights,
        "limits": limits,
        "versions": versions("numpy", "numba"),
        "golden": {
            "observations": golden.observations.tolist(),
            "feedback": golden.feedback.tolist(),
            "arms": golden.arms.tolist(),
            "actions": golden.actions.tolist(),
        },
    }
    return (json.dumps(contract | interface, indent=1, allow_nan=False) + "\n").encode()
