/* SPDX-License-Identifier: MIT */
/* Heads of q, k and v on their way to the cache: rope, and set_rows. One launch may rotate q and k
 * and store k and v: in a decoding step, launches are what these ops cost.
 *
 * A warp takes a head of a token, or some of many tokens.
 *
 * A launch may begin early, while the kernel before it ends. docs/cuda-kernels.md has what it
 * takes on an H200. */
#include "dialect/cuda.h"

#include "args.h"

#include "prelude/math.h"

#include "prelude/storage.h"

#include "device.h"
#include "heads.h"
#include "rotate.h"

/* Where a token's row of the table is; 0: nowhere. */
FUNC u64 row_of(const struct heads_job &j, int token)
{
    if (!j.table)
        return 0;
    const i64 row = row_number(j, token);
    if (row < 0)
        return 0;
    return j.table + (u64)(row * j.store.to.stride[2]);
}

FUNC void move(const struct heads_job &j, int token, int head, int end, int lane)
{
    const int dim = (int)j.rope.head_dim, half = dim / 2;
    const u64 x = j.x + (u64)(token * j.rope.x.stride[1]);
    const u64 y = j.y + (u64)(token * j.rope.y.stride[1]);
    const i64 position = position_of(j, token);
    const u64 row = row_of(j, token);
    LOOP for (int i = lane * 2; i < half; i += 64) {
        struct angles angles = { { 0.0f }, { 0.0f } };
        struct four next = load_four(x + (u64)(head * j.rope.x.stride[2]), j.type, i, half);
        if (j.y)
            angles = angles_of(j, position, i);
        LOOP for (int h = head; h < end; h++) {
            struct four now = next;
            if (h + 1 < end)
                next = load_four(x + (u64)((h + 1) * j.rope.x.stride[2]), j.type, i, half);
            if (j.y) {
                const u64 to = y + (u64)(h * j.rope.y.stride[2]);
                rotate_four(now, angles, j.rope.interleaved);
                store_pair(to, j.type, i, now.v);
                store_pair(to, j.type, i + half, now.v + 2);
            }
            if (row)
                store_four(j, row, h * dim + i, now, half, lane);
        }
    }
}

extern "C" __attribute__((global, launch_bounds(HEADS_WARPS * 32))) void heads_move(
    ARGS(const struct heads_args) s)
{
    const int warp = group_id() * HEADS_WARPS + local_id() / 32;
    int n = 0;
    while (n + 1 < s.jobs && warp >= s.job[n + 1].first)
        n++;
    const struct heads_job &j = s.job[n];
    const int number = warp - j.first, token = number / j.runs;
    const int head = number % j.runs * s.each, heads = (int)j.rope.heads;
    take_turn();
    if (token < j.rope.tokens)
        move(j, token, head, head + s.each < heads ? head + s.each : heads, local_id() % 32);
}
