/* The guard: fall back to a controller that the blend's episodes are shown to be worse than in every objective. */

struct guard {
    int arm; /* it has fallen back to, -1 for none */
    int seen; /* the present episode has feedback */
    int64_t episodes;
    double total[OBJECTIVES]; /* of the present episode */
    double logs[GUARD_CONTROLLERS][OBJECTIVES][GUARD_FRACTIONS]; /* wealth of every bet */
};

/* log(exp(a) + exp(b)) */
static double add_logs(double a, double b)
{
    const double high = a > b ? a : b, low = a > b ? b : a;
    return low == -HUGE_VAL ? high : high + log1p(exp(low - high));
}

static void guard_init(struct guard *g)
{
    int c, k, f;
    g->arm = -1;
    for (c = 0; c < GUARD_CONTROLLERS; c++)
        for (k = 0; k < OBJECTIVES; k++)
            for (f = 0; f < GUARD_FRACTIONS; f++)
                g->logs[c][k][f] = -HUGE_VAL;
}

static void guard_end_episode(struct guard *g)
{
    double best = -HUGE_VAL;
    int c, k, f, i, winner = 0;
    if (!g->seen || g->arm >= 0) {
        g->seen = 0;
        return;
    }
    g->seen = 0;
    g->episodes++;
    for (c = 0; c < GUARD_CONTROLLERS; c++) {
        double least = HUGE_VAL;
        for (k = 0; k < OBJECTIVES; k++) {
            double better = 0.0, worse = 0.0, value, wealth = -HUGE_VAL;
            for (i = guard_starts[c]; i < guard_starts[c + 1]; i++) {
                better += guard_outcomes[i][k] > g->total[k] ? 1.0 : 0.0;
                worse += guard_outcomes[i][k] < g->total[k] ? 1.0 : 0.0;
            }
            i = guard_starts[c + 1] - guard_starts[c];
            value = 0.5 * (1.0 + better / D(i) - worse / D(i));
            for (f = 0; f < GUARD_FRACTIONS; f++) {
                const double start = log(guard_shares[f]) - log(D(g->episodes) * (D(g->episodes) + 1.0));
                const double factor = 1.0 + guard_fractions[f] * ((0.5 - value) / (0.0 - 0.5));
                double *bet = &g->logs[c][k][f];
                *bet = add_logs(*bet, start) + (factor > 0.0 ? log(factor) : -HUGE_VAL);
                wealth = add_logs(wealth, *bet);
            }
            wealth = add_logs(wealth, -log(D(g->episodes) + 1.0));
            least = wealth < least ? wealth : least;
        }
        if (least > best) {
            best = least;
            winner = c;
        }
    }
    if (best >= log(GUARD_CONTROLLERS / GUARD_FALSE_ALARM))
        g->arm = guard_arms[winner];
}
