"""The recipe for a feature: after it, a blender and a batch take it by its name."""

from recipes import RecipeCopy

USE = """
import numpy as np
from blendctl import Blender, BlenderBatch

controllers = [lambda o: np.full(2, 1.0), lambda o: np.full(2, 0.2)]
blender = Blender(controllers, ["fast", "slow"], features="effort", seed=0)
blender.act(np.zeros(3))
assert blender.observe(reward=0.1, cost=0.0) == "learned"
batch = BlenderBatch([lambda o: np.full((4, 2), 1.0), lambda o: np.full((4, 2), 0.2)], 4, features="effort", seed=0)
batch.act(np.zeros((4, 3)))
assert np.array_equal(batch.psi, np.stack([blender.last.features] * 4))
print("done")
"""


def test_a_feature_made_by_the_recipe_works_by_its_name(tmp_path):
    copy = RecipeCopy(tmp_path, "A new feature")
    assert len(set(copy.files)) == 2
    assert copy.run("-c", USE) == "done\n"
