/* SPDX-License-Identifier: MIT */
/* rival_cublaslt.c - cuBLASLt, the CUDA toolkit's library for products; its heuristics offer the
 * ways. */
#include "rival.h"
#include "rival_cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { WAYS = 8 };

/* cublasLtMatmulHeuristicResult_t */
struct heuristic {
    uint64_t algorithm[8];
    size_t workspace;
    int status;
    float waves;
    int reserved[4];
};

/* X(result, member, arguments, name) of libcublasLt.so; handles and descriptors are opaque. */
#define CUBLASLT(X)                                                                        \
    X(int, create, (void **), "cublasLtCreate")                                            \
    X(int, destroy, (void *), "cublasLtDestroy")                                           \
    X(size_t, version, (void), "cublasLtGetVersion")                                       \
    X(int, product_create, (void **, int compute, int scale), "cublasLtMatmulDescCreate")  \
    X(int, product_set, (void *, int key, const void *, size_t),                           \
      "cublasLtMatmulDescSetAttribute")                                                    \
    X(int, product_destroy, (void *), "cublasLtMatmulDescDestroy")                         \
    X(int, layout_create, (void **, int type, uint64_t rows, uint64_t cols, int64_t step), \
      "cublasLtMatrixLayoutCreate")                                                        \
    X(int, layout_destroy, (void *), "cublasLtMatrixLayoutDestroy")                        \
    X(int, preference_create, (void **), "cublasLtMatmulPreferenceCreate")                 \
    X(int, preference_set, (void *, int key, const void *, size_t),                        \
      "cublasLtMatmulPreferenceSetAttribute")                                              \
    X(int, preference_destroy, (void *), "cublasLtMatmulPreferenceDestroy")                \
    X(int, heuristics,                                                                     \
      (void *, void *product, void *a, void *b, void *c, void *d, void *preference,        \
       int most, struct heuristic *, int *count),                                          \
      "cublasLtMatmulAlgoGetHeuristic")                                                    \
    X(int, multiply,                                                                       \
      (void *, void *product, const void *alpha, const void *a, void *a_layout,            \
       const void *b, void *b_layout, const void *beta, const void *c, void *c_layout,     \
       void *d, void *d_layout, const uint64_t *algorithm, void *workspace, size_t bytes,  \
       void *stream),                                                                      \
      "cublasLtMatmul")

struct cublaslt {
    void *library;
    struct rival_cuda cuda;
#define X(result, member, arguments, name) result(*member) arguments;
    CUBLASLT(X)
#undef X
    void *stream, *workspace;
    void *handle, *product, *layout[3], *preference;
    struct heuristic way[WAYS];
    int ways;
    bool tf32;
    char name[40], way_name[40];
};

static const char *open_library(struct cublaslt *s)
{
    static const char *const names[] = { "libcublasLt.so.13", "libcublasLt.so.12" };
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !s->library; i++)
        s->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!s->library)
        return "libcublasLt.so.13 or .12 was not found: set LD_LIBRARY_PATH to its folder";
#define X(result, member, arguments, name)                                                 \
    if (!rival_find(s->library, name, &s->member))                                         \
        return "the library has no " name;
    CUBLASLT(X)
#undef X
    return NULL;
}

static void forget_product(struct cublaslt *s)
{
    if (s->product)
        s->product_destroy(s->product);
    for (int i = 0; i < 3; i++)
        if (s->layout[i])
            s->layout_destroy(s->layout[i]);
    s->product = s->layout[0] = s->layout[1] = s->layout[2] = NULL;
}

static void cublaslt_close(void *self)
{
    struct cublaslt *s = self;
    forget_product(s);
    if (s->preference)
        s->preference_destroy(s->preference);
    if (s->handle)
        s->destroy(s->handle);
    rival_cuda_leave(&s->cuda);
    if (s->library)
        dlclose(s->library);
    free(s);
}

static const char *create(struct cublaslt *s)
{
    enum { WORKSPACE_BYTES = 1 };
    const size_t bytes = RIVAL_WORKSPACE;
    if (s->create(&s->handle))
        return "cublasLtCreate failed";
    if (s->preference_create(&s->preference) ||
        s->preference_set(s->preference, WORKSPACE_BYTES, &bytes, sizeof bytes))
        return "cublasLtMatmulPreferenceCreate failed";
    const size_t version = s->version();
    snprintf(s->name, sizeof s->name, "cuBLASLt %zu.%zu.%zu", version / 10000,
             version / 100 % 100, version % 100);
    return NULL;
}

static const char *cublaslt_open(void **self, void *queue,
                                 const struct hw_import *workspace)
{
    struct cublaslt *s = calloc(1, sizeof *s);
    if (!s)
        return "out of memory";
    s->stream = queue;
    s->workspace = rival_address(workspace);
    const char *why = open_library(s);
    if (!why)
        why = rival_cuda_enter(&s->cuda, s->stream);
    if (!why)
        why = create(s);
    if (why)
        cublaslt_close(s);
    else
        *self = s;
    return why;
}

static const char *cublaslt_name(void *self)
{
    return ((struct cublaslt *)self)->name;
}

/* A matrix in this library's rows is one of columns there: c^T = b . a^T. */
static const char *cublaslt_prepare(void *self, const struct product *p, int *ways)
{
    enum { F32 = 0, F16 = 2, BF16 = 14, TRANSPOSE_FIRST = 3 };
    enum { IN_F32 = 68, IN_TF32 = 77 }; /* cublasComputeType_t */
    struct cublaslt *s = self;
    const int type = p->type == HW_F16 ? F16 : p->type == HW_BF16 ? BF16 : F32, yes = 1;
    const uint64_t m = (uint64_t)p->m, n = (uint64_t)p->n, k = (uint64_t)p->k;
    forget_product(s);
    s->tf32 = p->tf32;
    if (s->product_create(&s->product, p->tf32 ? IN_TF32 : IN_F32, F32) ||
        s->product_set(s->product, TRANSPOSE_FIRST, &yes, sizeof yes) ||
        s->layout_create(&s->layout[0], type, k, n, p->k) ||
        s->layout_create(&s->layout[1], type, k, m, p->k) ||
        s->layout_create(&s->layout[2], type, n, m, p->n))
        return "the product cannot be described";
    if (s->heuristics(s->handle, s->product, s->layout[0], s->layout[1], s->layout[2],
                      s->layout[2], s->preference, WAYS, s->way, &s->ways) ||
        s->ways < 1)
        return "cuBLASLt has no way to compute this product";
    *ways = s->ways;
    return NULL;
}

static const char *cublaslt_way(void *self, int way)
{
    struct cublaslt *s = self;
    snprintf(s->way_name, sizeof s->way_name, "way %d of %d%s", way + 1, s->ways,
             s->tf32 ? ", TF32" : "");
    return s->way_name;
}

static const char *cublaslt_multiply(void *self, int way, const struct rival_operands *o)
{
    static const float one = 1, zero = 0;
    struct cublaslt *s = self;
    void *c = rival_address(&o->c);
    return s->multiply(s->handle, s->product, &one, rival_address(&o->b), s->layout[0],
                       rival_address(&o->a), s->layout[1], &zero, c, s->layout[2], c,
                       s->layout[2], s->way[way].algorithm, s->workspace, RIVAL_WORKSPACE,
                       s->stream)
               ? "cublasLtMatmul failed"
               : NULL;
}

/* The twelve of docs/measurements/2026-11-cuda-kernels.md. */
static const char *const usual[] = {
    "bf16:4096x4096x4096",
    "bf16:8192x8192x8192",
    "bf16:2048x14336x4096",
    "bf16:2048x4096x14336",
    "bf16:1024x4096x4096",
    "bf16:512x14336x4096",
    "bf16:512x4096x4096",
    "bf16:300x4096x4096",
    "bf16:128x14336x4096",
    "bf16:64x14336x4096",
    "bf16:32x4096x4096",
    "bf16:16x14336x4096",
    NULL,
};

const struct rival rival_cublaslt = {
    .backend = "cuda",
    .op = HW_OP_MATMUL,
    .queue = "cuda.stream",
    .memory = "cuda.memory",
    .tf32 = true,
    .usual = usual,
    .open = cublaslt_open,
    .name = cublaslt_name,
    .prepare = cublaslt_prepare,
    .way_name = cublaslt_way,
    .multiply = cublaslt_multiply,
    .close = cublaslt_close,
};
