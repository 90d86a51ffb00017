"""The recipe for a decision rule: after it, the rule decides, is saved, and has a bound, by its name."""

from recipes import RecipeCopy

USE = """
import numpy as np
from blendctl import BanditBatch, BlendingBandit

psi = np.array([[0.6, 0.8], [0.8, -0.6]])
bandit = BlendingBandit(2, rule="max-min", seed=0)
for _ in range(50):
    arm = bandit.decide(psi).arm
    bandit.update(psi[arm], [[1.0, 0.0], [0.5, 0.5]][arm])
assert bandit.decide(psi).arm == 1
assert bandit.regret_bound() > 0
bandit.save("bandit")
assert BlendingBandit.load("bandit").decide(psi).arm == 1
batch = BanditBatch(3, 2, rule="max-min", seed=0)
for row, decision in enumerate(batch.decide(np.stack([psi] * 3))):
    assert decision.arm == BlendingBandit(2, rule="max-min", seed=row).decide(psi).arm
print("done")
"""


def test_a_rule_made_by_the_recipe_works_by_its_name(tmp_path):
    copy = RecipeCopy(tmp_path, "A new decision rule")
    assert len(set(copy.files)) == 2
    assert copy.run("-c", USE) == "done\n"
