"""The public API is what docs/api.md lists: it imports, is complete, and is all that readers are shown."""

import ast
import importlib
import inspect
import re
from collections import defaultdict
from pathlib import Path

import pytest

import blendctl

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "blendctl"
API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
PUBLIC_MODULES = re.findall(r"^::: (\S+)", API, re.MULTILINE)
READER_FILES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").glob("*.py"))]
# Modules that may share a name, because the name means the same in each package (see CONTRIBUTING.md). A command's
# module may also share the name of the module that does its work.
SHARED_MODULE_NAMES = {"__init__", "base", "core", "batch", "kernels"}


def public_objects():
    """Yield (module, name, object) for every public name."""
    for module_name in PUBLIC_MODULES:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            yield module_name, name, getattr(module, name)


def imports_of(file):
    """Yield (module, name) for everything that a page's code blocks or a script import from blendctl."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        text = "\n".join(re.findall(r"^>>> ((?:from|import) [^\n]*)", text, re.MULTILINE))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "blendctl":
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names if alias.name.partition(".")[0] == "blendctl")


def test_every_documented_name_imports_and_has_a_docstring():
    for module, name, value in public_objects():
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), f"{module}.{name}: the page shows only names with a docstring"


def test_the_table_of_the_page_names_every_documented_module():
    assert re.findall(r"^\| \[`([\w.]+)`\]", API, re.MULTILINE) == PUBLIC_MODULES


def test_every_name_of_the_top_package_is_documented():
    documented = {name: value for _, name, value in public_objects()}
    for name in set(blendctl.__all__) - {"__version__"}:
        if f"blendctl.{name}" not in PUBLIC_MODULES:
            assert documented.get(name) is getattr(blendctl, name), f"blendctl.{name} is not on docs/api.md"


@pytest.mark.parametrize("file", READER_FILES, ids=lambda file: file.name)
def test_readers_are_shown_only_public_names(file):
    for module, name in imports_of(file):
        if module == "blendctl":
            assert name is None or name in blendctl.__all__, f"{file.name}: blendctl.{name}"
        elif f"{module}.{name}" not in PUBLIC_MODULES:
            assert module in PUBLIC_MODULES, f"{file.name} imports {module}, which docs/api.md does not list"
            assert name is None or name in importlib.import_module(module).__all__, f"{module}.{name}"


def test_the_imports_of_readers_are_found():
    imported = {pair for file in READER_FILES for pair in imports_of(file)}
    assert {("blendctl.blender.episode_stats", "EpisodeStats"), ("blendctl", "Blender")} <= imported
    assert ("blendctl.controllers.controller_check", "check_controller") in imported


def test_no_two_public_objects_share_a_name():
    by_name = defaultdict(set)
    for _, name, value in public_objects():
        if inspect.isclass(value) or inspect.isfunction(value):
            by_name[name].add(f"{value.__module__}.{value.__qualname__}")
    assert {name: homes for name, homes in by_name.items() if len(homes) > 1} == {}


def test_no_two_modules_have_classes_of_one_name():
    """`_Effort` and `Effort` are one name; a module may have both."""
    by_name = defaultdict(set)
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                by_name[node.name.lstrip("_")].add(str(file.relative_to(SOURCE)))
    assert {name: files for name, files in by_name.items() if len(files) > 1} == {}


def test_internal_modules_have_no_all_unless_they_re_export_names():
    for file in SOURCE.rglob("*.py"):
        module = ".".join(file.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
        tree = ast.parse(file.read_text(encoding="utf-8"))
        exported, defined = exported_and_defined_names(tree)
        if module not in {"blendctl", *PUBLIC_MODULES} and exported is not None:
            assert exported - defined, f"{module} is internal and re-exports nothing: remove its __all__"


def exported_and_defined_names(tree):
    """Return the names in `__all__`, None without it, and the names that the module itself defines."""
    exported, defined = None, set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            defined.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            defined |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
            if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
                exported = set(ast.literal_eval(node.value))
    return exported, defined


def test_no_two_modules_share_a_name():
    by_name = defaultdict(list)
    for file in SOURCE.rglob("*.py"):
        if file.stem not in SHARED_MODULE_NAMES:
            by_name[file.stem].append(str(file.relative_to(SOURCE)))
    for name in blendctl_commands():
        by_name[name] = [file for file in by_name[name] if not file.startswith("cli/")]
    assert {name: files for name, files in by_name.items() if len(files) > 1} == {}


def blendctl_commands():
    """Return the module names of the commands."""
    from blendctl.cli import COMMANDS

    return {command.replace("-", "_") for section in COMMANDS.values() for command in section}
