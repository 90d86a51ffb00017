"""Measure every promise at its full size, print one table and write verify.json: `make verify`.

`python tests/verify.py WORD...` measures the checks whose names contain a word, and keeps the figures of the others.
"""

from __future__ import annotations

import json
import sys
from itertools import chain
from pathlib import Path
from typing import Any

from blendctl.cli.output import table_console, write_json
from blendctl.cli.selftest_table import figures_table, results_json
from blendctl.selftest import CHECKS
from blendctl.selftest.checks import Check, run_checks

FILE = Path("verify.json")
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
PASSED = {"exit code": 0.0}
# Loaders, kernels and properties, with kernels that check the bounds of their arrays.
KERNELS = (
    "tests/bandit", "tests/controllers", "tests/hostile", "tests/envs/test_batch.py", "tests/envs/test_world_state.py",
)  # fmt: skip
REPOSITORY = (
    Check(
        "mutants of pareto, bandit and blender",
        {"survivors, %": 10.0, "survivors without a reason": 0.0},
        full=80,
        command=(sys.executable, "tests/mutation.py", "--mutants", "{}"),
    ),
    Check("slow tests of exports", PASSED, command=(*PYTEST, "-m", "slow", "tests/export")),
    Check("other slow tests", PASSED, command=(*PYTEST, "-m", "slow", "tests", "--ignore", "tests/export")),
    Check(
        "tests with bounds-checked kernels",
        PASSED,
        command=(*PYTEST, "-m", "not slow", *KERNELS),
        environment={"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": "out/numba-boundscheck"},
    ),
    Check(
        "latency under fire: steps with hostile peers",
        {"excess of p99.9, ms": 3.0, "without an action": 0.0},
        full=100_000,
        command=(sys.executable, "bench/hostile.py", "--steps", "{}"),
        timed=True,
    ),
)


def _with_earlier(results: dict[str, Any]) -> dict[str, Any]:
    """Add the figures of the checks that were not measured again, in the order of the checks."""
    order = [check.name for check in (*CHECKS, *REPOSITORY)]
    new = {figure["check"] for figure in results["figures"]}
    earlier = json.loads(FILE.read_text())["figures"] if FILE.is_file() else []
    figures = [*results["figures"], *(one for one in earlier if one["check"] not in new and one["check"] in order)]
    figures.sort(key=lambda figure: order.index(figure["check"]))
    return results | {"passed": all(figure["passed"] for figure in figures), "figures": figures}


def main(wanted: list[str]) -> int:
    """Run the checks whose names contain one of the words, all without words; return the exit code."""
    every = [c for c in (*CHECKS, *REPOSITORY) if not wanted or any(word in c.name for word in wanted)]
    together, alone = [c for c in every if not c.timed], [c for c in every if c.timed]
    figures = []
    measured = chain(run_checks(together, full=True, workers=2), run_checks(alone, full=True))
    for number, results in enumerate(measured, 1):
        figures += results
        verdict = "pass" if all(one.passed for one in results) else "FAIL"
        print(f"{number}/{len(every)} {results[0].check}: {verdict}, {results[0].seconds:.0f} s", flush=True)
    table_console(None).print(figures_table(figures))
    write_json(FILE, _with_earlier(results_json(figures)) if wanted else results_json(figures))
    return 0 if all(figure.passed for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
