/* SPDX-License-Identifier: MIT */
/* gguf_write.c - see gguf_write.h. The descriptions are collected in memory, because
 * their number stands before them in the file; data are never kept. */
#define _GNU_SOURCE /* O_TMPFILE, asprintf */
#include "gguf_write.h"

#include "util/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERSION = 3, HEADER_BYTES = 24 };

struct gguf_writer {
    char *path, *part; /* `part`: a name beside `path` until the file is whole */
    bool replace;
    int fd;
    bool named; /* the file has the name `part` */
    bool begun; /* the descriptions are written */
    size_t alignment;
    uint64_t pair_count, tensor_count;
    struct text pairs, tensors;
    uint64_t *ends; /* of the tensors' data, in bytes from the start of the first */
    size_t room;
    uint64_t done;  /* bytes of data written, padding included */
    size_t current; /* the tensor that the next byte belongs to */
};

static bool out_of_memory(const struct gguf_writer *w, struct fault *why)
{
    return fault(why, "%s: out of memory", w->path);
}

/* ---- The file ------------------------------------------------------------------------ */

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
}

/* A file without a name vanishes with the process, whatever ends it. */
static int open_nameless(const char *path)
{
#ifdef O_TMPFILE
    char *folder = folder_of(path);
    const bool linkable = access("/proc/self/fd", X_OK) == 0;
    const int fd = folder && linkable ? open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666)
                                      : -1;
    free(folder);
    return fd;
#else
    (void)path;
    return -1;
#endif
}

static bool open_part(struct gguf_writer *w, struct fault *why)
{
    if (access(w->part, F_OK) == 0) /* the name will be needed later */
        return fault(why, "%s: is in the way; remove it", w->part);
    if (errno == ENAMETOOLONG)
        return fault(why, "%s: cannot be created: %s", w->part, strerror(errno));
    w->fd = open_nameless(w->path);
    if (w->fd >= 0)
        return true;
    w->fd = open(w->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    w->named = w->fd >= 0;
    return w->named || fault(why, "%s: cannot be created: %s", w->path, strerror(errno));
}

/* The new file gets the permissions of the one that it replaces. */
static bool copy_mode(const struct gguf_writer *w, struct fault *why)
{
    struct stat old;
    return stat(w->path, &old) || !fchmod(w->fd, old.st_mode & 0777) ||
           fault(why, "%s: cannot keep its permissions: %s", w->path, strerror(errno));
}

/* A short name, because one longer than the name of the file could exceed the limit. */
static char *part_of(const char *path)
{
    char *folder = folder_of(path), *part = NULL;
    if (folder && asprintf(&part, "%s.hw-%ld.part", folder, (long)getpid()) < 0)
        part = NULL;
    free(folder);
    return part;
}

struct gguf_writer *gguf_create(const struct gguf_target *target, struct fault *why)
{
    struct gguf_writer *w = calloc(1, sizeof *w);
    if (!w) {
        fault_say(why, "%s: out of memory", target->path);
        return NULL;
    }
    w->fd = -1;
    w->alignment = target->alignment;
    w->replace = target->replace;
    w->path = strdup(target->path);
    w->part = part_of(target->path);
    if (!w->path || !w->part)
        fault_say(why, "%s: out of memory", target->path);
    else if (open_part(w, why) && (!w->replace || copy_mode(w, why)))
        return w;
    gguf_abandon(w);
    return NULL;
}

static bool write_all(struct gguf_writer *w, const void *bytes, size_t size,
                      struct fault *why)
{
    const char *at = bytes;
    while (size > 0) {
        const ssize_t count = write(w->fd, at, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return fault(why, "%s: cannot be written: %s", w->path,
                         count < 0 ? strerror(errno) : "no byte was taken");
        at += count;
        size -= (size_t)count;
    }
    return true;
}

/* ---- Descriptions -------------------------------------------------------------------- */

static bool add(struct text *text, const void *bytes, size_t size)
{
    return text_append(text, bytes, size);
}

static bool add_u32(struct text *text, uint32_t value)
{
    return add(text, &value, sizeof value);
}

static bool add_u64(struct text *text, uint64_t value)
{
    return add(text, &value, sizeof value);
}

bool gguf_put_pair(struct gguf_writer *w, const struct gguf *file,
                   const struct gguf_pair *pair, struct fault *why)
{
    if (!add(&w->pairs, file->bytes + pair->offset, pair->bytes))
        return out_of_memory(w, why);
    w->pair_count++;
    return true;
}

bool gguf_put_u32(struct gguf_writer *w, const char *key, uint32_t value, struct fault *why)
{
    if (!add_u64(&w->pairs, strlen(key)) || !add(&w->pairs, key, strlen(key)) ||
        !add_u32(&w->pairs, GGUF_U32) || !add_u32(&w->pairs, value))
        return out_of_memory(w, why);
    w->pair_count++;
    return true;
}

static uint64_t padded(const struct gguf_writer *w, uint64_t at)
{
    return (at + w->alignment - 1) / w->alignment * w->alignment;
}

/* Where the data of the next tensor begin. */
static uint64_t start_of_next(const struct gguf_writer *w)
{
    return w->tensor_count ? padded(w, w->ends[w->tensor_count - 1]) : 0;
}

static bool add_end(struct gguf_writer *w, uint64_t end)
{
    if (w->tensor_count == w->room) {
        const size_t room = 2 * w->room + 64;
        uint64_t *ends = realloc(w->ends, room * sizeof *ends);
        if (!ends)
            return false;
        w->ends = ends;
        w->room = room;
    }
    w->ends[w->tensor_count++] = end;
    return true;
}

bool gguf_put_tensor(struct gguf_writer *w, const struct gguf_tensor *like, uint32_t type,
                     struct fault *why)
{
    const uint64_t start = start_of_next(w);
    uint64_t bytes = like->extents[0] / gguf_type_block(type), end;
    bool overflow = __builtin_mul_overflow(bytes, gguf_type_bytes(type), &bytes);
    bool good = add_u64(&w->tensors, like->name.length) &&
                add(&w->tensors, like->name.bytes, like->name.length) &&
                add_u32(&w->tensors, (uint32_t)like->rank);
    for (int i = 0; i < like->rank; i++) {
        overflow |= i && __builtin_mul_overflow(bytes, like->extents[i], &bytes);
        good = good && add_u64(&w->tensors, like->extents[i]);
    }
    overflow |= __builtin_add_overflow(start, bytes, &end) || end > INT64_MAX / 2;
    if (overflow)
        return fault(why, "%s: more than 2^62 bytes of tensors", w->path);
    good = good && add_u32(&w->tensors, type) && add_u64(&w->tensors, start) &&
           add_end(w, end);
    return good || out_of_memory(w, why);
}

/* ---- Data ---------------------------------------------------------------------------- */

static bool write_zeros(struct gguf_writer *w, uint64_t count, struct fault *why)
{
    static const char zeros[4096];
    for (size_t part; count > 0; count -= part) {
        part = count < sizeof zeros ? (size_t)count : sizeof zeros;
        if (!write_all(w, zeros, part, why))
            return false;
    }
    return true;
}

static bool begin_data(struct gguf_writer *w, struct fault *why)
{
    struct text head = { 0 };
    const uint64_t bytes = HEADER_BYTES + w->pairs.length + w->tensors.length;
    bool good = (add(&head, "GGUF", 4) && add_u32(&head, VERSION) &&
                 add_u64(&head, w->tensor_count) && add_u64(&head, w->pair_count)) ||
                out_of_memory(w, why);
    good = good && write_all(w, head.bytes, head.length, why) &&
           write_all(w, w->pairs.bytes, w->pairs.length, why) &&
           write_all(w, w->tensors.bytes, w->tensors.length, why) &&
           write_zeros(w, padded(w, bytes) - bytes, why);
    free(head.bytes);
    w->begun = true;
    return good;
}

/* Pads tensors that are complete. */
static bool pad(struct gguf_writer *w, struct fault *why)
{
    while (w->current < w->tensor_count && w->done == w->ends[w->current]) {
        const uint64_t next = padded(w, w->done);
        if (!write_zeros(w, next - w->done, why))
            return false;
        w->done = next;
        w->current++;
    }
    return true;
}

bool gguf_put_data(struct gguf_writer *w, const void *bytes, size_t size, struct fault *why)
{
    if (!w->begun && !begin_data(w, why))
        return false;
    if (w->current == w->tensor_count || size > w->ends[w->current] - w->done)
        return fault(why, "%s: more data than its tensors have", w->path);
    w->done += size;
    return write_all(w, bytes, size, why) && pad(w, why);
}

/* ---- The end ------------------------------------------------------------------------- */

/* The name is as durable as the data only when the folder is on the disk, too. Not every
 * file system can do that. */
static void sync_folder(const char *path)
{
    char *folder = folder_of(path);
    const int fd = folder ? open(folder, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    free(folder);
}

static bool add_name(const struct gguf_writer *w, const char *name)
{
    char link_to[64];
    snprintf(link_to, sizeof link_to, "/proc/self/fd/%d", w->fd);
    return (w->named ? link(w->part, name)
                     : linkat(AT_FDCWD, link_to, AT_FDCWD, name, AT_SYMLINK_FOLLOW)) == 0;
}

static bool rename_part(struct gguf_writer *w, struct fault *why)
{
    if (rename(w->part, w->path))
        return fault(why, "%s: cannot be replaced: %s", w->path, strerror(errno));
    w->named = false;
    return true;
}

static bool replace(struct gguf_writer *w, struct fault *why)
{
    if (!w->named && !(w->named = add_name(w, w->part)))
        return fault(why, "%s: cannot be created: %s", w->part, strerror(errno));
    return rename_part(w, why);
}

static bool not_created(const struct gguf_writer *w, struct fault *why)
{
    return fault(why, "%s: %s%s", w->path,
                 errno == EEXIST ? "something else has created it in the meantime; it stays"
                                 : "cannot be created: ",
                 errno == EEXIST ? "" : strerror(errno));
}

/* Where files have one name only, an empty file takes the name first, because rename()
 * replaces whatever has it. */
static bool take_name(struct gguf_writer *w, struct fault *why)
{
    const int fd = open(w->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return not_created(w, why);
    close(fd);
    if (rename_part(w, why))
        return true;
    unlink(w->path);
    return false;
}

static bool give_name(struct gguf_writer *w, struct fault *why)
{
    if (w->replace)
        return replace(w, why);
    if (add_name(w, w->path))
        return true;
    return w->named && errno != EEXIST ? take_name(w, why) : not_created(w, why);
}

bool gguf_finish(struct gguf_writer *w, struct fault *why)
{
    if (!w->begun && !begin_data(w, why))
        return false;
    if (w->current < w->tensor_count)
        return fault(why, "%s: data of %" PRIu64 " tensors are missing", w->path,
                     w->tensor_count - w->current);
    if (fsync(w->fd))
        return fault(why, "%s: cannot be written: %s", w->path, strerror(errno));
    if (!give_name(w, why))
        return false;
    sync_folder(w->path);
    gguf_abandon(w); /* leaves the file its new name */
    return true;
}

void gguf_abandon(struct gguf_writer *w)
{
    if (!w)
        return;
    if (w->named)
        unlink(w->part);
    if (w->fd >= 0)
        close(w->fd);
    free(w->pairs.bytes);
    free(w->tensors.bytes);
    free(w->ends);
    free(w->part);
    free(w->path);
    free(w);
}
