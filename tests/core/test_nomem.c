/* SPDX-License-Identifier: MIT */
/* test_nomem.c - the first allocation fails, then the second, the third and so on, in a
 * program that opens a context, computes on every path and closes. Each call either
 * returns HW_NO_MEMORY or works; nothing crashes, hangs or leaks (LeakSanitizer checks
 * the last).
 *
 * The linker redirects the library's allocations to this file (--wrap), not those of
 * plugins. */
#define _POSIX_C_SOURCE 200809L
#include "world.h"

static int countdown = -1; /* allocations left before one fails; negative: none fails */
static pthread_t tested;   /* allocations on other threads never fail */
static bool failed;

static bool fails_now(void)
{
    if (countdown < 0 || !pthread_equal(tested, pthread_self()))
        return false;
    failed |= countdown == 0;
    return countdown-- == 0;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__real_realloc(void *memory, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_realloc(void *memory, size_t size);
char *__wrap_strdup(const char *text);

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails_now() ? NULL : __real_aligned_alloc(alignment, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails_now() ? NULL : __real_realloc(memory, size);
}

char *__wrap_strdup(const char *text)
{
    return fails_now() ? NULL : __real_strdup(text);
}

/* ---- the program ---- */

static enum hw_status work(struct hw_context *context, struct hw_queue **queue)
{
    static float x[200], y[200];
    const int64_t extents[] = { 50, 4 };
    struct hw_device *near, *far;
    struct hw_tensor a, b, c, hx, hy, view;
    struct hw_event *event;
    struct hw_graph *graph;
    enum hw_status s;
    if ((s = hw_device_find(context, "discrete:0", &near)) ||
        (s = hw_device_find(context, "discrete:1", &far)) ||
        (s = hw_queue_open(near, NULL, queue)) ||
        (s = hw_tensor_alloc(near, 0, HW_F32, 2, extents, &a)) ||
        (s = hw_tensor_alloc(near, 0, HW_F32, 2, extents, &b)) ||
        (s = hw_tensor_alloc(far, HW_BUFFER_ZEROED, HW_F32, 2, extents, &c)) ||
        (s = hw_tensor_host(&hx, x, HW_F32, 2, extents)) ||
        (s = hw_tensor_host(&hy, y, HW_F32, 2, extents)) ||
        (s = copy_between(*queue, &a, &hx)) ||
        (s = hw_add(*queue, &(struct hw_add){ .a = a, .b = hx, .y = b })) ||
        (s = hw_tensor_slice(&view, &hy, 1, 0, 2)) ||
        (s = hw_silu(*queue, &(struct hw_silu){ .x = view, .y = view })) ||
        (s = hw_mul(*queue, &(struct hw_mul){ .a = a, .b = a, .y = b })) ||
        (s = copy_between(*queue, &c, &b)) || (s = hw_event_create(near, 0, &event)) ||
        (s = hw_event_record(event, *queue)) || (s = hw_queue_record(*queue)))
        return s;
    s = hw_add(*queue, &(struct hw_add){ .a = a, .b = a, .y = b });
    const enum hw_status ended = hw_queue_end(*queue, &graph);
    if (s || (s = ended) || (s = hw_graph_launch(graph, *queue)))
        return s;
    hw_buffer_free_after(a.buffer, *queue);
    return hw_queue_wait(*queue);
}

static void quiet(void *user, int32_t level, const char *text)
{
    (void)user, (void)level, (void)text;
}

static enum hw_status program(void)
{
    const struct hw_options options = { .size = sizeof options,
                                        .backends = "discrete,cpu",
                                        .plugin_path_only = getenv("HW_TEST_PLUGINS"),
                                        .threads = "1",
                                        .log_fn = quiet };
    struct hw_context *context = NULL;
    struct hw_queue *queue = NULL;
    enum hw_status status = hw_open(&options, &context);
    if (!status)
        status = work(context, &queue);
    hw_close(context);
    return status;
}

static void every_allocation_fails_once(void **state)
{
    enum { LIMIT = 5000 };
    int n = 0, errors = 0;
    (void)state;
    ok(program());
    tested = pthread_self();
    for (; n < LIMIT; n++) {
        countdown = n;
        failed = false;
        const enum hw_status status = program();
        countdown = -1;
        if (!failed)
            break; /* the program needs no more than n */
        /* Opening may succeed without a plugin for lack of memory. Some op may then be
         * unsupported. */
        if (status && status != HW_NO_MEMORY && status != HW_NO_DEVICE &&
            status != HW_INVALID && status != HW_UNSUPPORTED) {
            print_error("allocation %d: %s: %s\n", n, hw_status_name((int32_t)status),
                        hw_message());
            _fail(__FILE__, __LINE__);
        }
        errors += status == HW_NO_MEMORY;
    }
    assert_true(n > 50 && n < LIMIT);
    assert_true(errors > 20);
    ok(program());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
