/* SPDX-License-Identifier: MIT */
/* blocks.c - see blocks.h. Each step of a quantiser is rounded to float in its own statement or
 * function, so that no compiler fuses two of them. */
#include "blocks.h"

#include "storage.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST = 256 }; /* elements of a block */

static float half_at(const unsigned char *p)
{
    return (float)storage_read(HW_F16, p, 0);
}

static void put_half(unsigned char *p, float value)
{
    storage_write(HW_F16, p, &(double){ (double)value }, 1);
}

/* ---- where codes are -------------------------------------------------------------------- */

/* A part of the code of an element: some bits of a byte, and the value of the lowest bit. */
struct part {
    int byte, shift, bits, worth;
};

static int part_read(const unsigned char *block, struct part p)
{
    return (block[p.byte] >> p.shift & ((1 << p.bits) - 1)) * p.worth;
}

static void part_write(unsigned char *block, struct part p, int code)
{
    block[p.byte] |= (unsigned char)((code / p.worth & ((1 << p.bits) - 1)) << p.shift);
}

/* The place of element `i`'s code; a part of 0 bits is absent. */
static void parts_of(int32_t dtype, int i, struct part part[2])
{
    const int half = i / 16; /* of a block of 32 */
    const int run = i / 32;  /* of a block of 256 */

    part[1] = (struct part){ 0, 0, 0, 1 };
    switch (dtype) {
    case HW_Q8_0:
        part[0] = (struct part){ 2 + i, 0, 8, 1 };
        break;
    case HW_Q4_0:
        part[0] = (struct part){ 2 + i % 16, 4 * half, 4, 1 };
        break;
    case HW_Q4_1:
        part[0] = (struct part){ 4 + i % 16, 4 * half, 4, 1 };
        break;
    case HW_Q5_0:
        part[0] = (struct part){ 6 + i % 16, 4 * half, 4, 1 };
        part[1] = (struct part){ 2 + i / 8, i % 8, 1, 16 };
        break;
    case HW_Q5_1:
        part[0] = (struct part){ 8 + i % 16, 4 * half, 4, 1 };
        part[1] = (struct part){ 4 + i / 8, i % 8, 1, 16 };
        break;
    case HW_Q4_K:
        part[0] = (struct part){ 16 + i / 64 * 32 + i % 32, 4 * (run % 2), 4, 1 };
        break;
    case HW_Q5_K:
        part[0] = (struct part){ 48 + i / 64 * 32 + i % 32, 4 * (run % 2), 4, 1 };
        part[1] = (struct part){ 16 + i % 32, run, 1, 16 };
        break;
    default: /* q6_K */
        part[0] = (struct part){ i / 128 * 64 + i % 64, i % 128 / 64 * 4, 4, 1 };
        part[1] = (struct part){ 128 + i / 128 * 32 + i % 32, run % 4 * 2, 2, 16 };
        break;
    }
}

static int code_read(int32_t dtype, const unsigned char *block, int i)
{
    struct part part[2];
    parts_of(dtype, i, part);
    return part_read(block, part[0]) + part_read(block, part[1]);
}

static void codes_write(int32_t dtype, unsigned char *block, const int *code)
{
    for (int i = 0; i < hw_dtype_block(dtype); i++) {
        struct part part[2];
        parts_of(dtype, i, part);
        part_write(block, part[0], code[i]);
        part_write(block, part[1], code[i]);
    }
}

/* The 16 numbers of 6 bits in a q4_K or q5_K block: 8 shares of the scale, then 8 of the minimum.
 * The numbers of the first four runs fill the low bits of eight bytes. The numbers of the last four
 * runs have four bits in four more bytes, and two bits at the top of the first eight. */
static void shares_of(int which, struct part part[2])
{
    const int run = which % 8, minimum = which / 8;

    part[0] = run < 4 ? (struct part){ 4 + 4 * minimum + run, 0, 6, 1 }
                      : (struct part){ 8 + run, 4 * minimum, 4, 1 };
    part[1] = run < 4 ? (struct part){ 0, 0, 0, 1 }
                      : (struct part){ 4 * minimum + run, 6, 2, 16 };
}

static int share_read(const unsigned char *block, int which)
{
    struct part part[2];
    shares_of(which, part);
    return part_read(block, part[0]) + part_read(block, part[1]);
}

static void share_write(unsigned char *block, int which, int share)
{
    struct part part[2];
    shares_of(which, part);
    part_write(block, part[0], share);
    part_write(block, part[1], share);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Shared by all elements of a block. */
struct factors {
    double scale, minimum; /* no minimum: some number */
};

static struct factors factors_of(int32_t dtype, const unsigned char *block)
{
    return (struct factors){ (double)half_at(block + (dtype == HW_Q6_K ? 208 : 0)),
                             (double)half_at(block + 2) };
}

/* In double, each product and sum is exact, so only the conversion rounds. */
static float element(int32_t dtype, const unsigned char *block, struct factors f, int i)
{
    const double code = code_read(dtype, block, i);

    switch (dtype) {
    case HW_Q8_0:
        return (float)(f.scale * (code < 128 ? code : code - 256));
    case HW_Q4_0:
        return (float)(f.scale * (code - 8));
    case HW_Q5_0:
        return (float)(f.scale * (code - 16));
    case HW_Q4_1:
    case HW_Q5_1:
        return (float)(f.scale * code + f.minimum);
    case HW_Q4_K:
    case HW_Q5_K:
        return (float)(f.scale * share_read(block, i / 32) * code -
                       f.minimum * share_read(block, 8 + i / 32));
    default: /* q6_K */
        return (float)(f.scale * (signed char)block[192 + i / 16] * (code - 32));
    }
}

float block_read(int32_t dtype, const unsigned char *block, int i)
{
    return element(dtype, block, factors_of(dtype, block), i);
}

void block_read_all(int32_t dtype, const unsigned char *block, double *values)
{
    const struct factors f = factors_of(dtype, block);
    for (int i = 0; i < hw_dtype_block(dtype); i++)
        values[i] = (double)element(dtype, block, f, i);
}

/* ---- writing blocks of 32 ---------------------------------------------------------------- */

static float inverse(float d)
{
    return d != 0.0f ? 1.0f / d : 0.0f;
}

static float farthest_from_zero(const float *x, int n)
{
    float found = 0;
    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) > fabsf(found))
            found = x[i];
    return found;
}

static void write_q8_0(unsigned char *block, const float *x)
{
    const float d = fabsf(farthest_from_zero(x, 32)) / 127.0f;

    put_half(block, d);
    for (int i = 0; i < 32; i++) {
        const float scaled = x[i] * inverse(d);
        block[2 + i] = (unsigned char)(signed char)roundf(scaled);
    }
}

/* Writes codes 0 to most, for values of -middle and up: the element farthest from zero gets the
 * code 0. */
static void write_centred(int32_t dtype, unsigned char *block, const float *x, int middle)
{
    const float d = farthest_from_zero(x, 32) / (float)-middle;
    int code[MOST];

    put_half(block, d);
    for (int i = 0; i < 32; i++) {
        const float scaled = x[i] * inverse(d);
        const float shifted = scaled + ((float)middle + 0.5f);
        code[i] = (int)fminf((float)(2 * middle - 1), fmaxf(shifted, 0));
    }
    codes_write(dtype, block, code);
}

static void write_ranged(int32_t dtype, unsigned char *block, const float *x, int most)
{
    float low = FLT_MAX, high = -FLT_MAX;
    int code[MOST];

    for (int i = 0; i < 32; i++) {
        if (x[i] < low)
            low = x[i];
        if (x[i] > high)
            high = x[i];
    }
    const float d = (high - low) / (float)most;
    put_half(block, d);
    put_half(block + 2, low);
    for (int i = 0; i < 32; i++) {
        const float above = x[i] - low;
        const float scaled = above * inverse(d);
        code[i] = (int)fminf((float)most, fmaxf(scaled + 0.5f, 0));
    }
    codes_write(dtype, block, code);
}

/* ---- writing blocks of 256 --------------------------------------------------------------- */

static float times(float a, float b)
{
    const float product = a * b;
    return product;
}

/* Rounds to the nearest integer, ties to even, with GGML's method: the bits of x + 1.5 * 2^23, for
 * any x. Every NaN counts as the default NaN. */
static int to_nearest(float x)
{
    const float sum = x + 12582912.0f;
    int32_t bits;

    if (isnan(sum))
        return 0;
    memcpy(&bits, &sum, sizeof bits);
    return (bits & 0x7fffff) - 0x400000;
}

static int clamped(int code, int low, int high)
{
    return code < low ? low : code > high ? high : code;
}

/* A run of 32 as scale * code + low. */
struct line {
    float scale, low;
    int code[32];
};

static void line_codes(struct line *line, const float *x, float inverse_scale, int most)
{
    for (int i = 0; i < 32; i++)
        line->code[i] = clamped(to_nearest(times(inverse_scale, x[i] - line->low)), 0,
                                most);
}

static float line_error(const struct line *line, const float *x, const float *weight)
{
    float error = 0;
    for (int i = 0; i < 32; i++) {
        float off = times(line->scale, (float)line->code[i]);
        off = off + line->low;
        off = off - x[i];
        error = error + times(weight[i], times(off, off));
    }
    return error;
}

/* Weighted linear regression of x on the codes, through 0 if the line would begin above it.
 * Returns false if the codes do not determine a line. */
static bool line_regress(struct line *line, const float *x, const float *weight)
{
    float w = 0, wx = 0, wc = 0, wcc = 0, wcx = 0;

    for (int i = 0; i < 32; i++) {
        const float code = (float)line->code[i], weighted = times(weight[i], code);
        w = w + weight[i];
        wx = wx + times(weight[i], x[i]);
        wc = wc + weighted;
        wcc = wcc + times(weighted, code);
        wcx = wcx + times(weighted, x[i]);
    }
    const float determinant = times(w, wcc) - times(wc, wc);
    if (!(determinant > 0))
        return false;
    const float up = times(w, wcx) - times(wx, wc),
                across = times(wcc, wx) - times(wc, wcx);
    line->scale = up / determinant;
    line->low = across / determinant;
    if (line->low > 0) {
        line->low = 0;
        line->scale = wcx / wcc;
    }
    return true;
}

/* The line of a run: the best of the line through its extremes and of `tries` regressions. */
static struct line line_of(const float *x, int most, float first, int tries)
{
    float weight[32], squares = 0, low = x[0], high = x[0];

    for (int i = 0; i < 32; i++) {
        squares = squares + times(x[i], x[i]);
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    for (int i = 0; i < 32; i++)
        weight[i] = sqrtf(squares / 32.0f) + fabsf(x[i]);

    struct line best = { .low = low > 0 ? 0 : low };
    if (high == best.low)
        return best;
    const float inverse_scale = (float)most / (high - best.low);
    best.scale = 1.0f / inverse_scale;
    line_codes(&best, x, inverse_scale, most);
    float least = line_error(&best, x, weight);
    for (int n = 0; n < tries; n++) {
        struct line next = best;
        float steps = first + times(0.1f, (float)n);
        steps = steps + (float)most;
        line_codes(&next, x, steps / (high - best.low), most);
        if (!line_regress(&next, x, weight))
            continue;
        const float error = line_error(&next, x, weight);
        if (error < least) {
            least = error;
            best = next;
        }
    }
    return best;
}

/* q4_K and q5_K: a line for each run. Its scale and minimum are stored as 6-bit shares of the
 * block's scale and minimum, and the codes are computed again for the rounded values. */
static void write_lines(int32_t dtype, unsigned char *block, const float *x)
{
    const bool four = dtype == HW_Q4_K;
    const int most = four ? 15 : 31;
    struct line line[8];
    float scale = 0, minimum = 0;
    int code[MOST];

    for (int run = 0; run < 8; run++) {
        line[run] = line_of(x + 32 * run, most, four ? -1.0f : -0.5f, four ? 21 : 16);
        if (line[run].scale > scale)
            scale = line[run].scale;
        if (-line[run].low > minimum)
            minimum = -line[run].low;
    }
    put_half(block, scale / 63.0f);
    put_half(block + 2, minimum / 63.0f);
    const float per_scale = scale > 0 ? 63.0f / scale : 0;
    const float per_minimum = minimum > 0 ? 63.0f / minimum : 0;
    for (int run = 0; run < 8;
         run++) { /* both are converted to bytes before they are limited */
        const int s = to_nearest(times(per_scale, line[run].scale)) & 255;
        const int m = to_nearest(times(per_minimum, -line[run].low)) & 255;
        share_write(block, run, s < 63 ? s : 63);
        share_write(block, 8 + run, m < 63 ? m : 63);
    }
    for (int i = 0; i < MOST; i++) {
        const int run = i / 32;
        const float step = times(half_at(block), (float)share_read(block, run));
        const float below = times(half_at(block + 2), (float)share_read(block, 8 + run));
        const float above = x[i] + below;
        code[i] = step == 0 ? line[run].code[i % 32]
                            : clamped(to_nearest(above / step), 0, most);
    }
    codes_write(dtype, block, code);
}

#define NOTHING 1e-15f /* elements and scales below this are zero */

/* The scale of 16 elements, and their codes from 0 to 63. */
static float scale_of(const float *x, int *code)
{
    const float farthest = farthest_from_zero(x, 16);
    float best = 0, scale = 0;

    for (int i = 0; i < 16; i++)
        code[i] = 0;
    if (fabsf(farthest) < NOTHING)
        return 0;
    for (int n = 0; n < 19; n++) { /* 0, then -9 to 9 without 0 */
        const int tenths = n == 0 ? 0 : n <= 9 ? n - 10 : n - 9;
        const float range = 32.0f + times(0.1f, (float)tenths);
        const float inverse_scale = -range / farthest;
        float wxc = 0, wcc = 0;
        int tried[16];
        for (int i = 0; i < 16; i++) {
            tried[i] = clamped(to_nearest(times(inverse_scale, x[i])), -32, 31);
            const float weight = times(x[i], x[i]), c = (float)tried[i];
            wxc = wxc + times(times(weight, x[i]), c);
            wcc = wcc + times(times(weight, c), c);
        }
        if (n > 0 && !(wcc > 0 && times(wxc, wxc) > times(best, wcc)))
            continue;
        scale = wcc != 0 ? wxc / wcc : 0;
        best = times(scale, wxc);
        for (int i = 0; i < 16; i++)
            code[i] = tried[i] + 32;
    }
    return scale;
}

static void write_scales(unsigned char *block, const float *x)
{
    float scale[16];
    int code[MOST];

    for (int run = 0; run < 16; run++)
        scale[run] = scale_of(x + 16 * run, code + 16 * run);
    const float farthest = farthest_from_zero(scale, 16);
    if (fabsf(farthest) < NOTHING)
        return;
    const float inverse_scale = -128.0f / farthest;
    put_half(block + 208, 1.0f / inverse_scale);
    for (int run = 0; run < 16; run++) {
        const int share = to_nearest(times(inverse_scale, scale[run]));
        block[192 + run] = (unsigned char)(share < 127 ? share : 127);
    }
    for (int i = 0; i < MOST; i++) {
        const float step = times(half_at(block + 208),
                                 (float)(signed char)block[192 + i / 16]);
        if (step != 0)
            code[i] = clamped(to_nearest(x[i] / step), -32, 31) + 32;
    }
    codes_write(HW_Q6_K, block, code);
}

void block_write(int32_t dtype, unsigned char *block, const float *x)
{
    memset(block, 0, (size_t)hw_dtype_bytes(dtype));
    switch (dtype) {
    case HW_Q8_0:
        write_q8_0(block, x);
        break;
    case HW_Q4_0:
        write_centred(dtype, block, x, 8);
        break;
    case HW_Q5_0:
        write_centred(dtype, block, x, 16);
        break;
    case HW_Q4_1:
        write_ranged(dtype, block, x, 15);
        break;
    case HW_Q5_1:
        write_ranged(dtype, block, x, 31);
        break;
    case HW_Q6_K:
        write_scales(block, x);
        break;
    default:
        write_lines(dtype, block, x);
        break;
    }
}
