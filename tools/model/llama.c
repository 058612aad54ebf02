/* SPDX-License-Identifier: MIT */
/* llama.c - the decoder of LLaMA (Touvron et al., 2023, arXiv 2302.13971) as a list of ops:
 * grouped query attention with rotary positions and a cache, then a gated feed-forward
 * part. Each is preceded by an rmsnorm, and its result is added to the residual stream. */
#include "llama.h"
#include "clock.h"
#include "dtype.h"
#include "random.h"
#include "slot.h"
#include "upload.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tokens of a prompt that are processed at once: enough to keep a large GPU busy, or a CPU. */
enum { LARGE_BATCH = 2048, SMALL_BATCH = 512 };

/* Steps that may be submitted before the first of them has completed. */
enum { STEPS = 4 };

struct layer {
    struct hw_tensor attention_norm, q, k, v, q_bias, k_bias, v_bias, output;
    struct hw_tensor q_norm, k_norm;
    struct hw_tensor inner_norm, gate, up, down;
    struct hw_tensor keys, values; /* the cache: [context, kv_heads * width of a head] */
};

/* A weight, and the tensor of the file that it is. */
struct source {
    struct hw_tensor weight;
    const struct gguf_tensor *tensor;
};

struct llama {
    struct shape shape;
    struct hw_device *device;
    struct hw_queue *queue;
    struct hw_graph *graph;
    int64_t context, batch, score_rows;
    int64_t length; /* tokens in the cache */

    struct hw_tensor embedding, rope_factors, norm, output;
    struct layer *layers;

    struct hw_tensor residual, normed, q, k, v, attended, gate, up; /* [batch, ..] */
    struct hw_tensor scores; /* [score rows, vocabulary] */
    /* i32: the length of the cache, then positions, then ids. A step ends by writing the best
     * token where the next step of one token has its id. */
    struct hw_tensor inputs;
    /* what is uploaded to it, and behind that the best token; steps take turns */
    struct slot slots[STEPS];
    uint64_t steps, answers; /* submitted; taken by llama_next() */

    /* the file, if the device reads it where it is; otherwise NULL */
    struct hw_buffer *mapping;
    struct hw_buffer **buffers; /* of all other tensors */
    size_t buffer_count;
    struct source *sources;
    size_t source_count;
    struct llama_memory memory;
};

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

/* Whether a file must have a weight. */
enum need { REQUIRED, OPTIONAL, WITH_HEAD_NORM };

struct weight {
    const char *name;
    size_t offset;          /* of the tensor in struct layer or struct llama */
    enum extent rows, cols; /* rows ONE: a vector, which is f32 on the device */
    enum need need;
};

static const struct weight layer_weights[] = {
    { "attn_norm.weight", offsetof(struct layer, attention_norm), ONE, WIDTH, REQUIRED },
    { "attn_q.weight", offsetof(struct layer, q), QUERIES, WIDTH, REQUIRED },
    { "attn_k.weight", offsetof(struct layer, k), KEYS, WIDTH, REQUIRED },
    { "attn_v.weight", offsetof(struct layer, v), VALUES, WIDTH, REQUIRED },
    { "attn_q.bias", offsetof(struct layer, q_bias), ONE, QUERIES, OPTIONAL },
    { "attn_k.bias", offsetof(struct layer, k_bias), ONE, KEYS, OPTIONAL },
    { "attn_v.bias", offsetof(struct layer, v_bias), ONE, VALUES, OPTIONAL },
    { "attn_q_norm.weight", offsetof(struct layer, q_norm), ONE, HEAD, WITH_HEAD_NORM },
    { "attn_k_norm.weight", offsetof(struct layer, k_norm), ONE, HEAD, WITH_HEAD_NORM },
    { "attn_output.weight", offsetof(struct layer, output), WIDTH, ATTENDED, REQUIRED },
    { "ffn_norm.weight", offsetof(struct layer, inner_norm), ONE, WIDTH, REQUIRED },
    { "ffn_gate.weight", offsetof(struct layer, gate), INNER, WIDTH, REQUIRED },
    { "ffn_up.weight", offsetof(struct layer, up), INNER, WIDTH, REQUIRED },
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

/* The name of a layer's weight in a file. */
struct weight_name {
    char text[GGUF_MAX_NAME + 1];
};

static struct weight_name name_in_layer(int64_t layer, const char *name)
{
    struct weight_name full;
    snprintf(full.text, sizeof full.text, "blk.%" PRId64 ".%s", layer, name);
    return full;
}

void llama_weights(const struct shape *s, llama_weight_fn *each, void *user)
{
    for (size_t i = 0; i < MODEL_WEIGHTS; i++) {
        const struct weight *w = &model_weights[i];
        if (w->need == REQUIRED || w->offset == offsetof(struct llama, output))
            each(user, w->name, extent_of(s, w->rows), extent_of(s, w->cols));
    }
    for (int64_t i = 0; i < s->layers; i++)
        for (size_t j = 0; j < LAYER_WEIGHTS; j++) {
            const struct weight *w = &layer_weights[j];
            if (w->need == REQUIRED || (w->need == WITH_HEAD_NORM && s->head_norm))
                each(user, name_in_layer(i, w->name).text, extent_of(s, w->rows),
                     extent_of(s, w->cols));
        }
}

static bool failed(const char *what, struct fault *why)
{
    return fault(why, "%s: %s", what, hw_message());
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

/* Places a weight, in the file or in memory to upload it to; an optional one may be
 * absent. */
static bool add_weight(struct llama *l, const struct gguf *file, const char *name,
                       const struct weight *weight, void *owner, struct fault *why)
{
    const int64_t rows = extent_of(&l->shape, weight->rows);
    const int64_t cols = extent_of(&l->shape, weight->cols);
    const struct gguf_tensor *from = gguf_tensor(file, name);
    struct hw_tensor *to = (struct hw_tensor *)((char *)owner + weight->offset);
    if (weight->need == WITH_HEAD_NORM && !l->shape.head_norm)
        return true; /* if the file has it, none_is_left() finds it */
    if (!from)
        return weight->need == OPTIONAL ||
               fault(why, "%s: tensor '%s' is missing; convert the model again", file->path,
                     name);
    if (!check_weight(file, from, rows, cols, why))
        return false;
    const bool vector = weight->rows == ONE;
    const int32_t dtype = vector ? HW_F32 : dtype_of(from->type);
    /* Kernels may read it before the work in front of them is done. */
    if (!use_in_place(l, file, from, dtype, vector ? 1 : 2, to) &&
        !make(l, HW_BUFFER_READ_ONLY, dtype, vector ? 0 : rows, cols, to, why))
        return false;
    l->sources[l->source_count++] = (struct source){ *to, from };
    return true;
}

/* Checks that every tensor is used. One that is not would be a part of the model left out:
 * a layer past block_count, a bias. */
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
        if (!add_weight(l, file, model_weights[i].name, &model_weights[i], l, why))
            return false;
    for (int64_t i = 0; i < l->shape.layers; i++)
        for (size_t j = 0; j < LAYER_WEIGHTS; j++)
            if (!add_weight(l, file, name_in_layer(i, layer_weights[j].name).text,
                            &layer_weights[j], &l->layers[i], why))
                return false;
    if (!l->output.dtype)
        l->output = l->embedding; /* the embedding is also the output */
    return none_is_left(l, file, why);
}

/* Uploads the weights that the device does not read in the file. */
static bool upload(struct llama *l, const struct llama_settings *settings,
                   struct fault *why)
{
    struct upload_item *items = calloc(l->source_count + 1, sizeof *items);
    struct upload all = { .queue = l->queue,
                          .items = items,
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

/* Makes up the weights of a model without data. */
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

/* What a step needs for each token: [batch, ..]. */
static const struct row {
    size_t offset; /* of the tensor in struct llama */
    enum extent cols;
} scratch_rows[] = {
    { offsetof(struct llama, residual), WIDTH },
    { offsetof(struct llama, normed), WIDTH },
    { offsetof(struct llama, q), QUERIES },
    { offsetof(struct llama, k), KEYS },
    { offsetof(struct llama, v), VALUES },
    { offsetof(struct llama, attended), ATTENDED },
    { offsetof(struct llama, gate), INNER },
    { offsetof(struct llama, up), INNER },
};
enum { ROWS = sizeof scratch_rows / sizeof *scratch_rows };

static bool add_scratch(struct llama *l, struct fault *why)
{
    for (size_t i = 0; i < ROWS; i++)
        if (!make(l, 0, HW_F32, l->batch, extent_of(&l->shape, scratch_rows[i].cols),
                  (struct hw_tensor *)((char *)l + scratch_rows[i].offset), why))
            return false;
    const int64_t inputs = 1 + 2 * l->batch;
    for (int i = 0; i < STEPS; i++)
        if (slot_open(&l->slots[i], l->queue, (size_t)(inputs + 1) * sizeof(int32_t)))
            return failed("no room for the model", why);
    /* Zeros, so that llama_advance() of a sequence without tokens has a valid id. */
    return make(l, HW_BUFFER_ZEROED, HW_I32, 0, inputs, &l->inputs, why) &&
           make(l, 0, HW_F32, l->score_rows, l->shape.vocabulary, &l->scores, why);
}

/* ---- The decoder --------------------------------------------------------------------- */

/* `count` rows of a contiguous tensor, from `begin` on. */
static struct hw_tensor rows_of(struct hw_tensor tensor, int64_t begin, int64_t count)
{
    tensor.offset += (uint64_t)(begin * tensor.stride[0]);
    tensor.extent[0] = count;
    return tensor;
}

/* [rows, heads * width] as [rows, heads, width]. */
static struct hw_tensor by_head(struct hw_tensor tensor, int64_t heads)
{
    tensor.rank = 3;
    tensor.extent[2] = tensor.extent[1] / heads;
    tensor.extent[1] = heads;
    tensor.stride[2] = tensor.stride[1];
    tensor.stride[1] = tensor.stride[0] / heads;
    return tensor;
}

/* The positions and the ids of a batch of `rows`. */
static struct hw_tensor positions_of(const struct llama *l, int64_t rows)
{
    return rows_of(l->inputs, 1, rows);
}

static struct hw_tensor ids_of(const struct llama *l, int64_t rows)
{
    return rows_of(l->inputs, 1 + rows, rows);
}

/* The id of the next step, if that has one token. */
static struct hw_tensor best_of(const struct llama *l)
{
    return ids_of(l, 1);
}

/* y = x . weight^T + bias */
static enum hw_status project(struct llama *l, struct hw_tensor x,
                              const struct hw_tensor *weight, const struct hw_tensor *bias,
                              struct hw_tensor y)
{
    struct hw_matmul op = { .a = x, .b = *weight, .c = y, .transpose_b = 1 };
    if (bias)
        op.bias = *bias;
    return hw_matmul(l->queue, &op);
}

/* Applies rope to queries or keys, [rows, heads * width], in place. */
static enum hw_status rotate(struct llama *l, struct hw_tensor x, int64_t heads)
{
    const struct hw_rope op = {
        .x = by_head(x, heads),
        .positions = positions_of(l, x.extent[0]),
        .factors = l->rope_factors,
        .y = by_head(x, heads),
        .dims = (int32_t)l->shape.rope_dims,
        .interleaved = l->shape.interleaved,
        .theta = l->shape.theta,
        .scale = l->shape.rope_scale,
        .magnitude = l->shape.magnitude,
        .context = l->shape.rope_context,
        .yarn = l->shape.yarn,
        .beta_fast = l->shape.beta_fast,
        .beta_slow = l->shape.beta_slow,
    };
    return hw_rope(l->queue, &op);
}

/* Norms each head of queries or keys in place, if the model does so. */
static enum hw_status norm_heads(struct llama *l, struct hw_tensor x, int64_t heads,
                                 struct hw_tensor weight)
{
    const struct hw_rmsnorm op = {
        .x = by_head(x, heads),
        .weight = weight,
        .y = by_head(x, heads),
        .eps = l->shape.eps,
    };
    return l->shape.head_norm ? hw_rmsnorm(l->queue, &op) : HW_OK;
}

/* Stores keys or values in the cache, at their positions. */
static enum hw_status cache(struct llama *l, struct hw_tensor x, struct hw_tensor table)
{
    const struct hw_set_rows op = { x, positions_of(l, x.extent[0]), table };
    return hw_set_rows(l->queue, &op);
}

/* normed = attention(normed) . output^T */
static enum hw_status attend(struct llama *l, const struct layer *layer, int64_t rows)
{
    const struct shape *s = &l->shape;
    const struct hw_tensor x = rows_of(l->normed, 0, rows),
                           y = rows_of(l->attended, 0, rows);
    const struct hw_tensor q = rows_of(l->q, 0, rows), k = rows_of(l->k, 0, rows);
    const struct hw_tensor v = rows_of(l->v, 0, rows);
    const struct hw_attention op = {
        .q = by_head(q, s->heads),
        .k = by_head(layer->keys, s->kv_heads),
        .v = by_head(layer->values, s->kv_heads),
        .lengths = rows_of(l->inputs, 0, 1),
        .y = by_head(y, s->heads),
        .window = s->window,
        .causal = 1,
    };
    enum hw_status status;
    if ((status = project(l, x, &layer->q, &layer->q_bias, q)) ||
        (status = project(l, x, &layer->k, &layer->k_bias, k)) ||
        (status = project(l, x, &layer->v, &layer->v_bias, v)) ||
        (status = norm_heads(l, q, s->heads, layer->q_norm)) ||
        (status = norm_heads(l, k, s->kv_heads, layer->k_norm)) ||
        (status = rotate(l, q, s->heads)) || (status = rotate(l, k, s->kv_heads)) ||
        (status = cache(l, k, layer->keys)) || (status = cache(l, v, layer->values)) ||
        (status = hw_attention(l->queue, &op)))
        return status;
    return project(l, y, &layer->output, NULL, x);
}

/* residual += normed, and normed = rmsnorm of that. */
static enum hw_status add_and_norm(struct llama *l, struct hw_tensor weight, int64_t rows)
{
    const struct hw_tensor x = rows_of(l->normed, 0, rows);
    const struct hw_add_rmsnorm op = {
        .residual = rows_of(l->residual, 0, rows),
        .x = x,
        .weight = weight,
        .y = x,
        .eps = l->shape.eps,
    };
    return hw_add_rmsnorm(l->queue, &op);
}

/* normed = (silu(normed . gate^T) * (normed . up^T)) . down^T */
static enum hw_status feed_forward(struct llama *l, const struct layer *layer, int64_t rows)
{
    const struct hw_tensor x = rows_of(l->normed, 0, rows);
    const struct hw_tensor gate = rows_of(l->gate, 0, rows), up = rows_of(l->up, 0, rows);
    const struct hw_swiglu op = { .gate = gate, .up = up, .y = gate };
    enum hw_status status;
    if ((status = project(l, x, &layer->gate, NULL, gate)) ||
        (status = project(l, x, &layer->up, NULL, up)) ||
        (status = hw_swiglu(l->queue, &op)))
        return status;
    return project(l, gate, &layer->down, NULL, x);
}

/* residual = the embeddings of the ids; normed = their rmsnorm. */
static enum hw_status embed(struct llama *l, int64_t rows)
{
    const struct hw_tensor residual = rows_of(l->residual, 0, rows);
    const struct hw_get_rows look_up = { l->embedding, ids_of(l, rows), residual };
    const struct hw_rmsnorm norm = {
        .x = residual,
        .weight = l->layers[0].attention_norm,
        .y = rows_of(l->normed, 0, rows),
        .eps = l->shape.eps,
    };
    const enum hw_status status = hw_get_rows(l->queue, &look_up);
    return status ? status : hw_rmsnorm(l->queue, &norm);
}

/* From ids to the normed output of the last layer, for a batch of `rows`. */
static enum hw_status decode(struct llama *l, int64_t rows)
{
    enum hw_status status = embed(l, rows);
    for (int64_t i = 0; i < l->shape.layers && !status; i++) {
        const struct layer *layer = &l->layers[i];
        const bool last = i + 1 == l->shape.layers;
        if ((status = attend(l, layer, rows)) ||
            (status = add_and_norm(l, layer->inner_norm, rows)) ||
            (status = feed_forward(l, layer, rows)))
            return status;
        status = add_and_norm(l, last ? l->norm : layer[1].attention_norm, rows);
    }
    return status;
}

/* Computes the scores for rows begin..begin+count-1 of the batch; `count` is at most
 * score_rows. */
static enum hw_status score(struct llama *l, int64_t begin, int64_t count)
{
    return project(l, rows_of(l->normed, begin, count), &l->output, NULL,
                   rows_of(l->scores, 0, count));
}

/* Decodes a batch, and computes what its last token needs. */
static enum hw_status step(struct llama *l, int64_t rows)
{
    const struct hw_argmax op = { .x = rows_of(l->scores, 0, 1), .y = best_of(l) };
    enum hw_status status;
    if ((status = decode(l, rows)) || (status = score(l, rows - 1, 1)))
        return status;
    return hw_argmax(l->queue, &op);
}

/* Records the step of one token. This also finds out what the device cannot compute, before
 * anything is uploaded. */
static bool record(struct llama *l, const struct gguf *file, struct fault *why)
{
    if (hw_queue_record(l->queue) || step(l, 1))
        return fault(why, "%s: record the decode step: %s", file->path, hw_message());
    const enum hw_status status = hw_queue_end(l->queue, &l->graph);
    if (status && status != HW_UNSUPPORTED)
        return failed("build the graph of the decode step", why);
    return true;
}

/* ---- Loading ------------------------------------------------------------------------- */

static bool pool_used(struct llama *l, uint64_t *used, struct fault *why)
{
    struct hw_pool_stats stats = { .size = sizeof stats };
    if (hw_pool_stats(l->device, &stats))
        return failed("ask for the memory in use", why);
    *used = stats.used;
    return true;
}

static int64_t at_most(int64_t count, int64_t limit)
{
    return count < limit ? count : limit;
}

/* A large batch if the device has memory of its own, and if its tensors leave most of what the
 * weights and the cache have left. */
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

/* Allocates the tables whose sizes follow from the number of layers. Each layer needs
 * tensors in the file, so a number that cannot be true is refused first. */
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
    l->buffers = calloc(weights + 2 * layers + SCRATCH_TENSORS, sizeof *l->buffers);
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
    if (hw_queue_open(device, NULL, &l->queue))
        failed("open a queue", why);
    else if (choose_context(l, settings, why) && add_tables(l, file, why) &&
             add_tensors(l, file, settings, why) && record(l, file, why) &&
             (file->bytes ? upload(l, settings, why) : make_weights(l, why)))
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

/* ---- Running ------------------------------------------------------------------------- */

static bool check_room(const struct llama *l, int64_t count, struct fault *why)
{
    return count <= l->context - l->length ||
           fault(why,
                 "%" PRId64 " tokens after %" PRId64 " exceed the context of %" PRId64
                 "; give a shorter text or a larger context",
                 count, l->length, l->context);
}

static struct slot *slot_of(struct llama *l, uint64_t step)
{
    return &l->slots[step % STEPS];
}

/* Begins a step of `rows` tokens: uploads the new length of the cache, positions and ids. Without
 * `tokens`, the id is the best token of the step before, which is in its place already. Waits only
 * if too many steps are on their way. */
static enum hw_status send_inputs(struct llama *l, const int32_t *tokens, int64_t rows)
{
    struct slot *slot = slot_of(l, l->steps);
    const enum hw_status status = slot_wait(slot);
    if (status)
        return status;
    int32_t *inputs = slot->host;
    inputs[0] = (int32_t)(l->length + rows);
    for (int64_t i = 0; i < rows; i++)
        inputs[1 + i] = (int32_t)(l->length + i);
    for (int64_t i = 0; tokens && i < rows; i++)
        inputs[1 + rows + i] = tokens[i];
    l->length += rows;
    const struct hw_tensor to = rows_of(l->inputs, 0, 1 + (tokens ? 2 : 1) * rows);
    return hw_tensor_write(l->queue, &to, inputs, hw_tensor_bytes(&to));
}

/* Ends a step. */
static enum hw_status finish_step(struct llama *l)
{
    l->answers = ++l->steps;
    return slot_mark(slot_of(l, l->steps - 1), l->queue);
}

static enum hw_status run_step(struct llama *l, int64_t rows)
{
    return rows == 1 && l->graph ? hw_graph_launch(l->graph, l->queue) : step(l, rows);
}

bool llama_feed(struct llama *l, const int32_t *tokens, int64_t count, struct fault *why)
{
    if (!check_room(l, count, why))
        return false;
    for (int64_t rows; count > 0; tokens += rows, count -= rows) {
        rows = at_most(count, l->batch);
        if (send_inputs(l, tokens, rows) || run_step(l, rows) || finish_step(l))
            return failed("run the model", why);
    }
    return true;
}

bool llama_advance(struct llama *l, struct fault *why)
{
    const uint64_t answers = l->answers;
    struct hw_copy answer = { .src = best_of(l) };
    if (!check_room(l, 1, why))
        return false;
    if (l->steps - answers == STEPS)
        return fault(why, "%d tokens wait for llama_next()", STEPS);
    const struct slot *slot = slot_of(l, l->steps);
    if (send_inputs(l, NULL, 1) || run_step(l, 1) ||
        slot_i32(slot, (size_t)l->inputs.extent[0], &answer.dst) ||
        hw_copy(l->queue, &answer) || finish_step(l))
        return failed("run the model", why);
    l->answers = answers;
    return true;
}

bool llama_runs_ahead(const struct llama *l)
{
    struct hw_device_info info = { .size = sizeof info };
    return !hw_device_info(l->device, &info) && info.kind != HW_DEVICE_CPU;
}

bool llama_next(struct llama *l, int32_t *token, struct fault *why)
{
    struct slot *slot = slot_of(l, l->answers);
    if (l->answers == l->steps)
        return fault(why, "no llama_advance() to take a token of");
    l->answers++;
    if (slot_wait(slot))
        return failed("run the model", why);
    *token = ((const int32_t *)slot->host)[l->inputs.extent[0]];
    return true;
}

/* Copies to the host, after everything that was submitted. */
static bool fetch(struct llama *l, const struct hw_tensor *from, void *data,
                  struct fault *why)
{
    struct hw_tensor to;
    if (hw_tensor_host(&to, data, from->dtype, from->rank, from->extent) ||
        hw_copy(l->queue, &(struct hw_copy){ .src = *from, .dst = to }) ||
        hw_queue_wait(l->queue))
        return failed("run the model", why);
    return true;
}

bool llama_scores(struct llama *l, float *scores, struct fault *why)
{
    const struct hw_tensor row = rows_of(l->scores, 0, 1);
    return fetch(l, &row, scores, why);
}

bool llama_best(struct llama *l, int32_t *token, struct fault *why)
{
    const struct hw_tensor best = best_of(l);
    return fetch(l, &best, token, why);
}

/* Scores a decoded batch, as many rows at a time as there is room for. */
static bool score_batch(struct llama *l, int64_t rows, float *scores,
                        void (*row)(void *user, const float *scores), void *user,
                        struct fault *why)
{
    for (int64_t at = 0, part; at < rows; at += part) {
        part = at_most(rows - at, l->score_rows);
        const struct hw_tensor from = rows_of(l->scores, 0, part);
        if (score(l, at, part))
            return failed("run the model", why);
        if (!fetch(l, &from, scores, why))
            return false;
        for (int64_t i = 0; i < part; i++)
            row(user, scores + i * l->shape.vocabulary);
    }
    return true;
}

bool llama_score(struct llama *l, const int32_t *tokens, int64_t count,
                 void (*row)(void *user, const float *scores), void *user,
                 struct fault *why)
{
    if (!check_room(l, count, why))
        return false;
    float *scores = malloc((size_t)(l->score_rows * l->shape.vocabulary) * sizeof *scores);
    if (!scores)
        return fault(why, "out of memory");
    bool good = true;
    for (int64_t rows; good && count > 0; tokens += rows, count -= rows) {
        rows = at_most(count, l->batch);
        good = send_inputs(l, tokens, rows) || decode(l, rows) || finish_step(l)
                   ? failed("run the model", why)
                   : score_batch(l, rows, scores, row, user, why);
    }
    free(scores);
    return good;
}

bool llama_fill(struct llama *l, struct fault *why)
{
    struct random_pool pool = { .queue = l->queue };
    bool good = true;
    for (int64_t i = 0; good && i < l->shape.layers; i++)
        good = random_fill(&pool, &l->layers[i].keys, why) &&
               random_fill(&pool, &l->layers[i].values, why);
    if (hw_queue_wait(l->queue) && good)
        good = failed("fill the cache", why);
    random_close(&pool);
    return good;
}

void llama_rewind(struct llama *l, int64_t length)
{
    l->length = length;
}

int64_t llama_length(const struct llama *l)
{
    return l->length;
}

int64_t llama_context(const struct llama *l)
{
    return l->context;
}

int64_t llama_vocabulary(const struct llama *l)
{
    return l->shape.vocabulary;
}

struct llama_memory llama_memory(const struct llama *l)
{
    return l->memory;
}

struct hw_queue *llama_queue(const struct llama *l)
{
    return l->queue;
}

struct hw_graph *llama_graph(const struct llama *l)
{
    return l->graph;
}
