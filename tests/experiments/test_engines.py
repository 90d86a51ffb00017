"""Engines: the same results everywhere, nothing runs twice, a death costs one unit at most."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from blendctl.errors import BlendctlError, InputError
from blendctl.experiments import Store, Unit, UnitsFailed, run_units

SQUARE = "small_units:square"


def numbers(count, **parameters):
    return [Unit(SQUARE, {"number": n, **parameters}) for n in range(count)]


def chain(count, **parameters):
    units = []
    for n in range(count):
        units.append(Unit(SQUARE, {"number": n, **parameters}, after=units[-1] if units else None))
    return units


def store_in(path):
    return Store(path, "squares", identity={"seed": 0})


def sums(finished):
    return {f.unit.parameters["number"]: f.result.values["sum"] for f in finished}


@pytest.mark.parametrize("engine", ["inline", "processes"])
def test_every_unit_is_run_and_chains_are_followed(tmp_path, engine):
    units = [*chain(4), *numbers(3, table=True)]
    finished = list(run_units(units, store=store_in(tmp_path), engine=engine, workers=2))
    assert {f.unit.key for f in finished} == {u.key for u in units}
    assert sums(f for f in finished if not f.unit.parameters.get("table")) == {0: 0, 1: 1, 2: 5, 3: 14}


def test_engines_agree_to_the_bit(tmp_path):
    units = [*chain(3), *numbers(3, table=True)]
    by_engine = [
        {f.unit.key: f.result for f in run_units(units, store=store_in(tmp_path / name), engine=name)}
        for name in ("inline", "processes")
    ]
    assert all(by_engine[0][u.key].same_as(by_engine[1][u.key]) for u in units)


def test_what_is_done_is_not_run_again(tmp_path):
    units = chain(4)
    some = run_units(units, store=store_in(tmp_path), engine="inline")
    for _ in range(2):
        next(some)
    some.close()  # interrupted
    finished = list(run_units(units, store=store_in(tmp_path), engine="inline"))
    assert [f.stored for f in finished] == [True, True, False, False]
    assert sums(finished)[3] == 14


def test_a_unit_whose_worker_is_killed_is_run_again(tmp_path):
    units = [Unit(SQUARE, {"number": 7, "die_once": str(tmp_path / "mark")}), *numbers(2)]
    events = []
    finished = list(run_units(units, store=store_in(tmp_path / "out"), workers=1, progress=events.append))
    assert sums(finished)[7] == 49
    (lost,) = [event for event in events if event.state == "lost"]
    assert "SIGKILL" in lost.message


def test_a_worker_killed_from_outside_costs_nothing(tmp_path):
    killed = []

    def kill_a_worker():
        import multiprocessing

        deadline = time.monotonic() + 20
        while not killed and time.monotonic() < deadline:
            for child in multiprocessing.active_children():
                if child.pid is not None:
                    os.kill(child.pid, signal.SIGKILL)
                    killed.append(child.pid)
                    break
            time.sleep(0.05)

    thread = threading.Thread(target=kill_a_worker)
    thread.start()
    finished = list(run_units(chain(3, seconds=0.3), store=store_in(tmp_path), workers=2))
    thread.join()
    assert killed
    assert sums(finished) == {0: 0, 1: 1, 2: 5}


LONG_RUN = """
import sys
from blendctl.experiments import Store, Unit, run_units
if __name__ == "__main__":
    store = Store(sys.argv[1], "squares", identity={})
    list(run_units([Unit(sys.argv[2], {"number": 2, "seconds": 60.0})], store=store, workers=1))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_worker_ends_with_its_parent_in_the_middle_of_a_unit(tmp_path, number):
    script = tmp_path / "run.py"
    script.write_text(LONG_RUN)
    support = Path(__file__).parents[1] / "support"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(support), os.environ.get("PYTHONPATH", "")])}
    process = subprocess.Popen([sys.executable, script, tmp_path / "out", SQUARE], env=environment)
    end, workers = time.monotonic() + 100, set()
    try:
        while not workers and process.poll() is None and time.monotonic() < end:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            workers = {pid for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()}
            time.sleep(0.1)
    finally:
        process.send_signal(number)
        assert process.wait(20) == -number
    assert workers
    end = time.monotonic() + 40  # the unit would take a minute
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


def test_a_unit_that_always_dies_fails_at_the_end_and_the_others_are_kept(tmp_path):
    units = [Unit(SQUARE, {"number": 1, "die": True}), *numbers(2)]
    finished = []
    with pytest.raises(UnitsFailed, match=r"1 of 3 units .*worker died 4 times .*SIGKILL.*is kept"):
        finished.extend(run_units(units, store=store_in(tmp_path), workers=1))
    again = store_in(tmp_path)
    assert [again.get(u) is not None for u in units] == [False, True, True]


def test_a_unit_that_raises_fails_with_those_that_follow_it(tmp_path):
    first = Unit(SQUARE, {"number": 1, "fail": True})
    units = [first, Unit(SQUARE, {"number": 2}, after=first), Unit(SQUARE, {"number": 3})]
    events = []
    with pytest.raises(UnitsFailed, match=r"2 of 3 units .*the number is too odd"):
        list(run_units(units, store=store_in(tmp_path), engine="inline", progress=events.append))
    assert [e.state for e in events] == ["started", "failed", "started", "done"]


def test_a_damaged_file_is_run_again(tmp_path):
    units = numbers(2, table=True) + numbers(2)
    list(run_units(units, store=store_in(tmp_path), engine="inline"))
    for path in (tmp_path / "units").iterdir():
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(bytes(data))
    store = store_in(tmp_path)
    finished = list(run_units(units, store=store, engine="inline"))
    assert [f.stored for f in finished] == [False] * 4
    assert len(store.damaged) == 4


def test_a_damaged_file_within_a_chain_costs_that_unit_alone(tmp_path):
    units = chain(4)
    list(run_units(units, store=store_in(tmp_path), engine="inline"))
    (tmp_path / "units" / f"{units[1].key}.json").write_text("{}")
    events = []
    finished = list(run_units(units, store=store_in(tmp_path), engine="inline", progress=events.append))
    assert [f.unit.parameters["number"] for f in finished if not f.stored] == [1]
    assert sums(finished) == {0: 0, 1: 1, 2: 5, 3: 14}
    assert events[-1].done == events[-1].total == 4


def test_a_full_disk_stops_with_words_and_keeps_what_is_finished(tmp_path, monkeypatch):
    units = numbers(3)
    store = store_in(tmp_path)
    running = run_units(units, store=store, engine="inline")
    next(running)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(BlendctlError, match=r"No space left.*free disk space"):
            next(running)
    store.close()
    finished = list(run_units(units, store=store_in(tmp_path), engine="inline"))
    assert [f.stored for f in finished] == [True, False, False]
    assert not list(tmp_path.rglob("*.part"))


def test_wrong_options_are_refused(tmp_path):
    store = store_in(tmp_path)
    with pytest.raises(InputError, match='did you mean "processes"'):
        run_units([], store=store, engine="process")
    with pytest.raises(InputError, match="workers must be a whole number >= 1, actually: 0"):
        run_units([], store=store, workers=0)
    with pytest.raises(InputError, match='only the engine "ray" takes an address'):
        run_units([], store=store, address="10.0.0.1:6379")
    with pytest.raises(InputError, match="not in the list"):
        run_units(chain(2)[1:], store=store)
