"""The checks that `make verify` adds to those of users: their commands exist, and mutants are what they should be."""

import ast
import runpy
from pathlib import Path

import pytest

from blendctl.selftest import CHECKS

TESTS = Path(__file__).parents[1]
VERIFY = runpy.run_path(str(TESTS / "verify.py"))
MUTATION = runpy.run_path(str(TESTS / "mutation.py"))


def test_the_files_of_every_command_exist_and_names_are_unique():
    checks = VERIFY["REPOSITORY"]
    for check in checks:
        files = [word for word in check.command if word.startswith(("tests", "bench"))]
        assert files, check.name
        assert all((TESTS.parent / file).exists() for file in files)
        assert check.full
        assert not check.quick
    names = [check.name for check in (*checks, *CHECKS)]
    assert len(set(names)) == len(names)


def test_every_mutant_changes_one_thing():
    source = "def f(a: int = 1) -> bool:\n    if a < 2 and a != 3:\n        return True\n    raise ValueError(a + 1)\n"
    found = dict(MUTATION["mutants"](source))
    assert {words.split(" in ")[0] for words in found} == {
        "1 becomes 2", "And", "Lt", "2 becomes 3", "NotEq", "3 becomes 4", "True becomes False",
    }  # fmt: skip
    plain = ast.unparse(ast.parse(source))
    for changed in found.values():
        assert changed != plain
        assert sum(a != b for a, b in zip(changed.splitlines(), plain.splitlines(), strict=True)) == 1


@pytest.mark.parametrize("module", MUTATION["TARGETS"])
def test_the_modules_and_tests_of_mutants_exist(module):
    assert (TESTS.parent / "src" / "blendctl" / module).is_file()
    assert all((TESTS.parent / file).exists() for file in MUTATION["TARGETS"][module])
