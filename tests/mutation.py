"""Change operators and numbers of pareto, bandit and blender one at a time; count the changes that no test notices.

    python tests/mutation.py [--mutants 80] [--seed 0] [--only pareto]

The mutants are a random sample, which an edit elsewhere does not change. Kernels are left out, because compiling each
of them would take minutes; tests compare them with plain NumPy. The last line of the output is a JSON object: the share
of survivors in percent, how many of them have no reason in REASONS, and the list of them with their reasons.
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# The quickest first. The compiled loop has its own copy of a step, and compiles again after every change.
BLENDER = tuple(
    f"tests/blender/test_{name}.py"
    for name in (
        "ledger",
        "core",
        "faults",
        "bound_check",
        "guard",
        "field_monitor",
        "blend_file",
        "recorder",
        "run_loop",
    )
)
# Module -> the tests that must notice a change in it.
TARGETS = {
    "pareto.py": ("tests/test_pareto.py", "src/blendctl/pareto.py"),
    "bandit/core.py": ("tests/bandit",),
    "bandit/learner.py": ("tests/bandit",),
    "bandit/decision.py": ("tests/bandit", "tests/blender/test_core.py"),
    "bandit/persistence.py": ("tests/bandit",),
    "bandit/rules/maximal_loss.py": ("tests/bandit",),
    "blender/bench.py": BLENDER,
    "blender/bound_check.py": BLENDER,
    "blender/chooser.py": BLENDER,
    "blender/core.py": BLENDER,
    "blender/ledger.py": BLENDER,
    "blender/objectives.py": BLENDER,
}
# Mutants that no test can or need notice, by module and change, with the reason.
REASONS: dict[str, str] = {
    "bandit/learner.py: 3 becomes 4": "a decision's row becomes longer than what is read of it",
    "bandit/core.py: 0 becomes 1, number 2": "the seed of a restored learner, whose generator is overwritten at once",
    "blender/bound_check.py: 700.0 becomes 701.0": "exp of either is finite, and larger than any limit of the wealth",
    "blender/objectives.py: True becomes False, number 2": "a row has one value of each name by construction",
}
LONG_TEST = "tests/blender/test_faults.py::test_a_hundred_thousand_steps_of_every_failure_at_random"
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """Yield (what was changed, the changed source) for every change of one operator, number or truth.

    A change is named by its text; equal ones are numbered.
    """
    seen: Counter[str] = Counter()
    tree = ast.parse(source)
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        for part in (
            [node] if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr) else
            [getattr(node, name, None) for name in ("annotation", "returns")]
            + (list(getattr(node, "decorator_list", ())))
        )
        if part is not None
        for inner in ast.walk(part)
    }  # fmt: skip
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in skipped:
            continue
        for words, change in _changes(node):
            changed = copy.deepcopy(tree)
            change(next(other for i, other in enumerate(ast.walk(changed)) if i == number))
            seen[words] += 1
            yield words if seen[words] == 1 else f"{words}, number {seen[words]}", ast.unparse(changed)


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[[ast.AST], None]]]:
    def swap(field: str, position: int | None = None) -> Callable[[ast.AST], None]:
        def change(other: ast.AST) -> None:
            if position is None:
                setattr(other, field, SWAPS[type(getattr(other, field))]())
            else:
                getattr(other, field)[position] = SWAPS[type(getattr(other, field)[position])]()

        return change

    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in SWAPS:
        yield f"{type(node.op).__name__} in {ast.unparse(node)[:60]}", swap("op")
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        yield f"{type(node.ops[0]).__name__} in {ast.unparse(node)[:60]}", swap("ops", 0)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
        value = not node.value if isinstance(node.value, bool) else node.value + 1

        def change(other: ast.AST) -> None:
            setattr(other, "value", value)  # noqa: B010  # other is a constant, as node is

        yield f"{node.value!r} becomes {value!r}", change


def survives(module: str, source: str, copied: Path) -> bool:
    """Return whether all tests pass with a changed module."""
    file = copied / "blendctl" / module
    original = file.read_bytes()
    times = file.stat()
    file.write_text(source)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", "--no-header",
             "--timeout", "120", "--deselect", LONG_TEST,
             *TARGETS[module]],
            cwd=ROOT, env=os.environ | {"PYTHONPATH": str(copied), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True, timeout=400,
        )  # fmt: skip
        return done.returncode == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        file.write_bytes(original)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def main() -> int:
    """Try a sample of mutants; print the survivors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=80)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    every = [
        (f"{module}: {words}", module, source)
        for module in TARGETS
        if args.only in module
        for words, source in mutants((ROOT / "src" / "blendctl" / module).read_text())
    ]
    every.sort(key=lambda one: hashlib.sha256(f"{args.seed} {one[0]}".encode()).digest())
    chosen, survivors = every[: args.mutants], []
    with tempfile.TemporaryDirectory() as place:
        copied = Path(place) / "src"
        shutil.copytree(ROOT / "src", copied)
        for name, module, source in chosen:
            if survives(module, source, copied):
                survivors.append(name)
                print(f"survived: {name}", flush=True)
    print(f"{len(chosen)} of {len(every)} mutants, {len(survivors)} survived")
    figures = {
        "survivors, %": 100.0 * len(survivors) / len(chosen),
        "survivors without a reason": sum(name not in REASONS for name in survivors),
        "notes": [f"survived: {name}: {REASONS.get(name, 'no reason known')}" for name in survivors],
    }
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
