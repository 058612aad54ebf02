/* SPDX-License-Identifier: MIT */
/* The beginning of matmul_dots.cl: rounds the rows of a to 8 bits, one unit of 32 numbers per
 * work-item. A unit becomes 12 words: 32 codes, their scale, what the numbers of each half sum up to,
 * and whether bytes cannot stand for them. Units have the order of those of b (units.h): where
 * blocks have 256 numbers, the halves of a unit are apart. */

/* The first number of a half of a unit. */
FUNC i64 first_of_half(int b_type, i64 unit, int which)
{
    const int part = (int)(unit % 8), last = part % 2 * 16;
    const i64 super = unit / 8 * SUPER;
    if (b_type == STORAGE_Q6_K)
        return super + (part / 4 * 4 + part / 2 % 2 + 2 * which) * BLOCK + last;
    if (b_type == STORAGE_Q4_K || b_type == STORAGE_Q5_K)
        return super + (part / 2 * 2 + which) * BLOCK + last;
    return unit * BLOCK + which * 16;
}

FUNC uint largest_bits(float4 v)
{
    const uint4 bits = as_uint4(v) & 0x7fffffffu;
    const uint2 two = max(bits.lo, bits.hi);
    return max(two.x, two.y);
}

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
KERNEL(matmul_round)
(GLOBAL u8 *c, GLOBAL const u8 *a, GLOBAL const u8 *b, GLOBAL const u8 *bias,
 ARGS(struct matmul_args) s, GLOBAL uint4 *rounded)
{
    const i64 units = s.k / BLOCK;
    const struct index at = index_of(group_id(), s.m, (units + GROUP - 1) / GROUP);
    const i64 unit = at.i2 * GROUP + local_id();
    const struct index batch = batch_of(at.i0, s.batch1);
    if (unit >= units)
        return;
    a += matmul_at(s.a, batch, s.a_repeat0, s.a_repeat1) + at.i1 * s.a.stride[2];

    float4 v[8];
    uint top = 0;
    for (int i = 0; i < 8; i++) {
        v[i] = four_of(a, s.a_type, first_of_half(s.b_type, unit, i / 4) + i % 4 * 4);
        top = max(top, largest_bits(v[i]));
    }
    /* 1e-34 and 1e34: beyond, a scale or its inverse is not worth having. */
    const int good = top == 0 || (top >= bits_of_f32(1e-34f) && top <= bits_of_f32(1e34f));
    const float size = good ? f32_of_bits(top) : 0.0f, scale = size / 127.0f;
    const float inverse = size > 0.0f ? 127.0f / size : 0.0f;
    uint codes[8];
    int sum[2] = { 0, 0 };
    for (int i = 0; i < 8; i++) {
        const char4 code = good ? convert_char4_sat_rte(v[i] * inverse) : (char4)(0);
        codes[i] = as_uint(code);
        sum[i / 4] += code.x + code.y + code.z + code.w;
    }
    rounded += ((at.i0 * s.m + at.i1) * units + unit) * 3;
    rounded[0] = vload4(0, codes);
    rounded[1] = vload4(1, codes);
    rounded[2] = (uint4)(bits_of_f32(scale), bits_of_f32(scale * (float)sum[0]),
                         bits_of_f32(scale * (float)sum[1]), (uint)!good);
}
