/* An exported blend as an FMI 3.0 co-simulation FMU; `make_fmu.py` compiles it with blend.c.

   At a communication point the importer sets the observation, the feedback of the last step and whether that step ended
   an episode; fmi3DoStep learns from the feedback and writes the action, which drives the plant over the same step. The
   declarations are those of the FMI 3.0 standard. */

#include "blend.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

#if defined(FMI3_HEADERS) /* the standard's own header: the compiler then compares every declaration */
#include "fmi3Functions.h"
#else
typedef void *fmi3Instance, *fmi3InstanceEnvironment, *fmi3FMUState;
typedef uint32_t fmi3ValueReference;
typedef double fmi3Float64;
typedef bool fmi3Boolean, fmi3Clock;
typedef const char *fmi3String;
typedef const uint8_t *fmi3Binary;
typedef uint8_t fmi3Byte;
typedef enum { fmi3OK, fmi3Warning, fmi3Discard, fmi3Error, fmi3Fatal } fmi3Status;
typedef enum { fmi3Independent, fmi3Constant, fmi3Fixed, fmi3Tunable, fmi3Discrete, fmi3Dependent } fmi3DependencyKind;
typedef enum { fmi3IntervalNotYetKnown, fmi3IntervalUnchanged, fmi3IntervalChanged } fmi3IntervalQualifier;
typedef void (*fmi3LogMessageCallback)(fmi3InstanceEnvironment, fmi3Status, fmi3String category, fmi3String message);
typedef void (*fmi3IntermediateUpdateCallback)(fmi3InstanceEnvironment, fmi3Float64, fmi3Boolean, fmi3Boolean, fmi3Boolean,
    fmi3Boolean, fmi3Boolean *, fmi3Float64 *);
typedef void (*fmi3ClockUpdateCallback)(fmi3InstanceEnvironment);
typedef void (*fmi3LockPreemptionCallback)(void);
#endif

/* Value references, in the order of modelDescription.xml. */
enum {
    TIME,
    OBSERVATION,
    FEEDBACK = OBSERVATION + BLEND_OBSERVATION_SIZE,
    ACTION = FEEDBACK + BLEND_OBJECTIVES,
    ENDED = ACTION + BLEND_ACTION_SIZE,
    ARM,
    SWITCHES,
    DRIFT_ALARM
};

/* Everything that a step changes. */
struct data {
    blend_memory memory;
    double numbers[ENDED]; /* time, observation, feedback, action */
    bool ended, acted;
    int32_t arm;
};

struct instance {
    struct data data;
    fmi3InstanceEnvironment environment;
    fmi3LogMessageCallback log;
};

static blend_state *state_of(struct instance *i)
{
    return (blend_state *)&i->data.memory;
}

static fmi3Status fail(struct instance *i, const char *message)
{
    if (i->log)
        i->log(i->environment, fmi3Error, "logStatusError", message);
    return fmi3Error;
}

static void start(struct instance *i)
{
    memset(&i->data, 0, sizeof i->data);
    i->data.arm = -1;
    blend_init(state_of(i));
}

EXPORTED const char *fmi3GetVersion(void)
{
    return "3.0";
}

EXPORTED fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resources,
    fmi3Boolean visible, fmi3Boolean logging, fmi3Boolean event_mode, fmi3Boolean early_return,
    const fmi3ValueReference required[], size_t n_required, fmi3InstanceEnvironment environment,
    fmi3LogMessageCallback log, fmi3IntermediateUpdateCallback update)
{
    struct instance *i = calloc(1, sizeof *i);
    (void)name, (void)resources, (void)visible, (void)logging, (void)early_return, (void)required, (void)n_required,
        (void)update;
    if (!i)
        return NULL;
    i->environment = environment;
    i->log = log;
    if (event_mode || strcmp(token, blend_digest()) != 0 || blend_selfcheck() != 0) {
        fail(i, event_mode ? "there is no event mode"
                : strcmp(token, blend_digest()) != 0 ? "the token is not the digest of the contract"
                                                     : "the golden vectors are not reproduced on this machine");
        free(i);
        return NULL;
    }
    start(i);
    return i;
}

EXPORTED fmi3Instance fmi3InstantiateModelExchange(fmi3String name, fmi3String token, fmi3String resources,
    fmi3Boolean visible, fmi3Boolean logging, fmi3InstanceEnvironment environment, fmi3LogMessageCallback log)
{
    (void)name, (void)token, (void)resources, (void)visible, (void)logging, (void)environment, (void)log;
    return NULL;
}

EXPORTED fmi3Instance fmi3InstantiateScheduledExecution(fmi3String name, fmi3String token, fmi3String resources,
    fmi3Boolean visible, fmi3Boolean logging, fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
    fmi3ClockUpdateCallback update, fmi3LockPreemptionCallback lock, fmi3LockPreemptionCallback unlock)
{
    (void)name, (void)token, (void)resources, (void)visible, (void)logging, (void)environment, (void)log, (void)update,
        (void)lock, (void)unlock;
    return NULL;
}

EXPORTED void fmi3FreeInstance(fmi3Instance instance)
{
    free(instance);
}

EXPORTED fmi3Status fmi3Reset(fmi3Instance instance)
{
    start(instance);
    return fmi3OK;
}

EXPORTED fmi3Status fmi3EnterInitializationMode(fmi3Instance instance, fmi3Boolean tolerance_defined,
    fmi3Float64 tolerance, fmi3Float64 start_time, fmi3Boolean stop_defined, fmi3Float64 stop_time)
{
    (void)tolerance_defined, (void)tolerance, (void)stop_defined, (void)stop_time;
    ((struct instance *)instance)->data.numbers[TIME] = start_time;
    return fmi3OK;
}

EXPORTED fmi3Status fmi3DoStep(fmi3Instance instance, fmi3Float64 at, fmi3Float64 step, fmi3Boolean no_earlier_state,
    fmi3Boolean *event_needed, fmi3Boolean *terminate, fmi3Boolean *early_return, fmi3Float64 *last_time)
{
    struct instance *i = instance;
    struct data *d = &i->data;
    (void)no_earlier_state;
    *event_needed = *terminate = *early_return = false;
    *last_time = at;
    if (!(fabs(step - FMU_PERIOD) <= 1e-6 * FMU_PERIOD))
        return fail(i, "the step must be the control period, see fixedInternalStepSize");
    if (d->acted)
        blend_observe(state_of(i), d->numbers + FEEDBACK);
    if (d->acted && d->ended)
        blend_end_episode(state_of(i));
    d->arm = blend_act(state_of(i), d->numbers + OBSERVATION, d->numbers + ACTION);
    d->acted = true;
    *last_time = d->numbers[TIME] = at + step;
    return fmi3OK;
}

EXPORTED fmi3Status fmi3GetFloat64(
    fmi3Instance instance, const fmi3ValueReference vr[], size_t n, fmi3Float64 values[], size_t n_values)
{
    struct instance *i = instance;
    size_t k;
    for (k = 0; k < n; k++) {
        if (vr[k] >= ENDED || n != n_values)
            return fail(i, "no such variable of type Float64");
        values[k] = i->data.numbers[vr[k]];
    }
    return fmi3OK;
}

EXPORTED fmi3Status fmi3SetFloat64(
    fmi3Instance instance, const fmi3ValueReference vr[], size_t n, const fmi3Float64 values[], size_t n_values)
{
    struct instance *i = instance;
    size_t k;
    for (k = 0; k < n; k++) {
        if (vr[k] < OBSERVATION || vr[k] >= ACTION || n != n_values)
            return fail(i, "no such input of type Float64");
        i->data.numbers[vr[k]] = values[k];
    }
    return fmi3OK;
}

EXPORTED fmi3Status fmi3GetInt32(
    fmi3Instance instance, const fmi3ValueReference vr[], size_t n, int32_t values[], size_t n_values)
{
    struct instance *i = instance;
    size_t k;
    for (k = 0; k < n; k++) {
        if (vr[k] != ARM || n != n_values)
            return fail(i, "no such variable of type Int32");
        values[k] = i->data.arm;
    }
    return fmi3OK;
}

EXPORTED fmi3Status fmi3GetInt64(
    fmi3Instance instance, const fmi3ValueReference vr[], size_t n, int64_t values[], size_t n_values)
{
    struct instance *i = instance;
    blend_status_t status;
    size_t k;
    blend_status(state_of(i), &status);
    for (k = 0; k < n; k++) {
        if (vr[k] != SWITCHES || n != n_values)
            return fail(i, "no such variable of type Int64");
        values[k] = status.switches;
    }
    return fmi3OK;
}

EXPORTED fmi3Status fmi3GetBoolean(
    fmi3Instance instance, const fmi3ValueReference vr[], size_t n, fmi3Boolean values[], size_t n_values)
{
    struct instance *i = instance;
    blend_status_t status;
    size_t k;
    blend_status(state_of(i), &status);
    for (k = 0; k < n; k++) {
        if ((vr[k] != ENDED && vr[k] != DRIFT_ALARM) || n != n_values)
            return fail(i, "no such variable of type Boolean");
        values[k] = vr[k] == ENDED ? i->data.ended : status.alarm != 0;
    }
    return fmi3OK;
}

EXPORTED fmi3Status fmi3SetBoolean(
    fmi3Instance instance, const fmi3ValueReference vr[], size_t n, const fmi3Boolean values[], size_t n_values)
{
    struct instance *i = instance;
    size_t k;
    for (k = 0; k < n; k++) {
        if (vr[k] != ENDED || n != n_values)
            return fail(i, "no such input of type Boolean");
        i->data.ended = values[k];
    }
    return fmi3OK;
}

/* Copies of the whole state: a robot's future can be simulated from any point. */
EXPORTED fmi3Status fmi3GetFMUState(fmi3Instance instance, fmi3FMUState *state)
{
    struct instance *i = instance;
    if (!*state && !(*state = malloc(sizeof i->data)))
        return fail(i, "no memory for the state");
    memcpy(*state, &i->data, sizeof i->data);
    return fmi3OK;
}

EXPORTED fmi3Status fmi3SetFMUState(fmi3Instance instance, fmi3FMUState state)
{
    memcpy(&((struct instance *)instance)->data, state, sizeof(struct data));
    return fmi3OK;
}

EXPORTED fmi3Status fmi3FreeFMUState(fmi3Instance instance, fmi3FMUState *state)
{
    (void)instance;
    free(*state);
    *state = NULL;
    return fmi3OK;
}

/* What this FMU does not have: other interfaces and modes, other types, clocks, derivatives. Importers look for every
   function all the same. */
#define NOTHING_TO_DO(name) \
    EXPORTED fmi3Status name(fmi3Instance instance) \
    { \
        (void)instance; \
        return fmi3OK; \
    }
#define NO_MODE(name) \
    EXPORTED fmi3Status name(fmi3Instance instance) \
    { \
        return fail(instance, #name " is not supported"); \
    }
#define MISSING(name, ...) \
    EXPORTED fmi3Status name(fmi3Instance instance, __VA_ARGS__) \
    { \
        return fail(instance, #name " is not supported"); \
    }
#define VALUES(qualifier, type) \
    const fmi3ValueReference vr[], size_t n, qualifier type values[], size_t n_values
#define NO_VARIABLES(name, qualifier, type) \
    EXPORTED fmi3Status name(fmi3Instance instance, VALUES(qualifier, type)) \
    { \
        (void)vr, (void)values, (void)n_values; \
        return n ? fail(instance, #name ": no such variable") : fmi3OK; \
    }
#define NO_TYPE(name, type) \
    NO_VARIABLES(fmi3Get##name, , type) \
    NO_VARIABLES(fmi3Set##name, const, type)

NOTHING_TO_DO(fmi3ExitInitializationMode)
NOTHING_TO_DO(fmi3Terminate)
NOTHING_TO_DO(fmi3EnterStepMode)
NO_TYPE(Float32, float)
NO_TYPE(Int8, int8_t)
NO_TYPE(UInt8, uint8_t)
NO_TYPE(Int16, int16_t)
NO_TYPE(UInt16, uint16_t)
NO_TYPE(UInt32, uint32_t)
NO_TYPE(UInt64, uint64_t)
NO_TYPE(String, fmi3String)
NO_VARIABLES(fmi3SetInt32, const, int32_t)
NO_VARIABLES(fmi3SetInt64, const, int64_t)

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
EXPORTED fmi3Status fmi3SetDebugLogging(fmi3Instance instance, fmi3Boolean on, size_t n, const fmi3String categories[])
{
    return fmi3OK;
}
NO_MODE(fmi3EnterEventMode)
NO_MODE(fmi3EnterContinuousTimeMode)
NO_MODE(fmi3EnterConfigurationMode)
NO_MODE(fmi3ExitConfigurationMode)
NO_MODE(fmi3EvaluateDiscreteStates)
MISSING(fmi3GetBinary, const fmi3ValueReference vr[], size_t n, size_t sizes[], fmi3Binary values[], size_t n_values)
MISSING(fmi3SetBinary, const fmi3ValueReference vr[], size_t n, const size_t sizes[], const fmi3Binary values[],
    size_t n_values)
MISSING(fmi3GetClock, const fmi3ValueReference vr[], size_t n, fmi3Clock values[])
MISSING(fmi3SetClock, const fmi3ValueReference vr[], size_t n, const fmi3Clock values[])
MISSING(fmi3GetNumberOfVariableDependencies, fmi3ValueReference vr, size_t *n)
MISSING(fmi3GetVariableDependencies, fmi3ValueReference vr, size_t elements[], fmi3ValueReference independents[],
    size_t independent_elements[], fmi3DependencyKind kinds[], size_t n)
MISSING(fmi3SerializedFMUStateSize, fmi3FMUState state, size_t *size)
MISSING(fmi3SerializeFMUState, fmi3FMUState state, fmi3Byte bytes[], size_t size)
MISSING(fmi3DeserializeFMUState, const fmi3Byte bytes[], size_t size, fmi3FMUState *state)
MISSING(fmi3GetDirectionalDerivative, const fmi3ValueReference unknowns[], size_t n_unknowns,
    const fmi3ValueReference knowns[], size_t n_knowns, const fmi3Float64 seed[], size_t n_seed,
    fmi3Float64 sensitivity[], size_t n_sensitivity)
MISSING(fmi3GetAdjointDerivative, const fmi3ValueReference unknowns[], size_t n_unknowns,
    const fmi3ValueReference knowns[], size_t n_knowns, const fmi3Float64 seed[], size_t n_seed,
    fmi3Float64 sensitivity[], size_t n_sensitivity)
MISSING(fmi3GetIntervalDecimal, const fmi3ValueReference vr[], size_t n, fmi3Float64 intervals[],
    fmi3IntervalQualifier qualifiers[])
MISSING(fmi3GetIntervalFraction, const fmi3ValueReference vr[], size_t n, uint64_t counters[], uint64_t resolutions[],
    fmi3IntervalQualifier qualifiers[])
MISSING(fmi3GetShiftDecimal, const fmi3ValueReference vr[], size_t n, fmi3Float64 shifts[])
MISSING(fmi3GetShiftFraction, const fmi3ValueReference vr[], size_t n, uint64_t counters[], uint64_t resolutions[])
MISSING(fmi3SetIntervalDecimal, const fmi3ValueReference vr[], size_t n, const fmi3Float64 intervals[])
MISSING(fmi3SetIntervalFraction, const fmi3ValueReference vr[], size_t n, const uint64_t counters[],
    const uint64_t resolutions[])
MISSING(fmi3SetShiftDecimal, const fmi3ValueReference vr[], size_t n, const fmi3Float64 shifts[])
MISSING(fmi3SetShiftFraction, const fmi3ValueReference vr[], size_t n, const uint64_t counters[],
    const uint64_t resolutions[])
MISSING(fmi3UpdateDiscreteStates, fmi3Boolean *update_needed, fmi3Boolean *terminate, fmi3Boolean *nominals_changed,
    fmi3Boolean *values_changed, fmi3Boolean *next_event_defined, fmi3Float64 *next_event)
MISSING(fmi3GetOutputDerivatives, const fmi3ValueReference vr[], size_t n, const int32_t orders[],
    fmi3Float64 values[], size_t n_values)
MISSING(fmi3CompletedIntegratorStep, fmi3Boolean no_earlier_state, fmi3Boolean *event_mode, fmi3Boolean *terminate)
MISSING(fmi3SetTime, fmi3Float64 time)
MISSING(fmi3SetContinuousStates, const fmi3Float64 states[], size_t n)
MISSING(fmi3GetContinuousStateDerivatives, fmi3Float64 derivatives[], size_t n)
MISSING(fmi3GetEventIndicators, fmi3Float64 indicators[], size_t n)
MISSING(fmi3GetContinuousStates, fmi3Float64 states[], size_t n)
MISSING(fmi3GetNominalsOfContinuousStates, fmi3Float64 nominals[], size_t n)
MISSING(fmi3GetNumberOfEventIndicators, size_t *n)
MISSING(fmi3GetNumberOfContinuousStates, size_t *n)
MISSING(fmi3ActivateModelPartition, fmi3ValueReference clock, fmi3Float64 at)
