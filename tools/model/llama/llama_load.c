/* SPDX-License-Identifier: MIT */
/* llama_load.c - makes a model of a file: weights on the device, the cache, scratch memory, and the
 * recorded step of one token. */
#include "llama_state.h"
#include "model/gguf/dtype.h"
#include "random.h"
#include "upload.h"
#include "util/clock.h"

#include <hw/interop.h>
#include <hw/report.h>

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* Tokens of a prompt that are processed at once: enough to keep a large GPU busy, or a CPU. */
enum { LARGE_BATCH = 2048, SMALL_BATCH = 512 };

/* ---- Weights ------------------------------------------------------------------------- */

/* The extents that a weight can have. */
enum extent {
    ONE,
    WIDTH,
    INNER,
    QUERIES,
    KEYS,
    VALUES,
    HEAD,
    ATTENDED,
    VOCABULARY,
    ROPE,
    EXTENTS
};

/* Whether a file must have a weight. JOINS means required, too: the weight is multiplied by the
 * same row as the one before it in the table, and lies behind that one if the model joins
 * matrices. */
enum need { REQUIRED, JOINS, OPTIONAL, WITH_HEAD_NORM };

struct weight {
    const char *name;
    size_t offset;          /* of the tensor in struct layer or struct llama */
    enum extent rows, cols; /* rows ONE: a vector, which is f32 on the device */
    enum need need;
};

static const struct weight layer_weights[] = {
    { "attn_norm.weight", offsetof(struct layer, attention_norm), ONE, WIDTH, REQUIRED },
    { "attn_q.weight", offsetof(struct layer, q), QUERIES, WIDTH, REQUIRED },
    { "attn_k.weight", offsetof(struct layer, k), KEYS, WIDTH, JOINS },
    { "attn_v.weight", offsetof(struct layer, v), VALUES, WIDTH, JOINS },
    { "attn_q.bias", offsetof(struct layer, q_bias), ONE, QUERIES, OPTIONAL },
    { "attn_k.bias", offsetof(struct layer, k_bias), ONE, KEYS, OPTIONAL },
    { "attn_v.bias", offsetof(struct layer, v_bias), ONE, VALUES, OPTIONAL },
    { "attn_q_norm.weight", offsetof(struct layer, q_norm), ONE, HEAD, WITH_HEAD_NORM },
    { "attn_k_norm.weight", offsetof(struct layer, k_norm), ONE, HEAD, WITH_HEAD_NORM },
    { "attn_output.weight", offsetof(struct layer, output), WIDTH, ATTENDED, REQUIRED },
    { "ffn_norm.weight", offsetof(struct layer, inner_norm), ONE, WIDTH, REQUIRED },
    { "ffn_gate.weight", offsetof(struct layer, gate), INNER, WIDTH, REQUIRED },
    { "ffn_up.weight", offsetof(struct layer, up), INNER, WIDTH, JOINS },
    { "ffn_down.weight", offsetof(struct layer, down), WIDTH, INNER, REQUIRED },
};

static const struct weight model_weights[] = {
    { "token_embd.weight", offsetof(struct llama, embedding), VOCABULARY, WIDTH, REQUIRED },
    { "output_norm.weight", offsetof(struct llama, norm), ONE, WIDTH, REQUIRED },
    { "output.weight", offsetof(struct llama, output), VOCABULARY, WIDTH, OPTIONAL },
    { "rope_freqs.weight", offsetof(struct llama, rope_factors), ONE, ROPE, OPTIONAL },
};

enum {
    LAYER_WEIGHTS = sizeof layer_weights / sizeof *layer_weights,
    MODEL_WEIGHTS = sizeof model_weights / sizeof *model_weights,
    SCRATCH_TENSORS = 10
};

static bool is_required(const struct weight *weight)
{
    return weight->need == REQUIRED || weight->need == JOINS;
}

static int64_t extent_of(const struct shape *s, enum extent extent)
{
    const int64_t extents[EXTENTS] = {
        [ONE] = 1,
        [WIDTH] = s->width,
        [INNER] = s->inner,
        [QUERIES] = s->heads * s->key_width,
        [KEYS] = s->kv_heads * s->key_width,
        [VALUES] = s->kv_heads * s->value_width,
        [HEAD] = s->key_width,
        [ATTENDED] = s->heads * s->value_width,
        [VOCABULARY] = s->vocabulary,
        [ROPE] = s->rope_dims / 2,
    };
    return extents[extent];
}

/* The name of a weight in a file: of a layer, or if that is -1, of the model. */
struct weight_name {
    char text[GGUF_MAX_NAME + 1];
};

static struct weight_name name_of(int64_t layer, const char *name)
{
    struct weight_name full;
    if (layer < 0)
        snprintf(full.text, sizeof full.text, "%s", name);
    else
        snprintf(full.text, sizeof full.text, "blk.%" PRId64 ".%s", layer, name);
    return full;
}

void llama_weights(const struct shape *s, llama_weight_fn *each, void *user)
{
    for (size_t i = 0; i < MODEL_WEIGHTS; i++) {
        const struct weight *w = &model_weights[i];
        if (is_required(w) || w->offset == offsetof(struct llama, output))
            each(user, w->name, extent_of(s, w->rows), extent_of(s, w->cols));
    }
    for (int64_t i = 0; i < s->layers; i++)
        for (size_t j = 0; j < LAYER_WEIGHTS; j++) {
            const struct weight *w = &layer_weights[j];
            if (is_required(w) || (w->need == WITH_HEAD_NORM && s->head_norm))
                each(user, name_of(i, w->name).text, extent_of(s, w->rows),
                     extent_of(s, w->cols));
        }
}

/* Allocates a contiguous tensor, a vector if `rows` is 0, in a buffer that is freed with
 * the model. */
static bool make(struct llama *l, uint32_t flags, int32_t dtype, int64_t rows, int64_t cols,
                 struct hw_tensor *tensor, struct fault *why)
{
    const int64_t extents[] = { rows, cols };
    if (hw_tensor_alloc(l->device, flags, dtype, rows ? 2 : 1, rows ? extents : extents + 1,
                        tensor))
        return failed("no room for the model", why);
    l->buffers[l->buffer_count++] = tensor->buffer;
    return true;
}

static bool check_weight(const struct gguf *file, const struct gguf_tensor *from,
                         int64_t rows, int64_t cols, struct fault *why)
{
    if (from->extents[0] != (uint64_t)cols || from->extents[1] != (uint64_t)rows ||
        from->extents[2] != 1 || from->extents[3] != 1)
        return fault(why,
                     "%s: tensor '%.*s' at byte %zu is %" PRIu64 " x %" PRIu64 " x %" PRIu64
                     " x %" PRIu64 ", the metadata requires %" PRId64 " x %" PRId64
                     "; convert the model again",
                     file->path, (int)from->name.length, from->name.bytes, from->offset,
                     from->extents[0], from->extents[1], from->extents[2], from->extents[3],
                     cols, rows);
    const int32_t dtype = dtype_of(from->type);
    if (!dtype || (rows == 1 && hw_dtype_block(dtype) != 1))
        return fault(why,
                     "%s: tensor '%.*s' at byte %zu has type %s, which is not supported%s; "
                     "use a file in which it is %s",
                     file->path, (int)from->name.length, from->name.bytes, from->offset,
                     gguf_type_name(from->type), dtype ? " for a vector" : "",
                     dtypes_for(rows == 1 ? 1 : (uint64_t)cols).text);
    return true;
}

/* A device that shares the host's memory may read the weights in the file, so that they are
 * neither copied nor in memory twice. For another device, or if the plugin cannot import the
 * memory of a file, they are uploaded. */
static bool import_file(struct llama *l, const struct gguf *file, struct fault *why)
{
    struct hw_device_info info = { .size = sizeof info };
    const struct hw_import desc = { .size = sizeof desc,
                                    .flags = HW_BUFFER_READ_ONLY,
                                    .kind = "host",
                                    .handle = (void *)(uintptr_t)file->bytes,
                                    .bytes = file->size };
    if (hw_device_info(l->device, &info))
        return failed("ask for facts about the device", why);
    l->joins = !(info.features & HW_FEATURE_UNIFIED_MEMORY);
    if (file->bytes && info.features & HW_FEATURE_UNIFIED_MEMORY)
        (void)hw_buffer_import(l->device, &desc, &l->mapping);
    return true;
}

/* Makes `to` a view of the file. Returns false if the weight has to be copied: it is
 * converted, or lies where its type may not. */
static bool use_in_place(struct llama *l, const struct gguf *file,
                         const struct gguf_tensor *from, int32_t dtype, int32_t rank,
                         struct hw_tensor *to)
{
    const int64_t extents[] = { (int64_t)from->extents[1], (int64_t)from->extents[0] };
    if (!l->mapping || dtype != dtype_of(from->type))
        return false;
    const uint64_t offset = (uint64_t)((const uint8_t *)from->data - file->bytes);
    if (hw_tensor_view(to, l->mapping, offset, dtype, rank, extents + 2 - rank))
        return false;
    l->memory.mapped += from->bytes;
    return true;
}

/* The rows of a matrix of a layer, and of those behind it in the table that join it in memory, so
 * that a prompt is multiplied by all of them at once. One of another type, or that would lie where
 * a buffer may not begin, ends them. */
static int64_t joined_rows(const struct llama *l, const struct gguf *file, int64_t layer,
                           const struct weight *weight, const struct gguf_tensor *first)
{
    enum { ALIGNMENT = 256 };
    const uint64_t bytes = first->bytes / first->extents[1];
    int64_t rows = extent_of(&l->shape, weight->rows);
    const struct weight *end = layer_weights + LAYER_WEIGHTS;
    while (l->joins && ++weight < end && weight->need == JOINS &&
           (uint64_t)rows * bytes % ALIGNMENT == 0) {
        const struct gguf_tensor *from = gguf_tensor(file,
                                                     name_of(layer, weight->name).text);
        if (!from || from->type != first->type)
            break;
        rows += extent_of(&l->shape, weight->rows);
    }
    return rows;
}

/* Makes `to` a view of the memory behind the matrix before, if that was made with room for it. */
static bool use_room(const struct hw_tensor *before, int32_t dtype, int64_t rows,
                     int64_t cols, struct hw_tensor *to)
{
    const int64_t extents[] = { rows, cols };
    const uint64_t at = before->offset + hw_tensor_bytes(before);
    return before->dtype == dtype && at < hw_buffer_bytes(before->buffer) &&
           !hw_tensor_view(to, before->buffer, at, dtype, 2, extents);
}

/* A weight of the file: of a layer, or if that is -1, of the model. */
struct place {
    const struct gguf *file;
    int64_t layer;
    const struct weight *weight;
};

static struct hw_tensor *tensor_at(struct llama *l, int64_t layer, size_t offset)
{
    char *owner = layer < 0 ? (char *)l : (char *)&l->layers[layer];
    return (struct hw_tensor *)(owner + offset);
}

/* Allocates a weight that the device does not read in the file, or takes its part of the memory
 * allocated for the previous one. Kernels may read it before earlier work is done. */
static bool make_weight(struct llama *l, const struct place *place,
                        const struct gguf_tensor *from, int32_t dtype, struct hw_tensor *to,
                        struct fault *why)
{
    const struct weight *weight = place->weight;
    const int64_t rows = extent_of(&l->shape, weight->rows);
    const int64_t cols = extent_of(&l->shape, weight->cols);
    if (weight->rows == ONE)
        return make(l, HW_BUFFER_READ_ONLY, dtype, 0, cols, to, why);
    if (weight->need == JOINS &&
        use_room(tensor_at(l, place->layer, weight[-1].offset), dtype, rows, cols, to))
        return true;
    const int64_t all = place->layer < 0
                            ? rows
                            : joined_rows(l, place->file, place->layer, weight, from);
    const bool good = make(l, HW_BUFFER_READ_ONLY, dtype, all, cols, to, why);
    to->extent[0] = rows;
    return good;
}

/* Places a weight, in the file or in memory to upload it to; an optional one may be
 * absent. */
static bool add_weight(struct llama *l, const struct place *place, struct fault *why)
{
    const struct gguf *file = place->file;
    const struct weight *weight = place->weight;
    const struct weight_name name = name_of(place->layer, weight->name);
    const struct gguf_tensor *from = gguf_tensor(file, name.text);
    struct hw_tensor *to = tensor_at(l, place->layer, weight->offset);
    if (weight->need == WITH_HEAD_NORM && !l->shape.head_norm)
        return true; /* if the file has it, none_is_left() finds it */
    if (!from)
        return weight->need == OPTIONAL ||
               fault(why, "%s: tensor '%s' is missing; convert the model again", file->path,
                     name.text);
    if (!check_weight(file, from, extent_of(&l->shape, weight->rows),
                      extent_of(&l->shape, weight->cols), why))
        return false;
    const bool vector = weight->rows == ONE;
    const int32_t dtype = vector ? HW_F32 : dtype_of(from->type);
    if (!use_in_place(l, file, from, dtype, vector ? 1 : 2, to) &&
        !make_weight(l, place, from, dtype, to, why))
        return false;
    l->sources[l->source_count++] = (struct source){ *to, from };
    return true;
}

/* Checks that every tensor is used. An unused one, such as a bias or a layer past block_count,
 * would be a part of the model left out. */
static bool none_is_left(const struct llama *l, const struct gguf *file, struct fault *why)
{
    bool *used = calloc(file->tensor_count + 1, sizeof *used);
    size_t i = 0;
    if (!used)
        return fault(why, "%s: out of memory", file->path);
    for (size_t k = 0; k < l->source_count; k++)
        used[l->sources[k].tensor - file->tensors] = true;
    while (i < file->tensor_count && used[i])
        i++;
    free(used);
    const struct gguf_tensor *tensor = &file->tensors[i];
    return i == file->tensor_count ||
           fault(why,
                 "%s: tensor '%.*s' at byte %zu is not used by a '%s' of %" PRId64
                 " blocks; convert the model again, or use another",
                 file->path, (int)tensor->name.length, tensor->name.bytes, tensor->offset,
                 l->shape.architecture, l->shape.layers);
}

static bool add_weights(struct llama *l, const struct gguf *file, struct fault *why)
{
    if (!import_file(l, file, why))
        return false;
    for (size_t i = 0; i < MODEL_WEIGHTS; i++)
        if (!add_weight(l, &(struct place){ file, -1, &model_weights[i] }, why))
            return false;
    for (int64_t i = 0; i < l->shape.layers; i++)
        for (size_t j = 0; j < LAYER_WEIGHTS; j++)
            if (!add_weight(l, &(struct place){ file, i, &layer_weights[j] }, why))
                return false;
    if (!l->output.dtype)
        l->output = l->embedding; /* the embedding is also the output */
    return none_is_left(l, file, why);
}

/* Uploads the weights that the device does not read in the file. */
static bool upload(struct llama *l, const struct gguf *file,
                   const struct llama_settings *settings, struct fault *why)
{
    struct upload_item *items = calloc(l->source_count + 1, sizeof *items);
    struct upload all = { .queue = l->queue,
                          .items = items,
                          .name = file->path,
                          .file = file->fd,
                          .bytes = file->bytes,
                          .progress = settings->progress,
                          .user = settings->user };
    if (!items)
        return fault(why, "out of memory");
    for (size_t i = 0; i < l->source_count; i++) {
        const struct source *source = &l->sources[i];
        if (source->weight.buffer == l->mapping)
            continue;
        items[all.count++] = (struct upload_item){ source->tensor->data,
                                                   dtype_of(source->tensor->type),
                                                   source->weight };
        l->memory.uploaded += source->tensor->bytes;
    }
    const double start = now();
    const bool good = upload_run(&all, why);
    l->memory.upload_seconds = now() - start;
    free(items);
    return good;
}

/* Fills the weights of a model without data with random numbers. */
static bool make_weights(struct llama *l, struct fault *why)
{
    struct random_pool pool = { .queue = l->queue };
    bool good = true;
    for (size_t i = 0; good && i < l->source_count; i++)
        good = random_fill(&pool, &l->sources[i].weight, why);
    if (hw_queue_wait(l->queue) && good)
        good = failed("make random weights", why);
    random_close(&pool);
    return good;
}

/* ---- Cache and scratch --------------------------------------------------------------- */

static bool check_head(const char *what, int64_t width, int32_t dtype, struct fault *why)
{
    const int64_t block = hw_dtype_block(dtype);
    return width % block == 0 ||
           fault(why,
                 "%s of %" PRId64 " elements are not whole %s blocks of %" PRId64
                 "; use f32, f16 or bf16 for the KV cache",
                 what, width, hw_dtype_name(dtype), block);
}

static bool add_cache(struct llama *l, const struct llama_settings *settings,
                      struct fault *why)
{
    const struct shape *s = &l->shape;
    const int32_t key_type = settings->key_type ? settings->key_type : HW_F32;
    const int32_t value_type = settings->value_type ? settings->value_type : HW_F32;
    if (!check_head("keys", s->key_width, key_type, why) ||
        !check_head("values", s->value_width, value_type, why))
        return false;
    for (int64_t i = 0; i < s->layers; i++) {
        struct layer *layer = &l->layers[i];
        if (!make(l, 0, key_type, l->context, extent_of(s, KEYS), &layer->keys, why) ||
            !make(l, 0, value_type, l->context, extent_of(s, VALUES), &layer->values, why))
            return false;
    }
    return true;
}

/* Scratch tensors of a step, with a row for each token: [batch, ..]. */
static const struct row {
    size_t offset; /* of the tensor in struct llama */
    enum extent cols;
    bool joins; /* the one before, if the matrices do whose products they are */
} scratch_rows[] = {
    { offsetof(struct llama, residual), WIDTH, false },
    { offsetof(struct llama, normed), WIDTH, false },
    { offsetof(struct llama, q), QUERIES, false },
    { offsetof(struct llama, k), KEYS, true },
    { offsetof(struct llama, v), VALUES, true },
    { offsetof(struct llama, attended), ATTENDED, false },
    { offsetof(struct llama, gate), INNER, false },
    { offsetof(struct llama, up), INNER, true },
};
enum { ROWS = sizeof scratch_rows / sizeof *scratch_rows };

/* Makes the tensor of a row, or several that share their rows. Sets how many. */
static bool add_rows(struct llama *l, const struct row *first, size_t *count,
                     struct fault *why)
{
    const struct row *end = first + 1;
    int64_t cols = extent_of(&l->shape, first->cols), begin = 0;
    struct hw_tensor whole;
    for (; l->joins && end < scratch_rows + ROWS && end->joins; end++)
        cols += extent_of(&l->shape, end->cols);
    if (!make(l, 0, HW_F32, l->batch, cols, &whole, why))
        return false;
    *count = (size_t)(end - first);
    for (const struct row *row = first; row < end; row++) {
        const int64_t own = extent_of(&l->shape, row->cols);
        if (hw_tensor_slice(tensor_at(l, -1, row->offset), &whole, 1, begin, begin + own))
            return failed("no room for the model", why);
        begin += own;
    }
    return true;
}

static bool add_scratch(struct llama *l, struct fault *why)
{
    for (size_t i = 0, count; i < ROWS; i += count)
        if (!add_rows(l, &scratch_rows[i], &count, why))
            return false;
    const int64_t inputs = 1 + 2 * l->batch;
    for (int i = 0; i < STEPS; i++)
        if (slot_open(&l->slots[i], l->queue, (size_t)(inputs + 1) * sizeof(int32_t)))
            return failed("no room for the model", why);
    /* Zeros, so that llama_advance() of a sequence without tokens has a valid id. */
    return make(l, HW_BUFFER_ZEROED, HW_I32, 0, inputs, &l->inputs, why) &&
           make(l, 0, HW_F32, l->score_rows, l->shape.vocabulary, &l->scores, why);
}

/* ---- Loading ------------------------------------------------------------------------- */

/* Records the step of one token. This fails if the device cannot compute it, before anything is
 * uploaded. */
bool llama_record(struct llama *l, struct fault *why)
{
    if (hw_queue_record(l->queue) || llama_step(l, 1))
        return fault(why, "%s: record the decode step: %s", l->file->path, hw_message());
    const enum hw_status status = hw_queue_end(l->queue, &l->graph);
    if (status && status != HW_UNSUPPORTED)
        return failed("build the graph of the decode step", why);
    return true;
}

/* Packs the matrices, and records the step with them. */
static bool pack(struct llama *l, const struct llama_settings *settings, struct fault *why)
{
    if (!settings->pack)
        return true;
    hw_graph_free(l->graph); /* it uses the matrices as they are */
    l->graph = NULL;
    return llama_pack(l, settings, why) && llama_record(l, why);
}

static bool pool_used(struct llama *l, uint64_t *used, struct fault *why)
{
    struct hw_pool_stats stats = { .size = sizeof stats };
    if (hw_pool_stats(l->device, &stats))
        return failed("ask for the memory in use", why);
    *used = stats.used;
    return true;
}

/* A large batch if the device has memory of its own, and if the batch takes only a small part of
 * the memory that weights and cache leave. */
static int64_t default_batch(const struct llama *l, uint64_t used)
{
    struct hw_device_info info = { .size = sizeof info };
    uint64_t bytes = 0;
    if (hw_device_info(l->device, &info) || info.features & HW_FEATURE_UNIFIED_MEMORY ||
        used > info.memory_total)
        return SMALL_BATCH;
    for (size_t i = 0; i < ROWS; i++)
        bytes += (uint64_t)extent_of(&l->shape, scratch_rows[i].cols) * sizeof(float);
    return bytes * LARGE_BATCH > (info.memory_total - used) / 4 ? SMALL_BATCH : LARGE_BATCH;
}

static void choose_batch(struct llama *l, const struct llama_settings *settings,
                         uint64_t used)
{
    l->batch = at_most(settings->batch > 0 ? settings->batch : default_batch(l, used),
                       l->context);
    l->score_rows = at_most(settings->score_rows > 0 ? settings->score_rows : 1, l->batch);
}

static bool add_tensors(struct llama *l, const struct gguf *file,
                        const struct llama_settings *settings, struct fault *why)
{
    uint64_t at[4];
    if (!pool_used(l, &at[0], why) || !add_weights(l, file, why) ||
        !pool_used(l, &at[1], why) || !add_cache(l, settings, why) ||
        !pool_used(l, &at[2], why))
        return false;
    choose_batch(l, settings, at[2]);
    if (!add_scratch(l, why) || !pool_used(l, &at[3], why))
        return false;
    l->memory.weights = at[1] - at[0];
    l->memory.cache = at[2] - at[1];
    l->memory.scratch = at[3] - at[2];
    return true;
}

/* Allocates the tables whose sizes follow from the number of layers. Each layer needs tensors in
 * the file, so an impossible number is refused first. */
static bool add_tables(struct llama *l, const struct gguf *file, struct fault *why)
{
    if (l->shape.layers > (int64_t)file->tensor_count)
        return fault(why,
                     "%s: the metadata has %" PRId64
                     " layers, but there are only %zu tensors; convert the model again",
                     file->path, l->shape.layers, file->tensor_count);
    const size_t layers = (size_t)l->shape.layers;
    const size_t weights = MODEL_WEIGHTS + layers * LAYER_WEIGHTS;
    l->layers = calloc(layers, sizeof *l->layers);
    l->sources = calloc(weights, sizeof *l->sources);
    /* Weights in the mapped file have no buffer of their own before they are packed. */
    l->buffers = calloc(2 * weights + 2 * layers + SCRATCH_TENSORS, sizeof *l->buffers);
    return (l->layers && l->sources && l->buffers) || fault(why, "out of memory");
}

static bool choose_context(struct llama *l, const struct llama_settings *settings,
                           struct fault *why)
{
    l->context = settings->context ? settings->context : l->shape.context;
    if (l->context < 1 || l->context > l->shape.context)
        return fault(why,
                     "a context of %" PRId64
                     " tokens is asked for, the model has 1 to %" PRId64,
                     l->context, l->shape.context);
    return true;
}

struct llama *llama_load(const struct gguf *file, const struct shape *shape,
                         struct hw_device *device, const struct llama_settings *settings,
                         struct fault *why)
{
    struct llama *l = calloc(1, sizeof *l);
    if (!l) {
        fault_say(why, "out of memory");
        return NULL;
    }
    l->shape = *shape;
    l->device = device;
    l->file = file;
    l->heads_type = settings->heads_type ? settings->heads_type : HW_F32;
    l->inner_bf16 = settings->inner_bf16;
    if (hw_queue_open(device, NULL, &l->queue))
        failed("open a queue", why);
    else if (choose_context(l, settings, why) && add_tables(l, file, why) &&
             add_tensors(l, file, settings, why) && llama_record(l, why) &&
             (file->bytes ? upload(l, file, settings, why) : make_weights(l, why)) &&
             pack(l, settings, why))
        return l;
    llama_free(l);
    return NULL;
}

void llama_free(struct llama *l)
{
    if (!l)
        return;
    hw_graph_free(l->graph);
    hw_queue_close(l->queue); /* waits, so that nothing uses the buffers any more */
    for (int i = 0; i < STEPS; i++)
        slot_close(&l->slots[i]);
    for (size_t i = 0; i < l->buffer_count; i++)
        hw_buffer_free(l->buffers[i]);
    hw_buffer_free(l->mapping);
    free(l->buffers);
    free(l->sources);
    free(l->layers);
    free(l);
}
