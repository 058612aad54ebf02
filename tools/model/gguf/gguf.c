/* SPDX-License-Identifier: MIT */
/* gguf.c - the GGUF reader. It walks the file once, with a cursor that cannot leave it.
 * Tables of pairs and tensors are allocated only after their counts are known to fit in the
 * rest of the file. */
#define _POSIX_C_SOURCE 200809L
#include "gguf.h"
#include "gguf_advice.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the reader takes numbers as they lie in the file: little endian"
#endif

enum {
    OLDEST = 2, /* which differs from version 3 in its number alone, if little endian */
    LATEST = 3,
    HEADER_BYTES = 24,
    DEFAULT_ALIGNMENT = 32,
    MAX_KEY = 65535, /* the specification's limits */
    MAX_NESTING = 4, /* our own limit: known files do not nest arrays at all */
    MIN_PAIR = 14,   /* bytes: length, one character, kind, one byte of value */
    MIN_TENSOR = 33  /* bytes: length, one character, rank, one extent, type, offset */
};

/* Files that are passed by mistake, recognised by their first bytes. */
static const struct {
    const char *start, *what;
} aliens[] = {
    { "lmgg", "is a GGML file of before 2023-08; " CONVERT_AGAIN },
    { "fmgg", "is a GGMF file of before 2023-08; " CONVERT_AGAIN },
    { "tjgg", "is a GGJT file of before 2023-08; " CONVERT_AGAIN },
    { "PK\3\4", "is a zip archive, as PyTorch checkpoints are: convert the model to GGUF" },
    { "version https://git-lfs",
      "is a git-lfs pointer, not the model: run `git lfs pull`" },
    { "\x1f\x8b", "is compressed with gzip: unpack it" },
    { "<!DOCTYPE", "is a web page, not a model; " AGAIN },
    { "<html", "is a web page, not a model; " AGAIN },
};
/* ---- A cursor that cannot leave the file -------------------------------------------- */

struct cursor {
    const struct gguf *file;
    size_t at;
    char subject[112]; /* what is being read, for messages */
    struct fault *why;
};

static size_t left(const struct cursor *c)
{
    return c->file->size - c->at;
}

static void about(struct cursor *c, const char *what, struct gguf_string name)
{
    snprintf(c->subject, sizeof c->subject, "%s '%.*s'", what, (int)name.length,
             name.bytes);
}

__attribute__((format(printf, 3, 4))) static void
complain(const struct cursor *c, size_t at, const char *format, ...)
{
    char words[400];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    fault_say(c->why, "%s: %s at byte %zu: %s", c->file->path, c->subject, at, words);
}

/* Writes a sentence with file, subject and byte, and returns false: see fault(). */
#define bad(...) (complain(__VA_ARGS__), false)

static bool take(struct cursor *c, size_t bytes, const uint8_t **start)
{
    if (bytes > left(c))
        return bad(c, c->at,
                   "needs %zu bytes where the file has %zu left: it is cut short; " AGAIN,
                   bytes, left(c));
    *start = c->file->bytes + c->at;
    c->at += bytes;
    return true;
}

static bool take_u32(struct cursor *c, uint32_t *value)
{
    const uint8_t *start;
    if (!take(c, sizeof *value, &start))
        return false;
    memcpy(value, start, sizeof *value);
    return true;
}

static bool take_u64(struct cursor *c, uint64_t *value)
{
    const uint8_t *start;
    if (!take(c, sizeof *value, &start))
        return false;
    memcpy(value, start, sizeof *value);
    return true;
}

static bool take_string(struct cursor *c, struct gguf_string *string)
{
    const size_t at = c->at;
    uint64_t length;
    const uint8_t *start;
    if (!take_u64(c, &length))
        return false;
    if (length > left(c))
        return bad(c, at,
                   "its length %" PRIu64 " exceeds the %zu bytes left: the file is cut "
                   "short or damaged; " AGAIN,
                   length, left(c));
    take(c, (size_t)length, &start);
    *string = (struct gguf_string){ (const char *)start, (size_t)length };
    return true;
}

/* Reads the name of a key or tensor: within the limits of the format, and printable. */
static bool take_name(struct cursor *c, size_t limit, struct gguf_string *name)
{
    const size_t at = c->at;
    if (!take_string(c, name))
        return false;
    if (name->length == 0 || name->length > limit)
        return bad(c, at,
                   "its name has %zu bytes, the format allows 1 to %zu: the file is "
                   "damaged; " AGAIN,
                   name->length, limit);
    for (size_t i = 0; i < name->length; i++)
        if (name->bytes[i] < 0x20 || name->bytes[i] > 0x7e)
            return bad(c, at,
                       "byte %zu of its name is 0x%02x, not printable ASCII: the file is "
                       "damaged; " AGAIN,
                       i, (unsigned)(uint8_t)name->bytes[i]);
    return true;
}

/* Reads a count of items of at least `each` bytes. A count that cannot fit is refused
 * before anything is allocated. */
static bool take_count(struct cursor *c, size_t each, uint64_t *count)
{
    const size_t at = c->at;
    if (!take_u64(c, count))
        return false;
    if (*count > left(c) / each)
        return bad(c, at,
                   "a count of %" PRIu64 " cannot fit in the %zu bytes left: the file is "
                   "cut short or damaged; " AGAIN,
                   *count, left(c));
    return true;
}

static bool take_kind(struct cursor *c, enum gguf_kind *kind)
{
    const size_t at = c->at;
    uint32_t number;
    if (!take_u32(c, &number))
        return false;
    if (number >= GGUF_KINDS)
        return bad(c, at,
                   "value type %" PRIu32 " is unknown (GGUF has 0 to %d): the file is "
                   "damaged or of a later format",
                   number, GGUF_KINDS - 1);
    *kind = (enum gguf_kind)number;
    return true;
}

/* ---- Metadata ------------------------------------------------------------------------ */

static bool check_bools(struct cursor *c, const uint8_t *start, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (start[i] > 1)
            return bad(c, (size_t)(start - c->file->bytes) + (size_t)i,
                       "a bool is %u, not 0 or 1: the file is damaged; " AGAIN, start[i]);
    return true;
}

static bool take_elements(struct cursor *c, enum gguf_kind kind, uint64_t count,
                          int nesting);

static bool take_array(struct cursor *c, int nesting)
{
    static const size_t each_string = 8, each_array = 12;
    enum gguf_kind kind;
    uint64_t count;
    if (nesting > MAX_NESTING)
        return bad(c, c->at, "arrays are nested deeper than %d", MAX_NESTING);
    if (!take_kind(c, &kind))
        return false;
    const size_t each = kind == GGUF_STRING  ? each_string
                        : kind == GGUF_ARRAY ? each_array
                                             : gguf_kind_bytes(kind);
    return take_count(c, each, &count) && take_elements(c, kind, count, nesting);
}

/* Skips `count` values of one kind; the caller has checked `count` against the bytes left.
 */
static bool take_elements(struct cursor *c, enum gguf_kind kind, uint64_t count,
                          int nesting)
{
    const uint8_t *start;
    struct gguf_string string;
    if (gguf_kind_bytes(kind))
        return take(c, gguf_kind_bytes(kind) * (size_t)count, &start) &&
               (kind != GGUF_BOOL || check_bools(c, start, count));
    for (uint64_t i = 0; i < count; i++)
        if (!(kind == GGUF_STRING ? take_string(c, &string) : take_array(c, nesting + 1)))
            return false;
    return true;
}

static bool take_pair(struct cursor *c, struct gguf_pair *pair)
{
    pair->offset = c->at;
    if (!take_name(c, MAX_KEY, &pair->key))
        return false;
    about(c, "key", pair->key);
    if (!take_kind(c, &pair->kind))
        return false;
    pair->value = c->file->bytes + c->at;
    if (!take_elements(c, pair->kind, 1, 0))
        return false;
    pair->bytes = c->at - pair->offset;
    return true;
}

static int compare_keys(const void *a, const void *b)
{
    return gguf_string_compare(((const struct gguf_pair *)a)->key,
                               ((const struct gguf_pair *)b)->key);
}

static bool read_pairs(struct cursor *c, struct gguf *file)
{
    for (size_t i = 0; i < file->pair_count; i++) {
        snprintf(c->subject, sizeof c->subject, "key %zu of %zu", i + 1, file->pair_count);
        if (!take_pair(c, &file->pairs[i]))
            return false;
    }
    if (file->pair_count)
        qsort(file->pairs, file->pair_count, sizeof *file->pairs, compare_keys);
    for (size_t i = 1; i < file->pair_count; i++) {
        const struct gguf_pair *a = &file->pairs[i - 1], *b = &file->pairs[i];
        about(c, "key", b->key);
        if (compare_keys(a, b) == 0)
            return bad(c, b->offset,
                       "is a duplicate of the one at byte %zu; " CONVERT_AGAIN, a->offset);
    }
    return true;
}

static bool read_alignment(struct cursor *c, struct gguf *file)
{
    uint64_t alignment = DEFAULT_ALIGNMENT;
    if (!gguf_get_count(file, "general.alignment", &alignment, c->why))
        return false;
    if (alignment < 8 || alignment > UINT32_MAX || (alignment & (alignment - 1)))
        return fault(c->why,
                     "%s: key 'general.alignment' at byte %zu: %" PRIu64
                     " is not a power of two of at least 8; " CONVERT_AGAIN,
                     file->path, gguf_find(file, "general.alignment")->offset, alignment);
    file->alignment = (size_t)alignment;
    return true;
}

/* ---- Tensors ------------------------------------------------------------------------- */

/* The bytes of a tensor of `extents`, or a fault; every product is checked. */
static bool measure(const struct cursor *c, struct gguf_tensor *tensor)
{
    const uint32_t type = tensor->type;
    if (tensor->extents[0] % gguf_type_block(type))
        return bad(c, tensor->offset,
                   "rows of %" PRIu64
                   " elements are not whole %s blocks of %u; " CONVERT_AGAIN,
                   tensor->extents[0], gguf_type_name(type), gguf_type_block(type));
    uint64_t bytes = tensor->extents[0] / gguf_type_block(type);
    bool overflow = __builtin_mul_overflow(bytes, (uint64_t)gguf_type_bytes(type), &bytes);
    for (int i = 1; i < GGUF_MAX_RANK; i++)
        overflow |= __builtin_mul_overflow(bytes, tensor->extents[i], &bytes);
    if (overflow || bytes > SIZE_MAX / 2)
        return bad(c, tensor->offset,
                   "the product of its extents overflows: the file is damaged; " AGAIN);
    tensor->bytes = bytes;
    return true;
}

static bool take_extents(struct cursor *c, struct gguf_tensor *tensor)
{
    uint32_t rank;
    size_t at = c->at;
    if (!take_u32(c, &rank))
        return false;
    if (rank < 1 || rank > GGUF_MAX_RANK)
        return bad(c, at,
                   "has %" PRIu32
                   " dimensions, 1 to %d are allowed: the file is damaged or "
                   "of a later format",
                   rank, GGUF_MAX_RANK);
    tensor->rank = (int)rank;
    for (int i = 0; i < GGUF_MAX_RANK; i++) {
        tensor->extents[i] = 1;
        at = c->at;
        if (i < tensor->rank && !take_u64(c, &tensor->extents[i]))
            return false;
        if (tensor->extents[i] == 0)
            return bad(c, at, "extent %d is zero; " CONVERT_AGAIN, i);
    }
    return true;
}

static bool take_tensor(struct cursor *c, struct gguf_tensor *tensor)
{
    tensor->offset = c->at;
    if (!take_name(c, GGUF_MAX_NAME, &tensor->name))
        return false;
    about(c, "tensor", tensor->name);
    if (!take_extents(c, tensor))
        return false;
    const size_t at = c->at;
    if (!take_u32(c, &tensor->type))
        return false;
    const char *retired = gguf_type_retired(tensor->type);
    if (retired)
        return bad(c, at,
                   "has type %s, which the format no longer has; use a file of Q4_0, or "
                   "quantize the model again",
                   retired);
    if (*gguf_type_name(tensor->type) == '?')
        return bad(c, at,
                   "ggml type %" PRIu32 " is unknown: the file is damaged, or made for a "
                   "later format",
                   tensor->type);
    return take_u64(c, &tensor->start) && measure(c, tensor);
}

/* Sets the address of a tensor, once the start of the data section is known. */
static bool place(const struct cursor *c, struct gguf_tensor *tensor, size_t data)
{
    const struct gguf *file = c->file;
    if (tensor->start % file->alignment)
        return bad(c, tensor->offset,
                   "its data start at %" PRIu64 ", not a multiple of the alignment "
                   "%zu; " CONVERT_AGAIN,
                   tensor->start, file->alignment);
    uint64_t end;
    if (__builtin_add_overflow(tensor->start, tensor->bytes, &end) || data > file->size ||
        end > file->size - data)
        return bad(c, tensor->offset,
                   "its %" PRIu64 " bytes of data, %" PRIu64 " into the data "
                   "section, reach past the end of the file at %zu: it is cut "
                   "short; " AGAIN ", or join its parts if it has several",
                   tensor->bytes, tensor->start, file->size);
    tensor->data = file->bytes + data + tensor->start;
    return true;
}

static int compare_starts(const void *a, const void *b)
{
    const struct gguf_tensor *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

static int compare_names(const void *a, const void *b)
{
    return gguf_string_compare(((const struct gguf_tensor *)a)->name,
                               ((const struct gguf_tensor *)b)->name);
}

/* Checks that no two tensors share a byte or a name, and sorts them by name. */
static bool check_apart(struct cursor *c, struct gguf *file)
{
    struct gguf_tensor *all = file->tensors;
    qsort(all, file->tensor_count, sizeof *all, compare_starts);
    for (size_t i = 1; i < file->tensor_count; i++) {
        about(c, "tensor", all[i].name);
        if (all[i].start - all[i - 1].start < all[i - 1].bytes)
            return bad(c, all[i].offset,
                       "its data overlap those of tensor '%.*s': the file is "
                       "damaged; " AGAIN,
                       (int)all[i - 1].name.length, all[i - 1].name.bytes);
    }
    qsort(all, file->tensor_count, sizeof *all, compare_names);
    for (size_t i = 1; i < file->tensor_count; i++) {
        about(c, "tensor", all[i].name);
        if (compare_names(&all[i - 1], &all[i]) == 0)
            return bad(c, all[i].offset,
                       "is a duplicate of the one at byte %zu; " CONVERT_AGAIN,
                       all[i - 1].offset);
    }
    return true;
}

static bool read_tensors(struct cursor *c, struct gguf *file)
{
    for (size_t i = 0; i < file->tensor_count; i++) {
        snprintf(c->subject, sizeof c->subject, "tensor %zu of %zu", i + 1,
                 file->tensor_count);
        if (!take_tensor(c, &file->tensors[i]))
            return false;
    }
    const size_t padding = (file->alignment - c->at % file->alignment) % file->alignment;
    /* cannot overflow: at most 2^32 more than a size in memory */
    const size_t data = c->at + padding;
    for (size_t i = 0; i < file->tensor_count; i++) {
        about(c, "tensor", file->tensors[i].name);
        if (!place(c, &file->tensors[i], data))
            return false;
    }
    return file->tensor_count == 0 || check_apart(c, file);
}

/* ---- The file ------------------------------------------------------------------------ */

static bool check_magic(const struct gguf *file, struct fault *why)
{
    if (file->size >= 4 && memcmp(file->bytes, "GGUF", 4) == 0)
        return true;
    for (size_t i = 0; i < sizeof aliens / sizeof *aliens; i++) {
        const size_t length = strlen(aliens[i].start);
        if (file->size >= length && memcmp(file->bytes, aliens[i].start, length) == 0)
            return fault(why, "%s: %s", file->path, aliens[i].what);
    }
    if (file->size == 0)
        return fault(why, "%s: is empty; " AGAIN, file->path);
    return fault(why,
                 "%s: at byte 0: is not a GGUF file, it does not begin with 'GGUF'; give a "
                 "model in GGUF format",
                 file->path);
}

static bool take_version(struct cursor *c, uint32_t *taken)
{
    if (!take_u32(c, taken))
        return false;
    const uint32_t version = *taken;
    if (version >= OLDEST && version <= LATEST)
        return true;
    if (__builtin_bswap32(version) <= 0xffff && version > 0xffff)
        return bad(
            c, 4,
            "the file is big endian, only little endian is supported; " CONVERT_AGAIN);
    return bad(c, 4,
               "GGUF version %" PRIu32 " is not supported, only versions %d and %d are; %s",
               version, OLDEST, LATEST,
               version < OLDEST ? CONVERT_AGAIN : "a newer hw may support it");
}

static bool read_file(struct gguf *file, struct fault *why)
{
    struct cursor c = { .file = file, .at = 4, .subject = "header", .why = why };
    uint64_t tensor_count, pair_count;
    if (!check_magic(file, why) || !take_version(&c, &file->version) ||
        !take_count(&c, MIN_TENSOR, &tensor_count) ||
        !take_count(&c, MIN_PAIR, &pair_count))
        return false;
    file->pairs = calloc((size_t)pair_count + 1, sizeof *file->pairs);
    file->tensors = calloc((size_t)tensor_count + 1, sizeof *file->tensors);
    if (!file->pairs || !file->tensors)
        return fault(why,
                     "%s: out of memory for its %" PRIu64 " keys and %" PRIu64 " tensors",
                     file->path, pair_count, tensor_count);
    file->pair_count = (size_t)pair_count;
    file->tensor_count = (size_t)tensor_count;
    return read_pairs(&c, file) && read_alignment(&c, file) && read_tensors(&c, file);
}

struct gguf *gguf_parse(const void *bytes, size_t size, const char *name, struct fault *why)
{
    struct gguf *file = calloc(1, sizeof *file);
    if (!file || !(file->path = strdup(name))) {
        free(file);
        fault_say(why, "%s: out of memory", name);
        return NULL;
    }
    file->bytes = bytes;
    file->size = size;
    file->fd = -1;
    if (read_file(file, why))
        return file;
    gguf_close(file);
    return NULL;
}

/* Maps a whole regular file read-only; an empty one is not mapped. */
static bool map_file(int fd, const char *path, void **bytes, size_t *size,
                     struct fault *why)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return fault(why, "%s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return fault(why, "%s: is a directory; name the .gguf file in it", path);
    if (!S_ISREG(info.st_mode))
        return fault(why, "%s: is not a regular file; a model is mapped, so it must be one",
                     path);
    if ((uintmax_t)info.st_size > SIZE_MAX / 2)
        return fault(why, "%s: is too large for this machine's address space", path);
    *size = (size_t)info.st_size;
    *bytes = *size ? mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    if (*bytes == MAP_FAILED)
        return fault(why, "%s: cannot be mapped: %s", path, strerror(errno));
    return true;
}

struct gguf *gguf_open(const char *path, struct fault *why)
{
    void *bytes = NULL;
    size_t size = 0;
    if (!*path) {
        fault_say(why, "the name of the file is empty");
        return NULL;
    }
    const int fd = open(path, O_RDONLY | O_CLOEXEC |
                                  O_NONBLOCK); /* opening a FIFO must not block */
    if (fd < 0) {
        fault_say(why, "%s: cannot be opened: %s", path, strerror(errno));
        return NULL;
    }
    struct gguf *file = NULL;
    if (map_file(fd, path, &bytes, &size, why))
        file = gguf_parse(bytes, size, path, why);
    if (file) {
        file->fd = fd;
        return file;
    }
    if (size && bytes && bytes != MAP_FAILED)
        munmap(bytes, size);
    close(fd);
    return NULL;
}

void gguf_close(struct gguf *file)
{
    if (!file)
        return;
    if (file->fd >= 0) {
        munmap((void *)(uintptr_t)file->bytes, file->size);
        close(file->fd);
    }
    free(file->pairs);
    free(file->tensors);
    free(file->path);
    free(file);
}

/* ---- Look-up ------------------------------------------------------------------------- */

const struct gguf_pair *gguf_find(const struct gguf *file, const char *key)
{
    const struct gguf_pair wanted = { .key = { key, strlen(key) } };
    if (file->pair_count == 0)
        return NULL;
    return bsearch(&wanted, file->pairs, file->pair_count, sizeof wanted, compare_keys);
}

const struct gguf_tensor *gguf_tensor(const struct gguf *file, const char *name)
{
    const struct gguf_tensor wanted = { .name = { name, strlen(name) } };
    if (file->tensor_count == 0)
        return NULL;
    return bsearch(&wanted, file->tensors, file->tensor_count, sizeof wanted,
                   compare_names);
}

static int compare_offsets(const void *a, const void *b)
{
    const struct gguf_tensor *const *x = a, *const *y = b;
    return ((*x)->offset > (*y)->offset) - ((*x)->offset < (*y)->offset);
}

const struct gguf_tensor **gguf_in_order(const struct gguf *file)
{
    const struct gguf_tensor **order = calloc(file->tensor_count + 1, sizeof *order);
    for (size_t i = 0; order && i < file->tensor_count; i++)
        order[i] = &file->tensors[i];
    if (order)
        qsort(order, file->tensor_count, sizeof *order, compare_offsets);
    return order;
}
