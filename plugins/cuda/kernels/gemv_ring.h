/* SPDX-License-Identifier: MIT */
/* gemv_ring.h - rows of b on their way to shared memory, in a ring of each warp. Follows device.h
 * and matmul_gemv.h. */
#ifndef CUDA_KERNELS_GEMV_RING_H
#define CUDA_KERNELS_GEMV_RING_H

/* ---- the ring ---- */

/* The first lane's: the compiler keeps what follows from it once for the warp. */
FUNC int of_warp(int v)
{
    int first;
    asm volatile("shfl.sync.idx.b32 %0, %1, 0, 0x1f, 0xffffffff;" : "=r"(first) : "r"(v));
    return first;
}

/* A part of a row of b that is copied, whole pieces of 16 bytes. */
struct piece {
    u32 to; /* in shared memory */
    u64 from;
    int bytes;
};

/* Begins to copy a stage, of which each of the first ROWS lanes has a piece. */
#if __CUDA_ARCH__ >= 900
#define ARRIVALS(rows) (rows)

template <int ROWS> FUNC void copy_begin(const struct piece &piece, u32 arrived, int lane)
{
    if (lane >= ROWS)
        return;
    expect_bytes(arrived, (u32)piece.bytes);
    if (piece.bytes)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                     ".L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(piece.to),
                     "l"(piece.from), "r"(piece.bytes), "r"(arrived), "l"(READ_ONCE)
                     : "memory");
}
#else
#define ARRIVALS(rows) 32

FUNC u32 word_of_lane(u32 v, int lane)
{
    return bits_of_f32(of_lane(f32_of_bits(v), lane));
}

template <int ROWS> FUNC void copy_begin(const struct piece &piece, u32 arrived, int lane)
{
    UNROLL for (int r = 0; r < ROWS; r++)
    {
        const u32 to = word_of_lane(piece.to, r);
        const u64 from = (u64)word_of_lane((u32)(piece.from >> 32), r) << 32 |
                         word_of_lane((u32)piece.from, r);
        const int bytes = (int)word_of_lane((u32)piece.bytes, r);
        for (int i = lane * 16; i < bytes; i += 32 * 16)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + (u32)i),
                         "l"(from + (u64)i)
                         : "memory");
    }
    arrive_after_copies(arrived);
}
#endif

/* Where row `row` of all parts is. */
struct source {
    u64 b, bias, c;
    int bias_type, index; /* in its part */
};

FUNC struct source source_of(const struct gemv_args &s, int row)
{
    const struct gemv_part *p = &s.part[0];
    int index = row;
    if (s.gated) {
        index = row / 2;
        p = row % 2 ? &s.part[1] : p;
    } else if (row >= s.part[0].rows && s.parts > 1) {
        index -= s.part[0].rows;
        p = &s.part[1];
        if (index >= s.part[1].rows && s.parts > 2) {
            index -= s.part[1].rows;
            p = &s.part[2];
        }
    }
    const struct source r = { p->b + (u64)(index * p->stride), p->bias, p->c, p->bias_type,
                              index };
    return r;
}

/* A warp's rows of b, some of each `stride`, and its ring. */
struct run {
    int begin, end, stride; /* the row behind the last one of b */
    int steps, bytes;       /* of a row */
    u8 *ring;
    u32 ring_at, arrived; /* its address; the barriers of its stages */
};

/* The stage that a warp is in, and the phase of its barrier. */
struct cursor {
    int stage;
    u32 phase;
};

FUNC void advance(struct cursor *at, int stages)
{
    if (++at->stage == stages) {
        at->stage = 0;
        at->phase ^= 1;
    }
}

template <int TYPE, int ROWS> FUNC u8 *slot_of(const struct run &run, int stage, int r)
{
    return run.ring + stage * GEMV_STAGE_BYTES(TYPE, ROWS) + r * GEMV_SLOT_BYTES(TYPE);
}

/* What is copied next: a step of rows `row` .., of which each of the first lanes has one. Of rows
 * behind the last one nothing is copied, and the products of what is in their slots are dropped. */
struct feed {
    int row, step, stage;
    int owed; /* stages of the ring that were not filled before the first step */
    u64 from; /* what is copied of the lane's row */
    int bytes;
};

/* Whether all rows of b begin at multiples of 16. */
template <int TYPE> FUNC bool is_aligned(const struct gemv_args &s)
{
    return GEMV_IS_FLOAT(TYPE) || TYPE == STORAGE_Q4_K || TYPE == STORAGE_Q5_K || s.aligned;
}

/* Copies are of whole pieces of 16 bytes, so up to 15 bytes on either side are not used. */
template <int TYPE, int ROWS>
FUNC void begin_rows(const struct gemv_args &s, const struct run &run, struct feed *next,
                     int lane)
{
    next->bytes = 0;
    if (lane < ROWS && next->row + lane < run.end) {
        const u64 from = source_of(s, next->row + lane).b;
        const int skipped = (int)from & 15;
        next->from = from - (u64)skipped;
        next->bytes = (skipped + run.bytes + 15) & ~15;
    }
}

template <int TYPE, int ROWS>
FUNC void fetch(const struct gemv_args &s, const struct run &run, struct feed *next,
                int lane)
{
    if (next->row >= run.end)
        return;
    if (next->step == 0)
        begin_rows<TYPE, ROWS>(s, run, next, lane);
    const int first = next->step * GEMV_STEP_BYTES(TYPE), left = next->bytes - first;
    const int most = GEMV_STEP_BYTES(TYPE) + (is_aligned<TYPE>(s) ? 0 : 16);
    const struct piece piece = {
        run.ring_at + (u32)(next->stage * GEMV_STAGE_BYTES(TYPE, ROWS) +
                            lane * GEMV_SLOT_BYTES(TYPE)),
        next->from + (u64)first,
        left <= 0     ? 0
        : left < most ? left
                      : most,
    };
    copy_begin<ROWS>(piece, run.arrived + (u32)next->stage * 8, lane);
    if (++next->stage == s.stages)
        next->stage = 0;
    if (++next->step == run.steps) {
        next->step = 0;
        next->row += run.stride;
    }
}

FUNC bool has_arrived(u32 barrier, u32 phase)
{
    u32 done;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; "
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(barrier), "r"(phase)
                 : "memory");
    return done != 0;
}

/* Copies ahead, as far as the ring has room. Where other warps load a, one stage is on its way at a
 * time, because those loads queue behind it; and when a is there, the first steps fetch what is
 * owed. `a_is_there`: a barrier, or 0. */
template <int TYPE, int ROWS>
FUNC void fill(const struct gemv_args &s, const struct run &run, struct feed *next,
               u32 a_is_there, int lane)
{
    next->owed = s.stages;
    LOOP for (int i = 0; i < s.stages && next->row < run.end; i++)
    {
        if (a_is_there && i > 0)
            while (!has_arrived(run.arrived + (u32)(i - 1) * 8, 0))
                if (has_arrived(a_is_there, 0))
                    return;
        fetch<TYPE, ROWS>(s, run, next, lane);
        next->owed--;
    }
}

/* After a step: fetches into its stage, and into one that is owed. */
template <int TYPE, int ROWS>
FUNC void fetch_on(const struct gemv_args &s, const struct run &run, struct feed *next,
                   int lane)
{
    LOOP for (int more = next->owed ? 2 : 1; more; more--)
        fetch<TYPE, ROWS>(s, run, next, lane);
    next->owed -= next->owed ? 1 : 0;
}

#endif
