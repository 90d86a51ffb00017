r"""A world with two kinds of harm, and a specialist for each: an exercise for blends of three controllers.

The robot drives to goals among hazards, which cost while it is inside, and vases, which cost while they are touched or
moved. `pursuit` is fast and avoids nothing. `hazard_expert` avoids hazards only, `vase_expert` vases only.

    world=examples/two_harms.py:two_harms
    controllers="examples/two_harms.py:pursuit examples/two_harms.py:hazard_expert examples/two_harms.py:vase_expert"
    blendctl train-lookahead $world --controllers $controllers --steps 1.2e6 --members 1 --reuse 20 --final-reuse 60 \
        --dial-episodes 0 --out runs/two_harms
    blendctl compare $world --controllers $controllers --lookahead runs/two_harms --methods lookahead \
        --set lookahead.prefer=0.4,0.6,0.8 --episodes 100 --seed 10000000

Training takes about 15 minutes on one core. On these 100 episodes (`results/compare-two-harms`), alone, `pursuit` has
13.5 / 103.5 (return / cost), `hazard_expert` 8.6 / 51.5, all from vases, and `vase_expert` 11.6 / 56.0, almost all of
it from hazards. The blend of the three has 11.1 / 1.7 at prefer 0.4 and 11.0 / 4.9 at 0.6.
"""

from blendctl.controllers import PotentialField, PurePursuit
from blendctl.envs import Goal, Hazards, Task, Vases

two_harms = Task("Point", "goal", 1.8, (Goal(), Hazards(8), Vases(4)))

pursuit = PurePursuit(two_harms)
hazard_expert = PotentialField(two_harms, avoid=("hazards",), influence=0.6, strength=6.0)
vase_expert = PotentialField(two_harms, avoid=("vases",), influence=0.6, strength=6.0)
