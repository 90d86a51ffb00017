"""The public modules are those of docs/api.md; importing the package is cheap."""

import importlib
import importlib.util
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import blendctl

API_PAGE = Path(__file__).parent.parent / "docs" / "api.md"
PUBLIC = ["blendctl", *re.findall(r"^::: (\S+)", API_PAGE.read_text(encoding="utf-8"), re.MULTILINE)]


@pytest.mark.parametrize("name", PUBLIC)
def test_all_public_names_exist_and_are_documented(name):
    module = importlib.import_module(name)
    assert module.__doc__
    for public in module.__all__:
        thing = getattr(module, public)
        if callable(thing):
            assert thing.__doc__, public


def test_every_module_states_its_job_in_its_first_line():
    for module in pkgutil.walk_packages(blendctl.__path__, "blendctl."):
        spec = importlib.util.find_spec(module.name)
        first = Path(spec.origin).read_text(encoding="utf-8")
        assert first.startswith('"""'), module.name


def test_importing_the_package_loads_nothing_heavy():
    heavy = ["numba", "mujoco", "torch", "matplotlib", "ray", "rich", "scipy", "pyarrow"]
    code = f"import sys, blendctl; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_a_look_ahead_blender_loads_neither_torch_nor_a_simulator():
    heavy = ["mujoco", "torch", "matplotlib", "ray", "rich", "pyarrow"]
    code = (
        "import sys; from blendctl import Blender; from blendctl.controllers import load; "
        "made = Blender([load('PointGoal1/ppo'), load('PointGoal1/ppo-lagrangian')]); "
        "assert 'lookahead' in repr(made); "
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
