/* Where each controller would drive, and what it would meet there on the map of the episode. It follows
   controllers/path_encoding.py, always in double. */

/* Write the places that the path network predicts for every controller, in m in the robot's frame. */
static void place_paths(const float *predicted, double paths[][PATH_POINTS][2])
{
    int arm, point, k;
    for (arm = 0; arm < ARMS; arm++)
        for (point = 0; point < PATH_POINTS; point++)
            for (k = 0; k < 2; k++)
                paths[arm][point][k] = D(*predicted++) * D(path_unit[point]);
}

/* Write how long a path stays inside the objects of a kind until each horizon, discounted. */
static float *encode_avoided(const struct scene *s, double path[][2], int part, float *out)
{
    const int kind = avoided_kinds[part];
    const struct scene_kind *one = scene_kinds + kind;
    const double cosine = cos(s->heading), sine = sin(s->heading), radius = avoided_radii[part];
    const double width = 2.0 * sqrt(3.0); /* an error of standard deviation s is taken to be uniform, this times s wide */
    const double now = D(s->steps) * SCENE_PERIOD - SCENE_LAG;
    double total = 0.0, factor = 1.0, x0 = 0.0, y0 = 0.0, s0 = 0.0;
    int step = 0, point, sub, k;
    for (point = 0; point < PATH_POINTS; point++) {
        const double x1 = path[point][0], y1 = path[point][1], s1 = D(path_spread[point]);
        for (sub = 1; sub <= PATH_HOLD; sub++) {
            const double share = D(sub) / D(PATH_HOLD);
            const double px = x0 + share * (x1 - x0), py = y0 + share * (y1 - y0);
            const double error = s0 + share * (s1 - s0) + LEAST_SPREAD;
            const double time = now + D(++step) * SCENE_PERIOD; /* circling objects are where they will be then */
            const double wx = cosine * px - sine * py + s->robot[0] - one->travel * sin(time);
            const double wy = sine * px + cosine * py + s->robot[1] - one->travel * cos(time);
            double outside = 1.0;
            for (k = 0; k < s->known[kind]; k++) {
                const double *place = s->places[one->first + k];
                const double dx = place[0] - wx, dy = place[1] - wy;
                const double inside = 0.5 + (radius - sqrt(dx * dx + dy * dy)) / (width * error);
                outside *= 1.0 - limit(inside, 0.0, 1.0);
            }
            total += factor * (1.0 - outside);
            factor *= PATH_DISCOUNT;
        }
        x0 = x1;
        y0 = y1;
        s0 = s1;
        if (point + 1 == PATH_POINTS / 4 || point + 1 == PATH_POINTS / 2 || point + 1 == PATH_POINTS)
            *out++ = narrow(total);
    }
    return out;
}

/* Write how much nearer a path comes to a target, and how near; zeros if it is not known. */
static float *encode_target(const struct scene *s, double path[][2], int kind, float *out)
{
    const double cosine = cos(s->heading), sine = sin(s->heading);
    const double *place = s->places[scene_kinds[kind].first];
    const double across = place[0] - s->robot[0], along = place[1] - s->robot[1];
    const double x = cosine * across + sine * along, y = cosine * along - sine * across;
    const double here = sqrt(x * x + y * y);
    const int known = s->known[kind];
    double least = FARTHEST;
    int point;
    for (point = 0; point < PATH_POINTS; point++) {
        const double dx = x - path[point][0], dy = y - path[point][1];
        const double far = sqrt(dx * dx + dy * dy);
        least = far < least ? far : least;
        *out++ = known ? narrow(here - far) : 0.0f;
    }
    *out++ = known ? narrow(least) : 0.0f;
    return out;
}

static void encode_paths(const struct scene *s, double paths[][PATH_POINTS][2], float *out)
{
    int arm, part, point;
    for (arm = 0; arm < ARMS; arm++) {
        for (part = 0; part < PATH_AVOIDED; part++)
            out = encode_avoided(s, paths[arm], part, out);
        for (part = 0; part < PATH_TARGETS; part++)
            out = encode_target(s, paths[arm], target_kinds[part], out);
        for (point = 0; point < PATH_POINTS; point++) {
            *out++ = narrow(paths[arm][point][0]);
            *out++ = narrow(paths[arm][point][1]);
        }
    }
}
