/* SPDX-License-Identifier: MIT */
/* calls.c - see calls.h. */
#include "calls.h"

#include "call/queue.h"

static float memory[1 << 14];
static size_t used;

struct hw_tensor tensor(int32_t dtype, int32_t rank, int64_t a, int64_t b, int64_t c,
                        int64_t d)
{
    const int64_t extents[] = { a, b, c, d };
    struct hw_tensor t;
    ok(hw_tensor_host(&t, memory + used, dtype, rank, extents));
    used += (size_t)(hw_tensor_bytes(&t) + 64) / 16 * 4;
    assert_true(used < sizeof memory / sizeof *memory);
    return t;
}

struct hw_tensor first_tensor(int32_t dtype, int32_t rank, int64_t a, int64_t b, int64_t c,
                              int64_t d)
{
    used = 0;
    return tensor(dtype, rank, a, b, c, d);
}

struct hw_tensor f32(int32_t rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return tensor(HW_F32, rank, a, b, c, d);
}

static struct hw_tensor vector(int64_t n)
{
    return f32(1, n, 0, 0, 0);
}

static struct hw_tensor matrix(int64_t rows, int64_t cols)
{
    return f32(2, rows, cols, 0, 0);
}

static struct hw_tensor numbers(int64_t n)
{
    return tensor(HW_I32, 1, n, 0, 0, 0);
}

/* A call whose operands all are [3,8]. */
static union any_op call_on_matrices(uint32_t op)
{
    union any_op u;
    memset(&u, 0, sizeof u);
    for (uint32_t i = 0; i < op_rows[op].operand_count; i++)
        *operand_in(&u, &op_rows[op].operands[i]) = matrix(3, 8);
    return u;
}

static void make_attention(struct hw_attention *op)
{
    op->q = f32(4, 2, 3, 4, 8);
    op->k = f32(4, 2, 6, 2, 8);
    op->v = f32(4, 2, 6, 2, 16);
    op->bias = f32(4, 2, 4, 3, 6);
    op->slopes = vector(4);
    op->sinks = vector(4);
    op->lengths = numbers(2);
    op->y = f32(4, 2, 3, 4, 16);
}

static void make_conv2d(struct hw_conv2d *op)
{
    op->x = f32(4, 2, 4, 5, 6);
    op->weight = f32(4, 6, 2, 2, 3);
    op->bias = vector(6);
    op->y = f32(4, 2, 6, 4, 4);
    op->groups = 2;
}

static void make_matmul_id(struct hw_matmul_id *op)
{
    op->a = f32(3, 3, 2, 8, 0);
    op->b = f32(3, 4, 5, 8, 0);
    op->ids = tensor(HW_I32, 2, 3, 2, 0, 0);
    op->bias = matrix(4, 5);
    op->c = f32(3, 3, 2, 5, 0);
}

union any_op valid_call(uint32_t op)
{
    used = 0;
    union any_op u = call_on_matrices(op);
    switch ((enum hw_op)op) {
    case HW_OP_MATMUL:
        u.matmul.a = matrix(3, 5);
        u.matmul.b = matrix(5, 7);
        u.matmul.bias = vector(7);
        u.matmul.c = matrix(3, 7);
        break;
    case HW_OP_RMSNORM:
        u.rmsnorm.weight = vector(8);
        u.rmsnorm.eps = 1e-5f;
        break;
    case HW_OP_SOFTMAX:
        u.softmax.x = f32(3, 2, 3, 8, 0);
        u.softmax.mask = vector(8);
        u.softmax.slopes = vector(2);
        u.softmax.sinks = vector(2);
        u.softmax.y = f32(3, 2, 3, 8, 0);
        break;
    case HW_OP_ROPE:
        u.rope.x = f32(3, 5, 2, 8, 0);
        u.rope.positions = numbers(5);
        u.rope.factors = vector(4);
        u.rope.y = f32(3, 5, 2, 8, 0);
        break;
    case HW_OP_ATTENTION:
        make_attention(&u.attention);
        break;
    case HW_OP_ADD_RMSNORM:
        u.add_rmsnorm.weight = vector(8);
        u.add_rmsnorm.eps = 1e-5f;
        break;
    case HW_OP_GET_ROWS:
        u.get_rows.table = matrix(9, 8);
        u.get_rows.rows = numbers(3);
        break;
    case HW_OP_SET_ROWS:
        u.set_rows.rows = numbers(3);
        u.set_rows.table = matrix(9, 8);
        break;
    case HW_OP_ARGMAX:
        u.argmax.y = numbers(3);
        break;
    case HW_OP_MATMUL_ID:
        make_matmul_id(&u.matmul_id);
        break;
    case HW_OP_LAYERNORM:
        u.layernorm.weight = vector(8);
        u.layernorm.bias = vector(8);
        u.layernorm.eps = 1e-5f;
        break;
    case HW_OP_TOP_K:
        u.top_k.values = matrix(3, 4);
        u.top_k.indices = tensor(HW_I32, 2, 3, 4, 0, 0);
        break;
    case HW_OP_DOT:
        u.dot.y = vector(3);
        break;
    case HW_OP_ACTIVATION:
        u.activation.kind = HW_ACT_RELU;
        break;
    case HW_OP_GLU:
        u.glu.kind = HW_ACT_GELU;
        break;
    case HW_OP_CONV2D:
        make_conv2d(&u.conv2d);
        break;
    case HW_OP_SILU:
    case HW_OP_ADD:
    case HW_OP_MUL:
    case HW_OP_SUB:
    case HW_OP_DIV:
    case HW_OP_SCALE:
    case HW_OP_SWIGLU:
    case HW_OP_COPY:
    case HW_OP_COUNT:
        break;
    }
    return u;
}

bool is_gated(uint32_t op)
{
    return op == HW_OP_SWIGLU || op == HW_OP_GLU;
}

uint32_t plugin_calls;

#define X(NAME, name)                                                                      \
    static int32_t count_##name(void *device, void *queue, const struct hw_##name *op)     \
    {                                                                                      \
        (void)device, (void)queue, (void)op;                                               \
        plugin_calls++;                                                                    \
        return HW_OK;                                                                      \
    }
HW_OPS(X)
#undef X

static int32_t count_launch(void *queue, void *plan, const void *args)
{
    (void)queue, (void)plan, (void)args;
    plugin_calls++;
    return HW_OK;
}

struct world world;

int calls_begin(void **state)
{
    (void)state;
    world_open(&world, NULL, NULL);
#define X(NAME, name) world.on_cpu->ops.name = count_##name;
    HW_OPS(X)
#undef X
    world.on_cpu->plan_launch = count_launch;
    return 0;
}

int calls_end(void **state)
{
    (void)state;
    world_close(&world);
    return 0;
}

enum hw_status submit(uint32_t op, const union any_op *args)
{
    return hw_submit(world.on_cpu, op, args, op_rows[op].size);
}
