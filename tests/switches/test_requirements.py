"""What methods need of their controllers."""

from blendctl.controllers import load, open_controller
from blendctl.switches.methods import METHODS, with_values
from blendctl.switches.requirements import missing_requirement


def test_the_zoo_serves_every_method():
    zoo = [load("PointGoal1/ppo"), load("PointGoal1/ppo-lagrangian")]
    assert all(missing_requirement(method, zoo) is None for method in METHODS.values())


def test_missing_requirements_are_named():
    zoo = load("PointGoal1/ppo")
    plain = open_controller("pure-pursuit", world="PointGoal1")
    assert "cost critic" in missing_requirement(METHODS["simplex"], [plain, zoo])
    assert missing_requirement(METHODS["simplex"], [zoo, plain]) is None
    assert "predict 50 steps" in missing_requirement(METHODS["predicted"], [zoo, plain])
    odd = with_values(METHODS["predicted"], {"horizon": "10,33"})
    assert "predict 33 steps" in missing_requirement(odd, [zoo, zoo])
    assert missing_requirement(METHODS["paper"], [plain, plain]) is None
