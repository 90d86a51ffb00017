"""A world with two kinds of harm, and a specialist for each: an exercise for blends of three controllers.

The robot drives to goals among hazards, which cost while it is inside, and vases, which cost while they are touched or
moved. `pursuit` is fast and avoids nothing. `hazard_expert` avoids hazards only, `vase_expert` vases only.

    world=examples/two_harms.py:two_harms
    controllers="examples/two_harms.py:pursuit examples/two_harms.py:hazard_expert examples/two_harms.py:vase_expert"
    blendctl train-lookahead $world --controllers $controllers --steps 3e6 --out runs/two_harms
    blendctl compare $world --controllers $controllers --lookahead runs/two_harms --methods lookahead --episodes 200

Alone, over 48 episodes from seed 500,000: `pursuit` 13.5 / 111 (return / cost), `hazard_expert` 9.2 / 54, all from
vases, `vase_expert` 11.4 / 39, almost all of it from hazards.
"""

from blendctl.controllers import PotentialField, PurePursuit
from blendctl.envs import Goal, Hazards, Task, Vases

two_harms = Task("Point", "goal", 1.8, (Goal(), Hazards(8), Vases(4)))

pursuit = PurePursuit(two_harms)
hazard_expert = PotentialField(two_harms, avoid=("hazards",), influence=0.6, strength=6.0)
vase_expert = PotentialField(two_harms, avoid=("vases",), influence=0.6, strength=6.0)
