/* SPDX-License-Identifier: MIT */
/* soak.c - the loader, many times: what happens once in a hundred thousand starts happens here.
 *
 * usage: soak MODE COUNT [SEED]
 *
 *   cycles   contexts opened and closed, one after the other
 *   threads  the same by 64 threads at once, which compute, too
 *   swap     contexts opened while the plugin's file is replaced all the time, by one that must not
 *            be loaded and back
 *   zoo      directories of random plugins, faulty and damaged ones, beside a good one
 *   junk     files in one directory that only have the names of plugins
 *
 * It prints a line with figures. The status is 1 if something went wrong, or if descriptors,
 * threads or memory grew, or if the state of the process changed. FIXTURES and SOAK_FIXTURES are
 * directories of built plugins. */
#define _GNU_SOURCE
#include <hw/hw.h>

#include <dirent.h>
#include <fcntl.h>
#include <fenv.h>
#include <ftw.h>
#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char root[64]; /* of all that is written */

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "soak: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    exit(1);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* xorshift64*: the same numbers for the same seed. */
static uint64_t state_of_random;
static uint64_t random_below(uint64_t limit)
{
    state_of_random ^= state_of_random >> 12;
    state_of_random ^= state_of_random << 25;
    state_of_random ^= state_of_random >> 27;
    return (state_of_random * UINT64_C(0x2545F4914F6CDD1D) >> 32) % limit;
}

/* ---- the state of the process ---- */

struct host {
    int descriptors, threads, rounding;
    long resident; /* KiB */
    char directory[PATH_MAX], locale[128];
    uint64_t environment, handlers;
};

static int entries_in(const char *path)
{
    DIR *directory = opendir(path);
    int count = 0;
    while (directory && readdir(directory))
        count++;
    if (directory)
        closedir(directory);
    return count - 3; /* . and .., and the directory's own descriptor or the main thread */
}

static long resident_now(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file || fscanf(file, "%*s %ld", &pages) != 1)
        die("/proc/self/statm cannot be read");
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static struct host host_now(void)
{
    struct host host = { .descriptors = entries_in("/proc/self/fd"),
                         .threads = entries_in("/proc/self/task"),
                         .rounding = fegetround(),
                         .resident = resident_now() };
    if (!getcwd(host.directory, sizeof host.directory))
        die("no current directory");
    snprintf(host.locale, sizeof host.locale, "%s", setlocale(LC_ALL, NULL));
    for (char **each = environ; *each; each++)
        host.environment = mix(host.environment, *each, strlen(*each));
    for (int i = 1; i < NSIG; i++) {
        struct sigaction action;
        if (sigaction(i, NULL, &action) == 0)
            host.handlers = mix(host.handlers, &action.sa_handler,
                                sizeof action.sa_handler);
    }
    return host;
}

/* KiB. Plugins stay loaded, and an allocator keeps some of what it had, but not without end. (That
 * of a sanitizer keeps much more.) */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GROWTH_MAX (1L << 20)
#else
#define GROWTH_MAX 4096
#endif

static void check_host(const struct host *before, const struct host *after)
{
    if (before->descriptors != after->descriptors || before->threads != after->threads)
        die("descriptors %d, then %d; threads %d, then %d", before->descriptors,
            after->descriptors, before->threads, after->threads);
    if (before->rounding != after->rounding || before->environment != after->environment ||
        before->handlers != after->handlers ||
        strcmp(before->directory, after->directory) ||
        strcmp(before->locale, after->locale))
        die("rounding, environment, signal handlers, current directory or locale changed");
    if (after->resident > before->resident + GROWTH_MAX)
        die("resident memory %ld KiB, then %ld", before->resident, after->resident);
}

/* ---- files ---- */

static const char *below(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *below(const char *format, ...)
{
    static _Thread_local char buffers[4][PATH_MAX];
    static _Thread_local unsigned turn;
    char *text = buffers[turn++ % 4];
    const int length = snprintf(text, PATH_MAX, "%s/", root);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + length, PATH_MAX - (size_t)length, format, arguments);
    va_end(arguments);
    return text;
}

static void make_directory(const char *path)
{
    if (mkdir(path, 0755))
        die("%s cannot be made", path);
}

static void write_file(const char *path, const void *bytes, size_t size, mode_t mode)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || fchmod(fd, mode) || close(fd))
        die("%s cannot be written", path);
}

static unsigned char *read_file(const char *path, size_t *size)
{
    struct stat info;
    FILE *file = fopen(path, "re");
    if (!file || fstat(fileno(file), &info))
        die("%s cannot be opened", path);
    unsigned char *bytes = malloc((size_t)info.st_size + 1);
    if (!bytes || fread(bytes, 1, (size_t)info.st_size, file) != (size_t)info.st_size)
        die("%s cannot be read", path);
    fclose(file);
    *size = (size_t)info.st_size;
    return bytes;
}

static void copy_file(const char *from, const char *to, mode_t mode)
{
    size_t size;
    unsigned char *bytes = read_file(from, &size);
    write_file(to, bytes, size, mode);
    free(bytes);
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info, (void)type, (void)ftw;
    return remove(path);
}

static void remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void remove_root(void)
{
    remove_tree(root);
}

/* ---- contexts ---- */

static enum hw_status open_on(const char *path, struct hw_context **context)
{
    return hw_open(&(struct hw_options){ .size = sizeof(struct hw_options),
                                         .plugin_path_only = path,
                                         .flags = HW_OPEN_ANYWAY,
                                         .log = "off" },
                   context);
}

static bool has_good(struct hw_context *context)
{
    struct hw_device *device;
    return hw_device_find(context, "good:0", &device) == HW_OK;
}

static void open_once(const char *path)
{
    struct hw_context *context;
    if (open_on(path, &context))
        die("hw_open: %s", hw_message());
    if (!has_good(context))
        die("the good plugin was not used: %s", hw_message());
    hw_close(context);
}

/* ---- the modes ---- */

/* A directory with the good plugin; its name, like those below, is one below the root. */
static void put_good(const char *directory)
{
    make_directory(below("%s", directory));
    copy_file(FIXTURES "/hw_good.so", below("%s/hw_good.so", directory), 0755);
}

static void cycles(long count)
{
    put_good("plugins");
    for (long i = 0; i < 10 + count / 10; i++) /* until nothing is new */
        open_once(below("plugins"));
    const struct host before = host_now();
    const double start = seconds();
    for (long i = 0; i < count; i++)
        open_once(below("plugins"));
    const struct host after = host_now();
    check_host(&before, &after);
    printf(
        "cycles: %ld, %.1f us each; descriptors %d, threads %d, resident %ld KiB, then %ld\n",
        count, 1e6 * (seconds() - start) / (double)count, after.descriptors, after.threads,
        before.resident, after.resident);
}

static atomic_long left;

/* The device that computes is the CPU plugin's, if that was built. */
static void *open_and_compute(void *path)
{
    while (atomic_fetch_sub(&left, 1) > 0) {
        struct hw_context *context;
        struct hw_queue *queue;
        float x[5] = { -2, -1, 0, 1, 2 }, y[5];
        if (open_on(path, &context))
            die("hw_open: %s", hw_message());
        if (!has_good(context))
            die("the good plugin was not used: %s", hw_message());
        struct hw_device *device;
        if (!hw_device_find(context, "cpu:0", &device)) {
            if (hw_queue_open(device, NULL, &queue) ||
                hw_silu(queue, &(struct hw_silu){ .x = hw_host_1d(x, HW_F32, 5),
                                                  .y = hw_host_1d(y, HW_F32, 5) }) ||
                hw_queue_wait(queue) || y[2] != 0 || y[4] < 1.76f || y[4] > 1.77f)
                die("silu: %s", hw_message());
            hw_queue_close(queue);
        }
        hw_close(context);
    }
    return NULL;
}

static void threads(long count)
{
    enum { THREADS = 64 };
    char *path = NULL;
    pthread_t thread[THREADS];
    put_good("plugins");
    if (asprintf(&path, "%s:%s", below("plugins"), PLUGINS) < 0)
        die("out of memory");
    for (int round = 0; round < 2; round++) { /* the first is for what is new */
        const struct host before = host_now();
        const double start = seconds();
        atomic_store(&left, round ? count : THREADS);
        for (int i = 0; i < THREADS; i++)
            if (pthread_create(&thread[i], NULL, open_and_compute, path))
                die("a thread cannot be started");
        for (int i = 0; i < THREADS; i++)
            pthread_join(thread[i], NULL);
        const struct host after = host_now();
        if (before.descriptors != after.descriptors)
            die("descriptors %d, then %d", before.descriptors, after.descriptors);
        if (round)
            printf(
                "threads: %d, %ld contexts in %.1f s; descriptors %d, resident %ld KiB, then "
                "%ld\n",
                THREADS, count, seconds() - start, after.descriptors, before.resident,
                after.resident);
    }
    free(path);
}

static atomic_bool swapping;

/* Two files whose links take turns as the plugin; the good one is there at first. */
static void *swap_files(void *count)
{
    static const char *const names[] = { "marked", "good" };
    for (long i = 0; i < *(long *)count; i++)
        if (link(below("%s", names[i & 1]), below("part")) ||
            rename(below("part"), below("plugins/hw_good.so")))
            die("the plugin cannot be replaced");
    atomic_store(&swapping, false);
    return NULL;
}

static void swap(long count)
{
    pthread_t thread;
    long opened = 0, good = 0;
    make_directory(below("plugins"));
    copy_file(FIXTURES "/hw_good.so", below("good"), 0755);
    copy_file(SOAK_FIXTURES "/hw_marked.so", below("marked"), 0666);
    if (link(below("good"), below("plugins/hw_good.so")))
        die("no hard links in %s", root);
    atomic_store(&swapping, true);
    if (pthread_create(&thread, NULL, swap_files, &count))
        die("a thread cannot be started");
    const double start = seconds();
    while (atomic_load(&swapping)) {
        struct hw_context *context;
        if (open_on(below("plugins"), &context))
            die("hw_open: %s", hw_message());
        opened++;
        good += has_good(context);
        hw_close(context);
        if (getenv("SOAK_MARKED"))
            die("the file that others can write to was loaded");
    }
    pthread_join(thread, NULL);
    printf(
        "swap: %ld swaps, %ld contexts opened meanwhile in %.1f s, the good file used in %ld\n",
        count, opened, seconds() - start, good);
}

/* Those that change the file of the fixture itself, or of other tests, are not for sharing. */
static bool is_fixture(const char *name)
{
    static const char *const no[] = { "hw_good.so", "hw_replaces_itself.so",
                                      "hw_tally.so" };
    const size_t length = strlen(name);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (!strcmp(name, no[i]))
            return false;
    return length > 6 && !strncmp(name, "hw_", 3) && !strcmp(name + length - 3, ".so");
}

static void put_damaged(const char *directory, int number)
{
    size_t size;
    unsigned char *bytes = read_file(FIXTURES "/hw_plain.so", &size);
    if (random_below(3) == 0)
        size = random_below(size);
    for (uint64_t i = random_below(8); size && i > 0; i--)
        bytes[random_below(size < 8192 ? size : 8192)] = (unsigned char)random_below(256);
    write_file(below("%s/hw_damaged%d.so", directory, number), bytes, size, 0755);
    free(bytes);
}

static long fill_directory(const char *directory, struct dirent *const *fixtures, int count)
{
    long files = 0;
    put_good(directory);
    for (uint64_t k = 1 + random_below(6); k > 0; k--) {
        const char *name = fixtures[random_below((uint64_t)count)]->d_name;
        char *from = NULL;
        if (is_fixture(name) && asprintf(&from, FIXTURES "/%s", name) > 0)
            files += symlink(from, below("%s/%s", directory, name)) == 0;
        free(from);
    }
    for (int k = (int)random_below(3); k > 0; k--, files++)
        put_damaged(directory, k);
    return files;
}

static void zoo(long count)
{
    struct dirent **fixtures;
    const int all = scandir(FIXTURES, &fixtures, NULL, alphasort);
    long files = 0, alone = 0;
    if (all < 3)
        die(FIXTURES " has no fixtures");
    setenv("HW_PROBE", "child", 1);
    setenv("HW_PROBE_TIMEOUT", "2", 1);
    const struct host before = host_now();
    const double start = seconds();
    for (long i = 0; i < count; i++) {
        struct hw_context *context;
        char directory[32];
        snprintf(directory, sizeof directory, "zoo-%ld", i);
        files += fill_directory(directory, fixtures, all);
        if (open_on(below("%s", directory), &context))
            die("directory %ld: %s", i, hw_message());
        if (!has_good(context))
            die("directory %ld: the good plugin was not used: %s", i, hw_message());
        alone += hw_device_count(context) == 1;
        hw_close(context);
        remove_tree(below("%s", directory));
    }
    const struct host after = host_now();
    check_host(&before, &after);
    printf(
        "zoo: %ld directories with %ld files beside the good one in %.1f s; in %ld the good one "
        "was the only device\n",
        count, files, seconds() - start, alone);
    for (int i = 0; i < all; i++)
        free(fixtures[i]);
    free(fixtures);
}

static void junk(long count)
{
    static const char *const texts[] = { "", "text\n", "\177ELF", "#!/bin/sh\n", "MZ\x90" };
    put_good("plugins");
    for (long i = 0; i < count; i++) {
        const char *text = texts[i % (long)(sizeof texts / sizeof *texts)];
        write_file(below("plugins/%s%ld%s", i % 2 ? "hw_z" : "junk", i, i % 2 ? ".so" : ""),
                   text, strlen(text), 0644);
    }
    const double start = seconds();
    open_once(below("plugins"));
    printf("junk: %ld files beside the good one, opened in %.3f s\n", count,
           seconds() - start);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(long count);
    } modes[] = { { "cycles", cycles },
                  { "threads", threads },
                  { "swap", swap },
                  { "zoo", zoo },
                  { "junk", junk } };
    const long count = argc > 2 ? atol(argv[2]) : 0;
    state_of_random = argc > 3 ? strtoull(argv[3], NULL, 10) | 1 : 20261123;
    strcpy(root, "/tmp/hw-soak-XXXXXX");
    if (!mkdtemp(root) || chmod(root, 0755))
        die("no directory in /tmp");
    atexit(remove_root);
    umask(022);
    setenv("HW_CACHE_DIR", below("cache"), 1);
    for (size_t i = 0; i < sizeof modes / sizeof *modes && argc > 1 && count > 0; i++)
        if (!strcmp(modes[i].name, argv[1])) {
            modes[i].run(count);
            return 0;
        }
    die("usage: soak cycles|threads|swap|zoo|junk COUNT [SEED]");
}
