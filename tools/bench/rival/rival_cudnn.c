/* SPDX-License-Identifier: MIT */
/* rival_cudnn.c - attention by cuDNN, NVIDIA's library for neural networks; its heuristics offer
 * the ways.
 *
 * Without its C++ headers, cuDNN has no function for attention. It takes a graph of single
 * operations, and recognizes attention only if these are exactly the ones that the headers
 * (cudnn-frontend, an attention node) produce. So the graph below has the same operations in the
 * same order, including log and add, whose result nobody reads. cuDNN refuses other graphs that
 * compute the same. */
#include "rival.h"
#include "rival_cuda.h"

#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
#define CONSTANT(name, value, theirs) CUDNN_##name = (value),
#include "cudnn.def"
};

/* MADE bounds the descriptors that are kept: two for each of 19 tensors and 14 operations, the
 * graph, the heuristics, and for each way a configuration, an engine and a plan. */
enum { WAYS = 8, OPERATIONS = 14, MADE = 19 + 2 * OPERATIONS + 2 + 3 * WAYS + 1 };

/* Ids of tensors in memory and of numbers passed by value; other ids follow. */
enum { Q = 1, K, V, Y, SCALE, HIDDEN, NUMBERED };

struct way {
    void *plan;
    int64_t engine;
};

struct cudnn {
    void *library;
    struct rival_cuda cuda;
#define REQUIRED(result, member, arguments, name) result(*member) arguments;
#include "cudnn.def"
    void *handle, *stream, *workspace;
    char name[40], way_name[40];
    /* The prepared graph. */
    void *made[MADE];
    int made_count;
    void *operation[OPERATIONS];
    int operation_count, way_count;
    int64_t next_id;
    bool causal;
    struct way way[WAYS];
    float scale, hidden; /* hidden: the score of a key that a query does not see */
    /* The first failure since forget(); later calls do nothing. */
    bool failed;
    char why[360];
};

/* ---- descriptors ---- */

static void fail(struct cudnn *s, const char *what, int status)
{
    char text[240] = "";
    s->last_error(text, sizeof text);
    text[strcspn(text, "\n")] = '\0';
    if (!s->failed)
        snprintf(s->why, sizeof s->why, "%s: %s%s%s", what, s->error_string(status),
                 *text ? ": " : "", text);
    s->failed = true;
}

/* The handle still has the stream of the last call, which recorded and may be gone. */
static void forget(struct cudnn *s)
{
    s->set_stream(s->handle, s->stream);
    while (s->made_count)
        s->unmake(s->made[--s->made_count]);
    s->operation_count = s->way_count = 0;
    s->next_id = NUMBERED;
    s->failed = false;
}

static void *make(struct cudnn *s, int kind)
{
    void *descriptor = NULL;
    const int status = s->failed ? 0 : s->make(kind, &descriptor);
    if (status)
        fail(s, "a descriptor cannot be made", status);
    else if (descriptor)
        s->made[s->made_count++] = descriptor;
    return descriptor;
}

struct attribute {
    int name, type;
    int64_t count;
    const void *values;
};

static void set(struct cudnn *s, void *descriptor, const struct attribute *a)
{
    const int status = s->failed
                           ? 0
                           : s->set(descriptor, a->name, a->type, a->count, a->values);
    char what[40];
    snprintf(what, sizeof what, "attribute %d", a->name);
    if (status)
        fail(s, what, status);
}

static void set_one(struct cudnn *s, void *descriptor, int name, int type,
                    const void *value)
{
    set(s, descriptor, &(struct attribute){ name, type, 1, value });
}

static void set_descriptor(struct cudnn *s, void *descriptor, int name, void *value)
{
    if (value)
        set_one(s, descriptor, name, CUDNN_IS_DESCRIPTOR, &value);
}

static void finish(struct cudnn *s, void *descriptor, const char *what)
{
    const int status = s->failed ? 0 : s->finish(descriptor);
    if (status)
        fail(s, what, status);
}

/* ---- tensors ---- */

struct tensor {
    int type;
    int64_t id; /* 0: not in memory */
    bool by_value;
    int64_t extent[4], stride[4]; /* batch, heads, rows, columns */
};

static void *tensor(struct cudnn *s, const struct tensor *t)
{
    const int64_t id = t->id ? t->id : s->next_id++, alignment = 16;
    const bool is_virtual = !t->id;
    void *made = make(s, CUDNN_TENSOR);
    set_one(s, made, CUDNN_TENSOR_TYPE, CUDNN_IS_TYPE, &t->type);
    set(s, made, &(struct attribute){ CUDNN_TENSOR_EXTENTS, CUDNN_IS_INT64, 4, t->extent });
    set(s, made, &(struct attribute){ CUDNN_TENSOR_STRIDES, CUDNN_IS_INT64, 4, t->stride });
    set_one(s, made, CUDNN_TENSOR_ID, CUDNN_IS_INT64, &id);
    set_one(s, made, CUDNN_TENSOR_ALIGNMENT, CUDNN_IS_INT64, &alignment);
    set_one(s, made, CUDNN_TENSOR_VIRTUAL, CUDNN_IS_BOOL, &is_virtual);
    set_one(s, made, CUDNN_TENSOR_BY_VALUE, CUDNN_IS_BOOL, &t->by_value);
    finish(s, made, "a tensor");
    return made;
}

static int type_of(const struct attention_shape *a)
{
    return a->type == HW_F16 ? CUDNN_F16 : CUDNN_BF16;
}

/* In memory: [rows,heads,size]. */
static void *heads(struct cudnn *s, const struct attention_shape *a, int64_t id,
                   int64_t rows, int64_t count)
{
    const int64_t row = count * a->size;
    return tensor(s, &(struct tensor){ .type = type_of(a),
                                       .id = id,
                                       .extent = { 1, count, rows, a->size },
                                       .stride = { rows * row, a->size, row, 1 } });
}

/* The keys, transposed for the product. */
static void *transposed_keys(struct cudnn *s, const struct attention_shape *a)
{
    const int64_t row = a->kv_heads * a->size;
    return tensor(s, &(struct tensor){ .type = type_of(a),
                                       .id = K,
                                       .extent = { 1, a->kv_heads, a->size, a->keys },
                                       .stride = { a->keys * row, a->size, 1, row } });
}

static void *number(struct cudnn *s, int64_t id)
{
    return tensor(s, &(struct tensor){ .type = CUDNN_F32,
                                       .id = id,
                                       .by_value = true,
                                       .extent = { 1, 1, 1, 1 },
                                       .stride = { 1, 1, 1, 1 } });
}

/* A number for each query and key, and one for each query. */
static void *scores(struct cudnn *s, const struct attention_shape *a, int type)
{
    const int64_t head = a->queries * a->keys;
    return tensor(s, &(struct tensor){ .type = type,
                                       .extent = { 1, a->heads, a->queries, a->keys },
                                       .stride = { a->heads * head, head, a->keys, 1 } });
}

static void *sums(struct cudnn *s, const struct attention_shape *a)
{
    return tensor(
        s, &(struct tensor){ .type = CUDNN_F32,
                             .extent = { 1, a->heads, a->queries, 1 },
                             .stride = { a->heads * a->queries, a->queries, 1, 1 } });
}

/* ---- operations ---- */

static void add_operation(struct cudnn *s, void *operation)
{
    finish(s, operation, "an operation");
    s->operation[s->operation_count++] = operation;
}

/* y = mode(x, b), or b where `chosen` is false. */
struct pointwise {
    int mode, precision;
    int64_t axis; /* of an index */
    void *x, *b, *chosen, *y;
};

static void *pointwise(struct cudnn *s, const struct pointwise *p)
{
    void *what = make(s, CUDNN_POINTWISE), *made = make(s, CUDNN_POINTWISE_OP);
    set_one(s, what, CUDNN_POINTWISE_MODE, CUDNN_IS_POINTWISE, &p->mode);
    set_one(s, what, CUDNN_POINTWISE_PRECISION, CUDNN_IS_TYPE, &p->precision);
    if (p->mode == CUDNN_INDEX)
        set_one(s, what, CUDNN_POINTWISE_AXIS, CUDNN_IS_INT64, &p->axis);
    finish(s, what, "a pointwise operation");
    set_descriptor(s, made, CUDNN_POINTWISE_OP_OF, what);
    set_descriptor(s, made, CUDNN_POINTWISE_OP_X, p->x);
    set_descriptor(s, made, CUDNN_POINTWISE_OP_B, p->b);
    set_descriptor(s, made, CUDNN_POINTWISE_OP_T, p->chosen);
    set_descriptor(s, made, CUDNN_POINTWISE_OP_Y, p->y);
    add_operation(s, made);
    return p->y;
}

/* In f32. */
static void *compute(struct cudnn *s, int mode, void *x, void *b, void *y)
{
    return pointwise(s, &(struct pointwise){
                            .mode = mode, .precision = CUDNN_F32, .x = x, .b = b, .y = y });
}

static void *multiply(struct cudnn *s, void *a, void *b, void *c)
{
    const int precision = CUDNN_F32;
    void *what = make(s, CUDNN_MATMUL), *made = make(s, CUDNN_MATMUL_OP);
    set_one(s, what, CUDNN_MATMUL_PRECISION, CUDNN_IS_TYPE, &precision);
    finish(s, what, "a product");
    set_descriptor(s, made, CUDNN_MATMUL_OP_A, a);
    set_descriptor(s, made, CUDNN_MATMUL_OP_B, b);
    set_descriptor(s, made, CUDNN_MATMUL_OP_C, c);
    set_descriptor(s, made, CUDNN_MATMUL_OP_OF, what);
    add_operation(s, made);
    return c;
}

/* Over the keys. */
static void *reduce(struct cudnn *s, int mode, void *x, void *y)
{
    const int precision = CUDNN_F32;
    void *what = make(s, CUDNN_REDUCTION), *made = make(s, CUDNN_REDUCTION_OP);
    set_one(s, what, CUDNN_REDUCTION_PRECISION, CUDNN_IS_TYPE, &precision);
    set_one(s, what, CUDNN_REDUCTION_MODE, CUDNN_IS_REDUCTION, &mode);
    finish(s, what, "a reduction");
    set_descriptor(s, made, CUDNN_REDUCTION_OP_X, x);
    set_descriptor(s, made, CUDNN_REDUCTION_OP_Y, y);
    set_descriptor(s, made, CUDNN_REDUCTION_OP_OF, what);
    add_operation(s, made);
    return y;
}

/* ---- attention ---- */

static void *index_along(struct cudnn *s, const struct attention_shape *a, void *like,
                         int64_t axis)
{
    return pointwise(s, &(struct pointwise){ .mode = CUDNN_INDEX,
                                             .precision = CUDNN_F32,
                                             .axis = axis,
                                             .x = like,
                                             .y = scores(s, a, CUDNN_I32) });
}

/* A query sees the keys up to its own position; there are as many queries as keys. */
static void *hide(struct cudnn *s, const struct attention_shape *a, void *score)
{
    void *query = index_along(s, a, score, 2), *key = index_along(s, a, score, 3);
    void *seen = pointwise(s, &(struct pointwise){ .mode = CUDNN_NOT_LESS,
                                                   .precision = CUDNN_BOOLEAN,
                                                   .x = query,
                                                   .b = key,
                                                   .y = scores(s, a, CUDNN_BOOLEAN) });
    return pointwise(s, &(struct pointwise){ .mode = CUDNN_SELECT,
                                             .precision = CUDNN_F32,
                                             .x = score,
                                             .b = number(s, HIDDEN),
                                             .chosen = seen,
                                             .y = scores(s, a, CUDNN_F32) });
}

/* The weights get the type of v, because they are multiplied with it. */
static void *softmax(struct cudnn *s, const struct attention_shape *a, void *score)
{
    void *most = reduce(s, CUDNN_MOST, score, sums(s, a));
    void *less = compute(s, CUDNN_SUB, score, most, scores(s, a, CUDNN_F32));
    void *weight = compute(s, CUDNN_EXP, less, NULL, scores(s, a, CUDNN_F32));
    void *sum = reduce(s, CUDNN_SUM, weight, sums(s, a));
    void *log_sum = compute(s, CUDNN_LOG, sum, NULL, sums(s, a));
    compute(s, CUDNN_ADD, most, log_sum, sums(s, a));
    return compute(s, CUDNN_DIV, weight, sum, scores(s, a, type_of(a)));
}

static void *describe(struct cudnn *s, const struct attention_shape *a)
{
    void *q = heads(s, a, Q, a->queries, a->heads);
    void *v = heads(s, a, V, a->keys, a->kv_heads);
    void *y = heads(s, a, Y, a->queries, a->heads);
    void *score = multiply(s, q, transposed_keys(s, a), scores(s, a, CUDNN_F32));
    score = compute(s, CUDNN_MUL, score, number(s, SCALE), scores(s, a, CUDNN_F32));
    if (s->causal)
        score = hide(s, a, score);
    multiply(s, softmax(s, a, score), v, y);
    void *graph = make(s, CUDNN_GRAPH);
    set_one(s, graph, CUDNN_GRAPH_HANDLE, CUDNN_IS_HANDLE, &s->handle);
    set(s, graph,
        &(struct attribute){ CUDNN_GRAPH_OPS, CUDNN_IS_DESCRIPTOR, s->operation_count,
                             s->operation });
    finish(s, graph, "the graph of operations");
    return graph;
}

/* ---- plans ---- */

static void get(struct cudnn *s, void *descriptor, const struct attribute *a,
                int64_t *count, void *values)
{
    const int status = s->failed
                           ? 0
                           : s->get(descriptor, a->name, a->type, a->count, count, values);
    char what[40];
    snprintf(what, sizeof what, "the value of attribute %d", a->name);
    if (status)
        fail(s, what, status);
}

/* Fills in descriptors of engine configurations, the best one first; returns their number. */
static int64_t ask_heuristics(struct cudnn *s, void *graph, void *config[WAYS])
{
    const int mode = CUDNN_MODE_A;
    int64_t count = 0;
    void *heuristics = make(s, CUDNN_HEURISTICS);
    set_descriptor(s, heuristics, CUDNN_HEURISTICS_GRAPH, graph);
    set_one(s, heuristics, CUDNN_HEURISTICS_MODE, CUDNN_IS_HEURISTICS, &mode);
    finish(s, heuristics, "the heuristics");
    for (int i = 0; i < WAYS; i++)
        config[i] = make(s, CUDNN_CONFIG);
    get(s, heuristics,
        &(struct attribute){ CUDNN_HEURISTICS_RESULTS, CUDNN_IS_DESCRIPTOR, WAYS, NULL },
        &count, config);
    return s->failed ? 0 : count < WAYS ? count : WAYS;
}

static int64_t engine_of(struct cudnn *s, void *config)
{
    int64_t number = -1, count;
    void *engine = make(s, CUDNN_ENGINE);
    get(s, config, &(struct attribute){ CUDNN_CONFIG_ENGINE, CUDNN_IS_DESCRIPTOR, 1, NULL },
        &count, &engine);
    get(s, engine, &(struct attribute){ CUDNN_ENGINE_NUMBER, CUDNN_IS_INT64, 1, NULL },
        &count, &number);
    return number;
}

/* Compiles the kernel. */
static void plan(struct cudnn *s, void *config)
{
    int64_t workspace = 0, count;
    struct way way = { .plan = make(s, CUDNN_PLAN), .engine = engine_of(s, config) };
    set_one(s, way.plan, CUDNN_PLAN_HANDLE, CUDNN_IS_HANDLE, &s->handle);
    set_descriptor(s, way.plan, CUDNN_PLAN_CONFIG, config);
    finish(s, way.plan, "a plan");
    get(s, way.plan, &(struct attribute){ CUDNN_PLAN_WORKSPACE, CUDNN_IS_INT64, 1, NULL },
        &count, &workspace);
    if (!s->failed && workspace > RIVAL_WORKSPACE) {
        snprintf(s->why, sizeof s->why, "a plan wants %lld bytes of workspace",
                 (long long)workspace);
        s->failed = true;
    }
    if (!s->failed)
        s->way[s->way_count++] = way;
}

/* Skips configurations that do not work; if none works, returns the first reason. */
static const char *cudnn_prepare(void *self, const struct attention_shape *a, int *ways)
{
    struct cudnn *s = self;
    void *config[WAYS];
    char why[sizeof s->why];
    forget(s);
    if (a->type == HW_F32)
        return "cuDNN has no attention of f32";
    s->scale = 1 / sqrtf((float)a->size);
    s->causal = a->queries > 1;
    const int64_t count = ask_heuristics(s, describe(s, a), config);
    if (s->failed)
        return s->why;
    snprintf(why, sizeof why, "it has no engine for this");
    for (int64_t i = 0; i < count; i++, s->failed = false) {
        plan(s, config[i]);
        if (s->failed)
            snprintf(why, sizeof why, "%s", s->why);
    }
    *ways = s->way_count;
    snprintf(s->why, sizeof s->why, "%s", why);
    return *ways ? NULL : s->why;
}

/* ---- execution ---- */

static const char *cudnn_attend(void *self, int way, void *queue,
                                const struct rival_operands *o)
{
    struct cudnn *s = self;
    const int64_t ids[] = { Q, K, V, Y, SCALE, HIDDEN };
    void *const pointers[] = { rival_address(&o->q),
                               rival_address(&o->k),
                               rival_address(&o->v),
                               rival_address(&o->y),
                               &s->scale,
                               &s->hidden };
    const int64_t count = s->causal ? 6 : 5;
    void *variant = make(s, CUDNN_VARIANT);
    set(s, variant,
        &(struct attribute){ CUDNN_VARIANT_POINTERS, CUDNN_IS_POINTER, count, pointers });
    set(s, variant, &(struct attribute){ CUDNN_VARIANT_IDS, CUDNN_IS_INT64, count, ids });
    set_one(s, variant, CUDNN_VARIANT_WORKSPACE, CUDNN_IS_POINTER, &s->workspace);
    finish(s, variant, "the operands");
    int status = s->failed ? 0 : s->set_stream(s->handle, queue);
    if (!status && !s->failed)
        status = s->execute(s->handle, s->way[way].plan, variant);
    if (status)
        fail(s, "a plan cannot be executed", status);
    if (variant)
        s->unmake(s->made[--s->made_count]);
    const bool failed = s->failed;
    s->failed = false;
    return failed ? s->why : NULL;
}

/* ---- the library ---- */

static const char *cudnn_name(void *self)
{
    return ((struct cudnn *)self)->name;
}

static const char *cudnn_way(void *self, int way)
{
    struct cudnn *s = self;
    snprintf(s->way_name, sizeof s->way_name, "engine %lld, plan %d of %d",
             (long long)s->way[way].engine, way + 1, s->way_count);
    return s->way_name;
}

static void cudnn_close(void *self)
{
    struct cudnn *s = self;
    if (s->handle) {
        forget(s);
        s->destroy(s->handle);
    }
    rival_cuda_leave(&s->cuda);
    if (s->library)
        dlclose(s->library);
    free(s);
}

static const char *open_library(struct cudnn *s)
{
    s->library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    if (!s->library)
        return "libcudnn.so.9 was not found: set LD_LIBRARY_PATH to its folder";
#define REQUIRED(result, member, arguments, name)                                          \
    if (!rival_find(s->library, name, &s->member))                                         \
        return "libcudnn.so.9 has no " name;
#include "cudnn.def"
    return NULL;
}

/* Before 9.10, hidden scores are the least number instead of -inf, as in cudnn-frontend. */
static const char *create(struct cudnn *s)
{
    static char why[400];
    const size_t version = s->version();
    const int status = s->create(&s->handle);
    s->hidden = version < 91000 ? -FLT_MAX : -INFINITY;
    snprintf(s->name, sizeof s->name, "cuDNN %zu.%zu.%zu", version / 10000,
             version / 100 % 100, version % 100);
    if (!status)
        return NULL;
    s->handle = NULL;
    fail(s, "cudnnCreate()", status);
    snprintf(why, sizeof why, "%s", s->why);
    return why;
}

static const char *cudnn_open(void **self, void *queue, const struct hw_import *workspace)
{
    struct cudnn *s = calloc(1, sizeof *s);
    if (!s)
        return "out of memory";
    s->stream = queue;
    s->workspace = rival_address(workspace);
    const char *why = open_library(s);
    if (!why)
        why = rival_cuda_enter(&s->cuda, queue);
    if (!why)
        why = create(s);
    if (why)
        cudnn_close(s);
    else
        *self = s;
    return why;
}

static const char *const usual[] = {
    "bf16:2048x2048x32/8x128",
    "bf16:8192x8192x32/8x128",
    "f16:2048x2048x32/8x128",
    "f16:8192x8192x32/8x128",
    "bf16:1x1024x32/8x128",
    "bf16:1x4096x32/8x128",
    "bf16:1x32768x32/8x128",
    "f16:1x1024x32/8x128",
    "f16:1x4096x32/8x128",
    "f16:1x32768x32/8x128",
    NULL,
};

const struct rival rival_cudnn = {
    .backend = "cuda",
    .op = HW_OP_ATTENTION,
    .queue = "cuda.stream",
    .memory = "cuda.memory",
    .usual = usual,
    .open = cudnn_open,
    .name = cudnn_name,
    .prepare_attention = cudnn_prepare,
    .way_name = cudnn_way,
    .attend = cudnn_attend,
    .close = cudnn_close,
};
