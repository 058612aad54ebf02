/* SPDX-License-Identifier: MIT */
/* gemv_row.h - a row of a in shared memory, as floats or integers, or the rmsnorm of a row.
 * Follows gemv_ring.h. */
#ifndef CUDA_KERNELS_GEMV_ROW_H
#define CUDA_KERNELS_GEMV_ROW_H

/* ---- a as integers ---- */

enum { HALF = 16, PLANE = 32 * HALF };

/* Two lanes' worth of words of these types have no bank in common, if a lane has two neighbouring
 * units. */
#define IS_PAIRED(type) ((type) == STORAGE_Q4_0 || (type) == STORAGE_Q5_0)
/* A lane has 64 neighbours, 32 with one scale and 32 with another, as the first and the second
 * halves of two units. */
#define IS_WIDE(type) ((type) == STORAGE_Q4_K || (type) == STORAGE_Q5_K)
/* The halves of a unit differ in scale. */
#define HAS_SHARES(type)  (IS_WIDE(type) || (type) == STORAGE_Q6_K)
#define HAS_OFFSETS(type) ((type) != STORAGE_Q8_0 && (type) != STORAGE_Q4_0)

/* Where element k of a row has its code: which unit, which half of it, which place there. In
 * SUPER numbers of q4_K and q5_K, a byte has codes of k and k + 32; in those of q6_K, of k and
 * k + 64. */
struct spot {
    int unit, half, place;
};

template <int TYPE> FUNC struct spot spot_of(int k)
{
    struct spot s = { k / BLOCK, k / HALF % 2, k % HALF };
    const int in = k % SUPER;
    if (IS_WIDE(TYPE)) {
        s.unit = k / (8 * SUPER) * 64 + in / HALF % 2 * 32 + k / SUPER % 8 * 4 + in / 64;
        s.half = in / 32 % 2;
    }
    if (TYPE == STORAGE_Q6_K) {
        s.unit = k / SUPER * 8 + in / 128 * 4 + in / 32 % 2 * 2 + in / HALF % 2;
        s.half = in / 64 % 2;
    }
    if (IS_PAIRED(TYPE))
        s.unit = s.unit / 64 * 64 + s.unit % 2 * 32 + s.unit % 64 / 2;
    return s;
}

/* In shared memory, for each 32 units: the planes of their first halves, those of the second ones;
 * then two floats for each half: its scale, and the sum of its numbers, or of 32 where units are
 * wide. */
template <int PLANES> FUNC u8 *plane_of(u8 *x, int unit, int half, int plane)
{
    return x + unit / 32 * (PLANES * 1024 + 512) + (half * PLANES + plane) * PLANE +
           unit % 32 * HALF;
}

template <int PLANES> FUNC u8 *scales_of(u8 *x, int unit)
{
    return plane_of<PLANES>(x, unit, 2, 0);
}

/* Four integers of at most 23 bits as digits of 8 bits: plane[i] has digit i of each. */
FUNC void split(u32 *plane, const int *code)
{
    u32 digits[4];
    UNROLL for (int i = 0; i < 4; i++) digits[i] = ((u32)code[i] + 0x808080u) ^ 0x808080u;
    const u32 low01 = permute(digits[0], digits[1], 0x5140);
    const u32 low23 = permute(digits[2], digits[3], 0x5140);
    plane[0] = permute(low01, low23, 0x5410);
    plane[1] = permute(low01, low23, 0x7632);
    plane[2] = permute(permute(digits[0], digits[1], 0x0062),
                       permute(digits[2], digits[3], 0x0062), 0x5410);
}

/* Four integers of 8 bits. */
FUNC u32 pack(const int *code)
{
    return permute(permute((u32)code[0], (u32)code[1], 0x0040),
                   permute((u32)code[2], (u32)code[3], 0x0040), 0x5410);
}

/* What makes 32 neighbours integers, of which the largest has the bits `most`: EXACT below 2^22
 * times a power of two, ROUNDED up to 127 times a scale that is not subnormal. */
template <int PLANES> FUNC void scale_for(u32 most, float *scale, float *inverse)
{
    enum { BITS = PLANES * 8 - 3, LEAST = 8 << 23, MOST_CODE = 127 };
    if (PLANES == ROUNDED) {
        const float largest = f32_of_bits(max_u32(most, LEAST));
        *scale = largest * (1.0f / MOST_CODE);
        *inverse = divide_near(MOST_CODE, largest);
        return;
    }
    const u32 exponent = most >> 23 > 27 ? most >> 23 : 27;
    *scale = f32_of_bits((exponent - BITS) << 23);
    *inverse = f32_of_bits((254 + BITS - exponent) << 23);
}

/* Four neighbours of 32, which eight lanes have. Returns whether all 32 are finite. */
template <int TYPE, int PLANES>
FUNC bool stage_four(u8 *x, const struct quad v, int k, bool is_there)
{
    u32 most = 0, plane[PLANES];
    int code[4], sum = 0;
    float scale, inverse;
    UNROLL for (int i = 0; i < 4; i++) most = max_u32(most, v.v[i] & 0x7fffffffu);
    UNROLL for (int distance = 1; distance < 8; distance *= 2)
        most = max_u32(most, from_lane(most, distance));
    scale_for<PLANES>(most, &scale, &inverse);
    UNROLL for (int i = 0; i < 4; i++)
    {
        code[i] = nearest_int(f32_of_bits(v.v[i]) * inverse);
        sum += code[i];
    }
    UNROLL for (int distance = 1; distance < (IS_WIDE(TYPE) ? 8 : 4); distance *= 2)
        sum += (int)from_lane((u32)sum, distance);
    if (PLANES == EXACT)
        split(plane, code);
    else
        plane[0] = pack(code);
    if (is_there) {
        const struct spot at = spot_of<TYPE>(k);
        UNROLL for (int i = 0; i < PLANES; i++) *
            (u32 *)(plane_of<PLANES>(x, at.unit, at.half, i) + at.place) = plane[i];
        float *to = (float *)scales_of<PLANES>(x, at.unit) + at.half * 2;
        if (at.place == 0) {
            to[0] = scale;
            to[1] = (float)sum * scale;
        }
    }
    return most < 0x7f800000u;
}

/* Eight neighbours of 32, which four lanes have, for one plane. */
template <int TYPE> FUNC bool stage_eight(u8 *x, const struct quad *v, int k, bool is_there)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    u32 most = 0, plane[2];
    float scale, inverse;
    UNROLL for (int i = 0; i < 8; i++)
        most = max_u32(most, v[i / 4].v[i % 4] & 0x7fffffffu);
    UNROLL for (int distance = 1; distance < 4; distance *= 2)
        most = max_u32(most, from_lane(most, distance));
    scale_for<ROUNDED>(most, &scale, &inverse);
    UNROLL for (int i = 0; i < 2; i++)
    {
        int code[4];
        UNROLL for (int j = 0; j < 4; j++)
            code[j] = (int)bits_of_f32(mul_exact(f32_of_bits(v[i].v[j]), inverse) + magic);
        plane[i] = pack(code);
    }
    int sum = dot4(plane[0], 0x01010101u, dot4(plane[1], 0x01010101u, 0));
    UNROLL for (int distance = 1; distance < (IS_WIDE(TYPE) ? 4 : 2); distance *= 2)
        sum += (int)from_lane((u32)sum, distance);
    if (is_there) {
        const struct spot at = spot_of<TYPE>(k);
        u32 *to = (u32 *)(plane_of<ROUNDED>(x, at.unit, at.half, 0) + at.place);
        float *scales = (float *)scales_of<ROUNDED>(x, at.unit) + at.half * 2;
        to[0] = plane[0];
        to[1] = plane[1];
        if (at.place == 0) {
            scales[0] = scale;
            scales[1] = (float)sum * scale;
        }
    }
    return most < 0x7f800000u;
}

/* ---- a in shared memory ---- */

/* Of floats, a lane has a quad of neighbours at a time, 4 or 8 of them; a is in shared memory as
 * floats: of each lane of 32 the first four, then the others. */
template <int TYPE> FUNC float *floats_of(u8 *x, int k)
{
    if (TYPE == STORAGE_F32)
        return (float *)x + k;
    return (float *)x + (k / 256 * 2 + k / 4 % 2) * 128 + k / 8 % 32 * 4 + k % 4;
}

/* Four numbers of a row of floats that begins at an address, as f32. */
FUNC struct quad load_four(u64 row, int type, int i)
{
    struct quad v;
    if (type == STORAGE_F32)
        return load_quad(row + (u64)i * 4);
    load_two(v.v, row + (u64)i * 2);
    const u32 word[2] = { v.v[0], v.v[1] };
    UNROLL for (int j = 0; j < 4; j++)
    {
        const u16 bits = (u16)(word[j / 2] >> (j % 2 * 16));
        v.v[j] = bits_of_f32(type == STORAGE_F16 ? f32_of_f16(bits) : f32_of_bf16(bits));
    }
    return v;
}

/* Neighbours that a lane has at a time. */
#define A_QUADS(type, planes) (!GEMV_IS_FLOAT(type) && (planes) == ROUNDED ? 2 : 1)

/* Puts neighbours k .. into shared memory; false if they are not finite, where they become
 * integers. Of 32 neighbours, all are there or none. */
template <int TYPE, int PLANES>
FUNC bool stage_numbers(u8 *x, const struct quad *v, int k, bool is_there)
{
    if (A_QUADS(TYPE, PLANES) == 2)
        return stage_eight<TYPE>(x, v, k, is_there);
    if (!GEMV_IS_FLOAT(TYPE))
        return stage_four<TYPE, PLANES>(x, *v, k, is_there);
    if (is_there)
        *(struct quad *)floats_of<TYPE>(x, k) = *v;
    return true;
}

/* Threads that have a row of a together, and which of them this one is. */
struct crew {
    int id, count;
};

/* Loads a row of a into shared memory. False if it has numbers that are not finite, which integers
 * cannot express. All loads of rows that are not very long are on their way before one is used. */
template <int TYPE, int PLANES, int AT_ONCE>
FUNC bool stage(u8 *x, u64 from, const struct gemv_args &s, struct crew crew)
{
    enum { QUADS = A_QUADS(TYPE, PLANES), WIDTH = QUADS * 4 };
    const int all = crew.count * WIDTH, own = crew.id % 32 * WIDTH;
    bool finite = true;
    LOOP for (int first = crew.id / 32 * 32 * WIDTH; first < s.k; first += AT_ONCE * all)
    {
        struct quad v[AT_ONCE][QUADS];
        UNROLL for (int i = 0; i < AT_ONCE; i++) UNROLL for (int q = 0; q < QUADS; q++)
        {
            const int k = first + i * all + own + q * 4;
            v[i][q] = { { 0 } };
            if (k < s.k)
                v[i][q] = load_four(from, s.a_type, k);
        }
        UNROLL for (int i = 0; i < AT_ONCE; i++)
        {
            const int k = first + i * all;
            if (k < s.k)
                finite &= stage_numbers<TYPE, PLANES>(x, v[i], k + own, k + own < s.k);
        }
    }
    return finite;
}

/* ---- a as the rmsnorm of a row ---- */

/* Sums as rows_rmsnorm does, so that results are the same, bit for bit: its threads have pieces of
 * 16 bytes of a row, GEMV_STAGERS * 32 pieces apart. */
FUNC float squares_of(const struct quad *v, float unit, float *scratch, struct crew crew)
{
    const int warps = crew.count / 32;
    float sum = 0.0f;
    UNROLL for (int i = 0; i < GEMV_NORM_QUADS; i++) UNROLL for (int j = 0; j < 4; j++)
    {
        const float x = unit * f32_of_bits(v[i].v[j]);
        sum += x * x;
    }
    sum = warp_sum(sum);
    if (crew.id % 32 == 0)
        scratch[crew.id / 32] = sum;
    asm volatile("bar.sync 1, %0;" ::"r"(crew.count) : "memory");
    return warp_sum(crew.id % 32 < warps ? scratch[crew.id % 32] : 0.0f);
}

/* What the row is multiplied with. Huge squares overflow and tiny ones vanish: then the sum is
 * computed again, in another unit. */
FUNC float norm_of(u64 row, const struct gemv_args &s, struct crew crew)
{
    SHARED float scratch[2][GEMV_STAGERS];
    struct quad v[GEMV_NORM_QUADS];
    UNROLL for (int i = 0; i < GEMV_NORM_QUADS; i++)
    {
        const int k = (i * crew.count + crew.id) * 4;
        v[i] = { { 0 } };
        if (k < s.k)
            v[i] = load_quad(row + (u64)k * 4);
    }
    float unit = 1.0f, sum = squares_of(v, unit, scratch[0], crew);
    if (!(sum < 1e37f) || sum < 1e-30f) {
        unit = sum < 1.0f ? 1.099511627776e12f : 8.271806125530277e-25f;
        sum = squares_of(v, unit, scratch[1], crew);
    }
    return unit / sqrt_f32(sum / (float)s.k + s.eps * unit * unit);
}

/* The rmsnorm of a, which one group also stores: a times the scale that it sets, times the weight.
 * The weight is loaded before what precedes has completed. */
template <int TYPE, int PLANES>
FUNC bool stage_normed(u8 *x, const struct gemv_args &s, struct crew crew, float *row_scale)
{
    enum {
        QUADS = A_QUADS(TYPE, PLANES),
        WIDTH = QUADS * 4,
        PARTS = GEMV_NORM_QUADS / QUADS
    };
    struct quad w[PARTS][QUADS], v[PARTS][QUADS];
    bool finite = true;
    UNROLL for (int i = 0; i < PARTS; i++) UNROLL for (int q = 0; q < QUADS; q++)
    {
        const int k = (i * crew.count + crew.id) * WIDTH + q * 4;
        w[i][q] = { { 0 } };
        if (k < s.k)
            w[i][q] = load_quad(s.norm + (u64)k * 4);
    }
    wait_for_previous();
    UNROLL for (int i = 0; i < PARTS; i++) UNROLL for (int q = 0; q < QUADS; q++)
    {
        const int k = (i * crew.count + crew.id) * WIDTH + q * 4;
        v[i][q] = { { 0 } };
        if (k < s.k)
            v[i][q] = load_quad(s.a + (u64)k * 4);
    }
    const float scale = norm_of(s.a, s, crew);
    if (crew.id == 0)
        *row_scale = scale;
    UNROLL for (int i = 0; i < PARTS; i++)
    {
        const int k = (i * crew.count + crew.id) * WIDTH;
        UNROLL for (int q = 0; q < QUADS; q++)
        {
            UNROLL for (int j = 0; j < 4; j++) v[i][q].v[j] =
                bits_of_f32(f32_of_bits(v[i][q].v[j]) * scale * f32_of_bits(w[i][q].v[j]));
            if (group_id() == group_count() - 1 && k + q * 4 < s.k)
                store_quad(s.normed + (u64)(k + q * 4) * 4, v[i][q]);
        }
        if ((i * crew.count + crew.id / 32 * 32) * WIDTH < s.k)
            finite &= stage_numbers<TYPE, PLANES>(x, v[i], k, k < s.k);
    }
    return finite;
}

#endif
