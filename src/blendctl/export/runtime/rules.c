/* The decision rule marks the candidates; one of them is picked uniformly. */

#if NEEDS_GREATEST
/* Mark the arms whose score is within the tolerance of the greatest; with `among`, of those that are marked. */
static void mark_greatest(const double *score, double tolerance, int arms, int *marked, int among)
{
    double best = D(0);
    int a, found = 0;
    for (a = 0; a < arms; a++)
        if ((!among || marked[a]) && (!found || score[a] > best)) {
            best = score[a];
            found = 1;
        }
    for (a = 0; a < arms; a++)
        marked[a] = (!among || marked[a]) && score[a] >= best - tolerance;
}
#endif

#if NEEDS_DOMINANCE
/* Unmark what another arm dominates by more than the tolerance, unless nothing would remain. */
static void drop_dominated(struct decision *out, double tolerance)
{
    int kept[ARMS], a, other, k, count = 0;
    for (a = 0; a < out->arms; a++) {
        kept[a] = out->marked[a];
        for (other = 0; kept[a] && other < out->arms; other++) {
            int no_worse = 1, better = 0;
            for (k = 0; k < OBJECTIVES; k++) {
                const double gain = out->ucb[other][k] - out->ucb[a][k];
                no_worse = no_worse && gain >= -tolerance;
                better = better || gain > tolerance;
            }
            kept[a] = !(no_worse && better);
        }
        count += kept[a];
    }
    for (a = 0; count && a < out->arms; a++)
        out->marked[a] = kept[a];
}
#endif

/* Mark the candidates; return 0 if the rule cannot decide about these arms. */
static int mark_candidates(struct learner *s, struct decision *out)
{
    const int arms = out->arms;
    int a;
#if RULE_MAXIMAL_LOSS || RULE_THOMPSON || RULE_COST_BUDGET || RULE_CHEBYSHEV || RULE_LINEAR || RULE_GREEDY \
    || RULE_LEXICOGRAPHIC
    const double tolerance = tolerance_of(out);
    double score[ARMS];
    int k;
#endif
    (void)s;
#if RULE_MAXIMAL_LOSS
    (void)k;
    for (a = 0; a < arms; a++)
        score[a] = -out->loss[a];
    mark_greatest(score, tolerance, arms, out->marked, 0);
#if !RULE_PRINTED
    if (arms > 2) /* of two arms with the same loss neither dominates the other */
        drop_dominated(out, tolerance);
#endif
#elif RULE_PARETO_UNIFORM
    for (a = 0; a < arms; a++)
        out->marked[a] = 1;
    drop_dominated(out, tolerance_of(out));
#elif RULE_LINEAR || RULE_GREEDY
    {
        double total = D(0);
        for (k = 0; k < OBJECTIVES; k++)
            total += rule_weights[k];
        for (a = 0; a < arms; a++) {
            score[a] = D(0);
            for (k = 0; k < OBJECTIVES; k++)
                score[a] += rule_weights[k] * (RULE_GREEDY ? out->estimate[a][k] : out->ucb[a][k]);
        }
        mark_greatest(score, tolerance * total, arms, out->marked, 0);
    }
#elif RULE_CHEBYSHEV
    {
        double ideal[OBJECTIVES], heaviest = D(0);
        for (k = 0; k < OBJECTIVES; k++) {
#if RULE_REFERENCE
            ideal[k] = rule_reference[k];
#else
            ideal[k] = out->ucb[0][k];
            for (a = 1; a < arms; a++)
                ideal[k] = out->ucb[a][k] > ideal[k] ? out->ucb[a][k] : ideal[k];
#endif
            heaviest = rule_weights[k] > heaviest ? rule_weights[k] : heaviest;
        }
        for (a = 0; a < arms; a++) {
            double worst = rule_weights[0] * (ideal[0] - out->ucb[a][0]);
            for (k = 1; k < OBJECTIVES; k++) {
                const double distance = rule_weights[k] * (ideal[k] - out->ucb[a][k]);
                worst = distance > worst ? distance : worst;
            }
            score[a] = -worst;
        }
        mark_greatest(score, tolerance * heaviest, arms, out->marked, 0);
        drop_dominated(out, tolerance);
    }
#elif RULE_LEXICOGRAPHIC
    for (a = 0; a < arms; a++)
        out->marked[a] = 1;
    for (k = 0; k < RULE_ORDERED; k++) {
        for (a = 0; a < arms; a++)
            score[a] = out->ucb[a][rule_order[k]];
        mark_greatest(score, tolerance + rule_shortfall[k], arms, out->marked, 1);
    }
#elif RULE_COST_BUDGET
    {
        const double spent = -s->feedback[RULE_COST];
        const double room = D(RULE_BUDGET) * (D(s->updates) + D(1)) - spent + tolerance;
        int affordable = 0;
        (void)k;
        for (a = 0; a < arms; a++) {
            out->marked[a] = -out->ucb[a][RULE_COST] <= room;
            affordable += out->marked[a];
            score[a] = -out->loss[a];
        }
        if (affordable) {
            mark_greatest(score, tolerance, arms, out->marked, 1);
            drop_dominated(out, tolerance);
        } else {
            for (a = 0; a < arms; a++)
                score[a] = out->ucb[a][RULE_COST];
            mark_greatest(score, tolerance, arms, out->marked, 0);
        }
    }
#elif RULE_THOMPSON
    {
        double draws[OBJECTIVES][FEATURES], sampled[ARMS][OBJECTIVES];
        int j;
        for (k = 0; k < OBJECTIVES; k++)
            for (j = 0; j < FEATURES; j++)
                draws[k][j] = normal(s->rng);
        for (a = 0; a < arms; a++)
            for (k = 0; k < OBJECTIVES; k++) {
                double shift = D(0);
                for (j = 0; j < FEATURES; j++)
                    shift += out->whitened[a][j] * draws[k][j];
                sampled[a][k] = out->estimate[a][k] + D(RULE_SCALE) * out->radius * shift;
            }
        for (a = 0; a < arms; a++)
            score[a] = D(0);
        for (k = 0; k < OBJECTIVES; k++) {
            double best = sampled[0][k];
            for (a = 1; a < arms; a++)
                best = sampled[a][k] > best ? sampled[a][k] : best;
            for (a = 0; a < arms; a++)
                score[a] = sampled[a][k] - best < score[a] ? sampled[a][k] - best : score[a];
        }
        mark_greatest(score, tolerance, arms, out->marked, 0);
    }
#elif RULE_FIXED
    if (RULE_ARM >= arms)
        return 0;
    for (a = 0; a < arms; a++)
        out->marked[a] = a == RULE_ARM;
#else /* random */
    for (a = 0; a < arms; a++)
        out->marked[a] = 1;
#endif
    return 1;
}

/* Decide about the first `arms` rows of psi; return 0 if that is not possible. */
static int decide(struct learner *s, double psi[][FEATURES], int arms, struct decision *out)
{
    int a, count = 0, skip;
    for (a = 0; a < arms; a++)
        if (!feature_allowed(psi[a]))
            return 0;
    out->arms = arms;
    compute_indices(s, psi, out);
    if (!mark_candidates(s, out))
        return 0;
    for (a = 0; a < arms; a++)
        count += out->marked[a];
    skip = count > 1 ? (int)(uniform(s->rng) * D(count)) : 0;
    out->arm = 0;
    for (a = 0; a < arms; a++)
        if (out->marked[a]) {
            out->arm = a;
            if (skip-- == 0)
                break;
        }
    s->decisions++;
    s->bound_sum += out->loss[out->arm] + D(2) * out->radius * out->width[out->arm];
    return 1;
}
