/* SPDX-License-Identifier: MIT */
/* random.c - see random.h. A pool of random numbers, small beside a model, is quantised once for
 * each type and copied again and again into the matrices. */
#define _POSIX_C_SOURCE 200809L /* strdup() */
#include "random.h"
#include "llama.h"
#include "model/gguf/dtype.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The shapes ---------------------------------------------------------------------- */

#define LLAMA(layers_, width_, inner_, heads_, kv_heads_, head_, vocabulary_, context_,    \
              theta_)                                                                      \
    {                                                                                      \
        .architecture = "llama", .interleaved = true, .layers = layers_, .width = width_,  \
        .inner = inner_, .heads = heads_, .kv_heads = kv_heads_, .key_width = head_,       \
        .value_width = head_, .rope_dims = head_, .vocabulary = vocabulary_,               \
        .tokens = vocabulary_, .context = context_, .eps = 1e-5F, .theta = theta_,         \
        .rope_scale = 1, .magnitude = 1                                                    \
    }

static const char *const names[] = { "tiny",       "tinyllama",  "llama-2-7b",
                                     "mistral-7b", "llama-3-8b", NULL };
/* The last but one is version 0.2, which looks back on all tokens. */
static const struct shape shapes[] = {
    LLAMA(2, 256, 768, 4, 2, 64, 512, 512, 10000),
    LLAMA(22, 2048, 5632, 32, 4, 64, 32000, 2048, 10000),
    LLAMA(32, 4096, 11008, 32, 32, 128, 32000, 4096, 10000),
    LLAMA(32, 4096, 14336, 32, 8, 128, 32000, 32768, 1000000),
    LLAMA(32, 4096, 14336, 32, 8, 128, 128256, 8192, 500000),
};
_Static_assert(sizeof shapes / sizeof *shapes == sizeof names / sizeof *names - 1,
               "a name for each shape");

const char *const *random_names(void)
{
    return names;
}

const struct shape *random_shape(const char *name)
{
    for (size_t i = 0; names[i]; i++)
        if (strcmp(name, names[i]) == 0)
            return &shapes[i];
    return NULL;
}

/* ---- The description ----------------------------------------------------------------- */

/* A file in the making. The names lie behind the tensors, in the same memory. */
struct draft {
    struct gguf *file;
    char (*names)[GGUF_MAX_NAME + 1];
};

static void count_tensor(void *user, const char *name, int64_t rows, int64_t cols)
{
    size_t *count = user;
    (void)name, (void)rows, (void)cols;
    ++*count;
}

static void set_type(struct gguf_tensor *tensor, uint32_t type)
{
    tensor->type = type;
    tensor->bytes = tensor->extents[0] * tensor->extents[1] / gguf_type_block(type) *
                    gguf_type_bytes(type);
}

static void add_tensor(void *user, const char *name, int64_t rows, int64_t cols)
{
    struct draft *draft = user;
    const size_t index = draft->file->tensor_count++;
    struct gguf_tensor *tensor = &draft->file->tensors[index];
    char *copy = draft->names[index];
    strncpy(copy, name, GGUF_MAX_NAME);
    *tensor = (struct gguf_tensor){ .name = { copy, strlen(copy) },
                                    .rank = rows == 1 ? 1 : 2,
                                    .extents = { (uint64_t)cols, (uint64_t)rows, 1, 1 },
                                    .offset = index };
    set_type(tensor, GGUF_TYPE_F32);
}

static int compare_names(const void *a, const void *b)
{
    return gguf_string_compare(((const struct gguf_tensor *)a)->name,
                               ((const struct gguf_tensor *)b)->name);
}

static bool describe(struct gguf *file, const struct shape *shape)
{
    struct draft draft = { .file = file };
    size_t count = 0;
    llama_weights(shape, count_tensor, &count);
    file->tensors = calloc(count, sizeof *file->tensors + sizeof *draft.names);
    if (!file->tensors)
        return false;
    draft.names = (void *)(file->tensors + count);
    llama_weights(shape, add_tensor, &draft);
    qsort(file->tensors, count, sizeof *file->tensors, compare_names);
    return true;
}

/* Gives each tensor the type that the recipe decides for it. */
static bool choose_types(struct gguf *file, const struct recipe *recipe, struct fault *why)
{
    struct quantize_plan plan;
    const bool good = quantize_decide(file, recipe, false, &plan, why);
    for (size_t i = 0; good && i < plan.count; i++)
        set_type(&file->tensors[plan.steps[i].from - file->tensors], plan.steps[i].to);
    quantize_free(&plan);
    return good;
}

struct gguf *random_model(const char *name, const struct shape *shape,
                          const struct recipe *recipe, struct fault *why)
{
    struct gguf *file = calloc(1, sizeof *file);
    if (file)
        file->fd = -1;
    bool good = file && (file->path = strdup(name)) && describe(file, shape);
    if (!good)
        fault_say(why, "out of memory");
    good = good && choose_types(file, recipe, why);
    if (good)
        return file;
    gguf_close(file);
    return NULL;
}

/* ---- The numbers --------------------------------------------------------------------- */

/* A prime number of the largest blocks, so that no two rows of a matrix are equal. */
enum { POOL = 4093 * 256 };

/* Uniform numbers: the standard deviation is their bound divided by the root of 3. */
static void make_values(float *values)
{
    const float bound = 0.02F * 1.7320508F;
    uint64_t state = 1;
    for (int i = 0; i < POOL; i++) {
        /* Knuth's MMIX; the upper bits are the random ones. */
        state = state * 6364136223846793005U + 1442695040888963407U;
        values[i] = bound * ((float)(state >> 40) * 0x1p-23F - 1);
    }
}

static bool failed(struct fault *why)
{
    return fault(why, "make random weights: %s", hw_message());
}

/* The numbers of the pool in a type. */
static const struct hw_tensor *in_type(struct random_pool *pool, int32_t dtype,
                                       struct fault *why)
{
    struct hw_tensor *tensor = &pool->of_type[dtype];
    const int64_t count = POOL;
    if (!pool->values) {
        pool->values = malloc(POOL * sizeof *pool->values);
        if (!pool->values)
            return fault_say(why, "out of memory"), NULL;
        make_values(pool->values);
    }
    if (!tensor->buffer &&
        (hw_tensor_alloc(hw_queue_device(pool->queue), 0, dtype, 1, &count, tensor) ||
         hw_copy(pool->queue,
                 &(struct hw_copy){ .src = hw_host_1d(pool->values, HW_F32, POOL),
                                    .dst = *tensor })))
        return failed(why), NULL;
    return tensor;
}

static bool fill_matrix(struct random_pool *pool, const struct hw_tensor *tensor,
                        struct fault *why)
{
    const int64_t count = tensor->extent[0] * tensor->extent[1];
    const struct hw_tensor *from = in_type(pool, tensor->dtype, why);
    struct hw_tensor flat;
    if (!from)
        return false;
    if (hw_tensor_reshape(&flat, tensor, 1, &count))
        return failed(why);
    for (int64_t at = 0, part; at < count; at += part) {
        struct hw_copy op;
        part = count - at < POOL ? count - at : POOL;
        if (hw_tensor_slice(&op.src, from, 0, 0, part) ||
            hw_tensor_slice(&op.dst, &flat, 0, at, at + part) || hw_copy(pool->queue, &op))
            return failed(why);
    }
    return true;
}

/* A vector is so small that waiting for it costs nothing. */
static bool fill_vector(struct random_pool *pool, const struct hw_tensor *tensor,
                        struct fault *why)
{
    const size_t count = (size_t)tensor->extent[0];
    float *ones = malloc(count * sizeof *ones);
    if (!ones)
        return fault(why, "out of memory");
    for (size_t i = 0; i < count; i++)
        ones[i] = 1;
    const bool good = !hw_tensor_write(pool->queue, tensor, ones, count * sizeof *ones) &&
                      !hw_queue_wait(pool->queue);
    free(ones);
    return good || failed(why);
}

bool random_fill(struct random_pool *pool, const struct hw_tensor *tensor,
                 struct fault *why)
{
    return tensor->rank == 1 ? fill_vector(pool, tensor, why)
                             : fill_matrix(pool, tensor, why);
}

void random_close(struct random_pool *pool)
{
    for (int32_t dtype = 0; dtype < HW_DTYPE_END; dtype++)
        hw_buffer_free(pool->of_type[dtype].buffer);
    free(pool->values);
    *pool = (struct random_pool){ 0 };
}
