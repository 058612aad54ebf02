/* SPDX-License-Identifier: MIT */
/* cache.c - keeps the verdicts of probes from one process to the next. POSIX: a system without
 * openat() needs another implementation of cache.h. */
#define _POSIX_C_SOURCE 200809L
#include "open/cache.h"

#include "base/hash.h"
#include "base/text.h"
#include "base/whole.h"
#include "open/key.h"
#include "open/turn.h"

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

/* ---- the bytes of an entry: one line, the key, the verdict ---- */

static const char magic[] = "hw-verdict 1 ";

#define MAGIC_CHARS (sizeof magic - 1)
#define HASH_CHARS  16
#define HEAD_CHARS  (MAGIC_CHARS + HASH_CHARS) /* the checksum covers the rest */

static void put_hash(char text[HASH_CHARS + 1], uint64_t hash)
{
    snprintf(text, HASH_CHARS + 1, "%016" PRIx64, hash);
}

static bool checksum_is_right(const char *data, size_t size)
{
    char text[HASH_CHARS + 1];
    put_hash(text, hash_add(HASH_START, data + HEAD_CHARS, size - HEAD_CHARS));
    return memcmp(data + MAGIC_CHARS, text, HASH_CHARS) == 0;
}

bool cache_parse(char *data, size_t size, const char *key, struct cached *found)
{
    const size_t key_bytes = strlen(key);
    unsigned kind, key_given, verdict_given;
    *found = (struct cached){ 0 };
    if (size < HEAD_CHARS || memcmp(data, magic, MAGIC_CHARS) != 0 ||
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

/* Formats the whole entry, which the caller frees; NULL if memory runs out. */
static char *format_entry(const char *plugin, const char *key, const struct cached *verdict,
                          size_t *size)
{
    char line[256];
    const size_t key_bytes = strlen(key);
    const int length = snprintf(line, sizeof line,
                                "%s%0*d %s %s %d %" PRIu32 " %" PRId64 " %" PRId64 " %zu"
                                " %zu\n",
                                magic, HASH_CHARS, 0, plugin, verdict->outcome,
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
    char text[HASH_CHARS + 1];
    put_hash(text, hash_add(HASH_START, data + HEAD_CHARS, *size - HEAD_CHARS));
    memcpy(data + MAGIC_CHARS, text, HASH_CHARS);
    return data;
}

/* ---- the directory ---- */

/* Whether the file belongs to this user, and no other user may write to it. */
static bool is_ours(const struct stat *file)
{
    return file->st_uid == geteuid() && !(file->st_mode & (S_IWGRP | S_IWOTH));
}

/* The path of the directory, which the caller frees. NULL: there is no cache. A process with
 * elevated rights uses no cache, because its user could have written it. */
static char *place_of(const struct hw_context *context, const struct candidate *candidate)
{
    const char *cache = context->settings.value[SETTING_cache_dir].text;
    if (context->settings.elevated || !cache || *cache != '/' || !candidate->key)
        return NULL;
    return text_format("%s/" CACHE_PLACE, cache);
}

/* Opens the directory. Returns -1 and sets errno if it is missing or others may write to it. */
static int open_place(const char *path)
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
static void make_place(char *path)
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
    char *path = place_of(context, candidate);
    int place = path ? open_place(path) : -1;
    if (path && make && place < 0 && errno == ENOENT) {
        make_place(path);
        place = open_place(path);
    }
    free(path);
    return place;
}

/* "<plugin>-<hash of the key>" */
void cache_name(const struct candidate *candidate, char name[CACHE_NAME_CHARS])
{
    char hash[HASH_CHARS + 1];
    put_hash(hash, hash_add(HASH_START, candidate->key, strlen(candidate->key)));
    snprintf(name, CACHE_NAME_CHARS, "%s-%s", candidate->name, hash);
}

/* Whether the name belongs to an entry. Temporary names do, too: an entry's name followed by
 * ".<number>-<number>", ".held" or ".turn". */
static bool is_entry_name(const char *name)
{
    const size_t length = strcspn(name, ".");
    return strlen(name) < CACHE_NAME_CHARS && length > HASH_CHARS + 1 &&
           name_valid(name, length - HASH_CHARS - 1) &&
           name[length - HASH_CHARS - 1] == '-' &&
           strspn(name + length - HASH_CHARS, "0123456789abcdef") == HASH_CHARS;
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
           survey.bytes > CACHE_BYTES_MAX) {
        if (unlinkat(place, survey.oldest, 0))
            return;
        hold_clear(place, survey.oldest);
    }
}

/* ---- reading ---- */

static bool read_file(int fd, const char *key, struct cached *found)
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
static bool read_entry(int place, const struct candidate *candidate, struct cached *found)
{
    char name[CACHE_NAME_CHARS];
    cache_name(candidate, name);
    /* O_NONBLOCK: opening a FIFO must not block. */
    const int fd = openat(place, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    const bool good = read_file(fd, candidate->key, found);
    close(fd);
    return good;
}

static bool find(const struct hw_context *context, const struct candidate *candidate,
                 bool hidden, struct cached *found)
{
    char *path = place_of(context, candidate);
    const int place = path ? open_place(path) : -1;
    const bool good = place >= 0 && (hidden || !hold_exists(place, candidate)) &&
                      read_entry(place, candidate, found);
    if (place >= 0)
        close(place);
    free(path);
    return good;
}

bool cache_find(const struct hw_context *context, const struct candidate *candidate,
                struct cached *found)
{
    const bool good = find(context, candidate, false, found);
    if (!good || cache_counts(found, (int64_t)time(NULL)))
        return good;
    free(found->bytes);
    return false;
}

bool cache_find_any(const struct hw_context *context, const struct candidate *candidate,
                    struct cached *found)
{
    return find(context, candidate, true, found);
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
    snprintf(temporary, sizeof temporary, "%.*s.%ld-%ld", NAME_SIZE + HASH_CHARS, name,
             (long)getpid(), now.tv_nsec);
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
        hold_clear(place, name);
    if (good)
        make_room(place);
    free(data);
    errno = error;
    return good;
}

/* Sets when the verdict was found and when it expires. If the verdict before it has not expired,
 * both belong to the same try, and a timeout counts only once. */
static void date(struct cached *verdict, const struct cached *before)
{
    int64_t seconds = CACHE_RETRY;
    verdict->written = (int64_t)time(NULL);
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
        if (seconds > CACHE_RETRY_MAX)
            seconds = CACHE_RETRY_MAX;
    }
    verdict->expires = verdict->kind == CACHE_SUCCESS ? 0 : verdict->written + seconds;
}

/* Logs, once per context, that verdicts are not kept: a warning if the user can correct it. */
static void tell(struct hw_context *context, const char *path, int error)
{
    struct stat file;
    if (atomic_exchange(&context->cache_told, true))
        return;
    if (error == EPERM && stat(path, &file) == 0 && file.st_uid == geteuid() &&
        !is_ours(&file))
        log_line(
            &context->log, HW_LOG_WARN,
            "verdicts on plugins are not kept in %s: others may write to it; run chmod "
            "go-w %s",
            path, path);
    else
        log_line(
            &context->log, HW_LOG_DEBUG, "verdicts on plugins are not kept in %s: %s", path,
            error == EPERM ? "another user owns it or may write to it" : strerror(error));
}

static bool keep(struct hw_context *context, const struct candidate *candidate,
                 const struct cached *verdict, bool is_new)
{
    char *path = place_of(context, candidate);
    bool kept = false;
    if (path && key_holds(candidate)) {
        const int place = cache_place(context, candidate, true);
        kept = place >= 0 && write_entry(place, candidate, verdict, is_new);
        if (!kept)
            tell(context, path, errno);
        if (place >= 0)
            close(place);
    }
    free(path);
    return kept;
}

bool cache_replace(struct hw_context *context, const struct candidate *candidate,
                   const struct cached *verdict)
{
    return keep(context, candidate, verdict, false);
}

bool cache_store(struct hw_context *context, const struct candidate *candidate,
                 struct cached *verdict)
{
    struct cached before = { 0 };
    const int place = cache_place(context, candidate, false);
    if (place >= 0) {
        if (read_entry(place, candidate, &before))
            free(before.bytes);
        close(place);
    }
    date(verdict, &before);
    return keep(context, candidate, verdict, true);
}
