/* The input of a network: scaled readings, lidars, decoded objects, margins ahead, pairs of objects. */

struct lidar {
    int start, bins, objects;
    double radius;
    int sighting; /* its number */
};

/* What a lidar sees: distance, direction and both edges of its nearest objects. */
struct sighting {
    int known;
    struct {
        int seen;
        real distance, cosine, sine, x, y, spread, edge_x[2], edge_y[2];
    } objects[2];
};

struct encoding {
    int readings;
    const int *robot;
    const double *gains;
    int rings;
    const struct lidar *lidars;
    int pairs;
    const int *pair;
    int margins;
    const double *ahead; /* time, width */
    int near_field, velocity;
    double max_distance;
};

static void sight(const struct lidar *lidar, const double *bin, real far_away, int edges, struct sighting *out)
{
    const int bins = lidar->bins;
    const real bin_angle = R(2.0 * 3.141592653589793 / bins);
    int first = -1, which, i, k;
    for (which = 0; which < lidar->objects; which++) {
        int peak = 0, seen;
        real reading = R(-1), low = R(0), high = R(1), distance, angle, cosine, sine;
        for (i = 0; i < bins; i++) {
            const int apart = i > first ? i - first : first - i;
            if (first >= 0 && (apart <= 1 || bins - apart <= 1))
                continue; /* the second object is searched outside of the first one's three bins */
            if (R(bin[i]) > reading) {
                peak = i;
                reading = R(bin[i]);
            }
        }
        if (which == 0)
            first = peak;
        seen = reading > R(1e-9);
        if (seen) {
            low = clamp(R(1) - R(bin[(peak + bins - 1) % bins]) / reading, R(0), R(1));
            high = R(bin[(peak + 1) % bins]) / reading;
            high = high < low ? low : high;
            high = high > R(1) ? R(1) : high;
        }
        distance = seen ? far_away * (R(1) - reading) : far_away;
        angle = (R(peak) + R(0.5) * (low + high)) * bin_angle;
        cosine = seen ? COS(angle) : R(0);
        sine = seen ? SIN(angle) : R(0);
        out->objects[which].seen = seen;
        out->objects[which].distance = distance;
        out->objects[which].cosine = cosine;
        out->objects[which].sine = sine;
        out->objects[which].x = distance * cosine;
        out->objects[which].y = distance * sine;
        out->objects[which].spread = high - low;
        for (k = 0; edges && seen && k < 2; k++) {
            const real edge = (R(peak) + (k ? high : low)) * bin_angle;
            out->objects[which].edge_x[k] = distance * COS(edge);
            out->objects[which].edge_y[k] = distance * SIN(edge);
        }
    }
    out->known = 1;
}

/* Encode an observation; lidars that another encoding has decoded are in `sightings`. */
static void encode(const struct encoding *e, const double *raw, struct sighting *sightings, float *out)
{
    const real far_away = R(e->max_distance);
    const real vx = e->velocity >= 0 ? R(raw[e->velocity]) : R(0), vy = e->velocity >= 0 ? R(raw[e->velocity + 1]) : R(0);
    real nearest[2 * BLEND_RINGS]; /* x, y of each ring's nearest object */
    int ring, i, k;
    for (i = 0; i < 2 * BLEND_RINGS; i++)
        nearest[i] = R(0);
    for (i = 0; i < e->readings; i++)
        *out++ = (float)clamp(R(raw[e->robot[i]] * e->gains[i]), R(-5), R(5));
    for (ring = 0; ring < e->rings; ring++) {
        const struct lidar *lidar = e->lidars + ring;
        const double *bin = raw + lidar->start;
        struct sighting *sighting = sightings + lidar->sighting;
        int which;
        if (!sighting->known)
            sight(lidar, bin, far_away, e->margins > 0, sighting);
        for (i = 0; i < lidar->bins; i++)
            *out++ = narrow(bin[i]);
        if (e->near_field)
            for (i = 0; i < lidar->bins; i++)
                *out++ = (float)clamp(R((bin[i] - 0.85) * 10.0), R(0), R(2));
        if (lidar->objects) {
            nearest[2 * ring] = sighting->objects[0].x;
            nearest[2 * ring + 1] = sighting->objects[0].y;
        }
        for (which = 0; which < lidar->objects; which++) {
            const int seen = sighting->objects[which].seen;
            *out++ = narrow(sighting->objects[which].x);
            *out++ = narrow(sighting->objects[which].y);
            *out++ = narrow(sighting->objects[which].distance);
            *out++ = (float)sighting->objects[which].cosine;
            *out++ = (float)sighting->objects[which].sine;
            *out++ = (float)sighting->objects[which].spread;
            if (e->margins)
                for (k = 0; k < 2; k++)
                    for (i = 0; i < e->margins; i++) {
                        const real time = R(e->ahead[2 * i]), width = R(e->ahead[2 * i + 1]);
                        real margin = R(-1);
                        if (seen) {
                            const real x = sighting->objects[which].edge_x[k] - vx * time;
                            const real y = sighting->objects[which].edge_y[k] - vy * time;
                            margin = (R(lidar->radius) - HYPOT(x, y)) / width;
                        }
                        *out++ = (float)clamp(margin, R(-1), R(1));
                    }
        }
    }
    for (i = 0; i < e->pairs; i++) {
        const real *a = nearest + 2 * e->pair[2 * i], *b = nearest + 2 * e->pair[2 * i + 1];
        const real x = b[0] - a[0], y = b[1] - a[1];
        const real gap = HYPOT(x, y) + R(1e-9), sight = HYPOT(a[0], a[1]) + R(1e-9);
        *out++ = narrow(x);
        *out++ = narrow(y);
        *out++ = narrow(gap);
        *out++ = (float)(x / gap);
        *out++ = (float)(y / gap);
        *out++ = (float)((x * a[0] + y * a[1]) / (gap * sight));
        *out++ = (float)((x * a[1] - y * a[0]) / (gap * sight));
    }
}
