/* SPDX-License-Identifier: MIT */
/* scan.c - the stage list: finds the files named hw_<name>.so in the search directories. */
#define _DEFAULT_SOURCE
#include "load/scan.h"

#include "base/message.h"
#include "base/platform.h"
#include "base/text.h"
#include "load/verdict.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX    "hw_"
#define SUFFIX    ".so"
#define MAX_FILES 4096 /* per directory */

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static bool is_plugin_name(const char *file)
{
    return begins_with(file, PREFIX) && ends_with(file, SUFFIX);
}

static bool is_foreign_name(const char *file)
{
    return begins_with(file, PREFIX) &&
           (ends_with(file, ".dll") || ends_with(file, ".dylib"));
}

/* The length of the name without ".so" or ".so.<version>"; false if it has neither. */
static bool stem_of(const char *file, size_t *stem, bool *versioned)
{
    size_t length = strlen(file), tail = strlen(SUFFIX), end = length;
    while (end && strchr(".0123456789", file[end - 1]))
        end--;
    *versioned = end < length;
    *stem = end > tail ? end - tail : 0;
    return *stem && strncmp(file + *stem, SUFFIX, tail) == 0;
}

/* The part of a misnamed plugin's name that is probably the name of the backend. */
static const char *guess(const char *file)
{
    static const char *const starts[] = { "hw_", "hw-", "libhw_", "libhw-" };
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (begins_with(file, starts[i]))
            return file + strlen(starts[i]);
    return file;
}

/* Probable mistakes: mine.so, libhw_mine.so, hw-mine.so, hw_mine.so.1. Other libraries may
 * lie beside plugins. */
static bool is_misnamed(const char *file)
{
    size_t stem;
    bool versioned;
    return stem_of(file, &stem, &versioned) &&
           (guess(file) != file ? guess(file) < file + stem
                                : !versioned && !begins_with(file, "lib"));
}

static void stop_misnamed(struct candidate *candidate)
{
    const char *name = guess(candidate->file);
    char right[NAME_SIZE] = "";
    size_t stem, length;
    bool versioned;
    stop(candidate, REASON_BAD_NAME, NULL);
    if (!stem_of(candidate->file, &stem, &versioned) || name > candidate->file + stem)
        return;
    length = (size_t)(candidate->file + stem - name);
    if (length >= NAME_SIZE) {
        stop(candidate, REASON_BAD_NAME,
             "the <name> in hw_<name>.so has %zu bytes; at most %d are allowed", length,
             NAME_SIZE - 1);
        return;
    }
    for (size_t i = 0; i < length; i++)
        right[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] - 'A' + 'a' : name[i]);
    if (name_valid(right, length))
        set_remedy(candidate, "Rename it to " PREFIX "%s" SUFFIX, right);
}

/* A file that the settings name may have any name; its manifest then says which plugin it
 * is. */
static void read_name(struct candidate *candidate)
{
    const char *file = candidate->file, *name = file + strlen(PREFIX);
    if (is_foreign_name(file)) {
        stop(candidate, REASON_OTHER_SYSTEM, NULL);
    } else if (is_plugin_name(file)) {
        size_t length = strlen(name) - strlen(SUFFIX);
        if (name_valid(name, length))
            memcpy(candidate->name, name, length);
        else
            stop_misnamed(candidate);
    } else if (!candidate->explicit_file) {
        stop_misnamed(candidate);
    }
}

/* Whether the file got as far as being tried. If not, it does not hide a later file of the same
 * name, nor the file that it links to. The system's loader treats libraries for other machines in
 * the same way. */
static bool was_tried(const struct candidate *candidate)
{
    return candidate->passed ||
           (candidate->reason && candidate->reason != REASON_NO_MEMORY &&
            candidate->stage > STAGE_PREFLIGHT);
}

struct plugin *plugin_named(const struct catalog *found, const char *name)
{
    struct plugin *plugin = found ? found->plugins : NULL;
    while (plugin && strcmp(plugin->candidate->name, name) != 0)
        plugin = plugin->next;
    return plugin;
}

bool first_of_name(struct hw_context *context, struct candidate *candidate)
{
    (void)context;
    for (struct candidate *other = candidate->found->candidates; other != candidate;
         other = other->next) {
        if (candidate->look.st_ino && same_inode(&candidate->look, &other->look) &&
            was_tried(other))
            return stop(candidate, REASON_SHADOWED, "the same file as %s", other->path);
        if (!candidate->name[0] || strcmp(other->name, candidate->name) != 0)
            continue;
        if (was_tried(other))
            return stop(candidate, REASON_SHADOWED, "%s comes first", other->path);
    }
    const struct plugin *used = plugin_named(candidate->found, candidate->name);
    return !used || !plugin_is_alive(used) ||
           stop(candidate, REASON_SHADOWED, "%s is in use", used->candidate->path);
}

/* Leaves out a misnamed link to a file that is already listed, such as ldconfig creates. */
static enum hw_status add_candidate(struct catalog *found, const char *directory,
                                    const char *file, bool explicit_file)
{
    const uint64_t start = microseconds_now();
    struct candidate *candidate = candidate_new(
        *directory ? text_format("%s/%s", directory, file) : strdup(file), explicit_file);
    if (!candidate)
        return fail(HW_NO_MEMORY, "out of memory for the list of plugins");
    candidate->found = found;
    read_name(candidate);
    candidate->microseconds[STAGE_LIST] = microseconds_now() - start;
    struct candidate **end = &found->candidates;
    for (; *end; end = &(*end)->next)
        if (!is_plugin_name(candidate->file) && candidate->reason &&
            candidate->look.st_ino && same_inode(&candidate->look, &(*end)->look)) {
            candidate_free(candidate);
            return HW_OK;
        }
    *end = candidate;
    return HW_OK;
}

static struct directory *add_directory(struct catalog *found, const char *path,
                                       const char *source)
{
    struct directory **end = &found->directories;
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

static int is_listed(const struct dirent *entry)
{
    const char *file = entry->d_name;
    return is_plugin_name(file) || is_foreign_name(file) || is_misnamed(file);
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Whether the directory was already searched, under this or another path. */
static bool is_searched(const struct catalog *found, struct directory *directory)
{
    const struct directory *other = found->directories;
    if (stat(directory->path, &directory->look))
        return false;
    while (other != directory && !same_inode(&other->look, &directory->look))
        other = other->next;
    return other != directory;
}

static enum hw_status cannot_scan(struct catalog *found, struct directory *directory,
                                  int error, bool named)
{
    if (error == ENOMEM)
        return fail(HW_NO_MEMORY, "out of memory for plugin directory %s", directory->path);
    found->shortage = found->shortage || is_shortage(error);
    directory->state = strdup(strerror(error));
    log_line(&found->context->log, named ? HW_LOG_WARN : HW_LOG_INFO,
             "plugin directory %s (%s): %s", directory->path, directory->source,
             strerror(error));
    return HW_OK;
}

static enum hw_status scan_directory(struct catalog *found, const char *path,
                                     const char *source, bool named)
{
    struct directory *directory = add_directory(found, path, source);
    enum hw_status status = HW_OK;
    struct dirent **names;
    if (!directory)
        return fail(HW_NO_MEMORY, "out of memory for the list of plugins");
    if (is_searched(found, directory)) {
        directory->state = strdup("searched already");
        return HW_OK;
    }
    const int count = scandir(path, &names, is_listed, compare_names);
    if (count < 0)
        return cannot_scan(found, directory, errno, named);
    directory->state = count <= MAX_FILES
                           ? strdup("read")
                           : text_format("read in part: it has %d plugin files, and the "
                                         "first %d are listed",
                                         count, MAX_FILES);
    if (count > MAX_FILES)
        log_line(&found->context->log, HW_LOG_WARN, "plugin directory %s: %s", path,
                 directory->state ? directory->state : "");
    for (int i = 0; i < count; i++) {
        if (i < MAX_FILES && !status)
            status = add_candidate(found, path, names[i]->d_name, false);
        free(names[i]);
    }
    free(names);
    return status;
}

enum hw_status scan_file(struct catalog *found, const char *path, const char *source)
{
    struct directory *entry = add_directory(found, path, source);
    if (!entry || !(entry->state = strdup("a file")))
        return fail(HW_NO_MEMORY, "out of memory for the list of plugins");
    return add_candidate(found, "", path, true);
}

/* An entry of a path list is a directory or a plugin file. An entry that does not exist counts as
 * a file if its name ends in .so. */
static enum hw_status scan_entry(struct catalog *found, const char *path,
                                 const char *source)
{
    if (*path != '/')
        return fail(
            HW_INVALID,
            "%s: \"%s\" must be an absolute path; the current directory is never searched",
            source, path);
    struct stat info;
    if (ends_with(path, SUFFIX) || (stat(path, &info) == 0 && !S_ISDIR(info.st_mode)))
        return scan_file(found, path, source);
    return scan_directory(found, path, source, true);
}

/* An error in one entry does not keep the others out of the report. The entry "!" excludes the
 * built-in directory. */
static enum hw_status scan_list(struct catalog *found, bool *built_in)
{
    const struct setting_value *value =
        &found->context->settings.value[SETTING_plugin_path];
    char *list = strdup(value->text), *rest = list, *entry;
    if (!list)
        return fail(HW_NO_MEMORY, "out of memory for the list of plugins");
    enum hw_status last = HW_OK;
    while (last != HW_NO_MEMORY && (entry = strsep(&rest, ":"))) {
        const bool excludes = strcmp(entry, "!") == 0;
        *built_in = *built_in && !excludes;
        enum hw_status status = *entry && !excludes
                                    ? scan_entry(found, entry, value->source)
                                    : HW_OK;
        last = status ? status : last;
    }
    free(list);
    return last;
}

static enum hw_status scan_built_in(struct catalog *found)
{
    char *path = plugin_directory(found->context->settings.elevated);
    if (!path && errno != ENOMEM)
        return fail(HW_IO, "the plugin directory beside the library cannot be found: %s",
                    strerror(errno));
    if (!path)
        return fail(HW_NO_MEMORY, "out of memory for the list of plugins");
    enum hw_status status = scan_directory(found, path, "built-in", false);
    free(path);
    return status;
}

enum hw_status scan(struct catalog *found)
{
    const struct settings *settings = &found->context->settings;
    bool built_in = true;
    if (settings->elevated) {
        if (*settings->value[SETTING_plugin_path].text)
            log_line(&found->context->log, HW_LOG_WARN,
                     "plugin paths are ignored in a program with elevated rights");
        return scan_built_in(found);
    }
    enum hw_status status = scan_list(found, &built_in);
    if (status == HW_NO_MEMORY || !built_in)
        return status;
    enum hw_status rest = scan_built_in(found);
    return rest ? rest : status;
}

void scan_free(struct catalog *found)
{
    while (found->candidates) {
        struct candidate *candidate = found->candidates;
        found->candidates = candidate->next;
        candidate_free(candidate);
    }
    while (found->directories) {
        struct directory *directory = found->directories;
        found->directories = directory->next;
        free(directory->path);
        free(directory->source);
        free(directory->state);
        free(directory);
    }
}
