/* SPDX-License-Identifier: MIT */
/* walk.c - see walk.h. */
#define _POSIX_C_SOURCE 200809L
#include "walk.h"

#include "faults.h"

#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

bool walk_keep(struct walk *w, enum hw_status status, const char *step)
{
    if (!status)
        return true;
    w->status = status;
    w->step = step;
    snprintf(w->message, sizeof w->message, "%s", hw_message());
    return false;
}

/* ---- opening ---- */

static void keep_log(void *user, int32_t level, const char *text)
{
    struct walk *w = user;
    const size_t used = strlen(w->log);
    (void)level;
    snprintf(w->log + used, sizeof w->log - used, "%s\n", text);
}

void walk_open(struct walk *w, const struct vendor *vendor)
{
    const struct hw_options options = { .size = sizeof options,
                                        .backends = vendor->backend,
                                        .fallback = "error",
                                        .cache_dir = "/dev/null/hw", /* as if it kept all */
                                        .log = "debug",
                                        .log_fn = keep_log,
                                        .log_user = w };
    memset(w, 0, sizeof *w);
    w->vendor = vendor;
    TRY(hw_open(&options, &w->context));
}

void walk_close(struct walk *w)
{
    hw_close(w->context);
    w->context = NULL;
}

/* ---- the steps ---- */

enum { ROWS = 6, COLS = 16, COUNT = ROWS * COLS };

static void count_up(float *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)(i % 23) * 0.25f - 2.0f;
}

bool walk_is_silu(const float *y, const float *x, int n)
{
    for (int i = 0; i < n; i++) {
        const double wanted = (double)x[i] / (1.0 + exp(-(double)x[i]));
        if (fabs((double)y[i] - wanted) > 1e-5)
            return false;
    }
    return true;
}

static void expect(const struct walk *w, bool right, const char *what)
{
    if (!w->status && !right)
        fail_msg("%s: wrong results", what);
}

/* Waits before memory is freed that work may still use. */
static void settle(struct walk *w)
{
    TRY(hw_queue_wait(w->queue));
    if (w->status)
        hw_queue_wait(w->queue);
}

static void make(struct walk *w, struct hw_tensor *t, uint32_t flags, int64_t rows,
                 int64_t cols)
{
    const int64_t extents[] = { rows, cols };
    memset(t, 0, sizeof *t);
    TRY(hw_tensor_alloc(w->device, flags, HW_F32, 2, extents, t));
}

/* Copies in both directions, and rows with gaps between them. */
static void copy(struct walk *w)
{
    enum { FIRST = 4, WIDTH = 8 };
    float x[ROWS * WIDTH], y[COUNT];
    struct hw_tensor whole, part;
    bool right = true;
    count_up(x, ROWS * WIDTH);
    make(w, &whole, HW_BUFFER_ZEROED, ROWS, COLS);
    TRY(hw_tensor_slice(&part, &whole, 1, FIRST, FIRST + WIDTH));
    TRY(hw_tensor_write(w->queue, &part, x, sizeof x));
    TRY(hw_tensor_read(w->queue, &whole, y, sizeof y));
    settle(w);
    for (int i = 0; i < COUNT && !w->status; i++) {
        const int col = i % COLS - FIRST;
        const float wanted = col < 0 || col >= WIDTH ? 0.0f : x[i / COLS * WIDTH + col];
        right = right && y[i] == wanted;
    }
    expect(w, right, "copies");
    hw_buffer_free(whole.buffer);
}

/* A kernel of each class: plain, mixed and weighted. */
static void compute(struct walk *w)
{
    float x[COUNT], unit[COLS * COLS] = { 0 }, y[COUNT], z[COUNT];
    struct hw_tensor a, b, c;
    count_up(x, COUNT);
    for (int i = 0; i < COLS; i++)
        unit[i * COLS + i] = 2.0f;
    make(w, &a, 0, ROWS, COLS);
    make(w, &b, 0, COLS, COLS);
    make(w, &c, 0, ROWS, COLS);
    TRY(hw_tensor_write(w->queue, &a, x, sizeof x));
    TRY(hw_tensor_write(w->queue, &b, unit, sizeof unit));
    TRY(hw_matmul(w->queue, &(struct hw_matmul){ .a = a, .b = b, .c = c }));
    TRY(hw_tensor_read(w->queue, &c, y, sizeof y));
    TRY(hw_silu(w->queue, &(struct hw_silu){ .x = a, .y = c }));
    TRY(hw_tensor_read(w->queue, &c, z, sizeof z));
    TRY(hw_rmsnorm(w->queue, &(struct hw_rmsnorm){ .x = a, .y = c, .eps = 1e-5f }));
    settle(w);
    bool right = true;
    for (int i = 0; i < COUNT && !w->status; i++)
        right = right && y[i] == 2.0f * x[i];
    expect(w, right, "matmul");
    expect(w, w->status || walk_is_silu(z, x, COUNT), "silu");
    hw_buffer_free(a.buffer);
    hw_buffer_free(b.buffer);
    hw_buffer_free(c.buffer);
}

/* Host operands are copied to the device and back. */
static void stage(struct walk *w)
{
    float x[COUNT], y[COUNT];
    count_up(x, COUNT);
    TRY(hw_silu(w->queue, &(struct hw_silu){ .x = hw_host_2d(x, HW_F32, ROWS, COLS),
                                             .y = hw_host_2d(y, HW_F32, ROWS, COLS) }));
    settle(w);
    expect(w, w->status || walk_is_silu(y, x, COUNT), "host tensors");
}

/* A large buffer has its own memory, which is returned to the device. */
static void allocate(struct walk *w)
{
    struct hw_buffer *large = NULL, *visible = NULL, *later = NULL;
    TRY(hw_buffer_alloc(w->device, 2 << 20, 0, &large));
    hw_buffer_free(large);
    TRY(hw_buffer_alloc(w->device, 2 << 20, HW_BUFFER_ZEROED, &later));
    if (later)
        hw_buffer_free_after(later, w->queue);
    if (w->vendor->visible_memory) {
        TRY(hw_buffer_alloc(w->device, 4096, HW_BUFFER_HOST_VISIBLE, &visible));
        if (!w->status)
            memset(hw_buffer_host(visible), 1, 4096);
    }
    hw_buffer_free(visible);
    settle(w);
    TRY(hw_pool_trim(w->device));
}

static void count_call(void *user)
{
    atomic_fetch_add((atomic_int *)user, 1);
}

/* Orders work on two queues by events, and measures its time. */
static void order(struct walk *w)
{
    static const float x[COUNT];
    struct hw_event *start = NULL, *end = NULL;
    struct hw_tensor t;
    atomic_int called = 0;
    double ms = -1.0;
    make(w, &t, 0, ROWS, COLS);
    TRY(hw_event_create(w->device, HW_EVENT_TIMING, &start));
    TRY(hw_event_create(w->device, HW_EVENT_TIMING, &end));
    TRY(hw_event_record(start, w->queue));
    TRY(hw_tensor_write(w->queue, &t, x, sizeof x));
    TRY(hw_event_record(end, w->queue));
    TRY(hw_event_wait(end, w->second));
    TRY(hw_silu(w->second, &(struct hw_silu){ .x = t, .y = t }));
    TRY(hw_event_callback(end, count_call, &called));
    const bool promised = !w->status;
    const enum hw_status pending = w->status ? HW_OK : hw_event_query(end);
    if (pending != HW_NOT_READY)
        TRY(pending);
    TRY(hw_event_sync(end));
    TRY(hw_event_elapsed(start, end, &ms));
    expect(w, ms >= 0.0, "the time between events");
    TRY(hw_queue_wait(w->second));
    settle(w);
    while (promised && !called)
        sched_yield();
    hw_event_free(start);
    hw_event_free(end);
    assert_int_equal(called, promised);
    hw_buffer_free(t.buffer);
}

static void record(struct walk *w)
{
    float x[COUNT], y[COUNT];
    struct hw_tensor from, to;
    struct hw_graph *graph = NULL;
    struct hw_graph_info info = { .size = sizeof info };
    count_up(x, COUNT);
    make(w, &from, 0, ROWS, COLS);
    make(w, &to, 0, ROWS, COLS);
    TRY(hw_tensor_write(w->queue, &from, x, sizeof x));
    TRY(hw_queue_record(w->queue));
    TRY(hw_silu(w->queue, &(struct hw_silu){ .x = from, .y = to }));
    TRY(hw_scale(w->queue, &(struct hw_scale){ .x = from, .y = from, .scale = 1.0f }));
    TRY(hw_queue_end(w->queue, &graph));
    TRY(hw_graph_launch(graph, w->queue));
    TRY(hw_graph_launch(graph, w->queue));
    TRY(hw_tensor_read(w->queue, &to, y, sizeof y));
    settle(w);
    expect(w, w->status || walk_is_silu(y, x, COUNT), "a graph");
    TRY(hw_graph_info(graph, &info));
    expect(w, info.built == (w->vendor->graphs ? 1 : 0), "the number of built graphs");
    hw_graph_free(graph);
    hw_buffer_free(from.buffer);
    hw_buffer_free(to.buffer);
}

void walk_device(struct walk *w, int index)
{
    const struct hw_queue_options timing = { .size = sizeof timing,
                                             .flags = HW_QUEUE_TIMING };
    struct hw_device_info info = { .size = sizeof info };
    char name[32];
    w->index = index;
    w->queue = w->second = NULL;
    snprintf(name, sizeof name, "%s:%d", w->vendor->backend, index);
    TRY(hw_device_find(w->context, name, &w->device));
    TRY(hw_device_info(w->device, &info));
    TRY(hw_queue_open(w->device, &timing, &w->queue));
    TRY(hw_queue_open(w->device, NULL, &w->second));
    copy(w);
    order(w);
    if (!w->brief) {
        compute(w);
        stage(w);
        allocate(w);
        record(w);
        w->vendor->import(w);
    }
    hw_queue_close(w->second);
    hw_queue_close(w->queue);
}

/* ---- every call fails once ---- */

/* The current trial, for the watchdog's message. */
static char trying[128];

static void hang(int signal)
{
    static const char text[] = " hangs\n";
    (void)signal;
    if (write(2, trying, strlen(trying)) < 0 || write(2, text, sizeof text - 1) < 0)
        _exit(3);
    _exit(2);
}

static bool is_quiet(const struct vendor *vendor, const char *name)
{
    const char *const *quiet = vendor->quiet;
    while (*quiet && strcmp(*quiet, name) != 0)
        quiet++;
    return *quiet;
}

/* The caller or the log gets the vendor's words and the failed operation. */
static void is_heard_of(const struct walk *w, const char *words)
{
    const bool told = w->status && strstr(w->message, words) &&
                      strstr(w->message, "cannot ");
    if (!told && ((w->status && w->status != HW_LOST) || !strstr(w->log, words)))
        fail_msg("%s: neither a message nor the log has %s\n%s: %s\nthe log:\n%s", trying,
                 words, w->step ? w->step : "no call failed", w->message, w->log);
}

static void works(struct walk *w, int index, const char *when)
{
    w->status = HW_OK;
    walk_device(w, index);
    if (w->status)
        fail_msg("%s: device %d, %s: %s: %s\nthe log:\n%s", trying, index, when, w->step,
                 w->message, w->log);
}

/* The device is lost, unless that happened while it was opened: then it is opened again. */
static void is_lost(struct walk *w)
{
    const bool opened = !w->status || !strstr(w->message, "open device");
    w->status = HW_OK;
    walk_device(w, 0);
    if (opened != (w->status == HW_LOST))
        fail_msg("%s: the device is not lost: %s: %s", trying, w->step, w->message);
}

/* Returns whether the call took place. */
static bool fail_once(const struct vendor *vendor, const char *name, unsigned nth,
                      const struct vendor_error *error)
{
    static struct walk walk, later;
    struct walk *w = &walk;
    const int before = vendor->living();
    snprintf(trying, sizeof trying, "%s, call %u, fails with %d", name, nth, error->result);
    alarm(60);
    faults_reset();
    faults_arm(name, nth, error->result);
    walk_open(w, vendor);
    if (!w->status)
        walk_device(w, 0);
    later = *w;
    bool happened = faults_happened();
    if (happened)
        faults_reset();
    if (happened && later.context) {
        later.brief = getenv("HW_TEST_QUICK");
        if (error == &vendor->fatal)
            is_lost(&later);
        else
            works(&later, 0, "afterwards");
        later.brief = true;
        works(&later, 1, "which had no error");
    }
    walk_close(w);
    happened |= faults_happened();
    if (happened && !is_quiet(vendor, name))
        is_heard_of(w, error->words);
    if (vendor->living() != before && (!vendor->leaky || strcmp(name, vendor->leaky) != 0))
        fail_msg("%s: %d objects were not given back", trying, vendor->living() - before);
    alarm(0);
    return happened;
}

enum { MOST_FUNCTIONS = 128 };

void every_call_fails_once(const struct vendor *vendor)
{
    static struct walk walk;
    unsigned calls[MOST_FUNCTIONS];
    const bool quick = getenv("HW_TEST_QUICK"); /* only the first call of each function */
    bool on_a_device = false;
    signal(SIGALRM, hang);
    faults_reset();
    snprintf(trying, sizeof trying, "no call fails");
    alarm(60);
    walk_open(&walk, vendor);
    works(&walk, 0, "at first");
    walk_close(&walk);
    assert_int_equal(vendor->living(), 0);
    for (int i = 0; faults_names[i]; i++)
        calls[i] = faults_count(faults_names[i]);
    for (int i = 0; faults_names[i]; i++) {
        const char *name = faults_names[i];
        on_a_device |= !strcmp(name, vendor->first_on_a_device);
        for (unsigned nth = 1; nth <= (quick && calls[i] ? 1 : calls[i]); nth++) {
            const bool happened = fail_once(vendor, name, nth, &vendor->error);
            assert_true(happened || nth > 1);
            if (on_a_device)
                fail_once(vendor, name, nth, &vendor->fatal);
        }
    }
}
