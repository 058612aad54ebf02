/* SPDX-License-Identifier: MIT */
/* rival_cpu.c - OpenBLAS, BLIS and oneDNN as installed: products of f32 on the processor, with as
 * many threads as the CPU plugin uses.
 *
 * OpenBLAS and BLIS choose code by the processor's model, and use old code on models that they do
 * not know. In that case they are opened again with an environment variable that selects code for
 * the instructions that the processor has. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "onednn.h"
#include "rival.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As in cblas.h; m, n and so on count elements. */
typedef void sgemm_fn(int layout, int a_transposed, int b_transposed, int m, int n, int k,
                      float alpha, const float *a, int a_row, const float *b, int b_row,
                      float beta, float *c, int c_row);
typedef void sgemv_fn(int layout, int transposed, int m, int n, float alpha, const float *a,
                      int a_row, const float *x, int x_step, float beta, float *y,
                      int y_step);
/* As in dnnl.h. */
typedef int dnnl_sgemm_fn(char a_transposed, char b_transposed, int64_t m, int64_t n,
                          int64_t k, float alpha, const float *a, int64_t a_row,
                          const float *b, int64_t b_row, float beta, float *c,
                          int64_t c_row);

typedef void set_threads_fn(int threads);
typedef void set_many_threads_fn(int64_t threads);
typedef const char *text_fn(void);
typedef const char *text_of_fn(int id);
typedef int id_fn(void);

/* One of the libraries: `self` of struct rival. */
struct library {
    void *handle;
    char name[160];
    sgemm_fn *sgemm;
    sgemv_fn *sgemv;
    dnnl_sgemm_fn *dnnl_sgemm;
    struct onednn *packed; /* NULL: it packs no weights here */
    struct product product;
};

/* Sets a pointer of type `type` to a function of the library; NULL if the library lacks it. */
#define FIND(library, type, variable, name)                                                \
    type *variable = NULL;                                                                 \
    *(void **)&variable = dlsym((library)->handle, name)

static void library_close(void *self)
{
    struct library *l = self;
    onednn_product_close(l->packed);
    if (l->handle)
        dlclose(l->handle);
    free(l);
}

static const char *library_name(void *self)
{
    const struct library *l = self;
    return l->name;
}

/* ---- the processor ---- */

/* The thread count of the CPU plugin, except that it ignores the quota of a cgroup. */
static int threads_of_plugin(void)
{
    const char *wanted = getenv("HW_THREADS");
    cpu_set_t cores;
    if (!wanted || !*wanted)
        wanted = getenv("OMP_NUM_THREADS");
    if (wanted && atoi(wanted) > 0)
        return atoi(wanted);
    return sched_getaffinity(0, sizeof cores, &cores) ? 1 : CPU_COUNT(&cores);
}

enum level { OLD, AVX2, AVX512 };

static enum level level_of_processor(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
        return AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return AVX2;
#endif
    return OLD;
}

/* ---- choosing their code ---- */

/* A library whose code an environment variable selects. */
struct chooser {
    const char *file, *install;
    const char *variable, *value[AVX512 + 1]; /* its values by level */
    const char *newest[6];                    /* names of code that is recent enough */
    const char *(*chosen)(struct library *);
};

static bool is_old(const struct chooser *c, const char *chosen)
{
    for (int i = 0; c->newest[i]; i++)
        if (!strcmp(c->newest[i], chosen))
            return false;
    return true;
}

static const char *open_file(struct library *l, const struct chooser *c)
{
    l->handle = dlopen(c->file, RTLD_NOW | RTLD_LOCAL);
    return l->handle ? NULL : c->install;
}

/* Opens the library; if it reports that it chose old code, opens it again with the variable. */
static const char *open_best(struct library *l, const struct chooser *c)
{
    const char *value = c->value[level_of_processor()];
    const char *why = open_file(l, c);
    if (why || !value || getenv(c->variable) || !is_old(c, c->chosen(l)))
        return why;
    dlclose(l->handle);
    setenv(c->variable, value, 1);
    return open_file(l, c);
}

static const char *find_products(struct library *l)
{
    FIND(l, sgemm_fn, sgemm, "cblas_sgemm");
    FIND(l, sgemv_fn, sgemv, "cblas_sgemv");
    l->sgemm = sgemm;
    l->sgemv = sgemv;
    return sgemm && sgemv ? NULL : "the library has no cblas_sgemm or cblas_sgemv";
}

/* ---- OpenBLAS ---- */

static const char *openblas_chosen(struct library *l)
{
    FIND(l, text_fn, core, "openblas_get_corename");
    return core ? core() : "code of its own choice";
}

static const struct chooser openblas = {
    .file = "libopenblas.so.0",
    .install = "libopenblas.so.0 was not found: install OpenBLAS (libopenblas0-pthread)",
    .variable = "OPENBLAS_CORETYPE",
    .value = { [AVX2] = "Haswell", [AVX512] = "SkylakeX" },
    .newest = { "Haswell", "Zen", "SkylakeX", "Cooperlake", "SapphireRapids" },
    .chosen = openblas_chosen,
};

static const char *open_openblas(struct library *l, int threads)
{
    const char *why = open_best(l, &openblas);
    if (why || (why = find_products(l)))
        return why;
    FIND(l, set_threads_fn, set_threads, "openblas_set_num_threads");
    FIND(l, text_fn, config, "openblas_get_config");
    if (!set_threads || !config)
        return "libopenblas.so.0 is not OpenBLAS";
    set_threads(threads);
    const char *version = config(); /* "OpenBLAS 0.3.21 NO_LAPACKE ..." */
    const size_t length = strcspn(version, " ") + 1;
    snprintf(l->name, sizeof l->name, "%.*s, %s code",
             (int)(length + strcspn(version + length, " ")), version, openblas_chosen(l));
    return NULL;
}

/* ---- BLIS ---- */

static const char *blis_chosen(struct library *l)
{
    FIND(l, id_fn, query, "bli_arch_query_id");
    FIND(l, text_of_fn, name, "bli_arch_string");
    return query && name ? name(query()) : "code of its own choice";
}

static const struct chooser blis = {
    .file = "libblis.so.4",
    .install = "libblis.so.4 was not found: install BLIS (libblis4-pthread)",
    .variable = "BLIS_ARCH_TYPE",
    .value = { [AVX512] = "0" }, /* skx; a number in BLIS 0.9, which knows no names */
    .newest = { "skx", "knl", "zen4", "zen3" },
    .chosen = blis_chosen,
};

static const char *open_blis(struct library *l, int threads)
{
    const char *why = open_best(l, &blis);
    if (why || (why = find_products(l)))
        return why;
    FIND(l, set_many_threads_fn, set_threads, "bli_thread_set_num_threads");
    FIND(l, text_fn, version, "bli_info_get_version_str");
    if (!set_threads || !version)
        return "libblis.so.4 is not BLIS";
    set_threads(threads);
    snprintf(l->name, sizeof l->name, "BLIS %s, %s code", version(), blis_chosen(l));
    return NULL;
}

/* ---- oneDNN ---- */

/* It runs on the threads of OpenMP. */
static const char *open_onednn(struct library *l, int threads)
{
    struct version {
        int major, minor, patch;
    };
    typedef const struct version *version_fn(void);
    static const char *const files[] = { "libdnnl.so.3", "libdnnl.so.2" };
    for (int i = 0; !l->handle && i < 2; i++)
        l->handle = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    if (!l->handle)
        return "libdnnl.so.3 or libdnnl.so.2 was not found: install oneDNN (libdnnl2)";
    FIND(l, set_threads_fn, set_threads, "omp_set_num_threads");
    FIND(l, version_fn, version, "dnnl_version");
    FIND(l, dnnl_sgemm_fn, sgemm, "dnnl_sgemm");
    l->dnnl_sgemm = sgemm;
    if (!version || !sgemm)
        return "the library has no dnnl_sgemm";
    if (set_threads)
        set_threads(threads);
    l->packed = onednn_product_open(l->handle);
    const struct version *v = version();
    snprintf(l->name, sizeof l->name, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
    return NULL;
}

/* ---- products ---- */

enum { BY_GEMM, BY_GEMV, PACKED };

static const char *library_way(void *self, int way)
{
    static const char *const names[] = { "sgemm", "sgemv", "packed" };
    const struct library *l = self;
    return names[l->packed && way == 1 ? PACKED : way];
}

static const char *library_prepare(void *self, const struct product *product, int *ways)
{
    struct library *l = self;
    l->product = *product;
    *ways = l->packed || (product->m == 1 && l->sgemv) ? 2 : 1;
    if (product->type != HW_F32)
        return "only products of f32 are measured on cpu";
    return l->packed ? onednn_product_prepare(l->packed, product) : NULL;
}

static const char *library_multiply(void *self, int way, const struct rival_operands *o)
{
    enum { ROW_MAJOR = 101, AS_STORED = 111, TRANSPOSED = 112 };
    const struct library *l = self;
    const float *a = o->a.handle, *b = o->b.handle;
    float *c = o->c.handle;
    const int m = (int)l->product.m, n = (int)l->product.n, k = (int)l->product.k;
    if (l->packed && way == 1)
        return onednn_product_multiply(l->packed, a, b, c);
    if (l->dnnl_sgemm)
        return l->dnnl_sgemm('N', 'T', m, n, k, 1, a, k, b, k, 0, c, n)
                   ? "the product failed"
                   : NULL;
    if (way == BY_GEMV)
        l->sgemv(ROW_MAJOR, AS_STORED, n, k, 1, b, k, a, 1, 0, c, 1);
    else
        l->sgemm(ROW_MAJOR, AS_STORED, TRANSPOSED, m, n, k, 1, a, k, b, k, 0, c, n);
    return NULL;
}

static const char *library_open(void **self,
                                const char *(*open)(struct library *, int threads))
{
    struct library *l = calloc(1, sizeof *l);
    if (!l)
        return "out of memory";
    const char *why = open(l, threads_of_plugin());
    if (why)
        library_close(l);
    else
        *self = l;
    return why;
}

static const char *const usual[] = { "f32:512x512x512",    "f32:1024x1024x1024",
                                     "f32:2048x2048x2048", "f32:4096x4096x4096",
                                     "f32:512x4096x4096",  "f32:32x4096x4096",
                                     "f32:8x4096x4096",    "f32:1x4096x4096",
                                     "f32:1x14336x4096",   NULL };

#define RIVAL(library)                                                                     \
    static const char *library##_open(void **self, void *queue,                            \
                                      const struct hw_import *workspace)                   \
    {                                                                                      \
        (void)queue;                                                                       \
        (void)workspace;                                                                   \
        return library_open(self, open_##library);                                         \
    }                                                                                      \
    const struct rival rival_##library = {                                                 \
        .backend = "cpu",                                                                  \
        .op = HW_OP_MATMUL,                                                                \
        .usual = usual,                                                                    \
        .open = library##_open,                                                            \
        .name = library_name,                                                              \
        .prepare = library_prepare,                                                        \
        .way_name = library_way,                                                           \
        .multiply = library_multiply,                                                      \
        .close = library_close,                                                            \
    };
RIVAL(openblas)
RIVAL(blis)
RIVAL(onednn)
