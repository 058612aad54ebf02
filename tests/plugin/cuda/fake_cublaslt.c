/* SPDX-License-Identifier: MIT */
/* fake_cublaslt.c - a stand-in for cuBLASLt: it waits for the stream, and computes a product of f32
 * or bf16 on the host, in f32 or, on request, in TF32. The first of its two algorithms fails. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* From the stand-in for the driver. */
int cuStreamSynchronize(void *stream);

enum { SUCCESS, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum { F32 = 0, BF16 = 14, IN_F32 = 68, IN_TF32 = 77, TRANSPOSE_FIRST = 3 };

struct product {
    int compute, transpose;
};

/* A matrix of columns. */
struct layout {
    int type;
    uint64_t rows, cols;
    int64_t step;
};

/* cublasLtMatmulHeuristicResult_t */
struct heuristic {
    uint64_t algorithm[8];
    size_t workspace;
    int status;
    float waves;
    int reserved[4];
};

int cublasLtCreate(void **handle);
int cublasLtDestroy(void *handle);
size_t cublasLtGetVersion(void);
int cublasLtMatmulDescCreate(void **product, int compute, int scale);
int cublasLtMatmulDescSetAttribute(void *product, int key, const void *value, size_t bytes);
int cublasLtMatmulDescDestroy(void *product);
int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t cols,
                               int64_t step);
int cublasLtMatrixLayoutDestroy(void *layout);
int cublasLtMatmulPreferenceCreate(void **preference);
int cublasLtMatmulPreferenceSetAttribute(void *preference, int key, const void *value,
                                         size_t bytes);
int cublasLtMatmulPreferenceDestroy(void *preference);
int cublasLtMatmulAlgoGetHeuristic(void *handle, void *product, void *a, void *b, void *c,
                                   void *d, void *preference, int most,
                                   struct heuristic *found, int *count);
int cublasLtMatmul(void *handle, void *product, const void *alpha, const void *a,
                   void *a_layout, const void *b, void *b_layout, const void *beta,
                   const void *c, void *c_layout, void *d, void *d_layout,
                   const uint64_t *algorithm, void *workspace, size_t bytes, void *stream);

static int make(void **object, const void *value, size_t bytes)
{
    *object = malloc(bytes);
    memcpy(*object, value, bytes);
    return SUCCESS;
}

static int unmake(void *object)
{
    free(object);
    return SUCCESS;
}

int cublasLtCreate(void **handle)
{
    return make(handle, "", 1);
}

int cublasLtDestroy(void *handle)
{
    return unmake(handle);
}

size_t cublasLtGetVersion(void)
{
    return 130100;
}

/* ---- descriptors ---- */

int cublasLtMatmulDescCreate(void **product, int compute, int scale)
{
    const struct product made = { .compute = compute };
    return scale == F32 ? make(product, &made, sizeof made) : INVALID_VALUE;
}

int cublasLtMatmulDescSetAttribute(void *product, int key, const void *value, size_t bytes)
{
    struct product *p = product;
    if (key != TRANSPOSE_FIRST || bytes != sizeof p->transpose)
        return INVALID_VALUE;
    memcpy(&p->transpose, value, bytes);
    return SUCCESS;
}

int cublasLtMatmulDescDestroy(void *product)
{
    return unmake(product);
}

int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t cols,
                               int64_t step)
{
    const struct layout made = { type, rows, cols, step };
    return make(layout, &made, sizeof made);
}

int cublasLtMatrixLayoutDestroy(void *layout)
{
    return unmake(layout);
}

int cublasLtMatmulPreferenceCreate(void **preference)
{
    return make(preference, "", 1);
}

int cublasLtMatmulPreferenceSetAttribute(void *preference, int key, const void *value,
                                         size_t bytes)
{
    (void)preference;
    (void)value;
    return key == 1 && bytes == sizeof(size_t) ? SUCCESS : INVALID_VALUE;
}

int cublasLtMatmulPreferenceDestroy(void *preference)
{
    return unmake(preference);
}

/* ---- products ---- */

/* As NVIDIA's table of types says: TF32 is for f32 alone. */
static bool is_supported(const struct product *p, const struct layout *a)
{
    return p->transpose == 1 &&
           (p->compute == IN_F32 || (p->compute == IN_TF32 && a->type == F32));
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *product, void *a, void *b, void *c,
                                   void *d, void *preference, int most,
                                   struct heuristic *found, int *count)
{
    (void)handle;
    (void)b;
    (void)c;
    (void)d;
    (void)preference;
    for (*count = 0; *count < 2 && *count < most; ++*count)
        found[*count] = (struct heuristic){ .algorithm = { (uint64_t)*count } };
    return is_supported(product, a) ? SUCCESS : NOT_SUPPORTED;
}

/* Rounds to the nearest number with 11 bits. */
static float as_tf32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0xfff + (bits >> 13 & 1)) & ~(uint32_t)0x1fff;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float element(const struct product *p, const struct layout *l, const void *from,
                     int64_t at)
{
    float value;
    const uint32_t bits = l->type == BF16 ? (uint32_t)((const uint16_t *)from)[at] << 16
                                          : ((const uint32_t *)from)[at];
    memcpy(&value, &bits, sizeof value);
    return p->compute == IN_TF32 ? as_tf32(value) : value;
}

static void store(const struct layout *l, void *to, int64_t at, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (l->type == BF16)
        ((uint16_t *)to)[at] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    else
        ((uint32_t *)to)[at] = bits;
}

int cublasLtMatmul(void *handle, void *product, const void *alpha, const void *a,
                   void *a_layout, const void *b, void *b_layout, const void *beta,
                   const void *c, void *c_layout, void *d, void *d_layout,
                   const uint64_t *algorithm, void *workspace, size_t bytes, void *stream)
{
    const struct layout *la = a_layout, *lb = b_layout, *ld = d_layout;
    const float one = 1, zero = 0;
    (void)handle;
    (void)workspace;
    (void)bytes;
    if (*algorithm != 1 || la->rows != lb->rows || ld->rows != la->cols ||
        ld->cols != lb->cols || d_layout != c_layout || d != c ||
        memcmp(alpha, &one, sizeof one) != 0 || memcmp(beta, &zero, sizeof zero) != 0 ||
        cuStreamSynchronize(stream))
        return EXECUTION_FAILED;
    for (int64_t col = 0; col < (int64_t)ld->cols; col++)
        for (int64_t row = 0; row < (int64_t)ld->rows; row++) {
            float sum = 0;
            for (int64_t k = 0; k < (int64_t)la->rows; k++)
                sum += element(product, la, a, row * la->step + k) *
                       element(product, lb, b, col * lb->step + k);
            store(ld, d, col * ld->step + row, sum);
        }
    return SUCCESS;
}
