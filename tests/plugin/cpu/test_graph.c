/* SPDX-License-Identifier: MIT */
/* test_graph.c - graphs of the CPU plugin give the results of their nodes computed one by one on
 * one thread. The nodes are random: they read and overwrite each other's operands, some large
 * enough for threads and some small. */
#include "harness.h"

#include "../../fixtures/shortage.h"

#include <stdbool.h>

enum { SLOTS = 7, SLOT = 1 << 14, NODES = 14 };

static float ours[SLOTS * SLOT], theirs[SLOTS * SLOT]; /* of the graph, and node by node */
static uint32_t seed = 1;

static int64_t below(int64_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

/* A node, with operands in `ours`. */
union args {
    struct hw_tensor tensors[3];
    struct hw_scale scale;
    struct hw_add binary;
    struct hw_matmul matmul;
    struct hw_copy copy;
};

/* `n` floats somewhere in a slot. */
static struct hw_tensor part(int64_t slot, int64_t n)
{
    return TENSOR(ours + slot * SLOT + below(1 + SLOT - n), HW_F32, n);
}

/* c, a and b in 16-bit floats and f32: the rows of a are converted first. */
static struct hw_matmul product(int64_t c, int64_t a, int64_t b)
{
    const int64_t m = 1 + below(3), k = 128, n = 64 + below(16);
    struct hw_tensor x = TENSOR(ours + a * SLOT, HW_F16, m, k);
    struct hw_tensor w = TENSOR(ours + b * SLOT, HW_F32, n, k);
    x.offset = 256 * (uint64_t)below(8);
    return (struct hw_matmul){
        .a = x,
        .b = w,
        .bias = { .dtype = HW_NONE, .rank = 77, .buffer = (void *)16 }, /* absent */
        .c = TENSOR(ours + c * SLOT + below(64), HW_F32, m, n),
        .transpose_b = 1,
    };
}

static uint32_t random_op(union args *args)
{
    const int64_t y = below(SLOTS), a = (y + 1 + below(SLOTS - 1)) % SLOTS,
                  b = (y + 1 + below(SLOTS - 1)) % SLOTS;
    const int64_t n = below(4) ? SLOT / 2 + below(SLOT / 2) : 1 + below(40);
    memset(args, 0, sizeof *args);
    switch (below(5)) {
    case 0: /* in place, or not */
        args->scale.y = part(y, n);
        args->scale.x = below(2) ? args->scale.y : part(a, n);
        args->scale.scale = 0.5f;
        args->scale.bias = (float)below(5);
        return HW_OP_SCALE;
    case 1:
        args->copy.dst = part(y, n);
        args->copy.src = part(a, n);
        return HW_OP_COPY;
    case 2:
        args->matmul = product(y, a, b);
        return HW_OP_MATMUL;
    default:
        args->binary.y = part(y, n);
        args->binary.a = part(a, n);
        args->binary.b = below(2) ? args->binary.y : part(b, n);
        return below(2) ? HW_OP_ADD : HW_OP_SUB;
    }
}

static int32_t submit(struct harness *h, uint32_t op, const void *args)
{
    switch (op) {
    case HW_OP_SCALE:
        return h->plugin.ops->scale(h->device, h->queue, args);
    case HW_OP_COPY:
        return h->plugin.ops->copy(h->device, h->queue, args);
    case HW_OP_MATMUL:
        return h->plugin.ops->matmul(h->device, h->queue, args);
    case HW_OP_SUB:
        return h->plugin.ops->sub(h->device, h->queue, args);
    default:
        return h->plugin.ops->add(h->device, h->queue, args);
    }
}

/* The same operands, in `theirs`; absent ones stay absent. */
static union args moved(const union args *args)
{
    union args copy = *args;
    for (int i = 0; i < 3; i++)
        if (copy.tensors[i].data)
            copy.tensors[i].data = theirs + ((float *)copy.tensors[i].data - ours);
    if (copy.matmul.c.data && copy.matmul.c.dtype)
        copy.matmul.c.data = theirs + ((float *)copy.matmul.c.data - ours);
    return copy;
}

static void fill(void)
{
    for (int i = 0; i < SLOTS * SLOT; i++)
        ours[i] = theirs[i] = (float)(below(1 << 12) - (1 << 11)) / 256;
}

static void check_graph(struct harness *h, struct harness *alone)
{
    union args args[NODES];
    struct hw_node nodes[NODES];
    void *graph = NULL;
    fill();
    for (int i = 0; i < NODES; i++)
        nodes[i] = (struct hw_node){ random_op(&args[i]), sizeof args[i], &args[i] };
    if (h->plugin.graph_build(h->queue, nodes, NODES, &graph))
        fail_msg("%s", h->message);
    for (int launch = 0; launch < 3; launch++) {
        shortage_begin(launch > 0); /* later ones allocate nothing */
        assert_int_equal(h->plugin.graph_launch(h->queue, graph), HW_OK);
        assert_false(shortage_end());
        for (int i = 0; i < NODES; i++) {
            const union args theirs_ = moved(&args[i]);
            if (submit(alone, nodes[i].op, &theirs_))
                fail_msg("%s", alone->message);
        }
    }
    h->plugin.graph_destroy(graph);
    assert_memory_equal(ours, theirs, sizeof ours);
}

static void check_threads(uint32_t threads)
{
    const int rounds = getenv("HW_TEST_QUICK") ? 200 : 2000;
    struct harness h, alone;
    harness_open(&h, "", threads);
    harness_open(&alone, "", 1);
    for (int i = 0; i < rounds; i++)
        check_graph(&h, &alone);
    harness_close(&alone);
    harness_close(&h);
}

static void one_thread(void **state)
{
    (void)state;
    check_threads(1);
}

static void two_threads(void **state)
{
    (void)state;
    check_threads(2);
}

static void more_threads(void **state)
{
    (void)state;
    check_threads(5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread),
        cmocka_unit_test(two_threads),
        cmocka_unit_test(more_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
