"""Run one check in this process and print its figures: `python -m blendctl.selftest.check_process NAME REPETITIONS`."""

from __future__ import annotations

import json
import sys

from blendctl.selftest import CHECKS

if __name__ == "__main__":
    (chosen,) = (check for check in CHECKS if check.name == sys.argv[1])
    assert chosen.measure is not None
    print(json.dumps(dict(chosen.measure(int(sys.argv[2])))))
