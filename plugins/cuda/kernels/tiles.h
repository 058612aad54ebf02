/* SPDX-License-Identifier: MIT */
/* tiles.h - how the tiles of a product are numbered: down a band of `band` rows of tiles, column by
 * column, then the next band, so that groups that run at a time share rows of a and b. */
#ifndef CUDA_KERNELS_TILES_H
#define CUDA_KERNELS_TILES_H

/* The first row and column of a tile. */
struct corner {
    int row, col;
};

struct tiling {
    int down, across, band;
};

template <int ROWS, int COLS> FUNC struct tiling tiling_of(int m, int n, int band)
{
    return { (m + ROWS - 1) / ROWS, (n + COLS - 1) / COLS, band };
}

template <int ROWS, int COLS> FUNC struct corner corner_of(const struct tiling &t, int tile)
{
    const int first = tile / (t.band * t.across) * t.band;
    const int in = tile - first * t.across;
    const int rows = t.down - first < t.band ? t.down - first : t.band;
    return { (first + in % rows) * ROWS, in / rows * COLS };
}

#endif
