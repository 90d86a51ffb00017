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

static real forward_speed(const struct steering *s, const double *observation)
{
    return R(s->forward_x) * R(observation[3]) + R(s->forward_y) * R(observation[4]);
}

static void steer(const struct steering *s, const double *observation, real speed, real turn, double *action)
{
    const real push = R(s->speed_gain) * (speed - forward_speed(s, observation));
    if (s->wheels) {
        const real twist = R(s->turn_gain) * (turn - R(observation[8]));
        action[0] = clamp(push + twist, R(-1), R(1));
        action[1] = clamp(push - twist, R(-1), R(1));
    } else {
        action[0] = clamp(push, R(-1), R(1));
        action[1] = clamp(R(s->turn_gain) * turn, R(-1), R(1));
    }
}

#if HAS_PURSUIT || HAS_FIELD || HAS_HISTOGRAM || HAS_PUSH
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

#if HAS_HISTOGRAM || HAS_WINDOW || HAS_PUSH
static real side_speed(const struct steering *s, const double *observation)
{
    return R(s->forward_x) * R(observation[4]) - R(s->forward_y) * R(observation[3]);
}

/* The same angle between -PI and PI. */
static real wrapped(real angle)
{
    angle = FMOD(angle + R(PI), R(2) * R(PI));
    return (angle < R(0) ? angle + R(2) * R(PI) : angle) - R(PI);
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

#endif

#if HAS_HISTOGRAM || HAS_PUSH
static real angle_between(real one, real other)
{
    return FABS(wrapped(one - other));
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

/* The open direction that is nearest to a target's, and how far it is open, as a share of what is looked at. */
static void open_direction(
    const struct steering *s, const double *observation, double turn, real clearance, real look, const int *starts,
    int lidars, real distance, real angle, real *direction, real *share)
{
    real xs[HISTOGRAM_OBJECTS], ys[HISTOGRAM_OBJECTS];
    const real forward = forward_speed(s, observation), left = side_speed(s, observation);
    const real velocity = ATAN2(left, forward);
    real looked_at = distance < look ? distance : look, momentum = HYPOT(forward, left), best = R(HUGE_VAL);
    int i, count;
    looked_at = looked_at > R(0.01) ? looked_at : R(0.01);
    count = obstacles_of(
        observation, starts, lidars, turn, distance * COS(angle), distance * SIN(angle), clearance, xs, ys);
    momentum = R(KEEP_WEIGHT) * (momentum < R(1) ? momentum : R(1));
    *direction = angle;
    *share = R(0);
    for (i = 0; i < HISTOGRAM_DIRECTIONS; i++) {
        const real at = R(i) * R(2) * R(PI) / R(HISTOGRAM_DIRECTIONS) - R(PI);
        const real open_share = open_way(xs, ys, count, COS(at), SIN(at), clearance, looked_at) / looked_at;
        const real score = angle_between(at, angle) + momentum * angle_between(at, velocity)
            + R(BLOCKED_WEIGHT) * (R(1) - open_share);
        if (score < best) {
            best = score;
            *direction = at;
            *share = open_share;
        }
    }
    if (angle_between(*direction, angle) < R(2) * R(PI) / R(HISTOGRAM_DIRECTIONS))
        *direction = angle;
}
#endif

#if HAS_HISTOGRAM || HAS_PUSH
/* Move in a direction; a robot without wheels slides, so its velocity is steered. */
static void move(const struct steering *s, const double *observation, real direction, real speed, double *action)
{
    real ahead, heading;
    if (s->wheels) {
        drive_towards(s, observation, direction, speed, action);
        return;
    }
    ahead = speed * COS(direction);
    heading = ATAN2(speed * SIN(direction) - side_speed(s, observation), ahead - forward_speed(s, observation));
    if (FABS(heading) > R(0.5) * R(PI))
        heading += heading > R(0) ? -R(PI) : R(PI);
    steer(s, observation, ahead, R(10) * heading, action);
}
#endif

#if HAS_HISTOGRAM
/* Drive in the open direction that is nearest to the target's. */
static void vector_field_histogram(
    const struct encoding *decoder, const struct steering *s, const double *observation, double turn, double clearance,
    double look, double cruise, const int *starts, int lidars, double *action)
{
    real distance, angle, direction, share;
    bearing_of(decoder, observation, turn, &distance, &angle);
    open_direction(
        s, observation, turn, R(clearance), R(look), starts, lidars, distance, angle, &direction, &share);
    move(s, observation, direction, R(cruise) * clamp(R(0.3) + share, R(0.3), R(1)), action);
}
#endif

#if HAS_PUSH
/* How much an obstacle at (x, y) blocks a way that begins at 0, from 0 to 1. */
static real blocked_by(real x, real y, real ux, real uy, real way, real clearance)
{
    const real along = clamp(x * ux + y * uy, R(0), way);
    return clamp((clearance - HYPOT(x - along * ux, y - along * uy)) / R(PUSH_EDGE), R(0), R(1));
}

/* The direction in which to push the box; the goal is given from the box. */
static real push_angle(
    const double *observation, double turn, const int *around, int avoided, const int *solid, int solids, real box_x,
    real box_y, real goal_x, real goal_y, real present)
{
    real xs[HISTOGRAM_OBJECTS], ys[HISTOGRAM_OBJECTS], solid_xs[HISTOGRAM_OBJECTS], solid_ys[HISTOGRAM_OBJECTS];
    const int count = obstacles_of(observation, around, avoided, turn, R(PUSH_FAR), R(0), R(0), xs, ys);
    const int solid_count = obstacles_of(observation, solid, solids, turn, R(PUSH_FAR), R(0), R(0), solid_xs, solid_ys);
    const real straight = ATAN2(goal_y, goal_x);
    real way = HYPOT(goal_x, goal_y) - R(PUSH_GOAL), best = R(HUGE_VAL), chosen = straight;
    int i, j;
    way = R(0.05) > way ? R(0.05) : way;
    way = way < R(PUSH_AHEAD) ? way : R(PUSH_AHEAD);
    for (i = 0; i < HISTOGRAM_DIRECTIONS; i++) {
        const real angle = straight + R(i) * R(2) * R(PI) / R(HISTOGRAM_DIRECTIONS);
        const real ux = COS(angle), uy = SIN(angle);
        const real start_x = box_x - R(PUSH_BEHIND) * ux, start_y = box_y - R(PUSH_BEHIND) * uy;
        real blocked = R(0), score;
        for (j = 0; j < count; j++) {
            const real share = blocked_by(
                xs[j] - start_x, ys[j] - start_y, ux, uy, R(PUSH_BEHIND) + way - R(PUSH_CONTACT),
                R(PUSH_ROBOT_CLEARANCE));
            blocked = share > blocked ? share : blocked;
        }
        for (j = 0; j < solid_count; j++) {
            const real x = solid_xs[j] - box_x, y = solid_ys[j] - box_y;
            if (x * ux + y * uy > R(0)) {
                const real share = blocked_by(x, y, ux, uy, way, R(PUSH_BOX_CLEARANCE));
                blocked = share > blocked ? share : blocked;
            }
        }
        score = angle_between(angle, straight) + R(KEEP_WEIGHT) * angle_between(angle, present)
            + R(BLOCKED_WEIGHT) * blocked;
        if (score < best) {
            best = score;
            chosen = angle;
        }
    }
    return chosen;
}

/* Push the box to the target: drive around it to the place behind it, then push it along an open way. */
static void push_box(
    const struct encoding *goal, const struct encoding *box, const struct steering *s, const double *observation,
    double turn, double clearance, double pushing, double approach, const int *around, int avoided, const int *solid,
    int solids, double *action)
{
    real goal_distance, goal_angle, away, at, x, y, angle, ux, uy, behind, side_x, side_y, side, direction, share, speed;
    const real forward = forward_speed(s, observation), left = side_speed(s, observation);
    bearing_of(goal, observation, turn, &goal_distance, &goal_angle);
    bearing_of(box, observation, turn, &away, &at);
    x = away * COS(at);
    y = away * SIN(at);
    angle = push_angle(
        observation, turn, around, avoided, solid, solids, x, y, goal_distance * COS(goal_angle) - x,
        goal_distance * SIN(goal_angle) - y, at);
    ux = COS(angle);
    uy = SIN(angle);
    behind = x * ux + y * uy;
    side_x = behind * ux - x;
    side_y = behind * uy - y;
    side = HYPOT(side_x, side_y);
    if (behind > R(0.2) && side < (R(1.2) * behind < R(PUSH_LANE) ? R(1.2) * behind : R(PUSH_LANE))) {
        const real outward = (forward * side_x + left * side_y) / (R(1e-6) > side ? R(1e-6) : side);
        const real soon = FABS(side + R(PUSH_SOON) * outward);
        const real centre = R(PUSH_CENTRE) * clamp((away - R(0.38)) / R(0.15), R(0.3), R(1));
        real pace = R(pushing) * clamp((R(PUSH_OFF_LINE) - soon) / (R(PUSH_OFF_LINE) - R(PUSH_ON_LINE)), R(0), R(1));
        real want_x, want_y, wanted;
        if (soon > R(PUSH_OFF_LINE) && away < R(PUSH_BEHIND) - R(0.05))
            pace = -R(PUSH_RETREAT);
        want_x = pace * ux - centre * side_x;
        want_y = pace * uy - centre * side_y;
        wanted = ATAN2(want_y, want_x);
        open_direction(
            s, observation, turn, R(0.9) * R(clearance), R(PUSH_LOOK), around, avoided, R(PUSH_FAR), wanted, &direction,
            &share);
        direction = share > R(0.99) ? wanted : direction;
        speed = HYPOT(want_x, want_y) * (R(0.2) + share > R(1) ? R(1) : R(0.2) + share);
    } else {
        const real start_x = x - R(PUSH_BEHIND) * ux, start_y = y - R(PUSH_BEHIND) * uy;
        const real rest = HYPOT(start_x, start_y);
        real slow;
        open_direction(
            s, observation, turn, R(clearance), R(PUSH_BEHIND), around, avoided + 1, rest, ATAN2(start_y, start_x),
            &direction, &share);
        speed = R(approach) * (R(0.3) + share > R(1) ? R(1) : R(0.3) + share);
        slow = R(0.3) + R(2.5) * rest;
        speed = slow < speed ? slow : speed;
    }
    move(s, observation, direction, speed, action);
}
#endif

#if HAS_WINDOW
struct window {
    double reach, price, margin, top_speed, lag, top_yaw_rate, pivot, thrust_gain, turn_gain, saturation;
    double step; /* s */
    int early, rest, ways; /* steps of the first command and of the way on; ways on to each side of the target */
    const int *starts;
    const double *radii, *own;
    int rings;
};

struct moving {
    real x, y, cosine, sine, heading, forward, left, yaw_rate, harm, time_left;
};

struct obstacles {
    real x[WINDOW_OBJECTS], y[WINDOW_OBJECTS], radius[WINDOW_OBJECTS];
    int count;
};

/* Turn the heading by a small angle: its cosine and sine by their series. */
static void turn_by(struct moving *m, real angle)
{
    const real cosine = R(1) - R(0.5) * angle * angle, sine = angle * (R(1) - angle * angle / R(6));
    const real before = m->cosine;
    m->cosine = before * cosine - m->sine * sine;
    m->sine = m->sine * cosine + before * sine;
    m->heading += angle;
}

/* Advance a state, until it arrives. a, b: the velocity to reach, the wheels' commands, or the heading to seek. */
static void simulate(
    struct moving *m, int steps, const struct window *w, int wheels, int seeking, real a, real b,
    const struct obstacles *around, real target_x, real target_y)
{
    const real step = R(w->step), top_speed = R(w->top_speed), top_yaw = R(w->top_yaw_rate), margin = R(w->margin);
    const real share = step / R(w->lag) < R(1) ? step / R(w->lag) : R(1);
    int k, i;
    if (m->time_left >= R(0)) {
        m->time_left += R(steps) * step;
        return;
    }
    for (k = 0; k < steps; k++) {
        real x, y;
        if (wheels) {
            real right = a, left = b;
            if (seeking) {
                const real twist = clamp(R(WINDOW_SEEKING) * wrapped(a - m->heading), R(-1), R(1));
                real both = R(2) * (R(1) - FABS(twist));
                both = both < R(1) ? both : R(1);
                right = clamp(both + twist, R(-1), R(1));
                left = clamp(both - twist, R(-1), R(1));
            }
            m->forward += share * (R(0.5) * top_speed * (right + left) - m->forward);
            m->yaw_rate += share * (R(0.5) * top_yaw * (right - left) - m->yaw_rate);
            turn_by(m, step * m->yaw_rate);
            m->x += step * m->forward * m->cosine;
            m->y += step * m->forward * m->sine;
        } else {
            const real error_x = a - m->forward, error_y = b - m->left;
            const real ahead = error_x * m->cosine + error_y * m->sine;
            const real aside = error_y * m->cosine - error_x * m->sine;
            const real thrust = top_speed * clamp(R(w->thrust_gain) * ahead, R(-1), R(1));
            const real turning = R(WINDOW_TURNING) * R(w->turn_gain) * aside;
            m->forward += share * (thrust * m->cosine - m->forward);
            m->left += share * (thrust * m->sine - m->left);
            m->x += step * m->forward;
            m->y += step * m->left;
            if (FABS(ahead) < R(WINDOW_EITHER_END) * FABS(aside))
                m->yaw_rate = m->yaw_rate >= R(0) ? top_yaw : -top_yaw;
            else if (FABS(turning) >= FABS(ahead))
                m->yaw_rate = (turning > R(0)) == (ahead > R(0)) ? top_yaw : -top_yaw;
            else
                m->yaw_rate = top_yaw * turning / ahead;
            turn_by(m, step * m->yaw_rate);
        }
        for (i = 0; i < around->count; i++) {
            const real dx = m->x - around->x[i], dy = m->y - around->y[i];
            const real square = dx * dx + dy * dy, edge = around->radius[i] + margin;
            if (square < edge * edge) {
                const real away = SQRT(square);
                m->harm += step * R(WINDOW_NEAR_PRICE) * (edge - away) / margin;
                if (away < around->radius[i])
                    m->harm += step * R(w->price);
            }
        }
        x = m->x - target_x;
        y = m->y - target_y;
        if (x * x + y * y < R(w->reach) * R(w->reach)) {
            m->time_left = R(steps - k - 1) * step;
            return;
        }
    }
}

/* Take the motion that is worth most. */
static void dynamic_window(
    const struct encoding *decoder, const struct steering *s, const struct window *w, const double *observation,
    double turn, double *action)
{
    static const double aims[] = {WINDOW_FAST, WINDOW_SLOW};
    const int candidates = s->wheels ? WINDOW_WHEEL_LEVELS * WINDOW_WHEEL_LEVELS : 2 * WINDOW_COURSES;
    struct obstacles around;
    struct moving start;
    real seen_x[LIDAR_BINS], seen_y[LIDAR_BINS], distance, angle, x, y, best = -R(HUGE_VAL), chosen, other_chosen;
    int ring, i, way;
    bearing_of(decoder, observation, turn, &distance, &angle);
    x = distance * COS(angle);
    y = distance * SIN(angle);
    around.count = 0;
    for (ring = 0; ring < w->rings; ring++) {
        const int seen = obstacles_of(observation, w->starts + ring, 1, turn, x, y, R(w->own[ring]), seen_x, seen_y);
        for (i = 0; i < seen; i++)
            if (seen_x[i] * seen_x[i] + seen_y[i] * seen_y[i] < R(WINDOW_NEARBY) * R(WINDOW_NEARBY)) {
                around.x[around.count] = seen_x[i];
                around.y[around.count] = seen_y[i];
                around.radius[around.count++] = R(w->radii[ring]);
            }
    }
    start.x = start.y = start.sine = start.heading = start.harm = R(0);
    start.cosine = R(1);
    start.time_left = R(-1);
    start.forward = forward_speed(s, observation);
    start.left = side_speed(s, observation);
    start.yaw_rate = R(observation[8]);
    if (!s->wheels)
        start.left += R(w->pivot) * start.yaw_rate;
    chosen = s->wheels ? R(0) : angle;
    other_chosen = s->wheels ? R(0) : R(aims[0]);
    for (i = 0; i < candidates; i++) {
        const int last = WINDOW_WHEEL_LEVELS - 1;
        struct moving first = start;
        real one, other, a, b;
        if (s->wheels) {
            a = one = R(1) - R(2) * R(i / WINDOW_WHEEL_LEVELS) / R(last);
            b = other = R(1) - R(2) * R(i % WINDOW_WHEEL_LEVELS) / R(last);
        } else {
            one = angle + R(i % WINDOW_COURSES) * R(2) * R(PI) / R(WINDOW_COURSES);
            other = R(aims[i / WINDOW_COURSES]);
            a = other * COS(one);
            b = other * SIN(one);
        }
        simulate(&first, w->early, w, s->wheels, 0, a, b, &around, x, y);
        for (way = -w->ways; way <= w->ways; way++) {
            const real course = angle + R(way) * R(WINDOW_SPREAD);
            struct moving m = first;
            real worth;
            a = s->wheels ? course : R(aims[0]) * COS(course);
            b = s->wheels ? R(0) : R(aims[0]) * SIN(course);
            simulate(&m, w->rest, w, s->wheels, 1, a, b, &around, x, y);
            if (m.time_left >= R(0)) {
                worth = distance - R(w->reach) + R(WINDOW_TIME_WORTH) * m.time_left;
            } else {
                const real left_x = m.x - x, left_y = m.y - y;
                worth = distance - SQRT(left_x * left_x + left_y * left_y);
            }
            worth -= m.harm;
            if (worth > best) {
                best = worth;
                chosen = one;
                other_chosen = other;
            }
        }
    }
    if (s->wheels) {
        action[0] = R(w->saturation) * chosen;
        action[1] = R(w->saturation) * other_chosen;
    } else {
        const real speed = other_chosen * COS(chosen);
        const real ahead = speed - start.forward, aside = other_chosen * SIN(chosen) - start.left;
        const real turn_on = start.yaw_rate >= R(0) ? R(1) : R(-1);
        const int either = FABS(ahead) < R(WINDOW_EITHER_END) * FABS(aside);
        const real heading = either ? turn_on : ATAN2(ahead > R(0) ? aside : -aside, FABS(ahead));
        steer(s, observation, speed, R(WINDOW_TURNING) * heading, action);
    }
}
#endif
