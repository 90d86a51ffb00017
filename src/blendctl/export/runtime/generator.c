/* xoshiro256++: the same words as in Python. */
static uint64_t next_word(uint64_t *s)
{
    const uint64_t total = s[0] + s[3];
    const uint64_t word = ((total << 23) | (total >> 41)) + s[0];
    const uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = (s[3] << 45) | (s[3] >> 19);
    return word;
}

/* Draw from [0, 1). */
static double uniform(uint64_t *s)
{
    return (double)(next_word(s) >> 11) * 1.1102230246251565e-16;
}

#if BLEND_NORMALS
/* Draw a standard normal (Box-Muller). */
static double normal(uint64_t *s)
{
    const double length = sqrt(D(-2) * log(D(1) - uniform(s)));
    return length * cos(D(2) * PI * uniform(s));
}
#endif
