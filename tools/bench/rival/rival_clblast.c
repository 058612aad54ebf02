/* SPDX-License-Identifier: MIT */
/* rival_clblast.c - CLBlast, a library for products on OpenCL, as installed: without tuning it for
 * the device. */
#include "rival.h"

#include <dlfcn.h>
#include <stdlib.h>

/* CLBlastSgemm and CLBlastHgemm differ in the type of two factors; sizes and offsets count
 * elements. */
#define GEMM(factor)                                                                       \
    (int layout, int a_transposed, int b_transposed, size_t m, size_t n, size_t k,         \
     factor alpha, void *a, size_t a_offset, size_t a_row, void *b, size_t b_offset,       \
     size_t b_row, factor beta, void *c, size_t c_offset, size_t c_row, void **queue,      \
     void **event)

struct clblast {
    void *library, *queue;
    int(*of_f32) GEMM(float);
    int(*of_f16) GEMM(uint16_t);
    struct product product;
};

static void clblast_close(void *self)
{
    struct clblast *s = self;
    if (s->library)
        dlclose(s->library);
    free(s);
}

static const char *open_library(struct clblast *s)
{
    s->library = dlopen("libclblast.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!s->library)
        return "libclblast.so.1 was not found: install CLBlast (libclblast1)";
    void *of_f32 = dlsym(s->library, "CLBlastSgemm");
    void *of_f16 = dlsym(s->library, "CLBlastHgemm");
    *(void **)&s->of_f32 = of_f32;
    *(void **)&s->of_f16 = of_f16;
    return of_f32 && of_f16 ? NULL : "the library has no CLBlastSgemm or CLBlastHgemm";
}

static const char *clblast_open(void **self, void *queue, const struct hw_import *workspace)
{
    struct clblast *s = calloc(1, sizeof *s);
    (void)workspace; /* it allocates its own */
    if (!s)
        return "out of memory";
    s->queue = queue;
    const char *why = open_library(s);
    if (why)
        clblast_close(s);
    else
        *self = s;
    return why;
}

/* The library does not tell its version. */
static const char *clblast_name(void *self)
{
    (void)self;
    return "CLBlast";
}

static const char *clblast_prepare(void *self, const struct product *product, int *ways)
{
    struct clblast *s = self;
    s->product = *product;
    *ways = 1;
    return product->type == HW_BF16 ? "CLBlast has no products of bf16" : NULL;
}

static size_t offset_of(const struct hw_import *memory, size_t element)
{
    return (size_t)memory->offset / element;
}

static const char *clblast_multiply(void *self, int way, const struct rival_operands *o)
{
    enum { ROW_MAJOR = 101, AS_STORED = 111, TRANSPOSED = 112, F16_ONE = 0x3C00 };
    struct clblast *s = self;
    const size_t m = (size_t)s->product.m, n = (size_t)s->product.n,
                 k = (size_t)s->product.k, element = s->product.type == HW_F32 ? 4 : 2;
    const size_t a = offset_of(&o->a, element), b = offset_of(&o->b, element),
                 c = offset_of(&o->c, element);
    int error;
    (void)way;
    if (s->product.type == HW_F32)
        error = s->of_f32(ROW_MAJOR, AS_STORED, TRANSPOSED, m, n, k, 1, o->a.handle, a, k,
                          o->b.handle, b, k, 0, o->c.handle, c, n, &s->queue, NULL);
    else
        error = s->of_f16(ROW_MAJOR, AS_STORED, TRANSPOSED, m, n, k, F16_ONE, o->a.handle,
                          a, k, o->b.handle, b, k, 0, o->c.handle, c, n, &s->queue, NULL);
    return error ? "the product failed" : NULL;
}

static const char *const usual[] = { "f32:512x512x512", "f32:1024x1024x1024",
                                     "f32:2048x2048x2048", NULL };

const struct rival rival_clblast = {
    .backend = "opencl",
    .op = HW_OP_MATMUL,
    .queue = "opencl.queue",
    .memory = "opencl.mem",
    .usual = usual,
    .open = clblast_open,
    .name = clblast_name,
    .prepare = clblast_prepare,
    .multiply = clblast_multiply,
    .close = clblast_close,
};
