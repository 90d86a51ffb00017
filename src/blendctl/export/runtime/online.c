/* The online model: recursive least squares on [1, o, a, o x a]. */

#define TERMS (1 + BLEND_OBSERVATION_SIZE)
#define BASIS (TERMS * (1 + BLEND_ACTION_SIZE))

struct online {
    double weights[OBJECTIVES][BASIS];
    double spread[BASIS][BASIS];
#if ONLINE_NORMALIZES
    double unit[OBJECTIVES]; /* of psi; 0 before the first feedback */
    double inputs[4][BLEND_OBSERVATION_SIZE]; /* mean and spread by which o is divided; mean and squares of all so far */
    int64_t count; /* observations that were learned from */
    int waiting; /* rows [o, a, feedback] that wait until the spread of o is known */
    double early[ONLINE_WARM_UP - 1][BLEND_OBSERVATION_SIZE + BLEND_ACTION_SIZE + OBJECTIVES];
#endif
};

static void expand(const double *observation, const double *action, double clip, double *out)
{
    int i, j;
    for (j = 0; j <= BLEND_ACTION_SIZE; j++) {
        const double factor = j ? D(action[j - 1]) : D(1);
        *out++ = factor;
        for (i = 0; i < BLEND_OBSERVATION_SIZE; i++)
            *out++ = factor * limit(D(observation[i]), -clip, clip);
    }
}

static void online_predict(const struct online *s, const double *observation, const double *action, double clip, double *out)
{
    double phi[BASIS];
    int i, k;
    expand(observation, action, clip, phi);
    for (k = 0; k < OBJECTIVES; k++) {
        out[k] = D(0);
        for (i = 0; i < BASIS; i++)
            out[k] += s->weights[k][i] * phi[i];
    }
}

#if ONLINE_NORMALIZES
static void in_units(const struct online *s, const double *observation, double *out)
{
    int i;
    for (i = 0; i < BLEND_OBSERVATION_SIZE; i++)
        out[i] = (observation[i] - s->inputs[0][i]) / s->inputs[1][i];
}

static void normalized_predict(
    const struct online *s, const double *observation, const double *action, double clip, double *out)
{
    double scaled[BLEND_OBSERVATION_SIZE];
    const double most = 1.0 / sqrt((double)OBJECTIVES);
    int k;
    in_units(s, observation, scaled);
    online_predict(s, scaled, action, clip, out);
    for (k = 0; k < OBJECTIVES; k++)
        out[k] = limit(out[k] / (s->unit[k] > 0.0 ? s->unit[k] : 1.0), -most, most);
}
#endif

#if BLEND_LEARNS
static void online_learn(
    struct online *s, const double *observation, const double *action, double clip, double discount, const double *feedback)
{
    double phi[BASIS], gain[BASIS], denominator = discount;
    int i, j, k;
    expand(observation, action, clip, phi);
    for (i = 0; i < BASIS; i++) {
        gain[i] = D(0);
        for (j = 0; j < BASIS; j++)
            gain[i] += s->spread[i][j] * phi[j];
    }
    for (i = 0; i < BASIS; i++)
        denominator += phi[i] * gain[i];
    for (k = 0; k < OBJECTIVES; k++) {
        double error = feedback[k];
        for (i = 0; i < BASIS; i++)
            error -= s->weights[k][i] * phi[i];
        error /= denominator;
        for (i = 0; i < BASIS; i++)
            s->weights[k][i] += error * gain[i];
    }
    for (i = 0; i < BASIS; i++)
        for (j = i; j < BASIS; j++) {
            const double value = (s->spread[i][j] - gain[i] * gain[j] / denominator) / discount;
            s->spread[i][j] = value;
            s->spread[j][i] = value;
        }
}

#if ONLINE_NORMALIZES
/* Multiply a block [1, o] of a row, whose entries are `stride` apart, by the change from old to new units. */
static void change_block(double *row, size_t stride, const double *shift, const double *factor)
{
    int i;
    for (i = 0; i < BLEND_OBSERVATION_SIZE; i++) {
        double *entry = row + (size_t)(1 + i) * stride;
        row[0] += *entry * shift[i];
        *entry *= factor[i];
    }
}

/* Take the statistics so far as the new units of observations, and express the model in them. */
static void renormalize(struct online *s)
{
    double shift[BLEND_OBSERVATION_SIZE], factor[BLEND_OBSERVATION_SIZE];
    int i, j, k;
    for (i = 0; i < BLEND_OBSERVATION_SIZE; i++) {
        const double mean = s->inputs[2][i], size = fabs(mean) > 1.0 ? fabs(mean) : 1.0;
        double spread = sqrt(s->inputs[3][i] / (double)s->count);
        if (!(spread > 1e-8 * size))
            spread = 1.0;
        shift[i] = (mean - s->inputs[0][i]) / s->inputs[1][i];
        factor[i] = spread / s->inputs[1][i];
        s->inputs[0][i] = mean;
        s->inputs[1][i] = spread;
    }
    if (s->count == ONLINE_WARM_UP) /* nothing was learned before: the prior belongs to these units */
        return;
    for (j = 0; j < BASIS; j += TERMS) {
        for (k = 0; k < OBJECTIVES; k++)
            change_block(s->weights[k] + j, 1, shift, factor);
        for (i = 0; i < BASIS; i++)
            change_block(s->spread[i] + j, 1, shift, factor);
    }
    for (j = 0; j < BASIS; j += TERMS)
        for (i = 0; i < BASIS; i++)
            change_block(&s->spread[j][i], BASIS, shift, factor);
    for (i = 0; i < BASIS; i++)
        for (j = i + 1; j < BASIS; j++)
            s->spread[i][j] = s->spread[j][i] = 0.5 * (s->spread[i][j] + s->spread[j][i]);
}

/* Add an observation to the statistics; change the units where they have grown. */
static void notice(struct online *s, const double *observation, double clip, const double *feedback)
{
    int i, k;
    for (k = 0; k < OBJECTIVES; k++) {
        const double largest = ONLINE_HEADROOM * sqrt((double)OBJECTIVES) * fabs(feedback[k]);
        if (largest > s->unit[k]) {
            int exponent;
            const double mantissa = frexp(largest, &exponent); /* in [0.5, 1) */
            s->unit[k] = ldexp(1.0, mantissa > 0.5 ? exponent : exponent - 1);
        }
    }
    s->count++;
    for (i = 0; i < BLEND_OBSERVATION_SIZE; i++) {
        const double reach = clip * s->inputs[1][i];
        double o = limit(observation[i], -ONLINE_LARGEST, ONLINE_LARGEST), before;
        if (s->count > ONLINE_WARM_UP)
            o = limit(o, s->inputs[0][i] - reach, s->inputs[0][i] + reach);
        before = o - s->inputs[2][i];
        s->inputs[2][i] += before / (double)s->count;
        s->inputs[3][i] += before * (o - s->inputs[2][i]);
    }
    if (s->count >= ONLINE_WARM_UP && (s->count & (s->count - 1)) == 0)
        renormalize(s);
}

static void normalized_learn(
    struct online *s, const double *observation, const double *action, double clip, double discount, const double *feedback)
{
    double scaled[BLEND_OBSERVATION_SIZE];
    int i, r;
    notice(s, observation, clip, feedback);
    if (s->count < ONLINE_WARM_UP) {
        double *row = s->early[s->waiting++];
        for (i = 0; i < BLEND_OBSERVATION_SIZE; i++)
            *row++ = observation[i];
        for (i = 0; i < BLEND_ACTION_SIZE; i++)
            *row++ = action[i];
        for (i = 0; i < OBJECTIVES; i++)
            *row++ = feedback[i];
        return;
    }
    for (r = 0; r < s->waiting; r++) {
        const double *row = s->early[r];
        in_units(s, row, scaled);
        online_learn(
            s, scaled, row + BLEND_OBSERVATION_SIZE, clip, discount, row + BLEND_OBSERVATION_SIZE + BLEND_ACTION_SIZE);
    }
    s->waiting = 0;
    in_units(s, observation, scaled);
    online_learn(s, scaled, action, clip, discount, feedback);
}
#endif
#endif
