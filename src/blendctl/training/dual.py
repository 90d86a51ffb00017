"""The dual of a constrained trust-region step, solved in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Dual:
    """The best step is along_return * H⁻¹g + along_cost * H⁻¹b."""

    case: str  # unconstrained | inactive | bound | degenerate | recovery
    along_return: float
    along_cost: float
    price: float  # multiplier of the cost constraint: return that a unit of allowed cost is worth


def solve_dual(q: float, r: float, s: float, *, c: float, delta: float, tiny: float = 1e-12) -> Dual:
    """Maximise g'x subject to c + b'x <= 0 and x'Hx <= 2 delta, from q = g'H⁻¹g, r = g'H⁻¹b, s = b'H⁻¹b.

    Cases, with c the present excess of cost over its limit (Achiam et al. 2017, appendix 10.2):

    - *unconstrained*: the whole trust region is allowed (c < 0 and c² > 2 delta s), or no step changes
      the cost (s = 0): the plain trust-region step;
    - *inactive*: the plane cuts the region, but the plain step stays on the allowed side;
    - *bound*: the plain step would cross the plane: the best step ends on plane and edge;
    - *degenerate*: the same, but g has no part along the plane: the shortest step to the plane;
    - *recovery*: no step in the region is allowed (c > 0 and c² > 2 delta s): only reduce the cost.

    On the plane b'x = -c stationarity yields the price (r + lam c)/s, and the edge yields
    lam² (2 delta - c²/s) = q - r²/s.
    """
    plain = math.sqrt(2.0 * delta / max(q, tiny))
    if s <= tiny:
        return Dual("unconstrained", plain, 0.0, price=0.0)
    room = 2.0 * delta - c * c / s  # squared length left on the edge once the plane is reached
    if room <= 0.0:
        if c > 0.0:
            return Dual("recovery", 0.0, -math.sqrt(2.0 * delta / s), price=math.inf)
        return Dual("unconstrained", plain, 0.0, price=0.0)
    if c + r * plain <= 0.0:
        return Dual("inactive", plain, 0.0, price=0.0)
    climb = q - r * r / s  # squared length of the part of g along the plane
    if climb <= 1e-9 * q:
        return Dual("degenerate", 0.0, -c / s, price=max(r / s, 0.0))
    lam = math.sqrt(climb / room)
    price = max((r + lam * c) / s, 0.0)
    return Dual("bound", 1.0 / lam, -price / lam, price=price)
