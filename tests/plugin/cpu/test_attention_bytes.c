/* SPDX-License-Identifier: MIT */
/* test_attention_bytes.c - the attention row that multiplies a q8_0 cache in integers: values
 * outside its range are computed with the accuracy of floats, and many small weights are not
 * lost. */
#include "operands.h"

#include <math.h>
#include <stdbool.h>

static struct operand a, b, c;

enum { Q8_0_BYTES = 34, Q8_0_KEYS = 50, Q8_0_HEADS = 4 }; /* one tile, which falls back */

static const char in_bytes[] = "attention_few_vnni512";

/* The scale of the first run of a key or value that has `runs` runs. */
static uint16_t *scale_of(struct operand *o, int64_t runs, int64_t key)
{
    return (uint16_t *)(void *)(o->bytes + key * runs * Q8_0_BYTES);
}

/* Caches that integers cannot represent. `scale` is the f16 scale of a key or a value; 0:
 * unchanged. */
static const struct fallback {
    const char *name;
    int64_t value_dim;
    bool of_value;
    uint16_t scale;
} fallbacks[] = {
    { "an ordinary cache, in integers", 64, true, 0 },
    { "a key of a negative scale", 64, false, 0xa000 },
    { "a value of a negative scale", 64, true, 0xa000 },
    { "a key whose scale is not finite", 64, false, 0x7c00 },
    { "a value whose scale is not finite", 64, true, 0x7c00 },
    { "a value of a small scale", 64, true, 0x0800 },
    { "values of an odd number of runs", 96, true, 0 },
};

/* Computes attention with this row at this precision. */
static void attend_to(const struct fallback *f, const char *kernel, uint32_t precision,
                      float *y)
{
    const int64_t runs = (f->of_value ? f->value_dim : 64) / 32;
    struct harness h;
    harness_host(&h, kernel, 1);
    h.host.precision = precision;
    harness_start(&h);
    const struct hw_attention op = {
        .q = fill(&a, TENSOR(NULL, HW_F32, 1, Q8_0_HEADS, 64), 1),
        .k = fill(&b, TENSOR(NULL, HW_Q8_0, Q8_0_KEYS, 1, 64), 2),
        .v = fill(&c, TENSOR(NULL, HW_Q8_0, Q8_0_KEYS, 1, f->value_dim), 3),
        .y = TENSOR(y, HW_F32, 1, Q8_0_HEADS, f->value_dim),
    };
    if (f->scale)
        *scale_of(f->of_value ? &c : &b, runs, 5) = f->scale;
    assert_int_equal(h.plugin.ops->attention(h.device, h.queue, &op), HW_OK);
    harness_close(&h);
}

/* The largest difference between two rows; NaN and infinity equal themselves. */
static double distance(const float *x, const float *y, int64_t n)
{
    double most = 0.0;
    for (int64_t i = 0; i < n; i++) {
        const bool same = x[i] == y[i] || (isnan(x[i]) && isnan(y[i]));
        const double apart = fabs((double)x[i] - (double)y[i]);
        if (!same && !(apart <= most))
            most = isnan(apart) ? (double)INFINITY : apart;
    }
    return most;
}

/* Whether the processor has the row for int8. */
static bool has_attention_in_bytes(void)
{
    struct hw_kernel_info info = { .size = sizeof info };
    struct harness h;
    harness_host(&h, "", 1);
    h.host.precision = HW_PRECISION_INT8;
    harness_start(&h);
    for (uint32_t i = 0; strcmp(info.name, in_bytes) != 0; i++)
        if (h.plugin.kernel_info(h.device, HW_OP_ATTENTION, i, &info) != HW_OK)
            break;
    harness_close(&h);
    return strcmp(info.name, in_bytes) == 0 && info.eligible;
}

/* Values that integers cannot represent are computed in floats, with the error of floats. */
static void integers_fall_back_to_floats(void **state)
{
    static float expected[Q8_0_HEADS * 96], got[Q8_0_HEADS * 96];
    (void)state;
    if (!has_attention_in_bytes())
        skip();
    harness_open(&mover, "portable", 1);
    for (size_t i = 0; i < sizeof fallbacks / sizeof fallbacks[0]; i++) {
        const struct fallback *f = &fallbacks[i];
        attend_to(f, "portable", HW_PRECISION_FP32, expected);
        attend_to(f, in_bytes, HW_PRECISION_INT8, got);
        const double apart = distance(expected, got, Q8_0_HEADS * f->value_dim);
        const bool integers = i == 0;
        if (integers ? !(apart > 1e-4 && apart < 1e-2) : !(apart < 1e-5))
            fail_msg("%s: %g from the portable row", f->name, apart);
    }
    harness_close(&mover);
}

/* A tensor of ones, as q8_0 or f32. */
static struct hw_tensor ones(struct operand *o, struct hw_tensor t)
{
    const int64_t extents[] = { t.extent[0], t.extent[1], t.extent[2], t.extent[3], 0 };
    t.data = o->bytes;
    for (int64_t i = 0; i < count(&t); i++)
        plain[i] = 1.0f;
    harness_convert(&mover, t, harness_tensor(plain, HW_F32, extents));
    return t;
}

/* One key weighs 545 times as much as each other key, so their weights are less than half a step of
 * 8 bits. Together they are 8 % of the result and must not be lost. */
static void small_weights_are_not_lost(void **state)
{
    enum { DIM = 64, HEAVY = 5 };
    const float score = 6.3f;
    static float y[Q8_0_HEADS * DIM];
    struct harness h;
    (void)state;
    if (!has_attention_in_bytes())
        skip();
    harness_open(&mover, "portable", 1);
    harness_host(&h, in_bytes, 1);
    h.host.precision = HW_PRECISION_INT8;
    harness_start(&h);
    struct hw_tensor key = ones(&b, TENSOR(NULL, HW_Q8_0, Q8_0_KEYS, 1, DIM));
    for (int64_t i = 0; i < Q8_0_KEYS * DIM / 32; i++)
        if (i / (DIM / 32) != HEAVY)
            memset(b.bytes + i * Q8_0_BYTES, 0, Q8_0_BYTES);
    const struct hw_attention op = {
        .q = ones(&a, TENSOR(NULL, HW_F32, 1, Q8_0_HEADS, DIM)),
        .k = key,
        .v = ones(&c, TENSOR(NULL, HW_Q8_0, Q8_0_KEYS, 1, DIM)),
        .y = TENSOR(y, HW_F32, 1, Q8_0_HEADS, DIM),
        .scale = score / DIM,
    };
    assert_int_equal(h.plugin.ops->attention(h.device, h.queue, &op), HW_OK);
    for (int i = 0; i < Q8_0_HEADS * DIM; i++)
        if (!(fabsf(y[i] - 1.0f) < 0.01f))
            fail_msg("the average of ones is %g", (double)y[i]);
    harness_close(&h);
    harness_close(&mover);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_fall_back_to_floats),
        cmocka_unit_test(small_weights_are_not_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
