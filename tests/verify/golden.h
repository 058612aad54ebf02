/* SPDX-License-Identifier: MIT */
/* golden.h - the file blocks.bin: the results of GGML's reference (version 0.21.0,
 * quantize_row_*_ref and dequantize_row_*, built for x86-64 without fused products) for 256
 * elements of every block type. Little-endian:
 *
 *   u32 inputs, u32 outputs
 *   inputs times:  256 f32, then for each block type, in the order of HW_DTYPES, its blocks
 *   outputs times: for each block type, random blocks, then the 256 f32 decoded from them
 *
 * The inputs are normal, uniform, at and beside the midpoint of two codes, of magnitudes from
 * 1e-20 to 1e38 in one block and in different ones, constant, zero, partly zero, of one sign,
 * and far from zero. */
#ifndef VERIFY_GOLDEN_H
#define VERIFY_GOLDEN_H

#include <hw/types.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { GOLDEN_ELEMENTS = 256 };

/* Called for each type of each input, where `blocks` encodes `x`, and for each type of each output,
 * where `x` decodes `blocks`. */
typedef void golden_fn(void *user, int32_t dtype, const float *x,
                       const unsigned char *blocks, size_t bytes);

static inline void golden_take(FILE *file, void *to, size_t bytes)
{
    if (fread(to, 1, bytes, file) != bytes)
        fail_msg("the golden file is too short");
}

static inline void golden_part(FILE *file, uint32_t count, int x_is_first, golden_fn *fn,
                               void *user)
{
    for (uint32_t n = 0; n < count; n++) {
        float x[GOLDEN_ELEMENTS];
        if (x_is_first)
            golden_take(file, x, sizeof x);
        for (int32_t dtype = 1; dtype < HW_DTYPE_END; dtype++) {
            unsigned char blocks[4 * GOLDEN_ELEMENTS];
            const int64_t block = hw_dtype_block(dtype);
            if (block == 1)
                continue;
            const size_t bytes = (size_t)(GOLDEN_ELEMENTS / block * hw_dtype_bytes(dtype));
            golden_take(file, blocks, bytes);
            if (!x_is_first)
                golden_take(file, x, sizeof x);
            fn(user, dtype, x, blocks, bytes);
        }
    }
}

/* Reads the file that HW_TEST_GOLDEN names. */
static inline void golden_walk(golden_fn *encoded, golden_fn *decoded, void *user)
{
    FILE *file = fopen(getenv("HW_TEST_GOLDEN"), "rb");
    uint32_t counts[2];
    if (!file)
        fail_msg("HW_TEST_GOLDEN must name the golden file");
    golden_take(file, counts, sizeof counts);
    assert_true(counts[0] > 0 && counts[1] > 0);
    golden_part(file, counts[0], 1, encoded, user);
    golden_part(file, counts[1], 0, decoded, user);
    assert_int_equal(fgetc(file), EOF);
    fclose(file);
}

/* The index of the first byte that differs, for a message; `bytes` if none does. */
static inline size_t golden_differs(const void *a, const void *b, size_t bytes)
{
    const unsigned char *x = a, *y = b;
    size_t i = 0;
    while (i < bytes && x[i] == y[i])
        i++;
    return i;
}

/* Fails unless the floats have the same bits; NaNs may differ. */
static inline void golden_same_floats(int32_t dtype, const float *got, const float *want)
{
    for (int i = 0; i < GOLDEN_ELEMENTS; i++)
        if (memcmp(&got[i], &want[i], 4) != 0 && (got[i] == got[i] || want[i] == want[i]))
            fail_msg("dtype %d, element %d is %.9g, GGML has %.9g", (int)dtype, i,
                     (double)got[i], (double)want[i]);
}

static inline void golden_same_blocks(int32_t dtype, const void *got, const void *want,
                                      size_t bytes)
{
    const size_t at = golden_differs(got, want, bytes);
    if (at < bytes)
        fail_msg("dtype %d, byte %zu of a block is not that of GGML", (int)dtype,
                 at % (size_t)hw_dtype_bytes(dtype));
}

#endif
