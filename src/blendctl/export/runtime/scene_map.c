/* The map of an episode from its lidars: where objects are that are hidden now. It follows scene_map/maps.py and
   scene_map/search.py operation by operation, always in double. */

#define LIDAR_BIN (2.0 * PI / LIDAR_BINS)
#define AT_LEAST_ONE(n) ((n) > 0 ? (n) : 1)

struct scene_kind {
    int start, count, first; /* index of its lidar in an observation, objects, index of its first place */
    int slot; /* of its views, -1 for a kind of one object, which needs none */
    int steady, circling, dark, support;
    double limit, room, travel;
};

static const struct scene_kind scene_kinds[AT_LEAST_ONE(SCENE_KINDS)] = {SCENE_TABLE};

/* A pose of the robot, as x, y and heading, with a lidar's ring. */
struct view {
    double pose[3], ring[LIDAR_BINS];
};

struct scene {
    int64_t steps; /* control steps of the episode */
    int begun;
    int known[AT_LEAST_ONE(SCENE_KINDS)], views[AT_LEAST_ONE(SCENE_SLOTS)], seen[AT_LEAST_ONE(SCENE_OBJECTS)];
    double last[BLEND_OBSERVATION_SIZE];
    double velocity[2], robot[2], heading; /* in the arena's frame, with the origin where the map began */
    double places[AT_LEAST_ONE(SCENE_OBJECTS)][2];
    struct view shown[AT_LEAST_ONE(SCENE_SLOTS)][SCENE_VIEWS]; /* in which objects are searched, the latest last */
};

/* How an object appears in a lidar: its bin, brightness, and where in the bin it is, 0 to 1. */
struct light {
    int bin;
    double bright, share;
};

static double brightest(const double *ring)
{
    double most = ring[0];
    int i;
    for (i = 1; i < LIDAR_BINS; i++)
        most = ring[i] > most ? ring[i] : most;
    return most;
}

static struct light light_of(double x, double y, double heading)
{
    const double bright = 1.0 - hypot(x, y) / LIDAR_RANGE;
    double turn = fmod(atan2(y, x) - heading, 2.0 * PI), place;
    struct light out;
    if (turn < 0.0)
        turn += 2.0 * PI;
    place = turn / LIDAR_BIN;
    out.bin = place >= 0.0 && place <= LIDAR_BINS ? (int)place : 0; /* NaN: 0 */
    out.share = place - D(out.bin);
    out.bin %= LIDAR_BINS;
    out.bright = bright > 0.0 ? bright : 0.0;
    return out;
}

/* How much brighter than a ring an object at (x, y) from the robot would be in its three bins. */
static double excess_of(const double *ring, double x, double y, double heading)
{
    const struct light seen = light_of(x, y, heading);
    const double after = seen.share * seen.bright - ring[(seen.bin + 1) % LIDAR_BINS];
    const double before = (1.0 - seen.share) * seen.bright - ring[(seen.bin + LIDAR_BINS - 1) % LIDAR_BINS];
    double most = seen.bright - ring[seen.bin];
    most = after > most ? after : most;
    return before > most ? before : most;
}

/* Count the views whose brightest bin an object explains; -1 if it should have been seen and was not. */
static int support_of(double x, double y, const struct view *views, int n, double limit)
{
    int count = 0, missing = 0, i;
    for (i = 0; i < n; i++) {
        const double dx = x - views[i].pose[0], dy = y - views[i].pose[1], heading = views[i].pose[2];
        struct light seen;
        if (excess_of(views[i].ring, dx, dy, heading) > SCENE_LOOSE * limit) {
            missing++;
            if (limit == SCENE_EXACT || SCENE_TRUSTED * missing > n)
                return -1;
            continue;
        }
        seen = light_of(dx, dy, heading);
        count += seen.bright > limit && fabs(seen.bright - views[i].ring[seen.bin]) < limit;
    }
    return count;
}

/* Write a ring that is 0 in the bins that the places explain. */
static void unexplained(double places[][2], int n, const struct view *view, double limit, double *left)
{
    int i, k;
    for (i = 0; i < LIDAR_BINS; i++)
        left[i] = view->ring[i];
    for (k = 0; k < n; k++) {
        const struct light seen = light_of(places[k][0] - view->pose[0], places[k][1] - view->pose[1], view->pose[2]);
        const int bins[3] = {seen.bin, (seen.bin + 1) % LIDAR_BINS, (seen.bin + LIDAR_BINS - 1) % LIDAR_BINS};
        const double values[3] = {seen.bright, seen.share * seen.bright, (1.0 - seen.share) * seen.bright};
        for (i = 0; i < 3; i++)
            if (values[i] > view->ring[bins[i]] - SCENE_LOOSE * limit)
                left[bins[i]] = 0.0;
    }
}

static int has_room(double x, double y, double known[][2], int n, double room)
{
    double nearest = HUGE_VAL;
    int k;
    for (k = 0; k < n; k++) {
        const double far = hypot(x - known[k][0], y - known[k][1]);
        nearest = far < nearest ? far : nearest;
    }
    return nearest >= room;
}

/* Find the place of one more object; return how many views show it, 0 if none is found. */
static int find_object(
    double known[][2], int n, const struct view *views, int count, const struct scene_kind *kind, double *best)
{
    const struct view *last = views + count - 1;
    const double *here = last->pose;
    const double limit = kind->limit;
    double left[SCENE_VIEWS][LIDAR_BINS];
    int most = 0, at, i, other, side;
    for (i = 0; i < count; i++)
        unexplained(known, n, views + i, limit, left[i]);
    for (at = 0; at < LIDAR_BINS; at++) {
        const double bright = left[count - 1][at];
        double far, low, high;
        if (bright <= limit)
            continue;
        far = LIDAR_RANGE * (1.0 - bright);
        low = 1.0 - last->ring[(at + LIDAR_BINS - 1) % LIDAR_BINS] / bright;
        high = last->ring[(at + 1) % LIDAR_BINS] / bright;
        if (fabs(high - low) * bright < limit && SCENE_EDGE < low && low < 1.0 - SCENE_EDGE) {
            const double angle = here[2] + (D(at) + 0.5 * (low + high)) * LIDAR_BIN;
            const double x = here[0] + far * cos(angle), y = here[1] + far * sin(angle);
            const int shows = support_of(x, y, views, count, limit);
            if (shows >= 0 && shows + kind->support > most && has_room(x, y, known, n, kind->room)) {
                best[0] = x;
                best[1] = y;
                most = shows + kind->support;
            }
        }
        for (i = 0; i < count - 1; i++) {
            const double dx = views[i].pose[0] - here[0], dy = views[i].pose[1] - here[1], way = hypot(dx, dy);
            if (way < SCENE_APART)
                continue;
            for (other = 0; other < LIDAR_BINS; other++) {
                double away, along, across;
                if (left[i][other] <= limit)
                    continue;
                away = LIDAR_RANGE * (1.0 - left[i][other]);
                along = (far * far - away * away + way * way) / (2.0 * way);
                if (fabs(along) > far)
                    continue;
                across = sqrt(far * far - along * along);
                for (side = 0; side < 2; side++) {
                    const double sign = side ? 1.0 : -1.0;
                    const double x = here[0] + (along * dx - sign * across * dy) / way;
                    const double y = here[1] + (along * dy + sign * across * dx) / way;
                    int shows;
                    if (light_of(x - here[0], y - here[1], here[2]).bin != at)
                        continue;
                    shows = support_of(x, y, views, count, limit);
                    if (shows >= kind->support && shows > most && has_room(x, y, known, n, kind->room)) {
                        best[0] = x;
                        best[1] = y;
                        most = shows;
                    }
                }
            }
        }
    }
    return most;
}

/* The place of the only object of a ring, from the robot. */
static void only_place(const double *ring, double heading, double *out)
{
    double angle, far;
    int at = 0, i;
    for (i = 1; i < LIDAR_BINS; i++)
        at = ring[i] > ring[at] ? i : at;
    angle = heading + (D(at) + ring[(at + 1) % LIDAR_BINS] / ring[at]) * LIDAR_BIN;
    far = LIDAR_RANGE * (1.0 - ring[at]);
    out[0] = far * cos(angle);
    out[1] = far * sin(angle);
}

/* Objects that stay where they are, by which the robot finds its place. */
struct landmarks {
    int count, guesses;
    double heading, limit;
    double places[AT_LEAST_ONE(SCENE_OBJECTS)][2], guess[AT_LEAST_ONE(SCENE_KINDS)][2];
    const double *rings[AT_LEAST_ONE(SCENE_OBJECTS)]; /* the lidar of each one's kind */
    /* How much farther than they are from a place they are seen, infinite out of range; and their directions. */
    double errors[AT_LEAST_ONE(SCENE_OBJECTS)], directions[AT_LEAST_ONE(SCENE_OBJECTS)][2];
};

static void residuals(struct landmarks *m, const double *robot)
{
    int k;
    for (k = 0; k < m->count; k++) {
        const double x = m->places[k][0] - robot[0], y = m->places[k][1] - robot[1];
        const struct light seen = light_of(x, y, m->heading);
        double far = hypot(x, y);
        m->errors[k] = seen.bright > 0.0 ? LIDAR_RANGE * (seen.bright - m->rings[k][seen.bin]) : HUGE_VAL;
        far = 1e-9 > far ? 1e-9 : far;
        m->directions[k][0] = x / far;
        m->directions[k][1] = y / far;
    }
}

static int is_right(const struct landmarks *m, int k)
{
    return fabs(m->errors[k]) < m->limit * LIDAR_RANGE;
}

/* The shift of the robot that two landmarks, or with one < 0 all that are right, ask for by least squares. */
static void solve_shift(const struct landmarks *m, int one, int two, double *shift)
{
    double a = 1e-9, b = 0.0, c = 1e-9, p = 0.0, q = 0.0, det;
    int k;
    for (k = 0; k < m->count; k++)
        if (one < 0 ? is_right(m, k) : k == one || k == two) {
            const double x = m->directions[k][0], y = m->directions[k][1];
            a = a + x * x;
            b = b + x * y;
            c = c + y * y;
            p = p - x * m->errors[k];
            q = q - y * m->errors[k];
        }
    det = a * c - b * b;
    shift[0] = (c * p - b * q) / det;
    shift[1] = (a * q - b * p) / det;
}

/* Find the place near `robot` that explains most of the landmarks; return how many. Those that should be seen from there
   and are not count against it. */
static int locate(struct landmarks *m, const double *robot, double *best)
{
    const int count = m->count, trials = 1 + m->guesses + count * (count - 1) / 2;
    int most = -count - 1, found = 0, one = 0, two = 0, trial, i, k;
    double least = HUGE_VAL, shift[2];
    best[0] = robot[0];
    best[1] = robot[1];
    for (trial = 0; trial < trials; trial++) {
        double at[2], left = 0.0;
        int score = 0, right = 0;
        at[0] = robot[0];
        at[1] = robot[1];
        if (trial > 0 && trial <= m->guesses) {
            at[0] = m->guess[trial - 1][0];
            at[1] = m->guess[trial - 1][1];
        } else if (trial > m->guesses) {
            two++;
            if (two == count) {
                one++;
                two = one + 1;
            }
            for (i = 0; i < 3; i++) {
                residuals(m, at);
                solve_shift(m, one, two, shift);
                at[0] += shift[0];
                at[1] += shift[1];
            }
        }
        if (!(hypot(at[0] - robot[0], at[1] - robot[1]) <= SCENE_DRIFT))
            continue;
        residuals(m, at);
        for (k = 0; k < count; k++)
            if (is_right(m, k)) {
                right++;
                left += m->errors[k] * m->errors[k];
            }
        score = right;
        for (k = 0; k < count; k++)
            score -= excess_of(m->rings[k], m->places[k][0] - at[0], m->places[k][1] - at[1], m->heading)
                > SCENE_LOOSE * m->limit;
        if (score > most || (score == most && left < least)) {
            best[0] = at[0];
            best[1] = at[1];
            most = score;
            least = left;
            found = right;
        }
    }
    if (found >= 2) {
        residuals(m, best);
        solve_shift(m, -1, -1, shift);
        if (hypot(shift[0], shift[1]) < m->limit * LIDAR_RANGE) {
            best[0] += shift[0];
            best[1] += shift[1];
        }
    }
    return found;
}

static void forget_scene(struct scene *s)
{
    int i;
    s->robot[0] = s->robot[1] = 0.0;
    for (i = 0; i < SCENE_KINDS; i++)
        s->known[i] = 0;
    for (i = 0; i < SCENE_SLOTS; i++)
        s->views[i] = 0;
}

/* Set the place of the robot, which is near `robot`, by the objects that are known; return whether it is sure. If most
   objects are not where they should be, the map begins anew. */
static int locate_robot(struct scene *s, const double *observation, const double *robot)
{
    struct landmarks m;
    int kind, i, lost = 0;
    m.count = m.guesses = 0;
    m.heading = s->heading;
    m.limit = 0.0;
    for (kind = 0; kind < SCENE_KINDS; kind++) {
        const struct scene_kind *one = scene_kinds + kind;
        const double *ring = observation + one->start;
        if (!one->steady)
            continue;
        for (i = 0; i < s->known[kind]; i++) {
            const double *place = s->places[one->first + i];
            if (m.count == 0)
                m.limit = one->limit;
            m.places[m.count][0] = place[0];
            m.places[m.count][1] = place[1];
            m.rings[m.count++] = ring;
            if (one->count == 1 && brightest(ring) > 0.0) {
                double offset[2];
                only_place(ring, s->heading, offset);
                m.guess[m.guesses][0] = place[0] - offset[0];
                m.guess[m.guesses++][1] = place[1] - offset[1];
            }
        }
    }
    s->robot[0] = robot[0];
    s->robot[1] = robot[1];
    if (m.count == 0 || locate(&m, robot, s->robot))
        return 1;
    for (i = 0; i < m.count; i++)
        lost += excess_of(m.rings[i], m.places[i][0] - robot[0], m.places[i][1] - robot[1], m.heading) > SCENE_LOST;
    if (2 * lost > m.count) {
        forget_scene(s);
        return 1;
    }
    return 0;
}

static void keep_object(struct scene *s, int to, int from)
{
    s->places[to][0] = s->places[from][0];
    s->places[to][1] = s->places[from][1];
    s->seen[to] = s->seen[from];
}

/* The place of the only object of a kind. */
static void place_only(struct scene *s, int kind, const struct view *view)
{
    const struct scene_kind *one = scene_kinds + kind;
    double place[2], *old = s->places[one->first];
    only_place(view->ring, view->pose[2], place);
    place[0] = view->pose[0] + place[0];
    place[1] = view->pose[1] + place[1];
    if (hypot(place[0] - old[0], place[1] - old[1]) > SCENE_LOOSE * one->limit * LIDAR_RANGE || !s->known[kind]) {
        old[0] = place[0];
        old[1] = place[1];
        s->known[kind] = 1;
    }
}

/* Keep a view of a kind; one from nearly the same place replaces the latest. Return how many there are. */
static int keep_view(struct scene *s, const struct scene_kind *one, const struct view *view)
{
    const int most = one->circling ? SCENE_VIEWS / 2 : SCENE_VIEWS;
    struct view *views = s->shown[one->slot];
    int count = s->views[one->slot], i;
    if (count
        && hypot(views[count - 1].pose[0] - view->pose[0], views[count - 1].pose[1] - view->pose[1]) < SCENE_APART)
        count--;
    if (count == most) {
        for (i = 0; i < most - 1; i++)
            views[i] = views[i + 1];
        count--;
    }
    views[count++] = *view;
    s->views[one->slot] = count;
    return count;
}

/* Compare a view with the map of a kind, correct the map, and look for more objects. */
static void add_view(struct scene *s, int kind, const struct view *view, double now)
{
    const struct scene_kind *one = scene_kinds + kind;
    const int first = one->first, lit = brightest(view->ring) > 0.0;
    double (*places)[2] = s->places + first;
    int known = 0, count, k, round;
    if ((one->dark && !lit) || (one->circling && now < SCENE_SETTLED))
        return;
    if (one->count == 1) {
        if (lit)
            place_only(s, kind, view);
        return;
    }
    for (k = 0; k < s->known[kind]; k++)
        if (excess_of(view->ring, places[k][0] - view->pose[0], places[k][1] - view->pose[1], view->pose[2])
            <= SCENE_LOOSE * one->limit)
            keep_object(s, first + known++, first + k);
    for (k = 0; k < known; k++) {
        const struct light seen = light_of(places[k][0] - view->pose[0], places[k][1] - view->pose[1], view->pose[2]);
        s->seen[first + k] += seen.bright > one->limit && seen.bright > view->ring[seen.bin] - one->limit;
    }
    count = keep_view(s, one, view);
    for (round = 0; round < one->count; round++) {
        double left[LIDAR_BINS], kept[SCENE_MOST][2], place[2] = {0.0, 0.0};
        int dropped = -1, n = 0, shows, any = 0;
        unexplained(places, known, view, one->limit, left);
        for (k = 0; k < LIDAR_BINS; k++)
            any = any || left[k] != 0.0;
        if (!any)
            break;
        if (known == one->count) /* another one is found only if the least seen was wrong */
            for (dropped = 0, k = 1; k < known; k++)
                dropped = s->seen[first + k] < s->seen[first + dropped] ? k : dropped;
        for (k = 0; k < known; k++)
            if (k != dropped) {
                kept[n][0] = places[k][0];
                kept[n++][1] = places[k][1];
            }
        shows = find_object(kept, n, s->shown[one->slot], count, one, place);
        if (!shows)
            break;
        for (n = 0, k = 0; k < known; k++)
            if (k != dropped)
                keep_object(s, first + n++, first + k);
        places[n][0] = place[0];
        places[n][1] = place[1];
        s->seen[first + n] = shows;
        known = n + 1;
    }
    s->known[kind] = known;
}

/* Take notice of an observation after so many control steps of the episode. The same observation counts once; a step
   that is not after the last one begins a new episode. */
static void observe_scene(struct scene *s, const double *observation, int64_t step)
{
    double at[2], vx, vy, time, cosine, sine, now;
    int same = s->begun, kind, i;
    for (i = 0; same && i < BLEND_OBSERVATION_SIZE; i++)
        same = observation[i] == s->last[i];
    if (same) {
        s->steps = step;
        return;
    }
    if (!s->begun || step <= s->steps) {
        forget_scene(s);
        s->velocity[0] = s->velocity[1] = 0.0;
        s->steps = step;
        s->begun = 1;
    }
    for (i = 0; i < BLEND_OBSERVATION_SIZE; i++)
        s->last[i] = observation[i];
    s->heading = atan2(-observation[SCENE_MAGNETOMETER], -observation[SCENE_MAGNETOMETER + 1]);
    cosine = cos(s->heading);
    sine = sin(s->heading);
    vx = cosine * observation[SCENE_VELOCITY] - sine * observation[SCENE_VELOCITY + 1];
    vy = sine * observation[SCENE_VELOCITY] + cosine * observation[SCENE_VELOCITY + 1];
    time = D(step - s->steps) * SCENE_PERIOD;
    at[0] = s->robot[0] + 0.5 * (vx + s->velocity[0]) * time;
    at[1] = s->robot[1] + 0.5 * (vy + s->velocity[1]) * time;
    s->velocity[0] = vx;
    s->velocity[1] = vy;
    s->steps = step;
    if (!locate_robot(s, observation, at))
        return; /* the map would suffer */
    now = D(step) * SCENE_PERIOD;
    for (kind = 0; kind < SCENE_KINDS; kind++) {
        const struct scene_kind *one = scene_kinds + kind;
        struct view view;
        view.pose[0] = s->robot[0] - one->travel * sin(now - SCENE_LAG);
        view.pose[1] = s->robot[1] - one->travel * cos(now - SCENE_LAG);
        view.pose[2] = s->heading;
        for (i = 0; i < LIDAR_BINS; i++)
            view.ring[i] = observation[one->start + i];
        add_view(s, kind, &view, now);
    }
}
