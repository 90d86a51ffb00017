"""What a person looks at: one self-contained page per run, with a replay; the same page live."""

from blendctl.reports.building import build_report

__all__ = ["build_report"]
