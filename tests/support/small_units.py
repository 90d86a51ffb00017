"""Small kinds of units for the tests of stores and engines."""

import os
import signal
import sys
import time
from pathlib import Path

import pyarrow as pa

from blendctl.errors import InputError
from blendctl.experiments import Result, unit_kind


def _machine():
    """Return the address of this Ray node."""
    if "ray" not in sys.modules:
        return "none"
    import ray

    return ray.util.get_node_ip_address()


def _meet(marks, doomed):
    """On the doomed node mark the start of work and wait to be killed; on others wait for the mark."""
    mark, patience = marks / f"on-{doomed}", time.monotonic() + 120
    here = _machine() == doomed
    if here:
        mark.touch()
    while (here or not mark.exists()) and time.monotonic() < patience:
        time.sleep(0.02)


@unit_kind(version=1)
def square(parameters, before):
    """Square a number and add the earlier sum; optionally wait, kill the worker, or raise."""
    if "doomed" in parameters:
        _meet(Path(parameters["marks"]), parameters["doomed"])
    time.sleep(parameters.get("seconds", 0.0))
    if "die_once" in parameters:
        mark = Path(parameters["die_once"])
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    if parameters.get("die"):
        os.kill(os.getpid(), signal.SIGKILL)
    if parameters.get("fail"):
        raise InputError("the number is too odd")
    earlier = 0 if before is None else before.values["sum"]
    number = parameters["number"]
    values = {"sum": number**2 + earlier, "third": number / 3}
    if not parameters.get("table"):
        return Result(values)
    return Result(values, pa.table({"number": [number, number + 1], "part": [number / 7, 0.1]}))
