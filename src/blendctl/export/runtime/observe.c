/* Feedback, episodes and what a robot may publish. */

int blend_observe(blend_state *s, const double feedback[BLEND_AT_LEAST(BLEND_OBJECTIVES)])
{
    struct stage *stage = &s->stage;
    int k;
    if (!stage->begun || stage->first_step + stage->steps <= s->step)
        return BLEND_UNKNOWN; /* the present step has no stage */
    if (stage->observed_at == s->step)
        return BLEND_DUPLICATE;
    stage->observed_at = s->step;
    stage->seen++;
#if HAS_BUDGET
    if (!stage->retired && all_finite(feedback + COST_OBJECTIVE, 1))
        s->spent -= feedback[COST_OBJECTIVE];
#endif
    if (!all_finite(feedback, OBJECTIVES)) {
        stage->spoiled = 1;
        s->status.refused++;
        return BLEND_REFUSED;
    }
    for (k = 0; k < OBJECTIVES; k++)
        stage->feedback[k] += D(feedback[k]) * STEP_DISCOUNT(stage->steps - 1);
#if HAS_PATHS
    stage->fed = 1;
#endif
#if HAS_GUARD
    for (k = 0; k < OBJECTIVES; k++)
        s->guard.total[k] = (s->guard.seen ? s->guard.total[k] : 0.0) + feedback[k];
    s->guard.seen = 1;
#endif
    if (stage->closed && learn(s) && !stage->retired)
        return BLEND_LEARNED;
    return BLEND_COUNTED;
}

void blend_end_episode(blend_state *s)
{
    if (s->stage.begun && !s->stage.retired)
        retire(s);
#if HAS_BUDGET
    if (COST_BUDGET > 0 && s->episode_steps > 0) {
        const double excess = s->spent / D(COST_BUDGET) - D(1);
        s->aim = limit(s->aim * exp(D(-AIM_RATE) * (excess < D(LARGEST_EXCESS) ? excess : D(LARGEST_EXCESS))),
                D(LOWEST_AIM), D(1));
    }
    s->spent = D(0);
#endif
#if HAS_GUARD
    guard_end_episode(&s->guard);
#endif
#if HAS_HANDOVER
    s->acted = s->handing_over = 0;
#endif
    s->episode_steps = 0;
    s->status.episodes++;
    reset_controllers(s);
}

void blend_inspect(const blend_state *s, blend_info *out)
{
    int a, j, k;
    out->arm = s->stage.begun ? s->stage.arm : -1;
    out->picked = s->picked;
    out->cause = s->cause;
    out->decided = s->decision.arms;
    out->radius = s->decision.arms ? (double)s->decision.radius : 0.0;
#if BOOTSTRAPS
    out->weight = (double)s->weight;
#else
    out->weight = 0.0;
#endif
    for (a = 0; a < ARMS; a++) {
        for (j = 0; j < FEATURES; j++)
            out->psi[a][j] = s->usable[a] ? (double)s->psi[a][j] : (double)NAN;
        for (j = 0; j < BLEND_ACTION_SIZE; j++)
            out->proposals[a][j] = s->proposals[a][j];
        out->width[a] = out->loss[a] = 0.0;
        for (k = 0; k < OBJECTIVES; k++)
            out->estimate[a][k] = out->ucb[a][k] = 0.0;
    }
    for (j = 0; j < s->decision.arms; j++) {
        a = s->decided[j];
        out->width[a] = (double)s->decision.width[j];
        out->loss[a] = (double)s->decision.loss[j];
        for (k = 0; k < OBJECTIVES; k++) {
            out->estimate[a][k] = (double)s->decision.estimate[j][k];
            out->ucb[a][k] = (double)s->decision.ucb[j][k];
        }
    }
}

void blend_record_time(blend_state *s, double seconds)
{
    struct monitor *m = &s->monitor;
    int exponent, bucket;
    double mantissa;
    if (!(seconds >= 0.0))
        return;
    mantissa = frexp(limit(seconds, ldexp(1.0, 1 - OCTAVES), 1.9), &exponent); /* in [0.5, 1) */
    bucket = (exponent + OCTAVES - 2) * PER_OCTAVE + (int)((D(2) * mantissa - D(1)) * D(PER_OCTAVE));
    m->buckets[bucket]++;
    m->timed++;
    m->longest = seconds > m->longest ? seconds : m->longest;
}

void blend_status(const blend_state *s, blend_status_t *out)
{
    const struct monitor *m = &s->monitor;
    int a, k;
    *out = s->status;
    out->steps = s->step;
    for (a = 0; a < ARMS; a++) {
        out->failures[a] = s->bench[a].failures;
        out->benched[a] = s->bench[a].until > s->step + 1 ? s->bench[a].until - s->step - 1 : 0;
    }
#if HAS_GUARD
    out->guard_arm = s->guard.arm;
#else
    out->guard_arm = -1;
#endif
    out->compared = m->compared;
    out->surprises = m->surprises;
    out->alarm = m->alarm;
    for (k = 0; k < OBJECTIVES; k++) {
        out->estimated[k] = m->compared ? m->estimated[k] / D(m->compared) * objective_scales[k] : D(0);
        out->observed[k] = m->compared ? m->observed[k] / D(m->compared) * objective_scales[k] : D(0);
    }
    out->timed = m->timed;
    out->p50 = quantile(m, 0.5);
    out->p99 = quantile(m, 0.99);
    out->p999 = quantile(m, 0.999);
    out->longest = m->longest;
}

size_t blend_state_size(void)
{
    return sizeof(blend_state);
}

const char *blend_digest(void)
{
    return BLEND_CONTRACT_DIGEST;
}

/* Replay the golden vectors; return 0 if all are reproduced, else the number of the first that is not. */
int blend_selfcheck(void)
{
    blend_state s;
    double action[BLEND_ACTION_SIZE];
    int t, j;
    blend_init(&s);
    for (t = 0; t < GOLDEN_STEPS; t++) {
        if (blend_act(&s, golden_observations[t], action) != golden_arms[t])
            return t + 1;
        for (j = 0; j < BLEND_ACTION_SIZE; j++)
            if (!(fabs(action[j] - golden_actions[t][j]) <= GOLDEN_TOLERANCE))
                return t + 1;
        blend_observe(&s, golden_feedback[t]);
    }
    return 0;
}
