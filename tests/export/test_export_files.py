"""The files of an export: what they promise, which compilers take them, and what is refused."""

import hashlib
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from compiled_blend import GCC, STRICT, constants, needs_gcc
from short_drive import blend_to

from blendctl import Blender
from blendctl.cli import main
from blendctl.controllers import load
from blendctl.errors import InputError
from blendctl.export.exportable import exportable
from blendctl.features import Custom, SimulatedLookAhead

PROGRAM = """
#include "blend.h"
#include <stdio.h>
static const double observation[BLEND_OBSERVATION_SIZE] = {%s};
static double action[BLEND_ACTION_SIZE];
BLEND_CHECK_SIZES(observation, action);
int main(void)
{
    static blend_memory memory;
    blend_state *s = (blend_state *)&memory;
    const double feedback[BLEND_OBJECTIVES] = {0.1, -1.0};
    const double bad[BLEND_OBJECTIVES] = {0.0 / 0.0, 0.0};
    int i, sum = 0;
    if (blend_state_size() > sizeof memory)
        return 1;
    blend_init(s);
    for (i = 0; i < 200; i++) {
        sum += blend_act(s, observation, action);
        blend_observe(s, i %% 50 == 7 ? bad : feedback);
        if (i %% 60 == 59)
            blend_end_episode(s);
    }
    printf("%%d %%.17g\\n", sum, action[0]);
    return blend_selfcheck();
}
"""


def call(capsys, *args):
    with pytest.raises(SystemExit) as stopped:
        main([str(arg) for arg in args])
    return stopped.value.code, *capsys.readouterr()


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    return blend_to(
        tmp_path_factory.mktemp("run"),
        "--no-alone",
        "--no-counterfactual",
        "--features",
        "one-hot",
        episodes=1,
        steps=60,
    )


@pytest.fixture(scope="module")
def folder(run_folder, tmp_path_factory):
    """A small export: classical controllers and a linear model."""
    out = tmp_path_factory.mktemp("export") / "c"
    with pytest.raises(SystemExit) as stopped:
        main(["export", str(run_folder), "--format", "c", "-o", str(out)])
    assert stopped.value.code == 0
    values = ", ".join(f"{value:.6f}" for value in np.random.default_rng(0).uniform(0, 1, 60))
    (out / "main.c").write_text(PROGRAM % values)
    return out


def build_and_run(folder, *command, emulator=(), program="program"):
    built = subprocess.run(
        [*command, folder / "main.c", folder / "blend.c", "-o", folder / program, "-lm"], capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr[:3000]
    done = subprocess.run([*emulator, folder / program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@needs_gcc
def test_sanitizers_find_nothing(folder):
    build_and_run(folder, GCC, *STRICT, "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@needs_gcc
@pytest.mark.parametrize(
    ("compiler", "options", "emulator"),
    [("clang", (), ()), ("arm-linux-gnueabihf-gcc", ("-static",), ("qemu-arm",))],
)
def test_other_compilers_agree_with_gcc(folder, compiler, options, emulator):
    for tool in (compiler, *emulator):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool}: install it with `make setup-compilers` as root")
    expected = build_and_run(folder, GCC, *STRICT, "-O2").split()
    actual = build_and_run(folder, compiler, *STRICT, "-O2", *options, emulator=emulator, program=compiler).split()
    assert actual[0] == expected[0], "the same arms"
    assert float(actual[1]) == pytest.approx(float(expected[1]), abs=1e-9)


@needs_gcc
def test_an_array_of_the_wrong_length_does_not_compile(folder, tmp_path):
    wrong = (folder / "main.c").read_text().replace("action[BLEND_ACTION_SIZE]", "action[BLEND_ACTION_SIZE + 1]")
    (tmp_path / "main.c").write_text(wrong)
    command = [GCC, "-std=c99", "-fsyntax-only", f"-I{folder}", tmp_path / "main.c"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode != 0
    assert "blend_sizes_are_right" in result.stderr


def test_the_source_needs_nothing_but_math(folder):
    source = (folder / "blend.c").read_text()
    assert set(re.findall(r"#include (\S+)", source)) == {'"blend.h"', "<math.h>", "<stdint.h>"}
    assert not re.search(r"\b(malloc|free|printf|memcpy|memset)\b", source)
    tables = re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)
    for line in re.findall(r"^static (?!const|int |double |void |real |float )\w+.*=", tables, re.MULTILINE):
        raise AssertionError(f"a variable that can change: {line}")


def test_the_contract_describes_the_files(folder):
    content = (folder / "contract.json").read_bytes()
    contract = json.loads(content)
    sizes = constants(folder)
    assert hashlib.sha256(content).hexdigest() in (folder / "blend.c").read_text()
    assert sizes["BLEND_OBSERVATION_SIZE"] == contract["observation"]["size"] == 60
    assert (sizes["BLEND_ACTION_SIZE"], sizes["BLEND_ARMS"], sizes["BLEND_OBJECTIVES"]) == (2, 2, 2)
    assert len(contract["observation"]["entries"]) == 60
    assert contract["observation"]["entries"][59]["name"] == "vases lidar 15"
    assert contract["control_period"] == 0.02
    assert [one["name"] for one in contract["objectives"]] == ["reward", "-cost"]
    assert [one["name"] for one in contract["controllers"]] == ["bold", "wary"]
    assert contract["fallback"] == ["wary", "bold"]
    golden = contract["golden"]
    assert len(golden["observations"]) == len(golden["arms"]) == len(golden["actions"]) == len(golden["feedback"])


def test_the_shipped_pair_is_small(tmp_path):
    pair = [load("PointGoal1/ppo"), load("PointGoal1/ppo-lagrangian")]
    for settings, networks in (({"features": "predictions"}, 4), ({"cost_budget": 25.0}, 5)):
        Blender(pair, seed=0, **settings).export(tmp_path, replace=True)
        assert (tmp_path / "blend.c").stat().st_size < 4_000_000
        assert constants(tmp_path)["BLEND_STATE_BYTES"] < 64_000
        contract = json.loads((tmp_path / "contract.json").read_text())
        assert len(contract["weights"]) == networks, "two actors, and context or look-ahead networks"


@pytest.mark.parametrize("compiler", ["gcc", "clang", "arm-linux-gnueabihf-gcc"])
def test_networks_compile_without_warnings_at_full_optimisation(compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}: install it with `make setup-compilers` as root")
    Blender([load("PointGoal1/ppo")], features="critics", seed=0).export(tmp_path)
    command = [compiler, *STRICT, "-O3", "-c", tmp_path / "blend.c", "-o", tmp_path / "blend.o"]
    built = subprocess.run(command, capture_output=True, text=True)
    assert (built.returncode, built.stderr) == (0, "")


def test_every_part_that_cannot_be_exported_is_listed(tmp_path):
    def steer(observation):
        return [0.0, 0.0]

    feature = Custom(lambda observation, action, arm: [0.5], size=1)
    rule = type("Mine", (), {"name": "mine", "candidates": lambda self, stage: stage.loss <= stage.loss})()
    blender = Blender([steer, load("PointGoal1/ppo")], ["mine", "ppo"], features=feature, rule=rule, action_shape=(2,))
    with pytest.raises(InputError) as caught:
        blender.export(tmp_path)
    words = str(caught.value)
    for part in ('controller "mine" is a Python function', "custom feature", 'rule "mine"', "remote"):
        assert part in words
    assert not list(tmp_path.iterdir())


def test_simulated_look_ahead_is_refused(tmp_path):
    pair = [load("PointGoal1/ppo"), load("PointGoal1/ppo-lagrangian")]
    blender = Blender(pair, features=SimulatedLookAhead(lambda *_: (np.zeros(2), np.zeros(2))), seed=0)
    with pytest.raises(InputError, match="simulated look-ahead needs a simulator"):
        blender.export(tmp_path)


def test_sizes_must_be_known(tmp_path):
    with pytest.raises(InputError, match="sizes of observations and actions"):
        Blender([lambda o: [0.0]], features="one-hot", seed=0).export(tmp_path)


def test_other_files_are_kept_unless_replaced(run_folder, tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("mine")
    code, _, err = call(capsys, "export", run_folder, "-o", tmp_path)
    assert code == 1
    assert "notes.txt" in err
    code, out, _ = call(capsys, "export", run_folder, "-o", tmp_path, "--replace", "--float32", "--frozen")
    assert code == 0
    assert "blend.c" in out
    assert (tmp_path / "notes.txt").read_text() == "mine"
    contract = json.loads((tmp_path / "contract.json").read_text())
    assert contract["limits"]["precision"] == "single"
    assert contract["frozen"]
    assert "static int update" not in (tmp_path / "blend.c").read_text()


def test_geometry_stays_in_double_where_next_steps_decide(tmp_path):
    pair = [load("PointGoal1/ppo"), load("PointGoal1/ppo-lagrangian")]
    for features, precision in (("predictions", "double"), ("lookahead", "single")):
        blender = Blender(pair, features=features, stochastic=False, seed=0)
        blender.export(tmp_path / features, world="PointGoal1", float32=True)
        contract = json.loads((tmp_path / features / "contract.json").read_text())
        assert contract["limits"]["precision"] == precision


def test_a_saved_learner_needs_its_controllers(run_folder, tmp_path, capsys):
    file = tmp_path / "learner.safetensors"
    file.write_bytes((run_folder / "bandit.safetensors").read_bytes())
    code, _, err = call(capsys, "export", file, "-o", tmp_path / "c")
    assert code == 1
    assert "--controllers" in err
    pair = ("--controllers", "pure-pursuit", "potential-field", "--world", "PointGoal1", "--features", "one-hot")
    assert call(capsys, "export", file, "-o", tmp_path / "c", *pair)[0] == 0
    contract = json.loads((tmp_path / "c" / "contract.json").read_text())
    assert contract["learner"]["updates"] == 60
    assert [one["name"] for one in contract["controllers"]] == ["bold", "wary"]


def test_what_is_not_a_blend_is_refused(tmp_path, capsys):
    code, _, err = call(capsys, "export", tmp_path, "-o", tmp_path / "c")
    assert code == 1
    assert "not the directory of a blend" in err


@pytest.mark.parametrize(
    "name", ["*\\ int evil; /*", "*/ int evil; /*", "*\n/ evil", "evil??/", "evil \u202e\u2066", "evil\\"]
)
def test_names_stay_in_comments(tmp_path, name):
    @exportable("action[0] = 0.5;", observation_size=2, action_size=1)
    def drive(observation):
        return [0.5]

    with Blender([drive, drive], [name, "safe"], features="one-hot", action_shape=(1,)) as blender:
        blender.export(tmp_path / "c")
    for file in ("blend.c", "blend.h"):
        source = (tmp_path / "c" / file).read_text()
        assert "evil" in source
        assert "evil" not in re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)
        assert not re.search(r"evil.*(\\$|\?\?|\u202e)", source, flags=re.MULTILINE)
