/* Drive MuJoCo's PointGoal1 with an exported blend, and print what a robot would publish.

   mujoco_drive MODEL STEPS PERIOD [SEED [TRACE]]     (a period of 0 does not wait; TRACE is a file to write) */

#define _POSIX_C_SOURCE 200809L

#include "mujoco_world.h"
#include "robot_loop.h"

#include <stdlib.h>

static double observation[WORLD_OBSERVATION], action[2];
BLEND_CHECK_SIZES(observation, action);

int main(int argc, char **argv)
{
    static blend_memory memory;
    static world w;
    blend_state *state = (blend_state *)&memory;
    const long steps = argc > 2 ? atol(argv[2]) : 0;
    const double period = argc > 3 ? atof(argv[3]) : 0.02;
    FILE *trace = argc > 5 ? fopen(argv[5], "w") : NULL;
    double feedback[BLEND_OBJECTIVES], reward = 0.0, cost = 0.0, physics = 0.0;
    struct timespec next;
    long i;
    if (steps < 1 || !world_open(&w, argv[1], argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 0)) {
        fprintf(stderr, "usage: mujoco_drive MODEL STEPS PERIOD [SEED [TRACE]]; MODEL is a file of mujoco_drive.py\n");
        return 2;
    }
    if (blend_selfcheck() != 0) {
        fprintf(stderr, "the golden vectors are not reproduced: this build must not drive\n");
        return 1;
    }
    blend_init(state);
    world_reset(&w, observation);
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (i = 0; i < steps; i++) {
        double begun = now(), taken;
        const int arm = blend_act(state, observation, action);
        taken = now() - begun;
        begun = now();
        world_step(&w, action, observation, feedback);
        physics += now() - begun;
        begun = now();
        blend_observe(state, feedback);
        blend_record_time(state, taken + now() - begun);
        if (trace)
            fprintf(trace, "%d %.17g %.17g %.17g %.17g\n", arm, action[0], action[1], feedback[0], -feedback[1]);
        reward += feedback[0];
        cost -= feedback[1];
        if (i % EPISODE_STEPS == EPISODE_STEPS - 1) {
            blend_end_episode(state);
            world_reset(&w, observation);
        }
        wait_for_next(&next, period);
    }
    printf("return %.2f and cost %.1f per episode of %d steps; physics %.1f us per step\n",
        reward / (double)steps * EPISODE_STEPS, cost / (double)steps * EPISODE_STEPS, EPISODE_STEPS,
        1e6 * physics / (double)steps);
    print_status(state);
    world_close(&w);
    return trace && fclose(trace) ? 1 : 0;
}
