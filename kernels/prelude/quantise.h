/* SPDX-License-Identifier: MIT */
/* prelude/quantise.h - from floats to block types, with the bits of GGML's reference. Follows
 * prelude/storage.h, which describes the types.
 *
 * Every product that is added to something is mul_exact(), and sums are in the order of the
 * reference: a last bit decides which of two codes is stored, or which of two scales. A block
 * with a NaN or an infinity gets codes and scales of some kind; nothing else is affected. */
#ifndef PRELUDE_QUANTISE_H
#define PRELUDE_QUANTISE_H

/* 1 / d, or 0 if that is infinite: for a block of zeros, and for one whose scale d is so small
 * that it is 0 in f16. */
FUNC float inverse_of(float d)
{
    const float inverse = 1.0f / d;
    return abs_f32(inverse) < f32_of_bits(0x7f800000u) ? inverse : 0.0f;
}

/* ---- blocks of 32 ---- */

/* Rounds half away from zero, as roundf() does. A NaN, which only an infinite block has,
 * becomes 0. */
FUNC int round_q8(float x)
{
    const float t = x == x ? x : 0.0f;
    const int i = (int)t;
    const float rest = t - (float)i;
    return i + (rest >= 0.5f) - (rest <= -0.5f);
}

/* d = max |x| / 127, q = round(x / d). */
FUNC void store_q8_0(GLOBAL u8 *block, PRIVATE const float *x)
{
    u32 top = 0;
    for (int i = 0; i < BLOCK; i++) {
        const u32 u = bits_of_f32(x[i]) & 0x7fffffffu;
        top = u > top ? u : top;
    }
    const float d = f32_of_bits(top) / 127.0f;
    const float id = inverse_of(d);
    store_f16(block, 0, d);
    for (int i = 0; i < BLOCK; i++)
        block[2 + i] = (u8)round_q8(mul_exact(x[i], id));
}

/* The codes 0..top of a block: (x - low) * inverse + shift, rounded down. */
struct codes {
    float low, inverse, shift;
    int top;
};

FUNC int code_of(struct codes c, float x)
{
    const float t = mul_exact(x - c.low, c.inverse);
    const int q = (int)((t == t ? t : 0.0f) + c.shift);
    return q < c.top ? q : c.top;
}

/* Stores the low four bits of all codes, and returns the fifth bits. */
FUNC u32 store_codes(GLOBAL u8 *to, PRIVATE const float *x, struct codes c)
{
    u32 fifths = 0;
    for (int i = 0; i < BLOCK / 2; i++) {
        const int low = code_of(c, x[i]), high = code_of(c, x[i + BLOCK / 2]);
        to[i] = (u8)((low & 15) | (high & 15) << 4);
        fifths |= (u32)(low >> 4) << i | (u32)(high >> 4) << (i + BLOCK / 2);
    }
    return fifths;
}

FUNC void store_bits(GLOBAL u8 *to, u32 bits)
{
    for (int i = 0; i < 4; i++)
        to[i] = (u8)(bits >> 8 * i);
}

/* Stores the scale d = m / -middle, m being the first x of largest magnitude, and returns the
 * codes x / d + middle. */
FUNC struct codes store_scale(GLOBAL u8 *block, PRIVATE const float *x, int middle)
{
    struct codes c;
    float m = 0.0f;
    for (int i = 0; i < BLOCK; i++)
        m = abs_f32(x[i]) > abs_f32(m) ? x[i] : m;
    const float d = m / (float)-middle;
    store_f16(block, 0, d);
    c.low = 0.0f;
    c.inverse = inverse_of(d);
    c.shift = (float)middle + 0.5f;
    c.top = 2 * middle - 1;
    return c;
}

/* Stores the scale d = (max - min) / top and the minimum, and returns the codes
 * (x - min) / d. */
FUNC struct codes store_range(GLOBAL u8 *block, PRIVATE const float *x, int top)
{
    const float largest = f32_of_bits(0x7f7fffffu);
    struct codes c;
    float low = largest, high = -largest;
    for (int i = 0; i < BLOCK; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    const float d = (high - low) / (float)top;
    store_f16(block, 0, d);
    store_f16(block, 1, low);
    c.low = low;
    c.inverse = inverse_of(d);
    c.shift = 0.5f;
    c.top = top;
    return c;
}

FUNC void store_q4_0(GLOBAL u8 *block, PRIVATE const float *x)
{
    store_codes(block + 2, x, store_scale(block, x, 8));
}

FUNC void store_q4_1(GLOBAL u8 *block, PRIVATE const float *x)
{
    store_codes(block + 4, x, store_range(block, x, 15));
}

FUNC void store_q5_0(GLOBAL u8 *block, PRIVATE const float *x)
{
    store_bits(block + 2, store_codes(block + 6, x, store_scale(block, x, 16)));
}

FUNC void store_q5_1(GLOBAL u8 *block, PRIVATE const float *x)
{
    store_bits(block + 4, store_codes(block + 8, x, store_range(block, x, 31)));
}

/* ---- blocks of 256: what a run needs is searched, then shared out ---- */

/* The nearest integer, the even one of two, if |x| < 2^22; of larger numbers, as GGML has it,
 * some of the bits. 0 for a NaN. */
FUNC int nearest(float x)
{
    const u32 sum = bits_of_f32(x + 12582912.0f);
    return (sum & 0x7fffffffu) > 0x7f800000u ? 0 : (int)(sum & 0x7fffffu) - 0x400000;
}

/* nearest(x), at least low and at most top. */
FUNC int nearest_within(float x, int low, int top)
{
    const int q = nearest(x);
    return q < low ? low : q < top ? q : top;
}

/* What was found for a run: x is about scale * code + low, and the codes, if the block's scale
 * is too small for the run, are nearest((x - code_low) * code_inverse). */
struct fit {
    float scale, low, code_low, code_inverse;
};

FUNC int fit_code(struct fit f, float x, int top)
{
    return nearest_within(mul_exact(f.code_inverse, x - f.code_low), 0, top);
}

/* The weight of element x in a search is rms + |x|, rms being the root mean square of the run;
 * w and wx are the sums of weights, and of weights times elements. */
struct weights {
    float rms, w, wx;
};

FUNC float weight_of(struct weights s, float x)
{
    return s.rms + abs_f32(x);
}

FUNC struct weights weights_of(PRIVATE const float *x)
{
    struct weights s;
    float squares = 0.0f;
    for (int i = 0; i < BLOCK; i++)
        squares += mul_exact(x[i], x[i]);
    s.rms = sqrt_f32(squares / (float)BLOCK);
    s.w = s.wx = 0.0f;
    for (int i = 0; i < BLOCK; i++) {
        s.w += weight_of(s, x[i]);
        s.wx += mul_exact(weight_of(s, x[i]), x[i]);
    }
    return s;
}

/* The weighted square error of a fit. */
FUNC float fit_error(struct fit f, PRIVATE const float *x, struct weights s, int top)
{
    float error = 0.0f;
    for (int i = 0; i < BLOCK; i++) {
        const float about = mul_exact(f.scale, (float)fit_code(f, x[i], top)) + f.low;
        const float off = about - x[i];
        error += mul_exact(weight_of(s, x[i]), mul_exact(off, off));
    }
    return error;
}

/* The best scale and low <= 0 that the codes of `f` allow, by weighted least squares. Returns
 * whether there is one. */
FUNC int fit_squares(PRIVATE struct fit *f, PRIVATE const float *x, struct weights s,
                     int top)
{
    float sum_l = 0.0f, sum_ll = 0.0f, sum_lx = 0.0f;
    for (int i = 0; i < BLOCK; i++) {
        const float l = (float)fit_code(*f, x[i], top);
        const float weighted = mul_exact(weight_of(s, x[i]), l);
        sum_l += weighted;
        sum_ll += mul_exact(weighted, l);
        sum_lx += mul_exact(weighted, x[i]);
    }
    const float det = mul_exact(s.w, sum_ll) - mul_exact(sum_l, sum_l);
    if (!(det > 0.0f))
        return 0;
    f->scale = (mul_exact(s.w, sum_lx) - mul_exact(s.wx, sum_l)) / det;
    f->low = (mul_exact(sum_ll, s.wx) - mul_exact(sum_l, sum_lx)) / det;
    if (f->low > 0.0f) {
        f->low = 0.0f;
        f->scale = sum_lx / sum_ll;
    }
    return 1;
}

/* Searches scale and low <= 0 for a run, with codes 0..top: tries the range of the run with
 * `steps` + 1 numbers of codes, from top + first on, each 0.1 apart. */
FUNC struct fit fit_run(PRIVATE const float *x, int top, float first, int steps)
{
    const struct weights weights = weights_of(x);
    struct fit best;
    float low = x[0], high = x[0];
    for (int i = 1; i < BLOCK; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    low = low > 0.0f ? 0.0f : low;
    best.low = best.code_low = low;
    best.scale = best.code_inverse = 0.0f;
    if (high == low)
        return best;
    best.code_inverse = (float)top / (high - low);
    best.scale = 1.0f / best.code_inverse;
    float least = fit_error(best, x, weights, top);
    for (int s = 0; s <= steps; s++) {
        struct fit next = best;
        const float codes = first + mul_exact(0.1f, (float)s) + (float)top;
        next.code_low = best.low;
        next.code_inverse = codes / (high - best.low);
        if (!fit_squares(&next, x, weights, top))
            continue;
        const float error = fit_error(next, x, weights, top);
        if (error < least) {
            least = error;
            best = next;
        }
    }
    return best;
}

/* Stores what q4_K and q5_K have in common, the scale, the minimum and the shares of each run,
 * and makes the 256 codes. */
FUNC void store_shares(GLOBAL u8 *block, PRIVATE u8 *code, GLOBAL const u8 *from, int type,
                       i64 first, int top, float start, int steps)
{
    struct fit fit[SUPER / BLOCK];
    u8 scale[SUPER / BLOCK], minimum[SUPER / BLOCK];
    float x[BLOCK], most_scale = 0.0f, most_minimum = 0.0f;

    for (int r = 0; r < SUPER / BLOCK; r++) {
        load_floats(x, from, type, first + r * BLOCK, BLOCK);
        fit[r] = fit_run(x, top, start, steps);
        most_scale = max_f32(fit[r].scale, most_scale);
        most_minimum = max_f32(-fit[r].low, most_minimum);
    }
    const float per_scale = most_scale > 0.0f ? 63.0f / most_scale : 0.0f;
    const float per_minimum = most_minimum > 0.0f ? 63.0f / most_minimum : 0.0f;
    for (int r = 0; r < SUPER / BLOCK; r++) {
        const u8 s = (u8)nearest(mul_exact(per_scale, fit[r].scale));
        const u8 m = (u8)nearest(mul_exact(per_minimum, -fit[r].low));
        scale[r] = s < 63 ? s : 63;
        minimum[r] = m < 63 ? m : 63;
    }
    store_f16(block, 0, most_scale / 63.0f);
    store_f16(block, 1, most_minimum / 63.0f);
    for (int r = 0; r < 4; r++) {
        block[4 + r] = (u8)(scale[r] | scale[r + 4] >> 4 << 6);
        block[8 + r] = (u8)(minimum[r] | minimum[r + 4] >> 4 << 6);
        block[12 + r] = (u8)((scale[r + 4] & 15) | (minimum[r + 4] & 15) << 4);
    }
    for (int r = 0; r < SUPER / BLOCK; r++) {
        const float d = load_scale(block) * (float)scale[r];
        const float m = load_scale(block + 2) * (float)minimum[r]; /* exact */
        load_floats(x, from, type, first + r * BLOCK, BLOCK);
        for (int i = 0; i < BLOCK; i++)
            code[r * BLOCK + i] = (u8)(d == 0.0f ? fit_code(fit[r], x[i], top)
                                                 : nearest_within((x[i] + m) / d, 0, top));
    }
}

/* The low halves of 256 codes: two neighbouring runs share 32 bytes. */
FUNC void store_low_halves(GLOBAL u8 *to, PRIVATE const u8 *code)
{
    for (int i = 0; i < SUPER / 2; i++) {
        const int at = i / BLOCK * 2 * BLOCK + i % BLOCK;
        to[i] = (u8)((code[at] & 15) | (code[at + BLOCK] & 15) << 4);
    }
}

FUNC void store_q4_K(GLOBAL u8 *block, GLOBAL const u8 *from, int type, i64 first)
{
    u8 code[SUPER];
    store_shares(block, code, from, type, first, 15, -1.0f, 20);
    store_low_halves(block + 16, code);
}

FUNC void store_q5_K(GLOBAL u8 *block, GLOBAL const u8 *from, int type, i64 first)
{
    u8 code[SUPER];
    store_shares(block, code, from, type, first, 31, -0.5f, 15);
    for (int i = 0; i < BLOCK; i++) {
        int fifths = 0;
        for (int r = 0; r < SUPER / BLOCK; r++)
            fifths |= code[r * BLOCK + i] >> 4 << r;
        block[16 + i] = (u8)fifths;
    }
    store_low_halves(block + 48, code);
}

/* ---- q6_K: runs of 16, no minimum ---- */

#define SIX_RUN  16
#define SIX_RUNS (SUPER / SIX_RUN)
#define SIX_ZERO 1e-15f /* what is below is zero */

/* x is about scale * code; the codes, if the block's scale is too small for the run, are
 * nearest(x * inverse), or all at the lower end if the run is zero. */
struct six_fit {
    float scale, inverse;
    int is_zero;
};

FUNC int six_code(float x, float inverse)
{
    return nearest_within(mul_exact(inverse, x), -32, 31);
}

/* The sums of the codes l times x, and times l, with the weights x x. */
struct six_sums {
    float sum_xl, sum_ll;
};

FUNC struct six_sums six_sums_of(PRIVATE const float *x, float inverse)
{
    struct six_sums s;
    s.sum_xl = s.sum_ll = 0.0f;
    for (int i = 0; i < SIX_RUN; i++) {
        const float w = mul_exact(x[i], x[i]), l = (float)six_code(x[i], inverse);
        s.sum_xl += mul_exact(mul_exact(w, x[i]), l);
        s.sum_ll += mul_exact(mul_exact(w, l), l);
    }
    return s;
}

/* Searches the scale with the least square error; tries 32 codes for the largest element, and
 * 0.1 to 0.9 more or fewer. */
FUNC struct six_fit six_fit_run(PRIVATE const float *x)
{
    struct six_fit best;
    float top = 0.0f;
    for (int i = 0; i < SIX_RUN; i++)
        top = abs_f32(x[i]) > abs_f32(top) ? x[i] : top;
    best.scale = best.inverse = 0.0f;
    best.is_zero = abs_f32(top) < SIX_ZERO;
    if (best.is_zero)
        return best;
    best.inverse = -32.0f / top;
    struct six_sums sums = six_sums_of(x, best.inverse);
    best.scale = sums.sum_ll != 0.0f ? sums.sum_xl / sums.sum_ll : 0.0f;
    float gain = best.scale * sums.sum_xl;
    for (int s = -9; s <= 9; s++) {
        const float inverse = -(32.0f + mul_exact(0.1f, (float)s)) / top;
        if (s == 0)
            continue;
        sums = six_sums_of(x, inverse);
        if (sums.sum_ll > 0.0f && sums.sum_xl * sums.sum_xl > gain * sums.sum_ll) {
            best.scale = sums.sum_xl / sums.sum_ll;
            best.inverse = inverse;
            gain = best.scale * sums.sum_xl;
        }
    }
    return best;
}

/* Makes the 256 codes of a block whose scale is stored. */
FUNC void six_codes(PRIVATE u8 *code, GLOBAL const u8 *block,
                    PRIVATE const struct six_fit *fit, GLOBAL const u8 *from, int type,
                    i64 first)
{
    for (int r = 0; r < SIX_RUNS; r++) {
        const float d = load_scale(block + 208) * (float)(i8)block[192 + r];
        float x[SIX_RUN] = { 0.0f };
        load_floats(x, from, type, first + r * SIX_RUN, SIX_RUN);
        for (int i = 0; i < SIX_RUN; i++) {
            const int q = d == 0.0f ? six_code(x[i], fit[r].inverse)
                                    : nearest_within(x[i] / d, -32, 31);
            code[r * SIX_RUN + i] = (u8)(d == 0.0f && fit[r].is_zero ? 0 : q + 32);
        }
    }
}

FUNC void store_q6_K(GLOBAL u8 *block, GLOBAL const u8 *from, int type, i64 first)
{
    struct six_fit fit[SIX_RUNS];
    u8 code[SUPER];
    float most = 0.0f;

    for (int r = 0; r < SIX_RUNS; r++) {
        float x[SIX_RUN] = { 0.0f };
        load_floats(x, from, type, first + r * SIX_RUN, SIX_RUN);
        fit[r] = six_fit_run(x);
        most = abs_f32(fit[r].scale) > abs_f32(most) ? fit[r].scale : most;
    }
    if (abs_f32(most) < SIX_ZERO) {
        for (int i = 0; i < Q6_K_BYTES; i++)
            block[i] = 0;
        return;
    }
    const float inverse = -128.0f / most;
    store_f16(block + 208, 0, 1.0f / inverse);
    for (int r = 0; r < SIX_RUNS; r++) {
        const int share = nearest(mul_exact(inverse, fit[r].scale));
        block[192 + r] = (u8)(share < 127 ? share : 127);
    }
    six_codes(code, block, fit, from, type, first);
    for (int i = 0; i < SUPER / 2; i++) {
        const int at = i / 64 * 128 + i % 64;
        block[i] = (u8)((code[at] & 15) | (code[at + 64] & 15) << 4);
    }
    for (int i = 0; i < SUPER / 4; i++) {
        const int at = i / 32 * 128 + i % 32;
        block[128 + i] = (u8)(code[at] >> 4 | code[at + 32] >> 4 << 2 |
                              code[at + 64] >> 4 << 4 | code[at + 96] >> 4 << 6);
    }
}

/* ---- whatever the type ---- */

/* Stores elements first .. of a row of floats as one whole block. */
FUNC void store_block(GLOBAL u8 *to, int to_type, GLOBAL const u8 *from, int from_type,
                      i64 first)
{
    float x[BLOCK];
    if (elements_of(to_type) == BLOCK)
        load_floats(x, from, from_type, first, BLOCK);
    switch (to_type) {
#define X(NAME, name, elements, bytes)                                                     \
    case STORAGE_##NAME:                                                                   \
        store_##name(to + first / BLOCK * bytes, x);                                       \
        break;
        BLOCK_TYPES_32(X)
#undef X
#define X(NAME, name, elements, bytes)                                                     \
    case STORAGE_##NAME:                                                                   \
        store_##name(to + first / SUPER * bytes, from, from_type, first);                  \
        break;
        BLOCK_TYPES_256(X)
#undef X
    }
}

#endif
