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

/* Begins to copy a stage. */
#if __CUDA_ARCH__ >= 900
enum { ARRIVALS = 1 };

/* What createpolicy.fractional.L2::evict_first makes: what is read again stays longer. */
#define READ_ONCE 0x12f0000000000000ull

template <int ROWS> FUNC void copy_begin(const struct piece *piece, u32 arrived, int lane)
{
    int bytes = 0;
    if (lane != 0)
        return;
    UNROLL for (int r = 0; r < ROWS; r++) bytes += piece[r].bytes;
    expect_bytes(arrived, (u32)bytes);
    UNROLL for (int r = 0; r < ROWS; r++) if (r == 0 || piece[r].bytes) asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(piece[r].to),
        "l"(piece[r].from), "r"(piece[r].bytes), "r"(arrived), "l"(READ_ONCE) : "memory");
}
#else
enum { ARRIVALS = 32 };

template <int ROWS> FUNC void copy_begin(const struct piece *piece, u32 arrived, int lane)
{
    UNROLL for (int r = 0; r < ROWS; r++)
    {
        for (int i = lane * 16; i < piece[r].bytes; i += 32 * 16)
            asm volatile(
                "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(piece[r].to + (u32)i),
                "l"(piece[r].from + (u64)i)
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

/* What is copied next: a step of rows `row` .. Of rows behind the last one nothing is copied, and
 * the products of what is in their slots are dropped. */
template <int ROWS> struct feed {
    int row, step, stage;
    int owed;       /* stages of the ring that were not filled before the first step */
    u64 from[ROWS]; /* where their copies begin */
    int bytes[ROWS], most[ROWS]; /* all; at a time */
};

/* Copies are of whole pieces of 16 bytes, so up to 15 bytes on either side are not used. */
template <int TYPE, int ROWS>
FUNC void begin_rows(const struct gemv_args &s, const struct run &run,
                     struct feed<ROWS> *next)
{
    UNROLL for (int r = 0; r < ROWS; r++)
    {
        next->bytes[r] = 0;
        if (next->row + r < run.end) {
            const u64 from = source_of(s, next->row + r).b;
            const int skipped = (int)from & 15;
            next->from[r] = from - (u64)skipped;
            next->bytes[r] = (skipped + run.bytes + 15) & ~15;
            next->most[r] = GEMV_STEP_BYTES(TYPE) + (skipped ? 16 : 0);
        }
    }
}

template <int TYPE, int ROWS>
FUNC void fetch(const struct gemv_args &s, const struct run &run, struct feed<ROWS> *next,
                int lane)
{
    struct piece piece[ROWS];
    if (next->row >= run.end)
        return;
    if (next->step == 0)
        begin_rows<TYPE, ROWS>(s, run, next);
    UNROLL for (int r = 0; r < ROWS; r++)
    {
        const int first = next->step * GEMV_STEP_BYTES(TYPE), left = next->bytes[r] - first;
        piece[r].to = run.ring_at + (u32)(next->stage * GEMV_STAGE_BYTES(TYPE, ROWS) +
                                          r * GEMV_SLOT_BYTES(TYPE));
        piece[r].from = next->from[r] + (u64)first;
        piece[r].bytes = left <= 0 ? 0 : left < next->most[r] ? left : next->most[r];
    }
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

/* Copies ahead, as far as the ring has room. Where other warps load a, few stages are on their way
 * at a time, because those loads queue behind them; and when a is there, the first steps fetch what
 * is owed. `a_is_there`: a barrier, or 0. */
template <int TYPE, int ROWS>
FUNC void fill(const struct gemv_args &s, const struct run &run, struct feed<ROWS> *next,
               u32 a_is_there, int lane)
{
    enum { ON_THE_WAY = 2 };
    next->owed = s.stages;
    LOOP for (int i = 0; i < s.stages && next->row < run.end; i++)
    {
        if (a_is_there && i >= ON_THE_WAY)
            while (!has_arrived(run.arrived + (u32)(i - ON_THE_WAY) * 8, 0))
                if (has_arrived(a_is_there, 0))
                    return;
        fetch<TYPE, ROWS>(s, run, next, lane);
        next->owed--;
    }
}

/* After a step: fetches into its stage, and into one that is owed. */
template <int TYPE, int ROWS>
FUNC void fetch_on(const struct gemv_args &s, const struct run &run,
                   struct feed<ROWS> *next, int lane)
{
    LOOP for (int more = next->owed ? 2 : 1; more; more--)
        fetch<TYPE, ROWS>(s, run, next, lane);
    next->owed -= next->owed ? 1 : 0;
}

#endif
