"""An interrupted fit continues with the same result as an uninterrupted one; workers do not change it."""

import json
import os
import sys
from pathlib import Path

import pytest
from corridor import Corridor

from blendctl import fit
from blendctl.errors import InputError
from blendctl.experiments.store import Store
from blendctl.fitting import unit_progress
from blendctl.fitting.fit_work import UNFINISHED, StoredWork
from blendctl.fitting.plan import make_plan

FILE = str(Path(sys.modules[Corridor.__module__].__file__).resolve())
NAMED = {"env": f"{FILE}:Corridor", "controllers": [f"{FILE}:fast", f"{FILE}:slow"]}
SMALL = {"seed": 5, "steps": 200, "hold": 5, "episodes": 8}


def results(directory):
    """What must be equal: the card without times, and the bytes of the networks."""
    card = json.loads((directory / "card.json").read_text())
    card = {name: value for name, value in card.items() if name not in ("seconds", "sessions")}
    return card, (directory / "lookahead.safetensors").read_bytes(), (directory / "blend.safetensors").read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    directory = tmp_path_factory.mktemp("whole") / "fit"
    fit(**NAMED, out=directory, **SMALL)
    return directory


class Stopped(BaseException):
    """As Ctrl-C, at a known instant."""


@pytest.mark.parametrize("units", [1, 12])
def test_an_interrupted_fit_goes_on_and_ends_the_same(units, whole, tmp_path, monkeypatch):
    put, stored = Store.put, []

    def stop(store, unit, data):
        if len(stored) == units:
            raise Stopped
        stored.append(unit.key)
        return put(store, unit, data)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "put", stop)
        with pytest.raises(Stopped):
            fit(**NAMED, out=tmp_path, **SMALL)
    assert len(list((tmp_path / UNFINISHED / "units").iterdir())) == units
    with monkeypatch.context() as patch:
        patch.setattr(Store, "put", lambda store, unit, data: stored.append(unit.key) or put(store, unit, data))
        card = fit(**NAMED, out=tmp_path, **SMALL).card
    assert len(set(stored)) == len(stored), "nothing runs twice"
    assert card["sessions"] == 2
    assert results(tmp_path) == results(whole)
    assert not (tmp_path / UNFINISHED).exists()


def test_worker_processes_change_nothing_and_report_their_progress(whole, tmp_path, monkeypatch):
    monkeypatch.setattr(unit_progress, "EVERY", 0.0)
    shown = []
    fit(**NAMED, out=tmp_path, workers=2, on_progress=lambda text, share: shown.append((text, share)), **SMALL)
    assert results(tmp_path) == results(whole)
    assert all(0 <= share <= 1 for _, share in shown)
    assert os.environ.get(unit_progress.DIRECTORY) is None


def test_shares_of_running_units_are_added_up():
    listener = unit_progress.ProgressListener()
    with unit_progress.reporting() as report:
        report(0.25)
        (Path(os.environ[unit_progress.DIRECTORY]) / "another process").write_text("0.5")
        assert listener.shares() == 0.75
    assert listener.shares() == 0.5
    listener.close()
    with unit_progress.reporting() as report:
        report(0.5)  # nobody listens


def test_an_unfinished_fit_with_other_options_is_refused_unless_it_is_replaced(whole, tmp_path, monkeypatch):
    def stop(store, unit, data):
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(Store, "put", stop)
        with pytest.raises(Stopped):
            fit(**NAMED, out=tmp_path, **SMALL | {"seed": 6})
    with pytest.raises(InputError, match=r"seed 6 there, 5 now.*--replace starts again"):
        fit(**NAMED, out=tmp_path, **SMALL)
    fit(**NAMED, out=tmp_path, replace=True, **SMALL)
    assert results(tmp_path) == results(whole)


def test_a_budget_of_time_keeps_its_plan(tmp_path):
    options = {"length": 50, "worlds": 6, "steps": None, "hold": None, "episodes": None}
    slow = make_plan(step_seconds=1e-2, minutes=1.0, **options)
    assert make_plan(step_seconds=1e-2, minutes=1.0, workers=2, **options).steps == 2 * slow.steps
    identity = {"seed": 0}
    arguments = {"replace": False, "command": "", "engine": "processes", "workers": 1, "address": None}
    first = StoredWork(tmp_path / "w", identity=identity, **arguments)
    assert first.keep_plan(slow) == slow
    first.close()
    again = StoredWork(tmp_path / "w", identity=identity, **arguments)
    assert again.keep_plan(make_plan(step_seconds=1e-3, minutes=1.0, **options)) == slow
    assert again.sessions == 2
    again.finish()
    assert not (tmp_path / "w").exists()
