"""The examples run and their results agree with their docstrings."""

import shutil
import subprocess
from pathlib import Path

import pytest
from example_files import FOLDER, example


def test_two_sb3_policies_are_trained_and_blended(capsys):
    pytest.importorskip("stable_baselines3")
    results = example("two_sb3_policies").main(train_steps=1024, episodes=2)
    assert results["fast"]["arm_share"] == {"fast": 1.0, "safe": 0.0}
    assert set(results["blended"]["arm_share"]) == {"fast", "safe"}
    assert 0 < results["blended"]["steps"] <= 400
    assert "blended" in capsys.readouterr().out


def test_a_classical_and_a_learned_controller_are_blended():
    results = example("classical_and_learned").main(episodes=3)
    network, field, blended = results["network"], results["field"], results["blended"]
    assert field["return_mean"] < blended["return_mean"] < network["return_mean"] + 1.0
    assert field["cost_mean"] < network["cost_mean"]
    assert all(share > 0.01 for share in blended["arm_share"].values())
    assert blended["switches"] > 0


def test_a_new_requirement_is_met_without_retraining():
    results = example("new_requirement").main(episodes=2)
    old, new, blended = results["old"], results["new"], results["blended"]
    assert blended["speed_mean"] < 0.25 * old["speed_mean"], "the new requirement"
    assert blended["hazards_mean"] < new["hazards_mean"], "the old one"
    assert blended["return_mean"] > 5.0, "it still reaches goals"


def test_every_example_is_listed_in_the_readme():
    names = {path.stem for path in FOLDER.glob("*.py")}
    assert len(names) == 5
    readme = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    for name in names:
        assert f"examples/{name}.py" in readme


def test_the_ros2_controller_compiles_against_stub_headers(tmp_path):
    if shutil.which("g++") is None:
        pytest.skip("no g++: install it with your package manager")
    example("robot/cart").learn(50).export(tmp_path)
    folders = [tmp_path, FOLDER / "ros2" / "include", Path(__file__).parent / "ros2_stubs"]
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *(f"-I{one}" for one in folders)]
    done = subprocess.run([*command, FOLDER / "ros2" / "src" / "blend_controller.cpp"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
