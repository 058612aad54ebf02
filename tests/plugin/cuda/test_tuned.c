/* SPDX-License-Identifier: MIT */
/* test_tuned.c - products of one row, early launches, workspaces, and driver calls that fail.
 * test_products.c tests other products, test_heads.c tests heads. */
#include "tuned.h"

#define MB (UINT64_C(1) << 20)

/* ---- products of one token ---- */

static void products_of_one_a_are_one_launch(void **state)
{
    static const int32_t dtypes[] = { HW_F32, HW_F16, HW_BF16, HW_Q8_0, HW_Q4_0, HW_Q4_K };
    (void)state;
    for (size_t k = 0; k < sizeof dtypes / sizeof dtypes[0]; k++) {
        const struct products p = products(hopper, dtypes[k]);
        record();
        for (int i = 0; i < 3; i++)
            ok(hw_matmul(queue, &p.op[i]));
        built("gemv_");
        const struct gemv_args *args = &seen[0].gemv;
        assert_int_equal(args->parts, 3);
        assert_int_equal(args->rows, 3 * ROWS);
        assert_int_equal(args->k, COLS);
        assert_false(args->gated);
        assert_true(args->constant);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(args->part[i].b, address_of(&p.op[i].b));
            assert_int_equal(args->part[i].c, address_of(&p.op[i].c));
        }
    }
}

/* As in a layer where v has more bits than q and k: the last part may be q6_K, and then some groups
 * compute only that part. No op follows it. */
static void the_last_product_may_have_another_type(void **state)
{
    close_all(state);
    open_with(&(struct hw_options){ .size = sizeof(struct hw_options),
                                    .backends = "cuda",
                                    .fallback = "error",
                                    .precision = "int8" });
    struct products p = products(hopper, HW_Q4_K);
    const struct hw_swiglu swiglu = { .gate = p.op[0].c,
                                      .up = p.op[2].c,
                                      .y = tensor(hopper, 0, HW_F32, 1, ROWS) };
    p.op[2].b = tensor(hopper, HW_BUFFER_READ_ONLY, HW_Q6_K, ROWS, COLS);
    record();
    for (int i = 0; i < 4; i++)
        ok(hw_matmul(queue, &p.op[i]));
    built("gemv_mixed_q4_K gemv_int8_q4_K");
    assert_int_equal(seen[0].gemv.parts, 3);
    assert_int_equal(seen[0].gemv.rows, 3 * ROWS);
    assert_int_equal(seen[0].gemv.part[2].b, address_of(&p.op[2].b));
    assert_int_equal(seen[0].groups[0], 132);
    /* 512 rows are 16 groups of 16 warps, with two rows per warp */
    assert_int_equal(seen[0].gemv.groups, 132 - 16);
    record();
    ok(hw_matmul(queue, &p.op[0]));
    ok(hw_matmul(queue, &p.op[2]));
    ok(hw_swiglu(queue, &swiglu));
    built("gemv_mixed_q4_K rows_swiglu");
    record();
    ok(hw_matmul(queue, &p.op[2]));
    ok(hw_matmul(queue, &p.op[0]));
    built("gemv_int8_q6_K gemv_int8_q4_K");
}

/* A launch takes this many; the next product starts another launch. */
static void a_fourth_product_is_another_launch(void **state)
{
    const struct products p = products(hopper, HW_BF16);
    (void)state;
    record();
    for (int i = 0; i < 4; i++)
        ok(hw_matmul(queue, &p.op[i]));
    built("gemv_ gemv_");
    assert_int_equal(seen[0].gemv.parts, GEMV_PARTS);
    assert_int_equal(seen[1].gemv.parts, 4 - GEMV_PARTS);
}

/* Two products, one of which `change` modifies so that they are not fused. */
static void stay_apart(void (*change)(struct products *p))
{
    struct products p = products(hopper, HW_BF16);
    change(&p);
    record();
    ok(hw_matmul(queue, &p.op[0]));
    ok(hw_matmul(queue, &p.op[1]));
    built("gemv_ gemv_");
    assert_int_equal(seen[0].gemv.parts, 1);
    assert_int_equal(seen[1].gemv.parts, 1);
}

static void another_a(struct products *p)
{
    p->op[1].a = tensor(hopper, 0, HW_F32, 1, COLS);
}

static void another_type(struct products *p)
{
    p->op[1].b = tensor(hopper, HW_BUFFER_READ_ONLY, HW_Q8_0, ROWS, COLS);
}

static void another_result(struct products *p)
{
    p->op[1].c = tensor(hopper, 0, HW_F16, 1, ROWS);
}

static void the_same_result(struct products *p)
{
    p->op[1].c = p->op[0].c;
}

/* The first product writes the second one's bias. */
static void a_bias_that_is_written(struct products *p)
{
    p->op[1].bias = hw_view_1d(p->op[0].c.buffer, 0, HW_F32, ROWS);
}

/* The first product writes weights of the second one. */
static void weights_that_are_written(struct products *p)
{
    p->op[1].b = tensor(hopper, 0, HW_BF16, ROWS, COLS);
    p->op[0].c = hw_view_2d(p->op[1].b.buffer, 4096, HW_F32, 1, ROWS);
}

static void products_that_differ_or_depend_stay_apart(void **state)
{
    (void)state;
    stay_apart(another_a);
    stay_apart(another_type);
    stay_apart(another_result);
    stay_apart(the_same_result);
    stay_apart(a_bias_that_is_written);
    stay_apart(weights_that_are_written);
}

static void an_op_between_keeps_the_order(void **state)
{
    const struct products p = products(hopper, HW_BF16);
    (void)state;
    record();
    ok(hw_matmul(queue, &p.op[0]));
    ok(hw_silu(queue, &(struct hw_silu){ .x = p.a, .y = p.a }));
    ok(hw_matmul(queue, &p.op[1]));
    built("gemv_ rows_silu gemv_");
}

/* Weights that an op may write are not read before earlier work has completed. */
static void only_read_only_weights_are_read_early(void **state)
{
    struct products p = products(hopper, HW_BF16);
    (void)state;
    ok(hw_matmul(queue, &p.op[0]));
    p.op[1].b = tensor(hopper, 0, HW_BF16, ROWS, COLS);
    ok(hw_matmul(queue, &p.op[1]));
    assert_true(seen[0].gemv.constant);
    assert_false(seen[1].gemv.constant);
    launched("gemv_ gemv_");
    record();
    ok(hw_matmul(queue, &p.op[0]));
    ok(hw_matmul(queue, &p.op[1]));
    built("gemv_");
    assert_int_equal(seen[0].gemv.parts, 2);
    assert_false(seen[0].gemv.constant);
}

/* ---- gate, up, swiglu ---- */

static struct hw_swiglu swiglu_of(const struct products *p)
{
    return (struct hw_swiglu){ .gate = p->op[0].c,
                               .up = p->op[1].c,
                               .y = tensor(hopper, 0, HW_F32, 1, ROWS) };
}

static void record_gated(const struct products *p, const struct hw_swiglu *swiglu)
{
    record();
    ok(hw_matmul(queue, &p->op[0]));
    ok(hw_matmul(queue, &p->op[1]));
    ok(hw_swiglu(queue, swiglu));
}

static void swiglu_of_two_products_is_one_launch(void **state)
{
    const struct products p = products(hopper, HW_Q4_K);
    struct hw_swiglu swiglu = swiglu_of(&p);
    (void)state;
    for (int in_place = 0; in_place < 2; in_place++) {
        record_gated(&p, &swiglu);
        built("gemv_");
        assert_int_equal(seen[0].gemv.parts, 2);
        assert_true(seen[0].gemv.gated);
        assert_int_equal(seen[0].gemv.y, address_of(&swiglu.y));
        assert_int_equal(seen[0].groups[0], 132);
        swiglu.y = swiglu.gate;
    }
}

static void swiglu_of_something_else_is_a_launch_of_its_own(void **state)
{
    struct products p = products(hopper, HW_BF16);
    const struct hw_swiglu good = swiglu_of(&p);
    struct hw_swiglu swiglu = { .gate = good.up, .up = good.gate, .y = good.y };
    (void)state;
    record_gated(&p, &swiglu);
    built("gemv_ rows_swiglu");
    assert_false(seen[0].gemv.gated);
    swiglu = good;
    swiglu.up = tensor(hopper, 0, HW_F32, 1, ROWS);
    record_gated(&p, &swiglu);
    built("gemv_ rows_swiglu");
    swiglu = good;
    swiglu.y = good.up; /* which the launch has yet to write */
    record_gated(&p, &swiglu);
    built("gemv_ rows_swiglu");
    record();
    for (int i = 0; i < 3; i++)
        ok(hw_matmul(queue, &p.op[i]));
    ok(hw_swiglu(queue, &good));
    built("gemv_ rows_swiglu");
}

/* A setting that names a row of swiglu takes effect. */
static void a_row_that_is_asked_for_is_launched(void **state)
{
    const struct hw_queue_options options = { .size = sizeof options, .kernel = "swiglu" };
    const struct products p = products(hopper, HW_BF16);
    const struct hw_swiglu swiglu = swiglu_of(&p);
    (void)state;
    hw_queue_close(queue);
    ok(hw_queue_open(hopper, &options, &queue));
    record_gated(&p, &swiglu);
    built("gemv_ swiglu_f32");
}

/* ---- early launches ---- */

static bool last_is_early(void)
{
    assert_true(count > 0);
    return seen[count - 1].early;
}

static struct hw_copy copy_to(const struct hw_tensor *to)
{
    struct hw_tensor from = tensor(hopper, 0, to->dtype, ROWS, COLS);
    return (struct hw_copy){ .src = from, .dst = *to };
}

/* A copy may have written the weights. */
static void nothing_is_early_after_a_copy(void **state)
{
    const struct products p = products(hopper, HW_BF16);
    const struct hw_copy copy = copy_to(&p.op[0].b);
    (void)state;
    ok(hw_matmul(queue, &p.op[0]));
    assert_true(last_is_early());
    ok(hw_copy(queue, &copy));
    ok(hw_matmul(queue, &p.op[0]));
    assert_false(last_is_early());
    ok(hw_matmul(queue, &p.op[0]));
    assert_true(last_is_early());
    record();
    ok(hw_silu(queue, &(struct hw_silu){ .x = p.a, .y = p.a }));
    ok(hw_matmul(queue, &p.op[0]));
    ok(hw_copy(queue, &copy));
    ok(hw_matmul(queue, &p.op[1]));
    ok(hw_silu(queue, &(struct hw_silu){ .x = p.a, .y = p.a }));
    built("rows_silu gemv_ copy gemv_ rows_silu");
    assert_true(seen[1].early);
    assert_false(seen[3].early);
    assert_true(seen[4].early);
}

static int32_t submit_nothing(void *user, void *stream)
{
    (void)user;
    return stream ? HW_OK : HW_DRIVER;
}

/* The memory that the application's work writes is unknown. */
static void nothing_is_early_after_work_of_the_application(void **state)
{
    const struct products p = products(hopper, HW_BF16);
    void *stream;
    (void)state;
    record();
    ok(hw_matmul(queue, &p.op[0]));
    ok(hw_queue_call(queue, "cuda.stream", submit_nothing, NULL));
    ok(hw_matmul(queue, &p.op[1]));
    built("gemv_ gemv_");
    assert_false(seen[1].early);
    ok(hw_queue_export(queue, "cuda.stream", &stream));
    ok(hw_matmul(queue, &p.op[0]));
    assert_false(last_is_early());
}

static void only_9_0_and_later_launch_early(void **state)
{
    struct hw_device *const devices[] = { ampere, turing };
    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct products p = products(devices[i], HW_BF16);
        struct hw_queue *on;
        ok(hw_queue_open(devices[i], NULL, &on));
        ok(hw_matmul(on, &p.op[0]));
        assert_false(last_is_early());
        launched(i == 0 ? "gemv_bf16" : "matmul_vec");
        ok(hw_queue_wait(on));
    }
    assert_int_equal(faults_count("launch_ex"), 0);
}

/* ---- the memory of a group ---- */

static struct seen launch_one(struct hw_device *device, int32_t dtype, int64_t cols)
{
    const struct hw_matmul op = {
        .a = tensor(device, 0, HW_F32, 1, cols),
        .b = tensor(device, HW_BUFFER_READ_ONLY, dtype, ROWS, cols),
        .c = tensor(device, 0, HW_F32, 1, ROWS),
        .transpose_b = 1,
    };
    struct hw_queue *on;
    ok(hw_queue_open(device, NULL, &on));
    count = 0;
    ok(hw_matmul(on, &op));
    ok(hw_queue_wait(on));
    hw_queue_close(on);
    assert_int_equal(count, 1);
    return seen[0];
}

/* The memory per group, chosen so that no second group fits. */
static void groups_have_a_multiprocessor_each(void **state)
{
    enum { DECLARED = 2048, RESERVED = 1024 }; /* at most; for each group */
    static const int64_t cols[] = { 256, 4096, 14336 };
    static const struct {
        struct hw_device **device;
        unsigned kib;
    } cards[] = { { &hopper, 227 }, { &blackwell, 99 } };
    (void)state;
    for (int card = 0; card < 2; card++)
        for (int i = 0; i < 3; i++) {
            const struct seen s = launch_one(*cards[card].device, HW_BF16, cols[i]);
            assert_string_equal(s.kernel, "gemv_bf16");
            assert_true(s.early);
            assert_in_range(s.gemv.stages, 2, GEMV_STAGES);
            assert_true(2 * (s.shared + DECLARED + RESERVED) >
                        cards[card].kib * 1024 + RESERVED);
            assert_true(s.shared + DECLARED <= cards[card].kib * 1024);
        }
}

/* A row of a that does not fit into shared memory uses another kernel. */
static void long_rows_need_a_large_memory(void **state)
{
    (void)state;
    assert_string_equal(launch_one(hopper, HW_BF16, 30000).kernel, "gemv_bf16");
    assert_string_not_equal(launch_one(blackwell, HW_BF16, 30000).kernel, "gemv_bf16");
}

/* ---- workspaces ---- */

static uint64_t held(void)
{
    struct hw_pool_stats stats = { .size = sizeof stats };
    ok(hw_pool_stats(hopper, &stats));
    assert_int_equal(stats.held, fake_driver_used(0));
    return stats.held;
}

/* One query of many keys, which several groups share: their results are in the workspace. */
static struct hw_attention attention(void)
{
    enum { KEYS = 4096 };
    const int64_t q[] = { 1, HEADS, SIZE }, k[] = { KEYS, 1, SIZE };
    struct hw_attention op = { .causal = 1 };
    ok(hw_tensor_alloc(hopper, 0, HW_F16, 3, q, &op.q));
    ok(hw_tensor_alloc(hopper, 0, HW_F16, 3, k, &op.k));
    ok(hw_tensor_alloc(hopper, 0, HW_F16, 3, k, &op.v));
    ok(hw_tensor_alloc(hopper, 0, HW_F16, 3, q, &op.y));
    return op;
}

/* Keys are read before earlier work has completed, if the whole graph only reads them. */
static void constant_keys_are_read_early(void **state)
{
    const struct hw_attention op = attention();
    const struct hw_tensor *written[] = { &op.k, &op.v };
    struct hw_graph *graph;
    (void)state;
    ok(hw_attention(queue, &op));
    assert_false(seen[0].decode.constant);
    launched("decode_f16_128");
    record();
    ok(hw_attention(queue, &op));
    ok(hw_attention(queue, &op));
    built("decode_f16_128 decode_f16_128");
    assert_true(seen[0].decode.constant);
    assert_true(seen[1].decode.constant);
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        record();
        ok(hw_attention(queue, &op));
        ok(hw_silu(queue, &(struct hw_silu){ .x = *written[i], .y = *written[i] }));
        ok(hw_queue_end(queue, &graph));
        hw_graph_free(graph);
        assert_false(seen[0].decode.constant);
    }
}

static void workspaces_are_counted(void **state)
{
    const struct hw_attention op = attention();
    struct hw_graph *graph;
    (void)state;
    const uint64_t before = held();
    ok(hw_attention(queue, &op));
    launched("decode_f16_128");
    const uint64_t workspace = held() - before;
    assert_true(workspace > 0);
    ok(hw_attention(queue, &op));
    assert_int_equal(held(), before + workspace);
    ok(hw_queue_record(queue));
    ok(hw_attention(queue, &op));
    ok(hw_queue_end(queue, &graph));
    assert_int_equal(held(), before + 2 * workspace);
    hw_graph_free(graph);
    assert_int_equal(held(), before + workspace);
    hw_queue_close(queue);
    assert_int_equal(held(), before);
}

static void workspaces_are_limited(void **state)
{
    const uint64_t bytes = 64 * MB;
    struct hw_buffer *rest;
    (void)state;
    hw_close(context);
    open_with(&(struct hw_options){ .size = sizeof(struct hw_options),
                                    .backends = "cuda",
                                    .fallback = "error",
                                    .memory_limit = "64M" });
    const struct hw_attention op = attention();
    ok(hw_buffer_alloc(hopper, bytes - held(), 0, &rest));
    fails(HW_NO_MEMORY, "the limit is 64 MiB", hw_attention(queue, &op));
    launched("");
    assert_int_equal(held(), bytes);
    hw_buffer_free(rest);
    ok(hw_attention(queue, &op));
    launched("decode_f16_128");
}

/* ---- calls of the driver that fail ---- */

static void failed_launches_are_told(void **state)
{
    const struct products p = products(hopper, HW_BF16);
    struct hw_graph *graph;
    (void)state;
    faults_arm("module_function", 1, INVALID_VALUE);
    fails(HW_DRIVER,
          "cannot find the kernel gemv_bf16 in matmul_gemv.sm_90a.cubin: invalid",
          hw_matmul(queue, &p.op[0]));
    faults_reset();
    faults_arm("launch_ex", 1, INVALID_VALUE);
    fails(HW_DRIVER, "cannot launch a kernel", hw_matmul(queue, &p.op[0]));
    ok(hw_matmul(queue, &p.op[0]));
    faults_reset();
    faults_arm("launch_ex", 2, INVALID_VALUE);
    record();
    ok(hw_matmul(queue, &p.op[0]));
    ok(hw_silu(queue, &(struct hw_silu){ .x = p.a, .y = p.a }));
    fails(HW_DRIVER, "build a graph on cuda:0: cannot launch a kernel",
          hw_queue_end(queue, &graph));
    record();
    ok(hw_matmul(queue, &p.op[0]));
    ok(hw_silu(queue, &(struct hw_silu){ .x = p.a, .y = p.a }));
    built("gemv_ rows_silu");
}

static void failed_maps_of_tensors_are_told(void **state)
{
    enum { TOKENS = 64 };
    const struct hw_matmul op = { .a = tensor(hopper, 0, HW_BF16, TOKENS, COLS),
                                  .b = tensor(hopper, 0, HW_BF16, ROWS, COLS),
                                  .c = tensor(hopper, 0, HW_BF16, TOKENS, ROWS),
                                  .transpose_b = 1 };
    (void)state;
    ok(hw_matmul(queue, &op));
    launched("wgmma_bf16_");
    const unsigned maps = faults_count("tensor_map_encode");
    assert_true(maps > 0);
    for (unsigned i = 1; i <= maps; i++) {
        faults_reset();
        faults_arm("tensor_map_encode", i, INVALID_VALUE);
        fails(HW_DRIVER, "CUDA_ERROR_INVALID_VALUE", hw_matmul(queue, &op));
        launched("");
    }
    ok(hw_matmul(queue, &op));
    launched("wgmma_bf16_");
}

static void memory_for_a_workspace_that_is_not_there(void **state)
{
    const struct hw_attention op = attention();
    const uint64_t before = held();
    (void)state;
    faults_reset();
    faults_arm("memory_alloc", 1, OUT_OF_MEMORY);
    fails(HW_NO_MEMORY, " of 4294967296 are free: out of memory", hw_attention(queue, &op));
    launched("");
    assert_int_equal(held(), before);
    faults_reset();
    faults_arm("fill", 1, INVALID_VALUE);
    fails(HW_DRIVER, "cannot clear the counters of kernels", hw_attention(queue, &op));
    assert_int_equal(held(), before);
    ok(hw_attention(queue, &op));
    launched("decode_f16_128");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(products_of_one_a_are_one_launch),
        TEST(the_last_product_may_have_another_type),
        TEST(a_fourth_product_is_another_launch),
        TEST(products_that_differ_or_depend_stay_apart),
        TEST(an_op_between_keeps_the_order),
        TEST(only_read_only_weights_are_read_early),
        TEST(swiglu_of_two_products_is_one_launch),
        TEST(swiglu_of_something_else_is_a_launch_of_its_own),
        TEST(a_row_that_is_asked_for_is_launched),
        TEST(nothing_is_early_after_a_copy),
        TEST(nothing_is_early_after_work_of_the_application),
        TEST(only_9_0_and_later_launch_early),
        TEST(groups_have_a_multiprocessor_each),
        TEST(long_rows_need_a_large_memory),
        TEST(constant_keys_are_read_early),
        TEST(workspaces_are_counted),
        TEST(workspaces_are_limited),
        TEST(failed_launches_are_told),
        TEST(failed_maps_of_tensors_are_told),
        TEST(memory_for_a_workspace_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
