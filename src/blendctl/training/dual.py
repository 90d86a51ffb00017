"""The dual of a constrained trust-region step, solved in closed form, in all its cases."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Dual", "solve_dual"]


@dataclass(frozen=True)
class Dual:
    """The best step is (H^-1 g - nu H^-1 b) / lam; in recovery it is -H^-1 b / lam."""

    case: str  # unconstrained | bound | inactive | recovery
    lam: float  # multiplier of the trust region
    nu: float  # multiplier of the cost constraint


def solve_dual(q: float, r: float, s: float, *, c: float, delta: float, tiny: float = 1e-12) -> Dual:
    """Maximise g'x subject to c + b'x <= 0 and x'Hx <= 2 delta, from q = g'H⁻¹g, r = g'H⁻¹b, s = b'H⁻¹b.

    Cases, with c the present excess of cost over its limit (Achiam et al. 2017, appendix 10.2):

    - *unconstrained*: the cost does not depend on the policy (s = 0) and is allowed, or the whole
      trust region is allowed (c < 0 and c² > 2 delta s): the plain trust-region step;
    - *inactive*: the plane cuts the region, but the plain step stays on the allowed side;
    - *bound*: the plain step would cross the plane: the best step ends on plane and edge;
    - *recovery*: no step in the region is allowed (c > 0 and c² > 2 delta s): only reduce the cost.
      If then s = 0 as well, nothing reduces it, and the step is the unconstrained one.

    On the plane b'x = -c stationarity gives nu = (r + lam c)/s, the edge gives
    lam² (2 delta - c²/s) = q - r²/s.
    """
    plain = math.sqrt(max(q, tiny) / (2.0 * delta))
    if s <= tiny:
        return Dual("unconstrained", plain, 0.0)
    room = 2.0 * delta - c * c / s  # squared length left on the edge once the plane is reached
    if room <= 0.0:
        if c > 0.0:
            return Dual("recovery", math.sqrt(s / (2.0 * delta)), 1.0)
        return Dual("unconstrained", plain, 0.0)
    # The plain step changes the cost by r / plain; nothing more to do where that is allowed.
    if c + r / plain <= 0.0:
        return Dual("inactive", plain, 0.0)
    along = max(q - r * r / s, 0.0)  # what of g the plane leaves to climb
    lam = max(math.sqrt(along / room), tiny)
    return Dual("bound", lam, max((r + lam * c) / s, 0.0))
