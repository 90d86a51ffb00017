"""What pages and examples import is what the API page lists, so that it is what stays."""

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTED = re.findall(r"^::: (\S+)", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
READ = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").glob("*.py"))]


def imports_of(file):
    """Give (module, name) for everything that a page's blocks or a script import from blendctl."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        text = "\n".join(re.findall(r"^>>> (from blendctl[^\n]*)", text, re.MULTILINE))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "blendctl":
            yield from ((node.module, name.name) for name in node.names)


@pytest.mark.parametrize("file", READ, ids=lambda file: file.name)
def test_what_a_reader_imports_is_listed(file):
    for module, name in imports_of(file):
        if module == "blendctl":  # the package gives again what its parts have
            assert name in importlib.import_module("blendctl").__all__, name
            continue
        assert module in LISTED, f"{file.name} imports {module}.{name}, which docs/api.md does not list"
        assert name in importlib.import_module(module).__all__, f"{module}.{name}"


def test_the_test_sees_the_imports_of_readers():
    seen = {pair for file in READ for pair in imports_of(file)}
    assert {("blendctl.blender.episode_stats", "EpisodeStats"), ("blendctl", "Blender")} <= seen
    assert ("blendctl.controllers.controller_check", "check_controller") in seen
