/* Numbers: networks are computed in float, as in Python, the learner in double. `real` is the type of all geometry:
   encodings and classical controllers. */

#if BLEND_FLOAT32
typedef float real;
#define SQRT sqrtf
#define COS cosf
#define SIN sinf
#define ATAN2 atan2f
#define FMOD fmodf
#define HYPOT hypotf
#define FABS fabsf
#else
typedef double real;
#define SQRT sqrt
#define COS cos
#define SIN sin
#define ATAN2 atan2
#define FMOD fmod
#define HYPOT hypot
#define FABS fabs
#endif
#define R(x) ((real)(x))
#define D(x) ((double)(x))
#define PI 3.141592653589793

/* Limit a number; NaN stays NaN. */
MAYBE_UNUSED static double limit(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

MAYBE_UNUSED static real clamp(real x, real low, real high)
{
    return x < low ? low : x > high ? high : x;
}

static int all_finite(const double *values, int n)
{
    int i;
    for (i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return 0;
    return 1;
}

/* Convert to float; what is too large becomes infinite. */
MAYBE_UNUSED static float narrow(double x)
{
    return x > 3.4028234663852886e38 ? HUGE_VALF : x < -3.4028234663852886e38 ? -HUGE_VALF : (float)x;
}
