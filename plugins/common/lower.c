/* SPDX-License-Identifier: MIT */
/* Ops become launches: shapes broadcast, dimensions merge, defaults are filled in. The
 * struct of each kernel, and what its groups are, is told in kernels/args.h. */
#include "lower.h"

#include <math.h>
#include <stdbool.h>

#define NOT_CONTIGUOUS "the innermost extent of an operand is not contiguous"
#define UNKNOWN_TYPE   "block types other than q8_0 and q4_0 have no portable kernel yet"

/* ---- tensors ---- */

static bool present(const struct hw_tensor *t)
{
    return t->dtype != HW_NONE;
}

static bool is_float(const struct hw_tensor *t)
{
    return t->dtype == HW_F32 || t->dtype == HW_F16 || t->dtype == HW_BF16;
}

static bool is_block(const struct hw_tensor *t)
{
    return t->dtype == HW_Q8_0 || t->dtype == HW_Q4_0;
}

static const struct hw_tensor *or_null(const struct hw_tensor *t)
{
    return present(t) ? t : NULL;
}

/* Counting axes from the innermost, which is 0: a missing one has extent 1. */
static int64_t extent_of(const struct hw_tensor *t, int axis)
{
    return axis < t->rank ? t->extent[t->rank - 1 - axis] : 1;
}

/* An extent of 1 repeats. */
static int64_t stride_of(const struct hw_tensor *t, int axis)
{
    return extent_of(t, axis) == 1 ? 0 : t->stride[t->rank - 1 - axis];
}

static int64_t cols_of(const struct hw_tensor *t)
{
    return t->extent[t->rank - 1];
}

static bool is_empty(const struct hw_tensor *t)
{
    for (int i = 0; i < t->rank; i++)
        if (t->extent[i] == 0)
            return true;
    return false;
}

static int64_t offset_of(const struct hw_tensor *t)
{
    return present(t) ? (int64_t)(t->offset + (t->buffer ? t->buffer->offset : 0)) : 0;
}

/* Rows along the innermost axis; the strides of the three outer ones. */
static struct place place_of(const struct hw_tensor *t)
{
    struct place p = { .offset = offset_of(t) };
    for (int i = 0; i < 3 && present(t); i++)
        p.stride[i] = stride_of(t, 3 - i);
    return p;
}

static bool is_dense(const struct hw_tensor *t)
{
    return !present(t) || cols_of(t) <= 1 ||
           t->stride[t->rank - 1] == hw_dtype_bytes(t->dtype);
}

static const char *dense(const struct hw_tensor *a, const struct hw_tensor *b,
                         const struct hw_tensor *c)
{
    if (is_dense(a) && is_dense(b) && is_dense(c))
        return NULL;
    return NOT_CONTIGUOUS;
}

/* ---- launches ---- */

/* The three outer extents, the work of each group of `groups`. */
static const char *finish(struct lowered *out, int64_t a, int64_t b, int64_t c, double work)
{
    int64_t groups;
    if (__builtin_mul_overflow(a, b, &groups) ||
        __builtin_mul_overflow(groups, c, &groups) || groups > INT32_MAX)
        return "more than 2^31 - 1 groups";
    out->groups = groups;
    out->work = work;
    return NULL;
}

static int64_t pieces(int64_t n, int64_t piece)
{
    return n / piece + (n % piece != 0);
}

/* Rows of the last extent. */
static const char *finish_rows(struct lowered *out, const struct hw_tensor *t, double work)
{
    const double rows = (double)extent_of(t, 1) * (double)extent_of(t, 2) *
                        (double)extent_of(t, 3);
    return finish(out, extent_of(t, 3), extent_of(t, 2), extent_of(t, 1),
                  rows * (double)cols_of(t) * work);
}

/* What each kernel's switch of types can be compiled for: one type, weights in it or in
 * f32. */
static const char *typed(struct lowered *out, const struct hw_tensor *x,
                         const struct hw_tensor *weight)
{
    out->x_type = x->dtype;
    out->w_type = weight && present(weight) ? weight->dtype : x->dtype;
    if (!is_float(x) || (out->w_type != x->dtype && out->w_type != HW_F32))
        return "the types are not one float type, with a weight or mask of the same or f32";
    return NULL;
}

/* ---- elementwise ops: as few and as long rows as the operands' strides allow ---- */

#define MAX_OPERANDS 3

/* Extents and each operand's strides, outermost first, for operands that broadcast to the
 * first. */
struct shape {
    int rank, operands;
    int64_t extent[HW_MAX_RANK];
    int64_t stride[HW_MAX_RANK][MAX_OPERANDS];
};

/* Axis `i` goes on where the next inner one, kept at `last`, ends. */
static bool continues(const struct shape *s, int i, int last)
{
    for (int k = 0; k < s->operands; k++) {
        int64_t whole;
        if (__builtin_mul_overflow(s->extent[last], s->stride[last][k], &whole) ||
            s->stride[i][k] != whole)
            return false;
    }
    return true;
}

/* Drops extents of 1 and merges axes that follow each other in all operands. */
static void merge(struct shape *s)
{
    struct shape kept = { .operands = s->operands };
    int last = HW_MAX_RANK; /* kept axes fill up from the end */
    for (int i = s->rank - 1; i >= 0; i--) {
        int64_t both;
        if (s->extent[i] == 1)
            continue;
        kept.extent[last - 1] = s->extent[i];
        memcpy(kept.stride[last - 1], s->stride[i], sizeof s->stride[i]);
        if (last < HW_MAX_RANK && continues(&kept, last - 1, last) &&
            !__builtin_mul_overflow(kept.extent[last], s->extent[i], &both))
            kept.extent[last] = both;
        else
            last--;
    }
    s->rank = HW_MAX_RANK - last;
    for (int i = 0; i < s->rank; i++) {
        s->extent[i] = kept.extent[last + i];
        memcpy(s->stride[i], kept.stride[last + i], sizeof s->stride[i]);
    }
}

/* Bytes of one element of a row; with blocks it is `unit` elements, whole blocks of all. */
static int64_t step_of(const struct hw_tensor *t, int64_t unit)
{
    return unit / hw_dtype_block(t->dtype) * hw_dtype_bytes(t->dtype);
}

static int64_t unit_of(const struct hw_tensor *const *t, int operands)
{
    int64_t unit = 1;
    for (int k = 0; k < operands; k++)
        if (hw_dtype_block(t[k]->dtype) > unit)
            unit = hw_dtype_block(t[k]->dtype);
    return unit;
}

static struct shape shape_of(const struct hw_tensor *const *t, int operands, int64_t unit)
{
    struct shape s = { .rank = t[0]->rank, .operands = operands };
    for (int i = 0; i < s.rank; i++) {
        const int axis = s.rank - 1 - i;
        s.extent[i] = axis == 0 ? t[0]->extent[i] / unit : t[0]->extent[i];
        for (int k = 0; k < operands; k++)
            s.stride[i][k] = axis == 0 && unit > 1 ? step_of(t[k], unit)
                                                   : stride_of(t[k], axis);
    }
    merge(&s);
    return s;
}

/* Rows of up to three outer extents, `step` bytes from element to element. */
struct rows {
    struct place place[MAX_OPERANDS];
    int64_t step[MAX_OPERANDS];
    int64_t outer[3], cols;
};

/* What the elements of a row may be apart, for a kernel. */
enum steps {
    STEPS_NEIGHBOURS,         /* nothing */
    STEPS_NEIGHBOURS_OR_SAME, /* or an input repeats one */
    STEPS_ANY
};

/* The last axis that is left need not be the innermost one, which may have had extent 1. */
static bool is_along_row(const struct shape *s, const struct hw_tensor *const *t,
                         int64_t unit, enum steps steps)
{
    for (int k = 0; k < s->operands && s->rank > 0; k++) {
        const int64_t step = s->stride[s->rank - 1][k];
        if (steps != STEPS_ANY && step != step_of(t[k], unit) &&
            !(steps == STEPS_NEIGHBOURS_OR_SAME && k > 0 && step == 0))
            return false;
    }
    return s->rank > 0;
}

/* The longest rows that operands of one shape, the first's, or broadcast to it, allow. */
static const char *rows_of(const struct hw_tensor *const *t, int operands, enum steps steps,
                           struct rows *rows)
{
    const int64_t unit = unit_of(t, operands);
    const struct shape s = shape_of(t, operands, unit);
    const int outer = is_along_row(&s, t, unit, steps) ? s.rank - 1 : s.rank;

    if (outer > 3)
        return NOT_CONTIGUOUS;
    *rows = (struct rows){ .outer = { 1, 1, 1 } };
    rows->cols = outer < s.rank ? s.extent[outer] * unit : unit;
    for (int k = 0; k < operands; k++) {
        rows->place[k].offset = offset_of(t[k]);
        rows->step[k] = outer < s.rank && unit == 1 ? s.stride[outer][k] : step_of(t[k], 1);
        for (int i = 0; i < outer; i++)
            rows->place[k].stride[3 - outer + i] = s.stride[i][k];
    }
    for (int i = 0; i < outer; i++)
        rows->outer[3 - outer + i] = s.extent[i];
    return NULL;
}

static const char *finish_spans(struct lowered *out, const struct rows *rows, double work)
{
    int64_t spans;
    if (__builtin_mul_overflow(rows->outer[2], pieces(rows->cols, ELEMENT_SPAN), &spans))
        return "more than 2^31 - 1 groups";
    const double count = (double)rows->outer[0] * (double)rows->outer[1] *
                         (double)rows->outer[2];
    return finish(out, rows->outer[0], rows->outer[1], spans,
                  count * (double)rows->cols * work);
}

/* ---- one function per op ---- */

static void set(struct lowered *out, enum portable kernel, uint32_t pointers,
                size_t args_bytes)
{
    out->kernel = kernel;
    out->pointers = pointers;
    out->args_bytes = (uint32_t)args_bytes;
}

static const char *lower_matmul(const struct hw_matmul *op, struct lowered *out)
{
    struct matmul_args *m = &out->args.matmul;

    if (!is_float(&op->b) && !is_block(&op->b))
        return "b: " UNKNOWN_TYPE;
    if (is_block(&op->b) && !op->transpose_b)
        return "b: block types run along K, stored [N,K] with transpose_b";
    m->transpose_a = op->transpose_a != 0;
    m->transpose_b = op->transpose_b != 0;
    m->c = place_of(&op->c);
    m->a = place_of(&op->a);
    m->b = place_of(&op->b);
    m->bias_offset = offset_of(&op->bias);
    m->batch1 = extent_of(&op->c, 2);
    m->m = extent_of(&op->c, 1);
    m->n = extent_of(&op->c, 0);
    m->k = extent_of(&op->a, m->transpose_a ? 1 : 0);
    m->c_type = op->c.dtype;
    m->a_type = op->a.dtype;
    m->b_type = op->b.dtype;
    m->bias_type = op->bias.dtype;

    const bool few = m->m <= MATMUL_VEC_ROWS && m->transpose_b && !m->transpose_a;
    const double work = (double)extent_of(&op->c, 3) * (double)m->batch1 * (double)m->m *
                        (double)m->n * (double)(m->k + 1);
    int64_t batches;
    set(out, few ? PORTABLE_MATMUL_VEC : PORTABLE_MATMUL, 4, sizeof *m);
    out->operand[0] = &op->c;
    out->operand[1] = &op->a;
    out->operand[2] = &op->b;
    out->operand[3] = or_null(&op->bias);
    if (__builtin_mul_overflow(extent_of(&op->c, 3), m->batch1, &batches))
        return "more than 2^31 - 1 groups";
    const char *why = few ? finish(out, batches, 1, pieces(m->n, MATMUL_VEC_COLS), work)
                          : finish(out, batches, pieces(m->m, MATMUL_ROWS),
                                   pieces(m->n, MATMUL_COLS), work);
    return why ? why : dense(&op->a, &op->b, &op->c);
}

static const char *lower_rmsnorm(const struct hw_rmsnorm *op, struct lowered *out)
{
    out->args.rmsnorm = (struct rmsnorm_args){
        .y = place_of(&op->y),
        .x = place_of(&op->x),
        .weight_offset = offset_of(&op->weight),
        .n1 = extent_of(&op->x, 2),
        .n2 = extent_of(&op->x, 1),
        .cols = cols_of(&op->x),
        .eps = op->eps,
        .has_weight = present(&op->weight),
    };
    set(out, PORTABLE_RMSNORM, 3, sizeof out->args.rmsnorm);
    out->operand[0] = &op->y;
    out->operand[1] = &op->x;
    out->operand[2] = or_null(&op->weight);
    const char *why = typed(out, &op->x, &op->weight);
    why = why ? why : dense(&op->x, &op->weight, &op->y);
    return why ? why : finish_rows(out, &op->x, 2);
}

static const char *lower_add_rmsnorm(const struct hw_add_rmsnorm *op, struct lowered *out)
{
    out->args.add_rmsnorm = (struct add_rmsnorm_args){
        .y = place_of(&op->y),
        .residual = place_of(&op->residual),
        .x = place_of(&op->x),
        .weight_offset = offset_of(&op->weight),
        .n1 = extent_of(&op->x, 2),
        .n2 = extent_of(&op->x, 1),
        .cols = cols_of(&op->x),
        .eps = op->eps,
        .has_weight = present(&op->weight),
    };
    set(out, PORTABLE_ADD_RMSNORM, 4, sizeof out->args.add_rmsnorm);
    out->operand[0] = &op->y;
    out->operand[1] = &op->residual;
    out->operand[2] = &op->x;
    out->operand[3] = or_null(&op->weight);
    const char *why = typed(out, &op->x, &op->weight);
    why = why ? why : dense(&op->x, &op->residual, &op->y);
    why = why ? why : dense(&op->weight, &op->x, &op->y);
    return why ? why : finish_rows(out, &op->x, 3);
}

static const char *lower_softmax(const struct hw_softmax *op, struct lowered *out)
{
    const bool masked = present(&op->mask);
    out->args.softmax = (struct softmax_args){
        .y = place_of(&op->y),
        .x = place_of(&op->x),
        .mask = place_of(&op->mask),
        .n1 = extent_of(&op->x, 2),
        .n2 = extent_of(&op->x, 1),
        .cols = cols_of(&op->x),
        .scale = op->scale == 0.0f ? 1.0f : op->scale,
        .has_mask = masked,
        .mask_step = masked && cols_of(&op->mask) == cols_of(&op->x),
        .log_form = op->log != 0,
    };
    set(out, PORTABLE_SOFTMAX, 3, sizeof out->args.softmax);
    out->operand[0] = &op->y;
    out->operand[1] = &op->x;
    out->operand[2] = or_null(&op->mask);
    const char *why = typed(out, &op->x, &op->mask);
    why = why ? why : dense(&op->x, &op->mask, &op->y);
    return why ? why : finish_rows(out, &op->x, 24);
}

static const char *lower_silu(const struct hw_silu *op, struct lowered *out)
{
    const struct hw_tensor *const t[] = { &op->y, &op->x };
    struct rows r;
    const char *why = rows_of(t, 2, STEPS_NEIGHBOURS, &r);
    if (why)
        return why;
    out->args.silu = (struct silu_args){
        .y = r.place[0], .x = r.place[1], .n1 = r.outer[1], .n2 = r.outer[2], .cols = r.cols
    };
    set(out, PORTABLE_SILU, 2, sizeof out->args.silu);
    out->operand[0] = &op->y;
    out->operand[1] = &op->x;
    why = typed(out, &op->x, NULL);
    why = why ? why : dense(&op->x, &op->y, &op->y);
    return why ? why : finish_spans(out, &r, 12);
}

/* Both take a and b in either order, so what repeats along a row can be b. */
static const char *lower_binary(enum portable kernel, const struct hw_tensor *a,
                                const struct hw_tensor *b, const struct hw_tensor *y,
                                struct lowered *out)
{
    const struct hw_tensor *const t[] = { y, a, b };
    struct rows r;
    const char *why = rows_of(t, 3, STEPS_NEIGHBOURS_OR_SAME, &r);
    if (why)
        return why;
    const int first = r.step[1] == 0 ? 2 : 1, second = 3 - first;
    out->args.binary = (struct binary_args){
        .y = r.place[0],
        .a = r.place[first],
        .b = r.place[second],
        .n1 = r.outer[1],
        .n2 = r.outer[2],
        .cols = r.cols,
        .b_step = r.step[second] != 0,
        .flat = r.step[first] == 0,
    };
    set(out, kernel, 3, sizeof out->args.binary);
    out->operand[0] = y;
    out->operand[1] = t[first];
    out->operand[2] = t[second];
    why = typed(out, y, NULL);
    why = why ? why : dense(a, b, y);
    return why ? why : finish_spans(out, &r, 2);
}

static const char *lower_add(const struct hw_add *op, struct lowered *out)
{
    return lower_binary(PORTABLE_ADD, &op->a, &op->b, &op->y, out);
}

static const char *lower_mul(const struct hw_mul *op, struct lowered *out)
{
    return lower_binary(PORTABLE_MUL, &op->a, &op->b, &op->y, out);
}

static const char *lower_swiglu(const struct hw_swiglu *op, struct lowered *out)
{
    /* Packed: gate and up are the two halves of each row. */
    struct hw_tensor gate = op->gate, up = op->up;
    const bool packed = !present(&up);
    if (packed) {
        gate.extent[gate.rank - 1] = cols_of(&op->y);
        up = gate;
        up.offset += (uint64_t)(cols_of(&op->y) * hw_dtype_bytes(gate.dtype));
    }
    const struct hw_tensor *const t[] = { &op->y, &gate, &up };
    struct rows r;
    const char *why = rows_of(t, 3, STEPS_NEIGHBOURS, &r);
    if (why)
        return why;
    out->args.swiglu = (struct swiglu_args){
        .y = r.place[0],
        .gate = r.place[1],
        .up = r.place[2],
        .n1 = r.outer[1],
        .n2 = r.outer[2],
        .cols = r.cols,
    };
    set(out, PORTABLE_SWIGLU, 3, sizeof out->args.swiglu);
    out->operand[0] = &op->y;
    out->operand[1] = &op->gate;
    out->operand[2] = packed ? &op->gate : &op->up;
    why = typed(out, &op->y, NULL);
    why = why ? why : dense(&op->gate, &op->up, &op->y);
    return why ? why : finish_spans(out, &r, 14);
}

/* A double in 0 .. 1, as a fraction of 2^64. */
static uint64_t fraction(double turns)
{
    return (uint64_t)(turns * 18446744073709551616.0);
}

static const char *lower_rope(const struct hw_rope *op, struct lowered *out)
{
    const double two_pi = 6.283185307179586476925;
    const double scale = op->scale == 0.0f ? 1.0 : (double)op->scale;
    const double theta = op->theta == 0.0f ? 10000.0 : (double)op->theta;
    const int64_t dims = op->dims ? op->dims : cols_of(&op->x);
    const double ratio = dims ? pow(theta, -2.0 / (double)dims) : 0.0;

    if (!(scale > 0.0 && scale < two_pi))
        return "scale is not between 0 and 2 pi";
    if (!(theta > 1.0 && ratio < 1.0))
        return "theta is not above 1";
    out->args.rope = (struct rope_args){
        .y = place_of(&op->y),
        .x = place_of(&op->x),
        .positions_offset = offset_of(&op->positions),
        .factors_offset = offset_of(&op->factors),
        .start = op->start,
        .tokens = extent_of(&op->x, 2),
        .heads = extent_of(&op->x, 1),
        .head_dim = cols_of(&op->x),
        .dims = dims,
        .frequency = fraction(scale / two_pi),
        .ratio = fraction(ratio),
        .interleaved = op->interleaved != 0,
        .has_positions = present(&op->positions),
        .has_factors = present(&op->factors),
    };
    set(out, PORTABLE_ROPE, 4, sizeof out->args.rope);
    out->operand[0] = &op->y;
    out->operand[1] = &op->x;
    out->operand[2] = or_null(&op->positions);
    out->operand[3] = or_null(&op->factors);
    const char *why = typed(out, &op->x, NULL);
    why = why ? why : dense(&op->x, &op->positions, &op->y);
    why = why ? why : dense(&op->factors, &op->x, &op->y);
    const double tokens = (double)extent_of(&op->x, 3) * (double)extent_of(&op->x, 2);
    return why ? why
               : finish(out, extent_of(&op->x, 3), extent_of(&op->x, 2), 1,
                        tokens *
                            ((double)extent_of(&op->x, 1) * (double)cols_of(&op->x) * 2 +
                             (double)dims * 16));
}

static const char *lower_attention(const struct hw_attention *op, struct lowered *out)
{
    const int64_t keys = extent_of(&op->k, 2), dim = cols_of(&op->q),
                  heads = extent_of(&op->q, 1);
    const int64_t kv_heads = extent_of(&op->k, 1), queries = extent_of(&op->q, 2);
    const int64_t length = op->length == 0 || op->length > keys ? keys : op->length;
    int64_t batch_heads, rows;

    if (!is_float(&op->k) && op->k.dtype != HW_Q8_0 && op->k.dtype != HW_Q4_0)
        return "k, v: " UNKNOWN_TYPE;
    if (kv_heads == 0 || dim > ATTENTION_MAX_DIM || cols_of(&op->v) > ATTENTION_MAX_DIM)
        return "head sizes above 256 have no portable kernel";
    out->args.attention = (struct attention_args){
        .y = place_of(&op->y),
        .q = place_of(&op->q),
        .k = place_of(&op->k),
        .v = place_of(&op->v),
        .bias = place_of(&op->bias),
        .lengths_offset = offset_of(&op->lengths),
        .length = length,
        .keys_max = keys,
        .window = op->window,
        .queries = queries,
        .heads = heads,
        .kv_heads = kv_heads,
        .head_dim = (int)dim,
        .value_dim = (int)cols_of(&op->v),
        .y_type = op->y.dtype,
        .q_type = op->q.dtype,
        .k_type = op->k.dtype,
        .v_type = op->v.dtype,
        .bias_type = op->bias.dtype,
        .causal = op->causal != 0,
        .has_lengths = present(&op->lengths),
        .scale = op->scale != 0.0f ? op->scale
                 : dim             ? (float)(1.0 / sqrt((double)dim))
                                   : 1.0f,
        .softcap = op->softcap,
    };
    set(out, PORTABLE_ATTENTION, 6, sizeof out->args.attention);
    out->operand[0] = &op->y;
    out->operand[1] = &op->q;
    out->operand[2] = &op->k;
    out->operand[3] = &op->v;
    out->operand[4] = or_null(&op->bias);
    out->operand[5] = or_null(&op->lengths);
    const char *why = dense(&op->q, &op->k, &op->v);
    why = why ? why : dense(&op->y, &op->bias, &op->lengths);
    if (!why && (__builtin_mul_overflow(extent_of(&op->q, 3), kv_heads, &batch_heads) ||
                 __builtin_mul_overflow(queries, heads / kv_heads, &rows)))
        why = "more than 2^31 - 1 groups";
    return why ? why
               : finish(out, batch_heads, pieces(rows, ATTENTION_ROWS), 1,
                        (double)batch_heads * (double)rows * (double)length *
                            (double)(dim + cols_of(&op->v) + 8));
}

static const char *lower_rows(enum portable kernel, const struct hw_tensor *to,
                              const struct hw_tensor *from, const struct hw_tensor *rows,
                              int64_t table_rows, struct lowered *out)
{
    out->args.rows = (struct rows_args){
        .to = place_of(to),
        .from = place_of(from),
        .rows_offset = offset_of(rows),
        .table_rows = table_rows,
        .cols = cols_of(to),
        .to_type = to->dtype,
        .from_type = from->dtype,
    };
    set(out, kernel, 3, sizeof out->args.rows);
    out->operand[0] = to;
    out->operand[1] = from;
    out->operand[2] = rows;
    if ((!is_float(to) && !is_block(to)) || (!is_float(from) && !is_block(from)))
        return "table: " UNKNOWN_TYPE;
    const char *why = dense(to, from, rows);
    return why ? why
               : finish(out, cols_of(rows), 1, 1,
                        (double)cols_of(rows) * (double)cols_of(to) * 2);
}

static const char *lower_get_rows(const struct hw_get_rows *op, struct lowered *out)
{
    return lower_rows(PORTABLE_GET_ROWS, &op->y, &op->table, &op->rows,
                      extent_of(&op->table, 1), out);
}

static const char *lower_set_rows(const struct hw_set_rows *op, struct lowered *out)
{
    return lower_rows(PORTABLE_SET_ROWS, &op->table, &op->x, &op->rows,
                      extent_of(&op->table, 1), out);
}

/* Bits that stay what they are move as an integer of their size. */
static int storage_of_bits(int64_t bytes)
{
    switch (bytes) {
    case 1:
        return STORAGE_I8;
    case 2:
        return STORAGE_I16;
    case 4:
        return STORAGE_I32;
    default:
        return STORAGE_I64;
    }
}

/* A block type as what it is in memory: rows of bytes. */
static struct hw_tensor as_bytes(const struct hw_tensor *t)
{
    struct hw_tensor bytes = *t;
    const int last = t->rank - 1;
    bytes.dtype = HW_I8;
    bytes.extent[last] = t->extent[last] / hw_dtype_block(t->dtype) *
                         hw_dtype_bytes(t->dtype);
    bytes.stride[last] = 1;
    return bytes;
}

static const char *lower_copy(const struct hw_copy *op, struct lowered *out)
{
    struct hw_tensor dst = op->dst, src = op->src;
    const bool bits = src.dtype == dst.dtype;
    if (bits && hw_dtype_block(src.dtype) > 1) {
        dst = as_bytes(&op->dst);
        src = as_bytes(&op->src);
    }
    const bool blocks = is_block(&dst) || is_block(&src);
    if (!bits && (!is_float(&dst) || !is_float(&src)) &&
        (!(is_float(&dst) || is_float(&src)) || !blocks))
        return UNKNOWN_TYPE "; integers copy to their own type alone";
    if (blocks && !(is_dense(&dst) && is_dense(&src)))
        return "with a block type, the innermost extents of both are contiguous";

    const struct hw_tensor *const t[] = { &dst, &src };
    struct rows r;
    const char *why = rows_of(t, 2, blocks ? STEPS_NEIGHBOURS : STEPS_ANY, &r);
    if (why)
        return why;
    out->args.copy = (struct copy_args){
        .dst = r.place[0],
        .src = r.place[1],
        .n1 = r.outer[1],
        .n2 = r.outer[2],
        .cols = r.cols,
        .dst_step = r.step[0],
        .src_step = r.step[1],
        .dst_type = bits ? storage_of_bits(hw_dtype_bytes(dst.dtype)) : dst.dtype,
        .src_type = bits ? storage_of_bits(hw_dtype_bytes(src.dtype)) : src.dtype,
    };
    set(out, PORTABLE_COPY, 2, sizeof out->args.copy);
    out->operand[0] = &op->dst;
    out->operand[1] = &op->src;
    return finish_spans(out, &r, 2);
}

static const char *lower_argmax(const struct hw_argmax *op, struct lowered *out)
{
    /* y's elements, one per row of x: its axes but for a last one of 1. */
    struct hw_tensor y = op->y;
    if (y.rank < op->x.rank && y.rank < HW_MAX_RANK) {
        y.extent[y.rank] = 1;
        y.stride[y.rank] = 4;
        y.rank++;
    }
    out->args.argmax = (struct argmax_args){
        .y = place_of(&y),
        .x = place_of(&op->x),
        .n1 = extent_of(&op->x, 2),
        .n2 = extent_of(&op->x, 1),
        .cols = cols_of(&op->x),
    };
    set(out, PORTABLE_ARGMAX, 2, sizeof out->args.argmax);
    out->operand[0] = &op->y;
    out->operand[1] = &op->x;
    if (cols_of(&op->x) > INT32_MAX)
        return "an index does not fit 32 bits";
    const char *why = typed(out, &op->x, NULL);
    why = why ? why : dense(&op->x, &op->x, &op->x);
    return why ? why : finish_rows(out, &op->x, 3);
}

/* ---- all of them ---- */

/* The tensor whose emptiness means that there is nothing to do. */
static const struct hw_tensor *output_of(const struct lowered *l)
{
    return l->kernel == PORTABLE_SET_ROWS ? l->operand[1] : l->operand[0];
}

const char *lower(uint32_t op, const void *args, struct lowered *out)
{
    const char *why = "no portable kernel computes this op";
    memset(out, 0, sizeof *out);
    switch (op) {
#define X(NAME, name)                                                                      \
    case HW_OP_##NAME:                                                                     \
        why = lower_##name(args, out);                                                     \
        break;
        HW_OPS(X)
#undef X
    }
    for (uint32_t i = 0; i < out->pointers && !why; i++)
        if (out->operand[i] && out->operand[i]->layout)
            why = "a packed operand has no portable kernel";
    if (!why && is_empty(output_of(out)))
        out->groups = 0;
    return why;
}

const char *portable_name(enum portable kernel)
{
    static const char *const names[] = {
#define K(NAME, name, args, pointers) [PORTABLE_##NAME] = #name,
        PORTABLE_ALL(K)
#undef K
    };
    return names[kernel];
}
