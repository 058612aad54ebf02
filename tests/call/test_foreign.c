/* SPDX-License-Identifier: MIT */
/* test_foreign.c - queues and memory shared with a vendor's API, in both directions: imports remain
 * their owner's property, exports are the library's own. Calls the API of tests/fixtures/foreign.c
 * directly, like an application with its own stream. */
#include "foreign_world.h"

/* ---- imported queues ---- */

static int ran;

static void count_run(struct foreign_job *job)
{
    (void)job;
    ran++;
}

static void work_on_an_imported_queue_is_waited_for(void **state)
{
    struct foreign_queue theirs = { 0 };
    struct foreign_job before = { .run = count_run }, after = before;
    struct hw_queue *imported;
    const float x[4] = { 1, 2, 3, 4 }, zero[4] = { 0 };
    (void)state;
    ran = 0;
    struct hw_tensor a = vector(queue, x), y = vector(queue, zero);
    foreign_submit(&theirs, &before);
    ok(hw_queue_import(one, NULL, FOREIGN_QUEUE, &theirs, &imported));
    assert_ptr_equal(hw_queue_device(imported), one);
    assert_int_equal(ran, 0);
    ok(hw_add(imported, &(struct hw_add){ .a = a, .b = a, .y = y }));
    foreign_submit(&theirs, &after);
    holds(queue, &y, 0, 0, 0, 0); /* another queue waits for its own work */
    assert_non_null(theirs.first);
    ok(hw_queue_wait(imported));
    assert_null(theirs.first);
    assert_int_equal(ran, 2);
    holds(queue, &y, 2, 4, 6, 8);
    assert_int_equal(calls(imported, HW_OP_ADD).calls, 1);
    /* The work keeps the order of the owner's queue, and the owner can wait for it. */
    ok(hw_add(imported, &(struct hw_add){ .a = y, .b = y, .y = y }));
    foreign_finish(&theirs);
    holds(imported, &y, 4, 8, 12, 16);
    hw_queue_close(imported);
}

static void closing_keeps_the_owners_queue(void **state)
{
    struct foreign_queue theirs = { 0 };
    struct foreign_job job = { .run = count_run };
    struct hw_queue *imported;
    const float x[4] = { 1, 2, 3, 4 };
    (void)state;
    struct hw_tensor a = vector(queue, x);
    ok(hw_queue_import(one, NULL, FOREIGN_QUEUE, &theirs, &imported));
    ok(hw_add(imported, &(struct hw_add){ .a = a, .b = a, .y = a }));
    hw_queue_close(imported);
    assert_null(theirs.first); /* closing waits, as for any queue */
    holds(queue, &a, 2, 4, 6, 8);
    assert_int_equal(times("closed an imported queue"), 1);
    assert_false(theirs.closed);
    /* Import it again: this time the context closes it. */
    ran = 0;
    ok(hw_queue_import(one, NULL, FOREIGN_QUEUE, &theirs, &imported));
    foreign_submit(&theirs, &job);
    hw_close(context);
    assert_int_equal(ran, 1);
    assert_int_equal(times("closed an imported queue"), 2);
    assert_int_equal(times("closed a queue"), 2);
    assert_false(theirs.closed);
    open_all(NULL);
}

static void invalid_queues_are_rejected(void **state)
{
    struct foreign_queue theirs = { 0 };
    struct hw_queue *imported = queue;
    (void)state;
    fails(HW_UNSUPPORTED, "import a queue on foreign:0: queues of kind \"cuda.stream\"",
          hw_queue_import(one, NULL, "cuda.stream", &theirs, &imported));
    assert_null(imported);
    imported = queue;
    fails(HW_INVALID, "kind", hw_queue_import(one, NULL, NULL, &theirs, &imported));
    assert_null(imported);
    imported = queue;
    fails(HW_INVALID, "import a queue on foreign:0: NULL is not a queue handle",
          hw_queue_import(one, NULL, FOREIGN_QUEUE, NULL, &imported));
    assert_null(imported);
    imported = queue;
    fails(HW_UNSUPPORTED, "cpu:0",
          hw_queue_import(cpu, NULL, FOREIGN_QUEUE, &theirs, &imported));
    assert_null(imported);
    imported = queue;
    fails(HW_INVALID, "device",
          hw_queue_import(NULL, NULL, FOREIGN_QUEUE, &theirs, &imported));
    assert_null(imported);
    fails(HW_INVALID, "queue", hw_queue_import(one, NULL, FOREIGN_QUEUE, &theirs, NULL));
    assert_int_equal(times("closed"), 0);
}

/* Flags and rows are passed to the plugin, which knows how the owner created the queue. */
static void imported_queues_have_options(void **state)
{
    struct foreign_queue theirs = { 0 }, timed = { .timed = true };
    struct hw_queue_options options = { .size = sizeof options, .flags = HW_QUEUE_TIMING };
    struct hw_queue *imported;
    (void)state;
    fails(HW_UNSUPPORTED, "not timed",
          hw_queue_import(one, &options, FOREIGN_QUEUE, &theirs, &imported));
    ok(hw_queue_import(one, &options, FOREIGN_QUEUE, &timed, &imported));
    hw_queue_close(imported);
    options.flags = 64;
    fails(HW_INVALID, "hw_queue_import: unknown flags 0x40",
          hw_queue_import(one, &options, FOREIGN_QUEUE, &timed, &imported));
    options = (struct hw_queue_options){ .size = sizeof options, .kernel = "best" };
    fails(HW_INVALID, "no row is called \"best\"",
          hw_queue_import(one, &options, FOREIGN_QUEUE, &theirs, &imported));
    options.kernel = "plain";
    ok(hw_queue_import(one, &options, FOREIGN_QUEUE, &theirs, &imported));
    hw_queue_close(imported);
    options.size = 0;
    fails(HW_INVALID, "options->size is 0",
          hw_queue_import(one, &options, FOREIGN_QUEUE, &theirs, &imported));
    assert_null(imported);
}

/* ---- exported queues and memory ---- */

static void exported_memory_is_the_buffers(void **state)
{
    const float x[4] = { 1, 2, 3, 4 };
    struct hw_import desc = { .size = sizeof desc };
    struct hw_buffer *again;
    (void)state;
    struct hw_tensor before = vector(queue, x), a = vector(queue, x);
    ok(hw_queue_wait(queue));
    ok(hw_buffer_export(a.buffer, FOREIGN_MEMORY, &desc));
    assert_string_equal(desc.kind, FOREIGN_MEMORY);
    assert_int_equal(desc.bytes, hw_buffer_bytes(a.buffer));
    struct foreign_memory *memory = desc.handle;
    float *cells = (float *)(void *)(memory->cells + desc.offset);
    assert_float_equal(cells[2], 3, 0);
    cells[2] = 30;
    holds(queue, &a, 1, 2, 30, 4);
    holds(queue, &before, 1, 2, 3, 4); /* another part of the same memory */
    /* The result of the export can be imported. */
    ok(hw_buffer_import(one, &desc, &again));
    struct hw_tensor same = a;
    same.buffer = again;
    holds(queue, &same, 1, 2, 30, 4);
    hw_buffer_free(again);
    fails(HW_UNSUPPORTED, "hw_buffer_export on foreign:0: memory is not of kind \"other\"",
          hw_buffer_export(a.buffer, "other", &desc));
    fails(HW_INVALID, "kind must not be NULL", hw_buffer_export(a.buffer, NULL, &desc));
    fails(HW_INVALID, "buffer must not be NULL",
          hw_buffer_export(NULL, FOREIGN_MEMORY, &desc));
    fails(HW_INVALID, "desc must not be NULL",
          hw_buffer_export(a.buffer, FOREIGN_MEMORY, NULL));
    desc.size = 4;
    fails(HW_INVALID, "size is 4", hw_buffer_export(a.buffer, FOREIGN_MEMORY, &desc));
}

static void work_on_an_exported_queue_keeps_the_order(void **state)
{
    const float x[4] = { 1, 2, 3, 4 };
    struct foreign_job job = { .run = count_run };
    void *handle;
    (void)state;
    ran = 0;
    struct hw_tensor a = vector(queue, x);
    ok(hw_queue_export(queue, FOREIGN_QUEUE, &handle));
    foreign_submit(handle, &job);
    assert_int_equal(ran, 0);
    holds(queue, &a, 1, 2, 3, 4);
    assert_int_equal(ran, 1);
    fails(HW_UNSUPPORTED, "hw_queue_export on foreign:0: queues are not of kind \"other\"",
          hw_queue_export(queue, "other", &handle));
    assert_null(handle);
    fails(HW_UNSUPPORTED, "cpu:0: the plugin has no handles of its queues",
          hw_queue_export(on_cpu, FOREIGN_QUEUE, &handle));
    fails(HW_INVALID, "kind must not be NULL", hw_queue_export(queue, NULL, &handle));
    fails(HW_INVALID, "handle must not be NULL",
          hw_queue_export(queue, FOREIGN_QUEUE, NULL));
}

/* Doubles a vector of four on each launch. */
struct doubling {
    struct foreign_job job;
    float *cells;
    int32_t answer;
    int calls;
};

static void run_doubling(struct foreign_job *job)
{
    const struct doubling *doubling = (struct doubling *)(void *)job;
    for (int i = 0; i < 4; i++)
        doubling->cells[i] *= 2;
}

static int32_t submit_doubling(void *user, void *handle)
{
    struct doubling *doubling = user;
    doubling->calls++;
    if (!doubling->answer)
        foreign_submit(handle, &doubling->job);
    return doubling->answer;
}

static struct doubling doubling_of(const struct hw_tensor *t)
{
    struct hw_import desc = { .size = sizeof desc };
    ok(hw_buffer_export(t->buffer, FOREIGN_MEMORY, &desc));
    const struct foreign_memory *memory = desc.handle;
    return (struct doubling){
        .job.run = run_doubling,
        .cells = (float *)(void *)(memory->cells + desc.offset),
    };
}

static struct hw_plugin its_own;
static int transfers;

/* Pretends that the host can see the memory. */
static int32_t alloc_visible(void *device, uint64_t bytes, uint32_t flags,
                             struct hw_buffer *buffer)
{
    struct hw_import desc = { .size = sizeof desc };
    ok((enum hw_status)its_own.buffer_alloc(device, bytes, 0, buffer));
    ok((enum hw_status)its_own.buffer_export(device, buffer, FOREIGN_MEMORY, &desc));
    struct foreign_memory *memory = desc.handle;
    free(memory->cells);
    memory->cells = aligned_alloc(256, bytes); /* any buffer's alignment, and size */
    assert_non_null(memory->cells);
    buffer->flags = flags;
    buffer->host = flags & HW_BUFFER_HOST_VISIBLE ? memory->cells : NULL;
    return HW_OK;
}

static int32_t count_transfer(void *on, const struct hw_transfer *transfer)
{
    transfers++;
    return its_own.transfer(on, transfer);
}

/* Small inputs then need no transfer. Results are ready for the owner's later work, and for an
 * owner that has waited for the queue. */
static void results_in_host_memory_keep_the_order(void **state)
{
    float x[4] = { 1, 2, 3, 4 }, y[4] = { 0 };
    struct doubling doubling = { .job.run = run_doubling, .cells = y };
    const struct hw_tensor a = hw_host_1d(x, HW_F32, 4), b = hw_host_1d(y, HW_F32, 4);
    struct foreign_queue theirs = { 0 };
    struct hw_queue *imported;
    (void)state;
    its_own = one->plugin->table;
    one->plugin->table.buffer_alloc = alloc_visible;
    one->plugin->table.transfer = count_transfer;
    transfers = 0;
    ok(hw_add(queue, &(struct hw_add){ .a = a, .b = a, .y = b }));
    ok(hw_queue_call(queue, FOREIGN_QUEUE, submit_doubling, &doubling));
    ok(hw_queue_wait(queue));
    assert_true(y[0] == 4.0f && y[3] == 16.0f);
    ok(hw_queue_import(one, NULL, FOREIGN_QUEUE, &theirs, &imported));
    ok(hw_add(imported, &(struct hw_add){ .a = a, .b = a, .y = b }));
    foreign_finish(&theirs);
    assert_true(y[0] == 2.0f && y[3] == 8.0f);
    assert_int_equal(transfers, 2);
    hw_queue_close(imported);
}

/* y = 2 (x + x) + x, three times: the first device's plugin builds the graph, the library replays
 * it on the second. */
static void calls_are_part_of_a_graph(struct hw_queue *on, int calls_at_end,
                                      int calls_per_launch)
{
    const float x[4] = { 1, 2, 3, 4 }, zero[4] = { 0 };
    struct hw_graph *graph;
    struct hw_graph_info info = { .size = sizeof info };
    char kind[] = FOREIGN_QUEUE;
    struct hw_tensor a = vector(on, x), y = vector(on, zero);
    ok(hw_queue_wait(on));
    struct doubling doubling = doubling_of(&y);
    ok(hw_queue_record(on));
    ok(hw_add(on, &(struct hw_add){ .a = a, .b = a, .y = y }));
    ok(hw_queue_call(on, kind, submit_doubling, &doubling));
    ok(hw_add(on, &(struct hw_add){ .a = y, .b = a, .y = y }));
    memset(kind, 'x', sizeof kind - 1); /* the graph has a copy */
    ok(hw_queue_end(on, &graph));
    ok(hw_graph_info(graph, &info));
    assert_int_equal(info.nodes, 3);
    assert_int_equal(info.segments, 1);
    assert_int_equal(doubling.calls, calls_at_end);
    for (int i = 0; i < 3; i++) {
        ok(hw_graph_launch(graph, on));
        holds(on, &y, 5, 10, 15, 20);
    }
    assert_int_equal(doubling.calls, calls_at_end + 3 * calls_per_launch);
    hw_graph_free(graph);
}

static void calls_are_built_into_a_graph(void **state)
{
    (void)state;
    calls_are_part_of_a_graph(queue, 1, 0);
}

static void calls_are_replayed(void **state)
{
    (void)state;
    calls_are_part_of_a_graph(on_two, 0, 1);
}

static void calls_that_fail_are_reported(void **state)
{
    const float x[4] = { 1, 2, 3, 4 };
    struct hw_graph *graph = NULL;
    (void)state;
    struct hw_tensor a = vector(queue, x), b = vector(on_two, x);
    ok(hw_queue_wait(queue));
    ok(hw_queue_wait(on_two));
    struct doubling good = doubling_of(&a), bad = doubling_of(&b);
    bad.answer = HW_DRIVER;
    ok(hw_queue_call(queue, FOREIGN_QUEUE, submit_doubling, &good));
    holds(queue, &a, 2, 4, 6, 8);
    fails(HW_DRIVER, "hw_queue_call on foreign:0: the application's function failed",
          hw_queue_call(queue, FOREIGN_QUEUE, submit_doubling, &bad));
    ok(hw_queue_record(queue));
    ok(hw_queue_call(queue, FOREIGN_QUEUE, submit_doubling, &bad));
    fails(HW_DRIVER, "a call in the graph failed", hw_queue_end(queue, &graph));
    assert_null(graph);
    ok(hw_queue_record(on_two));
    fails(HW_UNSUPPORTED, "queues are not of kind \"other\"",
          hw_queue_call(on_two, "other", submit_doubling, &bad));
    ok(hw_queue_call(on_two, FOREIGN_QUEUE, submit_doubling, &bad));
    ok(hw_queue_end(on_two, &graph));
    fails(HW_DRIVER, "the application's function failed", hw_graph_launch(graph, on_two));
    fails(HW_INVALID, "fn must not be NULL",
          hw_queue_call(queue, FOREIGN_QUEUE, NULL, NULL));
    fails(HW_UNSUPPORTED, "cpu:0: the plugin has no handles of its queues",
          hw_queue_call(on_cpu, FOREIGN_QUEUE, submit_doubling, &bad));
}

/* ---- imported memory ---- */

/* The device has no host-visible memory. Host tensors are staged all the same. */
static void host_visible_memory_is_unsupported(void **state)
{
    static const uint32_t flags[] = { HW_BUFFER_HOST_VISIBLE, HW_BUFFER_PINNED };
    struct hw_buffer *buffer;
    (void)state;
    for (int i = 0; i < 2; i++) {
        fails(HW_UNSUPPORTED, "cannot see", hw_buffer_alloc(one, 1000, flags[i], &buffer));
        assert_null(buffer);
    }
    fails(HW_INVALID, "NULL", hw_buffer_alloc(one, 8, 0, NULL));
    struct hw_tensor t = vector(queue, (float[]){ 1, 2, 3, 4 });
    holds(queue, &t, 1, 2, 3, 4);
    assert_non_null(strstr(hw_message(), "NULL")); /* nothing has failed since */
}

static void imported_memory_is_used_in_place(void **state)
{
    float cells[8] = { 9, 9, 9, 9, 1, 2, 3, 4 };
    struct foreign_memory theirs = { sizeof cells, (unsigned char *)cells };
    struct hw_buffer *buffer;
    struct hw_tensor a, y;
    const int64_t four = 4;
    (void)state;
    ok(import(one, FOREIGN_MEMORY, &theirs, sizeof cells, &buffer));
    assert_int_equal(hw_buffer_bytes(buffer), sizeof cells);
    assert_ptr_equal(hw_buffer_device(buffer), one);
    assert_null(hw_buffer_host(buffer));
    ok(hw_tensor_view(&a, buffer, 16, HW_F32, 1, &four));
    ok(hw_tensor_view(&y, buffer, 0, HW_F32, 1, &four));
    fails(HW_INVALID, "exceed its buffer",
          hw_tensor_view(&a, buffer, 20, HW_F32, 1, &four));
    ok(hw_tensor_view(&a, buffer, 16, HW_F32, 1, &four));
    ok(hw_add(queue, &(struct hw_add){ .a = a, .b = a, .y = y }));
    assert_true(cells[0] == 9.0f); /* still queued */
    ok(hw_queue_wait(queue));
    assert_true(cells[0] == 2.0f && cells[3] == 8.0f && cells[4] == 1.0f);
    /* It behaves like any buffer of the device. */
    fails(HW_INVALID, "foreign:0",
          hw_add(on_two, &(struct hw_add){ .a = a, .b = a, .y = y }));
    /* Freeing the buffer does not free the memory. */
    ok(hw_add(queue, &(struct hw_add){ .a = y, .b = a, .y = y }));
    hw_buffer_free_after(buffer, queue);
    ok(hw_queue_wait(queue));
    assert_true(cells[0] == 3.0f && cells[3] == 12.0f);
    ok(import(one, FOREIGN_MEMORY, &theirs, 16, &buffer));
    hw_buffer_free(buffer);
    assert_true(cells[0] == 3.0f);
    ok(import(one, FOREIGN_MEMORY, &theirs, 16, &buffer)); /* the context frees it */
}

/* A part of the memory is imported and used. */
static void parts_of_memory_are_imported(void **state)
{
    float cells[12] = { 9, 9, 9, 9, 1, 2, 3, 4, 7, 7, 7, 7 };
    struct foreign_memory theirs = { sizeof cells, (unsigned char *)cells };
    struct hw_import desc = { .size = sizeof desc,
                              .kind = FOREIGN_MEMORY,
                              .handle = &theirs,
                              .offset = 16,
                              .bytes = 16 };
    struct hw_buffer *part, *fixed;
    struct hw_tensor a, b;
    const int64_t four = 4;
    (void)state;
    ok(hw_buffer_import(one, &desc, &part));
    desc.flags = HW_BUFFER_READ_ONLY;
    desc.offset = 32;
    ok(hw_buffer_import(one, &desc, &fixed));
    ok(hw_tensor_view(&a, part, 0, HW_F32, 1, &four));
    ok(hw_tensor_view(&b, fixed, 0, HW_F32, 1, &four));
    fails(HW_INVALID, "exceed its buffer",
          hw_tensor_view(&(struct hw_tensor){ 0 }, part, 4, HW_F32, 1, &four));
    ok(hw_add(queue, &(struct hw_add){ .a = a, .b = b, .y = a }));
    ok(hw_queue_wait(queue));
    const float sums[12] = { 9, 9, 9, 9, 8, 9, 10, 11, 7, 7, 7, 7 };
    assert_memory_equal(cells, sums, sizeof cells);
    fails(HW_INVALID, "read-only",
          hw_add(queue, &(struct hw_add){ .a = a, .b = a, .y = b }));
    /* Parts that exceed the memory, and offsets that overflow. */
    desc.offset = 36;
    fails(HW_INVALID, "16 bytes from byte 36 on", hw_buffer_import(one, &desc, &part));
    desc.offset = UINT64_MAX - 7;
    fails(HW_INVALID, "16 bytes overflow", hw_buffer_import(one, &desc, &part));
    assert_null(part);
}

static void descriptions_of_memory_are_checked(void **state)
{
    _Alignas(8) unsigned char cells[32] = { 0 };
    const struct hw_import good = {
        .size = sizeof good, .kind = "host", .handle = cells, .offset = 8, .bytes = 16
    };
    struct {
        struct hw_import desc;
        unsigned char more[8];
    } newer = { .desc = good };
    struct hw_buffer *buffer;
    (void)state;
    ok(hw_buffer_import(cpu, &good, &buffer));
    assert_ptr_equal(hw_buffer_host(buffer), cells + 8);
#define REFUSED(field, value, status, words)                                               \
    do {                                                                                   \
        struct hw_import desc = good;                                                      \
        desc.field = value;                                                                \
        buffer = (struct hw_buffer *)&desc;                                                \
        fails(status, words, hw_buffer_import(cpu, &desc, &buffer));                       \
        assert_null(buffer);                                                               \
    } while (0)
    REFUSED(size, 0, HW_INVALID, "size is 0");
    REFUSED(size, sizeof good - 8, HW_INVALID, "size");
    REFUSED(kind, NULL, HW_INVALID, "kind");
    REFUSED(kind, "", HW_UNSUPPORTED, "\"\"");
    REFUSED(kind, "hos", HW_UNSUPPORTED, "\"hos\"");
    REFUSED(handle, NULL, HW_INVALID, "must have an address");
    REFUSED(handle, (void *)~(uintptr_t)7, HW_INVALID, "must have an address");
    REFUSED(offset, 4, HW_INVALID, "multiple of 8");
    REFUSED(offset, ~UINT64_C(7), HW_INVALID, "bytes overflow");
    REFUSED(flags, HW_BUFFER_ZEROED, HW_INVALID, "flags are 0x10");
    REFUSED(flags, HW_BUFFER_READ_ONLY | HW_BUFFER_WRITE_ONLY, HW_INVALID, "flags are 0xc");
    REFUSED(flags, 1u << 31, HW_INVALID, "flags are 0x80000000");
#undef REFUSED
    fails(HW_INVALID, "desc", hw_buffer_import(cpu, NULL, &buffer));
    /* From a newer application: unknown fields must be zero. */
    newer.desc.size = sizeof newer;
    ok(hw_buffer_import(cpu, &newer.desc, &buffer));
    newer.more[7] = 1;
    fails(HW_UNSUPPORTED, "this library version does not know",
          hw_buffer_import(cpu, &newer.desc, &buffer));
    assert_null(buffer);
}

static void invalid_memory_is_rejected(void **state)
{
    float cells[4] = { 0 };
    struct foreign_memory theirs = { sizeof cells, (unsigned char *)cells };
    struct hw_buffer *buffer;
    (void)state;
    fails(HW_UNSUPPORTED, "hw_buffer_import on foreign:0: memory of kind \"host\"",
          import(one, "host", cells, sizeof cells, &buffer));
    assert_null(buffer);
    fails(HW_INVALID, "NULL is not a memory handle",
          import(one, FOREIGN_MEMORY, NULL, 16, &buffer));
    fails(HW_INVALID, "17 bytes from byte 0 on of memory that has 16",
          import(one, FOREIGN_MEMORY, &theirs, 17, &buffer));
    assert_null(buffer);
    fails(HW_UNSUPPORTED, "cpu:0", import(cpu, FOREIGN_MEMORY, &theirs, 16, &buffer));
    fails(HW_INVALID, "device", import(NULL, FOREIGN_MEMORY, &theirs, 16, &buffer));
    fails(HW_INVALID, "buffer", import(one, FOREIGN_MEMORY, &theirs, 16, NULL));
}

/* ---- discarded contents ---- */

/* y = a + b, z = y + a, then y is discarded. */
static void record_sums(struct hw_queue *on, const struct hw_tensor *a,
                        const struct hw_tensor *y, const struct hw_tensor *z,
                        struct hw_graph **graph)
{
    ok(hw_queue_record(on));
    ok(hw_add(on, &(struct hw_add){ .a = *a, .b = *a, .y = *y }));
    ok(hw_add(on, &(struct hw_add){ .a = *y, .b = *a, .y = *z }));
    ok(hw_tensor_discard(on, y));
    ok(hw_queue_end(on, graph));
}

static void graphs_need_not_write_what_is_discarded(void **state)
{
    const float x[4] = { 1, 2, 3, 4 }, zero[4] = { 0 };
    struct hw_tensor a = vector(queue, x), y = vector(queue, zero), z = vector(queue, zero);
    struct hw_graph_info info = { .size = sizeof info };
    struct hw_graph *graph;
    (void)state;
    record_sums(queue, &a, &y, &z, &graph);
    ok(hw_graph_info(graph, &info));
    assert_int_equal(info.nodes, 3);
    assert_int_equal(info.built, 1);
    ok(hw_graph_launch(graph, queue));
    holds(queue, &z, 3, 6, 9, 12);
    holds(queue, &y, 0, 0, 0, 0);
    assert_int_equal(calls(queue, HW_OP_ADD).calls, 2);
    hw_graph_free(graph);
    /* Discarding another tensor has no effect. */
    ok(hw_queue_record(queue));
    ok(hw_add(queue, &(struct hw_add){ .a = a, .b = a, .y = y }));
    ok(hw_add(queue, &(struct hw_add){ .a = y, .b = a, .y = z }));
    ok(hw_tensor_discard(queue, &z));
    ok(hw_queue_end(queue, &graph));
    ok(hw_graph_launch(graph, queue));
    holds(queue, &y, 2, 4, 6, 8);
}

/* No effect on a device that builds no graphs, or with a plugin that does not support it. */
static void discarding_is_not_needed(void **state)
{
    struct hw_queue *const queues[] = { on_two, on_cpu };
    const float x[4] = { 1, 2, 3, 4 }, zero[4] = { 0 };
    struct hw_graph_info info = { .size = sizeof info };
    struct hw_graph *graph;
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct hw_tensor a = vector(queues[i], x), y = vector(queues[i], zero),
                         z = vector(queues[i], zero);
        ok(hw_tensor_discard(queues[i], &y)); /* does nothing */
        record_sums(queues[i], &a, &y, &z, &graph);
        ok(hw_graph_info(graph, &info));
        assert_int_equal(info.nodes, i == 0 ? 3 : 2);
        ok(hw_graph_launch(graph, queues[i]));
        holds(queues[i], &z, 3, 6, 9, 12);
        holds(queues[i], &y, 2, 4, 6, 8);
    }
}

/* After a node that is replayed, the discard is replayed as well. */
static void discarding_divides_no_graph(void **state)
{
    const float x[4] = { 1, 2, 3, 4 };
    float there[4];
    const int64_t four = 4;
    struct hw_tensor a = vector(queue, x), host;
    struct hw_graph_info info = { .size = sizeof info };
    struct hw_graph *graph;
    (void)state;
    ok(hw_tensor_host(&host, there, HW_F32, 1, &four));
    ok(hw_queue_record(queue));
    ok(hw_add(queue, &(struct hw_add){ .a = a, .b = a, .y = a }));
    ok(hw_add(queue, &(struct hw_add){ .a = a, .b = a, .y = host })); /* is staged */
    ok(hw_tensor_discard(queue, &a));
    ok(hw_queue_end(queue, &graph));
    ok(hw_graph_info(graph, &info));
    assert_int_equal(info.nodes, 3);
    assert_int_equal(info.segments, 2);
    ok(hw_graph_launch(graph, queue));
    ok(hw_queue_wait(queue));
    assert_true(there[3] == 16.0f);
}

static void only_what_could_be_written_is_discarded(void **state)
{
    const float x[4] = { 1, 2, 3, 4 };
    const int64_t four = 4;
    struct hw_tensor a = vector(queue, x), other = vector(on_two, x), weights;
    (void)state;
    ok(hw_tensor_alloc(one, HW_BUFFER_READ_ONLY, HW_F32, 1, &four, &weights));
    fails(HW_INVALID, "hw_tensor_discard: argument 0: tensor is NULL",
          hw_tensor_discard(queue, NULL));
    fails(HW_INVALID, "is read-only", hw_tensor_discard(queue, &weights));
    fails(HW_INVALID, "in a buffer of foreign:1", hw_tensor_discard(queue, &other));
    fails(HW_INVALID, "queue must not be NULL", hw_tensor_discard(NULL, &a));
    a.extent[0] = 5;
    fails(HW_INVALID, "20 bytes", hw_tensor_discard(queue, &a));
}

/* ---- devices ---- */

static void devices_are_known_by_their_handles(void **state)
{
    struct foreign_device theirs = { FOREIGN_FIRST };
    struct hw_device *device;
    (void)state;
    ok(hw_device_import(context, FOREIGN_DEVICE, &theirs, &device));
    assert_ptr_equal(device, one);
    theirs.number++;
    ok(hw_device_import(context, FOREIGN_DEVICE, &theirs, &device));
    assert_ptr_equal(device, two);
    theirs.number++;
    fails(HW_NO_DEVICE, "hw_device_import: no device has the number 102",
          hw_device_import(context, FOREIGN_DEVICE, &theirs, &device));
    assert_null(device);
    fails(HW_UNSUPPORTED, "no plugin knows devices of the kind \"other.device\"",
          hw_device_import(context, "other.device", &theirs, &device));
    fails(HW_INVALID, "kind must not be NULL",
          hw_device_import(context, NULL, &theirs, &device));
    fails(HW_INVALID, "context must not be NULL",
          hw_device_import(NULL, FOREIGN_DEVICE, &theirs, &device));
    fails(HW_INVALID, "device must not be NULL",
          hw_device_import(context, FOREIGN_DEVICE, &theirs, NULL));
}

/* The plugin has the device, but the settings exclude it. */
static void devices_that_are_not_selected_are_not_found(void **state)
{
    const struct hw_options options = { .size = sizeof options,
                                        .backends = "foreign:1",
                                        .plugin_path = getenv("HW_TEST_PLUGINS") };
    struct foreign_device theirs = { FOREIGN_FIRST };
    struct hw_context *few;
    struct hw_device *device;
    (void)state;
    ok(hw_open(&options, &few));
    fails(HW_NO_DEVICE, "device 0 of plugin foreign is not selected",
          hw_device_import(few, FOREIGN_DEVICE, &theirs, &device));
    theirs.number++;
    ok(hw_device_import(few, FOREIGN_DEVICE, &theirs, &device));
    assert_string_equal(hw_device_name(device), "foreign:1");
    hw_close(few);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(work_on_an_imported_queue_is_waited_for),
        TEST(closing_keeps_the_owners_queue),
        TEST(invalid_queues_are_rejected),
        TEST(imported_queues_have_options),
        TEST(host_visible_memory_is_unsupported),
        TEST(exported_memory_is_the_buffers),
        TEST(work_on_an_exported_queue_keeps_the_order),
        TEST(results_in_host_memory_keep_the_order),
        TEST(calls_are_built_into_a_graph),
        TEST(calls_are_replayed),
        TEST(calls_that_fail_are_reported),
        TEST(imported_memory_is_used_in_place),
        TEST(parts_of_memory_are_imported),
        TEST(descriptions_of_memory_are_checked),
        TEST(invalid_memory_is_rejected),
        TEST(graphs_need_not_write_what_is_discarded),
        TEST(discarding_is_not_needed),
        TEST(discarding_divides_no_graph),
        TEST(only_what_could_be_written_is_discarded),
        TEST(devices_are_known_by_their_handles),
        TEST(devices_that_are_not_selected_are_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
