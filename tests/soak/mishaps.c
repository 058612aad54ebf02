/* SPDX-License-Identifier: MIT */
/* mishaps.c - the faults of hours.c in plugins, devices, files, the cache, memory and descriptors;
 * apart.c has those of workers. Each time the good plugin beside it works, or works again. */
#define _GNU_SOURCE
#include "../fixtures/shortage.h"
#include "hours.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

void must_fail(enum hw_status status, enum hw_status wanted, const char *what)
{
    if (status != wanted || !*hw_message())
        die("%s: %s: %s", what, hw_status_name((int32_t)status), hw_message());
}

/* ---- plugins that kill the process that tries them ---- */

/* Puts a faulty plugin and a link to the good one into a directory, and tries it without a
 * cache. */
static void try_beside(const char *name, const char *timeout)
{
    struct hw_context *context;
    struct hw_device *device;
    char *from = NULL;
    make_directory(below("faulty"));
    if (asprintf(&from, FIXTURES "/hw_%s.so", name) < 0 ||
        symlink(from, below("faulty/hw_%s.so", name)) ||
        symlink(below("good/hw_good.so"), below("faulty/hw_good.so")))
        die("no link to %s", name);
    free(from);
    must(open_as((struct hw_options){ .plugin_path = below("faulty:!"),
                                      .probe = "child",
                                      .probe_timeout = timeout,
                                      .cache_dir = "off" },
                 &context),
         name);
    if (!has_good(context))
        die("beside %s, the good plugin was not used: %s", name, hw_message());
    must_fail(hw_device_find(context, name, &device), HW_NO_DEVICE, name);
    hw_close(context);
    remove_tree(below("faulty"));
}

static void crash(struct stay *stay)
{
    static const char *const names[] = { "ends_abort",        "ends_constructor",
                                         "ends_crash",        "ends_device",
                                         "ends_thread",       "ends_close",
                                         "ends_device_close", "ends_files" };
    (void)stay;
    try_beside(names[random_below(sizeof names / sizeof *names)], "10");
}

static void end(struct stay *stay)
{
    (void)stay;
    try_beside("ends_leave", "10");
}

static void hang(struct stay *stay)
{
    (void)stay;
    try_beside(random_below(2) ? "ends_hang" : "ends_sleep", "3");
}

/* ---- ops and devices that fail ---- */

static struct hw_context *open_beside_cpu(const char *name)
{
    struct hw_context *context;
    char *path = NULL, *backends = NULL;
    if (asprintf(&path, FIXTURES "/hw_%s.so:" PLUGINS ":!", name) < 0 ||
        asprintf(&backends, "%s,cpu", name) < 0)
        die("out of memory");
    must(open_as((struct hw_options){ .plugin_path = path,
                                      .backends = backends,
                                      .fallback = "allow",
                                      .probe = "inproc" },
                 &context),
         name);
    free(path);
    free(backends);
    return context;
}

/* Each op fails on submission: the CPU computes it, and the next call goes to the CPU directly. */
static void demote(struct stay *stay)
{
    struct hw_context *context = open_beside_cpu("ops_fails");
    struct hw_call_stats stats = { .size = sizeof stats };
    struct hw_device *device;
    struct hw_queue *queue;
    (void)stay;
    must(hw_device_find(context, "ops_fails", &device), "ops_fails");
    must(hw_queue_open(device, NULL, &queue), "ops_fails");
    for (int i = 0; i < 3; i++)
        must(silu_right(queue), "an op that fails on its device");
    must(hw_queue_calls(queue, HW_OP_SILU, &stats), "hw_queue_calls");
    if (stats.failed != 1 || stats.fallbacks != 3)
        die("%llu calls failed, %llu were computed elsewhere",
            (unsigned long long)stats.failed, (unsigned long long)stats.fallbacks);
    hw_close(context);
}

/* The device stays lost, the CPU keeps working. */
static void lose(struct stay *stay)
{
    struct hw_context *context = open_beside_cpu("ops_loses");
    (void)stay;
    for (int i = 0; i < 2; i++)
        must_fail(silu_on(context, "ops_loses"), HW_LOST, "a lost device");
    must(silu_on(context, "cpu"), "the CPU beside a lost device");
    hw_close(context);
}

/* The device is lost while work is pending. */
static void lose_later(struct stay *stay)
{
    must(hw_extension_call(stay->queues[0], "discrete.lose", NULL, 0), "discrete.lose");
    must_fail(hw_queue_wait(stay->queues[0]), HW_LOST, "a lost device");
    must_fail(silu_right(stay->queues[0]), HW_LOST, "a lost device");
    for (int i = 1; i < QUEUES; i++)
        must(silu_right(stay->queues[i]), "a device beside a lost one");
    stay_close(stay);
    stay_open(stay);
}

static void fail_later(struct stay *stay)
{
    const struct hw_arg status = { .kind = HW_ARG_INT, .i = HW_DRIVER };
    must(hw_extension_call(stay->queues[1], "discrete.fail", &status, 1), "discrete.fail");
    must_fail(hw_queue_wait(stay->queues[1]), HW_DRIVER, "work that failed");
    must(silu_right(stay->queues[1]), "a queue after work that failed");
}

/* ---- files ---- */

static void put_in_place(const char *name)
{
    if (link(below("%s", name), below("part")) ||
        rename(below("part"), below("late/hw_good.so")))
        die("the plugin cannot be replaced");
}

/* Opens a queue on the directory's good plugin. `file` replaces the plugin's file once its devices
 * are known; NULL: it stays. */
static enum hw_status use_late(const char *file)
{
    struct hw_context *context;
    struct hw_device *device;
    struct hw_queue *queue;
    must(open_as((struct hw_options){ .plugin_path = below("late:!"), .probe = "child" },
                 &context),
         "hw_open");
    must(hw_device_find(context, "good", &device), "good");
    if (file)
        put_in_place(file);
    const enum hw_status status = hw_queue_open(device, NULL, &queue);
    hw_close(context);
    return status;
}

static void replace(struct stay *stay)
{
    static const char *const files[] = { "marked", "text" };
    (void)stay;
    must_fail(use_late(files[random_below(2)]), HW_NO_DEVICE, "a replaced file");
    put_in_place("original");
    must(use_late(NULL), "the file as before");
    if (getenv("SOAK_MARKED"))
        die("the file that others can write to was loaded");
}

/* Damages a byte of a kept verdict. */
static void corrupt(struct stay *stay)
{
    DIR *place = opendir(below("cache/verdicts.d"));
    int damaged = 0;
    for (struct dirent *entry; place && (entry = readdir(place));) {
        const char *path = below("cache/verdicts.d/%s", entry->d_name);
        size_t size;
        if (*entry->d_name == '.')
            continue;
        unsigned char *bytes = read_file(path, &size);
        if (size)
            bytes[random_below(size)] ^= (unsigned char)(1 + random_below(255));
        write_file(path, bytes, random_below(4) ? size : random_below(size + 1), 0600);
        free(bytes);
        damaged++;
    }
    if (place)
        closedir(place);
    if (!damaged)
        die("no verdict is kept");
    stay_close(stay);
    open_once(below("good"));
    stay_open(stay);
}

/* ---- limits of the process ---- */

/* Opens, computes on each device and closes. Failures have a message. */
static enum hw_status live(void)
{
    static const char *const names[] = { "discrete:0", "discrete:1", "cpu:0" };
    struct hw_context *context;
    enum hw_status status =
        open_as((struct hw_options){ .plugin_path = TEST_PLUGINS ":" PLUGINS ":!",
                                     .backends = "discrete,cpu",
                                     .probe = "inproc" },
                &context);
    for (size_t i = 0; !status && i < 3; i++)
        status = silu_on(context, names[i]);
    hw_close(context);
    return status;
}

static void run_short_of_memory(struct stay *stay)
{
    (void)stay;
    shortage_begin(1 + (unsigned)random_below(800));
    const enum hw_status status = live();
    shortage_end();
    if (status && !*hw_message())
        die("%s without a message", hw_status_name((int32_t)status));
    must(live(), "after a shortage of memory");
}

static void run_short_of_descriptors(struct stay *stay)
{
    struct rlimit limit, low;
    (void)stay;
    getrlimit(RLIMIT_NOFILE, &limit);
    const int next = dup(2);
    close(next);
    low = (struct rlimit){ (rlim_t)next + random_below(4), limit.rlim_max };
    setrlimit(RLIMIT_NOFILE, &low);
    const enum hw_status status = live();
    setrlimit(RLIMIT_NOFILE, &limit);
    if (status && !*hw_message())
        die("%s without a message", hw_status_name((int32_t)status));
    must(live(), "after a shortage of descriptors");
}

static void exceed_limit(struct stay *stay)
{
    struct hw_context *context;
    struct hw_device *device;
    struct hw_buffer *buffer;
    (void)stay;
    must(open_as((struct hw_options){ .plugin_path = TEST_PLUGINS ":!",
                                      .memory_limit = "1M",
                                      .backends = "discrete",
                                      .probe = "inproc" },
                 &context),
         "hw_open");
    must(hw_device_find(context, "discrete:0", &device), "discrete:0");
    must_fail(hw_buffer_alloc(device, 2 << 20, 0, &buffer), HW_NO_MEMORY, "a large buffer");
    must(hw_buffer_alloc(device, 1 << 19, 0, &buffer), "a buffer below the limit");
    hw_close(context);
}

const struct scene mishaps[] = {
    { "crash", crash },
    { "exit", end },
    { "hang", hang },
    { "failing op", demote },
    { "lost device", lose },
    { "device lost later", lose_later },
    { "work that fails", fail_later },
    { "replaced file", replace },
    { "damaged cache", corrupt },
    { "no memory", run_short_of_memory },
    { "no descriptors", run_short_of_descriptors },
    { "memory limit", exceed_limit },
    { "worker that crashes", apart_crash },
    { "worker that is killed", apart_kill },
    { "worker that hangs", apart_hang },
    { "files that come and go", rescan_changes },
};
const size_t mishap_count = sizeof mishaps / sizeof *mishaps;
