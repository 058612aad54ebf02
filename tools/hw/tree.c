/* SPDX-License-Identifier: MIT */
/* tree.c - see tree.h. Absolute symbolic links in the tree start at its root, as on its own system.
 */
#define _GNU_SOURCE
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A directory that is open, and whether links in it start there. */
struct start {
    int fd;
    bool is_root;
    char path[PATH_MAX];  /* of the directory, here */
    char below[PATH_MAX]; /* where the search begins in it: "" or "a/b" */
};

struct finding {
    const struct object *object;
    struct start starts[3]; /* by enum base; fd < 0: not known */
    struct sought *sought;
};

/* ---- paths in a tree ---- */

static int open_below(const struct start *start, const char *path, int flags)
{
    const struct open_how how = { .flags = (unsigned)(flags | O_CLOEXEC | O_NONBLOCK),
                                  .resolve = RESOLVE_IN_ROOT };
    const char *below = *path ? path : ".";
    const int fd = start->is_root
                       ? (int)syscall(SYS_openat2, start->fd, below, &how, sizeof how)
                       : -1;
    /* Before Linux 5.6, links with absolute paths lead out of the tree. */
    if (start->is_root && (fd >= 0 || (errno != ENOSYS && errno != EPERM)))
        return fd;
    return openat(start->fd, below, flags | O_CLOEXEC | O_NONBLOCK);
}

/* Appends the part, behind a slash; false if there is no room. */
static bool append(char path[PATH_MAX], const char *part, size_t length)
{
    const size_t at = strlen(path);
    const char *slash = at && path[at - 1] != '/' ? "/" : "";
    const int bytes = snprintf(path + at, PATH_MAX - at, "%s%.*s", slash, (int)length,
                               part);
    return bytes >= 0 && (size_t)bytes < PATH_MAX - at;
}

/* Appends the part in the spelling of the directory: on Windows, case does not matter. */
static bool append_spelled(const struct start *start, char path[PATH_MAX], const char *part,
                           size_t length)
{
    char spelled[NAME_MAX + 1] = "";
    const int fd = open_below(start, path, O_RDONLY | O_DIRECTORY);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    for (const struct dirent *entry; directory && (entry = readdir(directory));) {
        const char *name = entry->d_name;
        if (strlen(name) != length || strncasecmp(name, part, length) != 0)
            continue;
        snprintf(spelled, sizeof spelled, "%s", name);
        if (strncmp(name, part, length) == 0)
            break;
    }
    if (directory)
        closedir(directory);
    else if (fd >= 0)
        close(fd);
    return append(path, *spelled ? spelled : part, length);
}

/* The path of a file below the start, in `to`. */
static bool join(const struct start *start, const char *path, bool spell, char to[PATH_MAX])
{
    snprintf(to, PATH_MAX, "%s", start->below);
    while (*path) {
        const size_t length = strcspn(path, "/");
        if (length &&
            !(spell ? append_spelled(start, to, path, length) : append(to, path, length)))
            return false;
        path += length + (path[length] == '/');
    }
    return true;
}

/* ---- files in the tree ---- */

static bool has_machine(const struct object *object, const char *machine)
{
    for (uint32_t i = 0; i < object->machine_count; i++)
        if (strcmp(object->machines[i], machine) == 0)
            return true;
    return false;
}

/* Libraries lack the entry that plugins have. */
static bool is_whole(enum object_fault fault)
{
    return fault == OBJECT_GOOD || fault == OBJECT_NO_ENTRY || fault == OBJECT_BAD_ENTRY;
}

static bool fits(const struct object *plugin, int fd, uint64_t size, char *why,
                 size_t why_size)
{
    struct source source = { .fd = fd, .size = size };
    struct object object;
    char machines[128];
    const enum object_fault fault = object_read(&source, &object, why, why_size);
    bool good = is_whole(fault);
    if (good && (object.format != plugin->format || !plugin->machine_count ||
                 !has_machine(&object, plugin->machines[0]))) {
        snprintf(why, why_size, "built for %s on %s", format_system(object.format),
                 object_machines(&object, machines, sizeof machines));
        good = false;
    }
    object_free(&object);
    return good;
}

static void keep_path(struct finding *finding, const struct start *start, const char *path)
{
    struct sought *sought = finding->sought;
    snprintf(sought->path, sizeof sought->path, "%s", start->path);
    if (!append(sought->path, path, strlen(path)))
        *sought->path = '\0';
}

static enum there look(void *user, enum base base, const char *path)
{
    struct finding *finding = user;
    const struct start *start = &finding->starts[base];
    char below[PATH_MAX], why[sizeof finding->sought->why] = "";
    struct stat about;
    if (start->fd < 0)
        return THERE_UNSEEN;
    if (!join(start, path, finding->object->format == OBJECT_PE, below))
        return THERE_NOTHING;
    const int fd = open_below(start, below, O_RDONLY);
    if (fd < 0)
        return THERE_NOTHING;
    enum there there = fstat(fd, &about) || !S_ISREG(about.st_mode) ? THERE_NOTHING
                       : fits(finding->object, fd, (uint64_t)about.st_size, why, sizeof why)
                           ? THERE_FIT
                           : THERE_UNFIT;
    close(fd);
    if (there == THERE_FIT || (there == THERE_UNFIT && !*finding->sought->why))
        keep_path(finding, start, below);
    if (there == THERE_UNFIT && !*finding->sought->why)
        snprintf(finding->sought->why, sizeof why, "%s", why);
    return there;
}

/* ---- where it starts ---- */

static void open_start(struct start *start, const char *path, bool is_root)
{
    *start = (struct start){ .fd = -1, .is_root = is_root };
    if (!path || !realpath(path, start->path))
        return;
    start->fd = open(start->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The directory of the plugin, seen from the root if it lies in the tree. */
static void open_own(struct start *own, const struct start *root, const char *file)
{
    char directory[PATH_MAX];
    const char *slash = strrchr(file, '/');
    snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - file + 1) : 1,
             slash ? file : ".");
    open_start(own, directory, false);
    const size_t length = strcmp(root->path, "/") ? strlen(root->path) : 0;
    if (root->fd < 0 || own->fd < 0 || strncmp(own->path, root->path, length) != 0 ||
        (own->path[length] && own->path[length] != '/'))
        return;
    snprintf(directory, sizeof directory, "%s",
             own->path + length + (own->path[length] == '/'));
    close(own->fd);
    open_start(own, root->path, true);
    snprintf(own->below, sizeof own->below, "%s", directory);
}

static void open_program(struct start *program, const struct start *root, const char *path,
                         bool spell)
{
    *program = (struct start){ .fd = -1 };
    if (root->fd < 0 || !path)
        return;
    open_start(program, root->path, true);
    char below[PATH_MAX];
    if (join(program, path, spell, below))
        snprintf(program->below, sizeof program->below, "%s", below);
}

static void find_each(struct finding *finding, const char *names)
{
    struct elsewhere elsewhere = {
        .object = finding->object,
        .variables = { [DYLD_LIBRARY_PATH] = getenv("DYLD_LIBRARY_PATH"),
                       [DYLD_FRAMEWORK_PATH] = getenv("DYLD_FRAMEWORK_PATH"),
                       [DYLD_FALLBACK_LIBRARY_PATH] = getenv("DYLD_FALLBACK_LIBRARY_PATH"),
                       [DYLD_FALLBACK_FRAMEWORK_PATH] =
                           getenv("DYLD_FALLBACK_FRAMEWORK_PATH") },
        .look = look,
        .user = finding
    };
    struct sought *sought = finding->sought;
    while (*names && sought->located != LIBRARY_FOUND) {
        char name[PATH_MAX];
        const size_t length = strcspn(names, "|");
        snprintf(name, sizeof name, "%.*s", (int)length, names);
        const enum located located = library_elsewhere(&elsewhere, name);
        sought->located = located > sought->located ? located : sought->located;
        names += length + (names[length] == '|');
    }
}

void tree_find(const struct tree *tree, const struct object *object, const char *file,
               struct sought *sought)
{
    struct finding finding = { .object = object, .sought = sought };
    struct start *starts = finding.starts;
    sought->located = LIBRARY_MISSING;
    *sought->path = *sought->why = '\0';
    open_start(&starts[FROM_ROOT], tree->root, true);
    open_own(&starts[FROM_OBJECT], &starts[FROM_ROOT], file);
    open_program(&starts[FROM_PROGRAM], &starts[FROM_ROOT], tree->program,
                 object->format == OBJECT_PE);
    find_each(&finding, sought->name);
    for (size_t i = 0; i < 3; i++)
        if (starts[i].fd >= 0)
            close(starts[i].fd);
    if (sought->located == LIBRARY_FOUND)
        *sought->why = '\0';
    else if (sought->located != LIBRARY_UNFIT)
        *sought->path = *sought->why = '\0';
}
