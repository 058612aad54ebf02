/* SPDX-License-Identifier: MIT */
/* test_duel.c - products in turns with another library: in what memory its operands lie, what it is
 * told, and which results count as the same. The other library is this program. */
#include "bench/rival/duel.h"
#include "command/output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { M = 3, N = 72, K = 200 };
#define SHAPE "3x72x200"

/* ---- what is allocated ---- */

enum { MOST_MATRICES = 64 };

static struct matrix {
    int64_t rows, cols;
    uint32_t flags;
    void *host;
} matrices[MOST_MATRICES];
static int matrix_count;

enum hw_status __real_hw_tensor_alloc(struct hw_device *device, uint32_t flags,
                                      int32_t dtype, int32_t rank, const int64_t *extents,
                                      struct hw_tensor *tensor);
enum hw_status __wrap_hw_tensor_alloc(struct hw_device *device, uint32_t flags,
                                      int32_t dtype, int32_t rank, const int64_t *extents,
                                      struct hw_tensor *tensor);

enum hw_status __wrap_hw_tensor_alloc(struct hw_device *device, uint32_t flags,
                                      int32_t dtype, int32_t rank, const int64_t *extents,
                                      struct hw_tensor *tensor)
{
    const enum hw_status status = __real_hw_tensor_alloc(device, flags, dtype, rank,
                                                         extents, tensor);
    assert_in_range(matrix_count, 0, MOST_MATRICES - 1);
    assert_int_equal(rank, 2);
    matrices[matrix_count++] = (struct matrix){ .rows = extents[0],
                                                .cols = extents[1],
                                                .flags = flags,
                                                .host = hw_buffer_host(tensor->buffer) };
    return status;
}

static const struct matrix *matrix_at(const void *host)
{
    for (int i = 0; i < matrix_count; i++)
        if (matrices[i].host == host)
            return &matrices[i];
    fail_msg("an operand that was not allocated");
    return NULL;
}

/* ---- the other library ---- */

static struct product told;
static int bits_kept; /* of the 24 of f32, in factors */

static float rounded(float value)
{
    const int cut = 24 - bits_kept;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (cut)
        bits = (bits + (1u << (cut - 1))) >> cut << cut;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static const char *name(void *self)
{
    (void)self;
    return "this program";
}

static const char *prepare(void *self, const struct product *product, int *ways)
{
    (void)self;
    told = *product;
    *ways = 1;
    return NULL;
}

/* Only the weights are in read-only memory. */
static const char *multiply(void *self, int way, const struct rival_operands *o)
{
    const float *a = o->a.handle, *b = o->b.handle;
    float *c = o->c.handle;
    (void)self;
    (void)way;
    assert_int_equal(matrix_at(a)->flags, 0);
    assert_int_equal(matrix_at(b)->flags, HW_BUFFER_READ_ONLY);
    assert_int_equal(matrix_at(b)->rows, N);
    assert_int_equal(matrix_at(c)->flags, 0);
    for (int64_t i = 0; i < M * N; i++) {
        double sum = 0;
        for (int64_t k = 0; k < K; k++)
            sum += (double)rounded(a[i / N * K + k]) * rounded(b[i % N * K + k]);
        c[i] = (float)sum;
    }
    return NULL;
}

static const struct rival rival = {
    .op = HW_OP_MATMUL, .tf32 = true, .name = name, .prepare = prepare, .multiply = multiply
};

/* ---- a duel ---- */

static struct hw_context *context;
static float *numbers;

/* Returns NULL, or what went wrong; the row of results is checked. */
static const char *fight(const char *precision, int bits, const char *word)
{
    const struct bench bench = { .results = json_array() };
    struct duel duel = { .rival = &rival,
                         .device = hw_device_at(context, 0),
                         .precision = precision,
                         .random = numbers };
    static char reason[400];
    assert_int_equal(hw_queue_open(duel.device, NULL, &duel.queue), HW_OK);
    matrix_count = 0;
    bits_kept = bits;
    const char *why = duel_matmul.measure(&bench, &duel, word);
    if (why)
        why = strncpy(reason, why, sizeof reason - 1);
    else
        assert_true(duel.speed > 0);
    assert_int_equal(json_array_size(bench.results), !why);
    json_decref(bench.results);
    hw_queue_close(duel.queue);
    return why;
}

static void weights_are_in_read_only_memory(void **state)
{
    (void)state;
    assert_null(fight("fp32", 24, "f32:" SHAPE));
    assert_true(matrix_count >= 6); /* sets take turns */
    for (int i = 0; i < matrix_count; i++)
        assert_int_equal(matrices[i].flags == HW_BUFFER_READ_ONLY, matrices[i].rows == N);
}

static void f32_may_be_tf32_if_the_precision_says_so(void **state)
{
    static const char *const precisions[] = { "fp32", "fp16", "int8" };
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_null(fight(precisions[i], 24, "f32:" SHAPE));
        assert_int_equal(told.tf32, i > 0);
    }
}

/* By 11 bits of TF32, and by the 8 of bf16, which is never right for f32. */
static void results_of_other_precision_differ(void **state)
{
    const char *why;
    (void)state;
    assert_non_null(why = fight("fp32", 11, "f32:" SHAPE));
    assert_non_null(strstr(why, "the results differ"));
    assert_null(fight("fp16", 11, "f32:" SHAPE));
    assert_null(fight("int8", 11, "f32:" SHAPE));
    assert_non_null(why = fight("fp16", 8, "f32:" SHAPE));
    assert_non_null(strstr(why, "the results differ"));
}

static int enter(void **state)
{
    (void)state;
    out_json = 1; /* prints no rows */
    numbers = random_numbers();
    return !numbers || hw_open(&(struct hw_options){ .size = sizeof(struct hw_options),
                                                     .backends = "cpu" },
                               &context);
}

static int leave(void **state)
{
    (void)state;
    free(numbers);
    hw_close(context);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_in_read_only_memory),
        cmocka_unit_test(f32_may_be_tf32_if_the_precision_says_so),
        cmocka_unit_test(results_of_other_precision_differ),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
