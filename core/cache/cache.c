/* SPDX-License-Identifier: MIT */
/* cache.c - the stage probe, with verdicts that probes of earlier processes have kept. POSIX: a
 * system without openat() needs another implementation of cache.h. */
#define _POSIX_C_SOURCE 200809L
#include "cache/cache.h"

#include "base/hash.h"
#include "base/text.h"
#include "base/whole.h"
#include "cache/depends.h"
#include "cache/locks.h"
#include "load/probe.h"
#include "load/verdict.h"
#include "open/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- the bytes of an entry: one line, the key, the verdict ---- */

#define MAGIC_CHARS (sizeof CACHE_MAGIC - 1)
#define HASH_CHARS  CACHE_HASH_CHARS
#define HEAD_CHARS  (MAGIC_CHARS + HASH_CHARS) /* the checksum covers the rest */

void cache_hash(char text[CACHE_HASH_CHARS + 1], const void *data, size_t size)
{
    snprintf(text, CACHE_HASH_CHARS + 1, "%016" PRIx64, hash_add(HASH_START, data, size));
}

static bool checksum_is_right(const char *data, size_t size)
{
    char text[HASH_CHARS + 1];
    cache_hash(text, data + HEAD_CHARS, size - HEAD_CHARS);
    return memcmp(data + MAGIC_CHARS, text, HASH_CHARS) == 0;
}

bool cache_parse(char *data, size_t size, const char *key, struct cached *found)
{
    const size_t key_bytes = strlen(key);
    unsigned kind, key_given, verdict_given;
    *found = (struct cached){ 0 };
    if (size < HEAD_CHARS || memcmp(data, CACHE_MAGIC, MAGIC_CHARS) != 0 ||
        !checksum_is_right(data, size))
        return false;
    char *line = data + HEAD_CHARS;
    char *end = memchr(line, '\n', size - HEAD_CHARS);
    if (!end)
        return false;
    *end++ = '\0';
    if (sscanf(line, " %*31s %31s %1u %9" SCNu32 " %15" SCNd64 " %15" SCNd64 " %9u %9u",
               found->outcome, &kind, &found->timeouts, &found->written, &found->expires,
               &key_given, &verdict_given) != 7)
        return false;
    const size_t rest = size - (size_t)(end - data);
    found->kind = (enum cache_kind)kind;
    found->bytes = (unsigned char *)end + key_bytes;
    found->size = verdict_given;
    return kind <= CACHE_BACKOFF && key_given == key_bytes && rest >= key_bytes &&
           rest - key_bytes == verdict_given && memcmp(end, key, key_bytes) == 0;
}

bool cache_counts(const struct cached *found, int64_t now)
{
    if (found->kind == CACHE_SUCCESS)
        return true;
    return found->written <= now && now < found->expires &&
           found->expires - found->written <= CACHE_RETRY_MAX;
}

/* ---- the directory ---- */

/* Whether the file belongs to this user, and no other user may write to it. */
static bool is_ours(const struct stat *file)
{
    return file->st_uid == geteuid() && !(file->st_mode & (S_IWGRP | S_IWOTH));
}

/* The path of the directory, which the caller frees. NULL: there is no cache. A process with
 * elevated rights uses no cache, because its user could have written it. */
static char *place_path(const struct hw_context *context, const struct candidate *candidate)
{
    const char *cache = context->settings.value[SETTING_cache_dir].text;
    if (context->settings.elevated || !cache || *cache != '/' || !candidate->key)
        return NULL;
    return text_format("%s/" CACHE_PLACE, cache);
}

/* Opens the directory. Returns -1 and sets errno if it is missing or others may write to it. */
static int place_open(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat file;
    if (fd < 0 || (fstat(fd, &file) == 0 && is_ours(&file)))
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

/* Makes the directory and its parents, but none inside a directory of another user: a program that
 * root starts with a user's variables must leave nothing in that user's home. */
static void place_make(char *path)
{
    uid_t owner = geteuid();
    for (char *end = path + 1;; end++) {
        const char saved = *end;
        struct stat file;
        if (saved != '/' && saved != '\0')
            continue;
        *end = '\0';
        if (stat(path, &file) == 0)
            owner = file.st_uid;
        else if ((owner == 0 || owner == geteuid()) && mkdir(path, 0700) == 0)
            owner = geteuid();
        *end = saved;
        if (saved == '\0')
            return;
    }
}

int cache_place(const struct hw_context *context, const struct candidate *candidate,
                bool make)
{
    char *path = place_path(context, candidate);
    int place = path ? place_open(path) : -1;
    if (path && make && place < 0 && errno == ENOENT) {
        place_make(path);
        place = place_open(path);
    }
    free(path);
    return place;
}

uint64_t cache_number(const struct candidate *candidate)
{
    return hash_add(HASH_START, candidate->key, strlen(candidate->key));
}

void cache_name(const struct candidate *candidate, char name[CACHE_NAME_CHARS])
{
    snprintf(name, CACHE_NAME_CHARS, "%s-%016" PRIx64, candidate->name,
             cache_number(candidate));
}

/* ---- reading ---- */

static bool entry_read(int fd, const char *key, struct cached *found)
{
    struct stat file;
    if (fstat(fd, &file) || !S_ISREG(file.st_mode) || !is_ours(&file) ||
        file.st_size <= 0 || file.st_size > CACHE_ENTRY_MAX)
        return false;
    const size_t size = (size_t)file.st_size;
    char *data = malloc(size);
    if (data && read_whole(fd, data, size) && cache_parse(data, size, key, found)) {
        memmove(data, found->bytes, found->size);
        found->bytes = (unsigned char *)data;
        return true;
    }
    free(data);
    return false;
}

/* Reads the entry for the candidate's key, expired or not. */
static bool entry_open(int place, const struct candidate *candidate, struct cached *found)
{
    char name[CACHE_NAME_CHARS];
    cache_name(candidate, name);
    /* O_NONBLOCK: opening a FIFO must not block. */
    const int fd = openat(place, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    const bool good = entry_read(fd, candidate->key, found);
    close(fd);
    return good;
}

static bool entry_find(const struct hw_context *context, const struct candidate *candidate,
                       bool hidden, struct cached *found)
{
    const int place = cache_place(context, candidate, false);
    const bool good = place >= 0 && (hidden || !bind_is_locked(place, candidate)) &&
                      entry_open(place, candidate, found);
    if (place >= 0)
        close(place);
    return good;
}

bool cache_find(const struct hw_context *context, const struct candidate *candidate,
                struct cached *found)
{
    const bool good = entry_find(context, candidate, false, found);
    if (!good || cache_counts(found, (int64_t)time(NULL)))
        return good;
    free(found->bytes);
    return false;
}

bool cache_find_any(const struct hw_context *context, const struct candidate *candidate,
                    struct cached *found)
{
    return entry_find(context, candidate, true, found);
}

/* ---- the stage probe ---- */

/* The stage trust looks at directories that a verdict does not list. */
bool reason_is_kept(enum reason reason)
{
    const enum stage stage = reason_rows[reason].stage;
    return (stage == STAGE_PROBE || stage == STAGE_PREFLIGHT) && reason != REASON_NO_HELPER;
}

/* A plugin that was tried and stopped is tried again later: the message says when. */
static void say_when(struct candidate *candidate)
{
    const int64_t now = (int64_t)time(NULL);
    char *longer = text_format("%s (tried %lld s ago; it is tried again in %lld s)",
                               message_of(candidate), (long long)(now - candidate->tried),
                               (long long)(candidate->retry - now));
    if (!longer)
        return;
    free(candidate->message);
    candidate->message = longer;
}

/* Whether the files that the verdict lists are as they were, and no op is untested if all are to be
 * tested. */
static bool is_enough(const struct hw_context *context, const struct verdict *verdict)
{
    return !verdict ||
           (depends_hold(verdict->depends) && (context->settings.probe != PROBE_FULL ||
                                               verdict->reason || !verdict->untested));
}

static void verdict_forget(struct candidate *candidate)
{
    verdict_free(candidate->verdict);
    free(candidate->verdict);
    candidate->verdict = NULL;
    candidate_clear(candidate);
    candidate->stage = STAGE_PROBE;
}

bool cache_load(struct hw_context *context, struct candidate *candidate)
{
    struct cached found;
    if (!cache_find(context, candidate, &found))
        return false;
    const bool good = probe_accept(candidate, found.bytes, found.size);
    free(found.bytes);
    candidate->recalled = good && is_enough(context, candidate->verdict);
    if (good && !candidate->recalled)
        verdict_forget(candidate);
    if (!candidate->recalled)
        return false;
    candidate->tried = found.written;
    candidate->retry = found.expires;
    log_line(&context->log, HW_LOG_DEBUG, "%s is not tried: its verdict is known",
             candidate->path);
    if (candidate->reason && candidate->stage == STAGE_PROBE)
        say_when(candidate);
    return true;
}

void cache_tell(struct hw_context *context, const struct candidate *candidate)
{
    struct stat file;
    char *path = place_path(context, candidate);
    const int place = path ? place_open(path) : -1;
    const int error = place < 0 ? errno : EIO;
    if (place >= 0)
        close(place);
    if (!path || atomic_exchange(&context->cache_told, true))
        goto end;
    if (error == EPERM && stat(path, &file) == 0 && file.st_uid == geteuid())
        log_line(&context->log, HW_LOG_WARN,
                 "verdicts on plugins are not kept in %s: others may write to it; run "
                 "chmod go-w %s",
                 path, path);
    else
        log_line(
            &context->log, HW_LOG_DEBUG, "verdicts on plugins are not kept in %s: %s", path,
            error == EPERM ? "another user owns it or may write to it" : strerror(error));
end:
    free(path);
}

void cache_load_dates(struct hw_context *context, struct candidate *candidate)
{
    struct cached entry;
    candidate->tried = candidate->retry = (int64_t)time(NULL); /* at every start */
    if (candidate->reason && !reason_is_kept(candidate->reason))
        return;
    if (!cache_find_any(context, candidate, &entry)) {
        cache_tell(context, candidate);
        return;
    }
    candidate->tried = entry.written;
    candidate->retry = entry.expires;
    free(entry.bytes);
}
