/* SPDX-License-Identifier: MIT */
/* test_layout.c - packed weights of the CPU plugin: groups of panels and parts along K give the
 * results of unpacked weights, and unsuitable or differently packed weights are rejected. */
#include "weights.h"

/* More panels than one group, and more rows of K than one part, so that the last group and part are
 * smaller. The last case has so many parts that a group exceeds the cache. q8_0 also has whole
 * panels: strips of one to four, and panels so long that four exceed the cache. */
enum {
    GROUPED_N = 197,
    GROUPED_K = 3616,
    GROUPED_M = 70,
    LONG_K = 15456,
    MOST_OF_B = 64 * LONG_K /* elements, as many as any of these */
};
_Static_assert(MOST_OF_B >= GROUPED_N * GROUPED_K, "each has room");
static const struct grouped {
    int32_t type;
    int64_t n, k, m;
} grouped[] = {
    { HW_Q8_0, GROUPED_N, 1184, 9 }, { HW_Q4_0, GROUPED_N, 1184, 5 },
    { HW_Q4_1, 145, 544, 17 },       { HW_Q5_0, GROUPED_N, 1184, 2 },
    { HW_Q5_1, 129, 1056, 3 },       { HW_Q4_K, GROUPED_N, 1280, 8 },
    { HW_Q5_K, 145, 768, 11 },       { HW_Q6_K, GROUPED_N, 1280, 23 },
    { HW_Q8_0, 128, 512, 4 },        { HW_Q4_0, 133, 608, GROUPED_M },
    { HW_Q8_0, 133, GROUPED_K, 9 },  { HW_Q4_0, 130, GROUPED_K, 1 },
    { HW_Q8_0, 49, 2080, 1 },        { HW_Q8_0, 97, 1056, 2 },
    { HW_Q8_0, 113, 608, 6 },        { HW_Q8_0, 49, LONG_K, 7 },
};

/* The last of several rows of a is too large for 8 bits, so it is multiplied in floats. */
static float last_factor(const struct grouped *g)
{
    return g->m > 1 ? 0x1p115f : 1;
}

static void shrink(float *c, const struct grouped *g)
{
    for (int64_t i = (g->m - 1) * g->n; i < g->m * g->n; i++)
        c[i] /= last_factor(g);
}

static void compare_grouped(struct row *row)
{
    static float b_floats[MOST_OF_B], a[GROUPED_M * GROUPED_K],
        expected[GROUPED_M * GROUPED_N], got[GROUPED_M * GROUPED_N];
    static unsigned char b_blocks[MOST_OF_B * 2];
    static _Alignas(256) unsigned char memory[MOST_OF_B * 2];
    for (int i = 0; i < MOST_OF_B; i++)
        b_floats[i] = noise();
    for (int i = 0; i < (int)(sizeof grouped / sizeof grouped[0]); i++) {
        const struct grouped *g = &grouped[i];
        struct hw_buffer buffer = { .host = memory };
        struct hw_tensor packed;
        const double limit = another_order * (1 + (double)g->k / 1024); /* longer sums */
        char what[128];
        fill_exactly(g->m, g->k, false);
        for (int64_t j = 0; j < g->m * g->k; j++)
            a[j] = activations[j] * (j / g->k == g->m - 1 ? last_factor(g) : 1);
        struct hw_matmul op = { .a = TENSOR(a, HW_F32, g->m, g->k),
                                .b = TENSOR(b_blocks, g->type, g->n, g->k),
                                .c = TENSOR(expected, HW_F32, g->m, g->n),
                                .transpose_b = 1 };
        harness_convert(&row->portable, op.b, TENSOR(b_floats, HW_F32, g->n, g->k));
        multiply(&row->portable, &op);
        shrink(expected, g);
        assert_int_equal(pack_into(&row->h, &op.b, &packed, &buffer, sizeof memory), HW_OK);
        snprintf(what, sizeof what, "%s, type %d, %lld x %lld x %lld", row->name, g->type,
                 (long long)g->m, (long long)g->n, (long long)g->k);
        for (int times = 0; times < 2; times++) {
            memset(got, 0xff, sizeof got);
            op.b = times ? packed : op.b;
            op.c.data = got;
            multiply(&row->h, &op);
            shrink(got, g);
            same(got, expected, g->m * g->n, limit, what);
        }
    }
}

static void groups_of_panels_have_parts(void **state)
{
    static const char *const of_panels[] = { "blocks", NULL };
    (void)state;
    const int compared = each_row(HW_OP_MATMUL, of_panels, compare_grouped);
#if defined(__aarch64__)
    assert_true(compared > 0);
#endif
    print_message("%d rows\n", compared);
}

static void refuses(struct harness *h, struct hw_tensor weights, const char *why)
{
    uint64_t bytes;
    uint32_t layout;
    assert_int_equal(h->plugin.pack_size(h->device, &weights, &bytes, &layout),
                     HW_UNSUPPORTED);
    assert_non_null(strstr(h->message, why));
}

static void the_rest_is_refused(void **state)
{
    struct harness h;
    (void)state;
    open_with(&h, HW_PRECISION_FP32, "");
    refuses(&h, TENSOR(blocks, HW_I32, 16, 32), "floats or block types");
    refuses(&h, TENSOR(blocks, HW_Q8_0, 2, 16, 32), "rank 2");
    struct hw_tensor gaps = TENSOR(blocks, HW_Q8_0, 16, 64);
    gaps.stride[1] *= 2;
    refuses(&h, gaps, "contiguous");
    harness_close(&h);
    open_with(&h, HW_PRECISION_FP32, "portable");
    refuses(&h, TENSOR(blocks, HW_Q8_0, 16, 32), "no row of matmul");
    harness_close(&h);
}

/* A queue may have other rows than its device. */
static void queues_without_a_row_are_refused(void **state)
{
    static unsigned char room[1 << 16];
    const struct hw_queue_desc desc = { .size = sizeof desc, .kernel = "portable" };
    const struct hw_tensor weights = TENSOR(blocks, HW_Q8_0, 16, 32);
    struct hw_tensor packed = TENSOR(room, HW_Q8_0, 16, 32);
    struct harness h;
    void *queue;
    (void)state;
    open_with(&h, HW_PRECISION_FP32, "");
    assert_int_equal(h.plugin.queue_open(h.device, &desc, &queue), HW_OK);
    assert_int_equal(h.plugin.pack(queue, &packed, &weights), HW_UNSUPPORTED);
    assert_non_null(strstr(h.message, "on this queue"));
    h.plugin.queue_close(queue);
    harness_close(&h);
}

/* Layouts that the plugin does not produce: an earlier one, and one that never existed. */
static void other_layouts_are_refused(void **state)
{
    static const uint32_t others[] = { 1, 77 };
    static const int32_t of[] = { HW_Q8_0, HW_F32 };
    static float c[ROWS];
    struct harness h;
    (void)state;
    open_with(&h, HW_PRECISION_FP32, "");
    for (int i = 0; i < 4; i++) {
        struct hw_matmul op = { .a = TENSOR(activations, HW_F32, 1, 32),
                                .b = TENSOR(blocks, of[i / 2], ROWS, 32),
                                .c = TENSOR(c, HW_F32, 1, ROWS),
                                .transpose_b = 1 };
        op.b.layout = others[i % 2];
        assert_int_equal(h.plugin.ops->matmul(h.device, h.queue, &op), HW_UNSUPPORTED);
    }
    harness_close(&h);
}

/* Panels consist of rows of [N,K]. Panels of [K,N] would be too few. */
static void packed_weights_are_transposed(void **state)
{
    static float b[ROWS * 96], room[(ROWS + 15) * 96], c[96];
    struct hw_tensor packed = TENSOR(room, HW_F32, ROWS, 96);
    struct harness h;
    (void)state;
    open_with(&h, HW_PRECISION_FP32, "");
    const struct hw_tensor weights = TENSOR(b, HW_F32, ROWS, 96);
    assert_int_equal(
        h.plugin.pack_size(h.device, &weights, &(uint64_t){ 0 }, &packed.layout), HW_OK);
    assert_int_equal(h.plugin.pack(h.queue, &packed, &weights), HW_OK);
    const struct hw_matmul op = { .a = TENSOR(activations, HW_F32, 1, ROWS),
                                  .b = packed,
                                  .c = TENSOR(c, HW_F32, 1, 96) };
    assert_int_equal(h.plugin.ops->matmul(h.device, h.queue, &op), HW_UNSUPPORTED);
    assert_non_null(strstr(h.message, "packed"));
    harness_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_of_panels_have_parts),
        cmocka_unit_test(the_rest_is_refused),
        cmocka_unit_test(queues_without_a_row_are_refused),
        cmocka_unit_test(other_layouts_are_refused),
        cmocka_unit_test(packed_weights_are_transposed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
