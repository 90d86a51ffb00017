/* What the loops of robot.c and mujoco_drive.c share: a clock, a control period, and the printed status. */

#ifndef ROBOT_LOOP_H
#define ROBOT_LOOP_H

#include "blend.h"

#include <stdio.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sleep until the next control step; a period of 0 does not wait. */
static void wait_for_next(struct timespec *next, double period)
{
    if (period > 0.0) {
        next->tv_nsec += (long)(period * 1e9);
        next->tv_sec += next->tv_nsec / 1000000000L;
        next->tv_nsec %= 1000000000L;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL);
    }
}

/* Print what a robot would publish. */
static void print_status(const blend_state *state)
{
    blend_status_t status;
    int a, k;
    blend_status(state, &status);
    printf("contract %s\n", blend_digest());
    printf("%lld steps, %lld switches, %lld stages learned, %lld safe actions\n", (long long)status.steps,
        (long long)status.switches, (long long)status.learned, (long long)status.safe_actions);
    for (a = 0; a < BLEND_ARMS; a++)
        printf("arm %d drove %lld stages, failed %lld times\n", a, (long long)status.driven[a],
            (long long)status.failures[a]);
    for (k = 0; k < BLEND_OBJECTIVES && status.compared; k++)
        printf("objective %d of a stage: estimated %.4f, observed %.4f\n", k, status.estimated[k], status.observed[k]);
    printf("drift alarm: %s\n", status.alarm ? "raised" : "none");
    printf("control step: p50 %.2f us, p99 %.2f us, p99.9 %.2f us, largest %.2f us\n", 1e6 * status.p50,
        1e6 * status.p99, 1e6 * status.p999, 1e6 * status.longest);
}

#endif
