/* SPDX-License-Identifier: MIT */
/* test_check.c - invalid calls. Every operand of every op is made wrong in every way
 * that the operand table allows, then each scalar and each rule of an op. Each call must
 * return HW_INVALID and name op and field, and must not reach the plugin. */
#include "calls.h"

#include <math.h>
#include <stdio.h>

/* The call is rejected with op and field in the message, and the plugin is not called. */
static void refused(uint32_t op, const union any_op *args, const char *field,
                    const char *what)
{
    const uint32_t before = plugin_calls;
    const enum hw_status status = submit(op, args);
    char words[64];
    snprintf(words, sizeof words, "%s: ", hw_op_name(op));
    if (status != HW_INVALID || plugin_calls != before || !strstr(hw_message(), words) ||
        !strstr(hw_message() + strlen(words), field)) {
        print_error("%s, %s of %s: %s: %s\n", hw_op_name(op), what, field,
                    hw_status_name((int32_t)status), status ? hw_message() : "accepted");
        _fail(__FILE__, __LINE__);
    }
}

static void valid_calls_reach_the_plugin(void **state)
{
    (void)state;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        const union any_op u = valid_call(op);
        const uint32_t before = plugin_calls;
        ok(submit(op, &u));
        assert_int_equal(plugin_calls, before + 1);
    }
}

/* ---- every operand of every op ---- */

typedef void damage_fn(struct hw_tensor *t);

static void no_dtype(struct hw_tensor *t)
{
    t->dtype = 77;
}
static void other_dtype(struct hw_tensor *t)
{
    t->dtype = HW_I64;
}
static void negative_dtype(struct hw_tensor *t)
{
    t->dtype = -1;
}
static void rank_zero(struct hw_tensor *t)
{
    t->rank = 0;
}
static void rank_five(struct hw_tensor *t)
{
    t->rank = 5;
}
static void rank_negative(struct hw_tensor *t)
{
    t->rank = INT32_MIN;
}
static void negative_extent(struct hw_tensor *t)
{
    t->extent[0] = -1;
}
static void smallest_extent(struct hw_tensor *t)
{
    t->extent[0] =
        INT64_MIN; /* the undefined behaviour sanitizer reports a difference from 1 */
}
static void huge_extent(struct hw_tensor *t)
{
    t->extent[0] = INT64_MAX;
}
static void negative_stride(struct hw_tensor *t)
{
    t->stride[0] = -4;
}
static void huge_stride(struct hw_tensor *t)
{
    t->stride[0] = INT64_MAX - 3;
    t->extent[0] = 9;
}
static void odd_stride(struct hw_tensor *t)
{
    t->stride[0] += 1;
}
static void odd_address(struct hw_tensor *t)
{
    t->offset += 1;
}
static void no_address(struct hw_tensor *t)
{
    t->data = NULL;
}
static void wrapping_offset(struct hw_tensor *t)
{
    t->offset = UINT64_MAX - 3;
}
static void extent_beyond_rank(struct hw_tensor *t)
{
    if (t->rank < 4)
        t->stride[3] = 4;
    else
        t->rank = 9;
}
static void reserved_word(struct hw_tensor *t)
{
    t->reserved[1] = 1;
}
static void unknown_layout(struct hw_tensor *t)
{
    t->layout = 5;
}

static void every_operand_is_checked(void **state)
{
    static const struct {
        const char *name;
        damage_fn *damage;
    } ways[] = {
#define WAY(name) { #name, name }
        WAY(no_dtype),           WAY(other_dtype),     WAY(negative_dtype),
        WAY(rank_zero),          WAY(rank_five),       WAY(rank_negative),
        WAY(negative_extent),    WAY(smallest_extent), WAY(huge_extent),
        WAY(negative_stride),    WAY(huge_stride),     WAY(odd_stride),
        WAY(odd_address),        WAY(no_address),      WAY(wrapping_offset),
        WAY(extent_beyond_rank), WAY(reserved_word),   WAY(unknown_layout),
#undef WAY
    };
    (void)state;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        for (uint32_t i = 0; i < op_rows[op].operand_count; i++)
            for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
                /* Any two equal dtypes can be copied. */
                const struct operand_row *operand = &op_rows[op].operands[i];
                if (op == HW_OP_COPY && ways[k].damage == other_dtype && i == 0)
                    continue;
                union any_op u = valid_call(op);
                ways[k].damage(operand_in(&u, operand));
                refused(op, &u, operand->name, ways[k].name);
            }
}

/* An operand with one more element along any axis must be rejected. */
static void extents_must_agree(void **state)
{
    (void)state;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        for (uint32_t i = 0; i < op_rows[op].operand_count; i++) {
            const struct operand_row *operand = &op_rows[op].operands[i];
            const union any_op good = valid_call(op);
            const int32_t rank = operand_at(&good, operand)->rank;
            for (int32_t axis = 0; axis < rank; axis++) {
                union any_op u = good;
                operand_in(&u, operand)->extent[axis]++;
                if (strcmp(operand->name, "table") == 0 && axis == 0)
                    continue; /* a table may have any number of rows */
                if ((op == HW_OP_ARGMAX || op == HW_OP_TOP_K) && i == 0 && axis == 1)
                    continue; /* rows may be of any length */
                if (op == HW_OP_ADD || op == HW_OP_MUL || axis < rank - 1 ||
                    op != HW_OP_ATTENTION)
                    operand_in(&u, operand)->stride[0] *= 2;
                refused(op, &u, operand->name, "one more element");
            }
        }
}

static void missing_operands(void **state)
{
    (void)state;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        for (uint32_t i = 0; i < op_rows[op].operand_count; i++) {
            const struct operand_row *operand = &op_rows[op].operands[i];
            union any_op u = valid_call(op);
            memset(operand_in(&u, operand), 0, sizeof(struct hw_tensor));
            if (!role_optional(operand->role))
                refused(op, &u, operand->name, "absence");
            else if (op == HW_OP_SOFTMAX && !strcmp(operand->name, "mask"))
                refused(op, &u, "slopes", "absence of what they multiply");
            else if (!is_gated(op)) /* without up, the gate has another shape */
                ok(submit(op, &u));
        }
}

/* The output overlaps another operand, shifted by one element. */
static void outputs_must_not_overlap(void **state)
{
    (void)state;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        for (uint32_t y = 0; y < op_rows[op].operand_count; y++)
            for (uint32_t x = 0; x < op_rows[op].operand_count; x++) {
                const struct operand_row *out = &op_rows[op].operands[y],
                                         *in = &op_rows[op].operands[x];
                if (x == y || !role_writes(out->role))
                    continue;
                union any_op u = valid_call(op);
                operand_in(&u, out)->data = (char *)operand_in(&u, in)->data + 4;
                if (out->role != HW_ROLE_INOUT) /* its bytes follow: part of x precedes y */
                    refused(op, &u, in->name, "overlap");
            }
}

static void output_elements_must_not_overlap(void **state)
{
    (void)state;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        for (uint32_t i = 0; i < op_rows[op].operand_count; i++) {
            const struct operand_row *operand = &op_rows[op].operands[i];
            union any_op u = valid_call(op);
            struct hw_tensor *t = operand_in(&u, operand);
            if (!role_writes(operand->role))
                continue;
            t->stride[0] = 0;
            refused(op, &u, operand->name, "repeated elements");
            if (t->rank > 1) {
                t->stride[0] = t->stride[1];
                refused(op, &u, operand->name, "folded rows");
            }
        }
}

static void operands_must_fit_their_buffers(void **state)
{
    struct hw_buffer *buffer, *read_only;
    (void)state;
    ok(hw_buffer_alloc(world.cpu, 8, 0, &buffer));
    ok(hw_buffer_alloc(world.cpu, 1 << 16, HW_BUFFER_READ_ONLY, &read_only));
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        for (uint32_t i = 0; i < op_rows[op].operand_count; i++) {
            const struct operand_row *operand = &op_rows[op].operands[i];
            union any_op u = valid_call(op);
            if (hw_tensor_bytes(operand_in(&u, operand)) > 8) {
                operand_in(&u, operand)->buffer = buffer;
                refused(op, &u, operand->name, "a buffer that is too small");
            }
            operand_in(&u, operand)->offset = UINT64_MAX - 7;
            refused(op, &u, operand->name, "an offset that wraps");
            operand_in(&u, operand)->offset = 0;
            operand_in(&u, operand)->buffer = read_only;
            if (role_writes(operand->role) && op != HW_OP_COPY)
                refused(op, &u, operand->name, "read-only memory");
        }
}

/* ---- rules of single ops ---- */

#define REFUSED(NAME, name, field, value, words)                                           \
    do {                                                                                   \
        union any_op u = valid_call(HW_OP_##NAME);                                         \
        u.name.field = value;                                                              \
        refused(HW_OP_##NAME, &u, words, #field " = " #value);                             \
    } while (0)

static void scalars(void **state)
{
    (void)state;
    REFUSED(MATMUL, matmul, transpose_a, 2, "transpose_a");
    REFUSED(MATMUL, matmul, transpose_b, 7, "transpose_b");
    REFUSED(RMSNORM, rmsnorm, eps, -1.0f, "eps");
    REFUSED(RMSNORM, rmsnorm, eps, (float)NAN, "eps");
    REFUSED(RMSNORM, rmsnorm, eps, (float)INFINITY, "eps");
    REFUSED(RMSNORM, rmsnorm, reserved, 1, "reserved");
    REFUSED(ADD_RMSNORM, add_rmsnorm, reserved, 1, "reserved");
    REFUSED(ATTENTION, attention, reserved, 1, "reserved");
    REFUSED(ADD_RMSNORM, add_rmsnorm, eps, -1.0f, "eps");
    REFUSED(LAYERNORM, layernorm, eps, -1e-9f, "eps");
    REFUSED(LAYERNORM, layernorm, eps, (float)NAN, "eps");
    REFUSED(LAYERNORM, layernorm, reserved, 1, "reserved");
    REFUSED(CONV2D, conv2d, stride_h, -1, "stride_h");
    REFUSED(CONV2D, conv2d, stride_w, 2, "y");
    REFUSED(CONV2D, conv2d, pad_h, INT32_MAX, "y");
    REFUSED(CONV2D, conv2d, pad_w, INT32_MIN, "pad_w");
    REFUSED(CONV2D, conv2d, dilation_h, INT32_MAX, "y");
    REFUSED(CONV2D, conv2d, dilation_w, -2, "dilation_w");
    REFUSED(CONV2D, conv2d, groups, 3, "groups");
    REFUSED(CONV2D, conv2d, reserved, 1, "reserved");
    REFUSED(SOFTMAX, softmax, scale, (float)INFINITY, "scale");
    REFUSED(SOFTMAX, softmax, log, 2, "log");
    REFUSED(ROPE, rope, dims, 3, "dims");
    REFUSED(ROPE, rope, dims, 10, "dims");
    REFUSED(ROPE, rope, dims, -2, "dims");
    REFUSED(ROPE, rope, dims, 4, "factors"); /* it has four elements */
    REFUSED(ROPE, rope, theta, -1.0f, "theta");
    REFUSED(ROPE, rope, theta, (float)NAN, "theta");
    REFUSED(ROPE, rope, scale, (float)NAN, "scale");
    REFUSED(ROPE, rope, interleaved, 2, "interleaved");
    REFUSED(ROPE, rope, start, INT64_MAX, "start");
    REFUSED(ROPE, rope, yarn, -0.5f, "yarn");
    REFUSED(ROPE, rope, yarn, 2.0f, "yarn");
    REFUSED(ROPE, rope, yarn, (float)NAN, "yarn");
    REFUSED(ROPE, rope, yarn, 1.0f, "context"); /* which is 0 */
    REFUSED(ROPE, rope, magnitude, (float)INFINITY, "magnitude");
    REFUSED(ROPE, rope, beta_slow, -1.0f, "beta_slow");
    REFUSED(ROPE, rope, beta_slow, 33.0f, "beta_fast"); /* which is 32 */
    REFUSED(ROPE, rope, beta_fast, (float)INFINITY, "beta_fast");
    REFUSED(ATTENTION, attention, length, 7, "length");
    REFUSED(ATTENTION, attention, length, -1, "length");
    REFUSED(ATTENTION, attention, window, -1, "window");
    REFUSED(ATTENTION, attention, scale, (float)NAN, "scale");
    REFUSED(ATTENTION, attention, softcap, -1.0f, "softcap");
    REFUSED(ATTENTION, attention, causal, 2, "causal");
    REFUSED(SCALE, scale, scale, (float)NAN, "scale");
    REFUSED(SCALE, scale, bias, -(float)INFINITY, "bias");
    REFUSED(ACTIVATION, activation, kind, 0, "kind");
    REFUSED(ACTIVATION, activation, kind, HW_ACT_END, "kind");
    REFUSED(ACTIVATION, activation, alpha, 0.1f, "alpha");
    REFUSED(ACTIVATION, activation, lo, -1.0f, "lo");
    REFUSED(ACTIVATION, activation, hi, (float)NAN, "hi");
    REFUSED(GLU, glu, kind, -1, "kind");
    REFUSED(GLU, glu, hi, 6.0f, "hi");
}

/* Clip requires its bounds; other kinds have none. */
static void bounds(void **state)
{
    union any_op u = valid_call(HW_OP_ACTIVATION);
    (void)state;
    u.activation.kind = HW_ACT_CLIP;
    refused(HW_OP_ACTIVATION, &u, "hi", "no bounds");
    u.activation.hi = 6.0f;
    ok(submit(HW_OP_ACTIVATION, &u));
    u.activation.lo = 6.0f;
    refused(HW_OP_ACTIVATION, &u, "hi", "equal bounds");
    u.activation.lo = (float)NAN;
    refused(HW_OP_ACTIVATION, &u, "hi", "a bound that is NaN");
    u.activation.lo = -(float)INFINITY;
    ok(submit(HW_OP_ACTIVATION, &u));
    u.activation.alpha = 1.0f;
    refused(HW_OP_ACTIVATION, &u, "alpha", "an alpha");
    u = valid_call(HW_OP_ACTIVATION);
    u.activation.kind = HW_ACT_ELU;
    u.activation.alpha = (float)INFINITY;
    refused(HW_OP_ACTIVATION, &u, "alpha", "an infinite alpha");
}

/* The leading extents of masks and biases may be divisors. */
static void repeated_masks(void **state)
{
    (void)state;
    union any_op u = valid_call(HW_OP_SOFTMAX);
    u.softmax.x = f32(4, 6, 2, 4, 8);
    u.softmax.y = f32(4, 6, 2, 4, 8);
    u.softmax.mask = tensor(HW_F16, 4, 3, 1, 2, 8);
    ok(submit(HW_OP_SOFTMAX, &u));
    u.softmax.mask = tensor(HW_BF16, 3, 2, 4, 1, 0);
    ok(submit(HW_OP_SOFTMAX, &u));
    u.softmax.mask = tensor(HW_BF16, 3, 2, 4, 4, 0);
    refused(HW_OP_SOFTMAX, &u, "mask", "columns do not repeat");
    u.softmax.mask = f32(2, 0, 8, 0, 0);
    refused(HW_OP_SOFTMAX, &u, "mask", "nothing repeats to four rows");
    u.softmax.mask.dtype = HW_NONE;
    refused(HW_OP_SOFTMAX, &u, "slopes", "slopes without a mask");
    u = valid_call(HW_OP_ATTENTION); /* scores [2,4,3,6] */
    u.attention.bias = tensor(HW_F16, 3, 2, 1, 6, 0);
    ok(submit(HW_OP_ATTENTION, &u));
    u.attention.bias = tensor(HW_F16, 3, 3, 1, 6, 0);
    refused(HW_OP_ATTENTION, &u, "bias", "3 does not divide 4");
    u.attention.bias = tensor(HW_F16, 2, 0, 6, 0, 0);
    refused(HW_OP_ATTENTION, &u, "bias", "nothing repeats to three queries");
    u.attention.bias = tensor(HW_F16, 2, 3, 1, 0, 0);
    refused(HW_OP_ATTENTION, &u, "bias", "one key does not repeat");
    u.attention.bias = tensor(HW_F16, 2, 3, 3, 0, 0);
    refused(HW_OP_ATTENTION, &u, "bias", "keys do not repeat");
}

static void blocks(void **state)
{
    (void)state;
    union any_op u = valid_call(HW_OP_MATMUL);
    u.matmul.a = f32(2, 3, 64, 0, 0);
    u.matmul.b = tensor(HW_Q8_0, 2, 7, 64, 0, 0);
    refused(HW_OP_MATMUL, &u, "transpose_b", "blocks along N");
    u.matmul.transpose_b = 1;
    ok(submit(HW_OP_MATMUL, &u));
    u.matmul.b.extent[1] = 48;
    refused(HW_OP_MATMUL, &u, "b", "a part of a block");
    u.matmul.b.extent[1] = 64;
    u.matmul.b.stride[1] = 36;
    refused(HW_OP_MATMUL, &u, "b", "blocks with gaps");
}

/* Leading extents of tables and row numbers repeat to those of the rows. */
static void batches_of_rows(void **state)
{
    (void)state;
    union any_op u = valid_call(HW_OP_GET_ROWS);
    u.get_rows.y = f32(4, 4, 6, 3, 8);
    ok(submit(HW_OP_GET_ROWS, &u));
    u.get_rows.rows = tensor(HW_I64, 3, 2, 3, 3, 0);
    u.get_rows.table = f32(3, 6, 9, 8, 0);
    ok(submit(HW_OP_GET_ROWS, &u));
    u.get_rows.table = f32(3, 4, 9, 8, 0);
    refused(HW_OP_GET_ROWS, &u, "table", "4 batches of a table for 6");
    u.get_rows.table = f32(3, 0, 9, 8, 0);
    refused(HW_OP_GET_ROWS, &u, "table", "no batch of a table");
    u.get_rows.table = f32(2, 9, 8, 0, 0);
    u.get_rows.rows = tensor(HW_I64, 3, 2, 4, 3, 0);
    refused(HW_OP_GET_ROWS, &u, "rows", "4 batches of numbers for 6");
    u.get_rows.rows = tensor(HW_I64, 4, 1, 1, 1, 3);
    refused(HW_OP_GET_ROWS, &u, "rows", "more extents than y");
    u.get_rows.rows = tensor(HW_I8, 1, 3, 0, 0, 0);
    refused(HW_OP_GET_ROWS, &u, "rows", "numbers of 8 bits");

    u = valid_call(HW_OP_SET_ROWS);
    u.set_rows.x = f32(3, 6, 3, 8, 0);
    refused(HW_OP_SET_ROWS, &u, "table", "a table without the batches");
    u.set_rows.table = f32(3, 6, 9, 8, 0);
    ok(submit(HW_OP_SET_ROWS, &u));
    u.set_rows.rows = tensor(HW_I64, 2, 3, 3, 0, 0);
    ok(submit(HW_OP_SET_ROWS, &u));
    u.set_rows.rows = tensor(HW_I64, 2, 5, 3, 0, 0);
    refused(HW_OP_SET_ROWS, &u, "rows", "5 batches of numbers for 6");
    u.set_rows.rows = tensor(HW_I64, 2, 3, 3, 0, 0);
    u.set_rows.table = f32(3, 3, 9, 8, 0);
    refused(HW_OP_SET_ROWS, &u, "table", "a table that repeats");
}

static void conversions(void **state)
{
    union any_op u = valid_call(HW_OP_COPY);
    (void)state;
    u.copy.src = tensor(HW_I32, 2, 3, 8, 0, 0);
    refused(HW_OP_COPY, &u, "dst", "integers to floats");
    u.copy.src = tensor(HW_Q8_0, 2, 3, 256, 0, 0);
    u.copy.dst = tensor(HW_Q4_0, 2, 3, 256, 0, 0);
    refused(HW_OP_COPY, &u, "dst", "blocks to other blocks");
    u.copy.dst = tensor(HW_F16, 2, 3, 256, 0, 0);
    ok(submit(HW_OP_COPY, &u));
}

/* Extents of an input divide those of y, and types may differ; in place they may not. */
static void inputs_repeat(void **state)
{
    union any_op u = valid_call(HW_OP_SUB);
    (void)state;
    u.sub.y = f32(3, 4, 6, 10, 0);
    u.sub.a = tensor(HW_F16, 3, 2, 1, 5, 0);
    u.sub.b = tensor(HW_BF16, 2, 3, 10, 0, 0);
    ok(submit(HW_OP_SUB, &u));
    u.sub.b.extent[0] = 4;
    refused(HW_OP_SUB, &u, "b", "4 does not divide 6");
    u.sub.b = f32(2, 12, 10, 0, 0);
    refused(HW_OP_SUB, &u, "b", "more than y has");
    u.sub.b = f32(2, 0, 10, 0, 0);
    refused(HW_OP_SUB, &u, "b", "nothing to repeat");
    u.sub.b = f32(4, 1, 4, 6, 10);
    refused(HW_OP_SUB, &u, "b", "more axes than y has");
    u.sub.b = u.sub.y;
    ok(submit(HW_OP_SUB, &u));
    u.sub.b.dtype = HW_F16;
    refused(HW_OP_SUB, &u, "b", "in place with another dtype");
    u.sub.b = u.sub.y;
    u.sub.b.extent[0] = 2;
    refused(HW_OP_SUB, &u, "b", "in place where it repeats");
}

/* Columns of one matrix do not overlap, although their address ranges do. In-place operands are
 * identical. */
static void columns_and_in_place(void **state)
{
    struct hw_tensor qkv, q, k;
    (void)state;
    qkv = first_tensor(HW_F32, 2, 5, 24, 0, 0);
    ok(hw_tensor_slice(&q, &qkv, 1, 0, 8));
    ok(hw_tensor_slice(&k, &qkv, 1, 8, 16));
    union any_op u = { .silu = { .x = q, .y = k } };
    ok(submit(HW_OP_SILU, &u));
    u.silu.y = q;
    ok(submit(HW_OP_SILU, &u));
    ok(hw_tensor_slice(&u.silu.y, &qkv, 1, 7, 15));
    refused(HW_OP_SILU, &u, "y", "one shared column");
    ok(hw_tensor_slice(&u.silu.y, &qkv, 1, 0, 8));
    u.silu.y.stride[0] = 48;
    refused(HW_OP_SILU, &u, "y", "in place with another layout");
}

static void empty_outputs_need_no_work(void **state)
{
    (void)state;
    const uint32_t before = plugin_calls;
    const struct hw_tensor empty = first_tensor(HW_F32, 2, 0, 8, 0, 0);
    union any_op u = { .silu = { .x = empty, .y = empty } };
    ok(submit(HW_OP_SILU, &u));
    u.silu.x.data = u.silu.y.data = NULL;
    ok(submit(HW_OP_SILU, &u));
    assert_int_equal(plugin_calls, before);
}

static void absent_tensors_are_rejected(void **state)
{
    (void)state;
    float memory[8] = { 0 };
    union any_op u = { .silu = { .x = hw_host_2d(memory, HW_F32, -4, 2),
                                 .y = first_tensor(HW_F32, 2, 3, 8, 0, 0) } };
    refused(HW_OP_SILU, &u, "extents[0] is -4", "the first reason");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_calls_reach_the_plugin),
        cmocka_unit_test(every_operand_is_checked),
        cmocka_unit_test(extents_must_agree),
        cmocka_unit_test(missing_operands),
        cmocka_unit_test(outputs_must_not_overlap),
        cmocka_unit_test(output_elements_must_not_overlap),
        cmocka_unit_test(operands_must_fit_their_buffers),
        cmocka_unit_test(scalars),
        cmocka_unit_test(repeated_masks),
        cmocka_unit_test(bounds),
        cmocka_unit_test(blocks),
        cmocka_unit_test(batches_of_rows),
        cmocka_unit_test(conversions),
        cmocka_unit_test(inputs_repeat),
        cmocka_unit_test(columns_and_in_place),
        cmocka_unit_test(empty_outputs_need_no_work),
        cmocka_unit_test(absent_tensors_are_rejected),
    };
    return cmocka_run_group_tests(tests, calls_begin, calls_end);
}
