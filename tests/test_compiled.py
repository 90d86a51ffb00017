"""Compiled functions are cached on disk, and compiled again when any part of them changes."""

import subprocess
import sys
from typing import Any

import pytest
from numba.core import caching

from blendctl.compiled import compiled


def test_an_edited_constant_or_formula_of_another_file_is_recompiled(tmp_path):
    """Numba's own cache key covers only the caller's file: it would run the old constant and the old formula."""
    (tmp_path / "caller.py").write_text(
        "from blendctl.compiled import compiled, inlined\n"
        "import constants, formulas\n"
        "from constants import OFFSET\n"
        "scale = compiled(formulas.scale)\n"
        "shift = inlined(formulas.shift)\n"
        "@compiled\n"
        "def answer(x):\n"
        "    return shift(scale(x)) + OFFSET\n"
        "print(answer(1.0))\n"
    )
    formulas = "def scale(x):\n    return {} * x\n\ndef shift(x):\n    return x + {}\n"
    outcomes = []
    for factor, step, offset in [(2.0, 0.0, 0.0), (3.0, 0.0, 0.0), (3.0, 0.5, 0.0), (3.0, 0.5, 10.0)]:
        (tmp_path / "formulas.py").write_text(formulas.format(factor, step))
        (tmp_path / "constants.py").write_text(f"OFFSET = {offset}\n")
        done = subprocess.run(
            [sys.executable, "-B", "caller.py"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        outcomes.append(float(done.stdout))
    assert outcomes == [2.0, 3.0, 3.5, 13.5]


def test_an_unchanged_function_is_loaded_from_the_cache(tmp_path):
    (tmp_path / "caller.py").write_text(
        "from blendctl.compiled import compiled\n"
        "@compiled\n"
        "def answer(x):\n"
        "    return 2.0 * x\n"
        "answer(1.0)\n"
        "print(sum(answer.stats.cache_hits.values()))\n"
    )
    hits = [
        subprocess.run(
            [sys.executable, "caller.py"], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(2)
    ]
    assert hits == ["0", "1"]


def test_without_a_writable_cache_it_compiles_at_every_start(monkeypatch):
    def read_only(self):
        raise OSError("read-only file system")

    monkeypatch.setattr(caching._CacheLocator, "ensure_cache_path", read_only)
    assert compiled(lambda x: x + 1)(1) == 2


def test_missing_arguments_are_an_error():
    function: Any = compiled(lambda x: x + 1)
    with pytest.raises(TypeError):
        function()
