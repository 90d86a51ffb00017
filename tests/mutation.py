"""Change operators and numbers of pareto, bandit and blender one at a time; count the changes that no test notices.

    python tests/mutation.py [--mutants 80] [--seed 0] [--only pareto]

The mutants are a random sample. Kernels are left out, because compiling each of them would take minutes; tests compare
them with plain NumPy. The last line of the output is a JSON object with the share of survivors in percent.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Module -> the tests that must notice a change in it.
TARGETS = {
    "pareto.py": ("tests/test_pareto.py", "src/blendctl/pareto.py"),
    "bandit/core.py": ("tests/bandit",),
    "bandit/learner.py": ("tests/bandit",),
    "bandit/decision.py": ("tests/bandit", "tests/blender/test_core.py"),
    "bandit/persistence.py": ("tests/bandit",),
    "bandit/rules/maximal_loss.py": ("tests/bandit",),
    "blender/bench.py": ("tests/blender",),
    "blender/bound_check.py": ("tests/blender",),
    "blender/chooser.py": ("tests/blender",),
    "blender/core.py": ("tests/blender",),
    "blender/ledger.py": ("tests/blender",),
    "blender/objectives.py": ("tests/blender",),
}
LONG_TEST = "tests/blender/test_faults.py::test_a_hundred_thousand_steps_of_every_failure_at_random"
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """Yield (what was changed, the changed source) for every change of one operator, number or truth."""
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
            yield f"line {getattr(node, 'lineno', 0)}: {words}", ast.unparse(changed)


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
        (module, words, source)
        for module in TARGETS
        if args.only in module
        for words, source in mutants((ROOT / "src" / "blendctl" / module).read_text())
    ]
    random.Random(args.seed).shuffle(every)
    chosen, survivors = every[: args.mutants], 0
    with tempfile.TemporaryDirectory() as place:
        copied = Path(place) / "src"
        shutil.copytree(ROOT / "src", copied)
        for module, words, source in chosen:
            if survives(module, source, copied):
                survivors += 1
                print(f"survived: {module} {words}", flush=True)
    print(f"{len(chosen)} of {len(every)} mutants, {survivors} survived")
    print(json.dumps({"survivors, %": 100.0 * survivors / len(chosen)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
