/* SPDX-License-Identifier: MIT */
/* check.c - the full check of each op's operands. A call like an earlier one skips it: see
 * seen.h. A check is pure: it reads the op's struct and returns HW_OK, or HW_INVALID with the
 * field and its value in the message. Only use_fault() and overlaps() look at addresses. An op of
 * HW_OPS without a row in the table at the end does not compile. */
#include "call/check.h"

#include "base/likely.h"
#include "base/message.h"
#include "call/operand.h"
#include "memory/dtype.h"
#include "route/support.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- messages ---- */

static __attribute__((cold)) bool bad_operand(const struct check *check, uint32_t index,
                                              const char *why)
{
    const struct operand_row *operand = &op_rows[check->op].operands[index];
    const struct hw_tensor *t = operand_at(check->args, operand);
    const char *op = hw_op_name(check->op);
    char text[DESCRIBE_SIZE];
    if (t->rank == -1) /* from hw_host_1d() etc., which has set the reason as the message */
        fail_in(HW_INVALID, "%s: %s could not be made: ", op, operand->name);
    else if (t->dtype == HW_NONE && t->rank == 0)
        fail(HW_INVALID, "%s: %s is missing (dtype 0)", op, operand->name);
    else
        fail(HW_INVALID, "%s: %s (%s): %s", op, operand->name, describe(t, text), why);
    return false;
}

static const char *name_of(const struct check *check, const struct hw_tensor *operand)
{
    const struct hw_tensor *first = check->args;
    return op_rows[check->op].operands[operand - first].name;
}

static __attribute__((cold, format(printf, 4, 5))) bool
bad_shapes(const struct check *check, const struct hw_tensor *a, const struct hw_tensor *b,
           const char *rule, ...)
{
    char text_of_a[DESCRIBE_SIZE], text_of_b[DESCRIBE_SIZE], text[256];
    va_list arguments;
    va_start(arguments, rule);
    vsnprintf(text, sizeof text, rule, arguments);
    va_end(arguments);
    fail(HW_INVALID, "%s: %s is %s, %s is %s: %s", hw_op_name(check->op), name_of(check, a),
         describe(a, text_of_a), name_of(check, b), describe(b, text_of_b), text);
    return false;
}

/* The value of a field that is not an operand. */
static double value_of(const struct check *check, const struct operand_row *field)
{
    const char *at = (const char *)check->args + field->offset;
    switch (field->type) {
    case HW_FIELD_F32:
        return (double)*(const float *)(const void *)at;
    case HW_FIELD_I32:
        return *(const int32_t *)(const void *)at;
    case HW_FIELD_I64:
        return (double)*(const int64_t *)(const void *)at;
    default:
        return *(const uint32_t *)(const void *)at;
    }
}

static __attribute__((cold)) bool
bad_field(const struct check *check, const struct operand_row *field, const char *rule)
{
    fail(HW_INVALID, "%s: %s is %.7g: %s", hw_op_name(check->op), field->name,
         value_of(check, field), rule);
    return false;
}

/* ---- rules: whether one holds; if not, with a message ---- */

/* Operands `a` and `b` agree. */
static bool agree(const struct check *check, const struct hw_tensor *a,
                  const struct hw_tensor *b, bool good, const char *rule)
{
    return likely(good) || bad_shapes(check, a, b, "%s", rule);
}

/* The field, which is not an operand, is valid. */
static bool valid(const struct check *check, const char *name, bool good, const char *rule)
{
    const struct op_row *row = &op_rows[check->op];
    const struct operand_row *field = row->operands + row->operand_count;
    if (likely(good))
        return true;
    while (strcmp(field->name, name) != 0)
        field++;
    return bad_field(check, field, rule);
}

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

static bool present(const struct hw_tensor *t)
{
    return t->dtype != HW_NONE;
}

/* Usually this needs no division. */
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

/* Whether `a` and `b` have the same extents, except the innermost. */
static bool same_rows(const struct hw_tensor *a, const struct hw_tensor *b)
{
    bool good = a->rank == b->rank;
    for (int i = 1; i < HW_MAX_RANK; i++)
        good &= axis(a, i) == axis(b, i);
    return good;
}

/* Operand `a` has the extents of `b`. */
static bool same(const struct check *check, const struct hw_tensor *a,
                 const struct hw_tensor *b)
{
    return likely(equal_extents(a, b)) ||
           bad_shapes(check, a, b, "%s must have the extents of %s", name_of(check, a),
                      name_of(check, b));
}

/* Operand `t` is absent or [length], which follows from another operand. */
static bool vector(const struct check *check, const struct hw_tensor *t, int64_t length,
                   const struct hw_tensor *other)
{
    return likely(!present(t) || (t->rank == 1 && t->extent[0] == length)) ||
           bad_shapes(check, t, other, "%s must be [%" PRId64 "]", name_of(check, t),
                      length);
}

/* ---- the rules of an op that the table does not have, in the order of HW_OPS ---- */

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

static bool check_matmul(const struct check *check)
{
    const struct hw_matmul *op = check->args;
    const struct hw_tensor *a = &op->a, *b = &op->b, *c = &op->c;
    const int m = op->transpose_a ? 0 : 1, n = op->transpose_b ? 1 : 0;
    return agree(check, a, c, a->rank >= 2, "the rank of a must be 2 to 4") &&
           agree(check, b, c, b->rank >= 2, "the rank of b must be 2 to 4") &&
           valid(check, "transpose_b", op->transpose_b || !(BLOCKS >> b->dtype & 1),
                 "must be 1, because blocks are stored as [N,K]") &&
           agree(check, a, b, axis(a, 1 - m) == axis(b, 1 - n), "they differ in K") &&
           agree(check, a, c, c->rank >= 2 && axis(c, 1) == axis(a, m),
                 "they differ in M") &&
           agree(check, b, c, axis(c, 0) == axis(b, n), "they differ in N") &&
           agree(check, a, b, batches_agree(a, b, c),
                 "the leading extents must be those of c, or divide them") &&
           vector(check, &op->bias, axis(b, n), c);
}

/* Operand `t` has one element for each head of x, which is [..,H,T,cols]; or it is absent. */
static bool per_head(const struct check *check, const struct hw_tensor *t,
                     const struct hw_tensor *x)
{
    return agree(check, t, x, !present(t) || x->rank > 2, "x must be [..,H,T,cols]") &&
           vector(check, t, axis(x, 2), x);
}

static bool check_softmax(const struct check *check)
{
    const struct hw_softmax *op = check->args;
    const struct hw_tensor *x = &op->x, *mask = &op->mask;
    return agree(check, mask, x,
                 !present(mask) ||
                     (repeats(mask, x) && (cols(mask) == cols(x) || cols(mask) == 1)),
                 "the extents of mask do not repeat to those of x") &&
           agree(check, &op->slopes, x, !present(&op->slopes) || present(mask),
                 "slopes are factors of the mask, which is absent") &&
           per_head(check, &op->slopes, x) && per_head(check, &op->sinks, x);
}

/* The scalars of YaRN. Zero is the default of each. */
static bool check_yarn(const struct check *check)
{
    const struct hw_rope *op = check->args;
    const bool yarn = op->yarn != 0.0f;
    const float fast = op->beta_fast != 0.0f ? op->beta_fast : 32.0f,
                slow = op->beta_slow != 0.0f ? op->beta_slow : 1.0f;
    return valid(check, "yarn", op->yarn >= 0.0f && op->yarn <= 1.0f, "must be 0 to 1") &&
           valid(check, "beta_slow", slow > 0.0f, "must be above 0, or 0 for 1") &&
           valid(check, "beta_fast", fast >= slow,
                 "must be at least beta_slow, or 0 for 32") &&
           valid(check, "context", !yarn || op->context > 0, "must be above 0 with yarn") &&
           valid(check, "scale", !yarn || op->scale >= 0.0f, "must be above 0 with yarn") &&
           valid(check, "theta", !yarn || op->theta == 0.0f || op->theta > 1.0f,
                 "must be above 1 with yarn");
}

static bool check_rope(const struct check *check)
{
    const struct hw_rope *op = check->args;
    const struct hw_tensor *x = &op->x;
    const int64_t d = cols(x), dims = op->dims ? op->dims : d;
    int64_t last;
    return agree(check, x, &op->y, x->rank >= 3, "x must be [T,H,D] or [B,T,H,D]") &&
           vector(check, &op->positions, axis(x, 2), x) &&
           valid(check, "dims", dims >= 0 && dims <= d && dims % 2 == 0,
                 "must be even, and at most the last extent of x") &&
           valid(check, "theta", op->theta >= 0.0f, "must be above 0, or 0 for 10000") &&
           valid(check, "start", !__builtin_add_overflow(op->start, axis(x, 2), &last),
                 "the last position overflows 63 bits") &&
           vector(check, &op->factors, dims / 2, x) && check_yarn(check);
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

static bool check_heads(const struct check *check)
{
    const struct hw_attention *op = check->args;
    const struct hw_tensor *q = &op->q, *k = &op->k, *v = &op->v, *y = &op->y;
    return agree(check, q, k, q->rank >= 3, "q must be [B,Tq,Hq,D] or [Tq,Hq,D]") &&
           agree(check, k, q, k->rank == q->rank && axis(k, 3) == axis(q, 3),
                 "k must be [B,Tmax,Hkv,D] with the B of q") &&
           agree(check, v, q, v->rank == q->rank && axis(v, 3) == axis(q, 3),
                 "v must be [B,Tmax,Hkv,Dv] with the B of q") &&
           agree(check, k, q, axis(k, 0) == axis(q, 0), "they differ in D") &&
           agree(check, v, k, axis(v, 1) == axis(k, 1) && axis(v, 2) == axis(k, 2),
                 "they differ in Tmax or Hkv") &&
           agree(check, q, k, axis(k, 1) ? axis(q, 1) % axis(k, 1) == 0 : axis(q, 1) == 0,
                 "Hq is not a multiple of Hkv") &&
           agree(check, y, v, same_rows(y, q) && axis(y, 0) == axis(v, 0),
                 "y must be [B,Tq,Hq,Dv]") &&
           agree(check, q, v, axis(q, 0) <= HW_MAX_HEAD && axis(v, 0) <= HW_MAX_HEAD,
                 "D and Dv must be at most " TEXT_OF(HW_MAX_HEAD)) &&
           agree(check, &op->bias, k, bias_fits(op),
                 "bias must be [B,Hq,Tq,Tmax], where B, Hq, Tq may be divisors") &&
           vector(check, &op->slopes, axis(q, 1), q) &&
           vector(check, &op->sinks, axis(q, 1), q) &&
           vector(check, &op->lengths, axis(q, 3), q);
}

static bool check_attention(const struct check *check)
{
    const struct hw_attention *op = check->args;
    return check_heads(check) && valid(check, "length", op->length <= axis(&op->k, 2),
                                       "must be 0 (for Tmax) to Tmax");
}

/* Without up, gate has both in one tensor, [..,2F]. */
static bool check_gates(const struct check *check, const struct hw_tensor *gate,
                        const struct hw_tensor *up, const struct hw_tensor *y)
{
    if (!present(up))
        return agree(check, gate, y,
                     same_rows(gate, y) && cols(gate) % 2 == 0 && cols(gate) / 2 == cols(y),
                     "without up, gate must be [..,2F] and y [..,F]");
    return same(check, y, gate) && same(check, y, up);
}

static bool check_swiglu(const struct check *check)
{
    const struct hw_swiglu *op = check->args;
    return check_gates(check, &op->gate, &op->up, &op->y);
}

/* The scalars of activation and glu. */
static bool check_function(const struct check *check, int32_t kind, float alpha, float lo,
                           float hi)
{
    const bool clips = kind == HW_ACT_CLIP,
               has_alpha = kind == HW_ACT_LEAKY_RELU || kind == HW_ACT_ELU;
    return valid(check, "kind", kind > 0 && kind < HW_ACT_END,
                 "must be a value of enum hw_activation_kind") &&
           valid(check, "alpha", has_alpha || alpha == 0.0f, "must be 0 for this kind") &&
           valid(check, "lo", clips || lo == 0.0f, "must be 0 for this kind") &&
           valid(check, "hi", clips || hi == 0.0f, "must be 0 for this kind") &&
           valid(check, "hi", !clips || lo < hi, "must be above lo; there is no default");
}

static bool check_activation(const struct check *check)
{
    const struct hw_activation *op = check->args;
    return check_function(check, op->kind, op->alpha, op->lo, op->hi);
}

static bool check_glu(const struct check *check)
{
    const struct hw_glu *op = check->args;
    return check_gates(check, &op->gate, &op->up, &op->y) &&
           check_function(check, op->kind, op->alpha, op->lo, op->hi);
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

/* `chosen` is [..,I,N]. */
static bool check_rows(const struct check *check, const struct hw_tensor *table,
                       const struct hw_tensor *rows, const struct hw_tensor *chosen)
{
    const char *name = name_of(check, chosen);
    if (unlikely(table->rank < 2 || chosen->rank < 2 || cols(table) != cols(chosen)))
        return bad_shapes(check, chosen, table, "%s must be [..,I,N] and table [..,R,N]",
                          name);
    if (unlikely(cols(rows) != axis(chosen, 1) || !batches_repeat(rows, 1, chosen)))
        return bad_shapes(check, rows, chosen,
                          "rows must be [..,I], with leading extents that repeat to those "
                          "of %s",
                          name);
    return true;
}

static bool check_get_rows(const struct check *check)
{
    const struct hw_get_rows *op = check->args;
    return check_rows(check, &op->table, &op->rows, &op->y) &&
           agree(check, &op->table, &op->y, batches_repeat(&op->table, 2, &op->y),
                 "the leading extents of table must repeat to those of y");
}

static bool check_set_rows(const struct check *check)
{
    const struct hw_set_rows *op = check->args;
    const struct hw_tensor *x = &op->x, *table = &op->table;
    return check_rows(check, table, &op->rows, x) &&
           agree(check, table, x,
                 table->rank == x->rank && axis(table, 2) == axis(x, 2) &&
                     axis(table, 3) == axis(x, 3),
                 "table must have the leading extents of x");
}

/* Each dtype is copied to itself, and floats and blocks to floats and from them. */
static bool check_copy(const struct check *check)
{
    const struct hw_copy *op = check->args;
    const uint32_t src = 1u << op->src.dtype, dst = 1u << op->dst.dtype;
    const bool converts = (src & FLOATS && dst & (FLOATS | BLOCKS)) ||
                          (src & BLOCKS && dst & FLOATS);
    return agree(check, &op->src, &op->dst, src == dst || converts,
                 "one must have floats, and the other floats or blocks, if their dtypes "
                 "differ") &&
           agree(check, &op->src, &op->dst, !op->src.layout,
                 "a packed tensor cannot be copied; copy the original");
}

static bool check_argmax(const struct check *check)
{
    const struct hw_argmax *op = check->args;
    const struct hw_tensor *x = &op->x, *y = &op->y;
    const bool kept = y->rank == x->rank && cols(y) == 1;
    bool good = kept || y->rank == x->rank - 1;
    for (int i = 0; i < x->rank - 1; i++)
        good &= y->extent[i] == x->extent[i];
    return agree(check, y, x, good,
                 "y must have the extents of x, with the last one dropped or 1") &&
           agree(check, x, y, cols(x) || tensor_empty(y),
                 "argmax needs at least one element per row");
}

static bool check_matmul_id(const struct check *check)
{
    const struct hw_matmul_id *op = check->args;
    const struct hw_tensor *a = &op->a, *b = &op->b, *ids = &op->ids, *c = &op->c,
                           *bias = &op->bias;
    return agree(check, a, b, b->rank == 3 && a->rank == 3 && axis(a, 0) == axis(b, 0),
                 "a must be [T,U,K] or [T,1,K] and b [E,N,K]") &&
           agree(check, c, b, c->rank == 3 && axis(c, 0) == axis(b, 1),
                 "c must be [T,U,N] and b [E,N,K]") &&
           agree(check, ids, c,
                 ids->rank == 2 && axis(ids, 1) == axis(c, 2) && axis(ids, 0) == axis(c, 1),
                 "ids must be [T,U] and c [T,U,N]") &&
           agree(check, a, c,
                 axis(a, 2) == axis(c, 2) && (axis(a, 1) == axis(c, 1) || axis(a, 1) == 1),
                 "a must be [T,U,K] or [T,1,K] and c [T,U,N]") &&
           agree(check, bias, b,
                 !present(bias) || (bias->rank == 2 && axis(bias, 1) == axis(b, 2) &&
                                    axis(bias, 0) == axis(b, 1)),
                 "bias must be [E,N]");
}

static bool check_layernorm(const struct check *check)
{
    const struct hw_layernorm *op = check->args;
    const struct hw_tensor *weight = &op->weight, *bias = &op->bias;
    return agree(check, bias, weight,
                 !present(bias) || !present(weight) || bias->dtype == weight->dtype,
                 "bias must have the dtype of weight");
}

static bool check_top_k(const struct check *check)
{
    const struct hw_top_k *op = check->args;
    const struct hw_tensor *x = &op->x, *values = &op->values, *indices = &op->indices;
    return agree(check, indices, x, same_rows(indices, x) && cols(indices) <= cols(x),
                 "indices must have the extents of x, the last one at most that of x") &&
           agree(check, indices, x, cols(indices) <= HW_MAX_K,
                 "the last extent of indices must be at most " TEXT_OF(HW_MAX_K)) &&
           (!present(values) || same(check, values, indices));
}

static bool check_dot(const struct check *check)
{
    const struct hw_dot *op = check->args;
    const struct hw_tensor *a = &op->a, *b = &op->b, *y = &op->y;
    const int rank = a->rank > b->rank ? a->rank : b->rank;
    const int kept = y->rank == rank; /* y keeps the last extent, as 1 */
    bool a_fits = true, b_fits = true;
    for (int i = 1; i < HW_MAX_RANK; i++) {
        const int64_t of_y = axis(y, i - !kept), of_a = axis(a, i), of_b = axis(b, i);
        a_fits &= of_a == of_y || (of_a == 1 && of_b == of_y);
        b_fits &= of_b == of_y || of_b == 1;
    }
    return agree(check, a, b, cols(a) == cols(b),
                 "a and b must have the same last extent") &&
           agree(check, y, a, kept ? cols(y) == 1 : y->rank == rank - 1,
                 "y must have the extents of a and b, with the last one dropped or 1") &&
           agree(check, a, y, a_fits, "the outer extents of a do not broadcast to y") &&
           agree(check, b, y, b_fits, "the outer extents of b do not broadcast to y");
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

static bool check_planes(const struct check *check)
{
    const struct hw_conv2d *op = check->args;
    const struct hw_tensor *x = &op->x, *weight = &op->weight, *y = &op->y;
    return valid(check, "groups",
                 axis(x, 2) % or_one(op->groups) == 0 &&
                     axis(weight, 3) % or_one(op->groups) == 0,
                 "must divide the channels of x and of y") &&
           agree(check, weight, x, axis(x, 2) / or_one(op->groups) == axis(weight, 2),
                 "weight must be [Cout,Cin/groups,KH,KW]") &&
           agree(check, y, x,
                 places(axis(x, 1), axis(weight, 1), or_one(op->stride_h), op->pad_h,
                        or_one(op->dilation_h)) == axis(y, 1) &&
                     places(axis(x, 0), axis(weight, 0), or_one(op->stride_w), op->pad_w,
                            or_one(op->dilation_w)) == axis(y, 0),
                 "the last two extents of y do not follow from x and weight, strides, pads "
                 "and dilations") &&
           vector(check, &op->bias, axis(y, 2), y);
}

static bool check_conv2d(const struct check *check)
{
    const struct hw_conv2d *op = check->args;
    const struct hw_tensor *x = &op->x, *weight = &op->weight, *y = &op->y;
    return agree(check, x, y, x->rank == 4 && y->rank == 4 && axis(x, 3) == axis(y, 3),
                 "x must be [B,Cin,H,W] and y [B,Cout,OH,OW]") &&
           agree(check, weight, y,
                 weight->rank == 4 && axis(weight, 3) == axis(y, 2) &&
                     axis(weight, 1) >= 1 && axis(weight, 0) >= 1,
                 "weight must be [Cout,Cin/groups,KH,KW], KH and KW at least 1") &&
           check_planes(check);
}

/* ---- the table ---- */

/* Operands in the order of HW_OPERANDS_*: the dtypes of an operand (see memory/dtype.h), and: */
enum {
    FIRST_TYPE = 1 << 24, /* or the dtype of the first operand */
    EXTENTS = 1 << 25,    /* it has the extents of the first operand */
    ROW = 1 << 26,        /* it is [N], with N the last extent of the first operand */
    REPEATS = 1 << 27,    /* its extents divide those of the last operand */
    IN_PLACE = 1 << 28,   /* the last operand may be this one */
    /* Usual combinations. */
    INPUT = FLOATS | IN_PLACE,
    LIKE_FIRST = FIRST_TYPE | EXTENTS,
    PER_COLUMN = FIRST_TYPE | DTYPE(F32) | ROW,
    BROADCAST = FLOATS | REPEATS | IN_PLACE,
    WEIGHTS = FLOATS | BLOCKS,
    F32 = DTYPE(F32),
    I32 = DTYPE(I32)
};

/* Other fields in the order of HW_SCALARS_*. All flags are 0 or 1, I32 are not negative and F32 are
 * finite, except: */
enum { NOT_NEGATIVE = 1 /* I64 and F32 */, INFINITE = 2 /* F32: may be infinite */ };

#define RULES(NAME, ...) [HW_OP_##NAME] = { .operand = __VA_ARGS__ }
static const struct rules {
    uint32_t operand[MAX_OPERANDS];
    bool (*more)(const struct check *check); /* NULL: there is no other rule */
    uint8_t scalar[MAX_SCALARS];
} rules[] = {
    RULES(MATMUL, { FLOATS, WEIGHTS, FLOATS, FLOATS }, check_matmul),
    RULES(RMSNORM, { INPUT, PER_COLUMN, LIKE_FIRST }, NULL, { NOT_NEGATIVE }),
    RULES(SOFTMAX, { INPUT, FLOATS, F32, F32, LIKE_FIRST }, check_softmax),
    RULES(SILU, { INPUT, LIKE_FIRST }),
    RULES(ROPE, { INPUT, I32, F32, LIKE_FIRST }, check_rope),
    RULES(ATTENTION, { FLOATS, WEIGHTS, WEIGHTS, FLOATS, F32, F32, I32, FIRST_TYPE },
          check_attention, { NOT_NEGATIVE, NOT_NEGATIVE, 0, NOT_NEGATIVE }),
    RULES(ADD, { BROADCAST, BROADCAST, FLOATS }),
    RULES(MUL, { BROADCAST, BROADCAST, FLOATS }),
    RULES(SWIGLU, { INPUT, FIRST_TYPE | IN_PLACE, FIRST_TYPE }, check_swiglu),
    RULES(ADD_RMSNORM, { FLOATS, LIKE_FIRST | IN_PLACE, PER_COLUMN, LIKE_FIRST }, NULL,
          { NOT_NEGATIVE }),
    RULES(GET_ROWS, { WEIGHTS, ROW_NUMBERS, FLOATS }, check_get_rows),
    RULES(SET_ROWS, { FLOATS, ROW_NUMBERS, WEIGHTS }, check_set_rows),
    RULES(COPY, { ANY_DTYPE, ANY_DTYPE | EXTENTS }, check_copy),
    RULES(ARGMAX, { FLOATS, I32 }, check_argmax),
    RULES(MATMUL_ID, { FLOATS, WEIGHTS, I32, FLOATS, FLOATS }, check_matmul_id),
    RULES(LAYERNORM, { INPUT, PER_COLUMN, PER_COLUMN, LIKE_FIRST }, check_layernorm,
          { NOT_NEGATIVE }),
    RULES(SUB, { BROADCAST, BROADCAST, FLOATS }),
    RULES(DIV, { BROADCAST, BROADCAST, FLOATS }),
    RULES(SCALE, { INPUT, LIKE_FIRST }),
    RULES(TOP_K, { FLOATS, FIRST_TYPE, I32 }, check_top_k),
    RULES(DOT, { FLOATS, FLOATS, FLOATS }, check_dot),
    RULES(ACTIVATION, { INPUT, LIKE_FIRST }, check_activation,
          { 0, 0, INFINITE, INFINITE }),
    RULES(GLU, { INPUT, FIRST_TYPE | IN_PLACE, FIRST_TYPE }, check_glu,
          { 0, 0, INFINITE, INFINITE }),
    RULES(CONV2D, { FLOATS, FLOATS, FLOATS, FLOATS }, check_conv2d),
};
_Static_assert(sizeof rules / sizeof *rules == HW_OP_COUNT, "each op has rules");

/* ---- operands ---- */

/* Each operand by itself. */
static bool check_operand(struct check *check, uint32_t i)
{
    const struct hw_tensor *first = check->args, *t = &first[i];
    const struct operand_row *operand = &op_rows[check->op].operands[i];
    const uint32_t rule = rules[check->op].operand[i],
                   like = rule & FIRST_TYPE ? 1u << first->dtype : 0;
    const struct use use = { .device = check->device,
                             .dtypes = (rule & ANY_DTYPE) | like,
                             .reads_packed = operand->role == HW_ROLE_WEIGHT,
                             .writes = role_writes(operand->role),
                             .fills = check->op == HW_OP_COPY };
    char why[FAULT_SIZE];
    if (role_optional(operand->role) && !present(t)) {
        check->bytes[i] = (struct byte_range){ 0 };
        return true;
    }
    if (unlikely(use_fault(&use, t, &check->bytes[i], why)))
        return bad_operand(check, i, why);
    check->traits |= t->buffer ? 0u : TRAIT_HOST;
    check->traits |= innermost_strided(t) ? TRAIT_STRIDED : 0u;
    if (use.writes && check->bytes[i].begin == check->bytes[i].end)
        check->traits |= TRAIT_EMPTY;
    return true;
}

/* The extents of the operands, as the table has them. */
static bool check_extents(const struct check *check)
{
    const struct op_row *row = &op_rows[check->op];
    const struct hw_tensor *first = check->args, *last = &first[row->operand_count - 1];
    for (uint32_t i = 0; i < row->operand_count; i++) {
        const struct hw_tensor *t = &first[i];
        const uint32_t rule = present(t) ? rules[check->op].operand[i] : 0;
        if ((rule & EXTENTS && !same(check, t, first)) ||
            (rule & ROW && !vector(check, t, cols(first), first)))
            return false;
        if (unlikely(rule & REPEATS && !repeats(t, last)))
            return bad_shapes(check, t, last, "the extents of %s must divide those of %s",
                              name_of(check, t), name_of(check, last));
    }
    return true;
}

static const char *field_fault(const struct operand_row *field, uint32_t rule, double value)
{
    const bool is_float = field->type == HW_FIELD_F32;
    if (field->type == HW_FIELD_RESERVED && value != 0)
        return "must be 0: it is reserved";
    if (field->type == HW_FIELD_FLAG && value > 1)
        return "must be 0 or 1";
    if (is_float && rule != INFINITE && value - value != 0)
        return "must be finite";
    return value < 0 && (rule == NOT_NEGATIVE || field->type == HW_FIELD_I32)
               ? "must not be negative"
               : NULL;
}

/* The fields other than operands, each by itself. */
static bool check_fields_alone(const struct check *check)
{
    const struct op_row *row = &op_rows[check->op];
    for (uint32_t i = row->operand_count; i < row->field_count; i++) {
        const struct operand_row *field = &row->operands[i];
        const uint32_t rule = rules[check->op].scalar[i - row->operand_count];
        const char *fault = field_fault(field, rule, value_of(check, field));
        if (unlikely(fault != NULL))
            return bad_field(check, field, fault);
    }
    return true;
}

/* Whether the output `y` may be exactly operand `x`. */
static bool may_be_same(const struct check *check, uint32_t y, uint32_t x)
{
    return rules[check->op].operand[x] & IN_PLACE &&
           y == op_rows[check->op].operand_count - 1;
}

/* Whether output `y` shares bytes with operand `x` without being in place. */
static bool overlaps(const struct check *check, uint32_t y, uint32_t x)
{
    const struct byte_range *a = &check->bytes[y], *b = &check->bytes[x];
    if (likely(x == y || !share_space(a, b)))
        return false;
    const struct hw_tensor *operands = check->args, *out = &operands[y],
                           *other = &operands[x];
    if (may_be_same(check, y, x) && a->begin == b->begin && out->dtype == other->dtype &&
        equal_extents(out, other) && equal_strides(out, other))
        return false;
    return !interleaved(out, a, other, b);
}

static __attribute__((cold)) bool bad_overlap(const struct check *check, uint32_t y,
                                              uint32_t x)
{
    const struct op_row *row = &op_rows[check->op];
    const char *rule = "an output must not overlap this operand";
    if (row->written >> x & 1)
        rule = "both are written";
    else if (may_be_same(check, y, x))
        rule = "operands must be identical (same address and layout) or disjoint";
    fail(HW_INVALID, "%s: %s overlaps %s: %s", hw_op_name(check->op), row->operands[y].name,
         row->operands[x].name, rule);
    return false;
}

/* No output may share bytes with another operand, except in place. */
static bool check_overlaps(const struct check *check)
{
    const struct op_row *row = &op_rows[check->op];
    for (uint32_t outputs = row->written; outputs; outputs &= outputs - 1) {
        const uint32_t y = (uint32_t)__builtin_ctz(outputs);
        for (uint32_t x = 0; x < row->operand_count; x++)
            if (unlikely(overlaps(check, y, x)))
                return bad_overlap(check, y, x);
    }
    return true;
}

/* ---- the call ---- */

enum hw_status check_call(const void *args, struct check *check)
{
    const struct op_row *row = &op_rows[check->op];
    const struct rules *own = &rules[check->op];
    bool good = true;
    check->args = args;
    for (uint32_t i = 0; i < row->operand_count && good; i++)
        good = check_operand(check, i);
    good = good && check_extents(check) && check_fields_alone(check) &&
           (!own->more || own->more(check)) && check_overlaps(check);
    return good ? HW_OK : HW_INVALID;
}
