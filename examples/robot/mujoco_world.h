/* The world PointGoal1 in C: MuJoCo's physics, lidars, reward and cost as in blendctl, equal to the bit. */

#ifndef MUJOCO_WORLD_H
#define MUJOCO_WORLD_H

#include <mujoco/mujoco.h>
#include <stdint.h>

#define ITEMS 11 /* robot, goal, 8 hazards, vase */
#define WORLD_OBSERVATION 60
#define EPISODE_STEPS 1000

typedef struct {
    mjModel *model;
    mjData *data;
    int robot, vase; /* body, and address of its pose in qpos */
    double xy[ITEMS][2]; /* m, where things were placed */
    double last; /* m, distance to the goal after the last step */
    uint32_t key[624]; /* random generator */
    int position; /* in it */
} world;

/* Load the model; return 0 if it is not that of PointGoal1. */
int world_open(world *w, const char *model_file, uint32_t seed);

void world_close(world *w);

/* Begin an episode with a new layout. */
void world_reset(world *w, double observation[WORLD_OBSERVATION]);

/* Advance by one control step of 20 ms; feedback is reward and -cost. */
void world_step(world *w, const double action[2], double observation[WORLD_OBSERVATION], double feedback[2]);

#endif
