/* The monitor: estimated against observed feedback, and the time of control steps. */

#define OCTAVES 24 /* of the histogram, from 2^-23 s (0.12 us) to 2 s */
#define PER_OCTAVE 8
#define BUCKETS (OCTAVES * PER_OCTAVE)

struct monitor {
    int64_t compared, surprises, alarm; /* alarm: stages compared when it was raised, 0 for none */
    int64_t epoch, hits; /* epoch of the last surprise, and surprises in it */
    double estimated[OBJECTIVES], observed[OBJECTIVES]; /* sums, scaled */
    int64_t timed, buckets[BUCKETS];
    double longest; /* s */
};

#if !BOOTSTRAPS
/* Bet against the assumption that surprises are rare; see BoundCheck in Python. In each epoch the mean of some wealths
   exceeds 1 / error with probability `error` at most, and the errors of all epochs add up to DRIFT_FALSE_ALARM. */
static void count_surprise(struct monitor *m)
{
    const int64_t epoch = (m->compared - 1) / DRIFT_EPOCH, stages = (m->compared - 1) % DRIFT_EPOCH;
    double wealth = 0.0, limit_of_epoch;
    int i;
    if (epoch != m->epoch) {
        m->epoch = epoch;
        m->hits = 0;
    }
    m->hits++;
    m->surprises++;
    for (i = 0; i < DRIFT_STAKES; i++) {
        const double stake = drift_stakes[i];
        const double sum = D(stages + 1 - m->hits) * log1p(-stake) + D(m->hits) * log1p(stake / DRIFT_RATE - stake);
        wealth += exp(sum < 700.0 ? sum : 700.0);
    }
    limit_of_epoch = (PI * D(epoch + 1)) * (PI * D(epoch + 1)) / (6.0 * DRIFT_FALSE_ALARM);
    if (!m->alarm && wealth / D(DRIFT_STAKES) > limit_of_epoch)
        m->alarm = m->compared;
}

/* Compare the feedback of a stage with what row `row` of its decision estimated. */
static void compare(struct monitor *m, const struct decision *decision, int row, const double *feedback)
{
    const double allowed = decision->radius * decision->width[row] + DRIFT_SPREAD;
    int k, surprise = 0;
    m->compared++;
    for (k = 0; k < OBJECTIVES; k++) {
        const double value = feedback[k] / objective_scales[k], error = value - decision->estimate[row][k];
        m->observed[k] += value;
        m->estimated[k] += decision->estimate[row][k];
        surprise = surprise || !(-allowed <= error && error <= allowed);
    }
    if (surprise)
        count_surprise(m);
}
#endif

/* The upper edge of a bucket: a quantile is at most an eighth too large. */
static double upper_edge(int bucket)
{
    return ldexp(1.0 + D(bucket % PER_OCTAVE + 1) / D(PER_OCTAVE), bucket / PER_OCTAVE - OCTAVES + 1);
}

static double quantile(const struct monitor *m, double share)
{
    int64_t rank = (int64_t)(share * D(m->timed)), count = 0;
    int i;
    if (!m->timed)
        return 0.0;
    for (i = 0; i < BUCKETS - 1; i++) {
        count += m->buckets[i];
        if (count > rank)
            break;
    }
    return upper_edge(i) < m->longest ? upper_edge(i) : m->longest;
}
