/* SPDX-License-Identifier: MIT */
/* c = a . b^T * scale + bias for many rows of f16 or bf16: on the matrix units that every card since
 * compute capability 8.0 has (mma.sync), which add in f32.
 *
 * A group computes one tile of c, each of its four warps a quarter of that.
 *
 * docs/cuda-kernels.md has what it reaches on an H200, which has faster instructions of its own. */
#include "dialect/cuda.h"

#include "args.h"

#include "prelude/math.h"

#include "prelude/storage.h"

#include "device.h"

#include "matmul_ring.h"

#include "tiles.h"

#include "ring.h"

enum { DEPTH = 16, DOWN = 16, ACROSS = 8 }; /* of the instruction */

/* Four squares of 8 x 8, whose rows begin where the lanes say: lanes 8 i to 8 i + 7 for square i.
 * A lane gets the numbers lane % 4 * 2 and the next of row lane / 4 of each. */
FUNC struct quad load_squares(u32 from)
{
    struct quad q;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(q.v[0]), "=r"(q.v[1]), "=r"(q.v[2]), "=r"(q.v[3])
                 : "r"(from));
    return q;
}

#define MULTIPLY(type)                                                                     \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "                     \
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                            \
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                           \
        : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "r"(b0), "r"(b1))

/* Lane l has columns l % 4 * 2 and the next one of c, of row l / 4 in sum[0] and sum[1], of the row
 * 8 below in sum[2] and sum[3]. */
template <int TYPE> FUNC void multiply_add(float *sum, const struct quad &a, u32 b0, u32 b1)
{
    if (TYPE == STORAGE_F16)
        MULTIPLY("f16");
    else
        MULTIPLY("bf16");
}

template <int TYPE, int ROWS_, int COLS_> struct tile {
    enum {
        ROWS = ROWS_,
        COLS = COLS_,
        WAYS = 1,
        THREADS = MMA_THREADS,
        BYTES = 2,
        WARP_ROWS = ROWS / 2,
        WARP_COLS = COLS / 2,
        Y = WARP_ROWS / DOWN,
        X = WARP_COLS / ACROSS
    };
    float sum[Y][X][4];

    FUNC_IN int first_row()
    {
        return local_id() / 64 * WARP_ROWS;
    }

    FUNC_IN int first_col()
    {
        return local_id() / 32 % 2 * WARP_COLS;
    }

    FUNC_IN void multiply(struct tile *t, u32 step)
    {
        const int lane = local_id() % 32;
        const u32 rows = step + (u32)first_row() * RING_BYTES;
        const u32 cols = step + (u32)(ROWS + first_col()) * RING_BYTES;
        UNROLL for (int unit = 0; unit < UNITS; unit += 2)
        {
            const u32 of_a = unit_at(lane % 16, unit + lane / 16);
            const u32 of_b = unit_at(lane % 8 + lane / 16 * 8, unit + lane / 8 % 2);
            struct quad a[Y];
            UNROLL for (int y = 0; y < Y; y++)
                a[y] = load_squares(rows + of_a + y * DOWN * RING_BYTES);
            UNROLL for (int x = 0; x < X; x += 2)
            {
                const struct quad b = load_squares(cols + of_b + x * ACROSS * RING_BYTES);
                UNROLL for (int y = 0; y < Y; y++)
                {
                    multiply_add<TYPE>(t->sum[y][x], a[y], b.v[0], b.v[1]);
                    multiply_add<TYPE>(t->sum[y][x + 1], a[y], b.v[2], b.v[3]);
                }
            }
        }
    }

    FUNC_IN void store_sums(struct tile *t, const struct ring_args &s, u32 shared,
                            struct corner at)
    {
        const int row = local_id() % 32 / 4, col = local_id() % 4 * 2;
        const u32 slice = slice_of_warp<WARP_COLS>(shared);
        at.row += first_row();
        at.col += first_col();
        UNROLL for (int y = 0; y < Y; y++)
        {
            UNROLL for (int x = 0; x < X; x++) UNROLL for (int i = 0; i < 4; i++)
                put_shared(
                    in_slice<WARP_COLS>(slice, row + i / 2 * 8, x * ACROSS + col + i % 2),
                    t->sum[y][x][i]);
            store_slice<WARP_COLS>(s, slice, at);
            at.row += SLICE;
        }
    }
};

#define KERNEL_OF(TYPE, type, rows, cols)                                                  \
    KERNEL(mma_##type##_##rows##x##cols)                                                   \
    __attribute__((launch_bounds(MMA_THREADS, 2))) (struct ring_args s)                    \
    {                                                                                      \
        ring_product<tile<STORAGE_##TYPE, rows, cols>>(s);                                 \
    }
#define X(rows, cols)                                                                      \
    KERNEL_OF(F16, f16, rows, cols)                                                        \
    KERNEL_OF(BF16, bf16, rows, cols)
MMA_TILES(X)
#undef X
