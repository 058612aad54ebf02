/* SPDX-License-Identifier: MIT */
/* llama.c - the decoder of LLaMA (Touvron et al., 2023, arXiv 2302.13971) as a list of ops:
 * grouped query attention with rotary positions and a cache, then a gated feed-forward
 * part. Each is preceded by an rmsnorm, and its result is added to the residual stream. */
#include "llama_state.h"
#include "random.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- The decoder --------------------------------------------------------------------- */

/* `count` rows of a contiguous tensor, from `begin` on. */
static struct hw_tensor rows_of(struct hw_tensor tensor, int64_t begin, int64_t count)
{
    tensor.offset += (uint64_t)(begin * tensor.stride[0]);
    tensor.extent[0] = count;
    return tensor;
}

/* A tensor of f32, from the start of its buffer or beside others in its rows, as one of another
 * type in the same memory. */
static struct hw_tensor stored_as(int32_t dtype, struct hw_tensor tensor)
{
    const uint64_t bytes = (uint64_t)hw_dtype_bytes(dtype);
    tensor.dtype = dtype;
    tensor.offset = tensor.offset / sizeof(float) * bytes;
    for (int32_t i = 0; i < tensor.rank; i++)
        tensor.stride[i] = tensor.stride[i] / (int64_t)sizeof(float) * (int64_t)bytes;
    return tensor;
}

/* Large batches may have activations in 16 bits, which take half as long to write and to read.
 * Small batches keep f32, because devices combine ops of f32, and round a row to 8 bits once. Tuned
 * kernels need rows that are a multiple of 16 bytes. */
static bool fits_16_bits(int64_t rows, int64_t cols)
{
    return rows >= LLAMA_LARGE && cols % 8 == 0;
}

/* The type of queries, keys, values and the output of attention. f32 if heads are normed: before
 * the norm, elements may be too large for f16. */
static int32_t heads_type(const struct llama *l, int64_t rows)
{
    const struct shape *s = &l->shape;
    const bool fits = fits_16_bits(rows, s->key_width) &&
                      fits_16_bits(rows, s->value_width);
    return fits && !s->head_norm ? l->heads_type : HW_F32;
}

/* The type of gate and up. */
static int32_t inner_type(const struct llama *l, const struct layer *layer, int64_t rows)
{
    const uint32_t types = 1u << layer->gate.dtype | 1u << layer->up.dtype |
                           1u << layer->down.dtype;
    const bool fits = fits_16_bits(rows, l->shape.inner);
    return fits && (types & ~l->inner_bf16) == 0 ? HW_BF16 : HW_F32;
}

/* [rows, heads * width] as [rows, heads, width]. */
static struct hw_tensor by_head(struct hw_tensor tensor, int64_t heads)
{
    tensor.rank = 3;
    tensor.extent[2] = tensor.extent[1] / heads;
    tensor.extent[1] = heads;
    tensor.stride[2] = tensor.stride[1];
    tensor.stride[1] = tensor.extent[2] / hw_dtype_block(tensor.dtype) *
                       hw_dtype_bytes(tensor.dtype);
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
struct projection {
    struct hw_tensor weight, bias, y;
};

static enum hw_status project(struct llama *l, struct hw_tensor x, struct projection p)
{
    const struct hw_matmul op = {
        .a = x, .b = p.weight, .bias = p.bias, .c = p.y, .transpose_b = 1
    };
    return hw_matmul(l->queue, &op);
}

/* Makes `next` part of `first` if both are neighbours in memory. */
static bool join(struct projection *first, const struct projection *next)
{
    const struct hw_tensor *b = &first->weight, *c = &first->y;
    const uint64_t rows = (uint64_t)(b->extent[0] * b->stride[0]);
    const uint64_t cols = (uint64_t)(c->extent[1] * c->stride[1]);
    if (b->buffer != next->weight.buffer || b->offset + rows != next->weight.offset ||
        b->dtype != next->weight.dtype || b->layout || next->weight.layout ||
        c->buffer != next->y.buffer || c->offset + cols != next->y.offset ||
        first->bias.dtype || next->bias.dtype)
        return false;
    first->weight.extent[0] += next->weight.extent[0];
    first->y.extent[1] += next->y.extent[1];
    return true;
}

/* Projections of the same x. For a prompt, adjoining weights make one product. For a single row,
 * graphs combine the products, also of different types. */
static enum hw_status project_all(struct llama *l, struct hw_tensor x,
                                  const struct projection *all, int count)
{
    enum hw_status status = HW_OK;
    for (int i = 0; i < count && !status;) {
        struct projection p = all[i++];
        while (x.extent[0] > 1 && i < count && join(&p, &all[i]))
            i++;
        status = project(l, x, p);
    }
    return status;
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

/* The last rows of a batch, whose output is needed. */
struct last {
    int64_t begin, count;
};

/* normed = attention(normed) . output^T, for the last ones of a batch of `rows`. All rows store
 * their keys and values. */
static enum hw_status attend(struct llama *l, const struct layer *layer, int64_t rows,
                             struct last last)
{
    const struct shape *s = &l->shape;
    const int32_t type = heads_type(l, last.count);
    const struct hw_tensor x = rows_of(l->normed, 0, rows),
                           y = rows_of(stored_as(type, l->attended), last.begin,
                                       last.count);
    const struct hw_tensor q = rows_of(stored_as(type, l->q), 0, rows),
                           k = rows_of(stored_as(type, l->k), 0, rows),
                           v = rows_of(stored_as(type, l->v), 0, rows);
    const struct hw_attention op = {
        .q = by_head(rows_of(q, last.begin, last.count), s->heads),
        .k = by_head(layer->keys, s->kv_heads),
        .v = by_head(layer->values, s->kv_heads),
        .lengths = rows_of(l->inputs, 0, 1),
        .y = by_head(y, s->heads),
        .window = s->window,
        .causal = 1,
    };
    const struct projection inputs[] = {
        { layer->q, layer->q_bias, q },
        { layer->k, layer->k_bias, k },
        { layer->v, layer->v_bias, v },
    };
    enum hw_status status;
    if ((status = project_all(l, x, inputs, 3)) ||
        (status = norm_heads(l, q, s->heads, layer->q_norm)) ||
        (status = norm_heads(l, k, s->kv_heads, layer->k_norm)) ||
        (status = rotate(l, q, s->heads)) || (status = rotate(l, k, s->kv_heads)) ||
        (status = cache(l, k, layer->keys)) || (status = cache(l, v, layer->values)) ||
        (status = hw_attention(l->queue, &op)))
        return status;
    return project(l, y,
                   (struct projection){ .weight = layer->output,
                                        .y = rows_of(l->normed, last.begin, last.count) });
}

/* residual += normed, and normed = rmsnorm of that. */
static enum hw_status add_and_norm(struct llama *l, struct hw_tensor weight,
                                   struct last last)
{
    const struct hw_tensor x = rows_of(l->normed, last.begin, last.count);
    const struct hw_add_rmsnorm op = {
        .residual = rows_of(l->residual, last.begin, last.count),
        .x = x,
        .weight = weight,
        .y = x,
        .eps = l->shape.eps,
    };
    return hw_add_rmsnorm(l->queue, &op);
}

/* normed = (silu(normed . gate^T) * (normed . up^T)) . down^T */
static enum hw_status feed_forward(struct llama *l, const struct layer *layer,
                                   struct last last)
{
    const int32_t type = inner_type(l, layer, last.count);
    const struct hw_tensor x = rows_of(l->normed, last.begin, last.count);
    const struct hw_tensor gate = rows_of(stored_as(type, l->gate), 0, last.count);
    const struct hw_tensor up = rows_of(stored_as(type, l->up), 0, last.count);
    const struct hw_swiglu op = { .gate = gate, .up = up, .y = gate };
    const struct projection inputs[] = {
        { .weight = layer->gate, .y = gate },
        { .weight = layer->up, .y = up },
    };
    enum hw_status status;
    if ((status = project_all(l, x, inputs, 2)) || (status = hw_swiglu(l->queue, &op)))
        return status;
    return project(l, gate, (struct projection){ .weight = layer->down, .y = x });
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

/* From the ids of a batch of `rows` to the normed output of the last layer, for the last `wanted`
 * rows. In the last layer, the other rows only store their keys and values. */
static enum hw_status decode(struct llama *l, int64_t rows, int64_t wanted)
{
    enum hw_status status = embed(l, rows);
    for (int64_t i = 0; i < l->shape.layers && !status; i++) {
        const struct layer *layer = &l->layers[i];
        const bool at_end = i + 1 == l->shape.layers;
        const int64_t count = at_end ? wanted : rows;
        const struct last last = { rows - count, count };
        if ((status = attend(l, layer, rows, last)) ||
            (status = add_and_norm(l, layer->inner_norm, last)) ||
            (status = feed_forward(l, layer, last)))
            return status;
        status = add_and_norm(l, at_end ? l->norm : layer[1].attention_norm, last);
    }
    return status;
}

/* Computes the scores for rows begin..begin+count-1 of the batch; `count` is at most
 * score_rows. */
static enum hw_status score(struct llama *l, int64_t begin, int64_t count)
{
    return project(
        l, rows_of(l->normed, begin, count),
        (struct projection){ .weight = l->output, .y = rows_of(l->scores, 0, count) });
}

enum hw_status llama_step(struct llama *l, int64_t rows)
{
    const struct hw_argmax op = { .x = rows_of(l->scores, 0, 1), .y = best_of(l) };
    enum hw_status status;
    if ((status = decode(l, rows, 1)) || (status = score(l, rows - 1, 1)))
        return status;
    return hw_argmax(l->queue, &op);
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
 * `tokens`, the id is the best token of the previous step, which is already in place. Waits only if
 * too many steps are pending. */
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
    return rows == 1 && l->graph ? hw_graph_launch(l->graph, l->queue)
                                 : llama_step(l, rows);
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

/* Copies to the host, after all submitted work. */
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
        good = send_inputs(l, tokens, rows) || decode(l, rows, rows) || finish_step(l)
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
