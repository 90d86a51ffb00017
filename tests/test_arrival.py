"""The worlds are known to Gymnasium in whatever order the two are imported."""

import subprocess
import sys

import pytest

MAKE = "print(gymnasium.make('blendctl/PointGoal0-v0').reset(seed=0)[0].shape)"


@pytest.mark.parametrize(
    "code",
    [
        f"import blendctl, gymnasium; {MAKE}",
        f"import gymnasium, blendctl; {MAKE}",
        f"import blendctl, gymnasium.vector; {MAKE}",
        f"from blendctl import BlendingBandit; import gymnasium; {MAKE}",
        f"import blendctl.envs, gymnasium; {MAKE}",
        f"import blendctl.pareto, importlib; importlib.reload(blendctl); import gymnasium; {MAKE}",
    ],
)
def test_any_order_of_imports_will_do(code):
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.stdout == "(28,)\n", done.stderr


def test_without_gymnasium_nothing_waits_for_it():
    code = "import sys, blendctl; print('gymnasium' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
