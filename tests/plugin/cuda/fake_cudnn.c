/* SPDX-License-Identifier: MIT */
/* fake_cudnn.c - a stand-in for cuDNN: it computes the operations of a graph one by one on the
 * host, in double, and copies the result on the stream. Tensors in memory are bf16. The first of
 * its two engine configurations fails. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
#define CONSTANT(name, value, theirs) CUDNN_##name = (value),
#include "cudnn.def"
};

#define REQUIRED(result, name, arguments, exported) result exported arguments;
#include "cudnn_exported.def"

/* From the stand-in for the driver. */
int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void *stream);

enum { SUCCESS, BAD_PARAM = 2000, NOT_SUPPORTED = 3000, EXECUTION_FAILED = 5000 };
enum { MOST_ATTRIBUTES = 9, MOST_TENSORS = 64, MOST_COPIES = 4096 };

struct attribute {
    int name;
    int64_t count;
    void *values;
};

struct descriptor {
    int kind;
    bool finished;
    struct attribute attribute[MOST_ATTRIBUTES];
    int attributes;
    struct descriptor *graph; /* of a configuration */
    bool works;               /* likewise */
};

struct handle {
    void *stream;
    void *copied[MOST_COPIES]; /* lives as long as graphs that copy it */
    int copies;
};

static size_t bytes_of(int type)
{
    switch (type) {
    case CUDNN_IS_BOOL:
        return sizeof(bool);
    case CUDNN_IS_HANDLE:
    case CUDNN_IS_POINTER:
    case CUDNN_IS_DESCRIPTOR:
        return sizeof(void *);
    case CUDNN_IS_INT64:
        return sizeof(int64_t);
    default:
        return sizeof(int);
    }
}

static const void *find(const struct descriptor *d, int name)
{
    for (int i = 0; i < d->attributes; i++)
        if (d->attribute[i].name == name)
            return d->attribute[i].values;
    return NULL;
}

static int number(const struct descriptor *d, int name)
{
    const int *found = find(d, name);
    return found ? *found : -1;
}

static struct descriptor *follow(const struct descriptor *d, int name)
{
    struct descriptor *const *found = find(d, name);
    return found ? *found : NULL;
}

/* ---- tensors ---- */

struct values {
    int64_t id, extent[4], stride[4];
    double *at; /* in the order of the extents */
};

/* The values that a graph has computed so far. */
struct run {
    const struct descriptor *variant;
    struct values tensor[MOST_TENSORS];
    int tensors;
};

static int64_t count_of(const struct values *v)
{
    return v->extent[0] * v->extent[1] * v->extent[2] * v->extent[3];
}

/* The position in a tensor of element i, counted in the order of the extents of `order`. The
 * tensor's extents of 1 repeat. */
static int64_t place(const struct values *order, int64_t i, const struct values *in)
{
    int64_t at = 0;
    for (int axis = 3; axis >= 0; i /= order->extent[axis--])
        if (in->extent[axis] > 1)
            at += i % order->extent[axis] * in->stride[axis];
    return at;
}

static void *address(const struct descriptor *variant, int64_t id)
{
    const int64_t *ids = find(variant, CUDNN_VARIANT_IDS);
    void *const *pointers = find(variant, CUDNN_VARIANT_POINTERS);
    while (*ids != id)
        ids++, pointers++;
    return *pointers;
}

static double read_element(const struct descriptor *tensor, const void *memory, int64_t at)
{
    uint32_t bits;
    float value;
    if (number(tensor, CUDNN_TENSOR_TYPE) == CUDNN_F32)
        return ((const float *)memory)[at];
    bits = (uint32_t)((const uint16_t *)memory)[at] << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Adds a tensor that has no values yet. */
static struct values *add_tensor(struct run *run, const struct descriptor *tensor)
{
    struct values *v = &run->tensor[run->tensors++];
    v->id = *(const int64_t *)find(tensor, CUDNN_TENSOR_ID);
    memcpy(v->extent, find(tensor, CUDNN_TENSOR_EXTENTS), sizeof v->extent);
    memcpy(v->stride, find(tensor, CUDNN_TENSOR_STRIDES), sizeof v->stride);
    v->at = calloc((size_t)count_of(v), sizeof *v->at);
    return v;
}

static const struct values *input(struct run *run, const struct descriptor *tensor)
{
    const int64_t id = *(const int64_t *)find(tensor, CUDNN_TENSOR_ID);
    for (int i = 0; i < run->tensors; i++)
        if (run->tensor[i].id == id)
            return &run->tensor[i];
    struct values *v = add_tensor(run, tensor);
    const void *memory = address(run->variant, id);
    for (int64_t i = 0; i < count_of(v); i++)
        v->at[i] = read_element(tensor, memory, place(v, i, v));
    /* From here on, its elements are in the order of its extents. */
    for (int axis = 3, step = 1; axis >= 0; step *= (int)v->extent[axis--])
        v->stride[axis] = step;
    return v;
}

/* ---- operations ---- */

static double pointwise(int mode, double x, double b, double chosen)
{
    switch (mode) {
    case CUDNN_ADD:
        return x + b;
    case CUDNN_MUL:
        return x * b;
    case CUDNN_DIV:
        return x / b;
    case CUDNN_SUB:
        return x - b;
    case CUDNN_EXP:
        return exp(x);
    case CUDNN_LOG:
        return log(x);
    case CUDNN_NOT_LESS:
        return x >= b;
    case CUDNN_SELECT:
        return chosen != 0 ? x : b;
    default:
        return NAN;
    }
}

static int64_t index_along(const struct values *y, int64_t i, int64_t axis)
{
    for (int after = 3; after > axis; after--)
        i /= y->extent[after];
    return i % y->extent[axis];
}

static void run_pointwise(struct run *run, const struct descriptor *op)
{
    const struct descriptor *what = follow(op, CUDNN_POINTWISE_OP_OF);
    const struct descriptor *b = follow(op, CUDNN_POINTWISE_OP_B),
                            *t = follow(op, CUDNN_POINTWISE_OP_T);
    const int mode = number(what, CUDNN_POINTWISE_MODE);
    const int64_t *axis = find(what, CUDNN_POINTWISE_AXIS);
    const struct values *vx = input(run, follow(op, CUDNN_POINTWISE_OP_X));
    const struct values *vb = b ? input(run, b) : NULL, *vt = t ? input(run, t) : NULL;
    struct values *y = add_tensor(run, follow(op, CUDNN_POINTWISE_OP_Y));
    for (int64_t i = 0; i < count_of(y); i++)
        y->at[i] = mode == CUDNN_INDEX ? (double)index_along(y, i, *axis)
                                       : pointwise(mode, vx->at[place(y, i, vx)],
                                                   vb ? vb->at[place(y, i, vb)] : 0,
                                                   vt ? vt->at[place(y, i, vt)] : 0);
}

/* Reduces the last axis. */
static void run_reduction(struct run *run, const struct descriptor *op)
{
    const int mode = number(follow(op, CUDNN_REDUCTION_OP_OF), CUDNN_REDUCTION_MODE);
    const struct values *x = input(run, follow(op, CUDNN_REDUCTION_OP_X));
    struct values *y = add_tensor(run, follow(op, CUDNN_REDUCTION_OP_Y));
    for (int64_t i = 0; i < count_of(x); i++) {
        double *at = &y->at[i / x->extent[3]];
        const bool first = i % x->extent[3] == 0;
        if (mode == CUDNN_MOST)
            *at = first ? x->at[i] : fmax(*at, x->at[i]);
        else
            *at += x->at[i];
    }
}

/* Several heads of a share one of b. */
static void run_matmul(struct run *run, const struct descriptor *op)
{
    const struct values *a = input(run, follow(op, CUDNN_MATMUL_OP_A));
    const struct values *b = input(run, follow(op, CUDNN_MATMUL_OP_B));
    struct values *c = add_tensor(run, follow(op, CUDNN_MATMUL_OP_C));
    const int64_t m = c->extent[2], n = c->extent[3], terms = a->extent[3];
    for (int64_t i = 0; i < count_of(c); i++) {
        const int64_t head = i / (m * n), row = i / n % m, col = i % n;
        const int64_t of_b = head / (a->extent[1] / b->extent[1]);
        for (int64_t k = 0; k < terms; k++)
            c->at[i] += a->at[(head * m + row) * terms + k] *
                        b->at[(of_b * terms + k) * n + col];
    }
}

/* Writes the result of the last operation to memory as bf16. */
static const struct values *run_graph(struct run *run, const struct descriptor *graph)
{
    for (int i = 0; i < graph->attributes; i++)
        for (int64_t k = 0;
             graph->attribute[i].name == CUDNN_GRAPH_OPS && k < graph->attribute[i].count;
             k++) {
            struct descriptor *op = ((struct descriptor **)graph->attribute[i].values)[k];
            if (op->kind == CUDNN_POINTWISE_OP)
                run_pointwise(run, op);
            else if (op->kind == CUDNN_REDUCTION_OP)
                run_reduction(run, op);
            else
                run_matmul(run, op);
        }
    return &run->tensor[run->tensors - 1];
}

static uint16_t *as_stored(const struct values *y)
{
    uint16_t *stored = calloc((size_t)count_of(y), sizeof *stored);
    for (int64_t i = 0; i < count_of(y); i++) {
        const float value = (float)y->at[i];
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        stored[place(y, i, y)] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
    return stored;
}

int cudnnBackendExecute(void *handle, void *plan, void *variant)
{
    struct handle *h = handle;
    struct run run = { .variant = variant };
    struct descriptor *p = plan;
    if (!p->finished || !run.variant->finished || h->copies == MOST_COPIES)
        return BAD_PARAM;
    const struct values *y = run_graph(&run, follow(p, CUDNN_PLAN_CONFIG)->graph);
    void *stored = h->copied[h->copies++] = as_stored(y);
    const int status = cuMemcpyAsync((uintptr_t)address(variant, y->id), (uintptr_t)stored,
                                     (size_t)count_of(y) * sizeof(uint16_t), h->stream);
    for (int i = 0; i < run.tensors; i++)
        free(run.tensor[i].at);
    return status ? EXECUTION_FAILED : SUCCESS;
}

/* ---- descriptors and the handle ---- */

size_t cudnnGetVersion(void)
{
    return 91900;
}

const char *cudnnGetErrorString(int status)
{
    return status == NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_OTHER";
}

void cudnnGetLastErrorString(char *text, size_t size)
{
    snprintf(text, size, "the reason");
}

int cudnnCreate(void **handle)
{
    *handle = getenv("FAKE_CUDNN_FAIL") ? NULL : calloc(1, sizeof(struct handle));
    return *handle ? SUCCESS : NOT_SUPPORTED;
}

int cudnnDestroy(void *handle)
{
    struct handle *h = handle;
    while (h->copies)
        free(h->copied[--h->copies]);
    free(h);
    return SUCCESS;
}

int cudnnSetStream(void *handle, void *stream)
{
    ((struct handle *)handle)->stream = stream;
    return SUCCESS;
}

int cudnnBackendCreateDescriptor(int kind, void **descriptor)
{
    struct descriptor *d = *descriptor = calloc(1, sizeof *d);
    d->kind = kind;
    return SUCCESS;
}

int cudnnBackendDestroyDescriptor(void *descriptor)
{
    struct descriptor *d = descriptor;
    while (d->attributes)
        free(d->attribute[--d->attributes].values);
    free(d);
    return SUCCESS;
}

int cudnnBackendSetAttribute(void *descriptor, int name, int type, int64_t count,
                             const void *values)
{
    struct descriptor *d = descriptor;
    const size_t bytes = (size_t)count * bytes_of(type);
    if (d->finished || d->attributes == MOST_ATTRIBUTES || find(d, name))
        return BAD_PARAM;
    struct attribute *a = &d->attribute[d->attributes++];
    *a = (struct attribute){ name, count, malloc(bytes) };
    memcpy(a->values, values, bytes);
    return SUCCESS;
}

int cudnnBackendFinalize(void *descriptor)
{
    struct descriptor *d = descriptor;
    if (d->kind == CUDNN_PLAN && !follow(d, CUDNN_PLAN_CONFIG)->works)
        return NOT_SUPPORTED;
    d->finished = true;
    return SUCCESS;
}

static int64_t answer(const struct descriptor *d, int name, int64_t most, void *values)
{
    struct descriptor **results = values;
    switch (name) {
    case CUDNN_HEURISTICS_RESULTS:
        for (int64_t i = 0; i < 2 && i < most; i++) {
            results[i]->graph = follow(d, CUDNN_HEURISTICS_GRAPH);
            results[i]->works = i == 1;
        }
        return 2;
    case CUDNN_ENGINE_NUMBER:
        *(int64_t *)values = 7;
        return 1;
    case CUDNN_PLAN_WORKSPACE:
        *(int64_t *)values = 256;
        return 1;
    default: /* the engine of a configuration */
        return 1;
    }
}

int cudnnBackendGetAttribute(void *const descriptor, int name, int type, int64_t most,
                             int64_t *count, void *values)
{
    (void)type;
    *count = answer(descriptor, name, most, values);
    return SUCCESS;
}
