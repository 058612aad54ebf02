/* SPDX-License-Identifier: MIT */
/* scan.c - the stage list: files named hw_<name>.so in the search directories, sorted, each
 * once; and where a candidate writes down why it stopped. */
#define _DEFAULT_SOURCE
#include "open/scan.h"

#include "base/message.h"
#include "base/platform.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX         "hw_"
#define SUFFIX         ".so"
#define MAX_CANDIDATES 4096 /* files looked at, over all directories */

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* What the name of a file says: the backend, or why it is none. A file that the settings
 * name may be called anything; then its manifest has the word. */
static void read_name(struct candidate *candidate)
{
    const char *name = candidate->file + strlen(PREFIX);
    if (strncmp(candidate->file, PREFIX, strlen(PREFIX)) != 0)
        return;
    if (!ends_in(candidate->file, SUFFIX)) {
        stop(candidate, REASON_OTHER_SYSTEM, NULL);
        return;
    }
    size_t length = strlen(name) - strlen(SUFFIX);
    if (name_valid(name, length))
        memcpy(candidate->name, name, length);
    else if (length < NAME_SIZE)
        stop(candidate, REASON_BAD_NAME, NULL);
    else
        stop(candidate, REASON_BAD_NAME,
             "the <name> in hw_<name>.so has %zu bytes, over %d", length, NAME_SIZE - 1);
}

/* As the system's loader passes over a library of another machine: a file that could not
 * even be tried leaves its name, and the file behind a link to it, to the next one. */
static bool was_tried(const struct candidate *candidate)
{
    return candidate->plugin || (candidate->reason && candidate->stage > STAGE_PREFLIGHT);
}

bool first_of_name(struct hw_context *context, struct candidate *candidate)
{
    for (struct candidate *other = context->candidates; other != candidate;
         other = other->next) {
        if (candidate->inode && other->inode == candidate->inode &&
            other->device == candidate->device && was_tried(other))
            return stop(candidate, REASON_DUPLICATE, "the same file as %s", other->path);
        if (!candidate->name[0] || strcmp(other->name, candidate->name) != 0)
            continue;
        if (was_tried(other))
            return stop(candidate, REASON_SHADOWED, "%s comes first", other->path);
    }
    return true;
}

static enum hw_status add_candidate(struct hw_context *context, const char *directory,
                                    const char *file, bool explicit_file)
{
    struct candidate **end = &context->candidates;
    size_t count = 0;
    for (; *end; end = &(*end)->next)
        count++;
    if (count == MAX_CANDIDATES)
        return fail(HW_INVALID,
                    "%s: over %d plugin files in all; clear the directories out", directory,
                    MAX_CANDIDATES);
    struct candidate *candidate = calloc(1, sizeof *candidate);
    if (!candidate)
        return fail(HW_NO_MEMORY, "out of memory for the list of plugins");
    candidate->fd = -1;
    candidate->explicit_file = explicit_file;
    candidate->path = *directory ? text_format("%s/%s", directory, file) : strdup(file);
    *end = candidate;
    const char *slash = candidate->path ? strrchr(candidate->path, '/') : NULL;
    candidate->file = candidate->path ? strdup(slash ? slash + 1 : candidate->path) : NULL;
    if (!candidate->file)
        return fail(HW_NO_MEMORY, "out of memory for the list of plugins");
    uint64_t start = microseconds_now();
    read_name(candidate);
    struct stat info;
    if (stat(candidate->path, &info) == 0) {
        candidate->device = info.st_dev;
        candidate->inode = info.st_ino;
    }
    candidate->microseconds[STAGE_LIST] = microseconds_now() - start;
    return HW_OK;
}

static struct directory *add_directory(struct hw_context *context, const char *path,
                                       const char *source)
{
    struct directory **end = &context->directories;
    while (*end)
        end = &(*end)->next;
    struct directory *directory = calloc(1, sizeof *directory);
    if (!directory)
        return NULL;
    *end = directory;
    directory->path = strdup(path);
    directory->source = strdup(source);
    return directory->path && directory->source ? directory : NULL;
}

static bool is_plugin_name(const char *file)
{
    return strncmp(file, PREFIX, strlen(PREFIX)) == 0 &&
           (ends_in(file, SUFFIX) || ends_in(file, ".dll") || ends_in(file, ".dylib"));
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct names {
    char **list;
    size_t count, room;
};

static bool names_add(struct names *names, const char *name)
{
    if (names->count == names->room) {
        size_t room = names->room ? 2 * names->room : 16;
        char **list = realloc(names->list, room * sizeof *list);
        if (!list)
            return false;
        names->list = list;
        names->room = room;
    }
    names->list[names->count] = strdup(name);
    return names->list[names->count] && ++names->count;
}

static enum hw_status scan_open(struct hw_context *context, const char *path, DIR *dir)
{
    struct names names = { 0 };
    enum hw_status status = HW_OK;
    for (struct dirent *entry; !status && (entry = readdir(dir));)
        if (is_plugin_name(entry->d_name) && !names_add(&names, entry->d_name))
            status = fail(HW_NO_MEMORY, "out of memory for the list of plugins");
    if (names.count)
        qsort(names.list, names.count, sizeof *names.list, compare);
    for (size_t i = 0; i < names.count && !status; i++)
        status = add_candidate(context, path, names.list[i], false);
    for (size_t i = 0; i < names.count; i++)
        free(names.list[i]);
    free(names.list);
    return status;
}

/* Whether an earlier directory is this one under another name, or again. */
static bool searched(struct hw_context *context, struct directory *directory, int fd)
{
    struct stat info;
    if (fstat(fd, &info))
        return false;
    directory->device = info.st_dev;
    directory->inode = info.st_ino;
    for (struct directory *other = context->directories; other != directory;
         other = other->next)
        if (other->inode == info.st_ino && other->device == info.st_dev)
            return true;
    return false;
}

static enum hw_status scan_directory(struct hw_context *context, const char *path,
                                     const char *source, bool named)
{
    struct directory *directory = add_directory(context, path, source);
    if (!directory)
        return fail(HW_NO_MEMORY, "out of memory for the list of plugins");
    DIR *dir = opendir(path);
    int32_t level = named ? HW_LOG_WARN : HW_LOG_INFO;
    if (dir && searched(context, directory, dirfd(dir))) {
        directory->state = strdup("searched already");
        closedir(dir);
        return HW_OK;
    }
    if (!dir) {
        directory->state = strdup(strerror(errno));
        log_line(&context->log, level, "plugin directory %s (%s): %s", path, source,
                 strerror(errno));
        return HW_OK;
    }
    directory->state = strdup("read");
    enum hw_status status = scan_open(context, path, dir);
    closedir(dir);
    return status;
}

static enum hw_status scan_file(struct hw_context *context, const char *path,
                                const char *source)
{
    struct directory *entry = add_directory(context, path, source);
    if (!entry || !(entry->state = strdup("a file")))
        return fail(HW_NO_MEMORY, "out of memory for the list of plugins");
    return add_candidate(context, "", path, true);
}

/* An entry of a path list: a directory to search, or a plugin file, which is what it is
 * called when it is not there. */
static enum hw_status scan_entry(struct hw_context *context, const char *path,
                                 const char *source)
{
    if (*path != '/')
        return fail(
            HW_INVALID,
            "%s: \"%s\" is no absolute path; the current directory is never searched, so "
            "write the whole path",
            source, path);
    struct stat info;
    if (ends_in(path, SUFFIX) || (stat(path, &info) == 0 && !S_ISDIR(info.st_mode)))
        return scan_file(context, path, source);
    return scan_directory(context, path, source, true);
}

static enum hw_status scan_list(struct hw_context *context, enum setting setting)
{
    const struct setting_value *value = &context->settings.value[setting];
    char *list = strdup(value->text), *rest = list, *entry;
    if (!list)
        return fail(HW_NO_MEMORY, "out of memory for the list of plugins");
    enum hw_status status = HW_OK;
    while (!status && (entry = strsep(&rest, ":")))
        if (*entry)
            status = scan_entry(context, entry, value->source);
    free(list);
    return status;
}

enum hw_status scan(struct hw_context *context)
{
    const struct settings *settings = &context->settings;
    bool only = !settings->elevated && *settings->value[SETTING_plugin_path_only].text;
    enum hw_status status = HW_OK;
    if (!settings->elevated)
        status = scan_list(context, SETTING_plugin_path);
    else if (*settings->value[SETTING_plugin_path].text ||
             *settings->value[SETTING_plugin_path_only].text)
        log_line(&context->log, HW_LOG_WARN,
                 "plugin paths are ignored in a program with elevated rights");
    if (status)
        return status;
    if (only)
        return scan_list(context, SETTING_plugin_path_only);
    char *built_in = plugin_directory(settings->elevated);
    if (!built_in)
        return fail(HW_NO_MEMORY, "out of memory for the list of plugins");
    status = scan_directory(context, built_in, "built-in", false);
    free(built_in);
    return status;
}

void scan_free(struct hw_context *context)
{
    while (context->candidates) {
        struct candidate *candidate = context->candidates;
        context->candidates = candidate->next;
        if (candidate->fd >= 0)
            close(candidate->fd);
        free(candidate->path);
        free(candidate->real);
        free(candidate->file);
        free(candidate->message);
        free(candidate->remedy);
        free(candidate->manifest);
        free(candidate);
    }
    while (context->directories) {
        struct directory *directory = context->directories;
        context->directories = directory->next;
        free(directory->path);
        free(directory->source);
        free(directory->state);
        free(directory);
    }
}
