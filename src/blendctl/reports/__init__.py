"""Reports of runs: one self-contained page with a replay, the same page live, and the figures."""

from blendctl.reports.build import build_report

__all__ = ["build_report"]
