/* SPDX-License-Identifier: MIT */
/* gguf.h - reads GGUF v3 model files: key/value metadata and tensors, without copying
 * either.
 *
 * The file is mapped, and every count, length, type, offset and extent in it is checked
 * against the bytes that are there before it is used: a file is taken whole or refused with
 * one sentence. Whatever a successful open hands out is therefore safe to read. Format: the
 * GGUF specification of the ggml project, version 3, little endian.
 *
 * A struct gguf is immutable after opening: any number of threads may read it. Truncating
 * the file while it is open is the one thing that cannot be checked (the OS answers with
 * SIGBUS). */
#ifndef HW_MODEL_GGUF_H
#define HW_MODEL_GGUF_H

#include "fault.h"

#include <stddef.h>
#include <stdint.h>

/* The value types of metadata, numbered as in the file. */
enum gguf_kind {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_KINDS
};

/* The tensor types that this project computes with, numbered as in the file; the reader
 * knows the size and the name of all the others too (gguf_type_name). */
enum gguf_type {
    GGUF_TYPE_F32 = 0,
    GGUF_TYPE_F16 = 1,
    GGUF_TYPE_Q4_0 = 2,
    GGUF_TYPE_Q8_0 = 8,
    GGUF_TYPE_Q4_K = 12,
    GGUF_TYPE_Q5_K = 13,
    GGUF_TYPE_Q6_K = 14,
    GGUF_TYPE_I8 = 24,
    GGUF_TYPE_I32 = 26,
    GGUF_TYPE_I64 = 27,
    GGUF_TYPE_BF16 = 30
};

enum { GGUF_MAX_RANK = 4, GGUF_MAX_NAME = 64 };

/* Bytes inside the file: not terminated, possibly empty, any content. */
struct gguf_string {
    const char *bytes;
    size_t length;
};

struct gguf_array {
    enum gguf_kind kind; /* of every element */
    uint64_t count;
    const uint8_t *bytes; /* the elements as they lie in the file: unaligned */
};

struct gguf_pair {
    struct gguf_string key; /* printable ASCII */
    enum gguf_kind kind;
    const uint8_t *value; /* as it lies in the file: unaligned */
    size_t offset;        /* of the key, for messages */
};

struct gguf_tensor {
    struct gguf_string name; /* printable ASCII */
    uint32_t type;           /* enum gguf_type, or another one that the reader knows */
    int rank;                /* 1 to GGUF_MAX_RANK */
    /* innermost first, as in the file; 1 beyond the rank */
    uint64_t extents[GGUF_MAX_RANK];
    size_t offset;  /* of the description, for messages */
    uint64_t start; /* of the data, from the start of the data section */
    uint64_t bytes;
    const void *data;
};

struct gguf {
    char *path; /* as given to open; a copy */
    const uint8_t *bytes;
    size_t size;
    size_t alignment;
    size_t pair_count, tensor_count;
    struct gguf_pair *pairs;     /* sorted by key */
    struct gguf_tensor *tensors; /* sorted by name */
    bool mapped;
};

/* Maps and checks the file. NULL, with the reason in `why`, for anything that is not a
 * sound GGUF v3 file. Close with gguf_close(). */
struct gguf *gguf_open(const char *path, struct fault *why);

/* The same for bytes in memory, which must outlive the result; `name` is used in messages.
 */
struct gguf *gguf_parse(const void *bytes, size_t size, const char *name,
                        struct fault *why);

/* Releases the mapping and all that was handed out. NULL is fine. */
void gguf_close(struct gguf *file);

/* NULL if the file has none of that name. */
const struct gguf_pair *gguf_find(const struct gguf *file, const char *key);
const struct gguf_tensor *gguf_tensor(const struct gguf *file, const char *name);

/* Typed look-up. A key that is absent leaves `*value` as it was (its default) and is no
 * error; a value of another kind, or a negative number where a count is read, is: false,
 * and `why` names file, key and byte. gguf_get_count takes integers of every width,
 * gguf_get_real both floats. */
bool gguf_get_count(const struct gguf *file, const char *key, uint64_t *value,
                    struct fault *why);
bool gguf_get_real(const struct gguf *file, const char *key, double *value,
                   struct fault *why);
bool gguf_get_bool(const struct gguf *file, const char *key, bool *value,
                   struct fault *why);
bool gguf_get_string(const struct gguf *file, const char *key, struct gguf_string *value,
                     struct fault *why);
bool gguf_get_array(const struct gguf *file, const char *key, enum gguf_kind kind,
                    struct gguf_array *value, struct fault *why);

/* The string at `*cursor` in an array of strings; moves the cursor behind it. Call it at
 * most `count` times, starting at the array's bytes. */
struct gguf_string gguf_next_string(const uint8_t **cursor);

/* Unaligned element `index` of an array of that kind. */
float gguf_f32_at(const struct gguf_array *array, uint64_t index);
int32_t gguf_i32_at(const struct gguf_array *array, uint64_t index);

bool gguf_string_is(struct gguf_string string, const char *text);

/* Negative, zero or positive as `a` sorts before, with or after `b`, by bytes. */
int gguf_string_compare(struct gguf_string a, struct gguf_string b);

/* "Q8_0" and the like; "?" for a number that no known type has. */
const char *gguf_type_name(uint32_t type);

#endif
