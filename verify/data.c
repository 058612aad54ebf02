/* SPDX-License-Identifier: MIT */
/* data.c - the values of operands: ordinary values, and values that break naive code. */
#include "problem.h"
#include "storage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sebastiano Vigna's splitmix64. */
uint64_t data_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* In [-1, 1). */
static double uniform(uint64_t *state)
{
    return (double)(data_random(state) >> 11) * 0x1p-52 - 1;
}

/* The element of a generator: number `i`, in rows of `cols`. */
struct place {
    int32_t dtype;
    int64_t i, cols;
};

static double make_uniform(uint64_t *state, const struct place *at)
{
    (void)at;
    return uniform(state);
}

static double make_wide(uint64_t *state, const struct place *at)
{
    (void)at;
    return 20 * uniform(state);
}

static bool is_narrow(int32_t dtype)
{
    return dtype == HW_F16 || storage_is_block(dtype);
}

static double make_huge(uint64_t *state, const struct place *at)
{
    return (is_narrow(at->dtype) ? 6e4 : 1e18) * uniform(state);
}

/* The sum of two of them is finite, the sum of three is not. */
static double make_vast(uint64_t *state, const struct place *at)
{
    return (is_narrow(at->dtype) ? 3e4 : 1.6e38) * uniform(state);
}

static double make_tiny(uint64_t *state, const struct place *at)
{
    return (is_narrow(at->dtype) ? 1e-3 : 1e-15) * uniform(state);
}

static double make_mixed(uint64_t *state, const struct place *at)
{
    (void)at;
    const double magnitude = pow(10, 3 * uniform(state));
    return uniform(state) < 0 ? -magnitude : magnitude;
}

static double make_outlier(uint64_t *state, const struct place *at)
{
    (void)at;
    const bool rare = data_random(state) % 97 == 0;
    return (rare ? 100 : 0.1) * uniform(state);
}

/* One NaN in every third row. */
static double make_nan(uint64_t *state, const struct place *at)
{
    const int64_t row = at->i / at->cols, col = at->i % at->cols;
    const double ordinary = uniform(state);
    return row % 3 == 0 && col == row % at->cols && !storage_is_block(at->dtype)
               ? (double)NAN
               : ordinary;
}

static double make_inf(uint64_t *state, const struct place *at)
{
    const int64_t row = at->i / at->cols, col = at->i % at->cols;
    const double ordinary = uniform(state);
    if (row % 3 != 0 || col != row % at->cols || storage_is_block(at->dtype))
        return ordinary;
    return row % 2 ? -(double)INFINITY : (double)INFINITY;
}

/* Every second row, beginning with the first, is -inf. */
static double make_neginf(uint64_t *state, const struct place *at)
{
    const double ordinary = uniform(state);
    return at->i / at->cols % 2 == 0 ? -(double)INFINITY : ordinary;
}

/* A mask: 0 and -inf. */
static double make_mask(uint64_t *state, const struct place *at)
{
    (void)at;
    return data_random(state) % 3 == 0 ? -(double)INFINITY : 0;
}

static double make_zero(uint64_t *state, const struct place *at)
{
    (void)state;
    (void)at;
    return 0;
}

/* Divisors for rope's frequencies. */
static double make_factors(uint64_t *state, const struct place *at)
{
    (void)at;
    return 2.5 + 1.5 * uniform(state);
}

/* Deviations that are small compared with their mean. */
static double make_shifted(uint64_t *state, const struct place *at)
{
    (void)at;
    return 1000 + 20 * uniform(state);
}

/* Few different values, so that many are equal. */
static double make_steps(uint64_t *state, const struct place *at)
{
    (void)at;
    return (double)(data_random(state) % 5) - 2;
}

/* One row in 64 has zeros, and a large number in each 32. All other numbers are 1. */
static double make_loud(uint64_t *state, const struct place *at)
{
    (void)state;
    if (at->i / at->cols % 64 != 5)
        return 1;
    return at->i % 32 == 31 ? 5e4 : 0;
}

/* Like make_loud(), but that row has only zeros; its blocks keep the large scale, see silence(). */
static double make_hollow(uint64_t *state, const struct place *at)
{
    const double x = make_loud(state, at);
    return x > 1 && at->dtype != HW_Q8_0 ? 0 : x;
}

/* Sets the codes of blocks with large scales to 0. No encoder makes such blocks. */
static void silence(struct operand *o)
{
    const size_t block = (size_t)hw_dtype_bytes(HW_Q8_0), scale = 2;
    const size_t bytes = storage_bytes(o->dtype, o->count);

    for (size_t i = 0; o->dtype == HW_Q8_0 && i < bytes; i += block)
        if (storage_read(HW_F16, o->bytes + i, 0) > 1)
            memset(o->bytes + i + scale, 0, block - scale);
}

struct data_kind {
    const char *name;
    double (*make)(uint64_t *state, const struct place *at); /* NULL: random bits */
    /* a function that changes the data; or NULL */
    void (*change)(struct operand *o);
};

static const struct data_kind kinds[] = {
    { "uniform", make_uniform, NULL },
    { "wide", make_wide, NULL },
    { "huge", make_huge, NULL },
    { "tiny", make_tiny, NULL },
    { "mixed", make_mixed, NULL },
    { "outlier", make_outlier, NULL },
    { "nan", make_nan, NULL },
    { "inf", make_inf, NULL },
    { "neginf", make_neginf, NULL },
    { "mask", make_mask, NULL },
    { "zero", make_zero, NULL },
    { "steps", make_steps, NULL },
    { "factors", make_factors, NULL },
    { "shifted", make_shifted, NULL },
    { "vast", make_vast, NULL },
    { "loud", make_loud, NULL },
    { "raw", NULL, NULL },
    { "hollow", make_hollow, silence },
};

const struct data_kind *data_named(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    return NULL;
}

/* Whether blocks have a minimum after the scale. */
static bool has_minimum(int32_t dtype)
{
    return dtype == HW_Q4_1 || dtype == HW_Q5_1 || dtype == HW_Q4_K || dtype == HW_Q5_K;
}

/* Random bits, including every kind of NaN; in blocks, the scale and the minimum must be finite. */
static void fill_raw(uint64_t seed, struct operand *o)
{
    const size_t bytes = storage_bytes(o->dtype, o->count);
    const size_t block = (size_t)hw_dtype_bytes(o->dtype);
    const size_t scale = o->dtype == HW_Q6_K ? block - 2 : 0;

    for (size_t i = 0; i < bytes; i++)
        o->bytes[i] = (unsigned char)data_random(&seed);
    for (size_t i = scale; storage_is_block(o->dtype) && i < bytes; i += block) {
        o->bytes[i + 1] &= 0xbb;
        if (has_minimum(o->dtype))
            o->bytes[i + 3] &= 0xbb;
    }
}

/* Elements are made in pieces, so that a large operand needs little extra memory. The first piece
 * is repeated if no oracle needs the values, and for block types, because quantising takes far more
 * time than the test itself. Its length, 127 blocks of 256, divides none of the usual rows, so
 * neighbouring rows differ. */
enum { PIECE = 256 * 127 };

void data_fill(const struct data_kind *kind, uint64_t seed, struct operand *o)
{
    if (!kind->make) {
        fill_raw(seed, o);
        return;
    }
    double *piece = malloc(PIECE * sizeof *piece);
    struct place at = { .dtype = o->dtype, .cols = o->extent[o->rank - 1] };
    for (int64_t first = 0; piece && first < o->count; first += PIECE) {
        const int64_t count = o->count - first < PIECE ? o->count - first : PIECE;
        unsigned char *bytes = o->bytes + storage_bytes(o->dtype, first);
        if (first && (!o->value || storage_is_block(o->dtype))) {
            memcpy(bytes, o->bytes, storage_bytes(o->dtype, count));
            continue;
        }
        for (int64_t i = 0; i < count; i++) {
            at.i = first + i;
            piece[i] = kind->make(&seed, &at);
        }
        storage_write(o->dtype, bytes, piece, count);
    }
    if (kind->change)
        kind->change(o);
    free(piece);
}
