/* SPDX-License-Identifier: MIT */
/* blob.h - writes valid and invalid GGUF files into memory. */
#ifndef HW_TEST_BLOB_H
#define HW_TEST_BLOB_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct blob {
    uint8_t *bytes;
    size_t size, room;
};

static inline void put(struct blob *blob, const void *bytes, size_t size)
{
    if (blob->size + size > blob->room || !blob->bytes) {
        blob->room = 2 * (blob->size + size) + 64;
        blob->bytes = realloc(blob->bytes, blob->room);
        if (!blob->bytes)
            abort();
    }
    if (size)
        memcpy(blob->bytes + blob->size, bytes, size);
    blob->size += size;
}

static inline void put_u8(struct blob *blob, uint8_t value)
{
    put(blob, &value, sizeof value);
}

static inline void put_u32(struct blob *blob, uint32_t value)
{
    put(blob, &value, sizeof value);
}

static inline void put_u64(struct blob *blob, uint64_t value)
{
    put(blob, &value, sizeof value);
}

static inline void put_f32(struct blob *blob, float value)
{
    put(blob, &value, sizeof value);
}

static inline void put_string(struct blob *blob, const char *text)
{
    put_u64(blob, strlen(text));
    put(blob, text, strlen(text));
}

static inline void put_header(struct blob *blob, uint64_t tensors, uint64_t pairs)
{
    put(blob, "GGUF", 4);
    put_u32(blob, 3);
    put_u64(blob, tensors);
    put_u64(blob, pairs);
}

/* Key and kind; the value is the caller's. */
static inline void put_key(struct blob *blob, const char *key, uint32_t kind)
{
    put_string(blob, key);
    put_u32(blob, kind);
}

static inline void put_tensor(struct blob *blob, const char *name, uint32_t rank,
                              const uint64_t *extents, uint32_t type, uint64_t start)
{
    put_string(blob, name);
    put_u32(blob, rank);
    for (uint32_t i = 0; i < rank; i++)
        put_u64(blob, extents[i]);
    put_u32(blob, type);
    put_u64(blob, start);
}

/* Adds to the number of pairs in the header. */
static inline void count_pairs(struct blob *blob, uint64_t more)
{
    uint64_t count;
    memcpy(&count, blob->bytes + 16, sizeof count);
    count += more;
    memcpy(blob->bytes + 16, &count, sizeof count);
}

static inline void pad(struct blob *blob, size_t alignment)
{
    while (blob->size % alignment)
        put_u8(blob, 0);
}

/* The whole file; NULL if it cannot be read. */
static inline uint8_t *slurp(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    struct blob blob = { 0 };
    uint8_t part[65536];
    for (size_t got; (got = fread(part, 1, sizeof part, file)) > 0;)
        put(&blob, part, got);
    fclose(file);
    *size = blob.size;
    return blob.bytes;
}

#endif
