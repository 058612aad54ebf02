/* SPDX-License-Identifier: MIT */
/* candidate.c - the stage that a candidate has reached, and why it stopped. */
#define _POSIX_C_SOURCE 200809L
#include "open/candidate.h"

#include "load/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct reason_row reason_rows[REASON_COUNT] = {
    [REASON_NONE] = { "", STAGE_LIST, "\0" },
#define X(NAME, code, STAGE, sentence, remedy)                                             \
    [REASON_##NAME] = { code, STAGE_##STAGE, sentence "\0" remedy },
#include "open/reasons.def"
#undef X
};

const char *reason_remedy(enum reason reason)
{
    return strchr(reason_rows[reason].sentence, '\0') + 1;
}

const char *stage_name(enum stage stage)
{
    static const char names[][10] = {
#define X(NAME, name) name,
        STAGES(X)
#undef X
    };
    return names[stage];
}

bool stop(struct candidate *candidate, enum reason reason, const char *format, ...)
{
    char text[1024];
    free(candidate->message);
    free(candidate->remedy);
    candidate->message = candidate->remedy = NULL;
    candidate->reason = reason;
    candidate->stage = reason_rows[reason].stage;
    if (format) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        candidate->message = strdup(text);
    }
    return false;
}

void candidate_clear(struct candidate *candidate)
{
    free(candidate->message);
    free(candidate->remedy);
    candidate->message = candidate->remedy = NULL;
    candidate->reason = REASON_NONE;
    candidate->tried = candidate->retry = 0;
}

void set_remedy(struct candidate *candidate, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    free(candidate->remedy);
    candidate->remedy = strdup(text);
}

const char *message_of(const struct candidate *candidate)
{
    return candidate->message ? candidate->message
                              : reason_rows[candidate->reason].sentence;
}

const char *remedy_of(const struct candidate *candidate)
{
    return candidate->remedy ? candidate->remedy : reason_remedy(candidate->reason);
}

static bool has_code_of(enum reason reason, enum reason other)
{
    return strcmp(reason_rows[reason].code, reason_rows[other].code) == 0;
}

bool is_crash(enum reason reason)
{
    return has_code_of(reason, REASON_CRASH) || reason == REASON_FAILING_OPS;
}

bool is_hang(enum reason reason)
{
    return has_code_of(reason, REASON_HANG);
}

bool is_broken(const struct candidate *candidate)
{
    switch (candidate->reason) {
    case REASON_NONE:
    case REASON_OTHER_SYSTEM:
    case REASON_SHADOWED:
    case REASON_NEEDS_LIBRARY:
    case REASON_NO_HARDWARE:
    case REASON_NO_DRIVER:
    case REASON_NO_DEVICE:
        return false;
    case REASON_BAD_NAME: /* without the prefix it may not be a plugin at all */
        return strncmp(candidate->file, "hw_", 3) == 0;
    default:
        return candidate->stage != STAGE_FILTER;
    }
}

void candidate_look(struct candidate *candidate)
{
    if (stat(candidate->path, &candidate->look))
        candidate->look = (struct stat){ .st_ino = 0 };
}

bool same_inode(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool same_file(const struct stat *a, const struct stat *b)
{
    return same_inode(a, b) && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void left_out_free_one(struct left_out *one)
{
    free(one->name);
    free(one->why);
}

void left_out_add(struct left_out **list, uint32_t *count, const char *name,
                  const char *why)
{
    if (*count == LEFT_OUT_MAX ||
        (!*list && !(*list = calloc(LEFT_OUT_MAX, sizeof **list))))
        return;
    struct left_out one = { strdup(name), strdup(why) };
    if (one.name && one.why)
        (*list)[(*count)++] = one;
    else
        left_out_free_one(&one);
}

void left_out_free(struct left_out *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        left_out_free_one(&list[i]);
    free(list);
}

void candidate_forget(struct candidate *candidate)
{
    candidate_clear(candidate);
    free(candidate->real);
    free(candidate->manifest);
    candidate->real = NULL;
    candidate->manifest = NULL;
}

void candidate_close(struct candidate *candidate)
{
    if (candidate->fd >= 0)
        close(candidate->fd);
    candidate->fd = -1;
}

void candidate_free(struct candidate *candidate)
{
    candidate_close(candidate);
    free(candidate->path);
    free(candidate->real);
    free(candidate->message);
    free(candidate->remedy);
    free(candidate->manifest);
    free(candidate->key);
    left_out_free(candidate->left_out, candidate->left_out_count);
    if (candidate->verdict)
        verdict_free(candidate->verdict);
    free(candidate->verdict);
    free(candidate);
}

struct candidate *candidate_new(char *path, bool explicit_file)
{
    struct candidate *candidate = path ? calloc(1, sizeof *candidate) : NULL;
    if (!candidate) {
        free(path);
        return NULL;
    }
    const char *slash = strrchr(path, '/');
    candidate->fd = candidate->probe_lock = candidate->bind_lock = -1;
    candidate->path = path;
    candidate->file = slash ? slash + 1 : path;
    candidate->explicit_file = explicit_file;
    candidate_look(candidate);
    return candidate;
}

struct candidate *candidate_again(const struct candidate *listed)
{
    struct candidate *again = candidate_new(strdup(listed->path), listed->explicit_file);
    if (again) {
        memcpy(again->name, listed->name, sizeof again->name);
        again->plugin = listed->plugin;
    }
    return again;
}
