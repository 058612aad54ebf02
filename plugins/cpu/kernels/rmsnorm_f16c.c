/* SPDX-License-Identifier: MIT */
/* y = x * weight / sqrt(mean(x^2) + eps) for f16 x and y, as kernels/rmsnorm.c computes it,
 * with the processor's own conversions: compilers do not vectorise them, so the portable
 * row converts with integer arithmetic. No square of an f16 overflows an f32 or vanishes in
 * it, so the sum needs no second unit. */
#include "../cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>

#define F16C __attribute__((target("avx2,fma,f16c")))

enum { WIDTH = 8 };

F16C static __m256 load(const uint16_t *x)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)x));
}

F16C static void store(uint16_t *y, __m256 v)
{
    _mm_storeu_si128((__m128i *)y, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

F16C static float sum_of(__m256 v)
{
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

/* The sum of squares, four sums side by side: an addition takes several cycles. */
F16C static float squares(const uint16_t *x, int64_t cols)
{
    __m256 sum[4] = { _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                      _mm256_setzero_ps() };
    int64_t i = 0;
    for (; i + 4 * WIDTH <= cols; i += 4 * WIDTH)
        for (int k = 0; k < 4; k++) {
            const __m256 v = load(x + i + k * WIDTH);
            sum[k] = _mm256_fmadd_ps(v, v, sum[k]);
        }
    float total =
        sum_of(_mm256_add_ps(_mm256_add_ps(sum[0], sum[1]), _mm256_add_ps(sum[2], sum[3])));
    for (; i < cols; i++) {
        const float v = _cvtsh_ss(x[i]);
        total += v * v;
    }
    return total;
}

/* A weight of type f32, f16, or none. */
F16C static void scale_row(uint16_t *y, const uint16_t *x, const void *weight, int32_t type,
                           int64_t cols, float scale)
{
    const float *w32 = weight;
    const uint16_t *w16 = weight;
    const __m256 s = _mm256_set1_ps(scale);
    int64_t i = 0;
    for (; i + WIDTH <= cols; i += WIDTH) {
        __m256 v = _mm256_mul_ps(load(x + i), s);
        if (type == HW_F32)
            v = _mm256_mul_ps(v, _mm256_loadu_ps(w32 + i));
        else if (type == HW_F16)
            v = _mm256_mul_ps(v, load(w16 + i));
        store(y + i, v);
    }
    for (; i < cols; i++) {
        const float w = type == HW_F32 ? w32[i] : type == HW_F16 ? _cvtsh_ss(w16[i]) : 1.0f;
        y[i] = _cvtss_sh(_cvtsh_ss(x[i]) * scale * w, _MM_FROUND_TO_NEAREST_INT);
    }
}

static char *row_at(void *base, const struct place *place, const struct rmsnorm_args *a,
                    int64_t row)
{
    const int64_t i2 = row % a->n2, i1 = row / a->n2 % a->n1, i0 = row / a->n2 / a->n1;
    return (char *)base + place->offset + i0 * place->stride[0] + i1 * place->stride[1] +
           i2 * place->stride[2];
}

static void run(const struct plan *plan, int64_t first, int64_t end)
{
    const struct rmsnorm_args *a = &plan->lowered.args.rmsnorm;
    const int32_t type = ((const struct hw_rmsnorm *)plan->op)->weight.dtype;
    const char *weight = (char *)plan->pointer[2] + a->weight_offset;
    for (int64_t row = first; row < end; row++) {
        uint16_t *y = (void *)row_at(plan->pointer[0], &a->y, a, row);
        const uint16_t *x = (void *)row_at(plan->pointer[1], &a->x, a, row);
        const float mean = squares(x, a->cols) / (float)a->cols;
        scale_row(y, x, weight, type, a->cols, 1.0f / sqrtf(mean + a->eps));
    }
}

const char *plan_rmsnorm_f16c(struct plan *plan, const struct kernel_row *row,
                              const void *args)
{
    plan->run = run;
    return plan_lowered(plan, row, args);
}

#endif
