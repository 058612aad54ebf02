/* SPDX-License-Identifier: MIT */
/* key.c - the key of a verdict: everything that it depends on, as lines of text. */
#define _POSIX_C_SOURCE 200809L
#include "cache/key.h"

#include "base/hash.h"
#include "base/platform.h"
#include "base/text.h"
#include "cache/depends.h"
#include "load/trust.h"

#include <build_stamp.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONTENT_BYTES 4096 /* of a driver's file; for a larger file, its dates count */
#define CONTENT_FILES 64   /* in a driver's directory */
#define LIBRARY_CACHE "/etc/ld.so.cache"

/* ---- the file ---- */

/* A lock lists the file by the name under which it was found: a link may lie in another directory
 * than the file. */
static void add_lock(struct candidate *candidate)
{
    char *path = lock_path(candidate->path);
    const struct identity lock = identity_at(path);
    const bool is_there = *lock.text != '-';
    /* A lock that cannot be looked at has no identity, but it counts: hw-probe says why. */
    if (path && (is_there || !trust_has_lock(candidate)))
        lines_add(&candidate->key, "lock %s %s", lock.text,
                  is_there ? candidate->file : "");
    else
        lines_drop(&candidate->key);
    free(path);
}

void key_begin(struct candidate *candidate)
{
    struct stat file;
    free(candidate->key);
    candidate->key = fstat(candidate->fd, &file) ? NULL : strdup("");
    if (!candidate->key)
        return;
    lines_add(&candidate->key, "file %s %s", identity_of(&file).text, candidate->real);
    add_lock(candidate);
}

/* ---- files of the driver, from the manifest ---- */

/* Hashes a small file by its contents, because a kernel's virtual files have meaningless dates.
 * Hashes a larger file by its dates, and a device by its permissions: opening it could wake it. */
static uint64_t hash_file(const char *path, const struct stat *file)
{
    char content[CONTENT_BYTES];
    struct identity identity = identity_of(file);
    if (!S_ISREG(file->st_mode)) {
        snprintf(content, sizeof content, "%o %ju %ju %ju %d", (unsigned)file->st_mode,
                 (uintmax_t)file->st_uid, (uintmax_t)file->st_gid, (uintmax_t)file->st_rdev,
                 access(path, R_OK | W_OK));
        return hash_add(HASH_START, content, strlen(content));
    }
    const int fd = file->st_size <= CONTENT_BYTES ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    const ssize_t bytes = fd < 0 ? -1 : read(fd, content, sizeof content);
    if (fd >= 0)
        close(fd);
    return bytes < 0 ? hash_add(HASH_START, identity.text, strlen(identity.text))
                     : hash_add(HASH_START, content, (size_t)bytes);
}

/* Hashes the files of a directory, whatever their order. */
static uint64_t hash_directory(const char *path)
{
    uint64_t sum = 0;
    unsigned files = 0;
    DIR *list = opendir(path);
    for (const struct dirent *item; list && (item = readdir(list));) {
        struct stat file;
        char *inside = text_format("%s/%s", path, item->d_name);
        uint64_t hash = hash_add(HASH_START, item->d_name, strlen(item->d_name));
        if (inside && files < CONTENT_FILES && item->d_name[0] != '.' &&
            stat(inside, &file) == 0) {
            const uint64_t content = hash_file(inside, &file);
            sum += hash_add(hash, &content, sizeof content);
            files++;
        }
        free(inside);
    }
    if (list)
        closedir(list);
    return sum;
}

static void add_driver(char **key, const char *path)
{
    struct stat file;
    if (stat(path, &file))
        lines_add(key, "driver - %s", path);
    else
        lines_add(key, "driver %016" PRIx64 " %s",
                  S_ISDIR(file.st_mode) ? hash_directory(path) : hash_file(path, &file),
                  path);
}

/* ---- the environment ---- */

/* Whether the entry "NAME=value" matches a pattern, such as "NAME" or "NA*". */
static bool matches(const char *entry, const char *pattern)
{
    const size_t length = strcspn(pattern, "*");
    return strncmp(entry, pattern, length) == 0 &&
           (pattern[length] || entry[length] == '=');
}

/* Adds hashes of the values, which may be long or private. */
static void add_variables(char **key, const char *pattern)
{
    extern char **environ;
    uint64_t sum = 0;
    unsigned count = 0;
    for (char **entry = environ; entry && *entry; entry++)
        if (matches(*entry, pattern)) {
            sum += hash_add(HASH_START, *entry, strlen(*entry));
            count++;
        }
    lines_add(key, "variable %u %016" PRIx64 " %s", count, sum, pattern);
}

/* Adds user and groups; supplementary groups as a hash, because there may be many. */
static void add_user(char **key)
{
    const int most = getgroups(0, NULL);
    gid_t *list = most < 0 ? NULL : calloc((size_t)most + 1, sizeof *list);
    const int got = list ? getgroups(most, list) : -1;
    if (got < 0)
        lines_drop(key);
    else
        lines_add(key, "user %ju %ju %016" PRIx64, (uintmax_t)geteuid(),
                  (uintmax_t)getegid(),
                  hash_add(HASH_START, list, (size_t)got * sizeof *list));
    free(list);
}

/* ---- lines that are the same for all plugins ---- */

static const char common_begin[] = "\nversion "; /* the start of these lines */

bool key_same_plugin(const char *a, const char *b)
{
    const char *end_a = strstr(a, common_begin), *end_b = strstr(b, common_begin);
    return end_a && end_b && end_a - a == end_b - b && !memcmp(a, b, (size_t)(end_a - a));
}

static char *common_key(const struct settings *settings)
{
    char *key = strdup("");
    char *probe = helper_program("hw-probe", settings->elevated);
    char boot[64];
    lines_add(&key, "version %s %s", hw_version_string(), HW_BUILD_STAMP);
    add_user(&key);
    lines_add(&key, "boot %s", system_start(boot, sizeof boot) ? boot : "-");
    lines_add(&key, "processors %u", usable_processors());
    lines_add(&key, "libraries %s", identity_at(LIBRARY_CACHE).text);
    lines_add(&key, "probe %s", identity_at(probe).text);
    free(probe);
    for (int i = 0; i < SETTING_COUNT; i++)
        if (i == SETTING_trust || i == SETTING_probe_timeout || i == SETTING_threads ||
            i == SETTING_precision || i == SETTING_memory_limit)
            lines_add(&key, "setting %d %s", i, settings->value[i].text);
    /* Variables of the system's loader and C library. */
    add_variables(&key, "LD_*");
    add_variables(&key, "GLIBC_TUNABLES");
    return key;
}

bool key_end(struct hw_context *context, struct candidate *candidate)
{
    const struct manifest *manifest = candidate->manifest;
    if (!candidate->key)
        return true;
    struct catalog *found = candidate->found;
    if (!found->key)
        found->key = common_key(&context->settings);
    for (uint32_t i = 0; i < manifest->driver_count; i++)
        add_driver(&candidate->key, manifest->drivers[i]);
    for (uint32_t i = 0; i < manifest->variable_count; i++)
        add_variables(&candidate->key, manifest->variables[i]);
    if (found->key)
        lines_add(&candidate->key, "%s", found->key);
    else
        lines_drop(&candidate->key);
    return true;
}
