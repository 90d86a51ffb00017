"""Shipped controllers are not overwritten by accident: `zoo --add` and `train-context` need --replace."""

import json
import shutil

import pytest

from blendctl.cli import main
from blendctl.controllers import load
from blendctl.controllers import zoo as zoo_module
from blendctl.controllers.zoo import find_controller_file
from blendctl.directory_lock import DirectoryLock

TINY = ["--steps", 400, "--worlds", 2, "--horizons", "1,2", "--passes", 1, "--threads", 1]


def call(capsys, *words):
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    return stopped.value.code, *capsys.readouterr()


def files(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def zoo(tmp_path, monkeypatch):
    """A temporary zoo with one controller, and a finished run."""
    shipped = find_controller_file("PointGoal1/ppo")
    folder = tmp_path / "zoo"
    (folder / "PointGoal1").mkdir(parents=True)
    shutil.copy(shipped, folder / "PointGoal1" / "ppo.safetensors")
    for algorithm in ("ppo", "ppo-lagrangian"):
        run = tmp_path / "runs" / f"PointGoal1-{algorithm}-s0"
        run.mkdir(parents=True)
        shutil.copy(shipped.with_name(f"{algorithm}.safetensors"), run / "controller.safetensors")
    monkeypatch.setattr(zoo_module, "ZOO", folder)
    monkeypatch.chdir(tmp_path)
    return folder


def test_a_run_is_added_and_its_card_printed_as_json(zoo, capsys):
    code, out, err = call(capsys, "zoo", "--add", "runs/PointGoal1-ppo-lagrangian-s0", "--json", "-")
    assert code == 0, err
    assert json.loads(out)["algorithm"] == "ppo-lagrangian"
    assert "added" in err
    assert load("PointGoal1/ppo-lagrangian").card["algorithm"] == "ppo-lagrangian"


def test_an_existing_controller_is_replaced_only_on_request(zoo, capsys):
    before = files(zoo)
    code, _, err = call(capsys, "zoo", "--add", "runs/PointGoal1-ppo-s0", "--json", "card.json")
    assert code == 1
    assert "--replace" in err
    assert files(zoo) == before
    assert not (zoo.parent / "card.json").exists()
    code, _, err = call(capsys, "zoo", "--add", "runs/PointGoal1-ppo-s0", "--replace", "--json", "card.json")
    assert code == 0, err
    assert set(files(zoo)) == {"ppo.safetensors", "ppo.json", "ppo.md"}
    assert json.loads((zoo.parent / "card.json").read_text())["algorithm"] == "ppo"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--replace"], "--replace needs --add"),
        (["--name", "ppo-2"], "--name needs --add"),
        (["--add", "runs/PointGoal1-ppo-s0", "--show", "PointGoal1/ppo"], "use one of them"),
    ],
)
def test_contradicting_options_are_rejected(words, message, zoo, capsys):
    before = files(zoo)
    code, _, err = call(capsys, "zoo", *words)
    assert code == 1
    assert message in err
    assert files(zoo) == before


def test_shipped_controllers_are_changed_only_on_request(zoo, capsys):
    pytest.importorskip("torch")
    before = files(zoo)
    code, _, err = call(capsys, "train-context", "PointGoal1/ppo", *TINY)
    assert code == 1
    assert "blendctl train-context PointGoal1/ppo --out out/context" in err
    assert "--replace" in err
    assert files(zoo) == before
    code, _, err = call(capsys, "train-context", zoo / "PointGoal1" / "ppo.safetensors", *TINY)
    assert code == 1, "its path is as good as its name"

    code, out, err = call(capsys, "train-context", "PointGoal1/ppo", *TINY, "--out", "copies")
    assert code == 0, err
    assert "wrote copies/ppo.safetensors" in out
    assert files(zoo) == before
    assert load("copies/ppo.safetensors").card["context"]["steps"] == 400

    code, _, err = call(capsys, "train-context", "PointGoal1/ppo", *TINY, "--out", "copies")
    assert code == 1
    assert "copies/ppo.safetensors exists" in err

    with DirectoryLock("copies"):
        code, _, err = call(capsys, "train-context", "PointGoal1/ppo", *TINY, "--out", "copies", "--replace")
    assert code == 1
    assert "copies is in use by another run" in err

    code, _, err = call(capsys, "train-context", "PointGoal1/ppo", *TINY, "--replace")
    assert code == 0, err
    assert load("PointGoal1/ppo").card["context"]["steps"] == 400


def test_context_networks_are_written_into_runs_or_into_named_copies(zoo, capsys):
    pytest.importorskip("torch")
    runs = [f"runs/PointGoal1-{name}-s0" for name in ("ppo", "ppo-lagrangian")]
    before = files(zoo.parent / "runs")
    code, _, err = call(capsys, "train-context", *runs, *TINY, "--out", "copies")
    assert code == 0, err
    assert files(zoo.parent / "runs") == before
    copies = {path.name for path in (zoo.parent / "copies").glob("*.safetensors")}
    assert copies == {"PointGoal1-ppo-s0.safetensors", "PointGoal1-ppo-lagrangian-s0.safetensors"}
    code, _, err = call(capsys, "train-context", runs[0], *TINY)
    assert code == 0, err
    assert load(runs[0]).card["context"]["steps"] == 400


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["pure-pursuit"], 1, "need a zoo name, a run directory or a .safetensors file"),
        (["mine.py:drive"], 1, "need a zoo name, a run directory or a .safetensors file"),
        (["PointGoal1/ppo", "PointGoal1/ppo", "--out", "copies"], 1, "name each of them once"),
        (["PointGoal1/ppo", "--seed", -1, "--out", "copies"], 1, "option seed is -1; allowed: 0 or more"),
        (["PointGoal1/ppo", "--worlds", 0, "--out", "copies"], 1, "option worlds is 0; allowed: at least 1"),
        (["PointGoal1/ppo", "--passes", 0, "--out", "copies"], 1, "option passes is 0; allowed: at least 1"),
        (["PointGoal1/ppo", "--threads", 0, "--out", "copies"], 1, "option threads is 0; allowed: at least 1"),
        (["PointGoal1/ppo", "--horizons", "one", "--out", "copies"], 1, "option horizons is 'one'; expected tuple"),
        (["PointGoal1/ppo", "--horizons", "2,3", "--out", "copies"], 1, "rising numbers of steps that begin with 1"),
    ],
)
def test_train_context_reports_wrong_input(words, code, message, zoo, capsys):
    pytest.importorskip("torch")
    got, _, err = call(capsys, "train-context", *words)
    assert got == code
    assert message in err
