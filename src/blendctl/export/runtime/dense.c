/* Dense layers in float. Weights are stored as (inputs, outputs). The order of the sums is Python's, so that the results
   are equal to the bit; it must not be contracted to fused multiply-adds. */

/* With gcc and glibc on x86-64, select the widest vectors when the program starts; results do not change. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && defined(__OPTIMIZE__) \
    && !defined(__SANITIZE_ADDRESS__) && !defined(BLEND_NO_DISPATCH)
#define WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDEST
#endif

/* Vectorise the layers at -O2 as well. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC push_options
#pragma GCC optimize ("O3")
#endif

#if BLEND_WIDE_LAYERS
/* y += x W for the inputs from `start` to `end`, four at a time; four zeros are skipped. */
WIDEST static void add_products(
    const float *restrict w, int start, int end, int m, const float *restrict x, float *restrict y)
{
    const int whole = end - (end - start) % 4;
    int i, j;
    for (i = start; i < whole; i += 4) {
        const float a = x[i], b = x[i + 1], c = x[i + 2], d = x[i + 3];
        const float *restrict w0 = w + (size_t)i * (size_t)m;
        const float *restrict w1 = w0 + m, *restrict w2 = w1 + m, *restrict w3 = w2 + m;
        if (a == 0.0f && b == 0.0f && c == 0.0f && d == 0.0f)
            continue;
        for (j = 0; j < m; j++)
            y[j] += (a * w0[j] + b * w1[j]) + (c * w2[j] + d * w3[j]);
    }
    for (i = whole; i < end; i++) {
        const float a = x[i];
        const float *restrict w0 = w + (size_t)i * (size_t)m;
        for (j = 0; j < m; j++)
            y[j] += a * w0[j];
    }
}

/* y = b + x W */
static void layer(const float *w, int n, int m, const float *x, float *y)
{
    const float *bias = w + (size_t)n * (size_t)m;
    int j;
    for (j = 0; j < m; j++)
        y[j] = bias[j];
    add_products(w, 0, n, m, x, y);
}
#endif

#if BLEND_PAIRS
/* The same layer for two inputs, of which the first `shared` entries, a multiple of four, are the same: weights are read
   once, and the sum over the shared entries is computed once. */
WIDEST static void pair_layer(const float *restrict w, int n, int m, int shared, const float *restrict x,
    const float *restrict u, float *restrict y, float *restrict v)
{
    const float *bias = w + (size_t)n * (size_t)m;
    const int whole = n - n % 4;
    int i, j;
    for (j = 0; j < m; j++)
        y[j] = bias[j];
    add_products(w, 0, shared, m, x, y);
    for (j = 0; j < m; j++)
        v[j] = y[j];
    for (i = shared; i < whole; i += 4) {
        const float a = x[i], b = x[i + 1], c = x[i + 2], d = x[i + 3];
        const float e = u[i], f = u[i + 1], g = u[i + 2], h = u[i + 3];
        const float *restrict w0 = w + (size_t)i * (size_t)m;
        const float *restrict w1 = w0 + m, *restrict w2 = w1 + m, *restrict w3 = w2 + m;
        for (j = 0; j < m; j++) {
            y[j] += (a * w0[j] + b * w1[j]) + (c * w2[j] + d * w3[j]);
            v[j] += (e * w0[j] + f * w1[j]) + (g * w2[j] + h * w3[j]);
        }
    }
    for (i = whole; i < n; i++) {
        const float a = x[i], b = u[i];
        const float *restrict w0 = w + (size_t)i * (size_t)m;
        for (j = 0; j < m; j++) {
            y[j] += a * w0[j];
            v[j] += b * w0[j];
        }
    }
}
#endif

#if BLEND_NARROW_LAYERS
/* y = b + x W with few outputs: each sum stays in a register. */
static void narrow_layer(const float *restrict w, int n, int m, const float *restrict x, float *restrict y)
{
    const float *restrict bias = w + (size_t)n * (size_t)m;
    const int whole = n - n % 4;
    int i, j;
    for (j = 0; j < m; j++) {
        const float *restrict v = w + j;
        float sum = bias[j];
        for (i = 0; i < whole; i += 4, v += 4 * m)
            sum += (x[i] * v[0] + x[i + 1] * v[m]) + (x[i + 2] * v[2 * m] + x[i + 3] * v[3 * m]);
        for (; i < n; i++, v += m)
            sum += x[i] * v[0];
        y[j] = sum;
    }
}
#endif

#if BLEND_TANH_LAYERS
/* tanh with an error below 5e-7: Lambert's continued fraction at a quarter of the argument, doubled twice. */
WIDEST static void tanh_units(float *restrict y, int m)
{
    int j;
    for (j = 0; j < m; j++) {
        const float x = y[j];
        const float u = (x < -9.0f ? -9.0f : x > 9.0f ? 9.0f : x) * 0.25f;
        const float z = u * u;
        const float top = u * (135135.0f + z * (17325.0f + z * (378.0f + z)));
        const float bottom = 135135.0f + z * (62370.0f + z * (3150.0f + z * 28.0f));
        const float t = top / bottom;
        const float s = 2.0f * t / (1.0f + t * t);
        y[j] = 2.0f * s / (1.0f + s * s);
    }
}
#endif

#if BLEND_RELU_LAYERS
/* y = b + x W, inputs of 0 skipped: half of the hidden units. */
WIDEST static void sparse_layer(const float *restrict w, int n, int m, const float *restrict x, float *restrict y)
{
    const float *restrict bias = w + (size_t)n * (size_t)m;
    int i, j;
    for (j = 0; j < m; j++)
        y[j] = bias[j];
    for (i = 0; i < n; i++) {
        const float a = x[i];
        if (a != 0.0f) {
            const float *restrict row = w + (size_t)i * (size_t)m;
            for (j = 0; j < m; j++)
                y[j] += a * row[j];
        }
    }
}

static void relu_units(float *restrict y, int m)
{
    int j;
    for (j = 0; j < m; j++)
        y[j] = y[j] < 0.0f ? 0.0f : y[j];
}
#endif

#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC pop_options
#endif
