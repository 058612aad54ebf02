/* SPDX-License-Identifier: MIT */
/* prelude/group.h - what the work-items of a group do together. Follows prelude/quantise.h.
 * Build-time knob: GROUP, the number of work-items per group, a power of two, at least 32;
 * 1 in plain C. */
#ifndef PRELUDE_GROUP_H
#define PRELUDE_GROUP_H

#ifndef GROUP
#define GROUP 256
#endif

/* PIECE: how many neighbouring elements a work-item takes at a time. A work-item that is
 * alone takes enough for vectors; in a group it takes one, and the next work-item the next
 * one. LONG_PIECE: the same for loops that begin slowly, with many constants. LANES: how many
 * work-items share a row if a group has several rows. */
#if GROUP == 1
#define PIECE      32
#define LANES      1
#define LONG_PIECE 256
#else
#define PIECE      1
#define LANES      32
#define LONG_PIECE 1
#endif

/* ---- rows of many elements ---- */

/* What a group of an elementwise kernel computes: elements first .. end of one row. */
struct span {
    struct index at;
    i64 first, end;
};

FUNC struct span span_of(int group, i64 n1, i64 n2, i64 cols)
{
    const u32 spans = (u32)((cols + ELEMENT_SPAN - 1) / ELEMENT_SPAN);
    struct span s;
#if GROUP == 1 /* no divisions, as in index_of() */
    if (group == 0) {
        const struct span first = { { 0, 0, 0 },
                                    0,
                                    cols < ELEMENT_SPAN ? cols : ELEMENT_SPAN };
        return first;
    }
#endif
    s.at = index_of((int)((u32)group / spans), n1, n2);
    s.first = (i64)((u32)group % spans) * ELEMENT_SPAN;
    s.end = cols < s.first + ELEMENT_SPAN ? cols : s.first + ELEMENT_SPAN;
    return s;
}

/* The kernel of y = a SIGN b, where b may have one value per row. */
#define BINARY_KERNEL(name, SIGN)                                                          \
    KERNEL(name)                                                                           \
    (GLOBAL u8 * y, GLOBAL const u8 *a, GLOBAL const u8 *b,                                \
     ARGS(struct binary_args) s GRID)                                                      \
    {                                                                                      \
        const struct span r = span_of(group_id(), s.n1, s.n2, s.cols);                     \
                                                                                           \
        a += row_at(s.a, r.at);                                                            \
        b += row_at(s.b, r.at);                                                            \
        y += row_at(s.y, r.at);                                                            \
        if (s.b_step) {                                                                    \
            for (i64 i = r.first + local_id(); i < r.end; i += GROUP)                      \
                store(ACT, y, i, load(ACT, a, i) SIGN load(ACT, b, i));                    \
        } else {                                                                           \
            const float same = load(ACT, b, 0);                                            \
            for (i64 i = r.first + local_id(); i < r.end; i += GROUP)                      \
                store(ACT, y, i, load(ACT, a, i) SIGN same);                               \
        }                                                                                  \
    }

/* Loads `count` whole pieces that are `step` elements apart; tests the type once. */
FUNC void load_pieces(PRIVATE float *to, GLOBAL const u8 *row, int type, i64 first,
                      int count, int step)
{
    switch (type) {
#define X(NAME, name, elements, bytes)                                                     \
    case STORAGE_##NAME:                                                                   \
        for (int p = 0; p < count; p++)                                                    \
            load_##name(to + p * PIECE, row, first + (i64)p * step, PIECE);                \
        break;
        LOADS(X)
#undef X
    default: /* no type at all */
        for (int i = 0; i < count * PIECE; i++)
            to[i] = 0.0f;
    }
}

/* Converts elements first .. first + n - 1 of a row, by the whole group. One work-item
 * converts a whole block. */
FUNC void convert_row(GLOBAL u8 *to, int to_type, GLOBAL const u8 *from, int from_type,
                      i64 first, i64 n, int lid)
{
    const int block = elements_of(to_type);
    if (block > 1) {
        for (i64 i = (i64)lid * block; i < n; i += GROUP * block)
            store_block(to, to_type, from, from_type, first + i);
        return;
    }
    for (i64 i = (i64)lid * PIECE; i < n; i += GROUP * PIECE) {
        const int count = n - i < PIECE ? (int)(n - i) : PIECE;
        float v[PIECE];
        load_piece(v, from, from_type, first + i, count);
        store_piece(to, to_type, first + i, v, count);
    }
}

/* Loads `rows` x `cols` elements of a stored matrix as float into a tile of `full` x `width`
 * in group memory, with zeros beyond them: tile[y * step_y + x * step_x] =
 * matrix[y, first + x]. `width` is a multiple of BLOCK. */
LOCAL_FUNC void load_tile(LOCAL float *tile, int step_y, int step_x, int full, int width,
                          GLOBAL const u8 *matrix, i64 stride, int type, i64 first,
                          i64 rows, i64 cols, int lid)
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
LOCAL_FUNC float run_sum(float v, LOCAL float *scratch, int lid, int width)
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

LOCAL_FUNC float group_sum(float v, LOCAL float *scratch, int lid)
{
    return run_sum(v, scratch, lid, GROUP);
}

/* The sum of `n` over the work-items before this one; *total becomes that of all. */
LOCAL_FUNC int group_scan(int n, PRIVATE int *total, LOCAL int *scratch, int lid)
{
    scratch[lid] = n;
    BARRIER();
    for (int span = 1; span < GROUP; span *= 2) {
        const int before = lid >= span ? scratch[lid - span] : 0;
        BARRIER();
        scratch[lid] += before;
        BARRIER();
    }
    const int sum = scratch[lid];
    *total = scratch[GROUP - 1];
    BARRIER();
    return sum - n;
}

LOCAL_FUNC float group_max(float v, LOCAL float *scratch, int lid)
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
