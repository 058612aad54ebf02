/* SPDX-License-Identifier: MIT */
/* c = a . b^T + bias for one row of a, b stored [n,k] in blocks: a team of LANES work-items per ROWS
 * columns of c.
 *
 * A team copies a STEP of its rows of b to group memory, in pieces of 16 bytes, so that neighbouring
 * work-items read neighbouring pieces, whatever the size of a block. Then each work-item takes a unit
 * of 32 numbers from there. The group shares the numbers of a, in the order of the units. What the
 * next step needs is read into registers meanwhile. docs/opencl.md has what it reaches; floats and
 * q4_K, whose blocks are aligned, take less time in matmul_gemv.cl.
 *
 * The plan defines B_TYPE and ROWS. It takes care that rows of a are whole, aligned vectors of four,
 * and that rows of b are aligned to 2 bytes. */
#define TEAMS (GROUP / LANES)

#define STREAM_q8_0 1
#define STREAM_q4_0 2
#define STREAM_q4_1 3
#define STREAM_q5_0 4
#define STREAM_q5_1 5
#define STREAM_q5_K 6
#define STREAM_q6_K 7
#define STREAM_B    JOIN(STREAM_, B_TYPE)
#define HAS_SUPERS  (STREAM_B >= STREAM_q5_K)

/* Of a row of a, which has floats of any type. */
FUNC float4 get_four(GLOBAL const u8 *row, int type, i64 i)
{
    return type == STORAGE_F32   ? four_f32(row, i)
           : type == STORAGE_F16 ? four_f16(row, i)
                                 : four_bf16(row, i);
}

/* ---- the end ---- */

/* Adds up what the team has, and stores it. */
#define FINISH(sum, scratch)                                                               \
    for (int r = 0; r < ROWS; r++)                                                         \
        scratch[r * GROUP + lid] = sum[r].x + sum[r].y + (sum[r].z + sum[r].w);            \
    BARRIER();                                                                             \
    for (int span = LANES / 2; span > 0; span /= 2) {                                      \
        for (int r = 0; r < ROWS && lane < span; r++)                                      \
            scratch[r * GROUP + lid] += scratch[r * GROUP + lid + span];                   \
        BARRIER();                                                                         \
    }                                                                                      \
    if (lane < ROWS && col + lane < s.n) {                                                 \
        float v = scratch[lane * GROUP + lid - lane];                                      \
        if (s.bias_type)                                                                   \
            v += load_any(bias + s.bias_offset, s.bias_type, col + lane);                  \
        store_any(c, s.c_type, col + lane, v);                                             \
    }

/* ---- units: 32 numbers of b, in two halves of 16 ---- */

/* Bytes of STEP numbers, pieces that hold them wherever they begin, and what more is read as whole
 * words. */
#define STEP       (LANES * BLOCK)
#define TYPE_BYTES JOIN(BYTES_, B_TYPE)
#define BYTES_q8_0 Q8_0_BYTES
#define BYTES_q4_0 Q4_0_BYTES
#define BYTES_q4_1 Q4_1_BYTES
#define BYTES_q5_0 Q5_0_BYTES
#define BYTES_q5_1 Q5_1_BYTES
#define BYTES_q5_K Q5_K_BYTES
#define BYTES_q6_K Q6_K_BYTES
#define STEP_BYTES (STEP / (HAS_SUPERS ? SUPER : BLOCK) * TYPE_BYTES)
#define SLOT       ((STEP_BYTES + 15) / 16 + 2)
#define FETCHES    ((ROWS * SLOT + LANES - 1) / LANES)
#define A_FETCHES  (STEP / 4 / GROUP)
#define A_PITCH    (BLOCK / 4 + 1)

struct unit {
    uint code[8]; /* 4 in each */
    float scale[2], offset[2];
};

FUNC u8 byte_at(LOCAL const uint *slot, int at)
{
    return ((LOCAL const u8 *)slot)[at];
}

FUNC float scale_at(LOCAL const uint *slot, int at)
{
    return f32_of_f16(((LOCAL const u16 *)slot)[at / 2]);
}

/* `count` words from byte `at`, which is even. */
FUNC void get_words(PRIVATE uint *to, LOCAL const uint *slot, int at, int count)
{
    const int shift = at % 4 * 8;
    uint low = slot[at / 4];
    for (int i = 0; i < count; i++) {
        const uint high = slot[at / 4 + 1 + i];
        to[i] = (uint)(((ulong)high << 32 | low) >> shift);
        low = high;
    }
}

/* Codes of 4 bits, those of a byte in both halves. */
FUNC void get_fours(PRIVATE uint *code, LOCAL const uint *slot, int at)
{
    uint words[4];
    get_words(words, slot, at, 4);
    for (int i = 0; i < 4; i++) {
        code[i] = words[i] & 0x0f0f0f0fu;
        code[i + 4] = words[i] >> 4 & 0x0f0f0f0fu;
    }
}

/* Bit i of 4, as bit 4 of byte i. */
FUNC uint fifths_of(uint bits)
{
    return ((bits & 15) * 0x00204081u & 0x01010101u) << 4;
}

#if STREAM_B == STREAM_q8_0

#define CODES(word) convert_float4(as_char4(word))
FUNC void get_unit(PRIVATE struct unit *u, LOCAL const uint *slot, int at, int number)
{
    at += number * TYPE_BYTES;
    get_words(u->code, slot, at + 2, 8);
    u->scale[0] = u->scale[1] = scale_at(slot, at);
    u->offset[0] = u->offset[1] = -0.0f;
}

#elif !HAS_SUPERS

#define CODES(word) convert_float4(as_uchar4(word))
#define HAS_MINIMUM (STREAM_B == STREAM_q4_1 || STREAM_B == STREAM_q5_1)
#define HAS_FIFTHS  (STREAM_B == STREAM_q5_0 || STREAM_B == STREAM_q5_1)
FUNC void get_unit(PRIVATE struct unit *u, LOCAL const uint *slot, int at, int number)
{
    at += number * TYPE_BYTES;
    const float d = scale_at(slot, at);
    get_fours(u->code, slot, at + 2 + 2 * HAS_MINIMUM + 4 * HAS_FIFTHS);
#if HAS_FIFTHS
    uint fifths;
    get_words(&fifths, slot, at + 2 + 2 * HAS_MINIMUM, 1);
    for (int i = 0; i < 8; i++)
        u->code[i] |= fifths_of(fifths >> 4 * i);
#endif
    u->scale[0] = u->scale[1] = d;
    u->offset[0] = u->offset[1] = HAS_MINIMUM ? scale_at(slot, at + 2)
                                              : d * (HAS_FIFTHS ? -16.0f : -8.0f);
}

#elif STREAM_B == STREAM_q6_K

#define CODES(word) convert_float4(as_uchar4(word))
/* Runs r and r + 2 share bytes. */
FUNC void get_unit(PRIVATE struct unit *u, LOCAL const uint *slot, int at, int number)
{
    const int part = number % 8, upper = part / 4, odd = part / 2 % 2, last = part % 2;
    uint high[4];
    at += number / 8 * TYPE_BYTES;
    get_fours(u->code, slot, at + upper * 64 + odd * 32 + last * 16);
    get_words(high, slot, at + 128 + upper * 32 + last * 16, 4);
    for (int i = 0; i < 4; i++) {
        u->code[i] |= (high[i] >> 2 * odd & 0x03030303u) << 4;
        u->code[i + 4] |= (high[i] >> (2 * odd + 4) & 0x03030303u) << 4;
    }
    const float d = scale_at(slot, at + 208);
    for (int i = 0; i < 2; i++) {
        const int run = upper * 4 + odd + 2 * i;
        u->scale[i] = d * (float)(i8)byte_at(slot, at + 192 + run * 2 + last);
        u->offset[i] = -32.0f * u->scale[i];
    }
}

#else /* q5_K */

#define CODES(word) convert_float4(as_uchar4(word))
/* The shares of a run in the scale, and in the minimum if `from` is 4. */
FUNC float share_at(LOCAL const uint *slot, int shares, int run, int from)
{
    const int high = byte_at(slot, shares + run % 4 + 8) >> from & 15;
    const int low = byte_at(slot, shares + run % 4 + from);
    return (float)(run < 4 ? low & 63 : high | low >> 6 << 4);
}

FUNC void get_unit(PRIVATE struct unit *u, LOCAL const uint *slot, int at, int number)
{
    const int part = number % 8, run = part / 2 * 2;
    uint fifths[4];
    at += number / 8 * TYPE_BYTES;
    get_fours(u->code, slot, at + TYPE_BYTES - 128 + part * 16);
    get_words(fifths, slot, at + 16 + part % 2 * 16, 4);
    for (int i = 0; i < 4; i++) {
        u->code[i] |= (fifths[i] >> run & 0x01010101u) << 4;
        u->code[i + 4] |= (fifths[i] >> (run + 1) & 0x01010101u) << 4;
    }
    const float d = scale_at(slot, at), m = scale_at(slot, at + 2);
    for (int i = 0; i < 2; i++) {
        u->scale[i] = d * share_at(slot, at + 4, run + i, 0);
        u->offset[i] = -m * share_at(slot, at + 4, run + i, 4);
    }
}

#endif

/* Where four neighbours of a step's numbers of a lie, so that those of a unit are together. */
FUNC int place_of_fours(int four)
{
    const int run = four / 8 % 8, in_run = four % 8;
    if (!HAS_SUPERS)
        return four / 8 * A_PITCH + in_run;
    const int pair = STREAM_B == STREAM_q6_K ? run / 4 * 2 + run % 2 : run / 2;
    const int second = STREAM_B == STREAM_q6_K ? run % 4 / 2 : run % 2;
    return (four / 64 * 8 + pair * 2 + in_run / 4) * A_PITCH + second * 4 + in_run % 4;
}

/* ---- steps ---- */

/* 16 bytes; those from `end` on are not read. */
FUNC uint4 get_piece(GLOBAL const u8 *from, GLOBAL const u8 *end)
{
    u32 words[4];
    if (from + 16 <= end)
        return *(GLOBAL const uint4 *)from;
    for (int i = 0; i < 4; i++) {
        words[i] = 0;
        for (int h = 0; h < 2; h++)
            if (from + 4 * i + 2 * h < end)
                words[i] |= (u32) * (GLOBAL const u16 *)(from + 4 * i + 2 * h) << 16 * h;
    }
    return vload4(0, words);
}

/* The bytes that `at` is past a multiple of 16. */
FUNC int past_sixteen(GLOBAL const u8 *at)
{
    return (int)((size_t)at & 15);
}

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
KERNEL(matmul_stream)
(GLOBAL u8 *c, GLOBAL const u8 *a, GLOBAL const u8 *b, GLOBAL const u8 *bias,
 ARGS(struct matmul_args) s GRID)
{
    SHARED uint4 slots[TEAMS * ROWS * SLOT];
    SHARED float4 of_a[LANES * A_PITCH];
    SHARED float scratch[ROWS * GROUP];
    uint4 next[FETCHES];
    float4 sum[ROWS], next_a[A_FETCHES];
    const int lid = local_id(), lane = lid % LANES, team = lid / LANES;
    const i64 across = (s.n + TEAMS * ROWS - 1) / (TEAMS * ROWS);
    struct index at = index_of(group_id(), s.batch1, across);
    const i64 col = (at.i2 * TEAMS + team) * ROWS;
    at.i2 = 0;

    a += matmul_at(s.a, at, s.a_repeat0, s.a_repeat1);
    b += matmul_at(s.b, at, s.b_repeat0, s.b_repeat1);
    c += row_at(s.c, at);

    const i64 bytes = s.k / (HAS_SUPERS ? SUPER : BLOCK) * TYPE_BYTES;
    GLOBAL const u8 *end = b + (s.n - 1) * s.b.stride[2] + bytes;

    for (int r = 0; r < ROWS; r++)
        sum[r] = (float4)(0.0f);
    for (i64 k0 = -STEP; k0 < s.k; k0 += STEP) {
        const i64 k1 = k0 + STEP, first = k1 / STEP * STEP_BYTES;
        if (k1 < s.k) {
            for (int i = 0; i < FETCHES; i++) {
                const int piece = i * LANES + lane, r = piece / SLOT;
                const i64 line = col + r < s.n ? col + r : s.n - 1;
                GLOBAL const u8 *row = b + line * s.b.stride[2] + first;
                GLOBAL const u8 *from = row - past_sixteen(row) + piece % SLOT * 16;
                next[i] = r < ROWS && from < end ? get_piece(from, end) : (uint4)(0);
            }
            for (int i = 0; i < A_FETCHES; i++) {
                const i64 k = k1 + (i * GROUP + lid) * 4;
                next_a[i] = k < s.k ? get_four(a, s.a_type, k) : (float4)(0.0f);
            }
        }
        if (k0 >= 0 && lane < (s.k - k0) / BLOCK) {
            for (int r = 0; r < ROWS; r++) {
                const i64 line = col + r < s.n ? col + r : s.n - 1;
                GLOBAL const u8 *row = b + line * s.b.stride[2] + first - STEP_BYTES;
                struct unit u;
                get_unit(&u, (LOCAL const uint *)(slots + (team * ROWS + r) * SLOT),
                         past_sixteen(row), lane);
                for (int i = 0; i < 8; i++)
                    sum[r] += of_a[lane * A_PITCH + i] *
                              (u.scale[i / 4] * CODES(u.code[i]) + u.offset[i / 4]);
            }
        }
        BARRIER();
        if (k1 < s.k) {
            for (int i = 0; i < FETCHES; i++)
                if (i * LANES + lane < ROWS * SLOT)
                    slots[team * ROWS * SLOT + i * LANES + lane] = next[i];
            for (int i = 0; i < A_FETCHES; i++)
                of_a[place_of_fours(i * GROUP + lid)] = next_a[i];
        }
        BARRIER();
    }
    FINISH(sum, scratch)
}
