/* SPDX-License-Identifier: MIT */
/* check.c - the full check of each op's operands. A call like an earlier one skips it: see
 * seen.h. A check is pure: it reads the op's struct and returns HW_OK, or HW_INVALID with the
 * field and its value in the message. Only FITS() and overlaps() look at addresses. An op of
 * HW_OPS without a check_<op> does not compile. */
#include "call/check.h"

#include "call/operand.h"

/* FITS(silu, x, FLOATS): operand x of silu is a valid tensor of one of these dtypes. The
 * role comes from the op table. */
#define T(op, field, role) ROLE_OF_##op##_##field = HW_ROLE_##role,
#define X(NAME, name)      enum { HW_OPERANDS_##NAME(T) ROLES_##name };
HW_OPS(X)
#undef X
#undef T
#define FITS(name, field, dtypes)                                                          \
    operand_fits(check, &op->field, OPERAND_##name##_##field,                              \
                 (enum hw_role)ROLE_OF_##name##_##field, dtypes)
#define MISMATCH(name, a, b, rule)                                                         \
    bad_shapes(check, op, OPERAND_##name##_##a, OPERAND_##name##_##b, rule)
/* The op may work in place: the output may be this input. */
#define MAY_BE_IN_PLACE(name, field) (check->in_place |= 1u << OPERAND_##name##_##field)

#define SAME_AS(tensor) (1u << (tensor).dtype)

#define NO_MEANING "must be 0: it is reserved"

/* ---- shapes ---- */

/* Axes are counted from the innermost, which is 0. A missing axis has extent 1. */
static int64_t axis(const struct hw_tensor *t, int i)
{
    return i < t->rank ? t->extent[t->rank - 1 - i] : 1;
}

static int64_t cols(const struct hw_tensor *t)
{
    return t->extent[t->rank - 1];
}

/* Whether repeats of the extent `part` fill `whole`. Usually this needs no division. */
static bool divides(int64_t part, int64_t whole)
{
    return part == whole || part == 1 || (part > 0 && whole % part == 0);
}

/* Whether each extent of `t` divides the same extent of `whole`, counted from the innermost. */
static bool repeats(const struct hw_tensor *t, const struct hw_tensor *whole)
{
    bool good = t->rank <= whole->rank;
    for (int i = 0; i < HW_MAX_RANK; i++)
        good &= divides(axis(t, i), axis(whole, i));
    return good;
}

static bool finite(float value)
{
    return value - value == 0.0f;
}

static bool present(const struct hw_tensor *t)
{
    return t->dtype != HW_NONE;
}

static enum hw_status flag_check(const struct check *check, const char *field,
                                 uint32_t value)
{
    return likely(value <= 1) ? HW_OK : bad_integer(check, field, value, "must be 0 or 1");
}

/* ---- one check per op, in the order of the table ---- */

/* Leading axes are batches. Each extent of c equals the one of a or b, and the other one divides
 * it. */
static bool batches_agree(const struct hw_tensor *a, const struct hw_tensor *b,
                          const struct hw_tensor *c)
{
    bool good = c->rank == (a->rank > b->rank ? a->rank : b->rank);
    for (int i = 2; i < HW_MAX_RANK; i++) {
        const int64_t of_a = axis(a, i), of_b = axis(b, i), of_c = axis(c, i);
        good &= (of_a == of_c && divides(of_b, of_c)) ||
                (of_b == of_c && divides(of_a, of_c));
    }
    return good;
}

static enum hw_status check_matmul(const struct hw_matmul *op, struct check *check)
{
    enum hw_status status;
    if (!FITS(matmul, a, FLOATS) || !FITS(matmul, b, FLOATS | BLOCKS) ||
        !FITS(matmul, bias, FLOATS) || !FITS(matmul, c, FLOATS))
        return bad_operand(check, op);
    if (unlikely((status = flag_check(check, "transpose_a", op->transpose_a)) ||
                 (status = flag_check(check, "transpose_b", op->transpose_b))))
        return status;
    if (unlikely(op->a.rank < 2))
        return MISMATCH(matmul, a, c, "the rank of a must be 2 to 4");
    if (unlikely(op->b.rank < 2))
        return MISMATCH(matmul, b, c, "the rank of b must be 2 to 4");
    if (unlikely(!op->transpose_b && (BLOCKS >> op->b.dtype & 1)))
        return bad_integer(check, "transpose_b", 0,
                           "must be 1, because blocks are stored as [N,K]");
    const int64_t m = axis(&op->a, op->transpose_a ? 0 : 1),
                  k = axis(&op->a, op->transpose_a ? 1 : 0);
    const int64_t n = axis(&op->b, op->transpose_b ? 1 : 0);
    if (unlikely(axis(&op->b, op->transpose_b ? 0 : 1) != k))
        return MISMATCH(matmul, a, b, "they differ in K");
    if (unlikely(op->c.rank < 2 || axis(&op->c, 1) != m))
        return MISMATCH(matmul, a, c, "they differ in M");
    if (unlikely(axis(&op->c, 0) != n))
        return MISMATCH(matmul, b, c, "they differ in N");
    if (unlikely(!batches_agree(&op->a, &op->b, &op->c)))
        return MISMATCH(matmul, a, b,
                        "the leading extents must be those of c, or divide them");
    if (unlikely(present(&op->bias) && (op->bias.rank != 1 || op->bias.extent[0] != n)))
        return MISMATCH(matmul, bias, c, "bias must be [N]");
    return HW_OK;
}

static enum hw_status eps_check(const struct check *check, float eps)
{
    if (likely(eps >= 0.0f && finite(eps)))
        return HW_OK;
    return bad_value(check, "eps", (double)eps, "must be finite and not negative");
}

static uint32_t same_or_f32(const struct hw_tensor *t)
{
    return 1u << t->dtype | DTYPE(F32);
}

static enum hw_status check_rmsnorm(const struct hw_rmsnorm *op, struct check *check)
{
    if (!FITS(rmsnorm, x, FLOATS) || !FITS(rmsnorm, weight, same_or_f32(&op->x)) ||
        !FITS(rmsnorm, y, SAME_AS(op->x)))
        return bad_operand(check, op);
    MAY_BE_IN_PLACE(rmsnorm, x);
    if (unlikely(op->reserved))
        return bad_integer(check, "reserved", op->reserved, NO_MEANING);
    if (unlikely(!equal_extents(&op->x, &op->y)))
        return MISMATCH(rmsnorm, y, x, "y must have the extents of x");
    if (unlikely(present(&op->weight) &&
                 (op->weight.rank != 1 || op->weight.extent[0] != cols(&op->x))))
        return MISMATCH(rmsnorm, weight, x, "weight must have the last extent of x");
    return eps_check(check, op->eps);
}

/* Whether `t` is absent or has one element for each head of `x`, whose axis is `heads`. */
static bool is_per_head(const struct hw_tensor *t, const struct hw_tensor *x, int heads)
{
    return !present(t) ||
           (heads < x->rank && t->rank == 1 && t->extent[0] == axis(x, heads));
}

static enum hw_status check_softmax(const struct hw_softmax *op, struct check *check)
{
    if (!FITS(softmax, x, FLOATS) || !FITS(softmax, mask, FLOATS) ||
        !FITS(softmax, slopes, DTYPE(F32)) || !FITS(softmax, sinks, DTYPE(F32)) ||
        !FITS(softmax, y, SAME_AS(op->x)))
        return bad_operand(check, op);
    MAY_BE_IN_PLACE(softmax, x);
    if (unlikely(!equal_extents(&op->x, &op->y)))
        return MISMATCH(softmax, y, x, "y must have the extents of x");
    if (unlikely(present(&op->mask) &&
                 (!repeats(&op->mask, &op->x) ||
                  (cols(&op->mask) != cols(&op->x) && cols(&op->mask) != 1))))
        return MISMATCH(softmax, mask, x,
                        "the extents of mask do not repeat to those of x");
    if (unlikely(present(&op->slopes) && !present(&op->mask)))
        return MISMATCH(softmax, slopes, x,
                        "slopes are factors of the mask, which is absent");
    if (unlikely(!is_per_head(&op->slopes, &op->x, 2)))
        return MISMATCH(softmax, slopes, x, "slopes must be [H] and x [..,H,T,cols]");
    if (unlikely(!is_per_head(&op->sinks, &op->x, 2)))
        return MISMATCH(softmax, sinks, x, "sinks must be [H] and x [..,H,T,cols]");
    if (unlikely(!finite(op->scale)))
        return bad_value(check, "scale", (double)op->scale, "must be finite");
    return flag_check(check, "log", op->log);
}

static enum hw_status check_silu(const struct hw_silu *op, struct check *check)
{
    if (!FITS(silu, x, FLOATS) || !FITS(silu, y, SAME_AS(op->x)))
        return bad_operand(check, op);
    MAY_BE_IN_PLACE(silu, x);
    if (unlikely(!equal_extents(&op->x, &op->y)))
        return MISMATCH(silu, y, x, "y must have the extents of x");
    return HW_OK;
}

/* The scalars of YaRN. Zero is the default of each. */
static enum hw_status check_yarn(const struct hw_rope *op, const struct check *check)
{
    const float fast = op->beta_fast != 0.0f ? op->beta_fast : 32.0f,
                slow = op->beta_slow != 0.0f ? op->beta_slow : 1.0f;
    if (unlikely(!finite(op->magnitude)))
        return bad_value(check, "magnitude", (double)op->magnitude, "must be finite");
    if (unlikely(!(op->yarn >= 0.0f && op->yarn <= 1.0f)))
        return bad_value(check, "yarn", (double)op->yarn, "must be 0 to 1");
    if (unlikely(!(slow > 0.0f)))
        return bad_value(check, "beta_slow", (double)op->beta_slow,
                         "must be above 0, or 0 for 1");
    if (unlikely(!(fast >= slow) || !finite(fast)))
        return bad_value(check, "beta_fast", (double)op->beta_fast,
                         "must be at least beta_slow, or 0 for 32");
    if (likely(op->yarn == 0.0f))
        return HW_OK;
    if (unlikely(op->context <= 0))
        return bad_integer(check, "context", op->context, "must be above 0 with yarn");
    if (unlikely(op->scale < 0.0f))
        return bad_value(check, "scale", (double)op->scale, "must be above 0 with yarn");
    if (unlikely(op->theta != 0.0f && op->theta <= 1.0f))
        return bad_value(check, "theta", (double)op->theta, "must be above 1 with yarn");
    return HW_OK;
}

/* The scalars of rope. */
static enum hw_status check_angles(const struct hw_rope *op, const struct check *check)
{
    const int64_t d = cols(&op->x), dims = op->dims ? op->dims : d;
    if (unlikely(dims < 0 || dims > d || dims % 2))
        return bad_integer(check, "dims", dims,
                           "must be even, and at most the last extent of x");
    if (unlikely(!(op->theta >= 0.0f) || !finite(op->theta)))
        return bad_value(check, "theta", (double)op->theta,
                         "must be above 0, or 0 for 10000");
    if (unlikely(!finite(op->scale)))
        return bad_value(check, "scale", (double)op->scale, "must be finite");
    int64_t last;
    if (unlikely(__builtin_add_overflow(op->start, op->x.extent[op->x.rank - 3], &last)))
        return bad_integer(check, "start", op->start,
                           "the last position overflows 63 bits");
    if (unlikely(present(&op->factors) &&
                 (op->factors.rank != 1 || op->factors.extent[0] != dims / 2)))
        return MISMATCH(rope, factors, x, "factors must be [dims / 2]");
    const enum hw_status status = check_yarn(op, check);
    return status ? status : flag_check(check, "interleaved", op->interleaved);
}

static enum hw_status check_rope(const struct hw_rope *op, struct check *check)
{
    if (!FITS(rope, x, FLOATS) || !FITS(rope, positions, DTYPE(I32)) ||
        !FITS(rope, factors, DTYPE(F32)) || !FITS(rope, y, SAME_AS(op->x)))
        return bad_operand(check, op);
    MAY_BE_IN_PLACE(rope, x);
    if (unlikely(!equal_extents(&op->x, &op->y)))
        return MISMATCH(rope, y, x, "y must have the extents of x");
    if (unlikely(op->x.rank < 3))
        return MISMATCH(rope, x, y, "x must be [T,H,D] or [B,T,H,D]");
    if (unlikely(present(&op->positions) &&
                 (op->positions.rank != 1 || op->positions.extent[0] != axis(&op->x, 2))))
        return MISMATCH(rope, positions, x, "positions must be [T]");
    return check_angles(op, check);
}

#define TEXT(x)    #x
#define TEXT_OF(x) TEXT(x)

/* The extents of the scores are [B,Hq,Tq,Tmax]. */
static bool bias_fits(const struct hw_attention *op)
{
    const struct hw_tensor *q = &op->q;
    const struct hw_tensor scores = {
        .rank = 4, .extent = { axis(q, 3), axis(q, 1), axis(q, 2), axis(&op->k, 2) }
    };
    return !present(&op->bias) ||
           (repeats(&op->bias, &scores) && cols(&op->bias) == cols(&scores));
}

static enum hw_status check_heads(const struct hw_attention *op, const struct check *check)
{
    const struct hw_tensor *q = &op->q, *k = &op->k, *v = &op->v, *y = &op->y;
    if (unlikely(q->rank < 3))
        return MISMATCH(attention, q, k, "q must be [B,Tq,Hq,D] or [Tq,Hq,D]");
    if (unlikely(k->rank != q->rank || axis(k, 3) != axis(q, 3)))
        return MISMATCH(attention, k, q, "k must be [B,Tmax,Hkv,D] with the B of q");
    if (unlikely(v->rank != q->rank || axis(v, 3) != axis(q, 3)))
        return MISMATCH(attention, v, q, "v must be [B,Tmax,Hkv,Dv] with the B of q");
    if (unlikely(axis(k, 0) != axis(q, 0)))
        return MISMATCH(attention, k, q, "they differ in D");
    if (unlikely(axis(v, 1) != axis(k, 1) || axis(v, 2) != axis(k, 2)))
        return MISMATCH(attention, v, k, "they differ in Tmax or Hkv");
    if (unlikely(axis(k, 1) ? axis(q, 1) % axis(k, 1) != 0 : axis(q, 1) != 0))
        return MISMATCH(attention, q, k, "Hq is not a multiple of Hkv");
    if (unlikely(y->rank != q->rank || axis(y, 3) != axis(q, 3) ||
                 axis(y, 2) != axis(q, 2) || axis(y, 1) != axis(q, 1) ||
                 axis(y, 0) != axis(v, 0)))
        return MISMATCH(attention, y, v, "y must be [B,Tq,Hq,Dv]");
    if (unlikely(axis(q, 0) > HW_MAX_HEAD || axis(v, 0) > HW_MAX_HEAD))
        return MISMATCH(attention, q, v, "D and Dv must be at most " TEXT_OF(HW_MAX_HEAD));
    if (unlikely(!bias_fits(op)))
        return MISMATCH(attention, bias, k,
                        "bias must be [B,Hq,Tq,Tmax], where B, Hq, Tq may be divisors");
    if (unlikely(!is_per_head(&op->slopes, q, 1)))
        return MISMATCH(attention, slopes, q, "slopes must be [Hq]");
    if (unlikely(!is_per_head(&op->sinks, q, 1)))
        return MISMATCH(attention, sinks, q, "sinks must be [Hq]");
    if (unlikely(present(&op->lengths) &&
                 (op->lengths.rank != 1 || op->lengths.extent[0] != axis(q, 3))))
        return MISMATCH(attention, lengths, q, "lengths must be [B]");
    return HW_OK;
}

static enum hw_status check_scores(const struct hw_attention *op, const struct check *check)
{
    if (unlikely(op->length < 0 || op->length > axis(&op->k, 2)))
        return bad_integer(check, "length", op->length, "must be 0 (for Tmax) to Tmax");
    if (unlikely(op->window < 0))
        return bad_integer(check, "window", op->window, "must not be negative");
    if (unlikely(!finite(op->scale)))
        return bad_value(check, "scale", (double)op->scale, "must be finite");
    if (unlikely(!(op->softcap >= 0.0f) || !finite(op->softcap)))
        return bad_value(check, "softcap", (double)op->softcap,
                         "must be finite and not negative");
    return flag_check(check, "causal", op->causal);
}

static enum hw_status check_attention(const struct hw_attention *op, struct check *check)
{
    if (!FITS(attention, q, FLOATS) || !FITS(attention, k, FLOATS | BLOCKS) ||
        !FITS(attention, v, FLOATS | BLOCKS) || !FITS(attention, bias, FLOATS) ||
        !FITS(attention, slopes, DTYPE(F32)) || !FITS(attention, sinks, DTYPE(F32)) ||
        !FITS(attention, lengths, DTYPE(I32)) || !FITS(attention, y, SAME_AS(op->q)))
        return bad_operand(check, op);
    if (unlikely(op->reserved))
        return bad_integer(check, "reserved", op->reserved, NO_MEANING);
    enum hw_status status = check_heads(op, check);
    if (unlikely(status))
        return status;
    return check_scores(op, check);
}

/* a and b repeat to y; the three may differ in dtype. */
#define CHECK_BINARY(name)                                                                 \
    static enum hw_status check_##name(const struct hw_##name *op, struct check *check)    \
    {                                                                                      \
        if (!FITS(name, a, FLOATS) || !FITS(name, b, FLOATS) || !FITS(name, y, FLOATS))    \
            return bad_operand(check, op);                                                 \
        MAY_BE_IN_PLACE(name, a);                                                          \
        MAY_BE_IN_PLACE(name, b);                                                          \
        if (unlikely(!repeats(&op->a, &op->y)))                                            \
            return MISMATCH(name, a, y, "the extents of a must divide those of y");        \
        if (unlikely(!repeats(&op->b, &op->y)))                                            \
            return MISMATCH(name, b, y, "the extents of b must divide those of y");        \
        return HW_OK;                                                                      \
    }
CHECK_BINARY(add)
CHECK_BINARY(mul)
CHECK_BINARY(sub)
CHECK_BINARY(div)

static enum hw_status check_scale(const struct hw_scale *op, struct check *check)
{
    if (!FITS(scale, x, FLOATS) || !FITS(scale, y, SAME_AS(op->x)))
        return bad_operand(check, op);
    MAY_BE_IN_PLACE(scale, x);
    if (unlikely(!equal_extents(&op->x, &op->y)))
        return MISMATCH(scale, y, x, "y must have the extents of x");
    if (unlikely(!finite(op->scale)))
        return bad_value(check, "scale", (double)op->scale, "must be finite");
    if (unlikely(!finite(op->bias)))
        return bad_value(check, "bias", (double)op->bias, "must be finite");
    return HW_OK;
}

/* gate and up in one tensor, [..,2F]. */
static enum hw_status check_packed_gate(const struct hw_swiglu *op,
                                        const struct check *check)
{
    bool good = op->gate.rank == op->y.rank && cols(&op->gate) % 2 == 0 &&
                cols(&op->gate) / 2 == cols(&op->y);
    for (int i = 1; i < HW_MAX_RANK; i++)
        good &= axis(&op->gate, i) == axis(&op->y, i);
    if (unlikely(!good))
        return MISMATCH(swiglu, gate, y, "without up, gate must be [..,2F] and y [..,F]");
    return HW_OK;
}

static enum hw_status check_swiglu(const struct hw_swiglu *op, struct check *check)
{
    if (!FITS(swiglu, gate, FLOATS) || !FITS(swiglu, up, SAME_AS(op->gate)) ||
        !FITS(swiglu, y, SAME_AS(op->gate)))
        return bad_operand(check, op);
    if (!present(&op->up))
        return check_packed_gate(op, check);
    MAY_BE_IN_PLACE(swiglu, gate);
    MAY_BE_IN_PLACE(swiglu, up);
    if (unlikely(!equal_extents(&op->gate, &op->y)))
        return MISMATCH(swiglu, y, gate, "y must have the extents of gate");
    if (unlikely(!equal_extents(&op->up, &op->y)))
        return MISMATCH(swiglu, y, up, "y must have the extents of up");
    return HW_OK;
}

/* The scalars of activation and glu. */
struct function {
    int32_t kind;
    float alpha, lo, hi;
};

static enum hw_status function_check(const struct check *check, struct function f)
{
    const bool has_alpha = f.kind == HW_ACT_LEAKY_RELU || f.kind == HW_ACT_ELU;
    if (unlikely(f.kind <= 0 || f.kind >= HW_ACT_END))
        return bad_integer(check, "kind", f.kind,
                           "must be a value of enum hw_activation_kind");
    if (unlikely(!has_alpha && f.alpha != 0.0f))
        return bad_value(check, "alpha", (double)f.alpha, "must be 0 for this kind");
    if (unlikely(!finite(f.alpha)))
        return bad_value(check, "alpha", (double)f.alpha, "must be finite");
    if (f.kind == HW_ACT_CLIP)
        return likely(f.lo < f.hi) ? HW_OK
                                   : bad_value(check, "hi", (double)f.hi,
                                               "must be above lo; there is no default");
    if (unlikely(f.lo != 0.0f))
        return bad_value(check, "lo", (double)f.lo, "must be 0 for this kind");
    if (unlikely(f.hi != 0.0f))
        return bad_value(check, "hi", (double)f.hi, "must be 0 for this kind");
    return HW_OK;
}

static enum hw_status check_activation(const struct hw_activation *op, struct check *check)
{
    if (!FITS(activation, x, FLOATS) || !FITS(activation, y, SAME_AS(op->x)))
        return bad_operand(check, op);
    MAY_BE_IN_PLACE(activation, x);
    if (unlikely(!equal_extents(&op->x, &op->y)))
        return MISMATCH(activation, y, x, "y must have the extents of x");
    return function_check(check, (struct function){ op->kind, op->alpha, op->lo, op->hi });
}

/* glu has the tensors of swiglu, in the same places. */
static enum hw_status check_glu(const struct hw_glu *op, struct check *check)
{
    const struct hw_swiglu tensors = { op->gate, op->up, op->y };
    const enum hw_status status = check_swiglu(&tensors, check);
    if (unlikely(status))
        return status;
    return function_check(check, (struct function){ op->kind, op->alpha, op->lo, op->hi });
}

static enum hw_status check_add_rmsnorm(const struct hw_add_rmsnorm *op,
                                        struct check *check)
{
    if (!FITS(add_rmsnorm, residual, FLOATS) ||
        !FITS(add_rmsnorm, x, SAME_AS(op->residual)) ||
        !FITS(add_rmsnorm, weight, same_or_f32(&op->residual)) ||
        !FITS(add_rmsnorm, y, SAME_AS(op->residual)))
        return bad_operand(check, op);
    MAY_BE_IN_PLACE(add_rmsnorm, x);
    if (unlikely(op->reserved))
        return bad_integer(check, "reserved", op->reserved, NO_MEANING);
    if (unlikely(!equal_extents(&op->x, &op->residual)))
        return MISMATCH(add_rmsnorm, x, residual, "x must have the extents of residual");
    if (unlikely(!equal_extents(&op->y, &op->residual)))
        return MISMATCH(add_rmsnorm, y, residual, "y must have the extents of residual");
    if (unlikely(present(&op->weight) &&
                 (op->weight.rank != 1 || op->weight.extent[0] != cols(&op->x))))
        return MISMATCH(add_rmsnorm, weight, x, "weight must have the last extent of x");
    return eps_check(check, op->eps);
}

/* Whether the leading extents of `t`, without its last `own` axes, divide the batches of `whole`, a
 * tensor of matrices. */
static bool batches_repeat(const struct hw_tensor *t, int own,
                           const struct hw_tensor *whole)
{
    bool good = t->rank >= own && t->rank - own <= whole->rank - 2;
    for (int i = 0; i < HW_MAX_RANK - 2; i++)
        good &= divides(axis(t, own + i), axis(whole, 2 + i));
    return good;
}

/* `narrow` is [..,I,N], rows are [..,I], the table is [..,R,N]. */
#define CHECK_ROWS(name, narrow)                                                           \
    do {                                                                                   \
        if (unlikely(op->table.rank < 2 || op->narrow.rank < 2 ||                          \
                     cols(&op->table) != cols(&op->narrow)))                               \
            return MISMATCH(name, narrow, table,                                           \
                            #narrow " must be [..,I,N] and table [..,R,N]");               \
        if (unlikely(cols(&op->rows) != axis(&op->narrow, 1) ||                            \
                     !batches_repeat(&op->rows, 1, &op->narrow)))                          \
            return MISMATCH(name, rows, narrow,                                            \
                            "rows must be [..,I], with leading extents that repeat to "    \
                            "those of " #narrow);                                          \
    } while (0)

static enum hw_status check_get_rows(const struct hw_get_rows *op, struct check *check)
{
    if (!FITS(get_rows, table, FLOATS | BLOCKS) || !FITS(get_rows, rows, ROW_NUMBERS) ||
        !FITS(get_rows, y, FLOATS))
        return bad_operand(check, op);
    CHECK_ROWS(get_rows, y);
    if (unlikely(!batches_repeat(&op->table, 2, &op->y)))
        return MISMATCH(get_rows, table, y,
                        "the leading extents of table must repeat to those of y");
    return HW_OK;
}

static enum hw_status check_set_rows(const struct hw_set_rows *op, struct check *check)
{
    if (!FITS(set_rows, x, FLOATS) || !FITS(set_rows, rows, ROW_NUMBERS) ||
        !FITS(set_rows, table, FLOATS | BLOCKS))
        return bad_operand(check, op);
    CHECK_ROWS(set_rows, x);
    if (unlikely(op->table.rank != op->x.rank || axis(&op->table, 2) != axis(&op->x, 2) ||
                 axis(&op->table, 3) != axis(&op->x, 3)))
        return MISMATCH(set_rows, table, x, "table must have the leading extents of x");
    return HW_OK;
}

/* The dtypes to which a tensor can be copied: its own dtype, floats, and blocks if it has
 * floats. */
static uint32_t copies_to(const struct hw_tensor *src)
{
    const uint32_t own = 1u << src->dtype;
    return own | (own & FLOATS ? FLOATS | BLOCKS : 0) | (own & BLOCKS ? FLOATS : 0);
}

static enum hw_status check_copy(const struct hw_copy *op, struct check *check)
{
    if (!FITS(copy, src, ANY_DTYPE) || !FITS(copy, dst, copies_to(&op->src)))
        return bad_operand(check, op);
    if (unlikely(op->src.layout))
        return MISMATCH(copy, src, dst,
                        "a packed tensor cannot be copied; copy the original");
    if (unlikely(!equal_extents(&op->src, &op->dst)))
        return MISMATCH(copy, dst, src, "dst must have the extents of src");
    return HW_OK;
}

static enum hw_status check_argmax(const struct hw_argmax *op, struct check *check)
{
    if (!FITS(argmax, x, FLOATS) || !FITS(argmax, y, DTYPE(I32)))
        return bad_operand(check, op);
    const int rank = op->x.rank;
    const bool kept = op->y.rank == rank && cols(&op->y) == 1;
    bool good = kept || op->y.rank == rank - 1;
    for (int i = 0; i < rank - 1; i++)
        good &= op->y.extent[i] == op->x.extent[i];
    if (unlikely(!good))
        return MISMATCH(argmax, y, x,
                        "y must have the extents of x, with the last one dropped or 1");
    if (unlikely(cols(&op->x) == 0 && !tensor_empty(&op->y)))
        return MISMATCH(argmax, x, y, "argmax needs at least one element per row");
    return HW_OK;
}

/* Checks the bias, which has a row for each expert. c must not overlap its inputs. */
static enum hw_status check_experts(const struct hw_matmul_id *op,
                                    const struct check *check)
{
    if (unlikely(present(&op->bias) &&
                 (op->bias.rank != 2 || op->bias.extent[0] != op->b.extent[0] ||
                  op->bias.extent[1] != op->b.extent[1])))
        return MISMATCH(matmul_id, bias, b, "bias must be [E,N]");
    return HW_OK;
}

static enum hw_status check_matmul_id(const struct hw_matmul_id *op, struct check *check)
{
    const struct hw_tensor *a = &op->a, *b = &op->b, *ids = &op->ids, *c = &op->c;
    if (!FITS(matmul_id, a, FLOATS) || !FITS(matmul_id, b, FLOATS | BLOCKS) ||
        !FITS(matmul_id, ids, DTYPE(I32)) || !FITS(matmul_id, bias, FLOATS) ||
        !FITS(matmul_id, c, FLOATS))
        return bad_operand(check, op);
    if (unlikely(b->rank != 3 || a->rank != 3 || a->extent[2] != b->extent[2]))
        return MISMATCH(matmul_id, a, b, "a must be [T,U,K] or [T,1,K] and b [E,N,K]");
    if (unlikely(c->rank != 3 || c->extent[2] != b->extent[1]))
        return MISMATCH(matmul_id, c, b, "c must be [T,U,N] and b [E,N,K]");
    if (unlikely(ids->rank != 2 || ids->extent[0] != c->extent[0] ||
                 ids->extent[1] != c->extent[1]))
        return MISMATCH(matmul_id, ids, c, "ids must be [T,U] and c [T,U,N]");
    if (unlikely(a->extent[0] != c->extent[0] ||
                 (a->extent[1] != c->extent[1] && a->extent[1] != 1)))
        return MISMATCH(matmul_id, a, c, "a must be [T,U,K] or [T,1,K] and c [T,U,N]");
    return check_experts(op, check);
}

static enum hw_status check_layernorm(const struct hw_layernorm *op, struct check *check)
{
    if (!FITS(layernorm, x, FLOATS) || !FITS(layernorm, weight, same_or_f32(&op->x)) ||
        !FITS(layernorm, bias,
              present(&op->weight) ? SAME_AS(op->weight) : same_or_f32(&op->x)) ||
        !FITS(layernorm, y, SAME_AS(op->x)))
        return bad_operand(check, op);
    MAY_BE_IN_PLACE(layernorm, x);
    if (unlikely(op->reserved))
        return bad_integer(check, "reserved", op->reserved, NO_MEANING);
    if (unlikely(!equal_extents(&op->x, &op->y)))
        return MISMATCH(layernorm, y, x, "y must have the extents of x");
    if (unlikely(present(&op->weight) &&
                 (op->weight.rank != 1 || op->weight.extent[0] != cols(&op->x))))
        return MISMATCH(layernorm, weight, x, "weight must have the last extent of x");
    if (unlikely(present(&op->bias) &&
                 (op->bias.rank != 1 || op->bias.extent[0] != cols(&op->x))))
        return MISMATCH(layernorm, bias, x, "bias must have the last extent of x");
    return eps_check(check, op->eps);
}

static enum hw_status check_top_k(const struct hw_top_k *op, struct check *check)
{
    if (!FITS(top_k, x, FLOATS) || !FITS(top_k, values, SAME_AS(op->x)) ||
        !FITS(top_k, indices, DTYPE(I32)))
        return bad_operand(check, op);
    bool good = op->indices.rank == op->x.rank;
    for (int i = 1; i < HW_MAX_RANK; i++)
        good &= axis(&op->indices, i) == axis(&op->x, i);
    if (unlikely(!good || cols(&op->indices) > cols(&op->x)))
        return MISMATCH(
            top_k, indices, x,
            "indices must have the extents of x, the last one at most that of x");
    if (unlikely(cols(&op->indices) > HW_MAX_K))
        return MISMATCH(top_k, indices, x,
                        "the last extent of indices must be at most " TEXT_OF(HW_MAX_K));
    if (unlikely(present(&op->values) && !equal_extents(&op->values, &op->indices)))
        return MISMATCH(top_k, values, indices, "values must have the extents of indices");
    return HW_OK;
}

static enum hw_status check_dot(const struct hw_dot *op, struct check *check)
{
    if (!FITS(dot, a, FLOATS) || !FITS(dot, b, FLOATS) || !FITS(dot, y, FLOATS))
        return bad_operand(check, op);
    const int rank = op->a.rank > op->b.rank ? op->a.rank : op->b.rank;
    const int kept = op->y.rank == rank; /* y keeps the last extent, as 1 */
    if (unlikely(cols(&op->a) != cols(&op->b)))
        return MISMATCH(dot, a, b, "a and b must have the same last extent");
    if (unlikely(kept ? cols(&op->y) != 1 : op->y.rank != rank - 1))
        return MISMATCH(
            dot, y, a,
            "y must have the extents of a and b, with the last one dropped or 1");
    for (int i = 1; i < HW_MAX_RANK; i++) {
        const int64_t of_y = axis(&op->y, i - !kept);
        const int64_t of_a = axis(&op->a, i), of_b = axis(&op->b, i);
        if (unlikely(of_a != of_y && (of_a != 1 || of_b != of_y)))
            return MISMATCH(dot, a, y, "the outer extents of a do not broadcast to y");
        if (unlikely(of_b != of_y && of_b != 1))
            return MISMATCH(dot, b, y, "the outer extents of b do not broadcast to y");
    }
    return HW_OK;
}

/* The number of positions of a kernel along one axis; -1 if it overflows. */
static int64_t places(int64_t extent, int64_t kernel, int64_t stride, int64_t pad,
                      int64_t dilation)
{
    int64_t padded, reach;
    if (__builtin_add_overflow(extent, 2 * pad, &padded) ||
        __builtin_mul_overflow(kernel - 1, dilation, &reach))
        return -1;
    return padded > reach ? (padded - reach - 1) / stride + 1 : 0;
}

static int64_t or_one(int32_t value)
{
    return value ? value : 1;
}

static enum hw_status check_steps(const struct hw_conv2d *op, const struct check *check)
{
    const struct {
        const char *field;
        int32_t value;
    } steps[] = { { "stride_h", op->stride_h },     { "stride_w", op->stride_w },
                  { "pad_h", op->pad_h },           { "pad_w", op->pad_w },
                  { "dilation_h", op->dilation_h }, { "dilation_w", op->dilation_w },
                  { "groups", op->groups } };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (unlikely(steps[i].value < 0))
            return bad_integer(check, steps[i].field, steps[i].value,
                               "must not be negative");
    if (unlikely(op->reserved))
        return bad_integer(check, "reserved", op->reserved, NO_MEANING);
    if (unlikely(axis(&op->x, 2) % or_one(op->groups) ||
                 axis(&op->weight, 3) % or_one(op->groups)))
        return bad_integer(check, "groups", op->groups,
                           "must divide the channels of x and of y");
    return HW_OK;
}

static enum hw_status check_planes(const struct hw_conv2d *op, const struct check *check)
{
    const struct hw_tensor *x = &op->x, *weight = &op->weight, *y = &op->y;
    if (unlikely(x->rank != 4 || y->rank != 4 || x->extent[0] != y->extent[0]))
        return MISMATCH(conv2d, x, y, "x must be [B,Cin,H,W] and y [B,Cout,OH,OW]");
    if (unlikely(weight->rank != 4 || weight->extent[0] != y->extent[1] ||
                 weight->extent[2] < 1 || weight->extent[3] < 1))
        return MISMATCH(conv2d, weight, y,
                        "weight must be [Cout,Cin/groups,KH,KW], KH and KW at least 1");
    const enum hw_status status = check_steps(op, check);
    if (unlikely(status))
        return status;
    if (unlikely(x->extent[1] / or_one(op->groups) != weight->extent[1]))
        return MISMATCH(conv2d, weight, x, "weight must be [Cout,Cin/groups,KH,KW]");
    if (unlikely(places(x->extent[2], weight->extent[2], or_one(op->stride_h), op->pad_h,
                        or_one(op->dilation_h)) != y->extent[2] ||
                 places(x->extent[3], weight->extent[3], or_one(op->stride_w), op->pad_w,
                        or_one(op->dilation_w)) != y->extent[3]))
        return MISMATCH(conv2d, y, x,
                        "the last two extents of y do not follow from x and weight, "
                        "strides, pads and dilations");
    if (unlikely(present(&op->bias) &&
                 (op->bias.rank != 1 || op->bias.extent[0] != y->extent[1])))
        return MISMATCH(conv2d, bias, y, "bias must be [Cout]");
    return HW_OK;
}

static enum hw_status check_conv2d(const struct hw_conv2d *op, struct check *check)
{
    if (!FITS(conv2d, x, FLOATS) || !FITS(conv2d, weight, FLOATS) ||
        !FITS(conv2d, bias, FLOATS) || !FITS(conv2d, y, FLOATS))
        return bad_operand(check, op);
    return check_planes(op, check);
}

/* ---- the table ---- */

/* Cold, so that they are compiled for size: repeated calls need no check (seen.h). */
#define X(NAME, name)                                                                      \
    static __attribute__((cold)) enum hw_status run_##name(const void *args,               \
                                                           struct check *check)            \
    {                                                                                      \
        return check_##name(args, check);                                                  \
    }
HW_OPS(X)
#undef X

static enum hw_status (*const checks[HW_OP_COUNT])(const void *args,
                                                   struct check *check) = {
#define X(NAME, name) run_##name,
    HW_OPS(X)
#undef X
};

/* ---- outputs and other operands ---- */

/* Whether output `y` shares bytes with operand `x` without being in place. */
static bool overlaps(const struct check *check, const struct hw_tensor *operands,
                     uint32_t y, uint32_t x)
{
    const struct byte_range *a = &check->bytes[y], *b = &check->bytes[x];
    if (likely(x == y || !share_space(a, b)))
        return false;
    const struct hw_tensor *out = &operands[y], *other = &operands[x];
    if (may_be_same(check, y, x) && a->begin == b->begin && out->dtype == other->dtype &&
        equal_extents(out, other) && equal_strides(out, other))
        return false;
    return !interleaved(out, a, other, b);
}

/* No output may share bytes with another operand, except in place. */
static enum hw_status check_overlaps(const void *args, const struct check *check)
{
    const struct op_row *row = &op_rows[check->op];
    for (uint32_t outputs = row->written; outputs; outputs &= outputs - 1) {
        const uint32_t y = (uint32_t)__builtin_ctz(outputs);
        for (uint32_t x = 0; x < row->operand_count; x++)
            if (unlikely(overlaps(check, args, y, x)))
                return bad_overlap(check, y, x);
    }
    return HW_OK;
}

enum hw_status check_call(const void *args, struct check *check)
{
    const enum hw_status status = checks[check->op](args, check);
    return unlikely(status) ? status : check_overlaps(args, check);
}
