/* SPDX-License-Identifier: MIT */
/* ring.h - products on compute capability 8.0 and later: rows of a and b pass through a ring in
 * shared memory (cp.async), while what is there is multiplied. Follows device.h, tiles.h and
 * matmul_ring.h.
 *
 * A row has four units of 16 bytes in a step. Their places take turns every second row, so that the
 * same unit of eight neighbouring rows lies in different banks. */
#ifndef CUDA_KERNELS_RING_H
#define CUDA_KERNELS_RING_H

enum { UNIT = 16, UNITS = RING_BYTES / UNIT };

/* Where unit `unit` of a row is, from the first row on. */
FUNC u32 unit_at(int row, int unit)
{
    return (u32)(row * RING_BYTES + (unit ^ (row / 2 & 3)) * UNIT);
}

/* Begins to copy a unit; zeros if it is not there. */
FUNC void copy_unit(u32 to, u64 from, bool there)
{
    asm volatile("{ .reg .pred p; setp.eq.u32 p, %2, 0;\n"
                 "cp.async.cg.shared.global [%0], [%1], 16, p; }" ::"r"(to),
                 "l"(from), "r"((u32)there)
                 : "memory");
}

FUNC void copies_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits for all but the last `LEFT` commits of this thread. */
template <int LEFT> FUNC void copies_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

/* What a thread copies of a matrix: the same unit of every APART-th row, beginning at `at`. `rows`:
 * from the first of them on. */
struct source {
    u64 at;
    i64 stride;
    int rows;
};

FUNC struct source source_of(u64 matrix, i64 stride, int rows, int thread)
{
    const int row = thread / UNITS, unit = thread % UNITS;
    return { matrix + row * stride + unit * UNIT, stride, rows - row };
}

/* Begins to copy a step of ROWS rows, from byte `first` of each on. `inside`: the thread's unit is
 * in the row. */
template <int ROWS, int THREADS>
FUNC void copy_rows(u32 to, const struct source &from, int first, bool inside)
{
    enum { APART = THREADS / UNITS };
    UNROLL for (int i = 0; i < ROWS / APART; i++)
        copy_unit(to + i * APART * RING_BYTES, from.at + first + i * APART * from.stride,
                  inside && i * APART < from.rows);
}

/* The ring of THREADS threads that compute ROWS x COLS of c. */
template <int ROWS, int COLS, int THREADS> struct ring {
    enum { STEP = (ROWS + COLS) * RING_BYTES };
    struct source a, b;
    u32 shared;
    int bytes, thread; /* bytes of a row are whole units */

    FUNC_IN void begin(const struct ring *r, int step, u32 place)
    {
        const int row = r->thread / UNITS, unit = r->thread % UNITS;
        const u32 to = place + unit_at(row, unit);
        const int first = step * RING_BYTES;
        const bool inside = first + unit * UNIT < r->bytes;
        copy_rows<ROWS, THREADS>(to, r->a, first, inside);
        copy_rows<COLS, THREADS>(to + ROWS * RING_BYTES, r->b, first, inside);
    }
};

FUNC int next_place(int place)
{
    return place + 1 == RING_STEPS ? 0 : place + 1;
}

/* ---- storing c ---- */

/* A warp stores SLICE rows at a time, through shared memory. */
enum { SLICE = 16, SLICE_GAP = 8 };

template <int COLS> FUNC u32 slice_of_warp(u32 shared)
{
    return shared + local_id() / 32 * SLICE * (COLS + SLICE_GAP) * 4;
}

/* Where a number of a slice is. */
template <int COLS> FUNC u32 in_slice(u32 slice, int row, int col)
{
    return slice + (u32)(row * (COLS + SLICE_GAP) + col) * 4;
}

FUNC void put_shared(u32 to, float v)
{
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(v) : "memory");
}

FUNC float get_shared(u32 from)
{
    float v;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(from) : "memory");
    return v;
}

/* Stores a slice as rows and columns of c from `at` on. */
template <int COLS>
FUNC void store_slice(const struct ring_args &s, u32 slice, struct corner at)
{
    warp_barrier();
    LOOP for (int i = local_id() % 32; i < SLICE * COLS; i += 32)
    {
        const int row = at.row + i / COLS, col = at.col + i % COLS;
        float v = get_shared(in_slice<COLS>(slice, i / COLS, i % COLS));
        float bias = 0.0f;
        if (row >= s.m || col >= s.n)
            continue;
        if (s.scale)
            v *= ((const float *)s.scale)[row];
        if (s.bias)
            load_floats(&bias, (const u8 *)s.bias, s.bias_type, col, 1);
        store_any((u8 *)s.c + row * s.c_stride, s.c_type, col, v + bias);
    }
    warp_barrier();
}

/* ---- the tile ---- */

/* Computes a tile: TILE::multiply() adds the products of a step to its sums, TILE::store_sums()
 * stores them as c. The threads are in WAYS parts, each of which has every WAYS-th step. */
template <class TILE> FUNC void ring_product(const struct ring_args &s)
{
    extern SHARED __attribute__((aligned(128))) u8 shared[];
    enum { WAYS = TILE::WAYS, THREADS = TILE::THREADS / WAYS };
    typedef ring<TILE::ROWS, TILE::COLS, THREADS> ring_of;
    const struct tiling tiles = tiling_of<TILE::ROWS, TILE::COLS>(s.m, s.n, s.band);
    const struct corner at = corner_of<TILE::ROWS, TILE::COLS>(tiles, group_id());
    const int way = local_id() / THREADS, thread = local_id() % THREADS;
    const int steps = (s.k * TILE::BYTES + WAYS * RING_BYTES - 1) / (WAYS * RING_BYTES);
    const ring_of r = {
        source_of(s.a + at.row * s.a_stride, s.a_stride, s.m - at.row, thread),
        source_of(s.b + at.col * s.b_stride, s.b_stride, s.n - at.col, thread),
        shared_address(shared) + way * ring_of::STEP, s.k * TILE::BYTES, thread
    };
    TILE tile = {};
    int now = 0, later = RING_STEPS - 1;
    UNROLL for (int i = 0; i < RING_STEPS - 1; i++)
    {
        if (i < steps)
            ring_of::begin(&r, i * WAYS + way, r.shared + i * WAYS * ring_of::STEP);
        copies_commit();
    }
    LOOP for (int i = 0; i < steps; i++)
    {
        copies_wait<RING_STEPS - 2>();
        BARRIER();
        if (i + RING_STEPS - 1 < steps)
            ring_of::begin(&r, (i + RING_STEPS - 1) * WAYS + way,
                           r.shared + later * WAYS * ring_of::STEP);
        copies_commit();
        TILE::multiply(&tile, r.shared + now * WAYS * ring_of::STEP);
        now = next_place(now);
        later = next_place(later);
    }
    BARRIER();
    TILE::store_sums(&tile, s, shared_address(shared), at);
}

#endif
