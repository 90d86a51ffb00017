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

#if HAS_PURSUIT || HAS_FIELD || HAS_HISTOGRAM
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

#if HAS_HISTOGRAM
static real angle_between(real one, real other)
{
    const real angle = FMOD(one - other + R(PI), R(2) * R(PI));
    return FABS((angle < R(0) ? angle + R(2) * R(PI) : angle) - R(PI));
}

/* Write the places of the obstacles, except at the target, and return their number. */
static int obstacles_of(
    const double *observation, const int *starts, int lidars, double turn, real target_x, real target_y, real clearance,
    real *xs, real *ys)
{
    int ring, i, count = 0;
    for (ring = 0; ring < lidars; ring++)
        for (i = 0; i < LIDAR_BINS; i++) {
            const double *bins = observation + starts[ring];
            const real reading = R(bins[i]), before = R(bins[(i + LIDAR_BINS - 1) % LIDAR_BINS]),
                       after = R(bins[(i + 1) % LIDAR_BINS]);
            real share, bearing, away, x, y;
            if (reading <= R(0) || reading < before || reading < after)
                continue;
            share = after < before ? after / reading : R(1) - before / reading;
            bearing = (R(i) + share) * R(2) * R(PI) / R(LIDAR_BINS) + R(turn);
            away = R(LIDAR_REACH) * (R(1) - reading);
            x = away * COS(bearing);
            y = away * SIN(bearing);
            if (HYPOT(x - target_x, y - target_y) >= clearance) {
                xs[count] = x;
                ys[count] = y;
                count++;
            }
        }
    return count;
}

/* How far the direction (x, y) is open, at most `most`. */
static real open_way(const real *xs, const real *ys, int count, real x, real y, real clearance, real most)
{
    int i;
    for (i = 0; i < count; i++) {
        const real square = xs[i] * xs[i] + ys[i] * ys[i], along = x * xs[i] + y * ys[i];
        if (square < clearance * clearance) {
            if (along > R(-0.2) * SQRT(square))
                return R(0);
        } else if (along > R(0)) {
            const real room = clearance * clearance - (square - along * along);
            if (room > R(0) && along - SQRT(room) < most)
                most = along - SQRT(room);
        }
    }
    return most > R(0) ? most : R(0);
}

/* Drive in the open direction that is nearest to the target's. */
static void vector_field_histogram(
    const struct encoding *decoder, const struct steering *s, const double *observation, double turn, double clearance,
    double look, double cruise, const int *starts, int lidars, double *action)
{
    real xs[HISTOGRAM_OBJECTS], ys[HISTOGRAM_OBJECTS];
    real distance, angle, looked_at, velocity, momentum, best = R(HUGE_VAL), direction, share = R(0), speed, ahead, heading;
    const real forward = R(s->forward_x) * R(observation[3]) + R(s->forward_y) * R(observation[4]);
    const real left = R(s->forward_x) * R(observation[4]) - R(s->forward_y) * R(observation[3]);
    int i, count;
    bearing_of(decoder, observation, turn, &distance, &angle);
    looked_at = distance < R(look) ? distance : R(look);
    looked_at = looked_at > R(0.01) ? looked_at : R(0.01);
    count = obstacles_of(
        observation, starts, lidars, turn, distance * COS(angle), distance * SIN(angle), R(clearance), xs, ys);
    velocity = ATAN2(left, forward);
    momentum = HYPOT(forward, left);
    momentum = R(KEEP_WEIGHT) * (momentum < R(1) ? momentum : R(1));
    direction = angle;
    for (i = 0; i < HISTOGRAM_DIRECTIONS; i++) {
        const real at = R(i) * R(2) * R(PI) / R(HISTOGRAM_DIRECTIONS) - R(PI);
        const real open_share = open_way(xs, ys, count, COS(at), SIN(at), R(clearance), looked_at) / looked_at;
        const real score = angle_between(at, angle) + momentum * angle_between(at, velocity)
            + R(BLOCKED_WEIGHT) * (R(1) - open_share);
        if (score < best) {
            best = score;
            direction = at;
            share = open_share;
        }
    }
    if (angle_between(direction, angle) < R(2) * R(PI) / R(HISTOGRAM_DIRECTIONS))
        direction = angle;
    speed = R(cruise) * clamp(R(0.3) + share, R(0.3), R(1));
    if (s->wheels) {
        drive_towards(s, observation, direction, speed, action);
        return;
    }
    ahead = speed * COS(direction);
    heading = ATAN2(speed * SIN(direction) - left, ahead - forward);
    if (FABS(heading) > R(0.5) * R(PI))
        heading += heading > R(0) ? -R(PI) : R(PI);
    steer(s, observation, ahead, R(10) * heading, action);
}
#endif
