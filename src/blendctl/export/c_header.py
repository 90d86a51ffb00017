"""Write blend.h: the interface of an exported blend, and its sizes as constants."""

from __future__ import annotations

from blendctl.export.c_text import comment, define
from blendctl.export.spec import BlendSpec

PROLOGUE = """\
/* blend.h: a blend of controllers as C99, written by `blendctl export`. See contract.json for names, units and bounds.

   Controllers (arms): {arms}
   Objectives: {objectives}

   blend_state *state = memory of BLEND_STATE_BYTES, aligned as a double;
   blend_init(state);
   every control step:  arm = blend_act(state, observation, action);  then  blend_observe(state, feedback);
   at the end of an episode:  blend_end_episode(state);

   There is no allocation, no global state and no library besides math.h. Loops have fixed bounds: memory and the number
   of operations are the constants below. A state must not be used by two threads at once. */

#ifndef BLEND_H
#define BLEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#define BLEND_AT_LEAST(n)
#else
#define BLEND_AT_LEAST(n) static n
#endif

"""

INTERFACE = """
typedef struct blend_state blend_state;

/* Memory for a state: blend_memory m; blend_state *s = (blend_state *)&m; */
typedef union {
    double alignment;
    int64_t alignment_of_counters;
    unsigned char bytes[BLEND_STATE_BYTES];
} blend_memory;

/* Fail to compile unless two arrays have the sizes of an observation and an action. */
#define BLEND_CHECK_SIZES(observation, action) \\
    typedef char blend_sizes_are_right[ \\
        sizeof(observation) == BLEND_OBSERVATION_SIZE * sizeof(double) \\
        && sizeof(action) == BLEND_ACTION_SIZE * sizeof(double) ? 1 : -1]

/* What blend_observe did with the feedback. */
#define BLEND_LEARNED 1 /* the learner was updated */
#define BLEND_COUNTED 0 /* the stage goes on, or cannot be learned from */
#define BLEND_DUPLICATE (-1) /* the present step has been observed before */
#define BLEND_UNKNOWN (-2) /* the present step has no stage */
#define BLEND_REFUSED (-3) /* it is not finite */

/* The latest decision; in scaled units, as the learner sees them. Rows of arms without a context are NaN or 0. */
typedef struct {
    int arm; /* that drives, -1 for the safe action */
    int picked; /* by the rule, -1 without a decision */
    int cause; /* 1 first, 2 rule, 3 alone, 4 dwell, 5 fallback, 6 no context, 7 no decision, 8 safe action, 9 guard */
    int decided; /* arms that the decision was about */
    double radius, weight; /* confidence radius; cost weight of the dial, 0 without one */
    double psi[BLEND_ARMS][BLEND_FEATURES];
    double width[BLEND_ARMS], loss[BLEND_ARMS];
    double estimate[BLEND_ARMS][BLEND_OBJECTIVES], ucb[BLEND_ARMS][BLEND_OBJECTIVES];
    double proposals[BLEND_ARMS][BLEND_ACTION_SIZE];
} blend_info;

/* What a robot may publish, since blend_init. */
typedef struct {
    int64_t steps, stages, switches, safe_actions, learned, refused, episodes;
    int64_t driven[BLEND_ARMS]; /* stages by arm */
    int64_t failures[BLEND_ARMS]; /* actions that were not finite; each benches the arm */
    int64_t benched[BLEND_ARMS]; /* control steps for which the arm still sits out */
    int guard_arm; /* that the guard has fallen back to, -1 for none */
    int64_t compared, surprises; /* stages whose feedback was compared with its estimate; those too far from it */
    int64_t alarm; /* drift alarm: stages compared when it was raised, 0 for none; see BLEND_FALSE_ALARM */
    double estimated[BLEND_OBJECTIVES], observed[BLEND_OBJECTIVES]; /* means over the compared stages, unscaled */
    int64_t timed; /* durations that blend_record_time has counted */
    double p50, p99, p999, longest; /* s; quantiles are rounded up, by an eighth at most */
} blend_status_t;

size_t blend_state_size(void);

/* Start where the saved blend stopped. */
void blend_init(blend_state *state);

/* Write the action for an observation; return the arm that drives, -1 for the safe action. */
int blend_act(blend_state *state, const double observation[BLEND_AT_LEAST(BLEND_OBSERVATION_SIZE)],
    double action[BLEND_AT_LEAST(BLEND_ACTION_SIZE)]);

/* Learn from the feedback of the latest control step: the objectives as maximised, unscaled. */
int blend_observe(blend_state *state, const double feedback[BLEND_AT_LEAST(BLEND_OBJECTIVES)]);

void blend_end_episode(blend_state *state);

void blend_inspect(const blend_state *state, blend_info *info);

/* Count the measured duration of a control step; what is not a duration is ignored. Times below 0.12 us count as
   0.12 us, times above 1.9 s as 1.9 s. */
void blend_record_time(blend_state *state, double seconds);

void blend_status(const blend_state *state, blend_status_t *status);

/* Replay the golden vectors: 0 if all are reproduced, else the number of the first that is not, from 1. It needs
   BLEND_STATE_BYTES more stack than blend_act. */
int blend_selfcheck(void);

/* SHA-256 of contract.json. */
const char *blend_digest(void);

#ifdef __cplusplus
}
#endif

#endif
"""


def header_text(
    spec: BlendSpec, *, float32: bool, state_bytes: int, stack_bytes: int, constant_bytes: int, multiply_adds: int
) -> str:
    """Return the header of a blend."""
    options = spec.options
    macros = define(
        BLEND_OBSERVATION_SIZE=spec.observation_size,
        BLEND_ACTION_SIZE=spec.action_size,
        BLEND_OBJECTIVES=options.n_objectives,
        BLEND_ARMS=len(spec.names),
        BLEND_FEATURES=options.n_features,
        BLEND_CONTROL_STEPS_PER_DECISION=spec.hold,
        BLEND_SINGLE_PRECISION=float32,
    )
    limits = define(
        BLEND_STATE_BYTES=state_bytes,
        BLEND_STACK_BYTES=stack_bytes,
        BLEND_WEIGHT_BYTES=constant_bytes,
        BLEND_MULTIPLY_ADDS=multiply_adds,
    )
    alarm = define(BLEND_FALSE_ALARM=spec.drift.false_alarm)
    arms = ", ".join(f"{arm} {comment(name)}" for arm, name in enumerate(spec.names))
    return (
        PROLOGUE.format(arms=arms, objectives=comment(", ".join(spec.objectives)))
        + macros
        + "\n/* Worst case: bytes of a state, of stack in blend_act (estimate), of constant weights; multiply-adds of\n"
        "   the networks in one control step. */\n"
        + limits
        + "\n/* Probability that the drift alarm is ever raised although the learner's assumptions hold, at most. */\n"
        + alarm
        + INTERFACE
    )
