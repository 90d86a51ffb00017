"""Checks that measure blendctl's guarantees on this machine: `blendctl selftest` and `make verify` run them."""

from __future__ import annotations

from blendctl.selftest import blender_checks, crash_checks, file_checks, learner_checks
from blendctl.selftest.checks import Check

CHECKS: tuple[Check, ...] = (
    *learner_checks.CHECKS,
    *blender_checks.CHECKS,
    *file_checks.CHECKS,
    *crash_checks.CHECKS,
)
