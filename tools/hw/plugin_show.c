/* SPDX-License-Identifier: MIT */
/* plugin_show.c - see plugin_show.h. Files are read with hw-probe's reader. */
#define _GNU_SOURCE
#include "plugin_show.h"

#include "command/command.h"
#include "command/output.h"

#include "object/manifest.h"
#include "probe/object/object.h"

#include <hw/plugin.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WHY   320
#define PLACE (PATH_MAX + WHY) /* bytes of a text that describes one */

/* A file, and its faults. */
struct shown {
    const char *path, *file; /* `file` is the last part of the path */
    const struct tree *tree;
    struct object object;
    struct sought *sought; /* libraries that were looked for */
    uint32_t sought_count;
    struct manifest manifest;
    bool has_manifest;
    const char *reason; /* a code as in `hw explain`; NULL: nothing is wrong */
    char why[WHY];
    char here[WHY]; /* why this system cannot load it; "" if it can */
};

/* ---- one file ---- */

__attribute__((format(printf, 3, 4))) static void
refuse(struct shown *shown, const char *reason, const char *format, ...)
{
    va_list arguments;
    if (shown->reason)
        return;
    shown->reason = reason;
    va_start(arguments, format);
    vsnprintf(shown->why, sizeof shown->why, format, arguments);
    va_end(arguments);
}

static void read_object(struct shown *shown)
{
    static const char *const codes[OBJECT_FAULT_COUNT] = {
#define X(NAME, code) [OBJECT_##NAME] = code,
        OBJECT_FAULTS(X)
#undef X
    };
    char why[WHY] = "";
    struct stat about;
    struct source source = { .fd = open(shown->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) };
    if (source.fd < 0 || fstat(source.fd, &about)) {
        refuse(shown, errno == ENOENT ? "missing" : "unreadable", "cannot be read: %s",
               strerror(errno));
    } else if (!S_ISREG(about.st_mode)) {
        refuse(shown, "unreadable", "it is not a regular file");
    } else {
        source.size = (uint64_t)about.st_size;
        const enum object_fault fault = object_read(&source, &shown->object, why,
                                                    sizeof why);
        if (fault)
            refuse(shown, codes[fault], "%s", why);
        object_native(&shown->object, shown->here, sizeof shown->here);
    }
    if (source.fd >= 0)
        close(source.fd);
}

static void read_manifest_of(struct shown *shown)
{
    const struct object *object = &shown->object;
    char why[256];
    if (!object->manifest) {
        refuse(shown, "bad-manifest", "it has no manifest");
        return;
    }
    shown->has_manifest = manifest_parse(&shown->manifest, object->manifest,
                                         object->manifest_bytes, why, sizeof why);
    if (!shown->has_manifest)
        refuse(shown, "bad-manifest", "its manifest is invalid: %s", why);
}

/* How files are named on the system that uses the format. */
static const char *suffix_of(enum object_format format)
{
    return format == OBJECT_PE ? ".dll" : format == OBJECT_MACHO ? ".dylib" : ".so";
}

/* The length of <name> in hw_<name>.so; 0 if the file is not named like a plugin. */
static size_t name_length(const char *file, enum object_format format)
{
    const char *suffix = suffix_of(format);
    const size_t length = strlen(file), tail = strlen(suffix);
    return length > 3 + tail && !strncmp(file, "hw_", 3) &&
                   !strcmp(file + length - tail, suffix)
               ? length - tail - 3
               : 0;
}

static enum object_format format_by_name(const char *file)
{
    for (int format = OBJECT_ELF; format <= OBJECT_MACHO; format++)
        if (name_length(file, (enum object_format)format))
            return (enum object_format)format;
    return OBJECT_NO_FORMAT;
}

static void check_name(struct shown *shown)
{
    const enum object_format named = format_by_name(shown->file), is = shown->object.format;
    const size_t length = name_length(shown->file, is);
    const char *name = shown->manifest.name;
    char machines[128];
    if (named && is && named != is)
        refuse(shown, "wrong-machine",
               "built for %s on %s, where a plugin is named hw_<name>%s",
               format_system(shown->object.format),
               object_machines(&shown->object, machines, sizeof machines), suffix_of(is));
    else if (shown->has_manifest && named &&
             (strlen(name) != length || strncmp(shown->file + 3, name, length)))
        refuse(shown, "bad-manifest",
               "its manifest has the name \"%s\", so it must be named hw_%s%s", name, name,
               suffix_of(is));
}

static void check_abi(struct shown *shown)
{
    const struct manifest *manifest = &shown->manifest;
    if (shown->has_manifest && (manifest->abi_max < (uint32_t)HW_ABI_OLDEST ||
                                manifest->abi_min > (uint32_t)HW_ABI_VERSION))
        refuse(shown, "abi-range",
               "it supports ABI versions %u to %u, this version of hw %d to %d",
               (unsigned)manifest->abi_min, (unsigned)manifest->abi_max, HW_ABI_OLDEST,
               HW_ABI_VERSION);
}

/* ---- the libraries that it needs ---- */

static void seek(struct shown *shown, const char *name, bool linked)
{
    struct sought *sought = &shown->sought[shown->sought_count++];
    *sought = (struct sought){ .name = name, .linked = linked };
    tree_find(shown->tree, &shown->object, shown->path, sought);
    if (linked && shown->tree->root && sought->located <= LIBRARY_UNFIT)
        refuse(shown, "needs-library", "it needs %s, which %s in %s", name,
               sought->located == LIBRARY_UNFIT ? "does not fit" : "was not found",
               shown->tree->root);
}

/* Not for Linux, where the library finds them: 'hw explain' shows its result. */
static bool find_libraries(struct shown *shown)
{
    const struct object *object = &shown->object;
    const struct manifest *manifest = &shown->manifest;
    const uint32_t opened = shown->has_manifest ? manifest->need_count : 0;
    if (object->format != OBJECT_PE && object->format != OBJECT_MACHO)
        return true;
    shown->sought = calloc(object->needed_count + opened + 1, sizeof *shown->sought);
    for (uint32_t i = 0; shown->sought && i < object->needed_count; i++)
        seek(shown, object->needed[i], true);
    for (uint32_t i = 0; shown->sought && i < opened; i++)
        seek(shown, manifest->needs[i], false);
    return shown->sought != NULL;
}

/* Where the library was found, or why it was not. */
static void describe_place(const struct shown *shown, const struct sought *sought,
                           char text[PLACE])
{
    const size_t size = PLACE;
    switch (sought->located) {
    case LIBRARY_FOUND:
        snprintf(text, size, "%s", sought->path);
        break;
    case LIBRARY_OF_SYSTEM:
        snprintf(text, size, "part of %s", format_system(shown->object.format));
        break;
    case LIBRARY_UNFIT:
        snprintf(text, size, "%s: %s", sought->path, sought->why);
        break;
    case LIBRARY_UNKNOWN:
    case LIBRARY_PERHAPS:
        snprintf(text, size, "%s",
                 !shown->tree->root ? "cannot be looked up here without --root"
                 : sought->located == LIBRARY_PERHAPS
                     ? "not found, but perhaps a part of macOS"
                     : "not found, but perhaps beside the program (--program)");
        break;
    default:
        snprintf(text, size, "not found");
    }
}

static void shown_free(struct shown *shown)
{
    if (!shown)
        return;
    object_free(&shown->object);
    free(shown->sought);
    free(shown);
}

/* The caller calls shown_free(). NULL: out of memory. */
static struct shown *shown_read(const char *path, const struct tree *tree)
{
    struct shown *shown = calloc(1, sizeof *shown);
    if (!shown)
        return NULL;
    shown->tree = tree;
    shown->path = path;
    shown->file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    read_object(shown);
    if (shown->object.format && (shown->object.manifest || !shown->reason))
        read_manifest_of(shown);
    check_name(shown);
    check_abi(shown);
    if (find_libraries(shown))
        return shown;
    shown_free(shown);
    return NULL;
}

/* ---- as JSON ---- */

static json_t *texts(const char *const *list, uint32_t count)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(array, json_text(list[i], strlen(list[i])));
    return array;
}

static json_t *text_or_null(const char *text)
{
    return text && *text ? json_text(text, strlen(text)) : json_null();
}

static json_t *places_json(const struct shown *shown)
{
    static const char *const words[] = {
        [LIBRARY_MISSING] = "missing",  [LIBRARY_UNFIT] = "unfit",
        [LIBRARY_UNKNOWN] = "unknown",  [LIBRARY_PERHAPS] = "unknown",
        [LIBRARY_OF_SYSTEM] = "system", [LIBRARY_FOUND] = "found"
    };
    json_t *array = json_array();
    for (uint32_t i = 0; i < shown->sought_count; i++) {
        const struct sought *sought = &shown->sought[i];
        char text[PLACE];
        describe_place(shown, sought, text);
        json_array_append_new(
            array,
            json_pack("{s:o, s:b, s:s, s:o, s:o}", "library", text_or_null(sought->name),
                      "linked", sought->linked, "place", words[sought->located], "path",
                      text_or_null(sought->path), "message", text_or_null(text)));
    }
    return array;
}

static json_t *shown_json(const struct shown *shown)
{
    static const char *const formats[] = { NULL, "ELF", "PE", "Mach-O" };
    const struct object *object = &shown->object;
    const struct manifest *manifest = &shown->manifest;
    json_t *tree = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "file",
                             json_text(shown->path, strlen(shown->path)), "reason",
                             text_or_null(shown->reason), "message",
                             text_or_null(shown->why), "loadable",
                             json_boolean(object->format && !*shown->here), "format",
                             text_or_null(formats[object->format]), "system",
                             text_or_null(format_system(object->format)), "machines",
                             texts(object->machines, object->machine_count));
    if (object->machine_count)
        json_object_set_new(tree, "bits", json_integer(object->bits));
    json_object_set_new(tree, "libraries", texts(object->needed, object->needed_count));
    if (shown->sought)
        json_object_set_new(tree, "places", places_json(shown));
    if (shown->has_manifest)
        json_object_set_new(
            tree, "manifest",
            json_pack("{s:s, s:o, s:o, s:i, s:i, s:i, s:o, s:o}", "name", manifest->name,
                      "title", text_or_null(manifest->title), "vendor",
                      text_or_null(manifest->vendor), "abi_min", (int)manifest->abi_min,
                      "abi_max", (int)manifest->abi_max, "rank", (int)manifest->rank,
                      "build", text_or_null(manifest->build), "needs",
                      texts(manifest->needs, manifest->need_count)));
    return tree;
}

/* ---- as text ---- */

static void say_list(const char *what, const char *const *list, uint32_t count)
{
    char clean[512];
    for (uint32_t i = 0; i < count; i++) {
        clean_text(clean, sizeof clean, list[i]);
        say("  %-12s%s\n", i ? "" : what, clean);
    }
}

/* Prints the libraries that were looked for: the linked ones, or the others. */
static void say_places(const char *what, const struct shown *shown, bool linked)
{
    for (uint32_t i = 0; i < shown->sought_count; i++) {
        const struct sought *sought = &shown->sought[i];
        char text[PLACE], clean[PLACE], name[512];
        if (sought->linked != linked)
            continue;
        describe_place(shown, sought, text);
        clean_text(clean, sizeof clean, text);
        clean_text(name, sizeof name, sought->name);
        say("  %-12s%s: %s\n", what, name, clean);
        what = "";
    }
}

static void say_text(const char *what, const char *text)
{
    char clean[512];
    clean_text(clean, sizeof clean, text);
    if (*text)
        say_folded(14, "  %-12s%s\n", what, clean);
}

static void say_shown(const struct shown *shown)
{
    const struct object *object = &shown->object;
    const struct manifest *manifest = &shown->manifest;
    char clean[PATH_MAX], machines[128];
    clean_text(clean, sizeof clean, shown->path);
    say("%s%s%s\n", ink(BOLD), clean, ink(PLAIN));
    if (shown->has_manifest) {
        say_text("name", manifest->name);
        say_text("title", manifest->title);
        say_text("vendor", manifest->vendor);
        say("  %-12s%u to %u\n  %-12s%d\n", "ABI", (unsigned)manifest->abi_min,
            (unsigned)manifest->abi_max, "rank", (int)manifest->rank);
        say_text("build", manifest->build);
    }
    if (object->format)
        say("  %-12s%s, %s\n", "for", format_system(object->format),
            object_machines(object, machines, sizeof machines));
    if (shown->sought) {
        say_places("needs", shown, true);
        say_places("opens", shown, false);
    } else {
        say_list("needs", object->needed, object->needed_count);
        say_list("opens", manifest->needs, shown->has_manifest ? manifest->need_count : 0);
    }
    if (shown->reason) {
        clean_text(clean, sizeof clean, shown->why);
        say_folded(14, "  %s%-12s%s%s: %s\n", ink(RED), "wrong", ink(PLAIN), shown->reason,
                   clean);
    }
    if (*shown->here)
        say_folded(14, "  %-12sno: %s\n", "loads here", shown->here);
    else if (!shown->reason)
        say_folded(14, "  %-12sit is for this system; 'hw explain FILE' tries it\n",
                   "loads here");
}

int plugin_show(const char *path, const struct tree *tree)
{
    struct shown *shown = shown_read(path, tree);
    const int status = shown && !shown->reason ? 0 : EXIT_FAILED;
    if (!shown) {
        complain("out of memory");
    } else if (out_json) {
        json_t *json = shown_json(shown);
        json_object_set_new(json, "schema", json_integer(1));
        out_tree(json);
    } else {
        say_shown(shown);
    }
    shown_free(shown);
    return status;
}

/* ---- many ---- */

struct checking {
    const struct tree *tree;
    json_t *rows;
    unsigned good, bad;
};

static void check_file(struct checking *checking, const char *path)
{
    struct shown *shown = shown_read(path, checking->tree);
    char file[PATH_MAX], why[2 * WHY], machines[128];
    if (!shown) {
        complain("out of memory");
        checking->bad++;
        return;
    }
    *(shown->reason ? &checking->bad : &checking->good) += 1;
    clean_text(file, sizeof file, path);
    clean_text(why, sizeof why, shown->why);
    if (out_json)
        json_array_append_new(checking->rows, shown_json(shown));
    else if (shown->reason)
        say_folded(6, "%s✗%s %s: %s: %s\n", ink(RED), ink(PLAIN), file, shown->reason, why);
    else
        say("%s✓%s %s: %s, ABI %u to %u, for %s on %s\n", ink(GREEN), ink(PLAIN), file,
            shown->manifest.name, (unsigned)shown->manifest.abi_min,
            (unsigned)shown->manifest.abi_max, format_system(shown->object.format),
            object_machines(&shown->object, machines, sizeof machines));
    if (!out_json) {
        say_places("needs", shown, true);
        say_places("opens", shown, false);
    }
    shown_free(shown);
}

static int is_named_like_a_plugin(const struct dirent *entry)
{
    return format_by_name(entry->d_name) != OBJECT_NO_FORMAT;
}

/* False, with a complaint, if the directory cannot be read. */
static bool check_directory(struct checking *checking, const char *directory)
{
    struct dirent **entries;
    const int count = scandir(directory, &entries, is_named_like_a_plugin, alphasort);
    if (count < 0) {
        complain("%s: %s", directory, strerror(errno));
        return false;
    }
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        if (snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name) <
            (int)sizeof path)
            check_file(checking, path);
        else
            checking->bad++;
        free(entries[i]);
    }
    free(entries);
    return true;
}

int plugin_check(const char *path, const struct tree *tree)
{
    struct checking checking = { .tree = tree, .rows = json_array() };
    struct stat about;
    const bool is_directory = stat(path, &about) == 0 && S_ISDIR(about.st_mode);
    if (is_directory && !check_directory(&checking, path)) {
        json_decref(checking.rows);
        return EXIT_FAILED;
    }
    if (!is_directory)
        check_file(&checking, path);
    if (out_json)
        out_tree(json_pack("{s:i, s:O, s:i, s:i}", "schema", 1, "files", checking.rows,
                           "sound", (int)checking.good, "unsound", (int)checking.bad));
    else if (is_directory)
        say("%u of %u files named like a plugin are sound plugins.\n", checking.good,
            checking.good + checking.bad);
    json_decref(checking.rows);
    return checking.good && !checking.bad ? 0 : EXIT_FAILED;
}
