/* SPDX-License-Identifier: MIT */
/* test_zoo.c - the fault zoo: every faulty plugin and every faulty file in one directory, beside a
 * good plugin. Each gets its reason, the good one computes, and the application is as it was
 * before. Opened once more, nothing is tried again. It prints how long both took.
 *
 * usage: test_zoo PLUGIN...: the names of all plugins that were built, each of which needs a row
 * in kinds.def. */
#define _GNU_SOURCE
#include "faults.h"
#include "host.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum place { ANYWHERE, CHILD, LATE };

struct kind {
    enum place place;
    bool variant; /* of the one before */
    const char *name, *reason, *words;
};

static const struct kind kinds[] = {
#define KIND(place, name, reason, words, what)    { place, false, #name, reason, words },
#define VARIANT(place, name, reason, words, what) { place, true, #name, reason, words },
#include "kinds.def"
#undef VARIANT
#undef KIND
};
enum { KINDS = sizeof kinds / sizeof *kinds };

#define GOOD "ops_right"

#define DEADLINE "4" /* seconds for a plugin */

/* The clock that the library sees: however long it takes to try them all, no verdict expires. */
time_t time(time_t *where)
{
    if (where)
        *where = 1000000;
    return 1000000;
}

static char **built_names; /* ends with NULL */
static int opened;         /* how often a context was opened on the zoo */
static int started;        /* processes, but for those that may_change() */

/* Plugins whose driver other tests replace, perhaps at this moment: then they are tried again. */
static bool may_change(char *const arguments[])
{
    static const char *const names[] = { "/hw_tally.so", "/hw_late.so", "/hw_anew.so" };
    bool may = false;
    for (char *const *word = arguments; *word; word++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            may = may || strstr(*word, names[i]);
    return may;
}

int posix_spawn(pid_t *restrict id, const char *restrict path,
                const posix_spawn_file_actions_t *restrict actions,
                const posix_spawnattr_t *restrict attributes, char *const arguments[],
                char *const variables[])
{
    static int (*next)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                       const posix_spawnattr_t *, char *const[], char *const[]);
    *(void **)&next = dlsym(RTLD_NEXT, "posix_spawn");
    started += !may_change(arguments);
    return next(id, path, actions, attributes, arguments, variables);
}

/* ---- the directory ---- */

static bool is_made(const struct made *made)
{
    return !made->root || geteuid() == 0;
}

/* Makes the file of `made` under a name of its own. Returns its path. */
static void put_made(const struct made *made, char path[4096])
{
    char name[8];
    snprintf(name, sizeof name, "z%04d", (int)(made - made_faults) % 10000);
    made_name(name);
    snprintf(path, 4096, "%s/hw_%s.so", lair("zoo"), made->name);
    made->make(lair("zoo"), path);
}

/* ---- what is expected ---- */

static struct file {
    char path[4096];
    const char *reason;
} files[512];
static size_t file_count;

static void fill_zoo(void)
{
    make_directory(lair("zoo"));
    for (size_t i = 0; i < KINDS; i++)
        put_plugin(lair("zoo"), kinds[i].name);
    for (const struct made *made = made_faults; made->name; made++) {
        if (!is_made(made))
            continue;
        assert_true(file_count < sizeof files / sizeof *files);
        struct file *file = &files[file_count++];
        file->reason = made->reason;
        put_made(made, file->path);
    }
}

/* This sanitizer has a thread of its own in hw-probe: what a plugin changes is only looked for
 * while there are no others, and the process does not end with its main thread. */
static bool is_seen(const struct kind *kind)
{
#if defined(__SANITIZE_THREAD__)
    return strncmp(kind->name, "changes_", 8) != 0 &&
           strcmp(kind->name, "ends_main_thread") != 0;
#else
    return kind != NULL;
#endif
}

/* The one whose file is another one, after it was tried. */
static const char *reason_of(const struct kind *kind)
{
    return opened > 1 && !strcmp(kind->name, "replaces_itself") ? "malformed"
                                                                : kind->reason;
}

/* ---- what is found ---- */

static bool is_withdrawn(const json_t *json, const struct kind *kind)
{
    const json_t *each;
    char device[64];
    size_t k;
    snprintf(device, sizeof device, "%s:", kind->name);
    json_array_foreach (json_object_get(json, "demotions"), k, each)
        if (!strncmp(text_of(each, "device"), device, strlen(device)) &&
            strstr(text_of(each, "why"), kind->words))
            return true;
    return false;
}

/* Returns whether all is as the row says; if not, prints what is. */
static bool check_kind(const json_t *json, const struct kind *kind)
{
    const json_t *entry = candidate(json, lair("zoo/hw_%s.so", kind->name));
    const char *reason = text_of(entry, "reason"), *message = text_of(entry, "message");
    const char *wanted = reason_of(kind),
               *words = wanted == kind->reason ? kind->words : "";
    const bool good =
        !strcmp(reason, wanted) &&
        (*wanted != '\0') == !strcmp(text_of(entry, "state"), "stopped") &&
        (!*wanted || strlen(text_of(entry, "remedy")) > 5) &&
        (!*words || (*wanted ? strstr(message, words) != NULL : is_withdrawn(json, kind)));
    if (!good)
        print_error("%s: %s: %s; not: %s: %s\n", kind->name, reason, message, wanted,
                    words);
    return good;
}

static bool check_file(const json_t *json, const struct file *file)
{
    const json_t *entry = candidate(json, file->path);
    const char *reason = text_of(entry, "reason");
    const bool by_probe = !strcmp(file->reason, BY_PROBE) &&
                          (!*reason || !strcmp(text_of(entry, "stage"), "probe"));
    const bool good = entry && (by_probe || !strcmp(reason, file->reason)) &&
                      (!*reason || (strlen(text_of(entry, "message")) > 5 &&
                                    strlen(text_of(entry, "remedy")) > 5));
    if (!good)
        print_error("%s: %s: %s; not: %s\n", file->path, reason, text_of(entry, "message"),
                    file->reason);
    return good;
}

/* Each has its reason, and nothing else is listed. */
static void check_report(struct hw_context *context)
{
    json_t *json = report(context);
    int bad = 0;
    for (size_t i = 0; i < KINDS; i++)
        bad += is_seen(&kinds[i]) && !check_kind(json, &kinds[i]);
    for (size_t i = 0; i < file_count; i++)
        bad += !check_file(json, &files[i]);
    assert_int_equal(json_array_size(json_object_get(json, "candidates")),
                     KINDS + file_count);
    json_decref(json);
    assert_int_equal(bad, 0);
}

static void compute(struct hw_context *context)
{
    enum { COUNT = 5 };
    float x[COUNT] = { -2, -0.5f, 0, 1, 3 }, y[COUNT] = { 0 };
    struct hw_device *device;
    struct hw_queue *queue;
    assert_int_equal(hw_device_find(context, GOOD ":0", &device), HW_OK);
    assert_int_equal(hw_queue_open(device, NULL, &queue), HW_OK);
    const struct hw_silu op = { .x = hw_host_1d(x, HW_F32, COUNT),
                                .y = hw_host_1d(y, HW_F32, COUNT) };
    assert_int_equal(hw_silu(queue, &op), HW_OK);
    assert_int_equal(hw_queue_wait(queue), HW_OK);
    for (int i = 0; i < COUNT; i++)
        assert_true(fabsf(y[i] - x[i] / (1 + expf(-x[i]))) < 1e-5f);
    hw_queue_close(queue);
}

/* ---- the tests ---- */

static const struct kind *find(const char *name)
{
    for (size_t i = 0; i < KINDS; i++)
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    return NULL;
}

static bool has_text(const char *const *list, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(list[i], text))
            return true;
    return false;
}

/* Rows and plugins are the same. */
static void test_rows(void **state)
{
    size_t count = 0;
    (void)state;
    for (char **name = built_names; *name; name++, count++)
        if (!find(*name))
            fail_msg("%s has no row in kinds.def", *name);
    for (size_t i = 0; i < KINDS; i++)
        for (size_t j = 0; j < i; j++)
            if (!strcmp(kinds[i].name, kinds[j].name))
                fail_msg("%s has two rows in kinds.def", kinds[i].name);
    assert_int_equal(count, KINDS);
}

/* Variants have the reason of the kind above. No two kinds have the same reason and words. */
static bool is_like_earlier(size_t i)
{
    bool same = false;
    for (size_t j = 0; j < i && !same; j++)
        same = !kinds[j].variant && *kinds[i].reason &&
               !strcmp(kinds[i].reason, kinds[j].reason) &&
               !strcmp(kinds[i].words, kinds[j].words);
    return same;
}

static void test_reasons(void **state)
{
    const char *reasons[KINDS + 512];
    size_t count = 0;
    (void)state;
    for (size_t i = 0; i < KINDS; i++) {
        const struct kind *kind = &kinds[i];
        const bool again = has_text(reasons, count, kind->reason);
        if (kind->variant && (i == 0 || strcmp(kind->reason, kinds[i - 1].reason) != 0))
            fail_msg("%s has another reason than the kind above", kind->name);
        if (!kind->variant && is_like_earlier(i))
            fail_msg("%s has the reason and words of another kind: %s", kind->name,
                     kind->reason);
        if (*kind->reason && !again)
            reasons[count++] = kind->reason;
    }
    for (const struct made *made = made_faults; made->name; made++)
        if (*made->reason && strcmp(made->reason, BY_PROBE) != 0 &&
            !has_text(reasons, count, made->reason))
            reasons[count++] = made->reason;
    print_message("# %zu reasons\n", count);
    assert_true(count >= 34);
}

/* The FIFO has a writer as long as any process lives that a plugin has left behind. */
static void visit(void)
{
    const struct hw_options options = { .probe = "child", .probe_timeout = DEADLINE };
    struct hw_context *context;
    struct timespec start, end;
    char byte;
    setenv("HW_TEST_FIFO", lair("fifo"), 1);
    char *before = host_text();
    const int fifo = open(lair("fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(fifo >= 0);
    started = 0;
    opened++;
    clock_gettime(CLOCK_MONOTONIC, &start);
    assert_int_equal(open_on(lair("zoo"), &options, &context), HW_OK);
    clock_gettime(CLOCK_MONOTONIC, &end);
    print_message(
        "# %zu plugins and %zu other files, %s s each: opened in %.3f s, %d tried\n",
        (size_t)KINDS, file_count, DEADLINE,
        (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec),
        started);
    assert_int_equal(read(fifo, &byte, 1), 0);
    close(fifo);
    check_report(context);
    compute(context);
    if (host_mapping(lair("zoo"), "/hw_" GOOD ".so"))
        fail_msg("%s is in the process", host_mapping(lair("zoo"), "/hw_" GOOD ".so"));
    hw_close(context);
    char *now = host_text();
    const char *difference = host_difference(before, now);
    if (difference)
        fail_msg("the process has changed: %s", difference);
    free(before);
    free(now);
}

static void test_first(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(lair("fifo"), 0600), 0);
    fill_zoo();
    visit();
    assert_true(started > 0);
}

/* All verdicts are known. */
static void test_second(void **state)
{
    (void)state;
    visit();
    assert_int_equal(started, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_first),
        cmocka_unit_test(test_second),
    };
    built_names = argv + 1;
    (void)argc;
    return cmocka_run_group_tests_name("load zoo", tests, lair_open, lair_close);
}
