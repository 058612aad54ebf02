/* SPDX-License-Identifier: MIT */
/* c = a . b^T + bias for one row of a, b stored [n,k]: LANES work-items per ROWS columns of c.
 *
 * A work-item takes a piece of PIECE_NUMBERS numbers of b at a time, in loads of up to 16 bytes, and
 * the LANES together read neighbouring pieces. The numbers of a that belong to a piece are two
 * spans; they are read once for ROWS columns, from the cache. Nothing passes through group memory
 * but the sums at the end. matmul_stream.cl is for other blocks.
 *
 * The plan defines A_TYPE, a float, and B_TYPE; it takes care that pieces are aligned. */
#define ROWS 2
#define SPAN (PIECE_NUMBERS / 2)
#define SPAN_FOURS ((SPAN + 3) / 4)

#define GEMV_f32  1
#define GEMV_f16  2
#define GEMV_bf16 3
#define GEMV_q4_K 4
#define GEMV_B    JOIN(GEMV_, B_TYPE)

/* The numbers of a piece of b, as float: first those of the first span. A factor that all share is
 * left to the sum. */
#if GEMV_B == GEMV_f32 || GEMV_B == GEMV_f16 || GEMV_B == GEMV_bf16

#define PIECE_NUMBERS 8
FUNC void get_piece(PRIVATE float4 *v, GLOBAL const u8 *row, i64 piece)
{
    v[0] = FOUR(B_TYPE)(row, piece * 8);
    v[1] = FOUR(B_TYPE)(row, piece * 8 + 4);
}

#else /* q4_K */

#define PIECE_NUMBERS 32
FUNC void get_piece(PRIVATE float4 *v, GLOBAL const u8 *row, i64 piece)
{
    GLOBAL const u8 *block = row + piece / 8 * Q4_K_BYTES;
    const int run = (int)(piece % 8) / 2 * 2;
    const uint4 bits = ((GLOBAL const uint4 *)block)[1 + piece % 8];
    const uint codes[4] = { bits.x, bits.y, bits.z, bits.w };
    const float d = load_scale(block), m = load_scale(block + 2);
    const float d0 = d * share_of_scale(block + 4, run);
    const float d1 = d * share_of_scale(block + 4, run + 1);
    const float m0 = m * share_of_minimum(block + 4, run);
    const float m1 = m * share_of_minimum(block + 4, run + 1);
    for (int i = 0; i < 4; i++) {
        const uchar4 two = as_uchar4(codes[i]);
        v[i] = d0 * convert_float4(two & (uchar4)15) - m0;
        v[i + 4] = d1 * convert_float4(two >> (uchar4)4) - m1;
    }
}

#endif

/* Where the spans of a piece begin in a row of a; without blocks, one after the other. */
FUNC i64 first_span(i64 piece)
{
    if (GEMV_B == GEMV_q4_K)
        return piece / 2 * 2 * BLOCK + piece % 2 * SPAN;
    return piece * PIECE_NUMBERS;
}

FUNC i64 second_span(i64 piece)
{
    if (GEMV_B == GEMV_q4_K)
        return first_span(piece) + BLOCK;
    return first_span(piece) + SPAN;
}

KERNEL(matmul_gemv)
(GLOBAL u8 *c, GLOBAL const u8 *a, GLOBAL const u8 *b, GLOBAL const u8 *bias,
 ARGS(struct matmul_args) s GRID)
{
    SHARED float scratch[GROUP];
    float4 sum[ROWS], va[2 * SPAN_FOURS], vb[2 * SPAN_FOURS];
    const int lid = local_id(), lane = lid % LANES;
    const i64 across = (s.n + GROUP / LANES * ROWS - 1) / (GROUP / LANES * ROWS);
    const i64 pieces = s.k / PIECE_NUMBERS;
    struct index at = index_of(group_id(), s.batch1, across);
    const i64 col = (at.i2 * (GROUP / LANES) + lid / LANES) * ROWS;
    at.i2 = 0;

    a += matmul_at(s.a, at, s.a_repeat0, s.a_repeat1);
    b += matmul_at(s.b, at, s.b_repeat0, s.b_repeat1);
    c += row_at(s.c, at);

    for (int r = 0; r < ROWS; r++)
        sum[r] = (float4)(0.0f);
    for (i64 piece = lane; piece < pieces; piece += LANES) {
        for (int i = 0; i < SPAN_FOURS; i++) {
            va[i] = FOUR(A_TYPE)(a, first_span(piece) + i * 4);
            va[SPAN_FOURS + i] = FOUR(A_TYPE)(a, second_span(piece) + i * 4);
        }
        for (int r = 0; r < ROWS; r++) {
            const i64 line = col + r < s.n ? col + r : s.n - 1;
            get_piece(vb, b + line * s.b.stride[2], piece);
            for (int i = 0; i < 2 * SPAN_FOURS; i++)
                sum[r] += va[i] * vb[i];
        }
    }
    for (int r = 0; r < ROWS; r++) {
        float v = run_sum(sum[r].x + sum[r].y + (sum[r].z + sum[r].w), scratch, lid, LANES);
        if (lane == 0 && col + r < s.n) {
            if (s.bias_type)
                v += load_any(bias + s.bias_offset, s.bias_type, col + r);
            store_any(c, s.c_type, col + r, v);
        }
    }
}
