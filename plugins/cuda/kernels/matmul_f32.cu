/* SPDX-License-Identifier: MIT */
/* c = a . b^T + bias for many rows of f32, as exact as f32 is: on the ordinary arithmetic units,
 * which are what limits it.
 *
 * A warp computes 32 x 64 of a tile of c, a lane 8 x 8 of that: of rows 2 y, 2 y + 1 and every
 * eighth of both, of columns x and every eighth; x is lane % 8, y is lane / 8. So the units that the
 * lanes of a warp read at a time lie in different banks. Each sum is along k from the first to the
 * last product.
 *
 * docs/cuda-kernels.md has what it reaches on an H200. */
#include "dialect/cuda.h"

#include "args.h"

#include "prelude/math.h"

#include "prelude/storage.h"

#include "device.h"

#include "matmul_ring.h"

#include "tiles.h"

#include "ring.h"

enum { SIDE = 8, WARP_ROWS = 32, WARP_COLS = 64, QUAD = UNIT / 4, F32_ON_UNIT = 384 };

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

template <int ROWS_, int COLS_> struct tile {
    enum {
        ROWS = ROWS_,
        COLS = COLS_,
        THREADS = F32_THREADS(ROWS, COLS),
        BYTES = 4,
        ACROSS = COLS / WARP_COLS
    };
    float sum[SIDE][SIDE];

    FUNC_IN int first_row()
    {
        return local_id() / 32 / ACROSS * WARP_ROWS;
    }

    FUNC_IN int first_col()
    {
        return local_id() / 32 % ACROSS * WARP_COLS;
    }

    /* Of the part of c that the warp computes. */
    FUNC_IN int row_of(int i)
    {
        return local_id() % 32 / 8 * 2 + i / 2 * 8 + i % 2;
    }

    FUNC_IN int col_of(int j)
    {
        return local_id() % 8 + j * 8;
    }

    FUNC_IN void multiply(struct tile *t, u32 step)
    {
        UNROLL for (int unit = 0; unit < UNITS; unit++)
        {
            const u32 rows = step + first_row() * RING_BYTES + unit_at(row_of(0), unit);
            const u32 cols = step + (ROWS + first_col()) * RING_BYTES + unit_at(col_of(0), unit);
            struct floats a[SIDE];
            UNROLL for (int i = 0; i < SIDE; i++)
                a[i] = load_shared(rows + (i / 2 * 8 + i % 2) * RING_BYTES);
            UNROLL for (int j = 0; j < SIDE; j++)
            {
                const struct floats b = load_shared(cols + j * 8 * RING_BYTES);
                UNROLL for (int k = 0; k < QUAD; k++)
                    UNROLL for (int i = 0; i < SIDE; i++) t->sum[i][j] += a[i].v[k] * b.v[k];
            }
        }
    }

    FUNC_IN void store_sums(const struct tile *t, const struct ring_args &s, u32 shared,
                            struct corner at)
    {
        const u32 slice = slice_of_warp<WARP_COLS>(shared);
        at.row += first_row();
        at.col += first_col();
        UNROLL for (int first = 0; first < SIDE; first += SIDE / 2)
        {
            UNROLL for (int i = 0; i < SIDE / 2; i++)
                UNROLL for (int j = 0; j < SIDE; j++)
                    put_shared(in_slice<WARP_COLS>(slice, row_of(i), col_of(j)),
                               t->sum[first + i][j]);
            store_slice<WARP_COLS>(s, slice, at);
            at.row += SLICE;
        }
    }
};

#define X(rows, cols)                                                                      \
    KERNEL(f32_##rows##x##cols)                                                            \
    __attribute__((                                                                        \
        launch_bounds(F32_THREADS(rows, cols), F32_ON_UNIT / F32_THREADS(rows, cols)))) (  \
        struct ring_args s)                                                                \
    {                                                                                      \
        ring_product<tile<rows, cols>>(s);                                                 \
    }
F32_TILES(X)
#undef X
