/* SPDX-License-Identifier: MIT */
/* steps.h - rows of GGML's blocks as stored in memory: codes and scales as vectors along K.
 *
 * A step is eight runs of 32 elements, one block of the K types. Anything that is not proportional
 * to elements, such as scales, is computed once per step. */
#ifndef CPU_STEPS_H
#define CPU_STEPS_H

#include "blocktypes.h"

enum {
    STEP_RUNS = 8,
    STEP = STEP_RUNS * PACKED_RUN,                     /* elements */
    STEP_BYTES = 34 * STEP_RUNS,                       /* of any type, at most */
    RUN_VECTORS = PACKED_RUN / (PACKED_WORDS * LANES), /* of codes in a run */
    STEP_VECTORS = STEP_RUNS / LANES /* of the values of which a run has one */
};

/* The bytes from a run to the next one; 0 for K types, which have all runs in one block. */
INLINE int run_bytes_of(int type)
{
    return has_shares(type) ? 0 : (int)hw_dtype_bytes(type);
}

INLINE int step_bytes(int type)
{
    return (int)hw_dtype_bytes(type) * (has_shares(type) ? 1 : STEP_RUNS);
}

/* ---- codes ---- */

/* The start of the 4-bit codes in a block with a single run. */
INLINE int halves_at(int type)
{
    return type == HW_Q4_0 ? 2 : type == HW_Q4_1 ? 4 : type == HW_Q5_0 ? 6 : 8;
}

INLINE vi bits_of(vi v, int from, int to)
{
    return from < to ? vi_shl(v, to - from) : vi_shr(v, from - to);
}

/* Vector v of the codes of run `run` of a K type's block, counted from 0. */
INLINE vi k_codes(int type, const uint8_t *block, int run, int v)
{
    const int at = v * PACKED_WORDS * LANES;
    const vi mask = vi_set(0x0f0f0f0f);
    if (type == HW_Q6_K) {
        const vi low = vi_load(block + run / 4 * 64 + run % 2 * 32 + at);
        const vi high = vi_load(block + 128 + run / 4 * 32 + at);
        return (bits_of(low, run % 4 / 2 * 4, 0) & mask) |
               (bits_of(high, run % 4 * 2, 4) & vi_set(0x30303030));
    }
    const int halves = type == HW_Q4_K ? 16 : 48;
    const vi low = vi_load(block + halves + run / 2 * 32 + at);
    const vi code = bits_of(low, run % 2 * 4, 0) & mask;
    if (type == HW_Q4_K)
        return code;
    return code | (bits_of(vi_load(block + 16 + at), run, 4) & vi_set(0x10101010));
}

/* Vector v of a run's codes in the form that dot_add() takes. `block` is the run's block. */
INLINE vi codes_of_run(int type, const uint8_t *block, int run, int v)
{
    if (has_shares(type))
        return k_codes(type, block, run, v);
    if (type == HW_Q8_0)
        return vi_load(block + 2 + v * PACKED_WORDS * LANES) ^
               vi_set((int32_t)(PACKED_FLIP * 0x01010101u));
    const vi halves = vi_load_halves(block + halves_at(type), v);
    if (code_bits(type) == 4)
        return halves;
    return halves | vi_load_fifths(block + halves_at(type) - 4, v);
}

/* ---- scales ---- */

/* For a step: the factors of codes, for each run or, for q6_K, half a run, and the addends. */
struct step_factors {
    vf scale[2 * STEP_VECTORS], less[STEP_VECTORS];
};

/* The shares of eight runs of q4_K and q5_K, of 6 bits each. */
INLINE void k_shares(const uint8_t *block, uint64_t *scale, uint64_t *least)
{
    uint32_t w[3];
    memcpy(w, block + 4, sizeof w);
    const uint32_t six = 0x3f3f3f3f, four = 0x0f0f0f0f, two = 0x30303030;
    const uint32_t scales = (w[2] & four) | (w[0] >> 2 & two),
                   leasts = (w[2] >> 4 & four) | (w[1] >> 2 & two);
    *scale = (w[0] & six) | (uint64_t)scales << 32;
    *least = (w[1] & six) | (uint64_t)leasts << 32;
}

INLINE void k_factors(int type, struct step_factors *f, const uint8_t *block)
{
    if (type == HW_Q6_K) {
        const vf scale = vf_set_f16(block + 208);
        for (int i = 0; i < 2 * STEP_VECTORS; i++)
            f->scale[i] = scale * vf_load_i8(block + 192 + i * LANES);
        return;
    }
    const vf scale = vf_set_f16(block), less = vf_set(-1) * vf_set_f16(block + 2);
    uint64_t shares[2];
    k_shares(block, &shares[0], &shares[1]);
    for (int i = 0; i < STEP_VECTORS; i++) {
        const uint8_t *some = (const uint8_t *)shares + i * LANES;
        f->scale[i] = scale * vf_load_u8(some);
        f->less[i] = less * vf_load_u8(some + sizeof shares[0]);
    }
}

/* The f16 at `at` in each block of a step. */
INLINE void f16s_of_step(vf *to, const uint8_t *at, int step)
{
    EACH (i, STEP_VECTORS)
        to[i] = vf_load_f16_apart(at + i * LANES * step, step);
}

INLINE void factors_of_step(int type, struct step_factors *f, const uint8_t *block)
{
    if (has_shares(type)) {
        k_factors(type, f, block);
        return;
    }
    f16s_of_step(f->scale, block, run_bytes_of(type));
    if (minimum(type))
        f16s_of_step(f->less, block + 2, run_bytes_of(type));
}

/* ---- steps ---- */

/* The step of a row at `b`, with `left` elements left. If they are fewer than a step, they are
 * copied to `rest` and padded with zeros. */
INLINE const uint8_t *whole_step(int type, const uint8_t *b, int64_t left, uint8_t *rest)
{
    if (has_shares(type) || left >= STEP)
        return b;
    memset(rest, 0, STEP_BYTES);
    memcpy(rest, b, (size_t)(left / PACKED_RUN) * (size_t)run_bytes_of(type));
    return rest;
}

/* Turns codes into weights, for each run or, for q6_K, half a run. */
struct float_factors {
    float scale[2 * STEP_RUNS], less[STEP_RUNS];
};

INLINE void store_factors(int type, struct float_factors *to, const uint8_t *block)
{
    const int vectors = type == HW_Q6_K ? 2 * STEP_VECTORS : STEP_VECTORS;
    struct step_factors f;
    factors_of_step(type, &f, block);
    EACH (i, vectors) {
        vf_store(to->scale + i * LANES, f.scale[i]);
        if (minimum(type))
            vf_store(to->less + i * LANES, f.less[i]);
    }
}

/* LANES weights of a run, from element i on. `code` has the codes of the run. */
INLINE vf weights_of(int type, const struct float_factors *f, const uint8_t *block, int run,
                     const uint8_t *code, int i)
{
    const int at = type == HW_Q6_K ? 2 * run + 2 * i / PACKED_RUN : run;
    const vf scale = vf_set(f->scale[at]);
    if (type == HW_Q8_0)
        return vf_load_i8(block + 2 + i) * scale;
    if (minimum(type))
        return vf_fma(vf_load_u8(code + i), scale, vf_set(f->less[run]));
    return (vf_load_u8(code + i) - vf_set((float)zero_code(type, 0))) * scale;
}

#endif
