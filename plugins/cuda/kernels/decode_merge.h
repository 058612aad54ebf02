/* SPDX-License-Identifier: MIT */
/* decode_merge.h - what becomes of partial results in attention_decode.cu: those of warps are
 * added up, then those of splits, by the last one to finish. Follows decode_products.h. */
#ifndef CUDA_KERNELS_DECODE_MERGE_H
#define CUDA_KERNELS_DECODE_MERGE_H

/* ---- results ---- */

/* Several partial results of a row, of which some may be of no key. */
struct sums {
    float top, sum;
};

/* The factor of a part relative to the largest score of all. */
FUNC float factor_of(float top, float all)
{
    return exp2_f32((top - (all == NEG_INFINITY ? 0.0f : all)) * LOG2_E);
}

FUNC void store_y(const struct decode_args &s, const struct row &r, i64 batch, int d,
                  const float *v, struct sums all)
{
    GLOBAL u8 *y = (GLOBAL u8 *)s.y + batch * s.a.y.stride[0] + r.query * s.a.y.stride[1] +
                   r.head * s.a.y.stride[2];
    float sum = all.sum, top = all.top;
    if (s.a.has_sinks) {
        const float sink = ((GLOBAL const float *)s.sinks)[r.head];
        top = max_f32(sink, all.top);
        sum = sum * factor_of(all.top, top);
        if (sink != NEG_INFINITY)
            sum += factor_of(sink, top);
    }
    const float scale = (sum == 0.0f ? 0.0f : 1.0f / sum) * factor_of(all.top, top);
    for (int i = 0; i < 4 && d + i < s.a.value_dim; i++) {
        if (s.a.y_type == STORAGE_F32)
            store_f32(y, d + i, v[i] * scale);
        else if (s.a.y_type == STORAGE_F16)
            store_f16(y, d + i, v[i] * scale);
        else
            store_bf16(y, d + i, v[i] * scale);
    }
}

/* Partial values of rows, and what they are relative to. */
template <int DIM, int PARTS, int ROWS> struct parts {
    float y[PARTS][ROWS][DIM];
    struct sums sums[PARTS][ROWS];
};

/* Adds all parts of four values of a row. */
template <int DIM, int PARTS, int ROWS>
FUNC struct sums add_parts(float *v, const struct parts<DIM, PARTS, ROWS> *parts, int row,
                           int d)
{
    struct sums all = { NEG_INFINITY, 0.0f };
    UNROLL for (int n = 0; n < PARTS; n++)
        all.top = max_f32(parts->sums[n][row].top, all.top);
    UNROLL for (int n = 0; n < PARTS; n++)
    {
        const float factor = factor_of(parts->sums[n][row].top, all.top);
        all.sum += parts->sums[n][row].sum * factor;
        UNROLL for (int i = 0; i < 4; i++) v[i] += parts->y[n][row][d + i] * factor;
    }
    return all;
}

template <int TYPE, int DIM> struct warps {
    struct parts<DIM, DECODE_WARPS(TYPE, DIM), DECODE_ROWS> parts;
};

template <int TYPE, int DIM>
FUNC void leave(struct warps<TYPE, DIM> *to, struct kept<DIM> &my)
{
    const int lane = local_id() % 32, warp = local_id() / 32;
    my.sum += of_lane(my.sum, lane ^ 1);
    my.sum += of_lane(my.sum, lane ^ 2);
    if (lane % 4 == 0)
        to->parts.sums[warp][lane / 4] = { my.top, my.sum };
    UNROLL for (int m = 0; m < DIM / 16; m++) UNROLL for (int i = 0; i < 4; i++)
    {
        const int d = value_of<TYPE>(lane, m, i);
        to->parts.y[warp][lane % 4 * 2 + i % 2][d] = my.y[m][i];
    }
}

/* Where the sums of a record are: in turns, so that those of a set can take the place of those of
 * its first one while these are still read. */
FUNC int sums_at(int dim, int level)
{
    return dim + level % 2 * 2;
}

FUNC void put_record(float *record, int sums_at, int d, const float *v, struct sums all)
{
    *(struct quad *)(record + d) = { { bits_of_f32(v[0]), bits_of_f32(v[1]),
                                       bits_of_f32(v[2]), bits_of_f32(v[3]) } };
    if (d == 0) {
        record[sums_at] = all.top;
        record[sums_at + 1] = all.sum;
    }
}

/* Adds up what the warps have: the result, or the records of a split. */
template <int TYPE, int DIM>
FUNC void add_warps(const struct warps<TYPE, DIM> *warps, const struct decode_args &s,
                    const struct share &my)
{
    enum { AT_A_TIME = DECODE_WARPS(TYPE, DIM) * 32 * 4 };
    LOOP for (int i = local_id() * 4; i < my.run.rows * DIM; i += AT_A_TIME)
    {
        const int row = i / DIM, d = i % DIM;
        float v[4] = { 0.0f };
        const struct sums all = add_parts(v, &warps->parts, row, d);
        float *record = records_of(s, my.run, my.split, DIM) + row * DECODE_RECORD(DIM);
        if (my.splits == 1)
            store_y(s, row_of(s, my.run, row), my.run.batch, d, v, all);
        else
            put_record(record, sums_at(DIM, 0), d, v, all);
    }
}

/* ---- the splits ---- */

/* Adds `count` records of four values of a row, `step` floats apart, to nothing: so many at a time,
 * all of which are on their way before one is used. */
FUNC struct sums add_records(float *v, const float *records, i64 step, int sums_at, int d,
                             int count)
{
    enum { AT_ONCE = DECODE_SET / 2 };
    struct sums all = { NEG_INFINITY, 0.0f };
    LOOP for (; count > 0; count -= AT_ONCE, records += AT_ONCE * step)
    {
        struct sums sums[AT_ONCE];
        struct quad parts[AT_ONCE];
        float top = all.top;
        UNROLL for (int i = 0; i < AT_ONCE; i++)
        {
            const float *record = records + i * step;
            sums[i] = { NEG_INFINITY, 0.0f };
            parts[i] = { { 0 } };
            if (i < count) {
                sums[i] = { record[sums_at], record[sums_at + 1] };
                parts[i] = *(const struct quad *)(record + d);
            }
        }
        UNROLL for (int i = 0; i < AT_ONCE; i++) top = max_f32(sums[i].top, top);
        const float shrink = factor_of(all.top, top);
        all.sum *= shrink;
        UNROLL for (int n = 0; n < 4; n++) v[n] *= shrink;
        UNROLL for (int i = 0; i < AT_ONCE; i++)
        {
            const float factor = factor_of(sums[i].top, top);
            all.sum += sums[i].sum * factor;
            UNROLL for (int n = 0; n < 4; n++) v[n] += f32_of_bits(parts[i].v[n]) * factor;
        }
        all.top = top;
    }
    return all;
}

/* Counts a group; whether it is the last of `all`. Then it sees what the others have written, and
 * the counter is 0 again. */
FUNC bool is_last(u64 counter, int all)
{
    u32 before = 0;
    BARRIER();
    if (local_id() == 0)
        asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                     : "=r"(before)
                     : "l"(counter), "r"(all - 1)
                     : "memory");
    return all_threads(local_id() > 0 || before + 1 == (u32)all);
}

/* Splits first, first + apart .. below end. */
struct set {
    int first, apart, end, level;
};

FUNC int count_of(const struct set &set)
{
    return (set.end - set.first + set.apart - 1) / set.apart;
}

/* Adds their records up: to the result, if these are all, or to records of the first one. */
template <int TYPE, int DIM>
FUNC void add_splits(const struct decode_args &s, const struct share &my,
                     const struct set &set)
{
    enum { AT_A_TIME = DECODE_WARPS(TYPE, DIM) * 32 * 4 };
    const i64 step = (i64)set.apart * DECODE_ROWS * DECODE_RECORD(DIM);
    LOOP for (int i = local_id() * 4; i < my.run.rows * DIM; i += AT_A_TIME)
    {
        const int row = i / DIM, d = i % DIM;
        float *record = records_of(s, my.run, set.first, DIM) + row * DECODE_RECORD(DIM);
        float v[4] = { 0.0f };
        const struct sums all = add_records(v, record, step, sums_at(DIM, set.level), d,
                                            count_of(set));
        if (set.end - set.first == my.splits)
            store_y(s, row_of(s, my.run, row), my.run.batch, d, v, all);
        else
            put_record(record, sums_at(DIM, set.level + 1), d, v, all);
    }
}

/* The last of a set adds its records up, and the last of a set of sets theirs. Returns whether this
 * group has stored the result. */
template <int TYPE, int DIM>
FUNC bool merge(const struct decode_args &s, const struct share &my)
{
    struct set set = { 0, 1 };
    LOOP for (;; set.apart *= DECODE_SET, set.level++)
    {
        const int reach = set.apart * DECODE_SET;
        set.first = my.split / reach * reach;
        set.end = set.first + reach < my.splits ? set.first + reach : my.splits;
        if (!is_last(s.counters + (u64)(number_of(s, my.run, set.first) + set.level) * 4,
                     count_of(set)))
            return false;
        add_splits<TYPE, DIM>(s, my, set);
        if (set.end - set.first == my.splits)
            return true;
    }
}

#endif
