/* SPDX-License-Identifier: MIT */
/* plugin.c - `hw plugin`: shows and checks plugin files (plugin_show.c), and writes the file
 * plugins.lock, which says which of them may be loaded. */
#define _GNU_SOURCE
#include "command/command.h"
#include "command/new_file.h"
#include "command/options.h"
#include "command/output.h"
#include "plugin_show.h"

#include "probe/digest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_NAME  "plugins.lock"
#define FILE_LIMIT (UINT64_C(1) << 32) /* bytes; no plugin is that large */

static const struct manual manual = {
    .about =
        "hw plugin - show and check plugin files; lock a plugin directory\n\n"
        "show prints what a file is: its name, the ABI versions it supports, the system and the\n"
        "processor it was built for, and the libraries that it needs. The file is read, not\n"
        "loaded, so it may be one for another system: .so, .dll, .dylib. For Windows and macOS,\n"
        "libraries are looked up beside the file and, with --root, in a directory that stands\n"
        "for the file system of such a machine.\n\n"
        "check tests a file, or each file in a directory that is named like a plugin: is it a\n"
        "plugin, complete, and named as its manifest says?\n\n"
        "lock writes the SHA-256 digests of all plugin files in DIRECTORY to plugins.lock there.\n"
        "From then on, the library loads a plugin from this directory only if it is listed with\n"
        "its present content. Run it again after each intended change; to unlock the directory,\n"
        "remove plugins.lock.",
    .arguments = "[OPTION...] show FILE | check FILE|DIRECTORY | lock DIRECTORY",
    .notes =
        "  hw plugin show ./hw_mine.dll\n"
        "  hw plugin show --root /mnt/c --program 'Program Files/Mine' ./hw_mine.dll\n"
        "  hw plugin check /usr/lib/hw\n"
        "  hw plugin lock /usr/lib/hw\n"
        "  (cd /usr/lib/hw && sha256sum -c plugins.lock)   show changes since then\n"
        "  hw explain                                      show the effect\n\n"
        "The exit status is 1 if a file is not a sound plugin, if there is none to check, if a\n"
        "file cannot be read, if a library that it is linked with is not in the directory of\n"
        "--root, or if plugins.lock cannot be written. To find out whether a plugin works,\n"
        "use 'hw explain FILE' and 'hw verify FILE': they load it.",
};

/* A directory while its lock is made. */
struct locking {
    const char *path;
    int fd;
    json_t *rows; /* of files: "file", "sha256" */
};

static bool failed(const struct locking *l, const char *file, const char *why)
{
    complain("%s/%s: %s", l->path, file, why);
    return false;
}

/* Whether the library would try a file of this name. */
static int is_plugin_name(const struct dirent *entry)
{
    const char *name = entry->d_name;
    const size_t length = strlen(name);
    return length > 6 && !strncmp(name, "hw_", 3) && !strcmp(name + length - 3, ".so") &&
           3 + strspn(name + 3, "abcdefghijklmnopqrstuvwxyz0123456789_-") == length - 3;
}

static bool add_file(struct locking *l, const char *file)
{
    char digest[DIGEST_TEXT + 1];
    const int fd = openat(l->fd, file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat about;
    const bool opened = fd >= 0 && fstat(fd, &about) == 0;
    const int error = !opened                  ? errno
                      : S_ISREG(about.st_mode) ? digest_file(fd, FILE_LIMIT, digest)
                                               : 0;
    if (fd >= 0)
        close(fd);
    if (error || !S_ISREG(about.st_mode))
        return failed(l, file, error ? strerror(error) : "is not a regular file");
    json_array_append_new(
        l->rows,
        json_pack("{s:o, s:s}", "file", json_text(file, strlen(file)), "sha256", digest));
    return true;
}

static bool add_files(struct locking *l)
{
    struct dirent **entries;
    const int count = scandirat(l->fd, ".", &entries, is_plugin_name, alphasort);
    bool good = count >= 0 || failed(l, ".", strerror(errno));
    for (int i = 0; i < count; i++) {
        good = good && add_file(l, entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return good;
}

static bool write_lock(const struct locking *l)
{
    char path[PATH_MAX], *text = NULL;
    size_t size, index;
    json_t *row;
    if (snprintf(path, sizeof path, "%s/" LOCK_NAME, l->path) >= (int)sizeof path)
        return failed(l, LOCK_NAME, strerror(ENAMETOOLONG));
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return failed(l, LOCK_NAME, strerror(errno));
    json_array_foreach (l->rows, index, row)
        fprintf(file, "%s  %s\n", json_string_value(json_object_get(row, "sha256")),
                json_string_value(json_object_get(row, "file")));
    const bool good = fclose(file) == 0 && new_file_write(path, 0644, true, text, size);
    free(text);
    return good;
}

static void print_lock(const struct locking *l)
{
    json_t *row;
    size_t index;
    const size_t count = json_array_size(l->rows);
    if (out_json) {
        out_tree(json_pack("{s:i, s:o, s:O}", "schema", 1, "directory",
                           json_text(l->path, strlen(l->path)), "files", l->rows));
        return;
    }
    json_array_foreach (l->rows, index, row)
        say("%.16s...  %s\n", json_string_value(json_object_get(row, "sha256")),
            json_string_value(json_object_get(row, "file")));
    say("%s/" LOCK_NAME " lists %zu plugin%s.%s\n", l->path, count, count == 1 ? "" : "s",
        count ? "" : " Nothing can be loaded from this directory.");
}

static int lock(const char *path)
{
    struct locking l = { .path = path, .rows = json_array() };
    l.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (l.fd < 0)
        complain("%s: %s", path, strerror(errno));
    const bool good = l.fd >= 0 && add_files(&l) && write_lock(&l);
    if (good)
        print_lock(&l);
    if (l.fd >= 0)
        close(l.fd);
    json_decref(l.rows);
    return good ? 0 : EXIT_FAILED;
}

static bool is_tree(const struct tree *tree)
{
    struct stat about;
    if (tree->program && !tree->root)
        complain("--program is a directory below that of --root, which is missing");
    else if (tree->root && (stat(tree->root, &about) || !S_ISDIR(about.st_mode)))
        complain("--root %s: it is not a directory that can be read", tree->root);
    else
        return true;
    return false;
}

int cmd_plugin(int argc, const char **argv)
{
    static const char *const actions[] = { "show", "check", "lock", NULL };
    struct tree tree = { NULL, NULL };
    const struct poptOption table[] = {
        { "root", '\0', POPT_ARG_STRING, &tree.root, 0,
          "show, check: look for libraries of a .dll or .dylib in this directory, as in the "
          "root of its system",
          "DIRECTORY" },
        { "program", '\0', POPT_ARG_STRING, &tree.program, 0,
          "the directory there of the program that loads the plugin", "DIRECTORY" },
        OPTIONS_COMMON,
        POPT_TABLEEND,
    };
    struct arguments arguments;
    int status;

    if (options_read(&arguments, &manual, table, argc, argv, 2, &status)) {
        status = EXIT_USAGE;
        const char *action = arguments.count ? arguments.words[0] : NULL;
        const char *path = arguments.count > 1 ? arguments.words[1] : NULL;
        if (!action)
            complain(
                "an action is missing: 'hw plugin show FILE', 'hw plugin check DIRECTORY' "
                "or 'hw plugin lock DIRECTORY'");
        else if (!is_known("action", action, actions))
            ;
        else if (!path)
            complain(
                "%s: a %s is missing; 'hw status' lists the directories that are searched",
                action, *action == 's' ? "file" : "directory");
        else if (is_tree(&tree))
            status = *action == 's'   ? plugin_show(path, &tree)
                     : *action == 'c' ? plugin_check(path, &tree)
                                      : lock(path);
    }
    free(tree.root);
    free(tree.program);
    options_close(&arguments);
    return status;
}
