/* SPDX-License-Identifier: MIT */
/* test_oracle.c - the oracle itself: number formats against their definitions, over all codes, and
 * ops small enough to compute by hand. */
#include "golden.h"
#include "oracle.h"
#include "storage.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static double decoded(int32_t dtype, uint32_t code)
{
    return storage_read(
        dtype, (unsigned char[]){ (unsigned char)code, (unsigned char)(code >> 8) }, 0);
}

static uint32_t encoded(int32_t dtype, double value)
{
    unsigned char bytes[2];
    storage_write(dtype, bytes, &value, 1);
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8;
}

/* Neighbouring codes are neighbouring values, and each code survives a round trip. Values between
 * two codes go to the nearer one, midpoints to the even one. */
static void check_codes(int32_t dtype, uint32_t infinity)
{
    for (uint32_t code = 0; code < infinity; code++) {
        const double value = decoded(dtype, code);
        assert_int_equal(encoded(dtype, value), code);
        assert_int_equal(encoded(dtype, -value), code | 0x8000);
        if (code + 1 == infinity)
            break;
        const double next = decoded(dtype, code + 1), middle = (value + next) / 2;
        assert_true(value < next);
        assert_int_equal(encoded(dtype, middle), code + (code & 1));
        assert_int_equal(encoded(dtype, nextafter(middle, 0)), code);
        assert_int_equal(encoded(dtype, nextafter(middle, next)), code + 1);
    }
    assert_true(isinf(decoded(dtype, infinity)));
    assert_int_equal(encoded(dtype, (double)INFINITY), infinity);
    for (uint32_t code = infinity + 1; code < 0x8000; code++)
        assert_true(isnan(decoded(dtype, code)));
    assert_true(isnan(decoded(dtype, encoded(dtype, (double)NAN))));
}

static void test_f16(void **state)
{
    (void)state;
    check_codes(HW_F16, 0x7c00);
    assert_true(decoded(HW_F16, 0x3c00) == 1 && decoded(HW_F16, 0xc000) == -2);
    assert_true(decoded(HW_F16, 0x7bff) == 65504 && decoded(HW_F16, 0x0001) == 0x1p-24);
    assert_int_equal(encoded(HW_F16, 65519.99), 0x7bff);
    assert_int_equal(encoded(HW_F16, 65520), 0x7c00);
    assert_int_equal(encoded(HW_F16, 1e300), 0x7c00);
    assert_int_equal(encoded(HW_F16, 1e-300), 0);
}

static void test_bf16(void **state)
{
    (void)state;
    check_codes(HW_BF16, 0x7f80);
    for (uint32_t code = 0; code < 0x7f80; code++) { /* the upper half of an f32 */
        float f;
        memcpy(&f, &(uint32_t){ code << 16 }, sizeof f);
        assert_true(decoded(HW_BF16, code) == (double)f);
    }
}

static void test_blocks(void **state)
{
    double ramp[32];
    unsigned char q8[34], q4[18];

    (void)state;
    for (int i = 0; i < 32; i++)
        ramp[i] = i - 8;
    /* The largest magnitude, 23, becomes 127; the scale is stored as f16. */
    storage_write(HW_Q8_0, q8, ramp, 32);
    assert_int_equal((signed char)q8[2], -44); /* -8 * 127 / 23 = -44.2 */
    assert_int_equal((signed char)q8[33], 127);
    assert_true(storage_read(HW_Q8_0, q8, 31) == 127 * storage_round(HW_F16, 23.0 / 127));
    /* 23 becomes -8 with the scale 23 / -8: element 31 is the high nibble of the last byte,
     * 0. */
    storage_write(HW_Q4_0, q4, ramp, 32);
    assert_int_equal(q4[17] >> 4, 0);
    assert_int_equal(q4[17] & 15, 6); /* 7 / (23 / -8) = -2.43; + 8.5 = 6.07 */
    assert_true(storage_read(HW_Q4_0, q4, 31) == -8 * storage_round(HW_F16, -23.0 / 8));
    assert_true(storage_read(HW_Q4_0, q4, 15) == -2 * storage_round(HW_F16, -23.0 / 8));
}

static void encoded_as_ggml(void *user, int32_t dtype, const float *x,
                            const unsigned char *blocks, size_t bytes)
{
    double values[GOLDEN_ELEMENTS];
    unsigned char got[4 * GOLDEN_ELEMENTS];
    (void)user;
    for (int i = 0; i < GOLDEN_ELEMENTS; i++)
        values[i] = (double)x[i];
    storage_write(dtype, got, values, GOLDEN_ELEMENTS);
    golden_same_blocks(dtype, got, blocks, bytes);
}

static void decoded_as_ggml(void *user, int32_t dtype, const float *x,
                            const unsigned char *blocks, size_t bytes)
{
    double values[GOLDEN_ELEMENTS];
    float got[GOLDEN_ELEMENTS];
    (void)user;
    (void)bytes;
    for (int i = 0; i < GOLDEN_ELEMENTS; i++)
        got[i] = (float)storage_read(dtype, blocks, i);
    golden_same_floats(dtype, got, x);
    storage_read_all(dtype, blocks, values, GOLDEN_ELEMENTS);
    for (int i = 0; i < GOLDEN_ELEMENTS; i++)
        got[i] = (float)values[i];
    golden_same_floats(dtype, got, x);
}

static void test_golden_blocks(void **state)
{
    (void)state;
    golden_walk(encoded_as_ggml, decoded_as_ggml, NULL);
}

/* ---- the ops ------------------------------------------------------------------------------- */

static void give(struct operand *o, int32_t rank, const int64_t *extents,
                 const double *values)
{
    const int32_t dtype = o->dtype ? o->dtype : HW_F32;
    assert_true(operand_make(o, dtype, rank, extents, true));
    for (int64_t i = 0; values && i < o->count; i++)
        o->value[i] = values[i];
    if (values)
        storage_write(o->dtype, o->bytes, values, o->count);
}

static void expect(const struct operand *o, const double *values)
{
    for (int64_t i = 0; i < o->count; i++)
        if (fabs(o->want[i] - values[i]) > 1e-12)
            fail_msg("%s[%d] is %.15g, should be %.15g", o->name, (int)i, o->want[i],
                     values[i]);
}

struct small {
    struct operand o[MAX_OPERANDS];
    union op_args args;
    uint32_t op;
};

static void begin(struct small *s, uint32_t op)
{
    size_t field[MAX_OPERANDS];
    memset(s, 0, sizeof *s);
    s->op = op;
    operands_of(op, s->o, field);
}

static void end(struct small *s, int output, const double *values)
{
    assert_true(oracle_compute(s->op, &s->args, s->o));
    expect(&s->o[output], values);
    for (int i = 0; i < MAX_OPERANDS; i++)
        operand_clear(&s->o[i]);
}

static void test_matmul(void **state)
{
    struct small s;
    (void)state;
    for (uint32_t flags = 0; flags < 4; flags++) {
        begin(&s, HW_OP_MATMUL);
        s.args.matmul.transpose_a = flags & 1;
        s.args.matmul.transpose_b = flags >> 1;
        give(&s.o[operand_matmul_a], 2,
             flags & 1 ? (int64_t[]){ 3, 2 } : (int64_t[]){ 2, 3 },
             flags & 1 ? (double[]){ 1, 4, 2, 5, 3, 6 } : (double[]){ 1, 2, 3, 4, 5, 6 });
        give(&s.o[operand_matmul_b], 2,
             flags & 2 ? (int64_t[]){ 1, 3 } : (int64_t[]){ 3, 1 },
             (double[]){ 1, 10, 100 });
        give(&s.o[operand_matmul_bias], 1, (int64_t[]){ 1 }, (double[]){ 0.5 });
        give(&s.o[operand_matmul_c], 2, (int64_t[]){ 2, 1 }, NULL);
        end(&s, operand_matmul_c, (double[]){ 321.5, 654.5 });
    }
}

/* c has four batches: two neighbours share one batch of b. */
static void test_matmul_batches(void **state)
{
    struct small s;
    (void)state;
    begin(&s, HW_OP_MATMUL);
    give(&s.o[operand_matmul_a], 3, (int64_t[]){ 4, 1, 1 }, (double[]){ 1, 2, 3, 4 });
    give(&s.o[operand_matmul_b], 3, (int64_t[]){ 2, 1, 1 }, (double[]){ 10, 100 });
    give(&s.o[operand_matmul_c], 3, (int64_t[]){ 4, 1, 1 }, NULL);
    end(&s, operand_matmul_c, (double[]){ 10, 20, 300, 400 });
}

/* Row 0 chooses experts 1 and none, row 1 experts 0 and 1. */
static void test_matmul_id(void **state)
{
    struct small s;
    (void)state;
    begin(&s, HW_OP_MATMUL_ID);
    s.o[operand_matmul_id_ids].dtype = HW_I32;
    give(&s.o[operand_matmul_id_a], 3, (int64_t[]){ 2, 1, 2 }, (double[]){ 1, 2, 3, 4 });
    give(&s.o[operand_matmul_id_b], 3, (int64_t[]){ 2, 1, 2 }, (double[]){ 1, 10, 2, 20 });
    give(&s.o[operand_matmul_id_ids], 2, (int64_t[]){ 2, 2 }, (double[]){ 1, 2, 0, 1 });
    give(&s.o[operand_matmul_id_bias], 2, (int64_t[]){ 2, 1 }, (double[]){ 0.5, 0.25 });
    give(&s.o[operand_matmul_id_c], 3, (int64_t[]){ 2, 2, 1 }, NULL);
    end(&s, operand_matmul_id_c, (double[]){ 42.25, 0, 43.5, 86.25 });
}

static void test_rows(void **state)
{
    struct small s;
    (void)state;
    begin(&s, HW_OP_RMSNORM);
    s.args.rmsnorm.eps = 0.5f; /* mean of squares 12.5 */
    give(&s.o[operand_rmsnorm_x], 2, (int64_t[]){ 1, 2 }, (double[]){ 3, 4 });
    give(&s.o[operand_rmsnorm_weight], 1, (int64_t[]){ 2 }, (double[]){ 1, 2 });
    give(&s.o[operand_rmsnorm_y], 2, (int64_t[]){ 1, 2 }, NULL);
    end(&s, operand_rmsnorm_y, (double[]){ 3 / sqrt(13), 8 / sqrt(13) });

    begin(&s, HW_OP_LAYERNORM);
    s.args.layernorm.eps = 3; /* mean 5, variance 1 */
    give(&s.o[operand_layernorm_x], 2, (int64_t[]){ 1, 2 }, (double[]){ 4, 6 });
    give(&s.o[operand_layernorm_weight], 1, (int64_t[]){ 2 }, (double[]){ 1, 10 });
    give(&s.o[operand_layernorm_bias], 1, (int64_t[]){ 2 }, (double[]){ 0, 7 });
    give(&s.o[operand_layernorm_y], 2, (int64_t[]){ 1, 2 }, NULL);
    end(&s, operand_layernorm_y, (double[]){ -0.5, 12 });

    begin(&s, HW_OP_SOFTMAX);
    s.args.softmax.scale = 2;
    give(&s.o[operand_softmax_x], 2, (int64_t[]){ 2, 2 },
         (double[]){ 0, log(3) / 2, 5, 5 });
    give(&s.o[operand_softmax_y], 2, (int64_t[]){ 2, 2 }, NULL);
    end(&s, operand_softmax_y, (double[]){ 0.25, 0.75, 0.5, 0.5 });

    begin(&s, HW_OP_ARGMAX);
    s.o[operand_argmax_y].dtype = HW_I32;
    give(&s.o[operand_argmax_x], 2, (int64_t[]){ 3, 3 },
         (double[]){ 1, 2, 2, -1, (double)NAN, (double)NAN, 0, -0.0, -1 });
    give(&s.o[operand_argmax_y], 1, (int64_t[]){ 3 }, NULL);
    end(&s, operand_argmax_y, (double[]){ 1, 1, 0 });
}

static void test_top_k_and_dot(void **state)
{
    struct small s;
    (void)state;
    begin(&s, HW_OP_TOP_K);
    s.o[operand_top_k_indices].dtype = HW_I32;
    give(&s.o[operand_top_k_x], 2, (int64_t[]){ 2, 4 },
         (double[]){ 1, 3, (double)NAN, 3, 0, -2, -0.0, -1 });
    give(&s.o[operand_top_k_indices], 2, (int64_t[]){ 2, 3 }, NULL);
    end(&s, operand_top_k_indices, (double[]){ 2, 1, 3, 0, 2, 3 });

    begin(&s, HW_OP_DOT);
    give(&s.o[operand_dot_a], 3, (int64_t[]){ 2, 1, 2 }, (double[]){ 1, 2, 3, 4 });
    give(&s.o[operand_dot_b], 2, (int64_t[]){ 2, 2 }, (double[]){ 1, 10, 100, 1000 });
    give(&s.o[operand_dot_y], 2, (int64_t[]){ 2, 2 }, NULL);
    end(&s, operand_dot_y, (double[]){ 21, 2100, 43, 4300 });
}

/* A kernel of 1x2 over a row of 3 with a zero on either side, in two groups. */
static void test_conv2d(void **state)
{
    struct small s;
    (void)state;
    begin(&s, HW_OP_CONV2D);
    s.args.conv2d.pad_w = 1;
    s.args.conv2d.stride_w = 2;
    s.args.conv2d.groups = 2;
    give(&s.o[operand_conv2d_x], 4, (int64_t[]){ 1, 2, 1, 3 },
         (double[]){ 1, 2, 3, 4, 5, 6 });
    give(&s.o[operand_conv2d_weight], 4, (int64_t[]){ 2, 1, 1, 2 },
         (double[]){ 10, 1, 100, 1 });
    give(&s.o[operand_conv2d_bias], 1, (int64_t[]){ 2 }, (double[]){ 0.5, 0 });
    give(&s.o[operand_conv2d_y], 4, (int64_t[]){ 1, 2, 1, 2 }, NULL);
    end(&s, operand_conv2d_y, (double[]){ 1.5, 23.5, 4, 506 });
}

static void test_rope(void **state)
{
    struct small s;
    (void)state;
    for (uint32_t interleaved = 0; interleaved < 2; interleaved++) {
        begin(&s, HW_OP_ROPE); /* D = 4: angles 3 and 3 / 100 at position 3 */
        s.args.rope.start = 3;
        s.args.rope.interleaved = interleaved;
        give(&s.o[operand_rope_x], 3, (int64_t[]){ 1, 1, 4 }, (double[]){ 1, 0, 0, 2 });
        give(&s.o[operand_rope_y], 3, (int64_t[]){ 1, 1, 4 }, NULL);
        end(&s, operand_rope_y,
            interleaved ? (double[]){ cos(3), sin(3), -2 * sin(0.03), 2 * cos(0.03) }
                        : (double[]){ cos(3), -2 * sin(0.03), sin(3), 2 * cos(0.03) });
    }
}

/* Two queries of one head, three keys: the scores of query (1) are 0, ln 2, ln 4. */
static void test_attention(void **state)
{
    static const struct {
        uint32_t causal;
        int64_t length, window;
        double y[2];
    } rows[] = {
        { 0, 0, 0, { (1.0 + 2 * 10 + 4 * 100) / 7, (1.0 + 2 * 10 + 4 * 100) / 7 } },
        { 1, 0, 0, { (1.0 + 2 * 10) / 3, (1.0 + 2 * 10 + 4 * 100) / 7 } },
        { 1, 2, 0, { 1, (1.0 + 2 * 10) / 3 } },
        { 1, 1, 0, { 0, 1 } }, /* the first query sees nothing */
        { 1, 0, 2, { (1.0 + 2 * 10) / 3, (2.0 * 10 + 4 * 100) / 6 } },
        { 0, 0, 1, { 100, 100 } },
    };
    struct small s;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(&s, HW_OP_ATTENTION);
        s.args.attention.causal = rows[i].causal;
        s.args.attention.length = rows[i].length;
        s.args.attention.window = rows[i].window;
        give(&s.o[operand_attention_q], 3, (int64_t[]){ 2, 1, 1 }, (double[]){ 1, 1 });
        give(&s.o[operand_attention_k], 3, (int64_t[]){ 3, 1, 1 },
             (double[]){ 0, log(2), log(4) });
        give(&s.o[operand_attention_v], 3, (int64_t[]){ 3, 1, 1 },
             (double[]){ 1, 10, 100 });
        give(&s.o[operand_attention_y], 3, (int64_t[]){ 2, 1, 1 }, NULL);
        end(&s, operand_attention_y, rows[i].y);
    }
}

/* Values that are known without a computer: at -2, 0 and 2, or from tables. */
static void test_activations(void **state)
{
    static const struct {
        int32_t kind;
        float alpha, lo, hi;
        double y[3];
    } rows[] = {
        { HW_ACT_RELU, 0, 0, 0, { 0, 0, 2 } },
        { HW_ACT_LEAKY_RELU, 0.25f, 0, 0, { -0.5, 0, 2 } },
        { HW_ACT_ELU, 0, 0, 0, { 0.1353352832366127 - 1, 0, 2 } },
        { HW_ACT_ELU, 2, 0, 0, { 2 * (0.1353352832366127 - 1), 0, 2 } },
        { HW_ACT_SIGMOID, 0, 0, 0, { 0.1192029220221176, 0.5, 0.8807970779778824 } },
        { HW_ACT_TANH, 0, 0, 0, { -0.9640275800758169, 0, 0.9640275800758169 } },
        { HW_ACT_GELU, 0, 0, 0, { -2 * 0.0227501319481792, 0, 2 * 0.9772498680518208 } },
        { HW_ACT_GELU_TANH, 0, 0, 0, { -0.045402305912225, 0, 1.954597694087775 } },
        { HW_ACT_SILU, 0, 0, 0, { -0.2384058440442351, 0, 1.7615941559557649 } },
        { HW_ACT_CLIP, 0, -1, 0.5f, { -1, 0, 0.5 } },
    };
    struct small s;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(&s, HW_OP_ACTIVATION);
        s.args.activation.kind = rows[i].kind;
        s.args.activation.alpha = rows[i].alpha;
        s.args.activation.lo = rows[i].lo;
        s.args.activation.hi = rows[i].hi;
        give(&s.o[operand_activation_x], 1, (int64_t[]){ 3 }, (double[]){ -2, 0, 2 });
        give(&s.o[operand_activation_y], 1, (int64_t[]){ 3 }, NULL);
        end(&s, operand_activation_y, rows[i].y);
    }
}

static void test_the_rest(void **state)
{
    struct small s;
    (void)state;
    begin(&s, HW_OP_SWIGLU); /* packed: gate 0 and 1, up 5 and 3 */
    give(&s.o[operand_swiglu_gate], 1, (int64_t[]){ 4 }, (double[]){ 0, 1, 5, 3 });
    give(&s.o[operand_swiglu_y], 1, (int64_t[]){ 2 }, NULL);
    end(&s, operand_swiglu_y, (double[]){ 0, 3 / (1 + exp(-1)) });

    begin(&s, HW_OP_ADD);
    give(&s.o[operand_add_a], 2, (int64_t[]){ 2, 1 }, (double[]){ 1, 2 });
    give(&s.o[operand_add_b], 1, (int64_t[]){ 2 }, (double[]){ 10, 20 });
    give(&s.o[operand_add_y], 2, (int64_t[]){ 2, 2 }, NULL);
    end(&s, operand_add_y, (double[]){ 11, 21, 12, 22 });

    begin(&s, HW_OP_GLU); /* sigmoid(ln 3) = 3 / 4 */
    s.args.glu.kind = HW_ACT_SIGMOID;
    give(&s.o[operand_glu_gate], 1, (int64_t[]){ 2 }, (double[]){ log(3), -log(3) });
    give(&s.o[operand_glu_up], 1, (int64_t[]){ 2 }, (double[]){ 8, 12 });
    give(&s.o[operand_glu_y], 1, (int64_t[]){ 2 }, NULL);
    end(&s, operand_glu_y, (double[]){ 6, 3 });

    begin(&s, HW_OP_SUB); /* a repeats along both axes, b along rows */
    give(&s.o[operand_sub_a], 2, (int64_t[]){ 1, 2 }, (double[]){ 1, 2 });
    give(&s.o[operand_sub_b], 2, (int64_t[]){ 2, 1 }, (double[]){ 10, 20 });
    give(&s.o[operand_sub_y], 2, (int64_t[]){ 2, 4 }, NULL);
    end(&s, operand_sub_y, (double[]){ -9, -8, -9, -8, -19, -18, -19, -18 });

    begin(&s, HW_OP_DIV);
    give(&s.o[operand_div_a], 1, (int64_t[]){ 1 }, (double[]){ 6 });
    give(&s.o[operand_div_b], 1, (int64_t[]){ 2 }, (double[]){ 4, -3 });
    give(&s.o[operand_div_y], 1, (int64_t[]){ 2 }, NULL);
    end(&s, operand_div_y, (double[]){ 1.5, -2 });

    begin(&s, HW_OP_SCALE);
    s.args.scale.scale = -2;
    s.args.scale.bias = 0.5f;
    give(&s.o[operand_scale_x], 1, (int64_t[]){ 2 }, (double[]){ 3, 0 });
    give(&s.o[operand_scale_y], 1, (int64_t[]){ 2 }, NULL);
    end(&s, operand_scale_y, (double[]){ -5.5, 0.5 });

    begin(&s, HW_OP_ADD_RMSNORM); /* 2048 + 1 rounds to 2048 in f16 */
    for (int i = 0; i < operand_add_rmsnorm_count; i++)
        s.o[i].dtype = i == operand_add_rmsnorm_weight ? HW_NONE : HW_F16;
    give(&s.o[operand_add_rmsnorm_residual], 1, (int64_t[]){ 2 }, (double[]){ 2048, 0 });
    give(&s.o[operand_add_rmsnorm_x], 1, (int64_t[]){ 2 }, (double[]){ 1, 2048 });
    give(&s.o[operand_add_rmsnorm_y], 1, (int64_t[]){ 2 }, NULL);
    end(&s, operand_add_rmsnorm_y, (double[]){ 1, 1 });

    begin(&s, HW_OP_GET_ROWS);
    s.o[operand_get_rows_rows].dtype = HW_I32;
    give(&s.o[operand_get_rows_table], 2, (int64_t[]){ 2, 1 }, (double[]){ 7, 8 });
    give(&s.o[operand_get_rows_rows], 1, (int64_t[]){ 4 }, (double[]){ 1, -1, 2, 0 });
    give(&s.o[operand_get_rows_y], 2, (int64_t[]){ 4, 1 }, NULL);
    end(&s, operand_get_rows_y, (double[]){ 8, 0, 0, 7 });

    begin(&s, HW_OP_SET_ROWS);
    s.o[operand_set_rows_rows].dtype = HW_I32;
    give(&s.o[operand_set_rows_x], 2, (int64_t[]){ 2, 1 }, (double[]){ 5, 6 });
    give(&s.o[operand_set_rows_rows], 1, (int64_t[]){ 2 }, (double[]){ 2, 0 });
    give(&s.o[operand_set_rows_table], 2, (int64_t[]){ 2, 1 }, (double[]){ 7, 8 });
    end(&s, operand_set_rows_table, (double[]){ 6, 8 });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_golden_blocks),
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_rope),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_the_rest),
        cmocka_unit_test(test_matmul_id),
        cmocka_unit_test(test_matmul_batches),
        cmocka_unit_test(test_top_k_and_dot),
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_conv2d),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
