/* SPDX-License-Identifier: MIT */
/* test_check.c - invalid calls. Every operand of every op is made wrong in every way
 * that the operand table allows, then each scalar and each rule of an op. Each call must
 * return HW_INVALID and name op and field, and must not reach the plugin. The last test
 * damages operands at random: the short check of ordinary calls must never accept what
 * the full check rejects. */
#include "run/check.h"
#include "run/ops.h"
#include "run/queue.h"
#include "world.h"

#include <math.h>
#include <stdio.h>

/* ---- a valid call of each op ---- */

static float memory[1 << 14];
static size_t used;
static uint32_t plugin_calls;

/* The operands are placed apart, in one block of host memory. */
static struct hw_tensor tensor(int32_t dtype, int32_t rank, int64_t a, int64_t b, int64_t c,
                               int64_t d)
{
    const int64_t extents[] = { a, b, c, d };
    struct hw_tensor t;
    ok(hw_tensor_host(&t, memory + used, dtype, rank, extents));
    used += (size_t)(hw_tensor_bytes(&t) + 64) / 16 * 4;
    assert_true(used < sizeof memory / sizeof *memory);
    return t;
}

static struct hw_tensor f32(int32_t rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return tensor(HW_F32, rank, a, b, c, d);
}

static union any_op valid(uint32_t op)
{
    union any_op u;
    memset(&u, 0, sizeof u);
    used = 0;
    switch ((enum hw_op)op) {
    case HW_OP_MATMUL:
        u.matmul = (struct hw_matmul){ .a = f32(2, 3, 5, 0, 0),
                                       .b = f32(2, 5, 7, 0, 0),
                                       .bias = f32(1, 7, 0, 0, 0),
                                       .c = f32(2, 3, 7, 0, 0) };
        break;
    case HW_OP_RMSNORM:
        u.rmsnorm = (struct hw_rmsnorm){ .x = f32(2, 3, 8, 0, 0),
                                         .weight = f32(1, 8, 0, 0, 0),
                                         .y = f32(2, 3, 8, 0, 0),
                                         .eps = 1e-5f };
        break;
    case HW_OP_SOFTMAX:
        u.softmax = (struct hw_softmax){ .x = f32(2, 3, 8, 0, 0),
                                         .mask = f32(1, 8, 0, 0, 0),
                                         .y = f32(2, 3, 8, 0, 0) };
        break;
    case HW_OP_SILU:
        u.silu = (struct hw_silu){ .x = f32(2, 3, 8, 0, 0), .y = f32(2, 3, 8, 0, 0) };
        break;
    case HW_OP_ROPE:
        u.rope = (struct hw_rope){ .x = f32(3, 5, 2, 8, 0),
                                   .positions = tensor(HW_I32, 1, 5, 0, 0, 0),
                                   .factors = f32(1, 4, 0, 0, 0),
                                   .y = f32(3, 5, 2, 8, 0) };
        break;
    case HW_OP_ATTENTION:
        u.attention = (struct hw_attention){ .q = f32(4, 2, 3, 4, 8),
                                             .k = f32(4, 2, 6, 2, 8),
                                             .v = f32(4, 2, 6, 2, 16),
                                             .bias = f32(4, 2, 4, 3, 6),
                                             .lengths = tensor(HW_I32, 1, 2, 0, 0, 0),
                                             .y = f32(4, 2, 3, 4, 16) };
        break;
    case HW_OP_ADD:
        u.add = (struct hw_add){ .a = f32(2, 3, 8, 0, 0),
                                 .b = f32(2, 3, 8, 0, 0),
                                 .y = f32(2, 3, 8, 0, 0) };
        break;
    case HW_OP_MUL:
        u.mul = (struct hw_mul){ .a = f32(2, 3, 8, 0, 0),
                                 .b = f32(2, 3, 8, 0, 0),
                                 .y = f32(2, 3, 8, 0, 0) };
        break;
    case HW_OP_SWIGLU:
        u.swiglu = (struct hw_swiglu){ .gate = f32(2, 3, 8, 0, 0),
                                       .up = f32(2, 3, 8, 0, 0),
                                       .y = f32(2, 3, 8, 0, 0) };
        break;
    case HW_OP_ADD_RMSNORM:
        u.add_rmsnorm = (struct hw_add_rmsnorm){ .residual = f32(2, 3, 8, 0, 0),
                                                 .x = f32(2, 3, 8, 0, 0),
                                                 .weight = f32(1, 8, 0, 0, 0),
                                                 .y = f32(2, 3, 8, 0, 0),
                                                 .eps = 1e-5f };
        break;
    case HW_OP_GET_ROWS:
        u.get_rows = (struct hw_get_rows){ .table = f32(2, 9, 8, 0, 0),
                                           .rows = tensor(HW_I32, 1, 3, 0, 0, 0),
                                           .y = f32(2, 3, 8, 0, 0) };
        break;
    case HW_OP_SET_ROWS:
        u.set_rows = (struct hw_set_rows){ .x = f32(2, 3, 8, 0, 0),
                                           .rows = tensor(HW_I32, 1, 3, 0, 0, 0),
                                           .table = f32(2, 9, 8, 0, 0) };
        break;
    case HW_OP_COPY:
        u.copy = (struct hw_copy){ .src = f32(2, 3, 8, 0, 0), .dst = f32(2, 3, 8, 0, 0) };
        break;
    case HW_OP_ARGMAX:
        u.argmax = (struct hw_argmax){ .x = f32(2, 3, 8, 0, 0),
                                       .y = tensor(HW_I32, 1, 3, 0, 0, 0) };
        break;
    case HW_OP_COUNT:
        break;
    }
    return u;
}

/* Ops that compute nothing and count their calls. */
#define X(NAME, name)                                                                      \
    static int32_t count_##name(void *device, void *queue, const struct hw_##name *op)     \
    {                                                                                      \
        (void)device, (void)queue, (void)op;                                               \
        plugin_calls++;                                                                    \
        return HW_OK;                                                                      \
    }
HW_OPS(X)
#undef X

static struct world world;

static int open_world(void **state)
{
    (void)state;
    world_open(&world, NULL, NULL);
#define X(NAME, name) world.on_cpu->ops.name = count_##name;
    HW_OPS(X)
#undef X
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    world_close(&world);
    return 0;
}

static enum hw_status submit(uint32_t op, const union any_op *args)
{
    return hw_submit(world.on_cpu, op, args, op_rows[op].size);
}

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
        const union any_op u = valid(op);
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
                union any_op u = valid(op);
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
            const union any_op good = valid(op);
            const int32_t rank = operand_at(&good, operand)->rank;
            for (int32_t axis = 0; axis < rank; axis++) {
                union any_op u = good;
                operand_in(&u, operand)->extent[axis]++;
                if (strcmp(operand->name, "table") == 0 && axis == 0)
                    continue; /* a table may have any number of rows */
                if (op == HW_OP_ARGMAX && i == 0 && axis == 1)
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
            union any_op u = valid(op);
            memset(operand_in(&u, operand), 0, sizeof(struct hw_tensor));
            if (!role_optional(operand->role))
                refused(op, &u, operand->name, "absence");
            else if (op != HW_OP_SWIGLU) /* without up, the gate has another shape */
                ok(submit(op, &u));
        }
}

/* An output one element into another operand. */
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
                union any_op u = valid(op);
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
            union any_op u = valid(op);
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
            union any_op u = valid(op);
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
        union any_op u = valid(HW_OP_##NAME);                                              \
        u.name.field = value;                                                              \
        refused(HW_OP_##NAME, &u, words, #field " = " #value);                             \
    } while (0)

static void scalars(void **state)
{
    (void)state;
    REFUSED(MATMUL, matmul, transpose_a, 2, "transpose_a");
    REFUSED(MATMUL, matmul, transpose_b, 7, "transpose_b");
    REFUSED(RMSNORM, rmsnorm, eps, 0.0f, "eps");
    REFUSED(RMSNORM, rmsnorm, eps, -1.0f, "eps");
    REFUSED(RMSNORM, rmsnorm, eps, (float)NAN, "eps");
    REFUSED(RMSNORM, rmsnorm, eps, (float)INFINITY, "eps");
    REFUSED(RMSNORM, rmsnorm, reserved, 1, "reserved");
    REFUSED(ADD_RMSNORM, add_rmsnorm, reserved, 1, "reserved");
    REFUSED(ATTENTION, attention, reserved, 1, "reserved");
    REFUSED(ADD_RMSNORM, add_rmsnorm, eps, 0.0f, "eps");
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
    REFUSED(ATTENTION, attention, length, 7, "length");
    REFUSED(ATTENTION, attention, length, -1, "length");
    REFUSED(ATTENTION, attention, window, -1, "window");
    REFUSED(ATTENTION, attention, scale, (float)NAN, "scale");
    REFUSED(ATTENTION, attention, softcap, -1.0f, "softcap");
    REFUSED(ATTENTION, attention, causal, 2, "causal");
}

static void blocks(void **state)
{
    (void)state;
    union any_op u = valid(HW_OP_MATMUL);
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

static void conversions(void **state)
{
    union any_op u = valid(HW_OP_COPY);
    (void)state;
    u.copy.src = tensor(HW_I32, 2, 3, 8, 0, 0);
    refused(HW_OP_COPY, &u, "dst", "integers to floats");
    u.copy.src = tensor(HW_Q8_0, 2, 3, 256, 0, 0);
    u.copy.dst = tensor(HW_Q4_0, 2, 3, 256, 0, 0);
    refused(HW_OP_COPY, &u, "dst", "blocks to other blocks");
    u.copy.dst = tensor(HW_F16, 2, 3, 256, 0, 0);
    ok(submit(HW_OP_COPY, &u));
}

/* Columns of one matrix do not overlap although their spans do. In-place operands are
 * identical. */
static void columns_and_in_place(void **state)
{
    struct hw_tensor qkv, q, k;
    (void)state;
    used = 0;
    qkv = f32(2, 5, 24, 0, 0);
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
    used = 0;
    union any_op u = { .silu = { .x = f32(2, 0, 8, 0, 0), .y = f32(2, 0, 8, 0, 0) } };
    ok(submit(HW_OP_SILU, &u));
    u.silu.x.data = u.silu.y.data = NULL;
    ok(submit(HW_OP_SILU, &u));
    assert_int_equal(plugin_calls, before);
}

static void absent_tensors_are_rejected(void **state)
{
    (void)state;
    union any_op u = { .silu = { .x = hw_host_2d(memory, HW_F32, -4, 2),
                                 .y = f32(2, 3, 8, 0, 0) } };
    refused(HW_OP_SILU, &u, "extents[0] is -4", "the first reason");
}

/* ---- the short check and the full check ---- */

static uint32_t seed = 1;

static uint32_t random_below(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

static void damage(struct hw_tensor *t, const struct hw_tensor *other)
{
    static const int64_t values[] = { -1, 0,  1,  2,  4,         8,         16,
                                      32, 36, 48, 64, INT32_MAX, INT64_MAX, INT64_MIN };
    const int64_t value = values[random_below(sizeof values / sizeof *values)];
    const uint32_t axis = random_below(4);
    switch (random_below(10)) {
    case 0:
        t->extent[axis] = value;
        break;
    case 1:
        t->stride[axis] = value;
        break;
    case 2:
        t->rank = (int32_t)value;
        break;
    case 3:
        t->dtype = (int32_t)random_below(14);
        break;
    case 4:
        t->offset = (uint64_t)value;
        break;
    case 5:
        t->data = other->data;
        break;
    case 6:
        *t = *other;
        break;
    case 7:
        t->reserved[random_below(3)] = random_below(2);
        break;
    case 8:
        t->layout = random_below(2);
        break;
    case 9: /* at the end of memory */
        t->data = (void *)(UINTPTR_MAX - 15);
        break;
    }
}

static void short_and_full_check_agree(void **state)
{
    uint32_t accepted = 0, rejected = 0;
    (void)state;
    for (uint32_t round = 0; round < 200000; round++) {
        const uint32_t op = random_below(HW_OP_COUNT);
        const struct op_row *row = &op_rows[op];
        union any_op u = valid(op);
        for (uint32_t n = random_below(4); n > 0; n--)
            damage(operand_in(&u, &row->operands[random_below(row->operand_count)]),
                   operand_at(&u, &row->operands[random_below(row->operand_count)]));
        struct check check = { .device = world.cpu, .impl = world.cpu->impl, .op = op };
        const enum hw_status whole = op_checks[op](&u, &check);
        if (!whole && check.traits & TRAIT_STRIDED)
            continue; /* these need scratch memory: see test_route.c */
        const uint32_t before = plugin_calls;
        const enum hw_status answer = submit(op, &u);
        assert_int_equal(answer, whole);
        assert_int_equal(plugin_calls - before, !whole && !(check.traits & TRAIT_EMPTY));
        accepted += !whole;
        rejected += whole != HW_OK;
        assert_true(whole == HW_OK || whole == HW_INVALID);
    }
    assert_true(accepted > 1000 && rejected > 1000);
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
        cmocka_unit_test(blocks),
        cmocka_unit_test(conversions),
        cmocka_unit_test(columns_and_in_place),
        cmocka_unit_test(empty_outputs_need_no_work),
        cmocka_unit_test(absent_tensors_are_rejected),
        cmocka_unit_test(short_and_full_check_agree),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
