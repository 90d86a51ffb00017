/* Learning: rotate the row (psi, feedback) into [U Q]. */

static void rotate(struct learner *s, double *x, int start)
{
    int i, j;
    for (i = start; i < FEATURES; i++) {
        double *row = s->root[i];
        double length, c, sine;
        if (x[i] == D(0))
            continue;
        length = sqrt(row[i] * row[i] + x[i] * x[i]);
        c = row[i] / length;
        sine = x[i] / length;
        row[i] = length;
        for (j = i + 1; j < STRIDE; j++) {
            const double old = row[j];
            row[j] = c * old + sine * x[j];
            x[j] = c * x[j] - sine * old;
        }
    }
}

#if FORGETS
/* Discount [U Q] and top up the prior of one coordinate, each in its turn. */
static void forget(struct learner *s)
{
    const double shrink = sqrt(D(DISCOUNT));
    const int turn = (int)(s->updates % FEATURES);
    const int age = s->updates < FEATURES ? turn + 1 : FEATURES;
    double x[STRIDE];
    int i, j;
    for (i = 0; i < FEATURES; i++)
        for (j = 0; j < STRIDE; j++)
            s->root[i][j] *= shrink;
    for (j = 0; j < STRIDE; j++)
        x[j] = D(0);
    x[turn] = sqrt(D(REGULARIZATION) * (D(1) - pow(D(DISCOUNT), D(age))));
    rotate(s, x, turn);
}
#endif

/* Learn from a feature vector and its feedback (unscaled); return 0 if they are not allowed. */
static int update(struct learner *s, const double *psi, const double *feedback)
{
    double x[STRIDE], factor;
    int j, k;
    if (!feature_allowed(psi))
        return 0;
    for (k = 0; k < OBJECTIVES; k++)
        if (!(fabs(feedback[k]) <= D(LARGEST_FEEDBACK)))
            return 0;
#if FORGETS
    forget(s);
#endif
    factor = scale_of(s, psi);
    for (j = 0; j < FEATURES; j++)
        x[j] = psi[j] * factor;
    for (k = 0; k < OBJECTIVES; k++) {
        x[FEATURES + k] = feedback[k] / objective_scales[k];
        s->feedback[k] += x[FEATURES + k];
    }
    rotate(s, x, 0);
    s->updates++;
#if !FORGETS && !PAPER_RADIUS
    {
        double total = D(0), product = D(1);
        for (j = 0; j < FEATURES; j++) {
            product *= s->root[j][j];
            if (product > D(LARGEST_PRODUCT)) {
                total += log(product);
                product = D(1);
            }
        }
        s->log_det = D(2) * (total + log(product)) - D(LOG_PRIOR);
    }
#endif
    return 1;
}
