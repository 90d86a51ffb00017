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
    if (!all_finite(feedback, OBJECTIVES)) {
        stage->spoiled = 1;
        s->counters.refused++;
        return BLEND_REFUSED;
    }
    for (k = 0; k < OBJECTIVES; k++)
        stage->feedback[k] += D(feedback[k]) * STEP_DISCOUNT(stage->steps - 1);
#if HAS_BUDGET
    if (!stage->retired)
        s->spent -= feedback[COST_OBJECTIVE];
#endif
#if HAS_GUARD
    for (k = 0; k < OBJECTIVES; k++)
        s->guard.total[k] = (s->guard.seen ? s->guard.total[k] : 0.0) + feedback[k];
    s->guard.seen = 1;
#endif
#if BLEND_LEARNS
    if (stage->closed && learn(s) && !stage->retired)
        return BLEND_LEARNED;
#endif
    return BLEND_COUNTED;
}

void blend_end_episode(blend_state *s)
{
    if (s->stage.begun && !s->stage.retired)
        retire(s);
#if HAS_BUDGET
    if (COST_BUDGET > 0) {
        const double excess = s->spent / D(COST_BUDGET) - D(1);
        s->aim = limit(s->aim * exp(D(-AIM_RATE) * (excess < D(1) ? excess : D(1))), D(LOWEST_AIM), D(1));
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
    s->counters.episodes++;
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

void blend_count(const blend_state *s, blend_counters *out)
{
    int a;
    *out = s->counters;
    out->steps = s->step;
    for (a = 0; a < ARMS; a++)
        out->failures[a] = s->bench[a].failures;
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
