/* SPDX-License-Identifier: MIT */
/* arrays.c - arrays of any storage type, and their comparison with numbers. */
#include "run.h"

#include "storage.h"

static void *held[16];
static size_t held_count;

void *hold(size_t bytes)
{
    void *p = malloc(bytes + !bytes);
    if (!p || held_count == COUNT(held)) {
        free(p);
        fail_msg("no room for another array");
    }
    return held[held_count++] = p;
}

void release(void)
{
    while (held_count > 0)
        free(held[--held_count]);
}

/* The number of elements in a block of this type. Storage types and dtypes have the same
 * numbers. */
static i64 block_of(int type)
{
    const i64 block = hw_dtype_block(type);
    return block ? block : 1;
}

i64 bytes_of(int type, i64 n)
{
    const i64 bytes = hw_dtype_bytes(type);
    return n / block_of(type) * (bytes ? bytes : 2);
}

struct array new_array(int type, i64 n)
{
    const size_t bytes = (size_t)bytes_of(type, n);
    struct array a = { type, n, hold(bytes) };
    memset(a.at, 0xa5, bytes);
    return a;
}

double half_value(unsigned h)
{
    const unsigned e = h >> 10 & 31, m = h & 1023;
    const double v = e == 31 ? (m ? NAN : INFINITY)
                     : e     ? ldexp(1024 + m, (int)e - 25)
                             : ldexp(m, -24);
    return h >> 15 ? -v : v;
}

double get(struct array a, i64 i)
{
    return storage_read(a.type, a.at, i);
}

void put(struct array a, i64 i, double v)
{
    switch (a.type) {
    case STORAGE_F32:
        store_f32(a.at, i, (float)v);
        break;
    case STORAGE_F16:
        store_f16(a.at, i, (float)v);
        break;
    case STORAGE_BF16:
        store_bf16(a.at, i, (float)v);
        break;
    default:
        fail();
    }
}

double random_unit(void)
{
    static u32 state = 1;
    state = state * 1664525u + 1013904223u;
    return (double)(state >> 8) / 8388608.0 - 1.0;
}

/* Block types have their scale and, if any, their minimum at the start; q6_K has its scale at
 * the end. */
static void set_scale(u8 *block, int type, double size)
{
    const int has_minimum = type == STORAGE_Q4_1 || type == STORAGE_Q5_1 ||
                            type == STORAGE_Q4_K || type == STORAGE_Q5_K;
    store_f16(block, type == STORAGE_Q6_K ? 104 : 0, (float)(size * random_unit() / 100));
    if (has_minimum)
        store_f16(block, 1, (float)(size * random_unit() / 100));
}

struct array random_array(int type, i64 n, double size)
{
    struct array a = new_array(type, n);
    if (block_of(type) > 1) {
        for (i64 i = 0; i < bytes_of(type, n); i++)
            a.at[i] = (u8)(int)(random_unit() * 127.0 + 128.0);
        for (i64 at = 0; at < bytes_of(type, n); at += hw_dtype_bytes(type))
            set_scale(a.at + at, type, size);
    } else {
        for (i64 i = 0; i < n; i++)
            put(a, i, size * random_unit());
    }
    return a;
}

double *numbers(i64 n)
{
    double *p = hold((size_t)n * sizeof *p);
    for (i64 i = 0; i < n; i++)
        p[i] = 0;
    return p;
}

struct place packed(int type, i64 n1, i64 n2, i64 cols)
{
    const i64 row = bytes_of(type, cols);
    return (struct place){ .stride = { n1 * n2 * row, n2 * row, row } };
}

void check(const char *what, struct array got, const double *want, double bound)
{
    static const double storage_bound[] = {
        [STORAGE_F32] = 2e-6, [STORAGE_F16] = 1e-3, [STORAGE_BF16] = 8e-3
    };
    double difference = 0, norm = 0;
    bound = fmax(bound, storage_bound[got.type]);
    for (i64 i = 0; i < got.n; i++) {
        const double v = get(got, i);
        if (isfinite(want[i]))
            norm += want[i] * want[i];
        if (v != want[i] && (v == v || want[i] == want[i]))
            difference += (v - want[i]) * (v - want[i]);
    }
    if (!(difference <= bound * bound * norm))
        fail_msg("%s: type %d, n %lld: error %g, bound %g", what, got.type,
                 (long long)got.n, sqrt(difference / norm), bound);
}
