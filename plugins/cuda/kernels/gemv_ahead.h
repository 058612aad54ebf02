/* SPDX-License-Identifier: MIT */
/* gemv_ahead.h - while a launch waits for a, and all its rows of b are on their way, memory idles:
 * the L2 cache may read what the launch behind it begins with. Follows gemv_ring.h. */
#ifndef CUDA_KERNELS_GEMV_AHEAD_H
#define CUDA_KERNELS_GEMV_AHEAD_H

/* Few warps, slowly: a, and what makes it, wait behind all that goes through the L2 cache. */
enum {
    AHEAD_WARPS = 4,    /* of a group */
    AHEAD_CYCLES = 1200 /* from one piece to the next, 0.65 us */
};

FUNC u32 cycles()
{
    u32 n;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(n));
    return n;
}

FUNC void prefetch(u64 from, int bytes)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes)
                 : "memory");
#endif
}

/* Until a is there. Each of the first two lanes has a range, of which the warps that read ahead
 * take pieces in turns; this one is the number-th of them. */
FUNC void read_ahead(u64 range, int number, int bytes, u32 a_is_there, int lane)
{
    const int turn = group_count() * AHEAD_WARPS * GEMV_AHEAD_PIECE;
    u32 last = cycles();
    LOOP for (int at = number * GEMV_AHEAD_PIECE; at < bytes; at += turn)
    {
        if (lane < 2)
            prefetch(range + (u64)at, GEMV_AHEAD_PIECE);
        do
            if (has_arrived(a_is_there, 0))
                return;
        while (cycles() - last < AHEAD_CYCLES);
        last += AHEAD_CYCLES;
    }
}

#endif
