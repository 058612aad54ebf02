/* SPDX-License-Identifier: MIT */
/* gguf_write.h - writes a GGUF file of version 3, which appears under its name only when it
 * is complete.
 *
 * First all pairs and tensors are described, then the data of the tensors follow in the
 * same order, in pieces of any size. A function that fails writes the reason to `why`;
 * after that, only gguf_abandon() may be called. */
#ifndef HW_MODEL_GGUF_WRITE_H
#define HW_MODEL_GGUF_WRITE_H

#include "gguf.h"

struct gguf_writer;

struct gguf_target {
    const char *path;
    size_t alignment; /* of the data; the pair "general.alignment" is the caller's */
    bool replace;     /* a file of that name, whose permissions the new one gets */
};

/* Begins a file without a name in the folder of the target. */
struct gguf_writer *gguf_create(const struct gguf_target *target, struct fault *why);

/* Copies a pair of an open file, or adds a number. */
bool gguf_put_pair(struct gguf_writer *writer, const struct gguf *file,
                   const struct gguf_pair *pair, struct fault *why);
bool gguf_put_u32(struct gguf_writer *writer, const char *key, uint32_t value,
                  struct fault *why);

/* Describes a tensor with the name and extents of `like`, whose rows are whole blocks of
 * `type`. */
bool gguf_put_tensor(struct gguf_writer *writer, const struct gguf_tensor *like,
                     uint32_t type, struct fault *why);

/* Appends to the data; pads after the last byte of a tensor. */
bool gguf_put_data(struct gguf_writer *writer, const void *bytes, size_t size,
                   struct fault *why);

/* Waits until the file is on the disk, gives it its name, and frees the writer. Fails if data
 * are missing, or if a file with that name exists and must not be replaced. */
bool gguf_finish(struct gguf_writer *writer, struct fault *why);

/* Removes the unfinished file. Accepts NULL. */
void gguf_abandon(struct gguf_writer *writer);

#endif
