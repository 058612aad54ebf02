/* SPDX-License-Identifier: MIT */
/* close.c - see close.h. docs/testing.md explains the tolerances. */
#include "close.h"

#include "storage.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- tolerances ---------------------------------------------------------------------------- */

static const double worst_bound = 4;

/* There is no default, so that the compiler finds a forgotten op. */
static bool is_product(uint32_t op)
{
    switch ((enum hw_op)op) {
    case HW_OP_MATMUL:
    case HW_OP_ATTENTION:
    case HW_OP_MATMUL_ID:
    case HW_OP_DOT:
    case HW_OP_CONV2D:
        return true;
    case HW_OP_RMSNORM:
    case HW_OP_SOFTMAX:
    case HW_OP_SILU:
    case HW_OP_ROPE:
    case HW_OP_ADD:
    case HW_OP_MUL:
    case HW_OP_SWIGLU:
    case HW_OP_ADD_RMSNORM:
    case HW_OP_GET_ROWS:
    case HW_OP_SET_ROWS:
    case HW_OP_COPY:
    case HW_OP_ARGMAX:
    case HW_OP_LAYERNORM:
    case HW_OP_SUB:
    case HW_OP_DIV:
    case HW_OP_SCALE:
    case HW_OP_TOP_K:
    case HW_OP_ACTIVATION:
    case HW_OP_GLU:
    case HW_OP_COUNT:
        break;
    }
    return false;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* The extra error of products below fp32: the rounding of 16-bit units. An op with a bf16 operand
 * may use bf16. */
static double coarse(const struct result *r, const char *precision, double bf16, double f16)
{
    if (!is_product(r->op) || !strcmp(precision, "fp32"))
        return 0;
    for (int i = 0; i < r->count; i++)
        if (r->operand[i].dtype == HW_BF16)
            return bf16;
    return f16;
}

static double error_bound(const struct result *r, int32_t dtype, const char *precision)
{
    const double storage = dtype == HW_F16     ? 1e-3
                           : dtype == HW_BF16  ? 8e-3
                           : is_product(r->op) ? 1e-5
                                               : 2e-6;
    return larger(storage, coarse(r, precision, 8e-3, 1e-3));
}

/* The relative error that one rounding of a stored or intermediate term may cause. */
static double rounding(const struct result *r, int32_t dtype, const char *precision)
{
    return larger(storage_unit(dtype),
                  coarse(r, precision, storage_unit(HW_BF16), storage_unit(HW_F16)));
}

/* The additional error of 8-bit codes at element `i`. */
static double codes(const char *precision, const struct operand *o, int64_t i)
{
    return strcmp(precision, "int8") != 0 ? 0 : o->codes[i];
}

/* ---- elements ------------------------------------------------------------------------------- */

void name_element(const struct operand *o, int64_t i, char *text, size_t size)
{
    int64_t at[HW_MAX_RANK] = { 0 };
    int used = snprintf(text, size, "%s[", o->name);

    for (int32_t axis = o->rank - 1; axis >= 0; axis--) {
        at[axis] = i % o->extent[axis];
        i /= o->extent[axis];
    }
    for (int32_t axis = 0; axis < o->rank; axis++)
        used += snprintf(text + used, size - (size_t)used, "%s%lld", axis ? "," : "",
                         (long long)at[axis]);
    snprintf(text + used, size - (size_t)used, "]");
}

static bool both_nan(int32_t dtype, const unsigned char *a, const unsigned char *b)
{
    return storage_is_float(dtype) && isnan(storage_read(dtype, a, 0)) &&
           isnan(storage_read(dtype, b, 0));
}

/* Checks that all bits match; after a conversion, any NaN matches any other. */
static void ask_exact(const struct operand *o, const unsigned char *packed,
                      struct judgement *judgement)
{
    const size_t unit = (size_t)hw_dtype_bytes(o->dtype);
    const size_t bytes = storage_bytes(o->dtype, o->count);
    char element[80];

    for (size_t at = 0; at < bytes; at += unit) {
        const unsigned char *got = packed + at, *want = o->exact_bytes + at;
        if (!memcmp(got, want, unit) || (!o->same_dtype && both_nan(o->dtype, got, want)))
            continue;
        const int64_t block = hw_dtype_block(o->dtype),
                      first = (int64_t)(at / unit) * block;
        int64_t i = 0;
        while (i + 1 < block &&
               storage_read(o->dtype, got, i) == storage_read(o->dtype, want, i))
            i++;
        name_element(o, first + i, element, sizeof element);
        snprintf(judgement->text, sizeof judgement->text,
                 "%s is %.9g, should be exactly %.9g", element,
                 storage_read(o->dtype, got, i), storage_read(o->dtype, want, i));
        return;
    }
}

/* NaN must be NaN. Infinity must be infinity, with some tolerance near the largest number.
 */
static bool special_agrees(int32_t dtype, double got, double want)
{
    const double edge = storage_largest(dtype) * 0.99;

    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (isinf(want))
        return got == want;
    return fabs(want) > edge && fabs(got) > edge && (got > 0) == (want > 0);
}

/* The error of element `i` as a multiple of the error that rounding may cause there. */
static double units(const struct result *r, const struct operand *o, int64_t i,
                    double error)
{
    const double unit = rounding(r, o->dtype, r->precision) *
                            (fabs(o->want[i]) + o->noise[i]) +
                        storage_unit(HW_F32) * o->drift[i] + codes(r->precision, o, i);
    return error > 0 ? error / unit : 0;
}

static void ask_close(const struct result *r, const struct operand *o,
                      const unsigned char *packed, struct judgement *judgement)
{
    double errors = 0, wants = 0, rounded = 0, worst = 0;
    int64_t worst_at = 0;
    char element[80];

    for (int64_t i = 0; i < o->count; i++) {
        const double got = storage_read(o->dtype, packed, i), want = o->want[i];
        if (!isfinite(got) || !isfinite(want)) {
            if (special_agrees(o->dtype, got, want))
                continue;
            name_element(o, i, element, sizeof element);
            snprintf(judgement->text, sizeof judgement->text, "%s is %g, should be %.9g",
                     element, got, want);
            return;
        }
        if (fabs(want) >
            storage_largest(o->dtype)) { /* a finite result may be correct here */
            if (special_agrees(o->dtype, got, want))
                continue;
        }
        const double difference = fabs(got - want) - storage_floor(o->dtype);
        const double error = difference > 0 ? difference : 0;
        errors += error * error;
        wants += want * want;
        rounded += pow(codes(r->precision, o, i), 2);
        if (units(r, o, i, error) > worst) {
            worst = units(r, o, i, error);
            worst_at = i;
        }
    }
    const double error = errors > 0 ? sqrt(errors / wants) : 0;
    const double bound = error_bound(r, o->dtype, r->precision) +
                         (rounded > 0 ? sqrt(rounded / wants) : 0);
    if (error / bound >= judgement->error / larger(judgement->error_bound, 1e-300)) {
        judgement->error = error;
        judgement->error_bound = bound;
    }
    judgement->worst = larger(judgement->worst, worst);
    judgement->worst_bound = worst_bound;
    if (error <= bound && worst <= worst_bound)
        return;
    name_element(o, worst_at, element, sizeof element);
    snprintf(judgement->text, sizeof judgement->text, "%s is %.9g, should be %.9g", element,
             storage_read(o->dtype, packed, worst_at), o->want[worst_at]);
}

void output_judge(const struct result *result, int output, const unsigned char *packed,
                  struct judgement *judgement)
{
    const struct operand *o = &result->operand[output];
    if (o->exact)
        ask_exact(o, packed, judgement);
    else
        ask_close(result, o, packed, judgement);
}

/* ---- two results ---------------------------------------------------------------------------- */

/* The largest magnitude of the row; NaN if an element is not finite. */
static double row_largest(const struct operand *o, const unsigned char *packed, int64_t row)
{
    const int64_t cols = operand_cols(o);
    double most = 0;
    for (int64_t i = row * cols; i < (row + 1) * cols; i++) {
        const double x = storage_read(o->dtype, packed, i);
        if (!isfinite(x))
            return NAN;
        most = larger(most, fabs(x));
    }
    return most;
}

static bool row_agrees(const struct operand *o, const unsigned char *a,
                       const unsigned char *b, int64_t row, double bound)
{
    const int64_t cols = operand_cols(o);
    const double most = row_largest(o, b, row) * bound;
    for (int64_t i = row * cols; i < (row + 1) * cols; i++)
        if (!(fabs(storage_read(o->dtype, a, i) - storage_read(o->dtype, b, i)) <= most))
            return false;
    return true;
}

bool outputs_agree(const struct result *result, int output, const unsigned char *a,
                   const unsigned char *b)
{
    const struct operand *o = &result->operand[output];
    const double bound = error_bound(result, o->dtype, result->precision);
    bool agree = true;
    if (!memcmp(a, b, storage_bytes(o->dtype, o->count)))
        return true;
    for (int64_t row = 0; row < operand_rows(o) && agree; row++)
        agree = storage_is_float(o->dtype) && row_agrees(o, a, b, row, bound);
    return agree;
}
