/* SPDX-License-Identifier: MIT */
/* check.c - the full check of each op's operands. Ordinary calls skip it: see ordinary.h. A
 * check is pure: it reads the op's struct and returns HW_OK, or HW_INVALID with the field
 * and its value in the message. An op of HW_OPS without a check_<op> does not compile. */
#include "run/check.h"

#include "run/operand.h"

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
#define DISJOINT(name, y, x)                                                               \
    operands_disjoint(check, &op->y, OPERAND_##name##_##y, &op->x, OPERAND_##name##_##x)
#define DISJOINT_OR_SAME(name, y, x)                                                       \
    operands_disjoint_or_same(check, &op->y, OPERAND_##name##_##y, &op->x,                 \
                              OPERAND_##name##_##x)
#define MISMATCH(name, a, b, rule)                                                         \
    bad_shapes(check, op, OPERAND_##name##_##a, OPERAND_##name##_##b, rule)
#define OVERLAP(name, y, x, rule)                                                          \
    bad_overlap(check, OPERAND_##name##_##y, OPERAND_##name##_##x, rule)

#define SAME_AS(tensor) (1u << (tensor).dtype)

#define NO_MEANING "must be 0: it is reserved"
static const char not_here[] = "this op does not support in-place operation";
static const char in_place[] =
    "operands must be identical (same address and layout) or disjoint";
static const char read_too[] = "an output must not overlap another input";

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

/* Whether `t` broadcasts to the extents of `whole`, aligned at the innermost axis. */
static bool broadcasts(const struct hw_tensor *t, const struct hw_tensor *whole)
{
    bool good = t->rank <= whole->rank;
    for (int i = 0; i < HW_MAX_RANK; i++)
        good &= axis(t, i) == axis(whole, i) || axis(t, i) == 1;
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

/* Leading axes are batches: those of a and b broadcast to those of c. */
static bool batches_agree(const struct hw_tensor *a, const struct hw_tensor *b,
                          const struct hw_tensor *c)
{
    bool good = c->rank == (a->rank > b->rank ? a->rank : b->rank);
    for (int i = 2; i < HW_MAX_RANK; i++) {
        const int64_t of_a = axis(a, i), of_b = axis(b, i), of_c = axis(c, i);
        good &= ((of_a == of_c) & ((of_b == of_c) | (of_b == 1))) |
                ((of_b == of_c) & (of_a == 1));
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
        return MISMATCH(matmul, a, b, "the leading extents do not broadcast to those of c");
    if (unlikely(present(&op->bias) && (op->bias.rank != 1 || op->bias.extent[0] != n)))
        return MISMATCH(matmul, bias, c, "bias must be [N]");
    if (unlikely(!DISJOINT(matmul, c, a)))
        return OVERLAP(matmul, c, a, not_here);
    if (unlikely(!DISJOINT(matmul, c, b)))
        return OVERLAP(matmul, c, b, not_here);
    if (unlikely(!DISJOINT(matmul, c, bias)))
        return OVERLAP(matmul, c, bias, not_here);
    return HW_OK;
}

/* eps has no default: a zero is a forgotten field. */
static enum hw_status eps_check(const struct check *check, float eps)
{
    if (likely(eps > 0.0f && finite(eps)))
        return HW_OK;
    return bad_value(check, "eps", (double)eps, "must be above 0; there is no default");
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
    if (unlikely(op->reserved))
        return bad_integer(check, "reserved", op->reserved, NO_MEANING);
    if (unlikely(!equal_extents(&op->x, &op->y)))
        return MISMATCH(rmsnorm, y, x, "y must have the extents of x");
    if (unlikely(present(&op->weight) &&
                 (op->weight.rank != 1 || op->weight.extent[0] != cols(&op->x))))
        return MISMATCH(rmsnorm, weight, x, "weight must have the last extent of x");
    if (unlikely(!DISJOINT_OR_SAME(rmsnorm, y, x)))
        return OVERLAP(rmsnorm, y, x, in_place);
    if (unlikely(!DISJOINT(rmsnorm, y, weight)))
        return OVERLAP(rmsnorm, y, weight, read_too);
    return eps_check(check, op->eps);
}

static enum hw_status check_softmax(const struct hw_softmax *op, struct check *check)
{
    if (!FITS(softmax, x, FLOATS) || !FITS(softmax, mask, same_or_f32(&op->x)) ||
        !FITS(softmax, y, SAME_AS(op->x)))
        return bad_operand(check, op);
    if (unlikely(!equal_extents(&op->x, &op->y)))
        return MISMATCH(softmax, y, x, "y must have the extents of x");
    if (unlikely(present(&op->mask) && !broadcasts(&op->mask, &op->x)))
        return MISMATCH(softmax, mask, x, "mask does not broadcast to x");
    if (unlikely(!DISJOINT_OR_SAME(softmax, y, x)))
        return OVERLAP(softmax, y, x, in_place);
    if (unlikely(!DISJOINT(softmax, y, mask)))
        return OVERLAP(softmax, y, mask, read_too);
    if (unlikely(!finite(op->scale)))
        return bad_value(check, "scale", (double)op->scale, "must be finite");
    return flag_check(check, "log", op->log);
}

static enum hw_status check_silu(const struct hw_silu *op, struct check *check)
{
    if (!FITS(silu, x, FLOATS) || !FITS(silu, y, SAME_AS(op->x)))
        return bad_operand(check, op);
    if (unlikely(!equal_extents(&op->x, &op->y)))
        return MISMATCH(silu, y, x, "y must have the extents of x");
    if (unlikely(!DISJOINT_OR_SAME(silu, y, x)))
        return OVERLAP(silu, y, x, in_place);
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
    return flag_check(check, "interleaved", op->interleaved);
}

static enum hw_status check_rope(const struct hw_rope *op, struct check *check)
{
    if (!FITS(rope, x, FLOATS) || !FITS(rope, positions, DTYPE(I32)) ||
        !FITS(rope, factors, DTYPE(F32)) || !FITS(rope, y, SAME_AS(op->x)))
        return bad_operand(check, op);
    if (unlikely(!equal_extents(&op->x, &op->y)))
        return MISMATCH(rope, y, x, "y must have the extents of x");
    if (unlikely(op->x.rank < 3))
        return MISMATCH(rope, x, y, "x must be [T,H,D] or [B,T,H,D]");
    if (unlikely(present(&op->positions) &&
                 (op->positions.rank != 1 || op->positions.extent[0] != axis(&op->x, 2))))
        return MISMATCH(rope, positions, x, "positions must be [T]");
    if (unlikely(!DISJOINT_OR_SAME(rope, y, x)))
        return OVERLAP(rope, y, x, in_place);
    if (unlikely(!DISJOINT(rope, y, positions)))
        return OVERLAP(rope, y, positions, read_too);
    if (unlikely(!DISJOINT(rope, y, factors)))
        return OVERLAP(rope, y, factors, read_too);
    return check_angles(op, check);
}

#define MAX_HEAD 256

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
    if (unlikely(axis(q, 0) > MAX_HEAD || axis(v, 0) > MAX_HEAD))
        return MISMATCH(attention, q, v, "D and Dv must be at most 256");
    if (unlikely(present(&op->bias) &&
                 !((axis(&op->bias, 0) == axis(k, 2)) &&
                   (axis(&op->bias, 1) == axis(q, 2) || axis(&op->bias, 1) == 1) &&
                   (axis(&op->bias, 2) == axis(q, 1) || axis(&op->bias, 2) == 1) &&
                   (axis(&op->bias, 3) == axis(q, 3) || axis(&op->bias, 3) == 1))))
        return MISMATCH(attention, bias, k, "bias must be [B|1,Hq|1,Tq|1,Tmax]");
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
    if (!FITS(attention, q, FLOATS) || !FITS(attention, k, FLOATS | DTYPE(Q8_0)) ||
        !FITS(attention, v, SAME_AS(op->k)) ||
        !FITS(attention, bias, same_or_f32(&op->q)) ||
        !FITS(attention, lengths, DTYPE(I32)) || !FITS(attention, y, SAME_AS(op->q)))
        return bad_operand(check, op);
    if (unlikely(op->reserved))
        return bad_integer(check, "reserved", op->reserved, NO_MEANING);
    enum hw_status status = check_heads(op, check);
    if (unlikely(status))
        return status;
    if (unlikely(!DISJOINT(attention, y, q)))
        return OVERLAP(attention, y, q, not_here);
    if (unlikely(!DISJOINT(attention, y, k)))
        return OVERLAP(attention, y, k, not_here);
    if (unlikely(!DISJOINT(attention, y, v)))
        return OVERLAP(attention, y, v, not_here);
    if (unlikely(!DISJOINT(attention, y, bias)))
        return OVERLAP(attention, y, bias, read_too);
    if (unlikely(!DISJOINT(attention, y, lengths)))
        return OVERLAP(attention, y, lengths, read_too);
    return check_scores(op, check);
}

static enum hw_status check_add(const struct hw_add *op, struct check *check)
{
    if (!FITS(add, a, FLOATS) || !FITS(add, b, SAME_AS(op->a)) ||
        !FITS(add, y, SAME_AS(op->a)))
        return bad_operand(check, op);
    if (unlikely(!broadcasts(&op->a, &op->y)))
        return MISMATCH(add, a, y, "a does not broadcast to y");
    if (unlikely(!broadcasts(&op->b, &op->y)))
        return MISMATCH(add, b, y, "b does not broadcast to y");
    if (unlikely(!DISJOINT_OR_SAME(add, y, a)))
        return OVERLAP(add, y, a, in_place);
    if (unlikely(!DISJOINT_OR_SAME(add, y, b)))
        return OVERLAP(add, y, b, in_place);
    return HW_OK;
}

static enum hw_status check_mul(const struct hw_mul *op, struct check *check)
{
    if (!FITS(mul, a, FLOATS) || !FITS(mul, b, SAME_AS(op->a)) ||
        !FITS(mul, y, SAME_AS(op->a)))
        return bad_operand(check, op);
    if (unlikely(!broadcasts(&op->a, &op->y)))
        return MISMATCH(mul, a, y, "a does not broadcast to y");
    if (unlikely(!broadcasts(&op->b, &op->y)))
        return MISMATCH(mul, b, y, "b does not broadcast to y");
    if (unlikely(!DISJOINT_OR_SAME(mul, y, a)))
        return OVERLAP(mul, y, a, in_place);
    if (unlikely(!DISJOINT_OR_SAME(mul, y, b)))
        return OVERLAP(mul, y, b, in_place);
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
    if (unlikely(!DISJOINT(swiglu, y, gate)))
        return OVERLAP(swiglu, y, gate,
                       "without up, this op does not support in-place operation");
    return HW_OK;
}

static enum hw_status check_swiglu(const struct hw_swiglu *op, struct check *check)
{
    if (!FITS(swiglu, gate, FLOATS) || !FITS(swiglu, up, SAME_AS(op->gate)) ||
        !FITS(swiglu, y, SAME_AS(op->gate)))
        return bad_operand(check, op);
    if (!present(&op->up))
        return check_packed_gate(op, check);
    if (unlikely(!equal_extents(&op->gate, &op->y)))
        return MISMATCH(swiglu, y, gate, "y must have the extents of gate");
    if (unlikely(!equal_extents(&op->up, &op->y)))
        return MISMATCH(swiglu, y, up, "y must have the extents of up");
    if (unlikely(!DISJOINT_OR_SAME(swiglu, y, gate)))
        return OVERLAP(swiglu, y, gate, in_place);
    if (unlikely(!DISJOINT_OR_SAME(swiglu, y, up)))
        return OVERLAP(swiglu, y, up, in_place);
    return HW_OK;
}

static enum hw_status check_add_rmsnorm(const struct hw_add_rmsnorm *op,
                                        struct check *check)
{
    if (!FITS(add_rmsnorm, residual, FLOATS) ||
        !FITS(add_rmsnorm, x, SAME_AS(op->residual)) ||
        !FITS(add_rmsnorm, weight, same_or_f32(&op->residual)) ||
        !FITS(add_rmsnorm, y, SAME_AS(op->residual)))
        return bad_operand(check, op);
    if (unlikely(op->reserved))
        return bad_integer(check, "reserved", op->reserved, NO_MEANING);
    if (unlikely(!equal_extents(&op->x, &op->residual)))
        return MISMATCH(add_rmsnorm, x, residual, "x must have the extents of residual");
    if (unlikely(!equal_extents(&op->y, &op->residual)))
        return MISMATCH(add_rmsnorm, y, residual, "y must have the extents of residual");
    if (unlikely(present(&op->weight) &&
                 (op->weight.rank != 1 || op->weight.extent[0] != cols(&op->x))))
        return MISMATCH(add_rmsnorm, weight, x, "weight must have the last extent of x");
    if (unlikely(!DISJOINT(add_rmsnorm, residual, x)))
        return OVERLAP(add_rmsnorm, residual, x, read_too);
    if (unlikely(!DISJOINT(add_rmsnorm, residual, weight)))
        return OVERLAP(add_rmsnorm, residual, weight, read_too);
    if (unlikely(!DISJOINT(add_rmsnorm, y, residual)))
        return OVERLAP(add_rmsnorm, y, residual, "both are written");
    if (unlikely(!DISJOINT_OR_SAME(add_rmsnorm, y, x)))
        return OVERLAP(add_rmsnorm, y, x, in_place);
    if (unlikely(!DISJOINT(add_rmsnorm, y, weight)))
        return OVERLAP(add_rmsnorm, y, weight, read_too);
    return eps_check(check, op->eps);
}

/* `narrow` is [I,N], rows are [I], the table [R,N]. */
#define CHECK_ROWS(name, narrow)                                                           \
    do {                                                                                   \
        if (unlikely(op->table.rank != 2 || op->narrow.rank != 2 ||                        \
                     op->table.extent[1] != op->narrow.extent[1]))                         \
            return MISMATCH(name, narrow, table,                                           \
                            #narrow " must be [I,N] and table [R,N]");                     \
        if (unlikely(op->rows.rank != 1 || op->rows.extent[0] != op->narrow.extent[0]))    \
            return MISMATCH(name, rows, narrow, "rows must be [I]");                       \
    } while (0)

static enum hw_status check_get_rows(const struct hw_get_rows *op, struct check *check)
{
    if (!FITS(get_rows, table, FLOATS | BLOCKS) || !FITS(get_rows, rows, DTYPE(I32)) ||
        !FITS(get_rows, y, FLOATS))
        return bad_operand(check, op);
    CHECK_ROWS(get_rows, y);
    if (unlikely(!DISJOINT(get_rows, y, table)))
        return OVERLAP(get_rows, y, table, not_here);
    if (unlikely(!DISJOINT(get_rows, y, rows)))
        return OVERLAP(get_rows, y, rows, read_too);
    return HW_OK;
}

static enum hw_status check_set_rows(const struct hw_set_rows *op, struct check *check)
{
    if (!FITS(set_rows, x, FLOATS) || !FITS(set_rows, rows, DTYPE(I32)) ||
        !FITS(set_rows, table, FLOATS | DTYPE(Q8_0)))
        return bad_operand(check, op);
    CHECK_ROWS(set_rows, x);
    if (unlikely(!DISJOINT(set_rows, table, x)))
        return OVERLAP(set_rows, table, x, not_here);
    if (unlikely(!DISJOINT(set_rows, table, rows)))
        return OVERLAP(set_rows, table, rows, read_too);
    return HW_OK;
}

/* Equal dtypes are copied. Floats are converted to each other and to blocks, blocks to
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
    if (unlikely(!DISJOINT(copy, dst, src)))
        return OVERLAP(copy, dst, src, not_here);
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
    if (unlikely(!DISJOINT(argmax, y, x)))
        return OVERLAP(argmax, y, x, not_here);
    return HW_OK;
}

/* ---- the table ---- */

#define X(NAME, name)                                                                      \
    static enum hw_status run_##name(const void *args, struct check *check)                \
    {                                                                                      \
        return check_##name(args, check);                                                  \
    }
HW_OPS(X)
#undef X

check_fn *const op_checks[HW_OP_COUNT] = {
#define X(NAME, name) run_##name,
    HW_OPS(X)
#undef X
};
