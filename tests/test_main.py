"""The entry point of the command line: what is set before anything else is imported."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import contextlib, os, sys
from blendctl.__main__ import main
sys.argv = ["blendctl", "--version"]
with contextlib.suppress(SystemExit):
    main()
import numpy as np
np.ones((600, 600)) @ np.ones((600, 600))
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads as Linux lists them")
@pytest.mark.parametrize(("given", "threads"), [(None, 1), ("2", 2)])
def test_numpy_multiplies_with_one_thread_unless_the_user_sets_another_number(given, threads):
    if threads > (os.cpu_count() or 1):
        pytest.skip("BLAS starts no more threads than there are cores")
    environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}
    environment |= {} if given is None else {"OPENBLAS_NUM_THREADS": given}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) == threads
