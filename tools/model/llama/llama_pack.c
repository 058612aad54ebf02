/* SPDX-License-Identifier: MIT */
/* llama_pack.c - packs matrices into the layout that their device multiplies fastest. Matrices in a
 * mapped file are read once for this and then not needed any more. */
#define _DEFAULT_SOURCE /* madvise */
#include "llama_state.h"
#include "util/clock.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes to pack between two tokens, which takes about as long as a token. */
enum { PART = 32 << 20 };

/* The matrices that ops multiply by: the matrices of each layer, then the matrix of the scores. */
static const size_t of_layer[] = {
    offsetof(struct layer, q),    offsetof(struct layer, k),
    offsetof(struct layer, v),    offsetof(struct layer, output),
    offsetof(struct layer, gate), offsetof(struct layer, up),
    offsetof(struct layer, down),
};
enum { OF_LAYER = sizeof of_layer / sizeof *of_layer };

static int64_t matrices(const struct llama *l)
{
    return l->shape.layers * OF_LAYER + 1;
}

static struct hw_tensor *matrix(struct llama *l, int64_t index)
{
    return index < l->shape.layers * OF_LAYER
               ? (struct hw_tensor *)((char *)&l->layers[index / OF_LAYER] +
                                      of_layer[index % OF_LAYER])
               : &l->output;
}

/* Takes the pages of a tensor in the mapped file out of memory, but not those that it shares with
 * a neighbour. A hint: if it fails, they stay. Memory that is not of a file would be lost. */
static void let_go(const struct llama *l, const struct hw_tensor *tensor, uint64_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = (uintptr_t)hw_buffer_host(l->mapping) + tensor->offset;
    const uintptr_t begin = (first + page - 1) / page * page;
    const uintptr_t end = (first + bytes) / page * page;
    if (l->file->fd >= 0 && begin < end)
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* Whether another tensor of the model lies in the memory of a matrix: one that joins it, or the
 * embedding, which may be the same. */
static bool is_shared(struct llama *l, const struct hw_tensor *of)
{
    bool shared = of->buffer == l->embedding.buffer && of->offset == l->embedding.offset;
    for (int64_t i = 0; i < matrices(l) && !shared && of->buffer != l->mapping; i++) {
        const struct hw_tensor *other = matrix(l, i);
        shared = other != of && other->buffer == of->buffer;
    }
    return shared;
}

/* Puts a packed matrix in the place of the one that it was made from, which the graph uses. */
static bool replace(struct llama *l, struct hw_tensor *matrix,
                    const struct hw_tensor *packed, struct fault *why)
{
    const struct hw_tensor before = *matrix;
    const uint64_t bytes = hw_tensor_bytes(&before);
    const bool shared = is_shared(l, matrix);
    size_t place = 0;
    if (hw_queue_wait(l->queue)) {
        hw_buffer_free(packed->buffer);
        return failed("pack the weights", why);
    }
    hw_graph_free(l->graph);
    l->graph = NULL;
    while (place < l->buffer_count && l->buffers[place] != before.buffer)
        place++;
    *matrix = *packed;
    l->memory.packed += hw_buffer_bytes(packed->buffer);
    if (place < l->buffer_count && !shared) {
        l->memory.weights -= hw_buffer_bytes(before.buffer);
        hw_buffer_free(before.buffer);
        l->buffers[place] = packed->buffer;
        return true;
    }
    l->buffers[l->buffer_count++] = packed->buffer;
    if (place == l->buffer_count - 1 && !shared) {
        l->memory.mapped -= bytes;
        let_go(l, &before, bytes);
    }
    return true;
}

/* If the device has no layout of its own for this type, or no room left, the matrix and `done` stay
 * unchanged. */
static bool pack_one(struct llama *l, struct hw_tensor *matrix, uint64_t *done,
                     struct fault *why)
{
    const uint64_t bytes = hw_tensor_bytes(matrix);
    struct hw_tensor packed;
    const enum hw_status status = hw_tensor_pack(l->queue, matrix, &packed);
    if (status == HW_UNSUPPORTED || status == HW_NO_MEMORY)
        return true;
    if (status)
        return failed("pack the weights", why);
    *done += bytes;
    return replace(l, matrix, &packed, why);
}

/* Whether there is memory for all packed matrices, and some to spare. */
static bool fits(struct llama *l)
{
    struct hw_device_info info = { .size = sizeof info };
    uint64_t bytes = 0;
    for (int64_t i = 0; i < matrices(l); i++)
        bytes += hw_tensor_bytes(matrix(l, i));
    return !hw_device_info(l->device, &info) && bytes < info.memory_free / 4 * 3;
}

/* Packs the next matrices, at least `bytes` of them, and counts them in `done`. Matrices that the
 * device does not pack do not count, because asking costs nothing. `settings` may be NULL. */
static bool pack_some(struct llama *l, uint64_t bytes,
                      const struct llama_settings *settings, uint64_t *done,
                      struct fault *why)
{
    bool good = true;
    *done = 0;
    while (good && l->pack_next < l->pack_end && *done < bytes) {
        good = pack_one(l, matrix(l, l->pack_next++), done, why);
        if (*done && settings && settings->progress)
            settings->progress(settings->user, (uint64_t)l->pack_next,
                               (uint64_t)l->pack_end);
    }
    return good;
}

bool llama_pack(struct llama *l, const struct llama_settings *settings, struct fault *why)
{
    const double start = now();
    uint64_t done;
    if (fits(l))
        l->pack_end = matrices(l);
    if (settings->pack_later && l->mapping)
        return true;
    const bool good = pack_some(l, UINT64_MAX, settings, &done, why);
    l->memory.pack_seconds += done ? now() - start : 0;
    return good;
}

/* Waits for earlier steps first, so that they are not part of the time for packing. */
bool llama_pack_part(struct llama *l, struct fault *why)
{
    uint64_t done;
    if (l->pack_next == l->pack_end)
        return true;
    if (hw_queue_wait(l->queue))
        return failed("run the model", why);
    const double start = now();
    const bool good = pack_some(l, PART, NULL, &done, why) &&
                      (!done || llama_record(l, why));
    l->memory.pack_seconds += now() - start;
    return good;
}
