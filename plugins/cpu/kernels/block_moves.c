/* SPDX-License-Identifier: MIT */
/* get_rows and copy from block types to floats, set_rows and copy from floats to q8_0. Results have
 * the same bits as kernels/prelude/storage.h and quantise.h. */
#include "moves.h"
#include "steps.h"

DECLARE_PLAN(get_rows_blocks);
DECLARE_PLAN(set_rows_blocks);
DECLARE_PLAN(copy_blocks);
DECLARE_PLAN(copy); /* of moves.c */

/* ---- from blocks ---- */

INLINE void load_run(int type, int to_type, char *to, const struct float_factors *f,
                     const uint8_t *b, int run)
{
    _Alignas(PACKED_RUN) uint8_t code[PACKED_RUN];
    const uint8_t *block = b + run * run_bytes_of(type);
    for (int v = 0; v < RUN_VECTORS && type != HW_Q8_0; v++)
        vi_store(code + v * PACKED_WORDS * LANES, codes_of_run(type, block, run, v));
    EACH (i, PACKED_RUN / LANES)
        vf_store_as(to_type, to, run * PACKED_RUN + i * LANES,
                    weights_of(type, f, block, run, code, i * LANES));
}

INLINE void load_blocks(int type, int to_type, char *to, const char *from, int64_t n)
{
    const int64_t bytes = to_type == HW_F32 ? 4 : 2;
    uint8_t rest[STEP_BYTES];
    for (int64_t k = 0; k < n; k += STEP, from += step_bytes(type), to += STEP * bytes) {
        const uint8_t *b = whole_step(type, (const uint8_t *)from, n - k, rest);
        const int runs = n - k < STEP ? (int)(n - k) / PACKED_RUN : STEP_RUNS;
        struct float_factors f;
        store_factors(type, &f, b);
        if (has_shares(type))
            EACH (run, STEP_RUNS)
                load_run(type, to_type, to, &f, b, run);
        else
            for (int run = 0; run < runs; run++)
                load_run(type, to_type, to, &f, b, run);
    }
}

#define X(NAME, name, elements, head, run)                                                 \
    static void name##_to_f32(char *to, const char *from, int64_t n)                       \
    {                                                                                      \
        load_blocks(HW_##NAME, HW_F32, to, from, n);                                       \
    }                                                                                      \
    static void name##_to_f16(char *to, const char *from, int64_t n)                       \
    {                                                                                      \
        load_blocks(HW_##NAME, HW_F16, to, from, n);                                       \
    }                                                                                      \
    static void name##_to_bf16(char *to, const char *from, int64_t n)                      \
    {                                                                                      \
        load_blocks(HW_##NAME, HW_BF16, to, from, n);                                      \
    }
PACKED_TYPES(X)
#undef X

static convert_fn *load_fn(int type, int to_type)
{
    switch (type) {
#define X(NAME, name, elements, head, run)                                                 \
    case HW_##NAME:                                                                        \
        return to_type == HW_F32   ? name##_to_f32                                         \
               : to_type == HW_F16 ? name##_to_f16                                         \
                                   : name##_to_bf16;
        PACKED_TYPES(X)
#undef X
    default:
        return NULL;
    }
}

/* ---- to q8_0 ---- */

/* v, rounded here: otherwise it could become part of a fused multiply-add. */
INLINE vf rounded(vf v)
{
#if defined(__x86_64__)
    __asm__("" : "+x"(v));
#else
    __asm__("" : "+w"(v));
#endif
    return v;
}

/* Rounds to the nearest integer, ties away from zero: adding the largest number below a half
 * carries exactly the fractions that round up. */
INLINE vi away_from_zero(vf v)
{
    const vf half = vf_set(0x1.fffffep-2f);
    return vi_trunc(v + vf_if_less(v, vf_set(0), vf_set(0) - half, half));
}

/* An infinite 1 / d means that d is 0 in f16, and so are the codes. */
INLINE void store_block(int from_type, uint8_t *block, const char *from, int64_t i)
{
    vf x[PACKED_RUN / LANES], most = vf_set(0);
    EACH (v, PACKED_RUN / LANES) {
        x[v] = vf_load_as(from_type, from, i + v * LANES);
        most = vf_max(most, vf_abs(x[v]));
    }
    const float d = vf_greatest(most) / 127.0f, inverse = 1.0f / d;
    const vf scale = vf_set(inverse <= 0x1.fffffep127f ? inverse : 0.0f);
    vf_store_part_f16((uint16_t *)(void *)block, vf_set(d), 1);
    EACH (v, PACKED_RUN / LANES)
        vi_store_i8((int8_t *)block + 2 + v * LANES, away_from_zero(rounded(x[v] * scale)));
}

INLINE void store_blocks(int from_type, char *to, const char *from, int64_t n)
{
    uint8_t *block = (uint8_t *)to;
    for (int64_t i = 0; i < n; i += PACKED_RUN, block += run_bytes_of(HW_Q8_0))
        store_block(from_type, block, from, i);
}

static void f32_to_q8_0(char *to, const char *from, int64_t n)
{
    store_blocks(HW_F32, to, from, n);
}

static void f16_to_q8_0(char *to, const char *from, int64_t n)
{
    store_blocks(HW_F16, to, from, n);
}

static void bf16_to_q8_0(char *to, const char *from, int64_t n)
{
    store_blocks(HW_BF16, to, from, n);
}

static convert_fn *store_fn(int from_type)
{
    return from_type == HW_F32   ? f32_to_q8_0
           : from_type == HW_F16 ? f16_to_q8_0
                                 : bf16_to_q8_0;
}

/* ---- copy ---- */

static void run_copy(const struct plan *plan, int64_t group, int64_t end, uint32_t thread)
{
    const struct copy_args *a = &plan->lowered.args.copy;
    convert_fn *const load = load_fn(a->src_type, a->dst_type);
    (void)thread;
    copy_by(load ? load : store_fn(a->src_type), plan, group, end);
}

/* Copies without conversion of blocks go to the other text, so that this row alone serves callers
 * who need copies of all kinds. */
const char *PLAN(copy_blocks)(struct plan *plan, const struct kernel_row *row,
                              const void *args)
{
    const struct hw_copy *op = args;
    const bool load = load_fn(op->src.dtype, op->dst.dtype) != NULL;
    if (op->src.dtype == op->dst.dtype || (!load && op->dst.dtype != HW_Q8_0))
        return PLAN(copy)(plan, row, args);
    plan->run = run_copy;
    return plan_lowered(plan, row, args);
}

/* ---- get_rows and set_rows ---- */

static void run_get_rows(const struct plan *plan, int64_t first, int64_t end,
                         uint32_t thread)
{
    const struct rows_args *a = &plan->lowered.args.get_rows;
    (void)thread;
    get_rows_by(load_fn(a->from_type, a->to_type), plan, first, end);
}

const char *PLAN(get_rows_blocks)(struct plan *plan, const struct kernel_row *row,
                                  const void *args)
{
    plan->run = run_get_rows;
    return plan_lowered(plan, row, args);
}

static void run_set_rows(const struct plan *plan, int64_t first, int64_t end,
                         uint32_t thread)
{
    (void)thread;
    set_rows_by(store_fn(plan->lowered.args.set_rows.from_type), plan, first, end);
}

const char *PLAN(set_rows_blocks)(struct plan *plan, const struct kernel_row *row,
                                  const void *args)
{
    plan->run = run_set_rows;
    return plan_lowered(plan, row, args);
}
