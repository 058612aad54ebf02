/* SPDX-License-Identifier: MIT */
/* decode_products.h - a step of attention_decode.cu: scores, exponentials and values of the keys
 * that a warp has in its ring; then all the steps of a part. Follows decode_keys.h. */
#ifndef CUDA_KERNELS_DECODE_PRODUCTS_H
#define CUDA_KERNELS_DECODE_PRODUCTS_H

/* ---- a step ---- */

/* What a lane keeps: of row lane / 4, which one it is, the largest score so far, its own part of
 * the sum of exponentials relative to that, and the factor of distances; of rows 2 (lane % 4) and
 * the next one, two neighbours of each 16 values. */
template <int DIM> struct kept {
    struct row row;
    float slope, top, sum;
    float y[DIM / 16][4];
};

/* What the lanes of a step read. */
struct step {
    const u8 *k, *v, *zeros;
    const struct quad *query;
    int key, lane; /* the first key */
};

/* score[i] = q . k of the keys 2 (lane % 4) + i % 2 + i / 2 * 8. */
template <int TYPE, int DIM>
FUNC void dots(float *score, struct step at, struct cache k, int head_dim)
{
    const int in = at.lane % 4 * 16;
    float sum[2][2][4] = { { { 0.0f } } };
    const u8 *row[2];
    UNROLL for (int j = 0; j < 2; j++) row[j] =
        row_in<TYPE, DIM>(at.k, k, j * 8 + at.lane / 4, at.key + j * 8 + at.lane / 4);
    UNROLL for (int c = 0; c < DIM / 32; c++)
    {
        const int d = c / 2 * 64 + in + c % 2 * 8;
        float b[2][8];
        UNROLL for (int j = 0; j < 2; j++)
            load_eight<TYPE>(b[j], d < head_dim ? row[j] : at.zeros, d);
        UNROLL for (int i = 0; i < 4; i++)
        {
            const struct quad a = at.query[(c * 4 + i) * 32 + at.lane];
            UNROLL for (int j = 0; j < 2; j++)
            {
                const float *two = b[j] + i * 2;
                multiply(sum[j][i % 2], a, part_of<TYPE>(two[0]), part_of<TYPE>(two[1]));
                if (TYPE == STORAGE_F32)
                    multiply(sum[j][1 - i % 2], a, low_of(two[0]), low_of(two[1]));
            }
        }
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        const float *even = sum[i / 2][0] + i % 2, *odd = sum[i / 2][1] + i % 2;
        score[i] = (even[0] + odd[0]) + (even[2] + odd[2]);
    }
}

/* The same with blocks: codes are exact in TF32, and the sum of a block is multiplied by its
 * scale. */
template <int DIM>
FUNC void dots_of_blocks(float *score, struct step at, struct cache k, int head_dim)
{
    const u8 *scales[4];
    struct codes row[2];
    UNROLL for (int j = 0; j < 2; j++)
    {
        const int n = j * 8 + at.lane / 4;
        row[j] =
            codes_of(row_in<STORAGE_Q8_0, DIM>(at.k, k, n, at.key + n) + at.lane % 4 * 8);
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        const int n = at.lane % 4 * 2 + i % 2 + i / 2 * 8;
        scales[i] = row_in<STORAGE_Q8_0, DIM>(at.k, k, n, at.key + n);
        score[i] = 0.0f;
    }
    UNROLL for (int c = 0; c < DIM / BLOCK; c++)
    {
        float sum[2][4] = { { 0.0f } }, b[2][8];
        if (c * BLOCK >= head_dim)
            break;
        UNROLL for (int j = 0; j < 2; j++) UNROLL for (int i = 0; i < 8; i += 4)
            load_codes(b[j] + i, row[j], c * Q8_0_BYTES + 2 + i);
        UNROLL for (int i = 0; i < 4; i++)
        {
            const struct quad a = at.query[(c * 4 + i) * 32 + at.lane];
            UNROLL for (int j = 0; j < 2; j++)
                multiply(sum[j], a, bits_of_f32(b[j][i * 2]), bits_of_f32(b[j][i * 2 + 1]));
        }
        UNROLL for (int i = 0; i < 4; i++)
            score[i] += scale_at(scales[i] + c * Q8_0_BYTES) *
                        (sum[i / 2][i % 2] + sum[i / 2][i % 2 + 2]);
    }
}

static __attribute__((device, noinline)) float soft(float score, float cap)
{
    return cap * tanh_f32(score / cap);
}

/* Turns products into scores: -inf if the row does not see a key. */
FUNC void scores(float *score, const struct row &row, float slope, int key,
                 const struct decode_args &s)
{
    UNROLL for (int i = 0; i < 4; i++)
    {
        const int at = key + i % 2 + i / 2 * 8, ahead = at - row.position;
        if (s.a.softcap > 0.0f)
            score[i] = soft(score[i], s.a.softcap);
        if (s.a.has_slopes)
            score[i] -= slope * (float)(ahead < 0 ? -ahead : ahead);
        if (at < row.seen.first || at >= row.seen.end)
            score[i] = NEG_INFINITY;
    }
}

/* Turns scores into exponentials relative to the largest score so far. */
template <int DIM> FUNC void exponentials(float *score, struct kept<DIM> &my, int lane)
{
    float top = my.top;
    UNROLL for (int i = 0; i < 4; i++) top = max_f32(score[i], top);
    top = max_f32(of_lane(top, lane ^ 1), top);
    top = max_f32(of_lane(top, lane ^ 2), top);
    const float from = top == NEG_INFINITY ? 0.0f : top;
    if (any_lane(top != my.top)) {
        const float shrink = exp2_f32((my.top - from) * LOG2_E);
        const float even = of_lane(shrink, lane % 4 * 8);
        const float odd = of_lane(shrink, lane % 4 * 8 + 4);
        UNROLL for (int m = 0; m < DIM / 16; m++) UNROLL for (int i = 0; i < 4; i++)
            my.y[m][i] *= i % 2 ? odd : even;
        my.sum *= shrink;
        my.top = top;
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        score[i] = exp2_f32((score[i] - from) * LOG2_E);
        my.sum += score[i];
    }
}

/* Where the values of keys 2 (lane % 4) + i % 2 + i / 2 * 8 lie; of those that are not seen, zeros,
 * because zero times what lies there need not be zero. */
template <int TYPE, int DIM>
FUNC void find_values(const u8 **row, struct step at, struct cache v, struct span seen)
{
    UNROLL for (int i = 0; i < 4; i++)
    {
        const int n = at.lane % 4 * 2 + i % 2 + i / 2 * 8, key = at.key + n;
        row[i] = key >= seen.first && key < seen.end ? row_in<TYPE, DIM>(at.v, v, n, key)
                                                     : at.zeros;
    }
}

/* y += p . v of two keys. */
template <int TYPE>
FUNC void add_values(float *y, const float *v0, const float *v1, const float *p)
{
    const struct quad high = { { part_of<TYPE>(v0[0]), part_of<TYPE>(v0[1]),
                                 part_of<TYPE>(v1[0]), part_of<TYPE>(v1[1]) } };
    multiply(y, high, high_of(p[0]), high_of(p[1]));
    multiply(y, high, low_of(p[0]), low_of(p[1]));
    if (TYPE == STORAGE_F32) {
        const struct quad low = { { low_of(v0[0]), low_of(v0[1]), low_of(v1[0]),
                                    low_of(v1[1]) } };
        multiply(y, low, high_of(p[0]), high_of(p[1]));
    }
}

/* y += p . v: of each 64 values, a lane has 8 neighbours. */
template <int TYPE, int DIM>
FUNC void weigh(struct kept<DIM> &my, const float *p, struct step at, struct cache v,
                struct span seen)
{
    const u8 *row[4];
    find_values<TYPE, DIM>(row, at, v, seen);
    UNROLL for (int c = 0; c < DIM / 64; c++) UNROLL for (int half = 0; half < 4; half += 2)
    {
        float a[2][8];
        UNROLL for (int i = 0; i < 2; i++)
            load_eight<TYPE>(a[i], row[half + i], c * 64 + at.lane / 4 * 8);
        UNROLL for (int m = 0; m < 4; m++)
            add_values<TYPE>(my.y[c * 4 + m], a[0] + m * 2, a[1] + m * 2, p + half);
    }
}

/* The same with blocks: of each, a lane has 4 neighbours, and p is multiplied by the scale. */
template <int DIM>
FUNC void weigh_blocks(struct kept<DIM> &my, const float *p, struct step at, struct cache v,
                       struct span seen)
{
    const u8 *row[4];
    struct codes codes[4];
    find_values<STORAGE_Q8_0, DIM>(row, at, v, seen);
    UNROLL for (int i = 0; i < 4; i++) codes[i] = codes_of(row[i] + at.lane / 4 * 4);
    UNROLL for (int c = 0; c < DIM / BLOCK; c++)
    {
        float a[4][4], own[4];
        UNROLL for (int i = 0; i < 4; i++)
        {
            load_codes(a[i], codes[i], c * Q8_0_BYTES + 2);
            own[i] = p[i] * scale_at(row[i] + c * Q8_0_BYTES);
        }
        UNROLL for (int half = 0; half < 4; half += 2) UNROLL for (int m = 0; m < 2; m++)
            add_values<STORAGE_Q8_0>(my.y[c * 2 + m], a[half] + m * 2, a[half + 1] + m * 2,
                                     own + half);
    }
}

/* Which value y[m][i] of a lane is. */
template <int TYPE> FUNC int value_of(int lane, int m, int i)
{
    return TYPE == STORAGE_Q8_0 ? m / 2 * 32 + lane / 4 * 4 + m % 2 * 2 + i / 2
                                : m / 4 * 64 + lane / 4 * 8 + m % 4 * 2 + i / 2;
}

/* Where queries do not see the same keys: for one query after the other. */
template <int TYPE, int DIM>
FUNC void take_step(struct kept<DIM> &my, struct step at, struct cache k, struct cache v,
                    const struct decode_args &s, struct run run)
{
    const struct row first = row_of(s, run, 0), last = row_of(s, run, run.rows - 1);
    const bool alike = at.key >= last.seen.first && at.key + DECODE_KEYS <= first.seen.end;
    float p[4];
    if (TYPE == STORAGE_Q8_0)
        dots_of_blocks<DIM>(p, at, k, s.a.head_dim);
    else
        dots<TYPE, DIM>(p, at, k, s.a.head_dim);
    scores(p, my.row, my.slope, at.key + at.lane % 4 * 2, s);
    exponentials(p, my, at.lane);
    LOOP for (int query = alike ? last.query : first.query; query <= last.query; query++)
    {
        float own[4];
        UNROLL for (int i = 0; i < 4; i++) own[i] = alike || my.row.query == query ? p[i]
                                                                                   : 0.0f;
        const struct span seen = seen_by(s.a, run.length, query);
        if (TYPE == STORAGE_Q8_0)
            weigh_blocks(my, own, at, v, seen);
        else
            weigh<TYPE>(my, own, at, v, seen);
    }
}

/* A key and a value that are not yet in the cache, as it stores them; key -1: none. */
struct fresh {
    int key;
    const u8 *k, *v;
};

/* A warp's part of a split: every ROUND keys, a step. */
template <int TYPE, int DIM> struct part {
    enum { STAGES = DECODE_STAGES(TYPE, DIM, CAPABILITY), STEP = DECODE_STEP(TYPE, DIM) };
    enum { WARPS = DECODE_WARPS(TYPE, DIM), ROUND = WARPS * DECODE_KEYS };
    struct cache k, v;
    u8 *ring;
    struct span ahead; /* keys that are still to be copied */
    struct step at;
};

template <int TYPE, int DIM>
FUNC struct part<TYPE, DIM> part_of(u8 *memory, const struct decode_args &s,
                                    const struct share &my) {
    const int lane = local_id() % 32, warp = local_id() / 32;
    const struct run &run = my.run;
    struct part<TYPE, DIM> part;
    part.k = { (GLOBAL const u8 *)s.k + run.batch * s.a.k.stride[0] +
                   run.kv_head * s.a.k.stride[2],
               s.a.k.stride[1], bytes_of(TYPE, s.a.head_dim) };
    part.v = { (GLOBAL const u8 *)s.v + run.batch * s.a.v.stride[0] +
                   run.kv_head * s.a.v.stride[2],
               s.a.v.stride[1], bytes_of(TYPE, s.a.value_dim) };
    part.ring = memory + DECODE_RING(TYPE, DIM) + warp * part.STAGES * part.STEP;
    part.ahead = { my.keys.first + warp * DECODE_KEYS, my.keys.end };
    part.at = {};
    part.at.zeros = memory + DECODE_Q(DIM);
    part.at.query = (const struct quad *)memory;
    part.at.key = part.ahead.first;
    part.at.lane = lane;
    return part;
}

/* Begins to copy the next step to a place of the ring. */
template <int TYPE, int DIM>
FUNC void copy_ahead(struct part<TYPE, DIM> &part, int place)
{
    fetch<TYPE, DIM>(part.ring + place * part.STEP, part.k, part.v, part.ahead,
                     part.at.lane);
    part.ahead.first += part.ROUND;
}

/* Begins to fill the ring, and clears the row of zeros. */
template <int TYPE, int DIM> FUNC void begin_part(struct part<TYPE, DIM> &part, u8 *memory)
{
    LOOP for (int i = 0; i < part.STAGES; i++) copy_ahead(part, i);
    LOOP for (int i = local_id(); i < DECODE_PITCH(TYPE, DIM); i += part.WARPS * 32)
        memory[DECODE_Q(DIM) + i] = 0;
}

/* Puts what is fresh where something older was copied. */
template <int TYPE, int DIM>
FUNC void put_fresh(u8 *slot, const struct part<TYPE, DIM> &part, const struct fresh &fresh)
{
    const int n = fresh.key - part.at.key;
    u16 *k = (u16 *)row_in<TYPE, DIM>(slot, part.k, n, fresh.key);
    u16 *v = (u16 *)row_in<TYPE, DIM>(slot + DECODE_STEP(TYPE, DIM) / 2, part.v, n,
                                      fresh.key);
    LOOP for (int i = part.at.lane; i < part.k.bytes / 2; i += 32)
        k[i] = ((const u16 *)fresh.k)[i];
    LOOP for (int i = part.at.lane; i < part.v.bytes / 2; i += 32)
        v[i] = ((const u16 *)fresh.v)[i];
    warp_barrier();
}

template <int TYPE, int DIM>
FUNC void take_part(struct kept<DIM> &my, struct part<TYPE, DIM> &part,
                    const struct decode_args &s, const struct share &share,
                    const struct fresh &fresh)
{
    struct step &at = part.at;
    BARRIER();
    for (int place = 0; at.key < share.keys.end; at.key += part.ROUND) {
        u8 *now = part.ring + place * part.STEP;
        copies_wait<DECODE_STAGES(TYPE, DIM, CAPABILITY) - 1>();
        warp_barrier();
        if (fresh.key >= at.key && fresh.key < at.key + DECODE_KEYS)
            put_fresh(now, part, fresh);
        at.k = now;
        at.v = now + part.STEP / 2;
        take_step<TYPE>(my, at, part.k, part.v, s, share.run);
        warp_barrier();
        copy_ahead(part, place);
        place = place + 1 == part.STAGES ? 0 : place + 1;
    }
    copies_wait<0>();
    BARRIER();
}

#endif
