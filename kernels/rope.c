/* SPDX-License-Identifier: MIT */
/* Rotates pairs of each head by position * scale * theta^(-2i/dims) / factors[i], and
 * multiplies them by magnitude: one group per token, for all heads.
 *
 * An angle is an integer, a fraction of a turn in units of 2^-64, so frequency times
 * position wraps around exactly as angles do. The result is as accurate at position 10^6
 * as at 1. */
#define ROPE_PAIRS 128 /* pairs whose sines are kept at a time */

struct rope_turns {
    u64 frequency, ratio, reduction, step, position;
    i64 ramp_first, ramp_length;
    int has_factors, ramped;
    float magnitude;
};

/* a * b / 2^64. */
FUNC u64 rope_scaled(u64 a, u64 b)
{
    const u64 a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
    const u64 mid = a1 * b0 + (a0 * b0 >> 32);
    return a1 * b1 + (mid >> 32) + ((a0 * b1 + (mid & 0xffffffffu)) >> 32);
}

/* frequency * (ratio / 2^64)^n. */
FUNC u64 rope_powered(u64 frequency, u64 ratio, i64 n)
{
    for (; n > 0; n /= 2) {
        if (n % 2)
            frequency = rope_scaled(frequency, ratio);
        ratio = rope_scaled(ratio, ratio);
    }
    return frequency;
}

/* frequency / factor: the factor is m * 2^(e - 23), and the division by m is a long one. */
FUNC u64 rope_divided(u64 frequency, float factor)
{
    const u32 u = bits_of_f32(factor);
    const u64 m = (u & 0x7fffffu) | 0x800000u;
    const int e = (int)(u >> 23 & 255u) - 127;
    const u64 quotient = (frequency / m << 23) + ((frequency % m << 23) / m);
    if (e >= 0)
        return e < 64 ? quotient >> e : 0;
    return e > -64 ? quotient << -e : 0;
}

/* The sine of turn / 2^32 of a turn, by polynomials around each quarter of a turn. */
FUNC float rope_sine(u32 turn)
{
    const u32 quadrant = (turn + 0x20000000u) >> 30;
    const float x = (float)(int)(turn - (quadrant << 30)) * 1.46291807926715968e-9f;
    const float s = x * x;
    float sine = -1.9515295891e-4f;
    sine = sine * s + 8.3321608736e-3f;
    sine = sine * s - 1.6666654611e-1f;
    sine = sine * s * x + x;
    float cosine = 2.443315711809948e-5f;
    cosine = cosine * s - 1.388731625493765e-3f;
    cosine = cosine * s + 4.166664568298827e-2f;
    cosine = cosine * s * s - 0.5f * s + 1.0f;
    const float v = quadrant & 1u ? cosine : sine;
    return quadrant & 2u ? -v : v;
}

FUNC void rope_rotate(GLOBAL u8 *y, GLOBAL const u8 *x, i64 i, i64 j, float cosine,
                      float sine)
{
    const float u = load(ACT, x, i), v = load(ACT, x, j);
    store(ACT, y, i, u * cosine - v * sine);
    store(ACT, y, j, v * cosine + u * sine);
}

/* What YaRN leaves of the frequency of a pair. */
FUNC u64 rope_reduced(struct rope_turns r, u64 frequency, i64 pair)
{
    const i64 n = pair - r.ramp_first;
    const i64 steps = n < 0 ? 0 : n < r.ramp_length ? n : r.ramp_length;
    return frequency - rope_scaled(frequency, r.reduction + (u64)steps * r.step);
}

/* Cosines and sines of pairs first .. first + pairs at one position. */
LOCAL_FUNC void rope_table(LOCAL float *cosine, LOCAL float *sine, GLOBAL const u8 *factors,
                           struct rope_turns r, i64 first, int pairs, int lid)
{
    const u64 step = rope_powered(r.ratio, r.ratio, GROUP - 1);
    u64 frequency = rope_powered(r.frequency, r.ratio, first + lid);
    for (int i = lid; i < pairs; i += GROUP) {
        u64 f = r.ramped ? rope_reduced(r, frequency, first + i) : frequency;
        f = r.has_factors ? rope_divided(f, load_f32(factors, first + i)) : f;
        const u32 turn = (u32)(r.position * f >> 32);
        sine[i] = r.magnitude * rope_sine(turn);
        cosine[i] = r.magnitude * rope_sine(turn + 0x40000000u);
        frequency = rope_scaled(frequency, step);
    }
}

KERNEL(rope)
(GLOBAL u8 *y, GLOBAL const u8 *x, GLOBAL const u8 *positions, GLOBAL const u8 *factors,
 ARGS(struct rope_args) a GRID)
{
    SHARED float cosine[ROPE_PAIRS], sine[ROPE_PAIRS];
    const int lid = local_id(), lane = lid % LANES;
    const struct index at = index_of(group_id(), 1, a.tokens);
    const i64 token = at.i2, apart = a.dims / 2;

    x += a.x.offset + at.i0 * a.x.stride[0] + token * a.x.stride[1];
    y += a.y.offset + at.i0 * a.y.stride[0] + token * a.y.stride[1];
    if (a.has_factors)
        factors += a.factors_offset;
    struct rope_turns r;
    r.frequency = a.frequency;
    r.ratio = a.ratio;
    r.reduction = a.reduction;
    r.step = a.step;
    r.ramp_first = a.ramp_first;
    r.ramp_length = a.ramp_length;
    r.ramped = a.ramped;
    r.magnitude = a.magnitude;
    r.has_factors = a.has_factors;
    r.position = (u64)(a.start + token);
    if (a.has_positions)
        r.position =
            (u64)(i64)((GLOBAL const int *)(positions + a.positions_offset))[token];

    for (i64 first = 0; first < apart; first += ROPE_PAIRS) {
        const int pairs = apart - first < ROPE_PAIRS ? (int)(apart - first) : ROPE_PAIRS;
        rope_table(cosine, sine, factors, r, first, pairs, lid);
        BARRIER();
        for (i64 h = lid / LANES; h < a.heads; h += GROUP / LANES) {
            GLOBAL const u8 *from = x + h * a.x.stride[2];
            GLOBAL u8 *to = y + h * a.y.stride[2];
            if (a.interleaved)
                for (int i = lane; i < pairs; i += LANES)
                    rope_rotate(to, from, 2 * (first + i), 2 * (first + i) + 1, cosine[i],
                                sine[i]);
            else
                for (int i = lane; i < pairs; i += LANES)
                    rope_rotate(to, from, first + i, first + i + apart, cosine[i], sine[i]);
        }
        BARRIER();
    }
    for (i64 h = lid / LANES; h < a.heads; h += GROUP / LANES)
        for (i64 i = a.dims + lane; i < a.head_dim; i += LANES)
            store(ACT, y + h * a.y.stride[2], i, load(ACT, x + h * a.x.stride[2], i));
}
