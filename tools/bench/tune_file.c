/* SPDX-License-Identifier: MIT */
/* tune_file.c - the files in which `hw tune` keeps its figures: the profile of a device, which the
 * library reads, and beside it a ".part" file for an unfinished run. */
#define _DEFAULT_SOURCE /* flock() */
#include "command/command.h"
#include "command/new_file.h"
#include "command/output.h"
#include "tune.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HASH = 16, MOST_BYTES = 256 << 10 };
static const char magic[] = "hw-profile 1 ";

/* ---- the text ---- */

static uint64_t checksum(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

/* The caller frees it; NULL if memory runs out. */
static char *whole_text(const struct tune_profile *profile)
{
    const size_t key = strlen(profile->key), rows = strlen(profile->rows);
    const size_t room = key + rows + 128;
    char *text = malloc(room), *rest = malloc(room);
    if (text && rest) {
        snprintf(rest, room, " %lld %zu %zu\n%s%s", (long long)time(NULL), key, rows,
                 profile->key, profile->rows);
        snprintf(text, room, "%s%016" PRIx64 "%s", magic, checksum(rest), rest);
    }
    free(rest);
    if (!rest) {
        free(text);
        text = NULL;
    }
    return text;
}

/* The file as text; NULL if it is missing, too large, or writable by others. */
static char *read_text(const char *path)
{
    struct stat about;
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    char *text = NULL;
    if (file && !fstat(fd, &about) && S_ISREG(about.st_mode) && about.st_uid == geteuid() &&
        !(about.st_mode & (S_IWGRP | S_IWOTH)) && about.st_size < MOST_BYTES &&
        (text = malloc(MOST_BYTES)))
        text[fread(text, 1, MOST_BYTES - 1, file)] = '\0';
    if (file)
        fclose(file);
    else if (fd >= 0)
        close(fd);
    return text;
}

/* Where the rows begin in `text`; NULL if its checksum or key is wrong. */
static const char *rows_in(const char *text, const char *key)
{
    char digits[HASH + 1];
    const size_t head = sizeof magic - 1 + HASH;
    if (strlen(text) < head || strncmp(text, magic, sizeof magic - 1) != 0)
        return NULL;
    snprintf(digits, sizeof digits, "%016" PRIx64, checksum(text + head));
    const char *line = strchr(text, '\n');
    if (strncmp(text + sizeof magic - 1, digits, HASH) != 0 || !line ||
        strncmp(line + 1, key, strlen(key)) != 0)
        return NULL;
    return line + 1 + strlen(key);
}

/* ---- the profile ---- */

static const json_t *find_profile(const struct report *report, struct hw_device *device)
{
    json_t *profile;
    size_t index;
    json_array_foreach (json_object_get(report->explain, "profiles"), index, profile)
        if (!strcmp(text_of(profile, "device"), hw_device_name(device)))
            return profile;
    return NULL;
}

bool tune_open(struct tune_profile *profile, const struct report *report,
               struct hw_device *device)
{
    const json_t *found = find_profile(report, device);
    const char *path = text_of(found, "profile");
    *profile = (struct tune_profile){ .resumed = 0 };
    snprintf(profile->device, sizeof profile->device, "%s", hw_device_name(device));
    profile->key = strdup(text_of(found, "key"));
    profile->rows = strdup("");
    if (!profile->key || !profile->rows || strlen(path) + 16 > sizeof profile->path) {
        complain("out of memory");
        return false;
    }
    strcpy(profile->path, path);
    if (!*path)
        complain("there is no cache directory to keep profiles in; set HW_CACHE_DIR");
    return *path;
}

void tune_close(struct tune_profile *profile)
{
    free(profile->key);
    free(profile->rows);
    *profile = (struct tune_profile){ .resumed = 0 };
}

static const char *part_path(const struct tune_profile *profile, char path[TUNE_PATH])
{
    snprintf(path, TUNE_PATH, "%.*s.part", TUNE_PATH - 8, profile->path);
    return path;
}

static bool append(struct tune_profile *profile, const char *line, size_t length)
{
    const size_t used = strlen(profile->rows);
    char *longer = used + length + 2 < MOST_BYTES / 2
                       ? realloc(profile->rows, used + length + 2)
                       : NULL;
    if (!longer)
        return false;
    profile->rows = longer;
    memcpy(longer + used, line, length);
    strcpy(longer + used + length, "\n");
    return true;
}

static bool is_of(const char *line, const char *op)
{
    const size_t length = strlen(op);
    return !strncmp(line, op, length) && line[length] == '/';
}

bool tune_has(const struct tune_profile *profile, const char *name)
{
    const size_t length = strlen(name);
    for (const char *line = profile->rows; line && *line;) {
        if (!strncmp(line, name, length) && line[length] == ' ')
            return true;
        line = strchr(line, '\n');
        line += line != NULL;
    }
    return false;
}

static bool is_there(const struct tune_profile *profile, const char *line)
{
    char name[TUNE_NAME];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(line, " "), line);
    return tune_has(profile, name);
}

/* Takes the lines of a file, except lines of the ops in the list (may be NULL). */
static int take_rows(struct tune_profile *profile, const char *path, const char *const *ops)
{
    char *text = read_text(path);
    const char *line = text ? rows_in(text, profile->key) : NULL, *end;
    int taken = 0;
    for (; line && (end = strchr(line, '\n')); line = end + 1) {
        bool left_out = is_there(profile, line);
        for (const char *const *op = ops; op && *op; op++)
            left_out |= is_of(line, *op);
        taken += !left_out && append(profile, line, (size_t)(end - line));
    }
    free(text);
    return taken;
}

void tune_resume(struct tune_profile *profile)
{
    char path[TUNE_PATH];
    profile->resumed = take_rows(profile, part_path(profile, path), NULL);
}

void tune_keep(struct tune_profile *profile, const char *const *ops)
{
    take_rows(profile, profile->path, ops);
}

static bool write_profile(const struct tune_profile *profile, const char *path)
{
    char *text = whole_text(profile);
    const bool good = text && new_file_write(path, 0600, true, text, strlen(text));
    if (!text)
        complain("out of memory");
    free(text);
    return good;
}

bool tune_add(struct tune_profile *profile, const char *line)
{
    char path[TUNE_PATH];
    if (append(profile, line, strlen(line)))
        return write_profile(profile, part_path(profile, path));
    complain("out of memory");
    return false;
}

bool tune_finish(struct tune_profile *profile)
{
    char path[TUNE_PATH];
    if (!write_profile(profile, profile->path))
        return false;
    unlink(part_path(profile, path));
    return true;
}

/* ---- the directory ---- */

/* Makes the directory of a path and those above it; false, and errno, if that fails. */
static bool make_directory(const char *path)
{
    char copy[TUNE_PATH];
    const char *last = strrchr(path, '/');
    snprintf(copy, sizeof copy, "%.*s", (int)(last - path), path);
    for (char *end = copy + 1; *end; end++)
        if (*end == '/') {
            *end = '\0';
            if (mkdir(copy, 0700) && errno != EEXIST)
                return false;
            *end = '/';
        }
    return mkdir(copy, 0700) == 0 || errno == EEXIST;
}

int tune_lock(const struct tune_profile *profile)
{
    char folder[TUNE_PATH];
    snprintf(folder, sizeof folder, "%.*s",
             (int)(strrchr(profile->path, '/') - profile->path), profile->path);
    const bool there = make_directory(profile->path);
    const int fd = there ? open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                         : -1;
    if (fd < 0) {
        complain("%s: %s", folder, strerror(errno));
        return -1;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    complain("%s: %s", folder,
             errno == EWOULDBLOCK ? "another hw tune is measuring; two at once would "
                                    "disturb each other"
                                  : strerror(errno));
    close(fd);
    return -1;
}

/* "<backend>-<hash>", with or without ".part". */
static bool is_profile(const char *name, const char *backend)
{
    const size_t length = strcspn(name, ".");
    const size_t own = length > HASH + 1 ? length - HASH - 1 : 0;
    return own && name[own] == '-' && strspn(name + own + 1, "0123456789abcdef") == HASH &&
           (!name[length] || !strcmp(name + length, ".part")) &&
           (!backend || (strlen(backend) == own && !strncmp(name, backend, own)));
}

int tune_clear(const char *cache, const char *backend)
{
    char folder[TUNE_PATH];
    unsigned removed = 0;
    int status = 0;
    snprintf(folder, sizeof folder, "%.4096s/profiles.d", cache);
    const int place = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *list = place < 0 ? NULL : fdopendir(dup(place));
    for (const struct dirent *item; list && (item = readdir(list));) {
        if (!is_profile(item->d_name, backend))
            continue;
        if (unlinkat(place, item->d_name, 0)) {
            complain("%s/%s: %s", folder, item->d_name, strerror(errno));
            status = EXIT_FAILED;
        } else
            removed++;
    }
    if (list)
        closedir(list);
    if (place >= 0)
        close(place);
    if (out_json)
        out_tree(json_pack("{s:i, s:i}", "schema", 1, "removed", (int)removed));
    else
        say("Removed %u profile%s.\n", removed, removed == 1 ? "" : "s");
    return status;
}
