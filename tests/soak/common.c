/* SPDX-License-Identifier: MIT */
/* common.c - shared by the modes of soak.c: the state of the process, files, contexts. */
#define _GNU_SOURCE
#include "soak.h"

#include <dirent.h>
#include <fcntl.h>
#include <fenv.h>
#include <ftw.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

char root[64];
uint64_t state_of_random;

void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "soak: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    exit(1);
}

double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

uint64_t random_below(uint64_t limit)
{
    state_of_random ^= state_of_random >> 12;
    state_of_random ^= state_of_random << 25;
    state_of_random ^= state_of_random >> 27;
    return (state_of_random * UINT64_C(0x2545F4914F6CDD1D) >> 32) % limit;
}

/* ---- the state of the process ---- */

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

struct host host_now(void)
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

void check_same(const struct host *before, const struct host *after)
{
    if (before->descriptors != after->descriptors || before->threads != after->threads)
        die("descriptors %d, then %d; threads %d, then %d", before->descriptors,
            after->descriptors, before->threads, after->threads);
    if (before->rounding != after->rounding || before->environment != after->environment ||
        before->handlers != after->handlers ||
        strcmp(before->directory, after->directory) ||
        strcmp(before->locale, after->locale))
        die("rounding, environment, signal handlers, current directory or locale changed");
}

/* KiB. Plugins stay loaded, and an allocator keeps a limited amount of freed memory (a sanitizer's
 * keeps much more). */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GROWTH_MAX (1L << 20)
#else
#define GROWTH_MAX 4096
#endif

void check_host(const struct host *before, const struct host *after)
{
    check_same(before, after);
    if (after->resident > before->resident + GROWTH_MAX)
        die("resident memory %ld KiB, then %ld", before->resident, after->resident);
}

/* ---- files ---- */

const char *below(const char *format, ...)
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

void make_directory(const char *path)
{
    if (mkdir(path, 0755))
        die("%s cannot be made", path);
}

void write_file(const char *path, const void *bytes, size_t size, mode_t mode)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || fchmod(fd, mode) || close(fd))
        die("%s cannot be written", path);
}

unsigned char *read_file(const char *path, size_t *size)
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

void copy_file(const char *from, const char *to, mode_t mode)
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

void remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- contexts ---- */

enum hw_status open_on(const char *path, struct hw_context **context)
{
    char alone[PATH_MAX + 3];
    snprintf(alone, sizeof alone, "%s:!", path);
    return hw_open(&(struct hw_options){ .size = sizeof(struct hw_options),
                                         .plugin_path = alone,
                                         .flags = HW_OPEN_ANYWAY,
                                         .log = "off" },
                   context);
}

bool has_good(struct hw_context *context)
{
    struct hw_device *device;
    return hw_device_find(context, "good:0", &device) == HW_OK;
}

void open_once(const char *path)
{
    struct hw_context *context;
    if (open_on(path, &context))
        die("hw_open: %s", hw_message());
    if (!has_good(context))
        die("the good plugin was not used: %s", hw_message());
    hw_close(context);
}

void put_good(const char *directory)
{
    make_directory(below("%s", directory));
    copy_file(FIXTURES "/hw_good.so", below("%s/hw_good.so", directory), 0755);
}
