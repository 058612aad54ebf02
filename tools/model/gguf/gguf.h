/* SPDX-License-Identifier: MIT */
/* gguf.h - reads GGUF model files: key/value metadata and tensors, without copying either.
 *
 * The file is mapped. Every count, length, type, offset and extent is checked against the
 * size of the file before it is used, and a file is accepted as a whole or refused with one
 * sentence. Everything that a successful open returns is therefore safe to read. Format:
 * the GGUF specification of the ggml project, little endian, version 3, and version 2, which
 * has the same bytes.
 *
 * A struct gguf is immutable once opened, so any number of threads may read it. Truncating
 * the file while it is open is not detected: reading the lost part raises SIGBUS in the
 * mapping, and ends early through `fd`. */
#ifndef HW_MODEL_GGUF_H
#define HW_MODEL_GGUF_H

#include "util/fault.h"

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

/* The tensor types that this project computes with, numbered as in the file. The reader
 * knows the sizes and names of all others, too (gguf_type_name). */
enum gguf_type {
    GGUF_TYPE_F32 = 0,
    GGUF_TYPE_F16 = 1,
    GGUF_TYPE_Q4_0 = 2,
    GGUF_TYPE_Q4_1 = 3,
    GGUF_TYPE_Q5_0 = 6,
    GGUF_TYPE_Q5_1 = 7,
    GGUF_TYPE_Q8_0 = 8,
    GGUF_TYPE_Q4_K = 12,
    GGUF_TYPE_Q5_K = 13,
    GGUF_TYPE_Q6_K = 14,
    GGUF_TYPE_I8 = 24,
    GGUF_TYPE_I32 = 26,
    GGUF_TYPE_I64 = 27,
    GGUF_TYPE_BF16 = 30,
    GGUF_TYPE_END = 42 /* one past the last type that the reader knows */
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
    const uint8_t *bytes; /* the elements as in the file, unaligned */
};

struct gguf_pair {
    struct gguf_string key; /* printable ASCII */
    enum gguf_kind kind;
    const uint8_t *value; /* as in the file, unaligned */
    size_t offset;        /* of the key, in the file */
    size_t bytes;         /* of key, kind and value together */
};

struct gguf_tensor {
    struct gguf_string name; /* printable ASCII */
    uint32_t type;           /* enum gguf_type, or another type that the reader knows */
    int rank;                /* 1 to GGUF_MAX_RANK */
    /* innermost first, as in the file; 1 beyond the rank */
    uint64_t extents[GGUF_MAX_RANK];
    size_t offset;  /* of the description, for messages */
    uint64_t start; /* of the data, from the start of the data section */
    uint64_t bytes;
    const void *data;
};

struct gguf {
    char *path; /* a copy of the argument of gguf_open() */
    const uint8_t *bytes;
    size_t size;
    int fd; /* of the file that is mapped there; -1: none is */
    uint32_t version;
    size_t alignment;
    size_t pair_count, tensor_count;
    struct gguf_pair *pairs;     /* sorted by key */
    struct gguf_tensor *tensors; /* sorted by name */
};

/* Maps and checks the file. Returns NULL, with the reason in `why`, for anything but a
 * valid GGUF file. Close with gguf_close(). */
struct gguf *gguf_open(const char *path, struct fault *why);

/* The same for bytes in memory, which must outlive the result; messages use `name`. */
struct gguf *gguf_parse(const void *bytes, size_t size, const char *name,
                        struct fault *why);

/* Closes the file, and releases the mapping and everything returned from it. Accepts NULL. */
void gguf_close(struct gguf *file);

/* Return NULL if the file has none of that name. */
const struct gguf_pair *gguf_find(const struct gguf *file, const char *key);
const struct gguf_tensor *gguf_tensor(const struct gguf *file, const char *name);

/* All tensors in the order of the file; free() it. Returns NULL if out of memory. */
const struct gguf_tensor **gguf_in_order(const struct gguf *file);

/* Typed look-up. If the key is absent, `*value` keeps its default. A value of another kind,
 * or a negative number for a count, returns false, and `why` names file, key and byte.
 * gguf_get_count accepts integers of every width, gguf_get_real both floats. */
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

/* As gguf_get_count() and gguf_get_real(), for a number that a file may state for each of `layers`:
 * an array of as many equal numbers is that number. Any other array returns false. */
bool gguf_get_count_each(const struct gguf *file, const char *key, int64_t layers,
                         uint64_t *value, struct fault *why);
bool gguf_get_real_each(const struct gguf *file, const char *key, int64_t layers,
                        double *value, struct fault *why);

/* As gguf_get_array(), for integers of any width. */
bool gguf_get_integers(const struct gguf *file, const char *key, struct gguf_array *value,
                       struct fault *why);

/* As gguf_get_string(), but the key must be there. */
bool gguf_need_string(const struct gguf *file, const char *key, struct gguf_string *value,
                      struct fault *why);

/* The string at `*cursor` in an array of strings; moves the cursor past it. Call it at most
 * `count` times, starting at the first byte of the array. */
struct gguf_string gguf_next_string(const uint8_t **cursor);

/* Element `index` of an array of that kind, or of integers, which may be unaligned. */
float gguf_f32_at(const struct gguf_array *array, uint64_t index);
int32_t gguf_i32_at(const struct gguf_array *array, uint64_t index);
int64_t gguf_integer_at(const struct gguf_array *array, uint64_t index);

bool gguf_string_is(struct gguf_string string, const char *text);

/* The string for a message: its first bytes, and an escape for each that cannot be printed. */
struct gguf_quote {
    char text[176];
};
struct gguf_quote gguf_quote(struct gguf_string string);

/* Returns a negative number, zero or a positive one if `a` sorts before, equal to or after
 * `b`, compared by bytes. */
int gguf_string_compare(struct gguf_string a, struct gguf_string b);

/* "Q8_0", for example; "?" for an unknown type. */
const char *gguf_type_name(uint32_t type);

/* The name of a type that the format had for a time; NULL for any other. */
const char *gguf_type_retired(uint32_t type);

/* Elements and bytes of a block of a type that the reader knows; 1 element for plain types. */
uint32_t gguf_type_block(uint32_t type);
uint32_t gguf_type_bytes(uint32_t type);

/* "u32", for example; and the bytes of a value, 0 for strings and arrays. */
const char *gguf_kind_name(enum gguf_kind kind);
size_t gguf_kind_bytes(enum gguf_kind kind);

/* The integer of that kind at `value`, which may be unaligned. GGUF_U64 above 2^63 - 1 comes
 * out negative. */
int64_t gguf_integer(const uint8_t *value, enum gguf_kind kind);

#endif
