/* SPDX-License-Identifier: MIT */
/* test_cost.c - calls on host memory that the CPU computes because it is expected to be faster:
 * which calls, according to which figures and profiles. tests/plugins/distant.c is the device. */
#define _GNU_SOURCE
#include "base/hash.h"
#include "open/profile.h"
#include "run/queue.h"
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char cache[256]; /* HW_CACHE_DIR of all of these tests */

/* ---- a context whose default device is the distant one ---- */

struct scene {
    struct hw_context *context;
    struct hw_device *device;
    struct hw_queue *queue;
};

static void open_scene(struct scene *s, struct hw_options options)
{
    if (!options.backends)
        options.backends = "distan*,cpu";
    options.cache_dir = cache;
    options.probe = "inproc";
    ok(open_options(options, &s->context));
    s->device = hw_device_default(s->context);
    assert_string_equal(hw_device_backend(s->device), "distant");
    ok(hw_queue_open(s->device, NULL, &s->queue));
}

static void close_scene(struct scene *s)
{
    hw_close(s->context);
}

enum { SMALL = 16, LARGE = 4096 };
static float x[LARGE], y[LARGE];

static struct hw_silu silu_of(int64_t n)
{
    fill(x, LARGE);
    memset(y, 0, sizeof y);
    return (struct hw_silu){ .x = hw_host_1d(x, HW_F32, n), .y = hw_host_1d(y, HW_F32, n) };
}

/* Submits the call, and checks its result. */
static void compute(struct hw_queue *queue, int64_t n)
{
    struct hw_silu op = silu_of(n);
    ok(hw_silu(queue, &op));
    ok(hw_queue_wait(queue));
    for (int64_t i = 0; i < n; i++)
        close_to(y[i], silu(x[i]));
}

static uint64_t routed(const struct scene *s)
{
    return calls(s->queue, HW_OP_SILU).routed;
}

static struct hw_route_info route_of(struct hw_queue *queue, int64_t n)
{
    const struct hw_silu op = silu_of(n);
    struct hw_route_info info = { .size = sizeof info };
    ok(hw_queue_route(queue, HW_OP_SILU, &op, sizeof op, &info));
    return info;
}

/* ---- profiles ---- */

/* The whole text of a profile. The caller frees it. */
static char *profile_text(const char *key, const char *rows)
{
    char *rest = NULL, *whole = NULL;
    assert_true(asprintf(&rest, " 1700000000 %zu %zu\n%s%s", strlen(key), strlen(rows), key,
                         rows) > 0);
    assert_true(asprintf(&whole, "hw-profile 1 %016" PRIx64 "%s",
                         hash_add(HASH_START, rest, strlen(rest)), rest) > 0);
    free(rest);
    return whole;
}

static void write_text(const char *path, const char *text)
{
    char folder[512];
    snprintf(folder, sizeof folder, "%s/" PROFILE_PLACE, cache);
    assert_true(mkdir(folder, 0700) == 0 || errno == EEXIST);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

/* Writes the profile of the device with this name, "distant:0"; NULL: removes it. */
static void give_profile(const char *name, const char *rows)
{
    struct hw_context *context;
    struct hw_device *device;
    ok(open_options((struct hw_options){ .backends = "distant,cpu",
                                         .cache_dir = cache,
                                         .probe = "inproc" },
                    &context));
    ok(hw_device_find(context, name, &device));
    char *path = profile_path(device), *key = profile_key(device);
    assert_non_null(path);
    if (rows) {
        char *text = profile_text(key, rows);
        write_text(path, text);
        free(text);
    } else {
        unlink(path);
    }
    free(path);
    free(key);
    hw_close(context);
}

static char *path_of_profile(void)
{
    struct hw_context *context;
    struct hw_device *device;
    ok(open_options((struct hw_options){ .backends = "distant,cpu",
                                         .cache_dir = cache,
                                         .probe = "inproc" },
                    &context));
    ok(hw_device_find(context, "distant", &device));
    char *path = profile_path(device);
    hw_close(context);
    return path;
}

/* The device takes 10 us for any size; the CPU takes 1 us and 1 us more per KiB. silu moves 8 bytes
 * per element, so the CPU is faster below 1152 elements. */
#define TRANSFERS "up 0 0 1 1048576:1\ndown 0 0 1 1048576:1\nwait 1 0 0\n"
#define DEVICE_10 TRANSFERS "silu/f32/many 10000 0 1 1048576:1\n"
#define CPU_1     "silu/f32/many 999 0 2 1024:1000 1048576:1024000\n"
/* Here the CPU needs no time at all. */
#define CPU_0 "silu/f32/many 1 0 1 1048576:1\n"

static void give_profiles(const char *device, const char *cpu)
{
    give_profile("distant", device);
    give_profile("cpu", cpu);
}

static int no_profiles(void **state)
{
    (void)state;
    give_profiles(NULL, NULL);
    return 0;
}

/* ---- which calls ---- */

static void estimates_route_only_what_is_small(void **state)
{
    struct scene s;
    (void)state;
    open_scene(&s, (struct hw_options){ 0 });
    compute(s.queue, SMALL);
    assert_int_equal(routed(&s), 1);
    const struct hw_call_stats stats = calls(s.queue, HW_OP_SILU);
    assert_int_equal(stats.calls, 1);
    assert_int_equal(stats.staged_bytes, 0);
    assert_int_equal(stats.fallbacks, 0);
    const struct hw_route_info small = route_of(s.queue, SMALL);
    assert_int_equal(small.own.source, HW_COST_ESTIMATED);
    assert_int_equal(small.cpu.source, HW_COST_ESTIMATED);
    assert_int_equal(small.own.measured, 0);
    compute(s.queue, LARGE);
    assert_int_equal(routed(&s), 1);
    assert_true(route_of(s.queue, LARGE).device == s.device);
    close_scene(&s);
}

static void measured_figures_decide(void **state)
{
    struct scene s;
    (void)state;
    give_profiles(DEVICE_10, CPU_1);
    open_scene(&s, (struct hw_options){ .route = "measured" });
    compute(s.queue, 900);
    assert_int_equal(routed(&s), 1);
    compute(s.queue, 1200);
    assert_int_equal(routed(&s), 1);
    assert_true(report_has(s.context, "\"routed\":1"));
    assert_true(report_has(s.context, "\"state\":\"measured\""));
    const struct hw_route_info small = route_of(s.queue, 900),
                               large = route_of(s.queue, 1200);
    assert_string_equal(hw_device_backend(small.device), "cpu");
    assert_true(large.device == s.device);
    assert_int_equal(small.own.source, HW_COST_MEASURED);
    assert_int_equal(small.own.measured, 1700000000);
    assert_true(small.own.launch > 9.9e-6 && small.own.launch < 10.1e-6);
    assert_true(large.cpu.compute > 9.3e-6 && large.cpu.compute < 9.5e-6);
    close_scene(&s);
}

/* Transfers count: the device computes instantly, but moving 16 bytes takes 300 us. */
static void transfers_count(void **state)
{
    struct scene s;
    (void)state;
    give_profiles("up 0 0 1 16:100000\ndown 0 0 1 16:200000\nsilu/f32/many 1 0 1 1024:1\n",
                  "silu/f32/many 1000 0 1 16:100000\n");
    open_scene(&s, (struct hw_options){ 0 });
    const struct hw_route_info info = route_of(s.queue, 4);
    assert_true(info.own.upload > 99e-6 && info.own.upload < 101e-6);
    assert_true(info.own.download > 199e-6 && info.own.download < 201e-6);
    assert_string_equal(hw_device_backend(info.device), "cpu");
    close_scene(&s);
}

/* HW_ROUTE=measured ignores estimates. */
static void half_of_the_figures_are_not_enough(void **state)
{
    struct scene s;
    (void)state;
    give_profiles(NULL, CPU_0);
    open_scene(&s, (struct hw_options){ .route = "measured" });
    compute(s.queue, SMALL);
    assert_int_equal(routed(&s), 0);
    assert_non_null(strstr(route_of(s.queue, SMALL).why, "hw tune"));
    close_scene(&s);
}

static void resident_tensors_stay(void **state)
{
    struct scene s;
    (void)state;
    give_profiles(DEVICE_10, CPU_0);
    open_scene(&s, (struct hw_options){ 0 });
    const struct hw_tensor there = device_f32(s.device, (int64_t)SMALL, END);
    struct hw_silu op = silu_of(SMALL);
    op.y = there; /* one operand is enough */
    struct hw_route_info info = { .size = sizeof info };
    ok(hw_queue_route(s.queue, HW_OP_SILU, &op, sizeof op, &info));
    assert_true(info.device == s.device);
    assert_non_null(strstr(info.why, "buffer"));
    ok(hw_silu(s.queue, &op));
    ok(hw_queue_wait(s.queue));
    ok(hw_silu(s.queue, &(struct hw_silu){ .x = there, .y = there }));
    ok(hw_queue_wait(s.queue));
    assert_int_equal(routed(&s), 0);
    assert_int_equal(calls(s.queue, HW_OP_SILU).calls, 2);
    compute(s.queue, SMALL); /* without it, the same call moves */
    assert_int_equal(routed(&s), 1);
    close_scene(&s);
}

static void graphs_stay(void **state)
{
    struct scene s;
    struct hw_graph *graph;
    (void)state;
    give_profiles(DEVICE_10, CPU_0);
    open_scene(&s, (struct hw_options){ 0 });
    const struct hw_silu op = silu_of(SMALL);
    ok(hw_queue_record(s.queue));
    ok(hw_silu(s.queue, &op));
    assert_non_null(strstr(route_of(s.queue, SMALL).why, "graph"));
    ok(hw_queue_end(s.queue, &graph));
    ok(hw_graph_launch(graph, s.queue));
    ok(hw_queue_wait(s.queue));
    assert_int_equal(calls(s.queue, HW_OP_SILU).calls, 1);
    assert_int_equal(routed(&s), 0);
    close_to(y[3], silu(x[3]));
    compute(s.queue, SMALL);
    assert_int_equal(routed(&s), 1);
    close_scene(&s);
}

/* In place, and through a view whose elements are not adjacent. */
static void results_land_where_they_belong(void **state)
{
    struct scene s;
    float z[24];
    (void)state;
    give_profiles(DEVICE_10, CPU_0);
    open_scene(&s, (struct hw_options){ 0 });
    fill(z, 24);
    struct hw_tensor whole = hw_host_2d(z, HW_F32, 4, 6), turned;
    ok(hw_tensor_slice(&turned, &whole, 1, 1, 3));
    ok(hw_tensor_transpose(&turned, &turned, 0, 1));
    ok(hw_silu(s.queue, &(struct hw_silu){ .x = turned, .y = turned }));
    ok(hw_queue_wait(s.queue));
    fill(x, 24);
    for (int i = 0; i < 24; i++)
        close_to(z[i], i % 6 == 1 || i % 6 == 2 ? silu(x[i]) : x[i]);
    assert_int_equal(routed(&s), 1);
    close_scene(&s);
}

/* A call that is independent of the queue's pending work does not wait for it. A call that reads a
 * pending result waits, as it would on the device, and may then be computed on the CPU. */
static void work_outstanding_is_not_waited_for(void **state)
{
    struct scene s;
    float a[SMALL], b[SMALL];
    (void)state;
    give_profiles(DEVICE_10, CPU_1);
    open_scene(&s, (struct hw_options){ 0 });
    const struct hw_silu large = silu_of(LARGE);
    fill(a, SMALL);
    ok(hw_silu(s.queue, &large));
    const struct hw_silu other = { .x = hw_host_1d(a, HW_F32, SMALL),
                                   .y = hw_host_1d(b, HW_F32, SMALL) };
    struct hw_route_info info = { .size = sizeof info };
    ok(hw_queue_route(s.queue, HW_OP_SILU, &other, sizeof other, &info));
    assert_non_null(strstr(info.why, "outstanding"));
    ok(hw_silu(s.queue, &other));
    assert_int_equal(routed(&s), 0);
    ok(hw_silu(s.queue, &(struct hw_silu){ .x = hw_host_1d(y, HW_F32, SMALL),
                                           .y = hw_host_1d(y, HW_F32, SMALL) }));
    assert_int_equal(routed(&s), 1);
    ok(hw_queue_wait(s.queue));
    for (int i = 0; i < SMALL; i++) {
        close_to(b[i], silu(a[i]));
        close_to(y[i], silu(silu(x[i])));
    }
    close_to(y[SMALL], silu(x[SMALL]));
    close_scene(&s);
}

static void other_work_counts(void **state)
{
    struct scene s;
    (void)state;
    give_profiles(DEVICE_10, CPU_1);
    open_scene(&s, (struct hw_options){ 0 });
    ok(hw_extension_call(s.queue, "distant.work", NULL, 0));
    assert_non_null(strstr(route_of(s.queue, SMALL).why, "outstanding"));
    compute(s.queue, SMALL);
    assert_int_equal(routed(&s), 0);
    ok(hw_queue_wait(s.queue));
    compute(s.queue, SMALL);
    assert_int_equal(routed(&s), 1);
    close_scene(&s);
}

/* ---- which queues ---- */

static void expect_stay(struct scene *s, const char *why)
{
    const char *said = route_of(s->queue, SMALL).why;
    if (!strstr(said, why))
        fail_msg("it stays because \"%s\", not because of \"%s\"", said, why);
    compute(s->queue, SMALL);
    assert_int_equal(routed(s), 0);
    assert_true(route_of(s->queue, SMALL).device == s->device);
    close_scene(s);
}

static void a_device_that_is_named_is_not_left(void **state)
{
    struct scene s;
    struct hw_device *found;
    (void)state;
    give_profiles(DEVICE_10, CPU_0);
    open_scene(&s, (struct hw_options){ .backends = "distant,cpu" });
    expect_stay(&s, "named");
    open_scene(&s, (struct hw_options){ .backends = "distan*:0,cpu" });
    expect_stay(&s, "named");
    open_scene(&s, (struct hw_options){ .require = "distant" });
    expect_stay(&s, "named");
    open_scene(&s, (struct hw_options){ 0 });
    ok(hw_device_find(s.context, "distant", &found));
    hw_queue_close(s.queue);
    ok(hw_queue_open(found, NULL, &s.queue));
    expect_stay(&s, "named");
}

static void a_device_that_is_picked_is_not_left(void **state)
{
    struct scene s;
    (void)state;
    give_profiles(DEVICE_10, CPU_0);
    ok(open_options((struct hw_options){ .backends = "distan*,cpu",
                                         .cache_dir = cache,
                                         .probe = "inproc" },
                    &s.context));
    s.device = hw_device_at(s.context, 0);
    ok(hw_queue_open(s.device, NULL, &s.queue));
    expect_stay(&s, "hw_device_default");
}

static void settings_keep_calls_on_the_device(void **state)
{
    struct scene s;
    struct hw_context *none = NULL;
    (void)state;
    give_profiles(DEVICE_10, CPU_0);
    open_scene(&s, (struct hw_options){ .route = "device" });
    expect_stay(&s, "HW_ROUTE=device");
    ok(open_options((struct hw_options){ .backends = "distan*,cpu",
                                         .fallback = "error",
                                         .cache_dir = cache,
                                         .probe = "inproc" },
                    &s.context));
    s.device = hw_device_default(s.context);
    ok(hw_queue_open(s.device, NULL, &s.queue));
    expect_stay(&s, "HW_FALLBACK=error");
    open_scene(&s, (struct hw_options){ .backends = "distan*" });
    expect_stay(&s, "not selected");
    fails(HW_INVALID, "auto, measured or device",
          open_options((struct hw_options){ .route = "cpu" }, &none));
}

/* A queue keeps the figures from when it was opened. */
static void naming_a_device_later_changes_nothing(void **state)
{
    struct scene s;
    struct hw_device *found;
    (void)state;
    give_profiles(DEVICE_10, CPU_0);
    open_scene(&s, (struct hw_options){ 0 });
    ok(hw_device_find(s.context, "distant", &found));
    compute(s.queue, SMALL);
    assert_int_equal(routed(&s), 1);
    close_scene(&s);
}

/* ---- whose profiles ---- */

/* The profile at `path` is rejected for this reason. Estimates are used instead. */
static void expect_ignored(const char *why)
{
    struct scene s;
    open_scene(&s, (struct hw_options){ 0 });
    assert_true(report_has(s.context, "\"state\":\"ignored\""));
    if (!report_has(s.context, why)) {
        const struct profile *profile = device_profile(s.device);
        fail_msg("\"%s\", not \"%s\"", profile->why, why);
    }
    assert_int_equal(route_of(s.queue, SMALL).own.source, HW_COST_ESTIMATED);
    compute(s.queue, SMALL);
    close_scene(&s);
}

static void damaged_profiles_are_ignored(void **state)
{
    static const struct {
        const char *rows, *why;
    } bad[] = {
        { "silu/f32/many 0 0 0\n", "does not make sense" },
        { "silu/f32/many 10 0 1 16:nan\n", "does not make sense" },
        { "silu/f32/many 10 0 1 16:-5\n", "does not make sense" },
        { "silu/f32/many 10 0 2 16:5 16:6\n", "does not make sense" },
        { "silu/f32/many 10 0 2 16:5 32:4\n", "does not make sense" },
        { "silu/f32/many 10 0 99 16:5\n", "does not make sense" },
        { "silu/f32/many 10 0 1 16:99999999999999999999\n", "does not make sense" },
        { "up 1 0 1 16:5\nup 1 0 1 16:5\n", "does not make sense" },
        { "up 1 0 1 16:5", "does not make sense" },
        { "\n", "does not make sense" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        give_profile("distant", bad[i].rows);
        expect_ignored(bad[i].why);
    }
    char *path = path_of_profile();
    write_text(path, "hw-profile 1 0123456789abcdef 1 0 0\n");
    expect_ignored("checksum");
    write_text(path, "something else\n");
    expect_ignored("not a profile");
    give_profile("distant", DEVICE_10);
    assert_int_equal(truncate(path, 90), 0);
    expect_ignored("damaged");
    assert_int_equal(truncate(path, 300 << 10), 0);
    expect_ignored("256 KiB");
    free(path);
}

/* Ops and classes of a later version are skipped. */
static void unknown_rows_are_skipped(void **state)
{
    struct scene s;
    (void)state;
    give_profiles("sort/f32/many 10 0 1 16:5\nsilu/f4/many 10 0 1 16:5\n" DEVICE_10, CPU_1);
    open_scene(&s, (struct hw_options){ 0 });
    assert_int_equal(route_of(s.queue, SMALL).own.source, HW_COST_MEASURED);
    close_scene(&s);
}

static void profiles_of_other_conditions_are_ignored(void **state)
{
    struct scene s;
    (void)state;
    give_profiles(DEVICE_10, CPU_0);
    setenv("HW_TEST_DRIVER", "2", 1);
    expect_ignored("\\\"driver 1\\\", and now there is \\\"driver 2\\\"");
    unsetenv("HW_TEST_DRIVER");
    open_scene(&s, (struct hw_options){ .precision = "fp16" });
    assert_true(report_has(s.context, "precision fp16"));
    assert_int_equal(route_of(s.queue, SMALL).own.source, HW_COST_ESTIMATED);
    close_scene(&s);
}

static void profiles_that_others_may_write_are_ignored(void **state)
{
    char *path = path_of_profile(), place[512], target[512];
    (void)state;
    give_profiles(DEVICE_10, CPU_0);
    assert_int_equal(chmod(path, 0620), 0);
    expect_ignored("the file other users may write");
    assert_int_equal(chmod(path, 0600), 0);
    snprintf(place, sizeof place, "%s/" PROFILE_PLACE, cache);
    assert_int_equal(chmod(place, 0777), 0);
    expect_ignored("its directory other users may write");
    assert_int_equal(chmod(place, 0700), 0);
    snprintf(target, sizeof target, "%s/elsewhere", cache);
    assert_int_equal(rename(path, target), 0);
    assert_int_equal(symlink(target, path), 0);
    expect_ignored("symbolic link");
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_ignored("not a file");
    unlink(path);
    unlink(target);
    give_profile("distant", DEVICE_10);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
        expect_ignored("belongs to another user");
    }
    unlink(path);
    free(path);
}

/* ---- at once ---- */

enum { THREADS = 4, ROUNDS = 40 };

static void *use_a_queue(void *argument)
{
    struct scene *s = argument;
    struct hw_queue *queue;
    float in[SMALL], out[SMALL];
    fill(in, SMALL);
    if (hw_queue_open(hw_device_default(s->context), NULL, &queue))
        return "no queue";
    for (int i = 0; i < ROUNDS; i++) {
        struct hw_silu op = { .x = hw_host_1d(in, HW_F32, SMALL),
                              .y = hw_host_1d(out, HW_F32, SMALL) };
        struct hw_route_info info = { .size = sizeof info };
        if (hw_silu(queue, &op) || hw_queue_wait(queue) ||
            hw_queue_route(queue, HW_OP_SILU, &op, sizeof op, &info))
            return "a call failed";
    }
    struct hw_call_stats stats = { .size = sizeof stats };
    hw_queue_calls(queue, HW_OP_SILU, &stats);
    hw_queue_close(queue);
    return stats.routed == ROUNDS ? NULL : "not all calls were routed";
}

/* The first thread reads the profiles. */
static void threads_share_profiles(void **state)
{
    struct scene s;
    pthread_t thread[THREADS];
    (void)state;
    give_profiles(DEVICE_10, CPU_0);
    ok(open_options((struct hw_options){ .backends = "distan*,cpu",
                                         .cache_dir = cache,
                                         .probe = "inproc" },
                    &s.context));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, use_a_queue, &s), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(thread[i], &wrong), 0);
        if (wrong)
            fail_msg("%s", (const char *)wrong);
    }
    assert_true(report_has(s.context, "\"routed\":160"));
    hw_close(s.context);
}

/* Calls routed to the CPU are not compared: the CPU is also the reference. */
static void routed_calls_are_not_compared(void **state)
{
    struct scene s;
    (void)state;
    give_profiles(DEVICE_10, CPU_1);
    open_scene(&s, (struct hw_options){ .shadow = "1/1" });
    compute(s.queue, SMALL);
    assert_int_equal(routed(&s), 1);
    assert_int_equal(calls(s.queue, HW_OP_SILU).compared, 0);
    compute(s.queue, LARGE);
    assert_int_equal(calls(s.queue, HW_OP_SILU).compared, 1);
    close_scene(&s);
}

static void questions_are_checked(void **state)
{
    struct scene s;
    struct hw_silu op = silu_of(SMALL);
    struct hw_route_info info = { .size = sizeof info };
    (void)state;
    open_scene(&s, (struct hw_options){ 0 });
    fails(HW_INVALID, "queue", hw_queue_route(NULL, HW_OP_SILU, &op, sizeof op, &info));
    fails(HW_INVALID, "info", hw_queue_route(s.queue, HW_OP_SILU, &op, sizeof op, NULL));
    info.size = 0;
    fails(HW_INVALID, "size", hw_queue_route(s.queue, HW_OP_SILU, &op, sizeof op, &info));
    info.size = sizeof info;
    op.y.extent[0]++;
    fails(HW_INVALID, "silu", hw_queue_route(s.queue, HW_OP_SILU, &op, sizeof op, &info));
    close_scene(&s);
}

int main(void)
{
    const char *folder = getenv("TMPDIR");
    snprintf(cache, sizeof cache, "%s/hw-cost-XXXXXX", folder ? folder : "/tmp");
    if (!mkdtemp(cache))
        return 1;
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup(name, no_profiles)
        T(estimates_route_only_what_is_small),
        T(measured_figures_decide),
        T(transfers_count),
        T(half_of_the_figures_are_not_enough),
        T(resident_tensors_stay),
        T(graphs_stay),
        T(results_land_where_they_belong),
        T(work_outstanding_is_not_waited_for),
        T(other_work_counts),
        T(a_device_that_is_named_is_not_left),
        T(a_device_that_is_picked_is_not_left),
        T(settings_keep_calls_on_the_device),
        T(naming_a_device_later_changes_nothing),
        T(damaged_profiles_are_ignored),
        T(unknown_rows_are_skipped),
        T(profiles_of_other_conditions_are_ignored),
        T(profiles_that_others_may_write_are_ignored),
        T(threads_share_profiles),
        T(routed_calls_are_not_compared),
        T(questions_are_checked),
#undef T
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[512];
    no_profiles(NULL);
    snprintf(command, sizeof command, "%s/" PROFILE_PLACE, cache);
    rmdir(command);
    rmdir(cache);
    return failed;
}
