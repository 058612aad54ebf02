/* SPDX-License-Identifier: MIT */
/* onednn.c - see onednn.h. The structs here are larger than those of dnnl.h that the library fills
 * in. */
#include "onednn.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* As in dnnl_types.h. */
enum { CPU = 1, IN_ORDER = 1, F32 = 3, ANY_FORM = 1, WEIGHTS_FORM = 131 };
enum { SOURCE = 1, TARGET = 17, WEIGHTS = 33 };
enum { MOST_DIMS = 12, MOST_WEIGHTS = 16 };

typedef int64_t dims[MOST_DIMS];
typedef struct {
    _Alignas(16) char bytes[4096];
} form; /* dnnl_memory_desc_t */
typedef struct {
    _Alignas(16) char bytes[16384];
} description; /* dnnl_matmul_desc_t */
typedef void *handle;
struct argument {
    int which;
    handle memory;
};

/* X(member, name after dnnl_, arguments) */
#define FUNCTIONS(X)                                                                       \
    X(engine_create, "engine_create", (handle *, int kind, size_t index))                  \
    X(engine_destroy, "engine_destroy", (handle))                                          \
    X(stream_create, "stream_create", (handle *, handle engine, unsigned flags))           \
    X(stream_wait, "stream_wait", (handle))                                                \
    X(stream_destroy, "stream_destroy", (handle))                                          \
    X(form_by_strides, "memory_desc_init_by_strides",                                      \
      (form *, int rank, const dims, int type, const dims strides))                        \
    X(form_by_tag, "memory_desc_init_by_tag",                                              \
      (form *, int rank, const dims, int type, int tag))                                   \
    X(describe, "matmul_desc_init",                                                        \
      (description *, const form *a, const form *b, const form *bias, const form *c))      \
    X(choose, "primitive_desc_create",                                                     \
      (handle *, const description *, handle attributes, handle engine, handle hint))      \
    X(choose_reorder, "reorder_primitive_desc_create",                                     \
      (handle *, const form *, handle engine, const form *, handle other, handle attr))    \
    X(forget_choice, "primitive_desc_destroy", (handle))                                   \
    X(primitive_create, "primitive_create", (handle *, handle choice))                     \
    X(primitive_destroy, "primitive_destroy", (handle))                                    \
    X(execute, "primitive_execute",                                                        \
      (handle, handle stream, int count, const struct argument *))                         \
    X(memory_create, "memory_create", (handle *, const form *, handle engine, void *data)) \
    X(memory_set, "memory_set_data_handle", (handle, void *data))                          \
    X(memory_destroy, "memory_destroy", (handle))

struct onednn {
#define X(member, name, arguments) int(*member) arguments;
    FUNCTIONS(X)
#undef X
    const form *(*form_of)(handle choice, int what, int index);
    handle engine, stream, choice, primitive, a, b, c;
    form stored; /* of b */
    struct {
        const float *from;
        handle memory;
    } packed[MOST_WEIGHTS];
    int count;
};

static bool find_functions(struct onednn *o, void *library)
{
    bool all = true;
#define X(member, name, arguments)                                                         \
    *(void **)&o->member = dlsym(library, "dnnl_" name);                                   \
    all &= o->member != NULL;
    FUNCTIONS(X)
#undef X
    *(void **)&o->form_of = dlsym(library, "dnnl_primitive_desc_query_md");
    return all && o->form_of;
}

static void forget(struct onednn *o)
{
    const handle memories[] = { o->a, o->b, o->c };
    for (int i = 0; i < 3; i++)
        if (memories[i])
            o->memory_destroy(memories[i]);
    for (int i = 0; i < o->count; i++)
        o->memory_destroy(o->packed[i].memory);
    if (o->primitive)
        o->primitive_destroy(o->primitive);
    if (o->choice)
        o->forget_choice(o->choice);
    o->a = o->b = o->c = o->primitive = o->choice = NULL;
    o->count = 0;
}

struct onednn *onednn_product_open(void *library)
{
    struct onednn *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    if (!find_functions(o, library) || o->engine_create(&o->engine, CPU, 0)) {
        free(o);
        return NULL;
    }
    if (o->stream_create(&o->stream, o->engine, IN_ORDER)) {
        o->engine_destroy(o->engine);
        free(o);
        return NULL;
    }
    return o;
}

void onednn_product_close(struct onednn *o)
{
    if (!o)
        return;
    forget(o);
    o->stream_destroy(o->stream);
    o->engine_destroy(o->engine);
    free(o);
}

const char *onednn_product_prepare(struct onednn *o, const struct product *p)
{
    const dims a = { p->m, p->k }, b = { p->k, p->n }, c = { p->m, p->n };
    const dims a_steps = { p->k, 1 }, b_steps = { 1, p->k }, c_steps = { p->n, 1 };
    static form a_form, any, c_form;
    static description product;
    forget(o);
    const bool bad = o->form_by_strides(&a_form, 2, a, F32, a_steps) ||
                     o->form_by_strides(&o->stored, 2, b, F32, b_steps) ||
                     o->form_by_tag(&any, 2, b, F32, ANY_FORM) ||
                     o->form_by_strides(&c_form, 2, c, F32, c_steps) ||
                     o->describe(&product, &a_form, &any, NULL, &c_form) ||
                     o->choose(&o->choice, &product, NULL, o->engine, NULL) ||
                     o->primitive_create(&o->primitive, o->choice) ||
                     o->memory_create(&o->a, &a_form, o->engine, NULL) ||
                     o->memory_create(&o->b, &o->stored, o->engine, NULL) ||
                     o->memory_create(&o->c, &c_form, o->engine, NULL);
    return bad ? "oneDNN has no primitive for this product" : NULL;
}

/* Packs b into memory that the library allocates. */
static handle pack(struct onednn *o, const float *b)
{
    void *const by_the_library = (void *)UINTPTR_MAX;
    const form *to = o->form_of(o->choice, WEIGHTS_FORM, 0);
    handle choice = NULL, reorder = NULL, memory = NULL;
    bool good = to && !o->memory_create(&memory, to, o->engine, by_the_library) &&
                !o->choose_reorder(&choice, &o->stored, o->engine, to, o->engine, NULL) &&
                !o->primitive_create(&reorder, choice) &&
                !o->memory_set(o->b, (void *)(uintptr_t)b);
    if (good) {
        const struct argument arguments[] = { { SOURCE, o->b }, { TARGET, memory } };
        good = !o->execute(reorder, o->stream, 2, arguments) && !o->stream_wait(o->stream);
    }
    if (reorder)
        o->primitive_destroy(reorder);
    if (choice)
        o->forget_choice(choice);
    if (memory && !good)
        o->memory_destroy(memory);
    return good ? memory : NULL;
}

static handle packed(struct onednn *o, const float *b)
{
    for (int i = 0; i < o->count; i++)
        if (o->packed[i].from == b)
            return o->packed[i].memory;
    const handle memory = o->count < MOST_WEIGHTS ? pack(o, b) : NULL;
    if (memory) {
        o->packed[o->count].from = b;
        o->packed[o->count++].memory = memory;
    }
    return memory;
}

const char *onednn_product_multiply(struct onednn *o, const float *a, const float *b,
                                    float *c)
{
    const struct argument arguments[] = { { SOURCE, o->a },
                                          { WEIGHTS, packed(o, b) },
                                          { TARGET, o->c } };
    const bool good = arguments[1].memory && !o->memory_set(o->a, (void *)(uintptr_t)a) &&
                      !o->memory_set(o->c, c) &&
                      !o->execute(o->primitive, o->stream, 3, arguments) &&
                      !o->stream_wait(o->stream);
    return good ? NULL : "oneDNN's primitive failed";
}
