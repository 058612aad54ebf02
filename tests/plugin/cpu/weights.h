/* SPDX-License-Identifier: MIT */
/* weights.h - shared by the tests of products with weights: operands, rows limited to one kernel
 * and their portable counterparts, packing, and the comparison of results. */
#ifndef WEIGHTS_H
#define WEIGHTS_H

#include "harness.h"

#include <math.h>
#include <stdbool.h>

enum { ROWS = 67, SOME_K = 512, SOME_M = 97, PACKED_BYTES = 1 << 19, RUN = 32 };
/* More rows of a than a core's cache holds beside weights, so that they are multiplied in
 * blocks. */
enum { MOST_K = 4096, MOST_M = 97 };

static const int32_t types[] = { HW_Q8_0, HW_Q4_0, HW_Q4_1, HW_Q5_0,
                                 HW_Q5_1, HW_Q4_K, HW_Q5_K, HW_Q6_K };
enum { TYPES = sizeof types / sizeof types[0], FLOATS = 3 };
static const int32_t floats[FLOATS] = { HW_F32, HW_F16, HW_BF16 };

static inline float noise(void)
{
    static uint32_t state = 1;
    return harness_noise(&state);
}

/* Operands: b as floats, as blocks and packed; a as floats and in its own type. */
static float plain[ROWS * MOST_K], activations[MOST_M * MOST_K];
static _Alignas(64) unsigned char blocks[ROWS * MOST_K * 4], typed[MOST_M * MOST_K * 4];
static _Alignas(256) unsigned char packed_memory[PACKED_BYTES];
static struct hw_buffer packed_buffer = { .host = packed_memory };

static inline void multiply(struct harness *h, const struct hw_matmul *op)
{
    if (h->plugin.ops->matmul(h->device, h->queue, op))
        fail_msg("%s: %s", h->host.kernel, h->message);
}

/* Opens the plugin as a context with HW_PRECISION and HW_KERNEL does. */
static inline void open_with(struct harness *h, uint32_t precision, const char *kernel)
{
    harness_host(h, kernel, 3);
    h->host.precision = precision;
    harness_start(h);
}

/* A row under test: `h` uses this row only, `portable` the last row only. */
struct row {
    struct harness h, portable;
    const char *name;
};
typedef void row_fn(struct row *row);

/* The allowed difference from the portable row. Only the order of sums differs, since rounding does
 * not change the values of fill_exactly(). */
static const double another_order = 2e-5;

/* Calls fn for each row of an op that this processor can run and whose name begins with one of the
 * words. Returns the number of calls. */
static inline int each_row(uint32_t op, const char *const *words, row_fn *fn)
{
    struct harness all;
    int rows = 0;
    open_with(&all, HW_PRECISION_INT8, "");
    for (uint32_t i = 0;; i++) {
        struct hw_kernel_info info = { .size = sizeof info };
        const char *const *word = words;
        if (all.plugin.kernel_info(all.device, op, i, &info) != HW_OK)
            break;
        while (*word && strncmp(info.name, *word, strlen(*word)) != 0)
            word++;
        if (!info.eligible || !*word)
            continue;
        static struct row row;
        row.name = info.name;
        open_with(&row.h, HW_PRECISION_INT8, info.name);
        open_with(&row.portable, HW_PRECISION_FP32, "portable");
        fn(&row);
        harness_close(&row.h);
        harness_close(&row.portable);
        rows++;
    }
    harness_close(&all);
    return rows;
}

/* The original weights, [ROWS,k]. */
static inline struct hw_tensor weights_of(struct harness *h, int32_t type, int64_t k)
{
    const struct hw_tensor b = TENSOR(blocks, type, ROWS, k);
    harness_convert(h, b, TENSOR(plain, HW_F32, ROWS, k));
    return b;
}

/* Packs into a buffer with room for `room` bytes. */
static inline int32_t pack_into(struct harness *h, const struct hw_tensor *from,
                                struct hw_tensor *to, struct hw_buffer *buffer,
                                uint64_t room)
{
    unsigned char *memory = buffer->host;
    uint64_t bytes = 0;
    *to = *from;
    const int32_t status = h->plugin.pack_size(h->device, from, &bytes, &to->layout);
    if (status)
        return status;
    assert_true(to->layout != 0);
    assert_true(bytes <= room);
    memset(memory, 0xa5, room);
    buffer->bytes = bytes;
    to->data = NULL;
    to->buffer = buffer;
    memset(to->stride, 0, sizeof to->stride);
    assert_int_equal(h->plugin.pack(h->queue, to, from), HW_OK);
    for (uint64_t i = bytes; i < room; i++)
        assert_int_equal(memory[i], 0xa5);
    return HW_OK;
}

static inline int32_t pack(struct harness *h, const struct hw_tensor *from,
                           struct hw_tensor *to)
{
    return pack_into(h, from, to, &packed_buffer, PACKED_BYTES);
}

/* Values that 8 bits and bf16 represent exactly: multiples of 1 / 128, with 127 first in each run
 * of 32 along k. Rounding errors of 8 bits would hide smaller mistakes. */
static inline void fill_exactly(int64_t rows, int64_t cols, bool turned)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            activations[r * cols + c] = (turned ? r : c) % RUN
                                            ? truncf(127.0f * noise()) / 128
                                            : 127.0f / 128;
}

/* a [m,k] of a type, or [k,m]. */
static inline struct hw_matmul product(struct harness *h, struct hw_tensor b, int64_t m,
                                       int i)
{
    const int32_t type = floats[i % FLOATS];
    const bool turned = i % 5 == 4;
    const int64_t k = b.extent[1], rows = turned ? k : m, cols = turned ? m : k;
    const struct hw_tensor a = TENSOR(typed, type, rows, cols);
    fill_exactly(rows, cols, turned);
    harness_convert(h, a, TENSOR(activations, HW_F32, rows, cols));
    return (struct hw_matmul){ .a = a,
                               .b = b,
                               .bias = TENSOR(plain, HW_F32, ROWS),
                               .transpose_a = turned,
                               .transpose_b = 1 };
}

static inline void same(const float *got, const float *expected, int64_t n, double limit,
                        const char *what)
{
    for (int64_t i = 0; i < n; i++) {
        const double allowed = limit * (1.0 + fabs((double)expected[i]));
        if (!(fabs((double)got[i] - (double)expected[i]) <= allowed))
            fail_msg("%s, element %lld: %g, the portable row says %g", what, (long long)i,
                     (double)got[i], (double)expected[i]);
    }
}

static inline void fill(void)
{
    for (int i = 0; i < ROWS * MOST_K; i++)
        plain[i] = noise();
    for (int i = 0; i < MOST_M * MOST_K; i++)
        activations[i] = noise();
}

#endif
