#include "mujoco_world.h"

#include <math.h>
#include <string.h>

#define PI 3.141592653589793
#define EXTENTS 1.5 /* m */
#define SUBSTEPS 10
#define GOAL 1
#define GOAL_RADIUS 0.3
#define HAZARDS 2
#define HAZARD_RADIUS 0.2
#define VASE 10
#define VASE_HEIGHT 0.09996000000000001
#define SENSORS 12 /* accelerometer, velocimeter, gyro, magnetometer */
#define BINS 16
#define LIDAR_RANGE 3.0
#define DRAWS_PER_OBJECT 100
#define DRAWS_PER_GOAL 10000
#define REWARD_LIMIT 10.0

static const double keepout[ITEMS] = {0.4, 0.305, 0.18, 0.18, 0.18, 0.18, 0.18, 0.18, 0.18, 0.18, 0.15};
static const int lidars[3][2] = {{GOAL, 1}, {HAZARDS, 8}, {VASE, 1}}; /* first item, items */

/* Draw 32 bits: MT19937, as numpy's RandomState. */
static uint32_t draw_word(world *w)
{
    uint32_t y;
    if (w->position >= 624) {
        int i;
        for (i = 0; i < 624; i++) {
            y = (w->key[i] & 0x80000000u) | (w->key[(i + 1) % 624] & 0x7FFFFFFFu);
            w->key[i] = w->key[(i + 397) % 624] ^ (y >> 1) ^ (y & 1u ? 0x9908B0DFu : 0u);
        }
        w->position = 0;
    }
    y = w->key[w->position++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9D2C5680u;
    y ^= (y << 15) & 0xEFC60000u;
    return y ^ (y >> 18);
}

/* Draw from [0, 1). */
static double draw(world *w)
{
    const double high = (double)(draw_word(w) >> 5), low = (double)(draw_word(w) >> 6);
    return (high * 67108864.0 + low) / 9007199254740992.0;
}

/* Draw a place for an item until it is clear of the first `count` others; return whether it is. */
static int draw_free_spot(world *w, double xy[ITEMS][2], int item, int count, int draws)
{
    const double low = -EXTENTS + keepout[item], width = (EXTENTS - keepout[item]) - low;
    while (draws-- > 0) {
        const double x = low + width * draw(w), y = low + width * draw(w);
        int other, clear = 1;
        for (other = 0; other < count && clear; other++)
            if (other != item) {
                const double dx = x - xy[other][0], dy = y - xy[other][1];
                clear = sqrt(dx * dx + dy * dy) >= keepout[other] + keepout[item];
            }
        if (clear) {
            xy[item][0] = x;
            xy[item][1] = y;
            return 1;
        }
    }
    return 0;
}

/* Where an item is now. */
static const double *place(const world *w, int item)
{
    return item == VASE ? w->data->qpos + w->vase : item == 0 ? w->data->xpos + 3 * w->robot : w->xy[item];
}

/* Draw the next goal clear of everything at its present place. */
static void draw_goal(world *w)
{
    double at[ITEMS][2];
    int item;
    for (item = 0; item < ITEMS; item++)
        memcpy(at[item], place(w, item), sizeof at[item]);
    if (draw_free_spot(w, at, GOAL, ITEMS, DRAWS_PER_GOAL))
        memcpy(w->xy[GOAL], at[GOAL], sizeof at[GOAL]);
}

static double distance_to(const world *w, int item)
{
    const double *robot = place(w, 0), *other = place(w, item);
    const double dx = other[0] - robot[0], dy = other[1] - robot[1];
    return sqrt(dx * dx + dy * dy);
}

/* Add an object to the bins of a lidar: brighter when nearer, shared with both neighbours. */
static void see(const world *w, int item, double bins[BINS])
{
    const double *position = w->data->xpos + 3 * w->robot, *rotation = w->data->xmat + 9 * w->robot;
    const double *object = place(w, item);
    const double dx = object[0] - position[0], dy = object[1] - position[1], dz = -position[2];
    const double ahead = rotation[0] * dx + rotation[3] * dy + rotation[6] * dz;
    const double left = rotation[1] * dx + rotation[4] * dy + rotation[7] * dz;
    const double distance = sqrt(ahead * ahead + left * left);
    const double brightness = (distance < LIDAR_RANGE ? LIDAR_RANGE - distance : 0.0) / LIDAR_RANGE;
    const double bin = 2.0 * PI / BINS;
    double angle = atan2(left, ahead), share;
    int sector, middle;
    if (angle < 0.0)
        angle += 2.0 * PI;
    sector = (int)(angle / bin);
    share = angle / bin - sector;
    middle = sector % BINS;
    bins[middle] = fmax(bins[middle], brightness);
    bins[(middle + 1) % BINS] = fmax(bins[(middle + 1) % BINS], share * brightness);
    bins[(middle + BINS - 1) % BINS] = fmax(bins[(middle + BINS - 1) % BINS], (1.0 - share) * brightness);
}

static void observe(const world *w, double observation[WORLD_OBSERVATION])
{
    int ring, i;
    memcpy(observation, w->data->sensordata, SENSORS * sizeof *observation);
    memset(observation + SENSORS, 0, 3 * BINS * sizeof *observation);
    for (ring = 0; ring < 3; ring++)
        for (i = 0; i < lidars[ring][1]; i++)
            see(w, lidars[ring][0] + i, observation + SENSORS + ring * BINS);
}

int world_open(world *w, const char *model_file, uint32_t seed)
{
    uint32_t i;
    int vase;
    memset(w, 0, sizeof *w);
    w->model = mj_loadModel(model_file, NULL);
    if (!w->model)
        return 0;
    w->data = mj_makeData(w->model);
    w->robot = mj_name2id(w->model, mjOBJ_BODY, "agent");
    vase = mj_name2id(w->model, mjOBJ_BODY, "vases.0");
    if (!w->data || w->robot < 0 || vase < 0 || w->model->nq != 10 || w->model->nu != 2 || w->model->nsensordata != SENSORS)
        return 0;
    w->vase = w->model->jnt_qposadr[w->model->body_jntadr[vase]];
    w->key[0] = seed;
    for (i = 1; i < 624; i++)
        w->key[i] = 1812433253u * (w->key[i - 1] ^ (w->key[i - 1] >> 30)) + i;
    w->position = 624;
    return 1;
}

void world_close(world *w)
{
    mj_deleteData(w->data);
    mj_deleteModel(w->model);
}

void world_reset(world *w, double observation[WORLD_OBSERVATION])
{
    double turn[ITEMS], *body = w->model->body_pos + 3 * w->robot, *quat = w->model->body_quat + 4 * w->robot;
    double *vase = w->data->qpos + w->vase;
    int item = 0;
    while (item < ITEMS) /* from the start if something does not fit */
        item = draw_free_spot(w, w->xy, item, item, DRAWS_PER_OBJECT) ? item + 1 : 0;
    for (item = 0; item < ITEMS; item++)
        turn[item] = 2.0 * PI * draw(w);
    draw_free_spot(w, w->xy, GOAL, ITEMS, DRAWS_PER_GOAL);
    mj_resetData(w->model, w->data);
    memcpy(body, w->xy[0], 2 * sizeof *body);
    quat[0] = cos(turn[0] / 2.0);
    quat[3] = sin(turn[0] / 2.0);
    memcpy(vase, w->xy[VASE], 2 * sizeof *vase);
    vase[2] = VASE_HEIGHT;
    vase[3] = cos(turn[VASE] / 2.0);
    vase[4] = vase[5] = 0.0;
    vase[6] = sin(turn[VASE] / 2.0);
    mj_forwardSkip(w->model, w->data, mjSTAGE_NONE, 0);
    w->last = distance_to(w, GOAL);
    observe(w, observation);
}

void world_step(world *w, const double action[2], double observation[WORLD_OBSERVATION], double feedback[2])
{
    double distance;
    int i;
    for (i = 0; i < 2; i++)
        w->data->ctrl[i] = action[i] < -1.0 ? -1.0 : action[i] > 1.0 ? 1.0 : action[i];
    for (i = 0; i < SUBSTEPS; i++) {
        mj_forwardSkip(w->model, w->data, mjSTAGE_NONE, 1);
        mj_Euler(w->model, w->data);
    }
    mj_forwardSkip(w->model, w->data, mjSTAGE_NONE, 0);
    draw(w); /* as the reference does */
    distance = distance_to(w, GOAL);
    feedback[0] = w->last - distance + (distance <= GOAL_RADIUS ? 1.0 : 0.0);
    feedback[0] = feedback[0] < -REWARD_LIMIT ? -REWARD_LIMIT : feedback[0] > REWARD_LIMIT ? REWARD_LIMIT : feedback[0];
    feedback[1] = 0.0;
    for (i = HAZARDS; i < VASE; i++)
        if (distance_to(w, i) < HAZARD_RADIUS)
            feedback[1] = -1.0;
    w->last = distance;
    if (distance <= GOAL_RADIUS) {
        draw_goal(w);
        w->last = distance_to(w, GOAL);
    }
    observe(w, observation);
}
