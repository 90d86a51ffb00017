/* The state of a blend. It starts where the saved blend stopped. */

struct bench {
    int64_t until, back_off, failed_at, failures;
};

/* The present stage: one decision, for BLEND_HOLD control steps. */
struct stage {
    int begun, arm, closed, bootstrapped, learned, spoiled, retired, has_context;
    int steps, seen; /* control steps, and how many of them have feedback */
    int64_t first_step, observed_at;
    double psi[FEATURES], feedback[OBJECTIVES];
#if HAS_PATHS
    int fed; /* some of its feedback was finite */
#endif
#if TEACHES
    double observation[BLEND_OBSERVATION_SIZE], action[BLEND_ACTION_SIZE];
#endif
};

struct blend_state {
    int64_t step, episode_steps, driven;
    int holding, picked, cause, usable[ARMS], decided[ARMS];
    struct learner learner;
    struct decision decision;
    struct stage stage;
    struct bench bench[ARMS];
    blend_status_t status; /* its counters; blend_status fills in the rest */
    struct monitor monitor;
    double proposals[ARMS][BLEND_ACTION_SIZE];
    double psi[ARMS][FEATURES];
#if BOOTSTRAPS
    double weight, position; /* of the dial */
#endif
#if HAS_PATHS
    struct scene scene;
#endif
#if HAS_BUDGET
    double aim, spent;
#endif
#if PREVIOUS_CONTEXT
    uint64_t first_rng[4];
    double earlier[ARMS][FEATURES];
    int earlier_usable[ARMS];
#endif
#if BLEND_STOCHASTIC
    uint64_t noise[ARMS][4];
#endif
#if HAS_PID
    double integral[ARMS];
#endif
#if HAS_ONLINE
    struct online online;
#endif
#if HAS_GUARD
    struct guard guard;
#endif
#if HAS_HANDOVER
    int acted, last_arm, handing_over; /* acted: there is a last action */
    int64_t handover_steps;
    double last_action[BLEND_ACTION_SIZE], start_action[BLEND_ACTION_SIZE];
#endif
};

typedef char blend_state_fits[sizeof(struct blend_state) <= BLEND_STATE_BYTES ? 1 : -1];
