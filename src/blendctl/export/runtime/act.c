/* One control step: ask, decide, act. It follows Blender.act. */

enum cause { CAUSE_NONE, CAUSE_FIRST, CAUSE_RULE, CAUSE_ALONE, CAUSE_DWELL, CAUSE_FALLBACK, CAUSE_NO_CONTEXT,
    CAUSE_NO_DECISION, CAUSE_SAFE_ACTION, CAUSE_GUARD };

/* Ask a controller; bench it and return 0 if its action is not finite. */
static int ask(struct blend_state *s, struct work *w, int arm, const double *observation)
{
    propose(s, w, arm, observation, s->proposals[arm]);
    if (all_finite(s->proposals[arm], BLEND_ACTION_SIZE))
        return 1;
    {
        struct bench *b = s->bench + arm;
        const int clean = b->back_off == 0 || s->step >= b->until + b->back_off;
        const int64_t longer = b->back_off * BENCH_GROWTH;
        b->back_off = clean ? BENCH_FIRST : longer < BENCH_LONGEST ? longer : BENCH_LONGEST;
        b->until = s->step + 1 + b->back_off;
        b->failed_at = s->step;
        b->failures++;
    }
    return 0;
}

/* Return the row of the decision that is about an arm, -1 for none. */
static int row_of(const struct blend_state *s, int arm)
{
    int i;
    for (i = 0; i < s->decision.arms; i++)
        if (s->decided[i] == arm)
            return i;
    return -1;
}

/* Update the learner, unless it is frozen, with the present stage if all its feedback is known and its arm has a context;
   compare the feedback with its estimate. */
static int learn(struct blend_state *s)
{
    struct stage *stage = &s->stage;
    if (stage->spoiled || stage->learned || stage->arm < 0 || stage->bootstrapped != BOOTSTRAPS)
        return 0;
    if (!stage->has_context || !stage->closed || stage->seen != stage->steps)
        return 0;
#if BLEND_LEARNS
    if (!update(&s->learner, stage->psi, stage->feedback)) {
        stage->spoiled = 1;
        s->status.refused++;
        return 0;
    }
    stage->learned = 1;
    s->status.learned++;
#endif
#if !BOOTSTRAPS
    {
        const int row = row_of(s, stage->arm);
        if (row >= 0)
            compare(&s->monitor, &s->decision, row, stage->feedback);
    }
#endif
#if TEACHES
    teach(s, stage->observation, stage->action, stage->feedback);
#endif
    return BLEND_LEARNS;
}

static void retire(struct blend_state *s)
{
    if (!s->stage.closed) {
        s->stage.closed = 1;
        s->holding = 0;
        learn(s);
    }
    s->stage.retired = 1;
}

/* End the present stage before another begins. One that a failure cut short is never learned from. */
static void cut(struct blend_state *s, struct work *w, const double *observation)
{
    struct stage *stage = &s->stage;
    if (!stage->begun || stage->retired)
        return;
    stage->spoiled = stage->spoiled || !stage->closed;
#if HAS_PATHS
    /* Python notices the observation after a whole stage, whether it learns or not. */
    if (observation && stage->closed && stage->seen == stage->steps && stage->fed)
        notice_at(s, w, observation, s->episode_steps);
#endif
#if BOOTSTRAPS && BLEND_LEARNS
    if (observation && stage->closed && stage->seen == stage->steps) {
        foresee_at(s, w, observation);
        lookahead_target(&w->foresight, s->weight, stage->feedback);
        stage->bootstrapped = 1;
        learn(s);
    }
#else
    (void)w;
    (void)observation;
#endif
    retire(s);
}

static int first_usable(const int *usable)
{
    int i;
    for (i = 0; i < ARMS; i++)
        if (usable[fallback_order[i]])
            return fallback_order[i];
    return -1;
}

/* Choose among the arms that have an action and a context; return the arm and the cause. */
static int choose(struct blend_state *s, int *cause)
{
    int *usable = s->usable;
    const int first = first_usable(usable);
    double rows[ARMS][FEATURES];
    int arms[ARMS], count = 0, a, j;
    double (*basis)[FEATURES] = s->psi;
#if PREVIOUS_CONTEXT
    double before[ARMS][FEATURES];
    int asked = 0, had[ARMS], both[ARMS];
    for (a = 0; a < ARMS; a++) {
        had[a] = s->earlier_usable[a];
        for (j = 0; j < FEATURES; j++) {
            before[a][j] = s->earlier[a][j];
            s->earlier[a][j] = s->psi[a][j];
        }
        s->earlier_usable[a] = usable[a];
        asked += usable[a];
        both[a] = usable[a] && had[a];
        count += both[a];
    }
    if (!count) {
        int skip = (int)(uniform(s->first_rng) * D(asked));
        for (a = 0; a < ARMS; a++)
            if (usable[a] && skip-- == 0)
                break;
        *cause = CAUSE_FIRST;
        return a;
    }
    usable = both;
    basis = before;
    count = 0;
#endif
    for (a = 0; a < ARMS; a++)
        if (usable[a]) {
            for (j = 0; j < FEATURES; j++)
                rows[count][j] = basis[a][j];
            arms[count++] = a;
        }
    if (!decide(&s->learner, rows, count, &s->decision)) {
        *cause = CAUSE_NO_DECISION;
        s->decision.arms = 0;
        return first;
    }
    for (a = 0; a < count; a++)
        s->decided[a] = arms[a];
    *cause = count == 1 && ARMS > 1 ? CAUSE_ALONE : CAUSE_RULE;
    s->picked = arms[s->decision.arm];
    return s->picked;
}

/* Find an arm without a decision: in the fallback order, benched arms last. */
static int without_context(struct blend_state *s, struct work *w, int *proposed, const double *observation, int *cause)
{
    int i;
    for (i = 0; i < ARMS; i++)
        if (proposed[fallback_order[i]]) {
            *cause = CAUSE_NO_CONTEXT;
            return fallback_order[i];
        }
    for (i = 0; observation && i < ARMS; i++) {
        const int arm = fallback_order[i];
        struct bench *b = s->bench + arm;
        if (b->failed_at < s->step && ask(s, w, arm, observation)) {
            b->until = b->until < s->step ? b->until : s->step;
            proposed[arm] = 1;
            *cause = CAUSE_FALLBACK;
            return arm;
        }
    }
    *cause = CAUSE_SAFE_ACTION;
    return -1;
}

static void begin_stage(struct blend_state *s, int arm, const double *observation, const double *action)
{
    struct stage *stage = &s->stage;
    int j;
    s->episode_steps++;
    s->holding = BLEND_HOLD > 1 && arm >= 0;
    stage->begun = 1;
    stage->arm = arm;
    stage->first_step = s->step;
    stage->steps = 1;
    stage->seen = 0;
    stage->observed_at = 0;
    stage->closed = !s->holding;
    stage->bootstrapped = stage->learned = stage->spoiled = stage->retired = 0;
#if HAS_PATHS
    stage->fed = 0;
#endif
    stage->has_context = arm >= 0 && s->usable[arm];
    for (j = 0; j < FEATURES; j++)
        stage->psi[j] = stage->has_context ? s->psi[arm][j] : D(0);
    for (j = 0; j < OBJECTIVES; j++)
        stage->feedback[j] = D(0);
#if TEACHES
    for (j = 0; observation && j < BLEND_OBSERVATION_SIZE; j++)
        stage->observation[j] = observation[j];
    for (j = 0; j < BLEND_ACTION_SIZE; j++)
        stage->action[j] = action[j];
#else
    (void)observation;
    (void)action;
#endif
}

/* Write what an arm wants to the action; after a switch the action moves there in steps. */
static void emit(struct blend_state *s, int arm, const double *wanted, double *action)
{
    int j;
    for (j = 0; j < BLEND_ACTION_SIZE; j++)
        action[j] = wanted[j];
#if HAS_HANDOVER
    if (s->acted && arm != s->last_arm) {
        s->handing_over = 1;
        s->handover_steps = 0;
        for (j = 0; j < BLEND_ACTION_SIZE; j++)
            s->start_action[j] = s->last_action[j];
    }
    s->last_arm = arm;
    if (arm < 0 || !s->acted)
        s->handing_over = 0;
    if (s->handing_over) {
        s->handover_steps++;
#if FADE_STEPS
        if (s->handover_steps >= FADE_STEPS)
            s->handing_over = 0;
        for (j = 0; s->handing_over && j < BLEND_ACTION_SIZE; j++)
            action[j] = s->start_action[j] + D(s->handover_steps) / D(FADE_STEPS) * (wanted[j] - s->start_action[j]);
#else
        s->handing_over = 0;
        for (j = 0; j < BLEND_ACTION_SIZE; j++)
            s->handing_over = s->handing_over || !(fabs(wanted[j] - s->last_action[j]) <= slew_limits[j]);
        for (j = 0; s->handing_over && j < BLEND_ACTION_SIZE; j++)
            action[j] = s->last_action[j] + limit(wanted[j] - s->last_action[j], -slew_limits[j], slew_limits[j]);
#endif
    }
    s->acted = 1;
    for (j = 0; j < BLEND_ACTION_SIZE; j++)
        s->last_action[j] = action[j];
#else
    (void)s;
    (void)arm;
#endif
}

int blend_act(blend_state *s, const double observation[BLEND_AT_LEAST(BLEND_OBSERVATION_SIZE)],
    double action[BLEND_AT_LEAST(BLEND_ACTION_SIZE)])
{
    struct work w;
    int proposed[ARMS], decided[ARMS], any = 0, arm, cause, a;
    const int finite = all_finite(observation, BLEND_OBSERVATION_SIZE);
    const int driver = s->stage.begun ? s->stage.arm : -1;
    start_work(&w);
    s->step++;
    if (finite && s->holding && ask(s, &w, driver, observation)) {
        s->stage.steps++;
        s->episode_steps++;
        s->stage.closed = s->stage.steps == BLEND_HOLD;
        s->holding = !s->stage.closed;
        emit(s, driver, s->proposals[driver], action);
        return driver;
    }
    cut(s, &w, finite ? observation : NULL);
#if HAS_BUDGET
    set_weight(s, &w);
#endif
    s->picked = -1;
    s->decision.arms = 0;
    for (a = 0; a < ARMS; a++) {
        proposed[a] = finite && s->step >= s->bench[a].until && ask(s, &w, a, observation);
        s->usable[a] = 0;
    }
    if (finite) {
        compute_psi(s, &w, observation, proposed);
        for (a = 0; a < ARMS; a++) {
            s->usable[a] = proposed[a] && all_finite(s->psi[a], FEATURES);
            any = any || s->usable[a];
        }
    }
    if (any) {
        arm = choose(s, &cause);
        for (a = 0; a < ARMS; a++)
            decided[a] = row_of(s, a) >= 0;
        if (arm != driver && driver >= 0 && s->picked >= 0) {
            if (!proposed[driver]) {
                arm = first_usable(decided);
                cause = CAUSE_FALLBACK;
            }
#if BLEND_DWELL > 1
            else if (s->driven < BLEND_DWELL && decided[driver]) {
                arm = driver;
                cause = CAUSE_DWELL;
            }
#endif
        }
#if HAS_GUARD
        if (s->picked >= 0 && s->guard.arm >= 0 && decided[s->guard.arm]) {
            arm = s->guard.arm;
            cause = CAUSE_GUARD;
        }
#endif
    } else
        arm = without_context(s, &w, proposed, finite ? observation : NULL, &cause);
    s->cause = cause;
    if (arm < 0) {
        s->status.safe_actions++;
#if !HAS_SAFE_ACTION
        for (a = 0; a < BLEND_ACTION_SIZE; a++)
            action[a] = safe_action[a];
        return -1; /* Python raises an error here and stays as it was */
#endif
    }
    s->status.stages++;
    s->status.switches += arm != driver && s->status.stages > 1;
    s->driven = arm == driver ? s->driven + 1 : 1;
    if (arm >= 0)
        s->status.driven[arm]++;
    emit(s, arm, arm >= 0 ? s->proposals[arm] : safe_action, action);
    begin_stage(s, arm, finite ? observation : NULL, action);
    return arm;
}
