"""The FMU of an exported blend drives as the blend does in Python."""

import ctypes
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
from compiled_blend import GCC, STRICT, needs_gcc
from example_files import FOLDER, example

fmpy = pytest.importorskip("fmpy")
pytestmark = needs_gcc


@pytest.fixture(scope="module")
def cart():
    return example("robot/cart")


@pytest.fixture(scope="module")
def fmu(cart, tmp_path_factory):
    """The FMU of a cart's blend; the learner is saved beside it."""
    folder = tmp_path_factory.mktemp("fmu")
    blender = cart.learn(400)
    blender.save(folder / "blend.safetensors")
    blender.export(folder / "c", control_period=cart.PERIOD)
    return example("robot/make_fmu").make_fmu(folder / "c", folder / "blend.fmu")


@pytest.fixture
def slave(fmu, cart, tmp_path):
    """An instance after its initialization, and its variables' references by name."""
    from fmpy.fmi3 import FMU3Slave

    about = fmpy.read_model_description(str(fmu))
    assert float(about.coSimulation.fixedInternalStepSize) == cart.PERIOD
    folder = fmpy.extract(str(fmu), unzipdir=str(tmp_path / "fmu"))
    made = FMU3Slave(guid=about.instantiationToken, unzipDirectory=folder, modelIdentifier="blend", instanceName="one")
    made.instantiate()
    made.enterInitializationMode()
    made.exitInitializationMode()
    yield made, {variable.name: variable.valueReference for variable in about.modelVariables}
    made.terminate()
    made.freeInstance()


def step(slave, references, observation, feedback, ended, at):
    """Step the FMU; return the action and the arm."""
    slave.setFloat64([references[f"observation_{i}"] for i in range(4)], observation)
    slave.setFloat64([references["feedback_0"], references["feedback_1"]], feedback)
    slave.setBoolean([references["ended"]], [ended])
    slave.doStep(at * 0.05, 0.05)
    return slave.getFloat64([references["action_0"]])[0], slave.getInt32([references["arm"]])[0]


def test_it_follows_the_standard(fmu):
    from fmpy.validation import validate_fmu

    assert validate_fmu(str(fmu)) == []
    assert fmpy.platform in fmpy.supported_platforms(str(fmu))
    headers = Path(fmpy.__file__).parent / "c-code"
    command = [GCC, *STRICT, "-fsyntax-only", "-DFMI3_HEADERS", "-DFMU_PERIOD=0.05", f"-I{headers}"]
    done = subprocess.run(
        [*command, f"-I{fmu.parent / 'c'}", FOLDER / "robot" / "fmu.c"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[:3000]


def test_it_drives_the_plant_as_the_blender_does(fmu, slave, cart):
    slave, references = slave
    blender = cart.blend(bandit=fmu.parent / "blend.safetensors")
    rng = np.random.default_rng(3)
    state, feedback, ended = np.zeros(4), [0.0, 0.0], False
    for number in range(600):
        if number % 50 == 0:
            state[2:] = rng.uniform(-2.0, 2.0), rng.integers(2)
        action, arm = step(slave, references, state.tolist(), feedback, ended, number)
        np.testing.assert_array_equal(blender.act(state), [action])
        assert arm == blender.choice.arm
        state, reward, cost = cart.step(state, action)
        feedback, ended = [reward, -cost], number % 150 == 149
        blender.observe(reward, cost, done=ended)
    assert slave.getInt64([references["switches"]]) == [blender.counts.switches]
    assert blender.counts.switches > 20


def test_a_state_can_be_kept_and_restored(slave):
    slave, references = slave
    rows = np.random.default_rng(0).uniform(-1.0, 1.0, (40, 4)).tolist()
    state = ctypes.c_void_p()
    slave.fmi3GetFMUState(slave.component, ctypes.byref(state))
    runs = []
    for _ in range(2):
        slave.fmi3SetFMUState(slave.component, state)
        runs.append([step(slave, references, row, [-0.1, 0.0], False, at) for at, row in enumerate(rows)])
    slave.fmi3FreeFMUState(slave.component, ctypes.byref(state))
    assert runs[0] == runs[1]
    assert len({arm for _, arm in runs[0]}) == 2


def test_another_step_size_and_another_contract_are_refused(fmu, slave, tmp_path):
    slave, _ = slave
    with pytest.raises(Exception, match="fmi3DoStep"):
        slave.doStep(0.0, 0.01)
    slave.guid = "0" * 64
    kept = slave.component
    with pytest.raises(Exception, match="instantiate"):
        slave.instantiate()
    slave.component = kept
    with zipfile.ZipFile(fmu) as archive:
        assert {"sources/blend.c", "sources/fmu.c", "sources/buildDescription.xml"} <= set(archive.namelist())


def test_a_simulator_runs_it(fmu):
    result = fmpy.simulate_fmu(str(fmu), stop_time=1.0, output=["action_0", "arm", "switches"])
    assert len(result) == 21
    assert set(result["arm"][1:]) <= {0, 1}
