/* SPDX-License-Identifier: MIT */
/* decode_keys.h - which rows and keys a group of attention_decode.cu has, its q in shared
 * memory, and the ring that keys are copied to. Follows decode_numbers.h. */
#ifndef CUDA_KERNELS_DECODE_KEYS_H
#define CUDA_KERNELS_DECODE_KEYS_H

/* ---- rows and keys ---- */

/* DECODE_ROWS rows of a head of k and v, or fewer at the end. */
struct run {
    i64 batch;
    int kv_head, first_row, rows, length;
};

/* A row: the query of a head. */
struct row {
    int query, head, position;
    struct span seen;
};

/* The number-th run of a batch; its length is still to be read. */
FUNC struct run run_of(const struct decode_args &s, int number, i64 batch)
{
    const int all = (int)s.a.queries * s.heads_each;
    struct run run;
    run.batch = batch;
    run.kv_head = (int)((u32)number / (u32)s.runs);
    run.first_row = (number - run.kv_head * s.runs) * DECODE_ROWS;
    run.rows = all - run.first_row < DECODE_ROWS ? all - run.first_row : DECODE_ROWS;
    run.length = 0;
    return run;
}

/* A row of a run; behind the last one, a row that sees nothing. */
FUNC struct row row_of(const struct decode_args &s, struct run run, int number)
{
    const int row = run.first_row + number;
    struct row r;
    r.query = (int)((u32)row / (u32)s.heads_each);
    r.head = run.kv_head * s.heads_each + row - r.query * s.heads_each;
    r.position = position_of(s.a, run.length, r.query);
    r.seen = seen_by(s.a, run.length, r.query);
    if (number >= run.rows)
        r.seen.end = r.seen.first;
    return r;
}

/* All keys that rows of a run see. */
FUNC struct span keys_of(const struct decode_args &s, struct run run)
{
    struct span span;
    span.first = row_of(s, run, 0).seen.first;
    span.end = row_of(s, run, run.rows - 1).seen.end;
    span.end = span.end < span.first ? span.first : span.end;
    return span;
}

/* The keys of each split, but perhaps the last that has any: whole steps. Adding up takes longer
 * than a few. */
FUNC int split_keys(const struct decode_args &s, struct span all)
{
    const int keys = all.end - all.first;
    const int each = (int)((u32)(keys + s.splits - 1) / (u32)s.splits);
    return each < DECODE_FEW ? DECODE_FEW
                             : (each + DECODE_KEYS - 1) / DECODE_KEYS * DECODE_KEYS;
}

/* What a group computes: a run of rows, and a split of the keys that they see. */
struct share {
    struct run run;
    struct span all, keys;
    int split, splits; /* those that have keys, at least one */
};

/* The run of this group; its length is still to be read. */
FUNC struct run own_run(const struct decode_args &s)
{
    const struct place3 at = group_place();
    return run_of(s, at.y, at.z);
}

FUNC struct share share_of(const struct decode_args &s)
{
    struct share my;
    my.run = own_run(s);
    my.run.length = length_of(s.a, s.lengths, my.run.batch);
    my.all = keys_of(s, my.run);
    const int each = split_keys(s, my.all), count = my.all.end - my.all.first;
    my.split = group_id();
    my.splits = count > each ? (int)((u32)(count + each - 1) / (u32)each) : 1;
    my.keys.first = my.all.first + (my.split < my.splits ? my.split * each : count);
    my.keys.end = my.all.end - my.keys.first < each ? my.all.end : my.keys.first + each;
    return my;
}

/* The next kernel begins when all groups have let it. What it copies ahead delays what splits load
 * and leave, so all but the first let it when their keys are on their way. Where keys are not
 * split, there are only first ones, which do not even wait for the arguments to say so. */
FUNC void launch_next_if_first()
{
    if (group_id() == 0)
        launch_next();
}

/* The number of a run's split, among all. */
FUNC i64 number_of(const struct decode_args &s, const struct run &run, int split)
{
    const i64 number = (run.batch * s.a.kv_heads + run.kv_head) * s.runs +
                       run.first_row / DECODE_ROWS;
    return number * s.splits + split;
}

/* Its records. */
FUNC float *records_of(const struct decode_args &s, const struct run &run, int split,
                       int dim)
{
    return (float *)s.partial + number_of(s, run, split) * DECODE_ROWS * DECODE_RECORD(dim);
}

/* ---- q ---- */

/* What a work-item loads of q. */
template <int TYPE, int DIM> struct part_of_q {
    enum { APART = DECODE_WARPS(TYPE, DIM) * 32, COUNT = DECODE_ROWS * DIM / APART };
    u32 raw[COUNT];
};

template <int TYPE, int DIM>
FUNC void load_q(struct part_of_q<TYPE, DIM> &part, const struct decode_args &s,
                 struct run run)
{
    UNROLL for (int i = 0; i < part.COUNT; i++)
    {
        const int n = i * part.APART + local_id(), row = n / DIM, d = n % DIM;
        const struct row r = row_of(s, run, row);
        GLOBAL const u8 *from = (GLOBAL const u8 *)s.q + run.batch * s.a.q.stride[0] +
                                r.query * s.a.q.stride[1] + r.head * s.a.q.stride[2];
        part.raw[i] = 0;
        if (row < run.rows && d < s.a.head_dim)
            part.raw[i] = raw_at(from, s.a.q_type, d);
    }
}

/* Puts a number into shared memory as one of the first factors of q k^T: of a row, a lane has 16
 * neighbours of each 64, or 8 of each block, and a step of the product takes two of them. */
template <int TYPE> FUNC void put_q(struct quad *query, int row, int d, float v)
{
    const int each = TYPE == STORAGE_Q8_0 ? 8 : 16;
    const int step = d / (each * 4) * (each / 2) + d % each / 2;
    struct quad *to = query + step * 32 + row * 4 + d / each % 4;
    to->v[d % 2 * 2] = high_of(v);
    to->v[d % 2 * 2 + 1] = low_of(v);
}

/* Puts scale q there. */
template <int TYPE, int DIM>
FUNC void stage_q(struct quad *query, const struct part_of_q<TYPE, DIM> &part,
                  const struct decode_args &s)
{
    UNROLL for (int i = 0; i < part.COUNT; i++)
    {
        const int n = i * part.APART + local_id(), row = n / DIM, d = n % DIM;
        put_q<TYPE>(query, row, d, s.a.scale * float_of(part.raw[i], s.a.q_type));
    }
}

/* ---- the ring ---- */

/* A head of k or of v. */
struct cache {
    GLOBAL const u8 *from;
    i64 stride;
    int bytes; /* of a key */
};

/* How far behind a multiple of 16 a key begins. */
template <int TYPE> FUNC int before_of(GLOBAL const u8 *from)
{
    return TYPE == STORAGE_Q8_0 ? (int)((u64)from % 16) : 0;
}

/* Begins to copy DECODE_KEYS keys, so far as there are any. SPREAD lanes share one. */
template <int TYPE, int DIM>
FUNC void fetch_keys(u8 *to, struct cache c, struct span keys, int lane)
{
    enum {
        PIECES = (DECODE_ROW(TYPE, DIM) + 15) / 16,
        SPREAD = PIECES > 16  ? 32
                 : PIECES > 8 ? 16
                              : 8,
        AT_ONCE = 32 / SPREAD,
        PITCH = DECODE_PITCH(TYPE, DIM)
    };
    const int n = lane % SPREAD * 16;
    GLOBAL const u8 *from = c.from + (keys.first + lane / SPREAD) * c.stride + n;
    const i64 step = c.stride * AT_ONCE;
    keys.first += lane / SPREAD;
    to += lane / SPREAD * PITCH + n;
    UNROLL for (int i = 0; i < DECODE_KEYS / AT_ONCE; i++)
    {
        const int before = before_of<TYPE>(from);
        if (keys.first + i * AT_ONCE < keys.end && n < before + c.bytes)
            copy_16<TYPE>(to + i * AT_ONCE * PITCH, from - before);
        from += step;
    }
}

template <int TYPE, int DIM>
FUNC void fetch(u8 *slot, struct cache k, struct cache v, struct span keys, int lane)
{
    fetch_keys<TYPE, DIM>(slot, k, keys, lane);
    fetch_keys<TYPE, DIM>(slot + DECODE_STEP(TYPE, DIM) / 2, v, keys, lane);
    copies_commit();
}

/* Where row `row` of a slot's part lies, which has key `key`. */
template <int TYPE, int DIM>
FUNC const u8 *row_in(const u8 *part, struct cache c, int row, int key)
{
    return part + row * DECODE_PITCH(TYPE, DIM) + before_of<TYPE>(c.from + key * c.stride);
}

#endif
