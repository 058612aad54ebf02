/* SPDX-License-Identifier: MIT */
/* test_heads.c - a decoder's work on the heads of one token: rope, storing k and v, and attention,
 * as one launch. */
#include "tuned.h"

/* ---- rope, and storing k and v ---- */

/* A layer's ops on q, k and v of one token. */
struct layer {
    struct hw_rope q, k;
    struct hw_set_rows store_k, store_v;
};

static struct hw_rope rope_of(struct hw_tensor positions, int64_t heads)
{
    struct hw_rope op = { .positions = positions };
    ok(hw_tensor_alloc(hopper, 0, HW_F32, 3, (const int64_t[]){ 1, heads, SIZE }, &op.x));
    op.y = op.x;
    return op;
}

static struct layer layer(int32_t cache)
{
    const int64_t one = 1;
    struct hw_tensor positions;
    ok(hw_tensor_alloc(hopper, 0, HW_I32, 1, &one, &positions));
    struct layer l = { .q = rope_of(positions, HEADS), .k = rope_of(positions, KV_HEADS) };
    l.store_k = (struct hw_set_rows){
        .x = hw_view_2d(l.k.y.buffer, 0, HW_F32, 1, KV_HEADS * SIZE),
        .rows = positions,
        .table = tensor(hopper, 0, cache, CACHED, KV_HEADS * SIZE),
    };
    l.store_v = (struct hw_set_rows){
        .x = tensor(hopper, 0, HW_F32, 1, KV_HEADS * SIZE),
        .rows = positions,
        .table = tensor(hopper, 0, cache, CACHED, KV_HEADS * SIZE),
    };
    return l;
}

static void record_heads(const struct layer *l)
{
    ok(hw_rope(queue, &l->q));
    ok(hw_rope(queue, &l->k));
    ok(hw_set_rows(queue, &l->store_v));
    ok(hw_set_rows(queue, &l->store_k));
}

static void record_layer(const struct layer *l)
{
    record();
    record_heads(l);
}

static void heads_of_a_layer_are_one_launch(void **state)
{
    static const int32_t caches[] = { HW_F32, HW_F16, HW_BF16, HW_Q8_0 };
    (void)state;
    for (size_t i = 0; i < sizeof caches / sizeof caches[0]; i++) {
        const struct layer l = layer(caches[i]);
        record_layer(&l);
        built("heads_move");
        const struct heads_args *args = &seen[0].heads;
        assert_int_equal(args->jobs, 3); /* k is stored by the warps that rotate it */
        assert_int_equal(args->job[0].y, address_of(&l.q.y));
        assert_int_equal(args->job[0].table, 0);
        assert_int_equal(args->job[1].y, address_of(&l.k.y));
        assert_int_equal(args->job[1].table, address_of(&l.store_k.table));
        assert_int_equal(args->job[2].x, address_of(&l.store_v.x));
        assert_int_equal(args->job[2].table, address_of(&l.store_v.table));
        assert_int_equal(args->job[2].y, 0);
        assert_true(seen[0].early);
    }
}

static void heads_that_depend_on_another_stay_apart(void **state)
{
    const struct layer good = layer(HW_F32);
    struct layer l = good;
    (void)state;
    l.k.x = l.q.y; /* rotated once more */
    l.k.x.extent[1] = KV_HEADS;
    record_layer(&l);
    built("heads_move heads_move");
    l = good;
    l.store_v.table = l.store_k.table; /* the last one wins */
    record_layer(&l);
    built("heads_move heads_move");
    l = good;
    l.store_v.x = hw_view_2d(l.store_k.table.buffer, 0, HW_F32, 1, KV_HEADS * SIZE);
    record_layer(&l);
    built("heads_move heads_move");
    for (uint64_t head = 0; head < KV_HEADS; head++) { /* stores one of those rotated */
        l = good;
        l.store_k.x = hw_view_2d(l.k.y.buffer, head * SIZE * 4, HW_F32, 1, SIZE);
        l.store_k.table = tensor(hopper, 0, HW_F32, CACHED, SIZE);
        record_layer(&l);
        built("heads_move heads_move");
    }
}

/* ---- rope, storing k and v, and attention ---- */

static struct hw_tensor by_head(struct hw_tensor t, int64_t heads)
{
    return hw_view_3d(t.buffer, t.offset, t.dtype, t.extent[0], heads, t.extent[1] / heads);
}

/* The attention of the layer. */
static struct hw_attention attention_of(const struct layer *l)
{
    const int64_t one = 1;
    struct hw_attention op = {
        .q = l->q.y,
        .k = by_head(l->store_k.table, KV_HEADS),
        .v = by_head(l->store_v.table, KV_HEADS),
        .causal = 1,
    };
    ok(hw_tensor_alloc(hopper, 0, HW_I32, 1, &one, &op.lengths));
    ok(hw_tensor_alloc(hopper, 0, HW_F32, 3, (const int64_t[]){ 1, HEADS, SIZE }, &op.y));
    return op;
}

static void record_step(const struct layer *l, const struct hw_attention *attention)
{
    record_layer(l);
    ok(hw_attention(queue, attention));
}

static void a_decoding_step_is_one_launch(void **state)
{
    static const struct {
        int32_t cache;
        const char *kernel;
    } cases[] = { { HW_F32, "step_f32_128" },
                  { HW_F16, "step_f16_128" },
                  { HW_BF16, "step_bf16_128" },
                  { HW_Q8_0, "step_q8_0_128" } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct layer l = layer(cases[i].cache);
        const struct hw_attention attention = attention_of(&l);
        record_step(&l, &attention);
        built(cases[i].kernel);
        const struct decode_step_args *args = &seen[0].step;
        assert_int_equal(args->q.y, address_of(&l.q.y));
        assert_int_equal(args->k.y, address_of(&l.k.y));
        assert_int_equal(args->k.table, address_of(&attention.k));
        assert_int_equal(args->v.x, address_of(&l.store_v.x));
        assert_int_equal(args->v.table, address_of(&attention.v));
        assert_int_equal(args->decode.y, address_of(&attention.y));
        assert_int_equal(seen[0].groups[1], KV_HEADS);
        assert_true(seen[0].early);
    }
}

static void attention_of_something_else_stays_apart(void **state)
{
    const struct layer good = layer(HW_F16);
    const struct hw_attention fits = attention_of(&good);
    struct layer l = good;
    struct hw_attention attention = fits;
    (void)state;
    l.k.theta = 500000; /* other angles */
    record_step(&l, &attention);
    built("heads_move decode_f16_128");
    attention.q = tensor(hopper, 0, HW_F32, 1, HEADS * SIZE);
    attention.q = by_head(attention.q, HEADS);
    record_step(&good, &attention);
    built("heads_move decode_f16_128");
    attention = fits;
    attention.v = by_head(tensor(hopper, 0, HW_F16, CACHED, KV_HEADS * SIZE), KV_HEADS);
    record_step(&good, &attention);
    built("heads_move decode_f16_128");
    attention = fits;
    attention.y = hw_view_3d(good.store_v.x.buffer, 0, HW_F32, 1, KV_HEADS, SIZE);
    attention.q.extent[1] = KV_HEADS; /* to where other groups still read v from */
    record_step(&good, &attention);
    built("heads_move decode_f16_128");
    attention = fits;
    attention.lengths = good.q.positions;
    attention.lengths.buffer = good.k.y.buffer; /* written by rope */
    record_step(&good, &attention);
    built("heads_move decode_f16_128");
    l = good; /* row numbers that are in one table alone */
    l.store_v.table.extent[0] = CACHED / 2;
    record_step(&l, &fits);
    built("heads_move decode_f16_128");
    l.store_k.table.extent[0] = CACHED / 2; /* keys behind both */
    record_step(&l, &fits);
    built("heads_move decode_f16_128");
    record(); /* only some of the ops */
    ok(hw_rope(queue, &good.q));
    ok(hw_set_rows(queue, &good.store_v));
    ok(hw_attention(queue, &fits));
    built("heads_move decode_f16_128");
}

/* A layer of the same token, with theta. */
static struct layer layer_behind(const struct layer *first, float theta)
{
    struct layer l = layer(HW_F16);
    l.q.positions = l.k.positions = first->q.positions;
    l.store_k.rows = l.store_v.rows = first->q.positions;
    l.q.theta = l.k.theta = theta;
    return l;
}

static void layers_of_a_token_share_its_angles(void **state)
{
    const struct layer first = layer(HW_F16), second = layer_behind(&first, first.q.theta),
                       other = layer_behind(&first, 500000);
    const struct layer *layers[] = { &first, &other, &second };
    const struct hw_attention attention[] = { attention_of(&first), attention_of(&other),
                                              attention_of(&second) };
    (void)state;
    record();
    for (int i = 0; i < 3; i++) {
        record_heads(layers[i]);
        ok(hw_attention(queue, &attention[i]));
    }
    built("step_f16_128 step_f16_128 step_f16_128");
    assert_true(seen[0].step.angles);
    assert_false(seen[0].step.angles_there);
    assert_false(seen[1].step.angles);
    assert_false(seen[1].step.angles_there);
    assert_int_equal(seen[2].step.angles, seen[0].step.angles);
    assert_true(seen[2].step.angles_there);
    for (int i = 0; i < 3; i++) {
        const struct decode_step_args *args = &seen[i].step;
        assert_true(args->decode.constant);
        assert_true(args->angles + DECODE_ANGLES <= args->decode.counters || !args->angles);
    }
}

static void what_another_op_writes_is_not_read_early(void **state)
{
    const struct layer l = layer(HW_F16);
    const struct hw_attention attention = attention_of(&l);
    const struct hw_tensor x = tensor(hopper, 0, HW_F32, 1, COLS);
    const struct hw_tensor written[] = { attention.lengths, l.q.positions };
    struct hw_set_rows store = l.store_v;
    (void)state;
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        record();
        ok(hw_argmax(queue, &(struct hw_argmax){ .x = x, .y = written[i] }));
        record_heads(&l);
        ok(hw_attention(queue, &attention));
        built("rows_argmax step_f16_128");
        assert_false(seen[1].step.decode.constant);
        assert_false(seen[1].step.angles);
    }
    record_step(&l, &attention); /* the graph may be launched again */
    store.x = tensor(hopper, 0, HW_F32, 1, KV_HEADS * SIZE);
    ok(hw_set_rows(queue, &store));
    built("step_f16_128 heads_move");
    assert_false(seen[0].step.decode.constant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(heads_of_a_layer_are_one_launch),
        TEST(heads_that_depend_on_another_stay_apart),
        TEST(a_decoding_step_is_one_launch),
        TEST(attention_of_something_else_stays_apart),
        TEST(layers_of_a_token_share_its_angles),
        TEST(what_another_op_writes_is_not_read_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
