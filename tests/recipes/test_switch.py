"""A switch, added as CONTRIBUTING.md says, is compared with the others."""

import json

from recipes import RecipeCopy

RECIPE = "A new switch to compare"


def test_the_recipe_adds_a_method_to_the_comparison(tmp_path):
    copy = RecipeCopy(tmp_path, RECIPE)
    assert set(copy.files) == {"src/blendctl/switches/cost_limit.py", "src/blendctl/switches/methods.py"}
    assert "cost-limit.limit = 10, 25: cost of an episode" in copy.run("-m", "blendctl", "compare", "--list")
    copy.run(
        "-m", "blendctl", "compare", "PointGoal1", "--methods", "performant", "safe", "cost-limit", "--episodes", 4,
        "--steps", 200, "--engine", "inline", "--out", "out", "--json", "compare.json",
    )  # fmt: skip
    methods = json.loads((tmp_path / "compare.json").read_text())["methods"]
    method = methods["cost-limit"]
    assert method["episodes"] == 4
    assert [row["parameters"] for row in method["sweep"]] == [{"limit": 10.0}, {"limit": 25.0}]
    assert 0.0 < method["share_mean"] <= 1.0
    assert methods["performant"]["share_mean"] == 1.0
