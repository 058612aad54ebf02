/* SPDX-License-Identifier: MIT */
/* depends.c - the files that a verdict depends on: see depends.h. The lines are
 *
 *   file <state> <path>
 *   library <state> <name> TAB <path>
 *
 * with a state of 16 digits, or "-" if there is no such file. */
#define _GNU_SOURCE /* vasprintf() */
#include "cache/depends.h"

#include "base/hash.h"
#include "base/text.h"
#include "load/loaded.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the state of a file ---- */

struct identity identity_of(const struct stat *file)
{
    struct identity identity;
    snprintf(identity.text, sizeof identity.text, "%ju:%ju %jd bytes %jd.%09ld %jd.%09ld",
             (uintmax_t)file->st_dev, (uintmax_t)file->st_ino, (intmax_t)file->st_size,
             (intmax_t)file->st_mtim.tv_sec, file->st_mtim.tv_nsec,
             (intmax_t)file->st_ctim.tv_sec, file->st_ctim.tv_nsec);
    return identity;
}

struct identity identity_at(const char *path)
{
    struct stat file;
    if (!path || stat(path, &file))
        return (struct identity){ "-" };
    return identity_of(&file);
}

void depends_state(const char *path, char state[DEPENDS_STATE])
{
    struct stat file;
    char text[sizeof(struct identity)];
    strcpy(state, "-");
    if (!path || stat(path, &file))
        return;
    if (S_ISDIR(file.st_mode))
        snprintf(text, sizeof text, "%ju:%ju %o", (uintmax_t)file.st_uid,
                 (uintmax_t)file.st_gid, (unsigned)file.st_mode);
    else
        strcpy(text, identity_of(&file).text);
    snprintf(state, DEPENDS_STATE, "%016" PRIx64, hash_add(HASH_START, text, strlen(text)));
}

void lines_drop(char **lines)
{
    free(*lines);
    *lines = NULL;
}

void lines_add(char **lines, const char *format, ...)
{
    char *line = NULL, *longer = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (*lines && vasprintf(&line, format, arguments) < 0)
        line = NULL;
    va_end(arguments);
    if (line && strlen(*lines) + strlen(line) + 1 < DEPENDS_BYTES)
        longer = text_format("%s%s\n", *lines, line);
    free(line);
    free(*lines);
    *lines = longer;
}

/* ---- looking again ---- */

static bool file_holds(const char *state, const char *path)
{
    char now[DEPENDS_STATE];
    depends_state(path, now);
    return strcmp(now, state) == 0;
}

/* "<name> TAB <path>". In a process that has loaded the library, that one is used. */
static bool library_holds(const char *state, char *name)
{
    char *path = strchr(name, '\t'), *loaded;
    if (!path)
        return false;
    *path++ = '\0';
    const bool has = loaded_find(name, &loaded);
    const bool holds = file_holds(state, has && loaded ? loaded : path);
    free(loaded);
    return holds;
}

/* "<kind> <state> <rest>" */
static bool line_holds(char *line)
{
    char *rest = NULL;
    const char *kind = strtok_r(line, " ", &rest), *state = strtok_r(NULL, " ", &rest);
    if (!kind || !state || !*rest)
        return false;
    return strcmp(kind, "library") == 0
               ? library_holds(state, rest)
               : strcmp(kind, "file") == 0 && file_holds(state, rest);
}

bool depends_hold(const char *lines)
{
    char *copy = lines ? strdup(lines) : NULL, *rest = NULL;
    bool hold = copy != NULL;
    for (char *line = hold ? strtok_r(copy, "\n", &rest) : NULL; line && hold;
         line = strtok_r(NULL, "\n", &rest))
        hold = line_holds(line);
    free(copy);
    return hold;
}
