/* SPDX-License-Identifier: MIT */
/* store.c - writes entries of the cache: see store.h. */
#define _POSIX_C_SOURCE 200809L
#include "probe/store.h"

#include "base/text.h"
#include "base/whole.h"
#include "cache/depends.h"
#include "cache/locks.h"
#include "object/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC_CHARS (sizeof CACHE_MAGIC - 1)
#define HEAD_CHARS  (MAGIC_CHARS + CACHE_HASH_CHARS) /* the checksum covers the rest */

/* Formats the whole entry, which the caller frees; NULL if memory runs out. */
static char *format_entry(const char *plugin, const char *key, const struct cached *verdict,
                          size_t *size)
{
    char line[256];
    const size_t key_bytes = strlen(key);
    const int length = snprintf(line, sizeof line,
                                "%s%0*d %s %s %d %" PRIu32 " %" PRId64 " %" PRId64 " %zu"
                                " %zu\n",
                                CACHE_MAGIC, CACHE_HASH_CHARS, 0, plugin, verdict->outcome,
                                (int)verdict->kind, verdict->timeouts, verdict->written,
                                verdict->expires, key_bytes, verdict->size);
    *size = (size_t)length + key_bytes + verdict->size;
    char *data = *size <= CACHE_ENTRY_MAX ? malloc(*size + 1) : NULL;
    if (!data)
        return NULL;
    memcpy(data, line, (size_t)length);
    strcpy(data + length, key);
    if (verdict->size)
        memcpy(data + length + key_bytes, verdict->bytes, verdict->size);
    char text[CACHE_HASH_CHARS + 1];
    cache_hash(text, data + HEAD_CHARS, *size - HEAD_CHARS);
    memcpy(data + MAGIC_CHARS, text, CACHE_HASH_CHARS);
    return data;
}

/* ---- room ---- */

/* Whether the name belongs to an entry. Temporary names do, too: an entry's name followed by
 * ".<number>-<number>". */
static bool is_entry_name(const char *name)
{
    const size_t length = strcspn(name, ".");
    return strlen(name) < CACHE_NAME_CHARS && length > CACHE_HASH_CHARS + 1 &&
           name_valid(name, length - CACHE_HASH_CHARS - 1) &&
           name[length - CACHE_HASH_CHARS - 1] == '-' &&
           strspn(name + length - CACHE_HASH_CHARS, "0123456789abcdef") == CACHE_HASH_CHARS;
}

struct survey {
    unsigned files;
    uint64_t bytes;
    char oldest[CACHE_NAME_CHARS]; /* the file that was written first */
    struct timespec written;
};

static bool is_older(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static struct survey survey_place(int place)
{
    const int fd = openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    struct survey survey = { 0 };
    if (!list && fd >= 0)
        close(fd);
    for (const struct dirent *item; list && (item = readdir(list));) {
        struct stat file;
        if (!is_entry_name(item->d_name) ||
            fstatat(place, item->d_name, &file, AT_SYMLINK_NOFOLLOW) ||
            S_ISDIR(file.st_mode)) /* unlinkat() would not remove it */
            continue;
        if (survey.files++ == 0 || is_older(&file.st_mtim, &survey.written)) {
            strcpy(survey.oldest, item->d_name);
            survey.written = file.st_mtim;
        }
        survey.bytes += (uint64_t)file.st_size;
    }
    if (list)
        closedir(list);
    return survey;
}

/* Removes the oldest files until the rest is within the limits. */
static void make_room(int place)
{
    struct survey survey;
    while ((survey = survey_place(place)).files > CACHE_FILES_MAX ||
           survey.bytes > CACHE_BYTES_MAX)
        if (unlinkat(place, survey.oldest, 0))
            return;
}

/* ---- writing ---- */

/* Renames the file. Also replaces a directory of this name, but only an empty one. */
static bool take_place(int place, const char *temporary, const char *name)
{
    if (renameat(place, temporary, place, name) == 0)
        return true;
    return errno == EISDIR && unlinkat(place, name, AT_REMOVEDIR) == 0 &&
           renameat(place, temporary, place, name) == 0;
}

/* Writes the file under a temporary name, then renames it: a reader sees a complete entry or none,
 * and the later of two writers wins. There is no fsync(): if the system stops, the file may have a
 * wrong length or checksum, which only costs another probe. */
static bool write_file(int place, const char *name, const char *data, size_t size)
{
    char temporary[CACHE_NAME_CHARS];
    struct timespec now = { 0 };
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(temporary, sizeof temporary, "%.*s.%ld-%ld", NAME_SIZE + CACHE_HASH_CHARS,
             name, (long)getpid(), now.tv_nsec);
    const int fd = openat(place, temporary,
                          O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool good = write_whole(fd, data, size);
    good = close(fd) == 0 && good;
    if (good && take_place(place, temporary, name))
        return true;
    const int error = errno;
    unlinkat(place, temporary, 0);
    errno = error;
    return false;
}

static bool write_entry(int place, const struct candidate *candidate,
                        const struct cached *verdict, bool is_new)
{
    char name[CACHE_NAME_CHARS];
    size_t size;
    char *data = format_entry(candidate->name, candidate->key, verdict, &size);
    cache_name(candidate, name);
    errno = data ? 0 : size > CACHE_ENTRY_MAX ? EFBIG : ENOMEM;
    const bool good = data && write_file(place, name, data, size);
    const int error = errno;
    if (good && is_new)
        bind_forgive(place, candidate);
    if (good)
        make_room(place);
    free(data);
    errno = error;
    return good;
}

/* Sets when the verdict was found and when it expires. If the verdict before it has not expired,
 * both belong to the same try, and a timeout counts only once. */
static void entry_date(struct cached *verdict, const struct cached *before)
{
    int64_t seconds = CACHE_RETRY;
    verdict->timeouts = verdict->open_end ? before->timeouts : 0;
    if (verdict->kind == CACHE_BACKOFF) {
        const bool again = before->kind != CACHE_BACKOFF ||
                           !cache_counts(before, verdict->written);
        verdict->timeouts = before->timeouts + again;
        if (verdict->timeouts > 99)
            verdict->timeouts = 99;
        seconds = CACHE_RETRY_FIRST;
        for (uint32_t i = 1; i < verdict->timeouts && seconds < CACHE_RETRY_MAX; i++)
            seconds *= 2;
    }
    seconds += verdict->took;
    if (seconds > CACHE_RETRY_MAX)
        seconds = CACHE_RETRY_MAX;
    verdict->expires = verdict->kind == CACHE_SUCCESS ? 0 : verdict->written + seconds;
}

/* Whether the candidate's path still leads to the file for which the key was made. */
static bool key_holds(const struct candidate *candidate)
{
    char *line = text_format("file %s %s\n", identity_at(candidate->real).text,
                             candidate->real);
    const bool holds = line && strncmp(candidate->key, line, strlen(line)) == 0;
    free(line);
    return holds;
}

static bool entry_keep(struct hw_context *context, const struct candidate *candidate,
                       const struct cached *verdict, bool is_new)
{
    bool kept = false;
    if (candidate->key && key_holds(candidate)) {
        const int place = cache_place(context, candidate, true);
        kept = place >= 0 && write_entry(place, candidate, verdict, is_new);
        if (place >= 0)
            close(place);
    }
    return kept;
}

bool cache_replace(struct hw_context *context, const struct candidate *candidate,
                   const struct cached *verdict)
{
    return entry_keep(context, candidate, verdict, false);
}

bool cache_store(struct hw_context *context, const struct candidate *candidate,
                 struct cached *verdict)
{
    struct cached before = { 0 };
    if (cache_find_any(context, candidate, &before))
        free(before.bytes);
    entry_date(verdict, &before);
    return entry_keep(context, candidate, verdict, true);
}
