/* Drive a cart with an exported blend, at its control period, and print what a robot would publish.

   robot STEPS PERIOD     (a period of 0 does not wait) */

#define _POSIX_C_SOURCE 200809L

#include "blend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PLANT_PERIOD 0.05 /* s that the plant advances per step */
#define SPEED_LIMIT 0.5 /* m/s where people are */

static double observation[BLEND_OBSERVATION_SIZE]; /* position, velocity, target, people */
static double action[BLEND_ACTION_SIZE];
BLEND_CHECK_SIZES(observation, action);

static double seconds(const struct timespec *t)
{
    return (double)t->tv_sec + 1e-9 * (double)t->tv_nsec;
}

static void advance_plant(double *feedback)
{
    const double force = action[0] < -5.0 ? -5.0 : action[0] > 5.0 ? 5.0 : action[0];
    observation[1] += PLANT_PERIOD * force;
    observation[0] += PLANT_PERIOD * observation[1];
    feedback[0] = -fabs(observation[2] - observation[0]);
    feedback[1] = observation[3] > 0.5 && fabs(observation[1]) > SPEED_LIMIT ? -1.0 : 0.0;
}

int main(int argc, char **argv)
{
    static blend_memory memory;
    blend_state *state = (blend_state *)&memory;
    const long steps = argc > 1 ? atol(argv[1]) : 1000;
    const double period = argc > 2 ? atof(argv[2]) : PLANT_PERIOD;
    double feedback[BLEND_OBJECTIVES], reward = 0.0, cost = 0.0;
    struct timespec next;
    blend_status_t status;
    long i;
    int a;
    if (steps < 1)
        return 2;
    if (blend_selfcheck() != 0) {
        fprintf(stderr, "the golden vectors are not reproduced: this build must not drive\n");
        return 1;
    }
    blend_init(state);
    clock_gettime(CLOCK_MONOTONIC, &next);
    srand(1);
    for (i = 0; i < steps; i++) {
        struct timespec begun, done;
        if (i % 100 == 0)
            observation[2] = 4.0 * rand() / RAND_MAX - 2.0;
        if (i % 70 == 0)
            observation[3] = rand() % 2;
        clock_gettime(CLOCK_MONOTONIC, &begun);
        blend_act(state, observation, action);
        advance_plant(feedback);
        blend_observe(state, feedback);
        clock_gettime(CLOCK_MONOTONIC, &done);
        blend_record_time(state, seconds(&done) - seconds(&begun));
        reward += feedback[0];
        cost -= feedback[1];
        if (period > 0.0) {
            next.tv_nsec += (long)(period * 1e9);
            next.tv_sec += next.tv_nsec / 1000000000L;
            next.tv_nsec %= 1000000000L;
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        }
    }
    blend_status(state, &status);
    printf("contract %s\n", blend_digest());
    printf("reward %.3f and cost %.3f per step; %lld switches, %lld stages learned\n", reward / (double)steps,
        cost / (double)steps, (long long)status.switches, (long long)status.learned);
    for (a = 0; a < BLEND_ARMS; a++)
        printf("arm %d drove %lld stages, failed %lld times\n", a, (long long)status.driven[a],
            (long long)status.failures[a]);
    printf("feedback per stage: estimated %.3f %.3f, observed %.3f %.3f; drift alarm %s\n", status.estimated[0],
        status.estimated[1], status.observed[0], status.observed[1], status.alarm ? "raised" : "none");
    printf("control step: p50 %.2f us, p99 %.2f us, p99.9 %.2f us, largest %.2f us\n", 1e6 * status.p50, 1e6 * status.p99,
        1e6 * status.p999, 1e6 * status.longest);
    return 0;
}
