"""`certify` proves claims on fresh episodes of blends and controllers, in any environment, and refuses bad input."""

import json
import shutil

import numpy as np
import pytest
from scipy import stats
from short_drive import blend_to

from blendctl import episodes
from blendctl.blender import run
from blendctl.certificates import Claim, mean_bound, read_certificate
from blendctl.certificates import certify as judge_episodes
from blendctl.cli import main
from blendctl.experiments.certification import Certification, certify_dial
from blendctl.experiments.store import Store

KEYS = {
    "episodes", "share_over", "share_over_upper", "cost_mean", "cost_mean_upper", "return_mean", "return_mean_lower",
    "confidence", "passed", "digests",
}  # fmt: skip

PLANT = """
import gymnasium, numpy as np

class Plant(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def __init__(self, key="cost"):
        self.key = key

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 10
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.left -= 1
        cost = float(self.np_random.random() < 0.2)
        return np.zeros(2, np.float32), 1.0, False, self.left == 0, {self.key: cost}

def silent():
    return Plant("price")

def drive(observation):
    return [0.5]
"""


@pytest.fixture(scope="module")
def blend(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blend")
    return blend_to(folder, "--no-alone", "--no-counterfactual", episodes=1, steps=60)


@pytest.fixture
def plant(tmp_path, monkeypatch):
    (tmp_path / "plant.py").write_text(PLANT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(capsys, *words):
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    return stopped.value.code, *capsys.readouterr()


def certify(capsys, *words):
    return call(capsys, "certify", *words, "--engine", "inline")


def test_a_blend_is_certified_by_what_its_episodes_show(blend, tmp_path, capsys):
    words = (blend, "--budget", 20, "--episodes", 24, "--seed", 7, "--out", tmp_path)
    code, out, err = certify(capsys, *words, "--json", tmp_path / "out.json")
    assert code == 0, out + err
    assert "Proven with 95% confidence" in out
    shown = json.loads((tmp_path / "out.json").read_text())
    assert shown.keys() >= KEYS
    assert shown == json.loads((tmp_path / "certificate.json").read_text())
    costs, returns = np.array(shown["costs"]), np.array(shown["returns"])
    assert len(costs) == shown["episodes"] == 24
    assert shown["cost_mean"] == pytest.approx(costs.mean())
    over = stats.binomtest(int((costs > 20).sum()), 24, alternative="less").proportion_ci(0.95)
    assert shown["share_over_upper"] == pytest.approx(over.high)
    assert shown["cost_mean_upper"] == pytest.approx(mean_bound(costs, limit=60.0, error=0.05))
    assert shown["return_mean_lower"] == pytest.approx(mean_bound(returns, limit=-6.0, error=0.05))
    assert shown["passed"] is True
    assert shown["digests"].keys() >= {"controllers", "environment", "blend"}
    page = (tmp_path / "certificate.html").read_text()
    assert "Proven with 95% confidence" in page
    assert "What this does not cover" in page
    assert "http://" not in page
    assert "<script" not in page
    # The same seed repeats the certificate.
    certify(capsys, *words, "--json", tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text())["costs"] == shown["costs"]


def test_an_interrupted_certificate_resumes(blend, tmp_path, capsys, monkeypatch):
    words = (blend, "--budget", 20, "--episodes", 24, "--seed", 7, "--out", tmp_path / "cut")
    ran = []

    def counted(env, blender, **options):
        ran.append(options["seed"])
        if len(ran) == 15:
            raise KeyboardInterrupt
        return run(env, blender, **options)

    monkeypatch.setattr(episodes, "run", counted)
    code, _, err = certify(capsys, *words)
    assert code == 130
    assert "the same command resumes the run" in err
    assert not (tmp_path / "cut" / "certificate.json").exists()
    code, out, err = certify(capsys, *words)
    assert code == 0, out + err
    assert ran == [*range(7, 22), *range(17, 31)], "the first ten episodes are a finished unit"
    assert {path.name for path in (tmp_path / "cut").iterdir()} == {"certificate.json", "certificate.html"}
    certify(capsys, *words[:-1], tmp_path / "whole")
    cut, whole = (json.loads((tmp_path / name / "certificate.json").read_text()) for name in ("cut", "whole"))
    assert cut["costs"] == whole["costs"]
    assert cut["returns"] == whole["returns"]


def test_certifying_leaves_the_blend_as_it_was(blend):
    plan = Certification(
        ("pure-pursuit", "potential-field"), ("bold", "wary"), blend=str(blend), world="PointGoal1", steps=60
    )
    with plan.make_blender() as one, plan.make_blender() as other:
        assert one.frozen
        assert one.bandit.decide(np.eye(2, one.bandit.n_features)).arm in (0, 1)
        assert other.bandit.stage == one.bandit.stage > 0


def test_too_few_episodes_are_said_beforehand_and_the_claim_does_not_pass(blend, tmp_path, capsys):
    code, out, err = certify(capsys, blend, "--budget", 1, "--episodes", 3, "--out", tmp_path)
    assert code == 1
    assert "3 episodes are too few" in err
    needed = Claim(budget=1.0, cost_ceiling=60.0).episodes_needed()
    assert f"--episodes {needed}" in err
    assert "Not proven" in out
    assert not read_certificate(tmp_path / "certificate.json").passed


def test_a_sequential_run_stops_when_it_is_decided(blend, tmp_path, capsys):
    words = (blend, "--sequential", "--out", tmp_path, "--episodes")
    code, out, err = certify(capsys, *words, 400, "--budget", 30)
    assert code == 0, out + err
    stopped = read_certificate(tmp_path / "certificate.json")
    assert stopped.about["outcome"] == "proven"
    assert stopped.bounds.episodes <= 60
    code, _, err = certify(capsys, *words, 5, "--budget", 1)
    assert code == 1
    assert "too few to prove the claim" in err


def test_only_episodes_without_a_gap_before_them_count(blend, tmp_path):
    plan = Certification(
        ("pure-pursuit",), ("bold",), world="PointGoal1", episodes=8, steps=5, block=2, seed=3
    )  # fmt: skip
    asked = []

    def stop(costs):
        asked.append(len(costs))
        return len(costs) >= 4

    returns, _ = plan.run(stop=stop, store=Store(tmp_path / "a", "certify", identity={}), engine="inline")
    assert asked == [2, 4]
    everything = plan.run(store=Store(tmp_path / "b", "certify", identity={}), engine="inline")
    assert returns.tolist() == everything[0][:4].tolist()
    assert len(everything[1]) == 8


def test_a_controller_alone_is_certified_in_its_world(tmp_path, capsys):
    words = ("PointGoal1/ppo", "--budget", 20, "--episodes", 12, "--steps", 30, "--share", 0.5, "--out", tmp_path)
    code, out, err = certify(capsys, *words)
    assert code == 0, out + err
    shown = read_certificate(tmp_path / "certificate.json")
    assert shown.about["world"] == "PointGoal1"
    assert len(shown.about["digests"]["controllers"]["ppo"]) == 64
    assert "at most 50.0% of the episodes" in out


def test_an_environment_in_python_is_certified(plant, capsys):
    words = ("plant.py:drive", "--world", "plant.py:Plant", "--budget", 5, "--episodes", 60, "--out", "out")
    code, _, err = certify(capsys, *words)
    assert code == 1
    assert "--cost-ceiling" in err
    code, out, err = certify(capsys, *words, "--cost-ceiling", 10, "--return-range", "-5..20")
    assert code == 0, out + err
    shown = read_certificate(plant / "out" / "certificate.json")
    assert shown.bounds.return_mean == 10.0
    assert 0.5 < shown.bounds.cost_mean < 4.0


def test_an_environment_without_costs_is_refused(plant, capsys):
    words = ("plant.py:drive", "--world", "plant.py:silent", "--budget", 5, "--episodes", 10, "--cost-ceiling", 10)
    code, _, err = certify(capsys, *words)
    assert code == 1
    assert 'needs info["cost"]' in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--dial", "0.8..0.2"), "smaller and a larger"),
        (("--dial", "all"), "smaller and a larger"),
        (("--dial", "0..7"), "0 (safest) to 1 (boldest)"),
        (("--dial", "0..1"), "no look-ahead networks"),
        (("--confidence", "2"), "confidence must be"),
        (("--budget", "100"), "needs no certificate"),
        (("--controllers", "stop"), "has 2 controllers"),
        (("--engine", "steam"), 'no engine "steam"'),
        (("--world", "Nowhere"), 'no environment "Nowhere"'),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(blend, tmp_path, capsys, words, message):
    code, _, err = call(capsys, "certify", blend, "--budget", 20, "--out", tmp_path / "out", *words)
    assert code in (1, 2)
    assert message in err
    assert not (tmp_path / "out").exists()


def test_what_is_neither_blend_nor_controller_is_refused(tmp_path, capsys):
    code, _, err = certify(capsys, tmp_path / "nothing", "--budget", 20)
    assert code == 1
    assert "no controller" in err
    code, _, err = certify(capsys, "pure-pursuit", "--budget", 20)
    assert code == 1
    assert "world" in err


def test_the_dial_is_tested_from_the_safest_setting_on():
    plan = Certification(("x",), ("x",), world="PointGoal1", episodes=200)
    costs = {0.0: 5.0, 0.5: 10.0, 1.0: 90.0}  # mean cost by setting

    def judge(one):
        drawn = np.random.default_rng(0).exponential(costs[one.changes["prefer"]], 200)
        return judge_episodes(np.zeros(200), drawn, Claim(budget=50.0, cost_ceiling=1000.0), settings=3)

    chosen, tests = certify_dial(plan, [0.0, 0.5, 1.0], judge)
    assert chosen == 1
    assert [test.certificate.passed for test in tests] == [True, True, False]
    costs[0.0] = 90.0
    chosen, tests = certify_dial(plan, [0.0, 0.5, 1.0], judge)
    assert chosen is None
    assert len(tests) == 1  # bolder settings are not tested


def test_the_boldest_passing_setting_of_look_ahead_is_chosen(tmp_path, capsys):
    folder = tmp_path / "blend"
    words = ("PointGoal1", "--lookahead", "--episodes", 1, "--steps", 20, "--no-alone", "--no-counterfactual")
    assert call(capsys, "blend", *words, "--out", folder)[0] == 0
    code, out, err = certify(capsys, folder, "--budget", 15, "--episodes", 12, "--dial", "0.2..0.8", "--settings", 2)
    assert code == 0, out + err
    shown = json.loads((folder / "certificate.json").read_text())
    assert shown["dial"]["chosen"] == 0.8
    assert [row["prefer"] for row in shown["dial"]["settings"]] == [0.2, 0.8]
    assert shown["settings"] == 2
    assert len(shown["digests"]["networks"]) == 64
    assert "prefer 0.8: passed" in out


def test_a_small_budget_is_reported_once(tmp_path, capsys, caplog):
    folder = tmp_path / "blend"
    words = ("PointGoal1", "--cost-budget", 0.1, "--episodes", 1, "--steps", 20, "--no-alone")
    assert call(capsys, "blend", *words, "--out", folder)[0] == 0
    caplog.clear()
    *_, err = certify(capsys, folder, "--budget", 15, "--episodes", 4)
    assert err.count("a cost budget of 0.1 per episode") == 1
    assert caplog.records == []


def test_a_run_is_compared_with_its_certificate(blend, tmp_path, capsys):
    certify(capsys, blend, "--budget", 20, "--episodes", 20, "--out", tmp_path)
    drive = ("blend", "PointGoal1", "--episodes", 2, "--steps", 60, "--no-alone", "--no-counterfactual", "--seed", 3)
    words = (*drive, "--certificate", tmp_path / "certificate.json", "--json", tmp_path / "out.json", "--controllers")
    code, out, err = call(capsys, *words, "pure-pursuit", "potential-field")
    assert code == 0, err
    assert "no disagreement with the certificate in 2 episodes" in out
    assert json.loads((tmp_path / "out.json").read_text())["certificate"]["episodes"] == 2
    code, _, err = call(capsys, *words, "heading-pid", "potential-field")
    assert code == 1
    assert "certificate of other controllers" in err


SPY = "from pathlib import Path\nPath('executed').touch()\n" + PLANT


@pytest.mark.parametrize(
    "named", [{"world": "spy.py:Plant"}, {"environment": {"cost": "spy.py:drive"}}, {"world": "spy:Plant-v0"}]
)
def test_a_directory_cannot_name_code(blend, tmp_path, monkeypatch, capsys, named):
    """Not even if there is a file with the very name of the code, colon included."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(blend, tmp_path / "run")
    about = json.loads((blend / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps(about | named))
    for name in ("spy.py", "spy.py:Plant", "spy.py:drive", "spy:Plant-v0"):
        (tmp_path / name).write_text(SPY)
    with pytest.raises(SystemExit) as stopped:
        main(["certify", "run", "--budget", "5", "--episodes", "1", "--cost-ceiling", "10"])
    assert stopped.value.code == 1
    assert "is Python code; name it again" in capsys.readouterr().err
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    "odd", [{"foo": 1}, {"arguments": 5}, {"episode_steps": "x"}, {"episode_steps": 10**30}, {"cost": 5}, [["a", "b"]]]
)
def test_an_odd_environment_is_refused(blend, tmp_path, capsys, odd):
    shutil.copytree(blend, tmp_path / "run")
    about = json.loads((blend / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps(about | {"environment": odd}))
    with pytest.raises(SystemExit) as stopped:
        main(["certify", str(tmp_path / "run"), "--budget", "5", "--episodes", "1", "--cost-ceiling", "10"])
    assert stopped.value.code == 1
    assert "run.json is damaged or not the description of a blend" in capsys.readouterr().err
