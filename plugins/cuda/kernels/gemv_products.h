/* SPDX-License-Identifier: MIT */
/* gemv_products.h - the products of a step: some rows of b times rows of a. Follows gemv_codes.h.
 */
#ifndef CUDA_KERNELS_GEMV_PRODUCTS_H
#define CUDA_KERNELS_GEMV_PRODUCTS_H

/* ---- products of a step ---- */

/* Rows of a in shared memory. */
struct rows_of_a {
    u8 *first;
    int count, bytes; /* from row to row */
};

/* The bytes of a have no sign. */
FUNC int dot4_unsigned(u32 a, u32 b, int sum)
{
    asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}

/* dot += 16 codes times 16 integers, for each plane: exact. */
template <int PLANES, bool RAISED>
FUNC void dot_half(int *dot, const u32 *code, const struct quad *x)
{
    UNROLL for (int i = 0; i < 4; i++) UNROLL for (int p = 0; p < PLANES; p++)
        dot[p] = RAISED ? dot4_unsigned(code[i], x[p].v[i], dot[p])
                        : dot4(code[i], x[p].v[i], dot[p]);
}

/* What the dots of the planes are together, times a share; only the last plane's are rounded by
 * themselves. The sums below fit 32 bits but those of q6_K, whose shares have a sign. */
template <int TYPE, int PLANES> FUNC float joined(const int *dot, int share)
{
    if (PLANES == ROUNDED)
        return (float)(dot[0] * share);
    const float factor = TYPE == STORAGE_Q6_K ? (float)share : 1.0f;
    const int times = TYPE == STORAGE_Q4_K || TYPE == STORAGE_Q5_K ? share : 1;
    return factor *
           ((float)(dot[2] * times) * 65536.0f + (float)((dot[1] * 256 + dot[0]) * times));
}

/* What dots are worth. */
template <int TYPE, int PLANES>
FUNC float value_of(const struct unit &u, const int (*dot)[PLANES], const float *scales)
{
    float sum = 0.0f;
    if (TYPE == STORAGE_Q4_0 && PLANES == ROUNDED)
        return u.scale * (joined<TYPE, PLANES>(dot[0], 1) * scales[0] + scales[1]);
    if (HAS_SHARES(TYPE)) {
        UNROLL for (int half = 0; half < 2; half++)
            sum += joined<TYPE, PLANES>(dot[half], u.share[half]) * scales[half * 2];
    } else {
        sum = joined<TYPE, PLANES>(dot[0], 1) * scales[0];
    }
    sum *= u.scale;
    if (HAS_OFFSETS(TYPE))
        UNROLL for (int half = 0; half < 2; half++)
            sum += u.offset[half] * scales[half * 2 + 1];
    return sum;
}

template <int PLANES> FUNC void load_planes(struct quad (*planes)[PLANES], u8 *x, int unit)
{
    UNROLL for (int half = 0; half < 2; half++) UNROLL for (int i = 0; i < PLANES; i++)
        planes[half][i] = *(const struct quad *)plane_of<PLANES>(x, unit, half, i);
}

/* The scales of a unit of a. Where second halves are raised, those of their products are less; of
 * q4_0, the second one becomes what all codes less 8 take away. */
template <int TYPE, int PLANES> FUNC void load_scales(float *scales, u8 *x, int unit)
{
    const u8 *from = scales_of<PLANES>(x, unit);
    scales[0] = *(const float *)from;
    if (HAS_OFFSETS(TYPE) || IS_RAISED(TYPE, PLANES))
        *(struct quad *)scales = *(const struct quad *)from;
    if (IS_RAISED(TYPE, PLANES))
        scales[HAS_SHARES(TYPE) ? 2 : 0] *= 0.0625f;
    if (TYPE == STORAGE_Q4_0 && PLANES == ROUNDED)
        scales[1] = -8.0f * (scales[1] + scales[3]);
}

/* Adds the products of unit `unit` of the rows, a lane's first or second one of the step, or of
 * both where they are wide, and of each row of a. */
template <int TYPE, int PLANES, int TOKENS, int ROWS>
FUNC void add_unit(float (*sum)[ROWS], const struct rows_of_a &a, int unit, int which,
                   const u8 *const *row, int lane)
{
    enum { UNITS = IS_WIDE(TYPE) ? 2 : 1, RAISED = IS_RAISED(TYPE, PLANES) };
    struct unit u[UNITS][ROWS];
    UNROLL for (int i = 0; i < UNITS; i++) UNROLL for (int r = 0; r < ROWS; r++)
        take_unit<TYPE, PLANES>(&u[i][r], row[r], lane, which + i);
    UNROLL for (int t = 0; t < TOKENS; t++)
    {
        int dot[ROWS][2][PLANES] = { { { 0 } } };
        float scales[4];
        u8 *x = a.first + t * a.bytes;
        if (TOKENS > 1 && t >= a.count)
            break;
        UNROLL for (int i = 0; i < UNITS; i++)
        {
            struct quad planes[2][PLANES];
            load_planes<PLANES>(planes, x, unit + i * 32);
            UNROLL for (int r = 0; r < ROWS; r++)
                UNROLL for (int half = 0; half < 2; half++)
            {
                int *sums = dot[r][HAS_SHARES(TYPE) ? half : 0];
                if (RAISED && half && !HAS_SHARES(TYPE))
                    sums[0] *= 16;
                dot_half<PLANES, RAISED>(sums, u[i][r].code[half], planes[half]);
            }
        }
        load_scales<TYPE, PLANES>(scales, x, unit);
        UNROLL for (int r = 0; r < ROWS; r++)
            sum[t][r] += value_of<TYPE, PLANES>(u[0][r], dot[r], scales);
    }
}

/* A step that is whole has no branch, so that the work of its units overlaps. */
template <int TYPE, int PLANES, int TOKENS, int ROWS>
FUNC void add_units(float (*sum)[ROWS], const struct rows_of_a &a, int step,
                    const u8 *const *row, int units, int lane)
{
    const int first = step * GEMV_UNITS(TYPE) * 32;
    const bool whole = first + GEMV_UNITS(TYPE) * 32 <= units;
    UNROLL for (int which = 0; which < GEMV_UNITS(TYPE); which += IS_WIDE(TYPE) ? 2 : 1)
    {
        const int unit = first + which * 32 + lane;
        if (whole || (IS_PAIRED(TYPE) || IS_WIDE(TYPE) ? first + lane * 2 : unit) < units)
            add_unit<TYPE, PLANES, TOKENS, ROWS>(sum, a, unit, which, row, lane);
    }
}

template <int TYPE> FUNC float number_of(const struct quad &b, int i)
{
    if (TYPE == STORAGE_F32)
        return f32_of_bits(b.v[i]);
    const u16 bits = (u16)(b.v[i / 2] >> (i % 2 * 16));
    return TYPE == STORAGE_F16 ? f32_of_f16(bits) : f32_of_bf16(bits);
}

template <int TYPE, int ROWS>
FUNC void add_quads(float *sum, u8 *x, int k, const u8 *const *row, int in)
{
    enum { WIDTH = TYPE == STORAGE_F32 ? 4 : 8 };
    struct quad a[WIDTH / 4];
    UNROLL for (int i = 0; i < WIDTH; i += 4)
        a[i / 4] = *(const struct quad *)floats_of<TYPE>(x, k + i);
    UNROLL for (int r = 0; r < ROWS; r++)
    {
        const struct quad b = *(const struct quad *)(row[r] + in * (16 / WIDTH));
        UNROLL for (int i = 0; i < WIDTH; i++)
            sum[r] += f32_of_bits(a[i / 4].v[i % 4]) * number_of<TYPE>(b, i);
    }
}

template <int TYPE, int ROWS>
FUNC void add_floats(float *sum, u8 *x, int step, const u8 *const *row, int numbers,
                     int lane)
{
    enum { WIDTH = TYPE == STORAGE_F32 ? 4 : 8, NUMBERS = GEMV_STEP_NUMBERS(TYPE) };
    const int first = step * NUMBERS;
    const bool whole = first + NUMBERS <= numbers;
    UNROLL for (int part = 0; part < NUMBERS; part += 32 * WIDTH)
    {
        const int in = part + lane * WIDTH;
        if (whole || first + in < numbers)
            add_quads<TYPE, ROWS>(sum, x, first + in, row, in);
    }
}

#endif
