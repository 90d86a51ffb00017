import json
import re
import subprocess
import sys

import numpy as np
import pytest


def blendctl(*args, **options):
    return subprocess.run(
        [sys.executable, "-m", "blendctl", *args], capture_output=True, text=True, timeout=300, **options
    )


def test_demo_prints_the_table_and_writes_picture_and_figures(tmp_path):
    done = blendctl("demo", "bandit", "--stages", "300", "--learners", "4", "--out", str(tmp_path / "demo"))
    assert done.returncode == 0, done.stderr
    for word in ("maximal-loss", "thompson", "regret", "arm shares"):
        assert word in done.stdout
    assert (tmp_path / "demo" / "bandit.png").read_bytes().startswith(b"\x89PNG")
    rules = json.loads((tmp_path / "demo" / "bandit.json").read_text())["rules"]
    for name, figures in rules.items():
        assert figures["average_loss"] <= figures["loss_bound"], name
        assert sum(figures["arm_shares"]) == pytest.approx(1)
    assert rules["maximal-loss"]["pareto_regret"] < 0.2 * rules["random"]["pareto_regret"]


def test_the_same_seed_produces_the_same_figures(tmp_path):
    texts = []
    for name in ("a", "b"):
        done = blendctl(
            "demo",
            "bandit",
            "--stages",
            "50",
            "--learners",
            "2",
            "--seed",
            "3",
            "--out",
            str(tmp_path / name),
        )
        assert done.returncode == 0, done.stderr
        texts.append((tmp_path / name / "bandit.json").read_text())
    assert texts[0] == texts[1]


def test_help_lists_the_commands_by_section():
    done = blendctl("--help")
    assert done.returncode == 0
    assert "demo" in done.stdout
    version = blendctl("--version").stdout
    assert re.match(r"blendctl, version \S+\ncommit (unknown|[0-9a-f]{40}(-dirty)?)\nPython 3\.", version)
    assert f"numpy {np.__version__}" in version


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["demoo"], 'did you mean "demo"'),
        (["demo", "bandit", "--stages", "0"], "--stages"),
        (["demo", "bandit", "--arms", "x"], "--arms"),
    ],
)
def test_wrong_usage_says_what_is_allowed(args, message):
    done = blendctl(*args)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_fifty_arms_fit_the_table(tmp_path):
    done = blendctl("demo", "bandit", "--stages", "5", "--learners", "2", "--arms", "50", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "pareto-uniform" in done.stdout
    assert "+45 arms" in done.stdout
    rules = json.loads((tmp_path / "bandit.json").read_text())["rules"]
    assert len(rules["random"]["arm_shares"]) == 50
    assert rules["random"]["regret_bound"] is None
    assert rules["linear"]["regret_bound"] > 0


def test_more_stages_than_memory_is_one_line(tmp_path):
    done = blendctl("demo", "bandit", "--stages", "1000000000000000", "--out", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith("blendctl: Unable to allocate")
    assert "Traceback" not in done.stderr


def test_an_output_directory_that_cannot_be_created_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    done = blendctl("demo", "bandit", "--out", str(tmp_path / "file" / "sub"))
    assert done.returncode == 1
    assert done.stderr.startswith("blendctl: ")
    assert "Traceback" not in done.stderr
