"""Reports: figures, and pages that stand for themselves."""
