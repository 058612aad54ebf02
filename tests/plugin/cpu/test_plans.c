/* SPDX-License-Identifier: MIT */
/* test_plans.c - the CPU plugin's plans: on random calls, a plan that was made for other addresses
 * gives the same results as the op's function. */
#include "harness.h"

#include <stdbool.h>

enum { BYTES = 1 << 14, OPERANDS = 4 };

static struct harness h;
static struct hw_buffer memory[OPERANDS];
static uint32_t seed = 1;

static int64_t below(int64_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

/* Places the operand in its own memory at a random offset, in a buffer or at a host address. */
static struct hw_tensor place(int operand, struct hw_tensor t)
{
    t.offset = 16 * (uint64_t)below(64);
    if (below(2))
        t.buffer = &memory[operand];
    else
        t.data = memory[operand].host;
    return t;
}

/* An input of a binary op: of y's shape, or one row, or one column, or one value. */
static struct hw_tensor part(int operand, int32_t type, int64_t rows, int64_t cols)
{
    return place(operand, TENSOR(NULL, type, below(3) ? rows : 1, below(3) ? cols : 1));
}

typedef int32_t call_fn(void *queue, const void *args);

/* A call of an op. */
struct call {
    uint32_t op;
    call_fn *submit;
    union {
        struct hw_tensor tensors[3]; /* of each of them: the first three operands */
        struct hw_add binary;
        struct hw_scale scale;
        struct hw_swiglu swiglu;
        struct hw_copy copy;
        struct hw_softmax softmax;
    } args;
};

#define SUBMIT(name)                                                                       \
    static int32_t submit_##name(void *queue, const void *args)                            \
    {                                                                                      \
        return h.plugin.ops->name(h.device, queue, args);                                  \
    }
#define SET(name, NAME) call.op = HW_OP_##NAME, call.submit = submit_##name
SUBMIT(add)
SUBMIT(sub)
SUBMIT(scale)
SUBMIT(swiglu)
SUBMIT(copy)
SUBMIT(softmax)

static struct call random_call(void)
{
    static const int32_t types[] = { HW_F32, HW_F16, HW_BF16 };
    const int32_t type = types[below(3)];
    const int64_t rows = 1 + below(5), cols = 1 + below(7);
    const struct hw_tensor whole = TENSOR(NULL, type, rows, cols);
    const struct hw_tensor y = place(0, whole), x = place(1, whole);
    struct call call;
    memset(&call, 0, sizeof call);
    switch (below(5)) {
    case 0:
        if (below(2))
            SET(add, ADD);
        else
            SET(sub, SUB);
        call.args.binary.y = y;
        call.args.binary.a = part(1, type, rows, cols);
        call.args.binary.b = part(2, type, rows, cols);
        break;
    case 1:
        SET(scale, SCALE);
        call.args.scale = (struct hw_scale){
            .x = x, .y = y, .scale = (float)below(3), .bias = (float)below(3)
        };
        break;
    case 2: /* gate and up in one tensor, or in two */
        SET(swiglu, SWIGLU);
        call.args.swiglu.y = y;
        if (below(2)) {
            call.args.swiglu.gate = place(1, TENSOR(NULL, type, rows, 2 * cols));
        } else {
            call.args.swiglu.gate = x;
            call.args.swiglu.up = place(2, whole);
        }
        break;
    case 3: /* transposes a square */
        SET(copy, COPY);
        call.args.copy.src = place(1, TENSOR(NULL, type, cols, cols));
        call.args.copy.dst = place(0, TENSOR(NULL, HW_F32, cols, cols));
        if (below(2)) {
            call.args.copy.src.stride[0] = hw_dtype_bytes(type);
            call.args.copy.src.stride[1] = cols * hw_dtype_bytes(type);
        }
        break;
    default:
        SET(softmax, SOFTMAX);
        call.args.softmax.x = x;
        call.args.softmax.y = y;
        call.args.softmax.log = (uint32_t)below(2);
        if (below(2))
            call.args.softmax.mask = place(2, TENSOR(NULL, type, rows, cols));
        break;
    }
    return call;
}

/* The number of the memory that has the operand. */
static int home_of(const struct hw_tensor *t)
{
    int i = 0;
    while (t->buffer != &memory[i] && t->data != memory[i].host)
        i++;
    return i;
}

/* The same call with its operands at other places of their memory. */
static struct call moved(struct call call)
{
    const int count = call.op == HW_OP_SCALE || call.op == HW_OP_COPY ? 2 : 3;
    for (int i = 0; i < count; i++) {
        struct hw_tensor *t = &call.args.tensors[i];
        if (t->dtype == HW_NONE)
            continue;
        const int home = home_of(t);
        t->buffer = NULL;
        t->data = NULL;
        *t = place(home, *t);
    }
    return call;
}

/* Runs the call, with its function or a plan, and stores the contents of its output's memory. */
static void compute(const struct call *call, void *plan, unsigned char result[BYTES])
{
    memset(memory[0].host, 0xA5, BYTES);
    if (plan ? h.plugin.plan_launch(h.queue, plan, &call->args)
             : call->submit(h.queue, &call->args))
        fail_msg("%s", h.message);
    memcpy(result, memory[0].host, BYTES);
}

static void a_plan_serves_other_addresses(void **state)
{
    const int rounds = getenv("HW_TEST_QUICK") ? 4000 : 40000;
    static unsigned char planned[BYTES], expected[BYTES];
    (void)state;
    for (int round = 0; round < rounds; round++) {
        struct call call = random_call(), first = moved(call);
        void *plan = NULL;
        assert_int_equal(h.plugin.plan_build(h.queue, call.op, &first.args, &plan), HW_OK);
        memset(&first, 0x5A, sizeof first);
        for (int i = 0; i < 2; i++, call = moved(call)) {
            compute(&call, plan, planned);
            compute(&call, NULL, expected);
            if (memcmp(planned, expected, BYTES) != 0)
                fail_msg("round %d: not what the op's function computes", round);
        }
        h.plugin.plan_destroy(plan);
    }
}

static void a_refusal_is_no_plan(void **state)
{
    float x[8] = { 0 };
    struct hw_add op = { .a = TENSOR(x, HW_F32, 4),
                         .b = TENSOR(x, HW_F32, 4),
                         .y = TENSOR(x, HW_F32, 4) };
    void *plan = NULL;
    (void)state;
    op.a.stride[0] = 8;
    assert_int_equal(h.plugin.plan_build(h.queue, HW_OP_ADD, &op, &plan), HW_UNSUPPORTED);
    assert_null(plan);
}

/* Numbers between 0.5 and 2 in every type: their high bytes are those of 1. */
static int begin(void **state)
{
    (void)state;
    harness_open(&h, "", 1);
    for (int i = 0; i < OPERANDS; i++) {
        if (h.plugin.buffer_alloc(h.device, BYTES, 0, &memory[i]))
            return -1;
        for (int k = 0; k < BYTES; k++)
            ((unsigned char *)memory[i].host)[k] = k % 2 ? 0x3C : (unsigned char)below(256);
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (int i = 0; i < OPERANDS; i++)
        h.plugin.buffer_free(h.device, &memory[i]);
    harness_close(&h);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_serves_other_addresses),
        cmocka_unit_test(a_refusal_is_no_plan),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
