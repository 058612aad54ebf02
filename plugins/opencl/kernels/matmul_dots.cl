/* SPDX-License-Identifier: MIT */
/* c = a . b^T + bias for b stored [n,k] in blocks, for HW_PRECISION=int8: dot products of bytes, of the
 * rows of a that matmul_round.cl has rounded. One group per TILE x TILE of c.
 *
 * STEP units of both tiles are in group memory as words of four codes, units outermost, then words,
 * so that a work-item reads the words of its 4 rows and 4 columns as vectors. What the next step
 * needs is read into registers while this one computes. A row of a that bytes cannot stand for is
 * multiplied in floats, at the end.
 *
 * The plan defines TILE, a multiple of 32, B_TYPE (units.h), and HAS_DOTS for OpenCL C 3.0 on a device
 * with dot products of bytes; GROUP is TILE * TILE / 16. It takes care that rows of b are aligned to 2
 * bytes. */
#define STEP   4 /* units along k */
#define HALVES (HAS_SUPERS ? 2 : 1) /* that have a scale of their own */
#define WORDS_OF_HALF (8 / HALVES)
#define ACROSS (TILE / 4) /* work-items */
#define EACH   (TILE * STEP / GROUP) /* units of a tile that a work-item reads */
#define PITCH  (8 * (TILE + 4) + 8) /* words from unit to unit, so that neighbours' banks differ */

#ifdef HAS_DOTS
#define DOT(x, y) dot_4x8packed_ss_int(x, y)
#else
FUNC int DOT(uint x, uint y)
{
    const int4 product = convert_int4(as_char4(x)) * convert_int4(as_char4(y));
    return product.x + product.y + product.z + product.w;
}
#endif

/* Four neighbours of a row of a tile. */
#define FOUR_AT(tile, i)  (*(LOCAL const float4 *)((tile) + (i)))
#define WORDS_AT(tile, i) (*(LOCAL const uint4 *)((tile) + (i)))

/* One element of c, in floats. */
FUNC float dot_in_floats(GLOBAL const u8 *a, int a_type, GLOBAL const u8 *b, int b_type, i64 k)
{
    float sum = 0.0f;
    for (i64 i = 0; i < k; i++)
        sum += load_any(a, a_type, i) * load_any(b, b_type, i);
    return sum;
}

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
KERNEL(matmul_dots)
(GLOBAL u8 *c, GLOBAL const u8 *a, GLOBAL const u8 *b, GLOBAL const u8 *bias,
 ARGS(struct matmul_args) s, GLOBAL const uint4 *rounded)
{
    SHARED uint a_code[STEP * PITCH] __attribute__((aligned(16)));
    SHARED uint b_code[STEP * PITCH] __attribute__((aligned(16)));
    SHARED float a_scale[STEP * TILE] __attribute__((aligned(16)));
    SHARED float a_sum[STEP * HALVES * TILE] __attribute__((aligned(16)));
    SHARED float b_scale[STEP * HALVES * TILE] __attribute__((aligned(16)));
    SHARED float b_offset[STEP * HALVES * TILE] __attribute__((aligned(16)));
    SHARED int wrong[TILE];
    const int lid = local_id(), x4 = lid % ACROSS * 4, y4 = lid / ACROSS * 4;
    const i64 units = s.k / BLOCK, across = (s.n + TILE - 1) / TILE;
    const struct index at = index_of(group_id(), (s.m + TILE - 1) / TILE, across);
    const i64 row0 = at.i1 * TILE, col0 = at.i2 * TILE;
    const struct unit nothing = { { 0 }, { 0 }, { 0 } };
    uint4 next_a[EACH][3];
    struct unit next_b[EACH];
    float4 sum[4];
    const struct index batch = batch_of(at.i0, s.batch1);

    a += matmul_at(s.a, batch, s.a_repeat0, s.a_repeat1);
    b += matmul_at(s.b, batch, s.b_repeat0, s.b_repeat1);
    c += row_at(s.c, batch);
    rounded += at.i0 * s.m * units * 3;

    for (int y = 0; y < 4; y++)
        sum[y] = (float4)(0.0f);
    if (lid < TILE)
        wrong[lid] = 0;
    for (i64 u0 = -STEP; u0 < units; u0 += STEP) {
        /* neighbours read neighbouring units; those beyond the end are zeros */
        for (int i = 0; i < EACH; i++) {
            const int e = lid + i * GROUP, x = e / STEP;
            const i64 unit = u0 + STEP + e % STEP;
            const i64 row = row0 + x < s.m ? row0 + x : s.m - 1;
            const i64 col = col0 + x < s.n ? col0 + x : s.n - 1;
            GLOBAL const uint4 *of_a = rounded + (row * units + unit) * 3;
            GLOBAL const u8 *block = b + col * s.b.stride[2];
            for (int w = 0; w < 3; w++)
                next_a[i][w] = unit < units ? of_a[w] : (uint4)(0);
            next_b[i] = nothing;
            if (unit < units)
                get_unit(&next_b[i], block + unit / 8 * (HAS_SUPERS ? 1 : 8) * TYPE_BYTES, 0,
                         (int)(unit % 8));
        }
        for (int u = 0; u < STEP && u0 >= 0; u++) {
            const float4 sa = FOUR_AT(a_scale, u * TILE + y4);
            const float scales[4] = { sa.x, sa.y, sa.z, sa.w };
            for (int h = 0; h < HALVES; h++) {
                int4 dot[4];
                for (int y = 0; y < 4; y++)
                    dot[y] = (int4)(0);
                for (int w = h * WORDS_OF_HALF; w < (h + 1) * WORDS_OF_HALF; w++) {
                    const uint4 va = WORDS_AT(a_code, u * PITCH + w * (TILE + 4) + y4);
                    const uint4 vb = WORDS_AT(b_code, u * PITCH + w * (TILE + 4) + x4);
                    const uint rows[4] = { va.x, va.y, va.z, va.w };
                    for (int y = 0; y < 4; y++)
                        dot[y] += (int4)(DOT(rows[y], vb.x), DOT(rows[y], vb.y),
                                         DOT(rows[y], vb.z), DOT(rows[y], vb.w));
                }
                const int place = (u * HALVES + h) * TILE;
                const float4 sb = FOUR_AT(b_scale, place + x4);
                for (int y = 0; y < 4; y++)
                    sum[y] += scales[y] * sb * convert_float4(dot[y]);
                if (UNIT_B != UNIT_q8_0) {
                    const float4 ob = FOUR_AT(b_offset, place + x4);
                    for (int y = 0; y < 4; y++)
                        sum[y] += a_sum[place + y4 + y] * ob;
                }
            }
        }
        BARRIER();
        for (int i = 0; i < EACH && u0 + STEP < units; i++) {
            const int e = lid + i * GROUP, x = e / STEP, u = e % STEP;
            const uint4 *of_a = next_a[i];
            const uint codes[8] = { of_a[0].x, of_a[0].y, of_a[0].z, of_a[0].w,
                                    of_a[1].x, of_a[1].y, of_a[1].z, of_a[1].w };
            for (int w = 0; w < 8; w++) {
                a_code[u * PITCH + w * (TILE + 4) + x] = codes[w];
                b_code[u * PITCH + w * (TILE + 4) + x] = next_b[i].code[w];
            }
            a_scale[u * TILE + x] = f32_of_bits(of_a[2].x);
            const float sums[2] = { f32_of_bits(of_a[2].y), f32_of_bits(of_a[2].z) };
            for (int h = 0; h < HALVES; h++) {
                const int place = (u * HALVES + h) * TILE + x;
                a_sum[place] = HALVES == 2 ? sums[h] : sums[0] + sums[1];
                b_scale[place] = next_b[i].scale[h];
                b_offset[place] = next_b[i].offset[h];
            }
            if (of_a[2].w)
                wrong[x] = 1;
        }
        BARRIER();
    }
    for (int y = 0; y < 4; y++) {
        const i64 row = row0 + y4 + y, col = col0 + x4;
        const int left = s.n - col < 4 ? (int)(s.n - col) : 4;
        float out[4];
        vstore4(sum[y], 0, out);
        if (row >= s.m)
            continue;
        for (int i = 0; i < left; i++) {
            if (wrong[y4 + y])
                out[i] = dot_in_floats(a + row * s.a.stride[2], s.a_type,
                                       b + (col + i) * s.b.stride[2], s.b_type, s.k);
            if (s.bias_type)
                out[i] += load_any(bias + s.bias_offset, s.bias_type, col + i);
        }
        if (left > 0)
            store_piece(c + row * s.c.stride[2], s.c_type, col, out, left);
    }
}
