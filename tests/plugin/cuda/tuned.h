/* SPDX-License-Identifier: MIT */
/* tuned.h - for tests of the CUDA plugin's tuned rows, and of graph nodes that become one launch,
 * on a stand-in for the driver with devices new enough for them. Nothing is computed: the tests
 * check which kernels are launched, with which arguments, in which order, and which of them
 * early. */
#ifndef TUNED_H
#define TUNED_H

#include "cuda.h"
#include "fake_driver.h"
#include "faults.h"
#include "kernels/heads.h"

#include "kernels/attention_decode.h"
#include "kernels/matmul_blocks.h"
#include "kernels/matmul_gemv.h"
#include "kernels/matmul_ring.h"
#include "kernels/matmul_tiles.h"
#include "kernels/matmul_wgmma.h"
#include "objects.h"

#include <hw/hw.h>
#include <hw/interop.h>
#include <hw/report.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "answers.h"

static struct hw_context *context;
static struct hw_device *hopper, *ampere, *turing, *blackwell; /* 9.0, 8.0, 7.5, 12.0 */
static struct hw_queue *queue;                                 /* on the first */

/* ---- launches ---- */

enum { MOST_LAUNCHES = 32 };

static int count;
static struct seen {
    char kernel[64];
    bool early, recorded;
    unsigned groups[3], shared;
    struct gemv_args gemv; /* of a kernel gemv_... */
    struct heads_args heads;
    struct decode_args decode;    /* decode_... */
    struct decode_step_args step; /* step_... */
    struct ring_args ring;        /* mma_... */
    struct tiles_args tiles;      /* tiles_... */
    struct blocks_args blocks;    /* blocks_... */
    struct wgmma_args wgmma;      /* wgmma_... */
} seen[MOST_LAUNCHES];

static inline void see(const struct fake_launch *launch)
{
    assert_true(count < MOST_LAUNCHES);
    struct seen *s = &seen[count++];
    memset(s, 0, sizeof *s);
    snprintf(s->kernel, sizeof s->kernel, "%s", launch->kernel);
    s->early = launch->early;
    s->recorded = launch->recorded;
    memcpy(s->groups, launch->groups, sizeof s->groups);
    s->shared = launch->shared;
    if (!strncmp(launch->kernel, "gemv_", 5))
        memcpy(&s->gemv, launch->arguments[0], sizeof s->gemv);
    if (!strcmp(launch->kernel, "heads_move"))
        memcpy(&s->heads, launch->arguments[0], sizeof s->heads);
    if (!strncmp(launch->kernel, "decode_", 7))
        memcpy(&s->decode, launch->arguments[0], sizeof s->decode);
    if (!strncmp(launch->kernel, "step_", 5))
        memcpy(&s->step, launch->arguments[0], sizeof s->step);
    if (!strncmp(launch->kernel, "mma_", 4))
        memcpy(&s->ring, launch->arguments[0], sizeof s->ring);
    if (!strncmp(launch->kernel, "tiles_", 6))
        memcpy(&s->tiles, launch->arguments[0], sizeof s->tiles);
    if (!strncmp(launch->kernel, "blocks_", 7))
        memcpy(&s->blocks, launch->arguments[0], sizeof s->blocks);
    if (!strncmp(launch->kernel, "wgmma_", 6))
        memcpy(&s->wgmma, launch->arguments[0], sizeof s->wgmma);
}

/* Fails unless the launches since the last call have kernels with these prefixes: "gemv_
 * rows_swiglu". */
static inline void launched(const char *names)
{
    char all[2048] = "";
    const char *at = names;
    int i = 0;
    for (int k = 0; k < count; k++) {
        strcat(all, seen[k].kernel);
        strcat(all, " ");
    }
    for (; *at; i++) {
        const size_t length = strcspn(at, " ");
        if (i >= count || strncmp(seen[i].kernel, at, length) != 0)
            fail_msg("launched %sinstead of %s", all, names);
        at += length + (at[length] == ' ');
    }
    if (i != count)
        fail_msg("launched %sinstead of %s", all, names);
    count = 0;
}

/* ---- the world ---- */

static inline void open_with(const struct hw_options *options)
{
    faults_reset();
    ok(hw_open(options, &context));
    assert_int_equal(hw_device_count(context), 4);
    ok(hw_device_find(context, "cuda:0", &hopper));
    ok(hw_device_find(context, "cuda:1", &ampere));
    ok(hw_device_find(context, "cuda:2", &turing));
    ok(hw_device_find(context, "cuda:3", &blackwell));
    ok(hw_queue_open(hopper, NULL, &queue));
    count = 0;
    fake_driver_watch(see);
}

static inline int open_all(void **state)
{
    (void)state;
    open_with(&(struct hw_options){
        .size = sizeof(struct hw_options), .backends = "cuda", .fallback = "error" });
    return 0;
}

static inline int close_all(void **state)
{
    (void)state;
    fake_driver_watch(NULL);
    hw_close(context);
    assert_int_equal(objects_count(), 0);
    assert_int_equal(fake_driver_depth(), 0);
    return 0;
}

static inline uint64_t address_of(const struct hw_tensor *t)
{
    struct hw_import memory = { .size = sizeof memory };
    ok(hw_buffer_export(t->buffer, "cuda.memory", &memory));
    return (uint64_t)(uintptr_t)memory.handle + memory.offset + t->offset;
}

static inline struct hw_tensor tensor(struct hw_device *device, uint32_t flags,
                                      int32_t dtype, int64_t rows, int64_t cols)
{
    struct hw_tensor t;
    ok(hw_tensor_alloc(device, flags, dtype, 2, (const int64_t[]){ rows, cols }, &t));
    return t;
}

/* One token; `n` weights of [ROWS,COLS] that no op may write, and their products. */
enum { ROWS = 512, COLS = 1024, PRODUCTS = 4 };

struct products {
    struct hw_tensor a;
    struct hw_matmul op[PRODUCTS];
};

static inline struct products products(struct hw_device *device, int32_t dtype)
{
    struct products p = { .a = tensor(device, 0, HW_F32, 1, COLS) };
    for (int i = 0; i < PRODUCTS; i++)
        p.op[i] = (struct hw_matmul){
            .a = p.a,
            .b = tensor(device, HW_BUFFER_READ_ONLY, dtype, ROWS, COLS),
            .c = tensor(device, 0, HW_F32, 1, ROWS),
            .transpose_b = 1,
        };
    return p;
}

static inline void record(void)
{
    count = 0;
    ok(hw_queue_record(queue));
}

/* Ends the recording. */
static inline void built(const char *names)
{
    struct hw_graph_info info = { .size = sizeof info };
    struct hw_graph *graph;
    ok(hw_queue_end(queue, &graph));
    ok(hw_graph_info(graph, &info));
    assert_int_equal(info.built, 1);
    for (int i = 0; i < count; i++)
        assert_true(seen[i].recorded);
    launched(names);
    ok(hw_graph_launch(graph, queue));
    ok(hw_queue_wait(queue));
    hw_graph_free(graph);
}

/* The heads of a layer, the elements of each, and the rows of its cache. */
enum { HEADS = 8, KV_HEADS = 2, SIZE = 128, CACHED = 64 };

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

#endif
