/* SPDX-License-Identifier: MIT */
/* cache_files.c - the files below HW_CACHE_DIR. */
#define _POSIX_C_SOURCE 200809L
#include "cache_files.h"

#include "command/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PLACE       "verdicts.d"
#define ENTRY_BYTES (2u << 20)

enum { VERDICT_HASH = 16, PROGRAM_HASH = 64, PLUGIN_SIZE = 32, LOCKS = 512 };

/* ---- names of files ---- */

/* Whether `length` bytes may be the name of a backend. */
static bool is_backend(const char *name, size_t length)
{
    return length > 0 && length < PLUGIN_SIZE &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") >= length;
}

/* "<plugin>-<hash>"; in a temporary name, ".<number>-<number>" follows. */
static bool is_verdict(const char *name)
{
    const size_t length = strcspn(name, ".");
    return length > VERDICT_HASH + 1 && is_backend(name, length - VERDICT_HASH - 1) &&
           name[length - VERDICT_HASH - 1] == '-' &&
           strspn(name + length - VERDICT_HASH, "0123456789abcdef") == VERDICT_HASH;
}

static bool is_program(const char *name)
{
    return strspn(name, "0123456789abcdef") == PROGRAM_HASH &&
           (!name[PROGRAM_HASH] || name[PROGRAM_HASH] == '.');
}

/* Whether the verdict of this name is about the plugin; NULL: any. */
static bool is_about(const char *name, const char *plugin)
{
    const size_t length = strcspn(name, ".") - VERDICT_HASH - 1;
    return !plugin || (strlen(plugin) == length && !strncmp(name, plugin, length));
}

static bool is_ours(const struct stat *file)
{
    return file->st_uid == geteuid() && !(file->st_mode & (S_IWGRP | S_IWOTH));
}

/* ---- visiting ---- */

struct visit {
    bool (*is_one)(const char *name);
    void (*file)(struct visit *visit, int directory, const char *name,
                 const struct stat *file);
    const char *plugin; /* of verdicts; NULL: any */
    void *user;
};

/* Calls visit->file() with each such file, in the order of their names. */
static void visit_directory(const char *path, struct visit *visit)
{
    struct dirent **list;
    struct stat file;
    const int directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const int count = directory < 0 ? -1 : scandir(path, &list, NULL, alphasort);

    for (int i = 0; i < count; i++) {
        const char *name = list[i]->d_name;
        if (visit->is_one(name) &&
            (visit->is_one != is_verdict || is_about(name, visit->plugin)) &&
            fstatat(directory, name, &file, AT_SYMLINK_NOFOLLOW) == 0 &&
            !S_ISDIR(file.st_mode))
            visit->file(visit, directory, name, &file);
        free(list[i]);
    }
    if (count >= 0)
        free(list);
    if (directory >= 0)
        close(directory);
}

static void visit_verdicts(const char *directory, struct visit *visit)
{
    char path[4200];
    visit->is_one = is_verdict;
    snprintf(path, sizeof path, "%s/" PLACE, directory);
    visit_directory(path, visit);
}

/* Calls `each` with the name and the path of each plugin's directory. */
static void each_plugin(const char *directory, const char *plugin,
                        void (*each)(const char *name, const char *path, void *user),
                        void *user)
{
    struct dirent **list;
    const int count = scandir(directory, &list, NULL, alphasort);

    for (int i = 0; i < count; i++) {
        const char *name = list[i]->d_name;
        char path[4400];
        snprintf(path, sizeof path, "%s/%s", directory, name);
        if (is_backend(name, strlen(name)) && (!plugin || !strcmp(plugin, name)))
            each(name, path, user);
        free(list[i]);
    }
    if (count >= 0)
        free(list);
}

/* ---- reading a verdict ---- */

static bool checksum_is_right(const char *data, size_t size, const char *digits)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    char text[VERDICT_HASH + 1];

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)data[i]) * UINT64_C(0x100000001b3);
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    return !memcmp(text, digits, VERDICT_HASH);
}

/* The path of the plugin: it follows the sixth blank in the first line of the key. */
static json_t *path_in_key(const char *key, size_t size)
{
    const char *end = memchr(key, '\n', size);
    for (int i = 0; i < 6 && end; i++) {
        const char *blank = memchr(key, ' ', (size_t)(end - key));
        if (!blank)
            return json_null();
        key = blank + 1;
    }
    return end ? json_text(key, (size_t)(end - key)) : json_null();
}

struct times {
    int64_t written, expires;
};

static void put_times(json_t *row, struct times times)
{
    const int64_t now = (int64_t)time(NULL), left = times.expires - now;

    json_object_set_new(row, "written", json_integer(times.written));
    json_object_set_new(row, "expires",
                        times.expires ? json_integer(times.expires) : json_null());
    json_object_set_new(row, "age",
                        json_integer(now > times.written ? now - times.written : 0));
    /* A failure from the future is tried again at once: see docs/cache.md. */
    json_object_set_new(row, "retry",
                        !times.expires
                            ? json_null()
                            : json_integer(left > 0 && times.written <= now ? left : 0));
}

/* Adds the members of the entry; false if it is damaged. */
static bool put_entry(json_t *row, const char *data, size_t size)
{
    static const char magic[] = "hw-verdict 1 ";
    const size_t head = sizeof magic - 1 + VERDICT_HASH;
    char outcome[32], line[256];
    struct times times;

    if (size < head || memcmp(data, magic, sizeof magic - 1) ||
        !checksum_is_right(data + head, size - head, data + sizeof magic - 1))
        return false;
    const char *end = memchr(data, '\n', size);
    if (!end || (size_t)(end - data) >= sizeof line)
        return false;
    memcpy(line, data, (size_t)(end - data));
    line[end - data] = '\0';
    if (sscanf(line + head, " %*31s %31s %*u %*u %15" SCNd64 " %15" SCNd64, outcome,
               &times.written, &times.expires) != 3)
        return false;
    json_object_set_new(row, "file", path_in_key(end + 1, size - (size_t)(end + 1 - data)));
    json_object_set_new(row, "outcome", json_text(outcome, strlen(outcome)));
    put_times(row, times);
    return true;
}

static const char *read_entry(json_t *row, int fd, const struct stat *named)
{
    struct stat file;
    const size_t size = (size_t)named->st_size;
    if (fstat(fd, &file) || !S_ISREG(file.st_mode) || size > ENTRY_BYTES)
        return "it is not an entry";
    if (!is_ours(&file))
        return "another user owns it or may write to it";
    char *data = malloc(size + 1);
    const bool whole = data && read(fd, data, size) == (ssize_t)size;
    const bool good = whole && put_entry(row, data, size);
    free(data);
    return good ? NULL : "it is damaged, or of another version";
}

/* Whether the number of the entry, which its name ends with, is in the file of locks: it hides the
 * entry. */
static bool is_locked(int directory, const char *name)
{
    uint64_t locks[LOCKS];
    const uint64_t number = strtoull(strrchr(name, '-') + 1, NULL, 16);
    const int fd = openat(directory, ".locks",
                          O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const ssize_t bytes = fd < 0 ? 0 : read(fd, locks, sizeof locks);
    bool locked = false;
    for (size_t i = 0; bytes > 0 && i < (size_t)bytes / sizeof number; i++)
        locked = locked || locks[i] == number;
    if (fd >= 0)
        close(fd);
    return locked;
}

static void list_verdict(struct visit *visit, int directory, const char *name,
                         const struct stat *file)
{
    const size_t length = strcspn(name, ".") - VERDICT_HASH - 1;
    const int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    json_t *row = json_pack("{s:s%, s:n, s:n, s:n, s:n, s:n, s:n, s:I, s:s}", "plugin",
                            name, length, "file", "outcome", "written", "expires", "age",
                            "retry", "bytes", (json_int_t)file->st_size, "entry", name);
    const char *problem = fd < 0 ? "it cannot be read" : read_entry(row, fd, file);

    if (name[strcspn(name, ".")])
        problem = "a process writes it, or ended while it did";
    else if (is_locked(directory, name))
        problem = "a process binds the plugin, or ended while it did";
    json_object_set_new(row, "problem", problem ? json_string(problem) : json_null());
    if (fd >= 0)
        close(fd);
    json_array_append_new(visit->user, row);
}

json_t *cache_verdicts(const char *directory, const char *plugin)
{
    json_t *list = json_array();
    visit_verdicts(directory,
                   &(struct visit){ .file = list_verdict, .plugin = plugin, .user = list });
    return list;
}

/* ---- programs ---- */

struct total {
    json_int_t files, bytes;
};

static void count_program(struct visit *visit, int directory, const char *name,
                          const struct stat *file)
{
    struct total *total = visit->user;
    (void)directory, (void)name;
    total->files++;
    total->bytes += (json_int_t)file->st_size;
}

static void list_programs(const char *name, const char *path, void *user)
{
    struct total total = { 0 };
    visit_directory(
        path,
        &(struct visit){ .is_one = is_program, .file = count_program, .user = &total });
    if (total.files)
        json_array_append_new(user, json_pack("{s:s, s:I, s:I, s:o}", "plugin", name,
                                              "files", total.files, "bytes", total.bytes,
                                              "directory", json_text(path, strlen(path))));
}

json_t *cache_programs(const char *directory, const char *plugin)
{
    json_t *list = json_array();
    each_plugin(directory, plugin, list_programs, list);
    return list;
}

/* ---- removing ---- */

static void remove_file(struct visit *visit, int directory, const char *name,
                        const struct stat *file)
{
    struct cleared *cleared = visit->user;
    if (unlinkat(directory, name, 0) == 0) {
        cleared->files++;
        cleared->bytes += (uint64_t)file->st_size;
    } else if (errno != ENOENT && cleared->failures++ == 0) {
        snprintf(cleared->why, sizeof cleared->why, "%.300s: %s", name, strerror(errno));
    }
}

void cache_clear_verdicts(const char *directory, const char *plugin,
                          struct cleared *cleared)
{
    visit_verdicts(directory, &(struct visit){
                                  .file = remove_file, .plugin = plugin, .user = cleared });
}

static void remove_programs(const char *name, const char *path, void *user)
{
    (void)name;
    visit_directory(
        path, &(struct visit){ .is_one = is_program, .file = remove_file, .user = user });
}

void cache_clear_programs(const char *directory, const char *plugin,
                          struct cleared *cleared)
{
    each_plugin(directory, plugin, remove_programs, cleared);
}
