/* Drive a cart with an exported blend, at its control period, and print what a robot would publish.

   robot STEPS PERIOD     (a period of 0 does not wait) */

#define _POSIX_C_SOURCE 200809L

#include "robot_loop.h"

#include <math.h>
#include <stdlib.h>

#define PLANT_PERIOD 0.05 /* s that the plant advances per step */
#define SPEED_LIMIT 0.5 /* m/s where people are */

static double observation[BLEND_OBSERVATION_SIZE]; /* position, velocity, target, people */
static double action[BLEND_ACTION_SIZE];
BLEND_CHECK_SIZES(observation, action);

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
    long i;
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
        double begun, taken;
        if (i % 100 == 0)
            observation[2] = 4.0 * rand() / RAND_MAX - 2.0;
        if (i % 70 == 0)
            observation[3] = rand() % 2;
        begun = now();
        blend_act(state, observation, action);
        taken = now() - begun;
        advance_plant(feedback);
        begun = now();
        blend_observe(state, feedback);
        blend_record_time(state, taken + now() - begun);
        reward += feedback[0];
        cost -= feedback[1];
        wait_for_next(&next, period);
    }
    printf("reward %.3f and cost %.3f per step\n", reward / (double)steps, cost / (double)steps);
    print_status(state);
    return 0;
}
