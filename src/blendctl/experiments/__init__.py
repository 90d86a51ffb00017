"""Experiments: protocols cut into units, engines that run them, results as Parquet."""

from blendctl.experiments.engines import ENGINES, UnitsFailed, run_units
from blendctl.experiments.store import Store
from blendctl.experiments.units import Result, Unit, unit_kind

__all__ = ["Unit", "Result", "unit_kind", "Store", "run_units", "UnitsFailed", "ENGINES"]
