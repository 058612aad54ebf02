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
 * The plan defines B_TYPE (units.h) and ROWS. It takes care that rows of a are whole, aligned vectors
 * of four, and that rows of b are aligned to 2 bytes. */
#define TEAMS (GROUP / LANES)

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

/* ---- steps ---- */

/* Bytes of STEP numbers, pieces that hold them wherever they begin, and what more is read as whole
 * words. */
#define STEP       (LANES * BLOCK)
#define STEP_BYTES (STEP / (HAS_SUPERS ? SUPER : BLOCK) * TYPE_BYTES)
#define SLOT       ((STEP_BYTES + 15) / 16 + 2)
#define FETCHES    ((ROWS * SLOT + LANES - 1) / LANES)
#define A_FETCHES  (STEP / 4 / GROUP)
#define A_PITCH    (BLOCK / 4 + 1)

/* Where four neighbours of a step's numbers of a lie, so that those of a unit are together. */
FUNC int place_of_fours(int four)
{
    const int run = four / 8 % 8, in_run = four % 8;
    if (!HAS_SUPERS)
        return four / 8 * A_PITCH + in_run;
    const int pair = UNIT_B == UNIT_q6_K ? run / 4 * 2 + run % 2 : run / 2;
    const int second = UNIT_B == UNIT_q6_K ? run % 4 / 2 : run % 2;
    return (four / 64 * 8 + pair * 2 + in_run / 4) * A_PITCH + second * 4 + in_run % 4;
}

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
                next_a[i] = k < s.k ? four_of(a, s.a_type, k) : (float4)(0.0f);
            }
        }
        if (k0 >= 0 && lane < (s.k - k0) / BLOCK) {
            for (int r = 0; r < ROWS; r++) {
                const i64 line = col + r < s.n ? col + r : s.n - 1;
                GLOBAL const u8 *row = b + line * s.b.stride[2] + first - STEP_BYTES;
                struct unit u;
                get_unit(&u, (BYTES)(slots + (team * ROWS + r) * SLOT), past_sixteen(row),
                         lane);
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
