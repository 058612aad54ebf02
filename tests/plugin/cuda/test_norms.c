/* SPDX-License-Identifier: MIT */
/* An add_rmsnorm between two matmuls of one row in a graph, as in a decoder: the first launch adds
 * to the residual, the second one normalises the row. */
#include "tuned.h"

/* A projection, add_rmsnorm, and two gated products of the result. */
struct layer {
    struct hw_tensor row, residual;
    struct hw_matmul before, behind[2];
    struct hw_add_rmsnorm norm;
    struct hw_swiglu swiglu;
};

static struct hw_tensor weights(int64_t rows, int64_t cols)
{
    return tensor(hopper, HW_BUFFER_READ_ONLY, HW_BF16, rows, cols);
}

static struct hw_tensor floats(int64_t cols)
{
    return tensor(hopper, 0, HW_F32, 1, cols);
}

static struct hw_tensor norm_weight(uint32_t flags, int64_t cols)
{
    struct hw_tensor t;
    ok(hw_tensor_alloc(hopper, flags, HW_F32, 1, &cols, &t));
    return t;
}

static struct layer layer_of(int64_t cols)
{
    struct layer l = { .row = floats(cols), .residual = floats(cols) };
    l.before = (struct hw_matmul){
        .a = floats(COLS), .b = weights(cols, COLS), .c = l.row, .transpose_b = 1
    };
    l.norm = (struct hw_add_rmsnorm){ .residual = l.residual,
                                      .x = l.row,
                                      .weight = norm_weight(HW_BUFFER_READ_ONLY, cols),
                                      .y = l.row,
                                      .eps = 1e-5f };
    for (int i = 0; i < 2; i++)
        l.behind[i] = (struct hw_matmul){
            .a = l.row, .b = weights(ROWS, cols), .c = floats(ROWS), .transpose_b = 1
        };
    l.swiglu = (struct hw_swiglu){ .gate = l.behind[0].c,
                                   .up = l.behind[1].c,
                                   .y = l.behind[0].c };
    return l;
}

static void record_layer(const struct layer *l)
{
    record();
    ok(hw_matmul(queue, &l->before));
    ok(hw_add_rmsnorm(queue, &l->norm));
    ok(hw_matmul(queue, &l->behind[0]));
    ok(hw_matmul(queue, &l->behind[1]));
    ok(hw_swiglu(queue, &l->swiglu));
}

static void both_launches_share_the_norm(void **state)
{
    const struct layer l = layer_of(4096);
    (void)state;
    record_layer(&l);
    built("gemv_ gemv_");
    const struct gemv_args *before = &seen[0].gemv, *behind = &seen[1].gemv;
    assert_int_equal(before->residual, address_of(&l.residual));
    assert_int_equal(before->part[0].c, 0); /* the norm is stored over it */
    assert_int_equal(before->norm, 0);
    assert_int_equal(behind->a, address_of(&l.residual));
    assert_int_equal(behind->norm, address_of(&l.norm.weight));
    assert_int_equal(behind->normed, address_of(&l.row));
    assert_int_equal(behind->residual, 0);
    assert_true(behind->eps == 1e-5f);
    assert_true(behind->gated);
    assert_true(seen[0].early && seen[1].early);
}

/* The projection's result is stored if the norm writes to another place. */
static void a_product_that_stays_is_stored(void **state)
{
    struct layer l = layer_of(COLS);
    (void)state;
    l.norm.y = l.behind[0].a = l.behind[1].a = floats(COLS);
    record_layer(&l);
    built("gemv_ gemv_");
    assert_int_equal(seen[0].gemv.part[0].c, address_of(&l.row));
    assert_int_equal(seen[1].gemv.normed, address_of(&l.norm.y));
}

static void stays_apart(const struct layer *l, const char *names)
{
    record_layer(l);
    built(names);
    for (int i = 0; i < 3; i++)
        assert_int_equal(seen[i].gemv.norm | seen[i].gemv.residual, 0);
}

static void norms_that_do_not_fit_are_launches(void **state)
{
    static const char *const apart = "gemv_ rows_add_rmsnorm gemv_";
    const struct layer good = layer_of(COLS), wide = layer_of(4096 + 128);
    struct layer l = good;
    (void)state;
    stays_apart(&wide, apart);
    l.norm.weight = norm_weight(0, COLS); /* an op may write it */
    stays_apart(&l, apart);
    l = good;
    l.norm.x = floats(COLS); /* not the projection's result */
    stays_apart(&l, apart);
    l = good;
    l.norm.y = floats(COLS); /* not an operand of the products */
    stays_apart(&l, apart);
    l = good;
    l.before.a = l.residual; /* read by other groups while one adds to it */
    stays_apart(&l, apart);
    l = good;
    l.before.bias = norm_weight(0, COLS);
    l.norm.residual.buffer = l.before.bias.buffer;
    l.norm.residual.offset = l.before.bias.offset;
    stays_apart(&l, apart);
}

/* No group of the second launch may write the residual while another group reads it. */
static void results_over_the_residual_stay_apart(void **state)
{
    struct layer l = layer_of(ROWS);
    (void)state;
    l.behind[1].c = l.swiglu.up = l.residual;
    stays_apart(&l, "gemv_ rows_add_rmsnorm gemv_");
    l = layer_of(ROWS);
    l.swiglu.y = l.residual;
    stays_apart(&l, "gemv_ rows_add_rmsnorm gemv_");
}

/* Each op waits for the row of the op before it. */
static void an_op_between_stays_between(void **state)
{
    const struct layer l = layer_of(COLS);
    (void)state;
    record();
    ok(hw_matmul(queue, &l.before));
    ok(hw_add(queue, &(struct hw_add){ l.row, l.row, l.row }));
    ok(hw_add_rmsnorm(queue, &l.norm));
    ok(hw_matmul(queue, &l.behind[0]));
    built("gemv_ rows_add rows_add_rmsnorm gemv_");
    record();
    ok(hw_matmul(queue, &l.before));
    ok(hw_add_rmsnorm(queue, &l.norm));
    built("gemv_ rows_add_rmsnorm");
}

static void a_row_that_is_asked_for_is_launched(void **state)
{
    static const char *const rows[] = { "add_rmsnorm", "rows_add_rmsnorm" };
    const struct layer l = layer_of(COLS);
    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct hw_queue_options options = { .size = sizeof options,
                                                  .kernel = rows[i] };
        hw_queue_close(queue);
        ok(hw_queue_open(hopper, &options, &queue));
        stays_apart(&l, i ? "gemv_ rows_add_rmsnorm gemv_" : "gemv_ add_rmsnorm_f32 gemv_");
    }
}

/* On 9.0 a group has more warps, which load the row. A b with many rows has its own kernel. */
static void large_products_take_more_rows_at_a_time(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        ok(hw_matmul(queue, &(struct hw_matmul){ .a = floats(256),
                                                 .b = weights(8447 + i, 256),
                                                 .c = floats(8447 + i),
                                                 .transpose_b = 1 }));
        launched(i == 0 ? "gemv_bf16" : "gemv_tall_bf16");
    }
}

/* ---- reading ahead ---- */

static struct layer layer_with(int64_t rows)
{
    struct layer l = layer_of(COLS);
    for (int i = 0; i < 2; i++) {
        l.behind[i].b = weights(rows, COLS);
        l.behind[i].c = floats(rows);
    }
    l.swiglu = (struct hw_swiglu){ .gate = l.behind[0].c,
                                   .up = l.behind[1].c,
                                   .y = l.behind[0].c };
    return l;
}

static void a_small_launch_reads_ahead_for_a_large_one(void **state)
{
    const struct layer l = layer_with(10 * ROWS); /* 10 MiB each, and 2 before */
    (void)state;
    record_layer(&l);
    built("gemv_ gemv_");
    for (int i = 0; i < 2; i++)
        assert_int_equal(seen[0].gemv.ahead[i], address_of(&l.behind[i].b));
    assert_int_equal(seen[0].gemv.ahead_bytes, 8 << 20);
    assert_int_equal(seen[1].gemv.ahead_bytes, 0);
}

static void nothing_is_read_ahead_while_memory_is_busy(void **state)
{
    struct layer l = layer_with(ROWS); /* as many weights as before it */
    (void)state;
    record_layer(&l);
    built("gemv_ gemv_");
    assert_int_equal(seen[0].gemv.ahead_bytes, 0);
    l = layer_with(6 * ROWS);
    l.before.a = floats(4 * COLS); /* more weights than the rings hold */
    l.before.b = weights(COLS, 4 * COLS);
    record_layer(&l);
    built("gemv_ gemv_");
    assert_int_equal(seen[0].gemv.ahead_bytes, 0);
}

/* Reads ahead only at addresses that the instruction supports, within the part. */
static void reads_ahead_within_parts(const struct layer *l)
{
    record_layer(l);
    built("gemv_ gemv_");
    const struct gemv_args *args = &seen[0].gemv;
    assert_true(args->ahead_bytes > 0);
    for (int i = 0; i < 2; i++) {
        const struct hw_tensor *b = &l->behind[i].b;
        assert_int_equal(args->ahead[i] % 16, 0);
        assert_true(args->ahead[i] >= address_of(b));
        assert_true(args->ahead[i] + (uint64_t)args->ahead_bytes <=
                    address_of(b) + hw_tensor_bytes(b));
    }
}

static void blocks_at_any_address_are_read_ahead(void **state)
{
    enum { MANY = 2 * ROWS, BLOCK = 34 };
    struct layer l = layer_with(MANY);
    (void)state;
    for (int i = 0; i < 2; i++) {
        l.behind[i].b = tensor(hopper, HW_BUFFER_READ_ONLY, HW_Q8_0, MANY + 1, COLS);
        l.behind[i].b.extent[0] = MANY;
        l.behind[i].b.offset = BLOCK;
    }
    reads_ahead_within_parts(&l);
}

/* Gate and up in one buffer, with alternating rows. */
static void rows_in_turns_are_read_ahead(void **state)
{
    enum { MANY = 3 * ROWS };
    struct layer l = layer_with(MANY);
    const struct hw_tensor both = weights(2 * MANY, COLS);
    (void)state;
    for (int i = 0; i < 2; i++) {
        l.behind[i].b = both;
        l.behind[i].b.extent[0] = MANY;
        l.behind[i].b.offset += (uint64_t)(i * both.stride[0]);
        l.behind[i].b.stride[0] *= 2;
    }
    reads_ahead_within_parts(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(both_launches_share_the_norm),
        TEST(a_product_that_stays_is_stored),
        TEST(norms_that_do_not_fit_are_launches),
        TEST(results_over_the_residual_stay_apart),
        TEST(an_op_between_stays_between),
        TEST(a_row_that_is_asked_for_is_launched),
        TEST(large_products_take_more_rows_at_a_time),
        TEST(a_small_launch_reads_ahead_for_a_large_one),
        TEST(nothing_is_read_ahead_while_memory_is_busy),
        TEST(blocks_at_any_address_are_read_ahead),
        TEST(rows_in_turns_are_read_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
