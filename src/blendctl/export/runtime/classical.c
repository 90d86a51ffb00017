/* Classical controllers: they steer by the robot's velocity and by the nearest object of a lidar. */

struct steering {
    int wheels;
    double speed_gain, turn_gain, forward_x, forward_y;
};

#if HAS_BEARING
/* Distance and bearing (left is positive) of the nearest object of a lidar, as the encoding decodes them. */
static void bearing_of(const struct encoding *decoder, const double *observation, double turn, real *distance, real *bearing)
{
    struct sighting sightings[SIGHTINGS];
    float out[DECODED_SIZE];
    const float *object = out + (DECODED_SIZE - 6);
    real angle;
    int i;
    for (i = 0; i < SIGHTINGS; i++)
        sightings[i].known = 0;
    encode(decoder, observation, sightings, out);
    *distance = R(object[2]);
    angle = ATAN2(R(object[1]), R(object[0])) + R(turn) + R(PI);
    angle = FMOD(angle, R(2) * R(PI));
    *bearing = (angle < R(0) ? angle + R(2) * R(PI) : angle) - R(PI);
}
#endif

static void steer(const struct steering *s, const double *observation, real speed, real turn, double *action)
{
    const real present = R(s->forward_x) * R(observation[3]) + R(s->forward_y) * R(observation[4]);
    const real push = R(s->speed_gain) * (speed - present);
    if (s->wheels) {
        const real twist = R(s->turn_gain) * (turn - R(observation[8]));
        action[0] = clamp(push + twist, R(-1), R(1));
        action[1] = clamp(push - twist, R(-1), R(1));
    } else {
        action[0] = clamp(push, R(-1), R(1));
        action[1] = clamp(R(s->turn_gain) * turn, R(-1), R(1));
    }
}

#if HAS_PURSUIT || HAS_FIELD
/* Turn towards an angle; the speed falls with the error of the heading. */
static void drive_towards(const struct steering *s, const double *observation, real angle, real cruise, double *action)
{
    const real ahead = COS(angle);
    steer(s, observation, cruise * (ahead > R(0) ? ahead : R(0)), R(3) * angle, action);
}
#endif

#if HAS_FIELD
/* Follow a potential: the target attracts, the other lidars' bins repel. */
static void potential_field(
    const struct encoding *decoder, const struct steering *s, const double *observation, double turn, double influence,
    double strength, const int *starts, int obstacles, double *action)
{
    real distance, angle, x, y, nearest = R(LIDAR_REACH), slow;
    int ring, i;
    bearing_of(decoder, observation, turn, &distance, &angle);
    x = COS(angle);
    y = SIN(angle);
    for (ring = 0; ring < obstacles; ring++) {
        real sum_x = R(0), sum_y = R(0);
        for (i = 0; i < LIDAR_BINS; i++) {
            const real reach = R(LIDAR_REACH) * (R(1) - R(observation[starts[ring] + i]));
            const real near_by = clamp(R(1) - reach / R(influence), R(0), R(1));
            const real at = (R(i) + R(0.5)) * R(2) * R(PI) / R(LIDAR_BINS) + R(turn);
            sum_x += near_by * near_by * COS(at);
            sum_y += near_by * near_by * SIN(at);
            nearest = reach < nearest ? reach : nearest;
        }
        x -= R(strength) * sum_x;
        y -= R(strength) * sum_y;
    }
    slow = clamp(nearest / R(influence), R(0.3), R(1));
    drive_towards(s, observation, ATAN2(y, x), R(CRUISING_SPEED) * slow, action);
}
#endif
