/* SPDX-License-Identifier: MIT */
/* test_chain.c - the worker's side of a graph when memory runs out: the graph has all of its nodes,
 * or does not exist. */
#include "server.h"

#include "../fixtures/shortage.h"
#include "base/message.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { NODES = 3 };

/* ---- the rest of the worker ---- */

int32_t server_fail(const char *what)
{
    return plugin_message_set(HW_INTERNAL, what);
}

bool server_view(struct server *server, const struct wire_view *view,
                 struct hw_buffer *buffer)
{
    (void)server, (void)view;
    *buffer = (struct hw_buffer){ .bytes = 16 };
    return true;
}

/* ---- the plugin, whose graph is its number of nodes ---- */

static int graphs;

static int32_t graph_build(void *queue, const struct hw_node *nodes, uint32_t count,
                           void **graph)
{
    uint32_t *made = malloc(sizeof *made);
    (void)queue;
    if (!made)
        return HW_NO_MEMORY;
    *made = count;
    *graph = made;
    graphs++;
    for (uint32_t i = 0; i < count; i++) {
        const struct hw_silu *silu = nodes[i].args;
        assert_int_equal(nodes[i].op, HW_OP_SILU);
        assert_int_equal(silu->x.buffer->bytes, 16);
    }
    return HW_OK;
}

static int32_t graph_launch(void *queue, void *graph)
{
    *(uint32_t *)queue = *(uint32_t *)graph;
    return HW_OK;
}

static void graph_destroy(void *graph)
{
    graphs--;
    free(graph);
}

static const struct hw_plugin table = { .graph_build = graph_build,
                                        .graph_launch = graph_launch,
                                        .graph_destroy = graph_destroy };

/* ---- the test ---- */

/* As proxy/worker/call.c writes it. */
struct node {
    struct wire_op head;
    struct hw_silu op;
    struct wire_view view;
};

/* Builds a graph of a few nodes. HW_OK: `number` is set. */
static int32_t build(struct server *server, uint32_t *number)
{
    const struct hw_tensor x = { .dtype = HW_F32,
                                 .rank = 1,
                                 .extent = { 4 },
                                 .stride = { 4 },
                                 .buffer = (struct hw_buffer *)(uintptr_t)1 };
    const struct node node = {
        .head = { .op = HW_OP_SILU, .bytes = sizeof node.op, .views = 1 },
        .op = { .x = x, .y = x },
    };
    struct chain *graph = NULL;
    for (int i = 0; i < NODES; i++)
        chain_add(server, &graph, &node.head);
    return chain_build(server, NULL, graph, number);
}

static void drop(struct server *server, uint32_t number)
{
    uint32_t nodes = 0;
    assert_int_equal(chain_launch(server, &nodes, number), HW_OK);
    assert_int_equal(nodes, NODES);
    chain_free(server, objects_remove(&server->graphs, number));
}

static void test_shortage(void **state)
{
    int failures = 0;
    (void)state;
    for (bool short_of = true; short_of;) {
        struct server server = { .table = &table };
        uint32_t number = 0;
        pthread_mutex_init(&server.graphs.lock, NULL);
        shortage_begin((unsigned)failures + 1);
        const int32_t status = build(&server, &number);
        short_of = shortage_end();
        assert_int_equal(status, short_of ? HW_NO_MEMORY : HW_OK);
        if (!status)
            drop(&server, number);
        assert_int_equal(graphs, 0);
        failures += short_of;
        free(server.graphs.list);
        pthread_mutex_destroy(&server.graphs.lock);
    }
    /* The graph, its list of nodes, a copy of each node, the plugin's graph, its number. */
    assert_int_equal(failures, 2 + NODES + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_shortage) };
    if (!shortage_possible()) {
        print_message("not applicable: this C library's allocator, or "
                      "ThreadSanitizer's, cannot be replaced\n");
        return 77;
    }
    return cmocka_run_group_tests_name("proxy chain", tests, NULL, NULL);
}
