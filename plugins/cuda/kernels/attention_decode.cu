/* SPDX-License-Identifier: MIT */
/* y = softmax(scale q k^T - slope distance, masked) . v for a few queries: decoding. It streams k
 * and v once; what limits it is the memory's bandwidth.
 *
 * A group has up to DECODE_ROWS rows that read one head of k and v (a row is a query of a head),
 * and one split of the keys that they see. Each of its warps takes DECODE_KEYS keys at a time,
 * which it copies ahead, from device memory to a ring of its own in shared memory (cp.async), so
 * there is no barrier in the loop. Splits leave partial results; the last of them to finish adds
 * them up. Lengths are read here: the splits share the keys that there are, and those without any
 * exit.
 *
 * In a decoding step of one token, the same launch may rotate q and k and store k and v before: each
 * group rotates its q, and the one whose keys include the new one stores it.
 *
 * Both products run on tensor cores, in TF32: a number of 24 bits is the sum of two of 11 bits, up
 * to 2^-22 of it, so products of such sums are as exact as f32. f16 and bf16 need only one. The high
 * and the low parts of q lie in the two halves of a tile of 16 rows, so that one instruction
 * multiplies both. Codes of q8_0 are exact, too; their scales are factors of sums and of p.
 *
 * In a fragment, a lane has the column lane % 4 of the row lane / 4. Which numbers of a head
 * these are is free, as long as both factors agree, so lanes read neighbours, 16 bytes at a time.
 *
 * Needs compute capability 8.0. docs/cuda-kernels.md has what it reaches on an H200. */
#include "dialect/cuda.h"

#include "args.h"

#include "prelude/math.h"

#include "prelude/storage.h"

#include "attention.h"
#include "device.h"
#include "heads.h"
#include "attention_decode.h"
#include "rotate.h"

/* Each follows the one before. */
#include "decode_numbers.h"

#include "decode_keys.h"

#include "decode_products.h"

#include "decode_merge.h"

/* ---- a group ---- */

/* From keys to the result, when q is in shared memory and keys are on their way. Returns whether
 * this group is the last one of the run. */
template <int TYPE, int DIM>
FUNC bool attend(u8 *memory, const struct decode_args &s, const struct share &share,
                 struct part<TYPE, DIM> &part, const struct fresh &fresh)
{
    struct kept<DIM> my = {
        row_of(s, share.run, local_id() % 32 / 4), 0.0f, NEG_INFINITY, 0.0f
    };
    struct warps<TYPE, DIM> *left = (struct warps<TYPE, DIM> *)memory;
    if (s.a.has_slopes && local_id() % 32 / 4 < share.run.rows)
        my.slope = ((GLOBAL const float *)s.slopes)[my.row.head];
    if (share.split > 0)
        launch_next();
    take_part<TYPE>(my, part, s, share, fresh);
    leave<TYPE>(left, my);
    BARRIER();
    add_warps<TYPE, DIM>(left, s, share);
    return share.splits == 1 || merge<TYPE, DIM>(s, share);
}

/* A group: a split, a run of rows, a batch. */
template <int TYPE, int DIM> FUNC void decode(const struct decode_args &s)
{
    extern SHARED struct quad memory[];
    struct part_of_q<TYPE, DIM> q;
    launch_next_if_first();
    if (!s.constant) {
        wait_for_previous();
        load_q(q, s, own_run(s));
    }
    const struct share share = share_of(s);
    struct part<TYPE, DIM> part = part_of<TYPE, DIM>((u8 *)memory, s, share);
    if (share.split >= share.splits)
        return;
    begin_part(part, (u8 *)memory);
    if (s.constant) {
        wait_for_previous();
        load_q(q, s, share.run);
    }
    stage_q<TYPE>(memory, q, s);
    attend((u8 *)memory, s, share, part, { -1 });
}

#include "decode_step.h"

/* ---- the kernels ---- */

#define DECODE_AS(name, args, body, TYPE, DIM)                                             \
    extern "C" __attribute__((global, launch_bounds(DECODE_WARPS(TYPE, DIM) * 32,          \
                                                    DECODE_GROUPS(TYPE, DIM)))) void       \
    name(ARGS(struct args) s)                                                              \
    {                                                                                      \
        body<TYPE, DIM>(s);                                                                \
    }
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define DECODE(type, TYPE, DIM)                                                            \
    DECODE_AS(decode_##type##_##DIM, decode_args, decode, TYPE, DIM)                       \
    DECODE_AS(step_##type##_##DIM, decode_step_args, decode_step, TYPE, DIM)
#else
#define DECODE(type, TYPE, DIM)                                                            \
    DECODE_AS(decode_##type##_##DIM, decode_args, decode, TYPE, DIM)
#endif
DECODE(f32, STORAGE_F32, 64)
DECODE(f32, STORAGE_F32, 128)
DECODE(f16, STORAGE_F16, 64)
DECODE(f16, STORAGE_F16, 128)
DECODE(f16, STORAGE_F16, 256)
DECODE(bf16, STORAGE_BF16, 64)
DECODE(bf16, STORAGE_BF16, 128)
DECODE(bf16, STORAGE_BF16, 256)
DECODE(q8_0, STORAGE_Q8_0, 64)
DECODE(q8_0, STORAGE_Q8_0, 128)
DECODE(q8_0, STORAGE_Q8_0, 256)
