/* SPDX-License-Identifier: MIT */
/* prelude/group.h - what the work-items of a group do together. Follows prelude/storage.h.
 * Build-time knob: GROUP, the number of work-items per group, a power of two, at least 32;
 * 1 in plain C. */
#ifndef PRELUDE_GROUP_H
#define PRELUDE_GROUP_H

#ifndef GROUP
#define GROUP 256
#endif

/* PIECE: how many neighbouring elements a work-item takes at a time. A work-item that is
 * alone takes enough for vectors; in a group it takes one, and the next work-item the next
 * one. LANES: how many work-items share a row if a group has several rows. */
#if GROUP == 1
#define PIECE 32
#define LANES 1
#else
#define PIECE 1
#define LANES 32
#endif

/* ---- rows of many elements ---- */

/* What a group of an elementwise kernel computes: elements first .. end of one row. */
struct span {
    struct index at;
    i64 first, end;
};

FUNC struct span span_of(i64 group, i64 n1, i64 n2, i64 cols)
{
    const i64 spans = (cols + ELEMENT_SPAN - 1) / ELEMENT_SPAN;
    struct span s;
    s.at = index_of(group / spans, n1, n2);
    s.first = group % spans * ELEMENT_SPAN;
    s.end = cols < s.first + ELEMENT_SPAN ? cols : s.first + ELEMENT_SPAN;
    return s;
}

/* Loads `count` whole pieces that are `step` elements apart; tests the type once. */
FUNC void load_pieces(PRIVATE float *to, GLOBAL const u8 *row, int type, i64 first,
                      int count, int step)
{
    switch (type) {
#define L(NAME, name)                                                                      \
    case STORAGE_##NAME:                                                                   \
        for (int p = 0; p < count; p++)                                                    \
            load_##name(to + p * PIECE, row, first + (i64)p * step, PIECE);                \
        break;
        LOADS(L)
#undef L
    }
}

/* Converts elements first .. first + n - 1 of a row, by the whole group. One work-item
 * converts a whole block. */
FUNC void convert_row(GLOBAL u8 *to, int to_type, GLOBAL const u8 *from, int from_type,
                      i64 first, i64 n, int lid)
{
    const int blocks = to_type == STORAGE_Q8_0 || to_type == STORAGE_Q4_0;
    const int piece = blocks ? BLOCK : PIECE;
    for (i64 i = (i64)lid * piece; i < n; i += GROUP * piece) {
        const int count = n - i < piece ? (int)(n - i) : piece;
        float v[BLOCK];
        load_piece(v, from, from_type, first + i, count);
        if (to_type == STORAGE_Q8_0)
            store_q8_0(to + (first + i) / BLOCK * Q8_0_BYTES, v);
        else if (to_type == STORAGE_Q4_0)
            store_q4_0(to + (first + i) / BLOCK * Q4_0_BYTES, v);
        else
            store_piece(to, to_type, first + i, v, count);
    }
}

/* Loads `rows` x `cols` elements of a stored matrix as float into a tile of `full` x `width`
 * in group memory, with zeros beyond them: tile[y * step_y + x * step_x] =
 * matrix[y, first + x]. `width` is a multiple of BLOCK. */
FUNC void load_tile(LOCAL float *tile, int step_y, int step_x, int full, int width,
                    GLOBAL const u8 *matrix, i64 stride, int type, i64 first, i64 rows,
                    i64 cols, int lid)
{
    for (int y = lid / LANES; y < full; y += GROUP / LANES)
        for (int x = lid % LANES * PIECE; x < width; x += LANES * PIECE) {
            float v[PIECE] = { 0.0f };
            const i64 left = y < rows ? cols - x : 0;
            if (left > 0)
                load_piece(v, matrix + y * stride, type, first + x,
                           left < PIECE ? (int)left : PIECE);
            for (int i = 0; i < PIECE; i++)
                tile[y * step_y + (x + i) * step_x] = v[i];
        }
}

/* ---- reductions over a group ---- */

/* The sum of `v` over each aligned run of `width` work-items, returned to all of them. */
FUNC float run_sum(float v, LOCAL float *scratch, int lid, int width)
{
    scratch[lid] = v;
    BARRIER();
    for (int span = width / 2; span > 0; span /= 2) {
        if (lid % width < span)
            scratch[lid] += scratch[lid + span];
        BARRIER();
    }
    v = scratch[lid / width * width];
    BARRIER();
    return v;
}

FUNC float group_sum(float v, LOCAL float *scratch, int lid)
{
    return run_sum(v, scratch, lid, GROUP);
}

FUNC float group_max(float v, LOCAL float *scratch, int lid)
{
    scratch[lid] = v;
    BARRIER();
    for (int span = GROUP / 2; span > 0; span /= 2) {
        if (lid < span)
            scratch[lid] = max_f32(scratch[lid], scratch[lid + span]);
        BARRIER();
    }
    v = scratch[0];
    BARRIER();
    return v;
}

#endif
