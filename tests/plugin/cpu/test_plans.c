/* SPDX-License-Identifier: MIT */
/* test_plans.c - the plans that a queue of the CPU plugin remembers: random calls, which repeat
 * forms at other addresses or differ in one field, give the same results on a used queue and on a
 * new one. There are more forms than a queue remembers. */
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
        call.submit = below(2) ? submit_add : submit_sub;
        call.args.binary.y = y;
        call.args.binary.a = part(1, type, rows, cols);
        call.args.binary.b = part(2, type, rows, cols);
        break;
    case 1:
        call.submit = submit_scale;
        call.args.scale = (struct hw_scale){
            .x = x, .y = y, .scale = (float)below(3), .bias = (float)below(3)
        };
        break;
    case 2: /* gate and up in one tensor, or in two */
        call.submit = submit_swiglu;
        call.args.swiglu.y = y;
        if (below(2)) {
            call.args.swiglu.gate = place(1, TENSOR(NULL, type, rows, 2 * cols));
        } else {
            call.args.swiglu.gate = x;
            call.args.swiglu.up = place(2, whole);
        }
        break;
    case 3: /* transposes a square */
        call.submit = submit_copy;
        call.args.copy.src = place(1, TENSOR(NULL, type, cols, cols));
        call.args.copy.dst = place(0, TENSOR(NULL, HW_F32, cols, cols));
        if (below(2)) {
            call.args.copy.src.stride[0] = hw_dtype_bytes(type);
            call.args.copy.src.stride[1] = cols * hw_dtype_bytes(type);
        }
        break;
    default:
        call.submit = submit_softmax;
        call.args.softmax.x = x;
        call.args.softmax.y = y;
        call.args.softmax.log = (uint32_t)below(2);
        if (below(2))
            call.args.softmax.mask = place(2, TENSOR(NULL, type, rows, cols));
        break;
    }
    return call;
}

/* The same call with each operand at a host address. */
static struct call as_addresses(struct call call)
{
    const int count = call.submit == submit_scale || call.submit == submit_copy ? 2 : 3;
    for (int i = 0; i < count; i++) {
        struct hw_tensor *t = &call.args.tensors[i];
        if (t->dtype == HW_NONE)
            continue;
        t->data = (char *)(t->buffer ? t->buffer->host : t->data) + t->offset;
        t->buffer = NULL;
        t->offset = 0;
    }
    return call;
}

/* Runs the call and stores the contents of its output's memory. */
static void compute(const struct call *call, void *queue, unsigned char result[BYTES])
{
    memset(memory[0].host, 0xA5, BYTES);
    if (call->submit(queue, &call->args))
        fail_msg("%s", h.message);
    memcpy(result, memory[0].host, BYTES);
}

static void a_queue_with_a_past_computes_the_same(void **state)
{
    const struct hw_queue_desc desc = { .size = sizeof desc };
    const int rounds = getenv("HW_TEST_QUICK") ? 4000 : 40000;
    static unsigned char remembered[BYTES], fresh[BYTES];
    (void)state;
    for (int round = 0; round < rounds; round++) {
        const struct call call = random_call(), plain = as_addresses(call);
        void *queue = NULL;
        assert_int_equal(h.plugin.queue_open(h.device, &desc, &queue), HW_OK);
        compute(&call, h.queue, remembered);
        compute(&plain, queue, fresh);
        h.plugin.queue_close(queue);
        if (memcmp(remembered, fresh, BYTES) != 0)
            fail_msg("round %d: not what a new queue computes", round);
    }
}

/* A refusal is not remembered as a plan. */
static void a_refusal_comes_again(void **state)
{
    float x[8] = { 0 };
    struct hw_add op = { .a = TENSOR(x, HW_F32, 4),
                         .b = TENSOR(x, HW_F32, 4),
                         .y = TENSOR(x, HW_F32, 4) };
    (void)state;
    op.a.stride[0] = 8;
    for (int i = 0; i < 2; i++)
        assert_int_equal(h.plugin.ops->add(h.device, h.queue, &op), HW_UNSUPPORTED);
    op.a.stride[0] = 4;
    assert_int_equal(h.plugin.ops->add(h.device, h.queue, &op), HW_OK);
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
        cmocka_unit_test(a_queue_with_a_past_computes_the_same),
        cmocka_unit_test(a_refusal_comes_again),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
