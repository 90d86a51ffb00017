/* The learner: U with V = U'U and Q = U'^-1 W, updated by Givens rotations; decisions by optimistic indices. */

#define FEATURES BLEND_FEATURES
#define OBJECTIVES BLEND_OBJECTIVES
#define ARMS BLEND_ARMS
#define STRIDE (FEATURES + OBJECTIVES)
#define LENGTH_SLACK D(1.0 + 1e-6)

struct learner {
    uint64_t rng[4];
    int64_t updates, decisions, rescaled;
    double log_det, bound_sum;
    double feedback[OBJECTIVES]; /* sums, scaled */
    double root[FEATURES][STRIDE]; /* [U Q] */
};

/* A decision about the first `arms` rows. */
struct decision {
    int arms, arm;
    double radius;
    double width[ARMS], loss[ARMS];
    double estimate[ARMS][OBJECTIVES], ucb[ARMS][OBJECTIVES];
    double whitened[ARMS][FEATURES];
    int marked[ARMS];
};

static double radius_of(const struct learner *s)
{
    const double prior = sqrt(D(REGULARIZATION)) * D(THETA_BOUND);
#if FORGETS
    const double square = D(DISCOUNT) * D(DISCOUNT);
    const double weight = (D(1) - pow(square, D(s->updates))) / (D(1) - square);
    const double least = D(REGULARIZATION) * pow(D(DISCOUNT), D(FEATURES - 1));
    const double growth = D(FEATURES) * log(D(1) + D(FEATURE_BOUND) * D(FEATURE_BOUND) * weight / (least * D(FEATURES)));
    return D(NOISE) * sqrt(growth - D(2) * log(D(DELTA))) + prior;
#elif PAPER_RADIUS
    const double t = D(s->updates);
    const double growth = (D(1) + t * D(FEATURE_BOUND) * D(FEATURE_BOUND) / D(REGULARIZATION)) / D(DELTA);
    return D(NOISE) * sqrt(D(FEATURES) * log(growth)) + prior;
#else
    return D(NOISE) * sqrt(s->log_det - D(2) * log(D(DELTA))) + prior;
#endif
}

/* Return whether a feature vector is finite and, unless it is rescaled, no longer than allowed. */
static int feature_allowed(const double *psi)
{
    const double limit = D(FEATURE_BOUND) * LENGTH_SLACK;
    double square = D(0);
    int j;
    for (j = 0; j < FEATURES; j++)
        square += psi[j] * psi[j];
    if (square <= limit * limit)
        return 1;
    return RESCALES && all_finite(psi, FEATURES);
}

static double scale_of(struct learner *s, const double *psi)
{
#if RESCALES
    double largest = D(0), square = D(0), factor;
    int j;
    for (j = 0; j < FEATURES; j++)
        largest = fabs(psi[j]) > largest ? fabs(psi[j]) : largest;
    if (largest == D(0))
        return D(1);
    for (j = 0; j < FEATURES; j++)
        square += (psi[j] / largest) * (psi[j] / largest);
    factor = D(FEATURE_BOUND) / largest / sqrt(square);
    if (factor * LENGTH_SLACK >= D(1))
        return D(1);
    s->rescaled++;
    return factor;
#else
    (void)s;
    (void)psi;
    return D(1);
#endif
}

/* Compute widths, estimates, optimistic indices and losses. */
static void compute_indices(struct learner *s, double psi[][FEATURES], struct decision *out)
{
    const int arms = out->arms;
    int a, j, i, k;
    out->radius = radius_of(s);
    for (a = 0; a < arms; a++) {
        double *z = out->whitened[a], square = D(0);
        const double factor = scale_of(s, psi[a]);
        for (j = 0; j < FEATURES; j++)
            z[j] = psi[a][j] * factor;
        for (j = 0; j < FEATURES; j++) {
            z[j] /= s->root[j][j];
            for (i = j + 1; i < FEATURES; i++)
                z[i] -= z[j] * s->root[j][i];
        }
        for (j = 0; j < FEATURES; j++)
            square += z[j] * z[j];
        out->width[a] = sqrt(square);
        out->loss[a] = D(0);
        for (k = 0; k < OBJECTIVES; k++) {
            double product = D(0);
            for (j = 0; j < FEATURES; j++)
                product += z[j] * s->root[j][FEATURES + k];
            out->estimate[a][k] = product;
            out->ucb[a][k] = product + out->radius * out->width[a];
        }
    }
    for (k = 0; k < OBJECTIVES; k++) {
        double best = out->ucb[0][k];
        for (a = 1; a < arms; a++)
            best = out->ucb[a][k] > best ? out->ucb[a][k] : best;
        for (a = 0; a < arms; a++)
            out->loss[a] = best - out->ucb[a][k] > out->loss[a] ? best - out->ucb[a][k] : out->loss[a];
    }
}

/* Indices closer than this are equal. */
MAYBE_UNUSED static double tolerance_of(const struct decision *out)
{
    double largest = D(0);
    int a, k;
    for (a = 0; a < out->arms; a++)
        for (k = 0; k < OBJECTIVES; k++)
            largest = fabs(out->ucb[a][k]) > largest ? fabs(out->ucb[a][k]) : largest;
    return D(TIE) * largest;
}
