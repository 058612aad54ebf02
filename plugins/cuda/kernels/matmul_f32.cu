/* SPDX-License-Identifier: MIT */
/* c = a . b^T + bias for rows of f32, as exact as f32 is: on the ordinary arithmetic units, which
 * are what limits it if there are many rows.
 *
 * A lane computes DOWN x RIGHT of c: of rows 2 y, 2 y + 1 and every eighth of both, of columns x
 * and every eighth; x is 0 to 7, y is 0 to 3. The units that the lanes of a warp read at a time lie
 * in different banks. Shared memory answers a warp in two cycles instead of four if lanes i and
 * i + 1 read the same unit, as they do of a, or lanes i and i + 2, as they do of b.
 *
 * Registers limit it then. Of the three numbers that a product needs, one can be kept from the
 * product before; the other two have to be in registers of different parity, or it takes two
 * cycles. A unit is in four registers that follow each other, so a sum has to move to one of the
 * other parity with each step along k. The compiler chooses registers, and comes nearest to that
 * where every second column of c takes the products of two units in the opposite order
 * (docs/decisions/cuda-tuning.md).
 *
 * Where c has few tiles, the warps of a group share the steps along k in WAYS (sliced K), and their
 * sums are added in the end.
 *
 * docs/cuda-kernels.md has what it reaches on an H100. */
#include "dialect/cuda.h"

#include "args.h"

#include "prelude/math.h"

#include "prelude/storage.h"

#include "device.h"

#include "matmul_ring.h"

#include "tiles.h"

#include "ring.h"

enum { QUAD = UNIT / 4 };

struct floats {
    float v[QUAD];
};

FUNC struct floats load_shared(u32 from)
{
    struct floats to;
    asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(to.v[0]), "=f"(to.v[1]), "=f"(to.v[2]), "=f"(to.v[3])
                 : "r"(from));
    return to;
}

template <int ROWS_, int COLS_, int DOWN, int RIGHT, int WAYS_> struct tile {
    enum {
        ROWS = ROWS_,
        COLS = COLS_,
        WAYS = WAYS_,
        THREADS = F32_THREADS(ROWS, COLS, DOWN, RIGHT, WAYS),
        BYTES = 4,
        WARP_ROWS = 4 * DOWN,
        WARP_COLS = 8 * RIGHT,
        ACROSS = COLS / WARP_COLS
    };
    float sum[DOWN][RIGHT];

    FUNC_IN int first_row()
    {
        return local_id() % (THREADS / WAYS) / 32 / ACROSS * WARP_ROWS;
    }

    FUNC_IN int first_col()
    {
        return local_id() % (THREADS / WAYS) / 32 % ACROSS * WARP_COLS;
    }

    /* Of the part of c that the warp computes. */
    FUNC_IN int row_of(int i)
    {
        const int lane = local_id() % 32, y = lane / 2 % 2 + lane / 16 * 2;
        return y * 2 + i / 2 * 8 + i % 2;
    }

    FUNC_IN int col_of(int j)
    {
        const int lane = local_id() % 32, x = lane % 2 + lane / 4 % 4 * 2;
        return x + j * 8;
    }

    FUNC_IN void multiply(struct tile *t, u32 step)
    {
        UNROLL for (int unit = 0; unit < UNITS; unit++)
        {
            const u32 rows = step + first_row() * RING_BYTES + unit_at(row_of(0), unit);
            const u32 cols = step + (ROWS + first_col()) * RING_BYTES + unit_at(col_of(0), unit);
            struct floats a[DOWN];
            UNROLL for (int i = 0; i < DOWN; i++)
                a[i] = load_shared(rows + (i / 2 * 8 + i % 2) * RING_BYTES);
            UNROLL for (int j = 0; j < RIGHT; j++)
            {
                const struct floats b = load_shared(cols + j * 8 * RING_BYTES);
                UNROLL for (int turn = 0; turn < QUAD * DOWN; turn++)
                {
                    const int at = j % 2 ? QUAD * DOWN - 1 - turn : turn;
                    const int k = at / DOWN, i = at % DOWN;
                    t->sum[i][j] += a[i].v[k] * b.v[k];
                }
            }
        }
    }

    /* Where the sum of another way is. */
    FUNC_IN u32 sum_at(u32 shared, int way, int i, int j)
    {
        const int thread = local_id() % (THREADS / WAYS);
        const int number = ((way - 1) * DOWN + i) * RIGHT + j;
        return shared + (u32)(number * (THREADS / WAYS) + thread) * 4;
    }

    /* Adds the sums of all ways to those of the first. */
    FUNC_IN void add_ways(struct tile *t, u32 shared)
    {
        const int way = local_id() / (THREADS / WAYS);
        UNROLL for (int i = 0; i < DOWN; i++)
            UNROLL for (int j = 0; j < RIGHT; j++)
                if (way > 0)
                    put_shared(sum_at(shared, way, i, j), t->sum[i][j]);
        BARRIER();
        LOOP for (int other = 1; other < WAYS; other++)
            UNROLL for (int i = 0; i < DOWN; i++)
                UNROLL for (int j = 0; j < RIGHT; j++)
                    if (way == 0)
                        t->sum[i][j] += get_shared(sum_at(shared, other, i, j));
        BARRIER();
    }

    FUNC_IN void store_sums(struct tile *t, const struct ring_args &s, u32 shared,
                            struct corner at)
    {
        if (WAYS > 1)
            add_ways(t, shared);
        if (local_id() >= THREADS / WAYS)
            return;
        const u32 slice = slice_of_warp<WARP_COLS>(shared);
        at.row += first_row();
        at.col += first_col();
        UNROLL for (int first = 0; first < DOWN; first += SLICE / 4)
        {
            UNROLL for (int i = 0; i < SLICE / 4; i++)
                UNROLL for (int j = 0; j < RIGHT; j++)
                    put_shared(in_slice<WARP_COLS>(slice, row_of(i), col_of(j)),
                               t->sum[first + i][j]);
            store_slice<WARP_COLS>(s, slice, at);
            at.row += SLICE;
        }
    }
};

/* Groups of a multiprocessor: many numbers of a lane need many of the 65536 registers. */
#define F32_GROUPS(threads, numbers)                                                       \
    ((numbers) > 64 ? 256 / (threads) : (numbers) > 16 ? 384 / (threads) : 512 / (threads))

#define X(rows, cols, down, right, ways)                                                   \
    KERNEL(f32_##rows##x##cols##x##ways)                                                   \
    __attribute__((launch_bounds(                                                          \
        F32_THREADS(rows, cols, down, right, ways),                                        \
        F32_GROUPS(F32_THREADS(rows, cols, down, right, ways), (down) * (right)))))        \
    (struct ring_args s)                                                                   \
    {                                                                                      \
        ring_product<tile<rows, cols, down, right, ways>>(s);                              \
    }
F32_TILES(X)
#undef X
