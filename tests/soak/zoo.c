/* SPDX-License-Identifier: MIT */
/* zoo.c - directories of random plugins, faulty and damaged ones, beside a good one that computes:
 * copied, linked, cut off, changed, owned by others, twice, with random settings. Each file has the
 * reason of its kind (tests/load/kinds.def) or of what was done to it, or is used; and the
 * process is as it was before. */
#define _GNU_SOURCE
#include "soak.h"

#include "../fixtures/host.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GOOD "ops_right"

enum place { ANYWHERE, CHILD, LATE };

static const struct kind {
    enum place place;
    const char *name, *reason;
} kinds[] = {
#define KIND(place, name, reason, words, what) { place, #name, reason },
#define VARIANT                                KIND
#include "../load/kinds.def"
#undef VARIANT
#undef KIND
};
enum { KINDS = sizeof kinds / sizeof *kinds, DIRECTORIES = 3, ANIMALS = 16 };

/* A file of a random directory, or a link. */
struct animal {
    const struct kind *kind;
    char path[PATH_MAX];
    const char *reason; /* that it has to have; "": it is used; NULL: any */
    const char *other;  /* that it may have instead, because of its directory; NULL: none */
};

struct zoo {
    long number;
    struct animal animals[ANIMALS];
    int count, directories;
    char directory[DIRECTORIES][PATH_MAX];
    const char *closed[DIRECTORIES]; /* the reason why nothing of it is used; NULL: none */
    int good;                        /* the directory of the good one; -1: it is nowhere */
    bool trusting;
    char disabled[64];
    struct hw_options options;
};

static struct {
    long files, used, stopped;
} totals;

static bool chance(unsigned one_in)
{
    return random_below(one_in) == 0;
}

/* ---- what is done to a file ---- */

static void copy(const struct kind *kind, const char *path)
{
    char from[PATH_MAX];
    snprintf(from, sizeof from, FIXTURES "/hw_%s.so", kind->name);
    copy_file(from, path, 0755);
}

static void make_link(const struct kind *kind, const char *path)
{
    char from[PATH_MAX];
    snprintf(from, sizeof from, FIXTURES "/hw_%s.so", kind->name);
    if (symlink(from, path))
        die("%s cannot be made", path);
}

static void cut(const struct kind *kind, const char *path)
{
    struct stat file;
    copy(kind, path);
    if (stat(path, &file) ||
        truncate(path, (off_t)random_below((uint64_t)file.st_size + 1)))
        die("%s cannot be cut off", path);
}

static void damage(const struct kind *kind, const char *path)
{
    char from[PATH_MAX];
    size_t size;
    snprintf(from, sizeof from, FIXTURES "/hw_%s.so", kind->name);
    unsigned char *bytes = read_file(from, &size);
    for (uint64_t i = 1 + random_below(8); i > 0; i--)
        bytes[random_below(size < 8192 ? size : 8192)] = (unsigned char)random_below(256);
    write_file(path, bytes, size, 0755);
    free(bytes);
}

static void let_all_write(const struct kind *kind, const char *path)
{
    copy(kind, path);
    if (chmod(path, 0646))
        die("%s cannot be changed", path);
}

/* As nobody but root can; for anybody else it is as if all could write to it. */
static void give_away(const struct kind *kind, const char *path)
{
    copy(kind, path);
    if (chown(path, 12345, 12345))
        let_all_write(kind, path);
}

static void empty(const struct kind *kind, const char *path)
{
    (void)kind;
    write_file(path, "", 0, 0755);
}

static void dangle(const struct kind *kind, const char *path)
{
    (void)kind;
    if (symlink("nothing", path))
        die("%s cannot be made", path);
}

static void lead_to_itself(const struct kind *kind, const char *path)
{
    (void)kind;
    if (symlink(strrchr(path, '/') + 1, path))
        die("%s cannot be made", path);
}

static void be_a_directory(const struct kind *kind, const char *path)
{
    (void)kind;
    make_directory(path);
}

static void be_a_fifo(const struct kind *kind, const char *path)
{
    (void)kind;
    if (mkfifo(path, 0644))
        die("%s cannot be made", path);
}

/* By way of a directory that all users can write to. */
static void lead_astray(const struct kind *kind, const char *path)
{
    char open[PATH_MAX + 16], file[PATH_MAX + 32];
    snprintf(open, sizeof open, "%s.open", path);
    snprintf(file, sizeof file, "%s/hw_%s.so", open, kind->name);
    make_directory(open);
    copy(kind, file);
    if (chmod(open, 0777) || symlink(file, path))
        die("%s cannot be made", path);
}

static const struct twist {
    void (*make)(const struct kind *kind, const char *path);
    unsigned weight;
    const char *reason; /* NULL: any; "": the reason of the kind */
    bool trust;         /* only because of the checks that HW_TRUST=off turns off */
} twists[] = {
    { copy, 6, "", false },
    { make_link, 14, "", false },
    { cut, 2, NULL, false },
    { damage, 2, NULL, false },
    { let_all_write, 1, "untrusted-mode", true },
    { give_away, 1, NULL, false },
    { empty, 1, "malformed", false },
    { dangle, 1, "missing", false },
    { lead_to_itself, 1, "missing", false },
    { be_a_directory, 1, "unreadable", false },
    { be_a_fifo, 1, "unreadable", false },
    { lead_astray, 1, "untrusted-path", true },
};
enum { TWISTS = sizeof twists / sizeof *twists };

static const struct twist *random_twist(const struct kind *kind)
{
    unsigned sum = 0;
    for (int i = 0; i < TWISTS; i++)
        sum += twists[i].weight;
    uint64_t at = random_below(sum);
    const struct twist *twist = twists;
    while (at >= twist->weight)
        at -= twist++->weight;
    /* That one writes to its file, which others may have as well. */
    return twist->make == make_link && !strcmp(kind->name, "replaces_itself") ? twists
                                                                              : twist;
}

/* ---- a random directory ---- */

/* Kinds that take as long as they may, or nearly. */
static bool sleeps(const struct kind *kind)
{
    static const char *const names[] = { "ops_hangs", "ops_pair", "ops_slow", "ops_tardy",
                                         "ops_compiles" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(kind->name, names[i]))
            return true;
    return kind->place == LATE;
}

/* The library that one needs lies where the fixture lies, and may be found from a link; the other
 * is another file the second time. */
static bool varies(const struct kind *kind)
{
    return !strcmp(kind->name, "needs_bundled") || !strcmp(kind->name, "replaces_itself");
}

static bool is_in(const struct zoo *zoo, const struct kind *kind)
{
    for (int i = 0; i < zoo->count; i++)
        if (zoo->animals[i].kind == kind)
            return true;
    return !strcmp(kind->name, GOOD);
}

static const struct kind *random_kind(const struct zoo *zoo)
{
    for (;;) {
        const struct kind *kind = &kinds[random_below(KINDS)];
        if (!is_in(zoo, kind) && (!sleeps(kind) || chance(20)))
            return kind;
    }
}

/* In one of the buffers of below(). */
static const char *place_for(const struct zoo *zoo, int directory, const char *name)
{
    return below("zoo-%ld/%c/%s", zoo->number, 'a' + directory, name);
}

static const char *place_of(const struct zoo *zoo, int directory, const struct kind *kind)
{
    char name[64];
    snprintf(name, sizeof name, "hw_%s.so", kind->name);
    return place_for(zoo, directory, name);
}

static struct animal *add(struct zoo *zoo, const struct kind *kind, int directory)
{
    struct animal *animal = &zoo->animals[zoo->count++];
    *animal = (struct animal){ .kind = kind, .other = zoo->closed[directory] };
    snprintf(animal->path, sizeof animal->path, "%s", place_of(zoo, directory, kind));
    return animal;
}

static void add_random(struct zoo *zoo)
{
    const struct kind *kind = random_kind(zoo);
    struct animal *animal = add(zoo, kind, (int)random_below((uint64_t)zoo->directories));
    const struct twist *twist = random_twist(kind);
    twist->make(kind, animal->path);
    animal->reason = twist->reason;
    if (twist->reason && (!*twist->reason || (twist->trust && zoo->trusting)))
        animal->reason = kind->reason;
    if (sleeps(kind) || varies(kind))
        animal->reason = NULL;
}

/* One of the first directory once more, in the last one: it does not matter any more. */
static void add_again(struct zoo *zoo)
{
    const struct kind *kind = zoo->animals[random_below((uint64_t)zoo->count)].kind;
    const char *path = place_of(zoo, zoo->directories - 1, kind);
    struct stat file;
    if (zoo->count < ANIMALS && lstat(path, &file) && strcmp(kind->name, "replaces_itself"))
        make_link(kind, add(zoo, kind, zoo->directories - 1)->path);
}

/* Sometimes all users can write to a directory, or its lock is damaged. */
static void make_directories(struct zoo *zoo)
{
    zoo->directories = 1 + (int)random_below(DIRECTORIES);
    for (int i = 0; i < zoo->directories; i++) {
        snprintf(zoo->directory[i], PATH_MAX, "%s",
                 below("zoo-%ld/%c", zoo->number, 'a' + i));
        make_directory(zoo->directory[i]);
        if (chance(12) && !zoo->trusting) {
            zoo->closed[i] = "untrusted-path";
            if (chmod(zoo->directory[i], 0777))
                die("%s cannot be changed", zoo->directory[i]);
        } else if (chance(12)) {
            zoo->closed[i] = "not-locked";
            write_file(place_for(zoo, i, "plugins.lock"), "nonsense\n", 9, 0644);
        }
    }
}

static void put_the_good_one(struct zoo *zoo)
{
    const struct kind good = { CHILD, GOOD, "" };
    zoo->good = chance(6) ? -1 : (int)random_below((uint64_t)zoo->directories);
    if (zoo->good < 0)
        return;
    make_link(&good, place_of(zoo, zoo->good, &good));
    if (zoo->closed[zoo->good])
        zoo->good = -1;
}

static void choose_settings(struct zoo *zoo)
{
    static const char *const precisions[] = { "fp32", "fp16", "int8" };
    struct hw_options *options = &zoo->options;
    *options = (struct hw_options){ .size = sizeof *options,
                                    .flags = HW_OPEN_ANYWAY,
                                    .log = "off",
                                    .probe = "child",
                                    .probe_timeout = "3" };
    if (zoo->trusting)
        options->trust = "off";
    if (chance(8))
        options->cache_dir = "off";
    if (chance(4))
        options->precision = precisions[random_below(3)];
    if (chance(4))
        options->threads = "1";
    if (chance(4) && zoo->good >= 0)
        options->backends = GOOD ",*";
    if (chance(4) && zoo->good >= 0)
        options->require = GOOD;
    if (chance(4)) {
        const struct animal *one = &zoo->animals[random_below((uint64_t)zoo->count)];
        snprintf(zoo->disabled, sizeof zoo->disabled, "%s", one->kind->name);
        options->disable = zoo->disabled;
    }
}

static void fill(struct zoo *zoo, long number)
{
    *zoo = (struct zoo){ .number = number, .trusting = chance(8) };
    make_directory(below("zoo-%ld", number));
    make_directories(zoo);
    put_the_good_one(zoo);
    for (uint64_t i = 1 + random_below(6); i > 0; i--)
        add_random(zoo);
    if (zoo->directories > 1 && chance(4))
        add_again(zoo);
    choose_settings(zoo);
    totals.files += zoo->count;
}

/* ---- what is found ---- */

/* The value of the key behind `from`, in a buffer; "" if it is null, NULL if there is none. */
static const char *value_of(const char *from, const char *key)
{
    static char value[64];
    const char *at = from ? strstr(from, key) : NULL;
    if (!at)
        return NULL;
    at += strlen(key);
    value[0] = '\0';
    if (*at == '"')
        snprintf(value, sizeof value, "%.*s", (int)strcspn(at + 1, "\""), at + 1);
    return value;
}

static bool is_right(const struct animal *animal, const struct zoo *zoo, const char *reason)
{
    const char *wanted = strcmp(animal->kind->name, zoo->disabled) ? animal->reason
                                                                   : "disabled";
    return !wanted || !strcmp(reason, wanted) ||
           (animal->other && !strcmp(reason, animal->other));
}

static void check_animal(const char *report, const struct animal *animal,
                         const struct zoo *zoo)
{
    char file[PATH_MAX + 16];
    snprintf(file, sizeof file, "\"file\":\"%s\"", animal->path);
    const char *entry = strstr(report, file);
    if (!entry)
        die("%s is not in the report", animal->path);
    const char *message = value_of(entry, "\"message\":");
    const bool says_why = message && *message;
    const char *remedy = value_of(entry, "\"remedy\":");
    const bool says_what = remedy && *remedy;
    const char *reason = value_of(entry, "\"reason\":");
    if (!reason || says_why != (*reason != '\0') || says_what != says_why)
        die("%s: no reason, message or remedy", animal->path);
    totals.used += !*reason;
    totals.stopped += *reason != '\0';
    if (is_right(animal, zoo, reason))
        return;
    die("%s: \"%s\", not \"%s\"", animal->path, reason,
        animal->reason ? animal->reason : "?");
}

static void check_report(struct hw_context *context, const struct zoo *zoo)
{
    static char report[1 << 18];
    if (hw_explain(context, report, sizeof report) >= sizeof report)
        die("the report is too long");
    for (int i = 0; i < zoo->count; i++)
        check_animal(report, &zoo->animals[i], zoo);
}

static void check_good(struct hw_context *context, const struct zoo *zoo)
{
    float x[3] = { -1, 0, 2 }, y[3] = { 0 };
    struct hw_device *device;
    struct hw_queue *queue;
    if (hw_device_find(context, GOOD ":0", &device)) {
        if (zoo->good >= 0)
            die("the good plugin was not used: %s", hw_message());
        return;
    }
    if (zoo->good < 0)
        die("the good plugin was used, wherever it was found");
    if (hw_queue_open(device, NULL, &queue) ||
        hw_silu(queue, &(struct hw_silu){ .x = hw_host_1d(x, HW_F32, 3),
                                          .y = hw_host_1d(y, HW_F32, 3) }) ||
        hw_queue_wait(queue))
        die("the good plugin does not compute: %s", hw_message());
    for (int i = 0; i < 3; i++)
        if (!(fabsf(y[i] - x[i] / (1 + expf(-x[i]))) < 1e-5f))
            die("the good plugin computes what is wrong");
    hw_queue_close(queue);
}

/* ---- all of them ---- */

/* The FIFO has a writer as long as a process lives that a plugin has left behind. */
static void visit(struct zoo *zoo)
{
    char path[DIRECTORIES * PATH_MAX + 3] = "", byte;
    struct hw_context *context;
    for (int i = 0; i < zoo->directories; i++)
        snprintf(path + strlen(path), sizeof path - strlen(path), "%s%s", i ? ":" : "",
                 zoo->directory[i]);
    strcat(path, ":!");
    zoo->options.plugin_path = path;
    const int fifo = open(below("fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (hw_open(&zoo->options, &context))
        die("%s: %s", path, hw_message());
    if (fifo < 0 || read(fifo, &byte, 1) != 0)
        die("a process is left of %s", path);
    close(fifo);
    check_report(context, zoo);
    check_good(context, zoo);
    hw_close(context);
}

static void visit_one(long number)
{
    struct zoo zoo;
    fill(&zoo, number);
    char *before = host_text();
    visit(&zoo);
    if (chance(4))
        visit(&zoo);
    char *after = host_text();
    const char *difference = before && after ? host_difference(before, after) : "no memory";
    if (difference)
        die("directory %ld: the process has changed: %s", number, difference);
    if (host_mapping(root, "/hw_" GOOD ".so"))
        die("directory %ld: %s is in the process", number,
            host_mapping(root, "/hw_" GOOD ".so"));
    free(before);
    free(after);
    remove_tree(below("zoo-%ld", number));
}

void soak_zoo(long count)
{
    setenv("HW_TEST_FIFO", below("fifo"), 1);
    if (mkfifo(below("fifo"), 0600))
        die("no FIFO");
    for (long i = 0; i < 5 + count / 50; i++) /* until nothing is new */
        visit_one(-1 - i);
    memset(&totals, 0, sizeof totals);
    const struct host before = host_now();
    const double start = seconds();
    for (long i = 0; i < count; i++)
        visit_one(i);
    const struct host after = host_now();
    check_host(&before, &after);
    printf(
        "zoo: %ld directories with %ld files in %.0f s; looked at, files were used %ld times "
        "and stopped %ld times, each with its reason; descriptors %d, resident %ld KiB, then "
        "%ld\n",
        count, totals.files, seconds() - start, totals.used, totals.stopped,
        after.descriptors, before.resident, after.resident);
}
