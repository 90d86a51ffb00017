/* The online model: recursive least squares on [1, o, a, o x a]. */

#define BASIS ((1 + BLEND_OBSERVATION_SIZE) * (1 + BLEND_ACTION_SIZE))

struct online {
    double weights[OBJECTIVES][BASIS];
    double spread[BASIS][BASIS];
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
#endif
