"""Layout of learners, options and decisions in rows of float64.

A learner is one row, so that a batch of learners is a matrix:

    stage | decisions | bound sum | log det | rescaled | feedback sums (m) | [U Q] (d rows of d + m)

A decision is one row:

    arm | radius | width (a) | loss (a) | candidate (a) | estimate (a x m) | ucb (a x m)
"""

from __future__ import annotations

# columns of a learner; the feedback sums (m) and then [U Q] start at FEEDBACK
STAGE, DECISIONS, BOUND_SUM, LOG_DET, RESCALED, FEEDBACK = range(6)

# columns of a decision; the blocks per arm start at INDICES
ARM, RADIUS, INDICES = range(3)

# entries of the options; the objectives' scales (m) start at SCALES
REGULARIZATION, NOISE, THETA_BOUND, FEATURE_BOUND, DELTA = range(5)
RADIUS_KIND, DISCOUNT, TIE, RESCALE, PRINTED, LOG_PRIOR, SCALES = range(5, 12)  # LOG_PRIOR: log det V_0
PAPER, DETERMINANT = 0.0, 1.0

# return codes of a kernel
OK, NOT_FINITE, TOO_LONG, BAD_FEEDBACK = range(4)

LARGEST_FEEDBACK = 1e150  # beyond it, sums of squares could overflow


def learner_size(d: int, m: int) -> int:
    """Return the length of a learner's row."""
    return FEEDBACK + m + d * (d + m)


def decision_size(arms: int, m: int) -> int:
    """Return the length of a decision's row."""
    return INDICES + arms * (3 + 2 * m)
