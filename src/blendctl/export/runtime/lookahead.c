/* Look-ahead: return and cost to go of every controller, and the dial that weighs them. */

struct foresight {
    double returns[ARMS], costs[ARMS], scores[ARMS];
};

/* Estimate from the encoded observation, whose last entry is free for the position of the weight. */
static void foresee(float *inputs, double weight, double position, struct foresight *out)
{
    float level[2], sum[ARMS][2], one[ARMS][2], mean[2];
    int a, k, n;
    inputs[LOOKAHEAD_INPUTS - 1] = (float)position;
    lookahead_level(inputs, level);
    for (n = 0; n < LOOKAHEAD_DIFFERENCES; n++) {
        lookahead_difference(n, inputs, &one[0][0]);
        for (a = 0; a < ARMS; a++)
            for (k = 0; k < 2; k++)
                sum[a][k] = n ? sum[a][k] + one[a][k] : one[a][k];
    }
    for (k = 0; k < 2; k++) {
        mean[k] = 0.0f;
        for (a = 0; a < ARMS; a++) {
            sum[a][k] = sum[a][k] / (float)LOOKAHEAD_DIFFERENCES;
            mean[k] = a ? mean[k] + sum[a][k] : sum[a][k];
        }
        mean[k] = mean[k] / (float)ARMS;
        level[k] = level[k] * level_unit[k];
        for (a = 0; a < ARMS; a++)
            sum[a][k] = (sum[a][k] - mean[k]) * difference_unit[k];
    }
    for (a = 0; a < ARMS; a++) {
        out->returns[a] = D(level[0]) + D(sum[a][0]);
        out->costs[a] = D(level[1]) + D(sum[a][1]);
        out->scores[a] = D(sum[a][0]) - weight * D(sum[a][1]);
    }
}

/* psi of every arm: return and weighted cost less their means over the arms, and these, in one unit. */
static void lookahead_psi(const struct foresight *f, double weight, double psi[][FEATURES])
{
    const double unit = D(HEADROOM) * (D(level_unit[0]) + weight * D(level_unit[1]));
    double mean_return = D(0), mean_cost = D(0);
    int a;
    for (a = 0; a < ARMS; a++) {
        mean_return += f->returns[a];
        mean_cost += f->costs[a];
    }
    mean_return /= D(ARMS);
    mean_cost /= D(ARMS);
    for (a = 0; a < ARMS; a++) {
        psi[a][0] = (f->returns[a] - mean_return) / unit;
        psi[a][1] = -weight * (f->costs[a] - mean_cost) / unit;
        psi[a][2] = mean_return / unit;
        psi[a][3] = -weight * mean_cost / unit;
    }
}

#if BLEND_LEARNS
/* Add the value of where a stage ended to its feedback, in the units of psi. */
static void lookahead_target(const struct foresight *after, double weight, double *feedback)
{
    const double unit = D(HEADROOM) * (D(level_unit[0]) + weight * D(level_unit[1]));
    int best = 0, a;
    for (a = 1; a < ARMS; a++)
        if (after->scores[a] > after->scores[best])
            best = a;
    feedback[0] = (feedback[0] + D(STAGE_DISCOUNT) * after->returns[best]) / unit;
#if OBJECTIVES > 1
    feedback[1] = (feedback[1] + D(STAGE_DISCOUNT) * -after->costs[best]) * weight / unit;
#endif
}
#endif

#if HAS_BUDGET
/* The cost weight for the cost spent until a control step of the episode. */
static double weight_of(double aim, double spent, int64_t steps)
{
    const double length = D(EPISODE_STEPS), least = D(1) / length;
    const double share = D(1) - D(steps) / length;
    const double left = share > least ? share : least;
    const double rest = D(COST_BUDGET) * aim - spent;
    const double affordable = rest / left < D(COST_BUDGET) * aim ? rest / left : D(COST_BUDGET) * aim;
    double log_weight;
    int j;
    if (rest <= D(SAFEST_COST) * left + D(RESERVE))
        return D(SAFEST_WEIGHT); /* the latch */
    if (affordable < dial_costs[0])
        log_weight = dial_log_weights[0];
    else if (affordable >= dial_costs[DIAL_POINTS - 1])
        log_weight = dial_log_weights[DIAL_POINTS - 1];
    else {
        for (j = DIAL_POINTS - 2; dial_costs[j] > affordable; j--)
            ;
        log_weight = (dial_log_weights[j + 1] - dial_log_weights[j]) / (dial_costs[j + 1] - dial_costs[j])
                * (affordable - dial_costs[j]) + dial_log_weights[j];
    }
    return limit(exp(log_weight), D(LOWEST_WEIGHT), D(SAFEST_WEIGHT));
}

static double position_of(double weight)
{
    return log(weight / D(MIDDLE_WEIGHT)) / D(HALF_LOG_RANGE);
}
#endif
