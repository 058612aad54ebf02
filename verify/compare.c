/* SPDX-License-Identifier: MIT */
/* compare.c - see compare.h. docs/testing.md explains the tolerances. */
#include "compare.h"

#include "storage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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
static double coarse(const struct problem *p, const char *precision, double bf16,
                     double f16)
{
    if (!is_product(p->op) || !strcmp(precision, "fp32"))
        return 0;
    for (int i = 0; i < p->count; i++)
        if (p->operand[i].dtype == HW_BF16)
            return bf16;
    return f16;
}

static double error_bound(const struct problem *p, int32_t dtype, const char *precision)
{
    const double storage = dtype == HW_F16     ? 1e-3
                           : dtype == HW_BF16  ? 8e-3
                           : is_product(p->op) ? 1e-5
                                               : 2e-6;
    return larger(storage, coarse(p, precision, 8e-3, 1e-3));
}

/* The relative error that one rounding of a stored or intermediate term may cause. */
static double rounding(const struct problem *p, int32_t dtype, const char *precision)
{
    return larger(storage_unit(dtype),
                  coarse(p, precision, storage_unit(HW_BF16), storage_unit(HW_F16)));
}

/* The additional error of 8-bit codes at element `i`. */
static double codes(const char *precision, const struct operand *o, int64_t i)
{
    return strcmp(precision, "int8") != 0 ? 0 : o->codes[i];
}

/* ---- places -------------------------------------------------------------------------------- */

/* "y[3,17]" */
static void name_element(const struct operand *o, int64_t i, char *text, size_t size)
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

/* Describes a byte of the arena by the operand that it belongs to or follows. */
static void name_byte(const struct problem *p, uint64_t byte, char *text, size_t size)
{
    const struct operand *before = NULL;
    uint64_t past = 0;

    for (int i = 0; i < p->count; i++) {
        const struct operand *o = &p->operand[i];
        const struct hw_tensor tensor = problem_tensor(p, i);
        if (o->dtype == HW_NONE || byte < tensor.offset)
            continue;
        uint64_t span = (uint64_t)hw_dtype_bytes(o->dtype);
        for (int32_t axis = 0; axis < o->rank; axis++) {
            const int64_t block = axis == o->rank - 1 ? hw_dtype_block(o->dtype) : 1;
            span += (uint64_t)((o->extent[axis] / block - 1) * tensor.stride[axis]);
        }
        span = o->count ? span : 0;
        if (byte - tensor.offset < span) {
            snprintf(text, size,
                     role_is_output(o->role) || p->layout[i].same_as >= 0
                         ? "bytes between the rows of %s were written"
                         : "the input %s was changed",
                     o->name);
            return;
        }
        before = o;
        past = byte - tensor.offset - span;
    }
    if (!before)
        snprintf(text, size, "a byte before the first operand was written");
    else if (past == 0)
        snprintf(text, size, "the first byte past the end of %s was written", before->name);
    else
        snprintf(text, size, "a byte %llu past the end of %s was written",
                 (unsigned long long)past, before->name);
}

/* ---- the questions ------------------------------------------------------------------------- */

struct judge {
    const struct problem *problem;
    const char *precision;
    struct judgement *judgement;
    unsigned char *packed[2]; /* an output as each run left it */
};

/* Checks that both runs agree, and that they wrote every element. */
static void ask_same(struct judge *j, const struct operand *o)
{
    const size_t unit = (size_t)hw_dtype_bytes(o->dtype);
    const size_t bytes = storage_bytes(o->dtype, o->count);
    char element[80];

    if (!memcmp(j->packed[0], j->packed[1], bytes))
        return;
    size_t at = 0;
    while (!memcmp(j->packed[0] + at, j->packed[1] + at, unit))
        at += unit;
    bool poison = o->role == HW_ROLE_OUT || o->role == HW_ROLE_OPT_OUT;
    for (size_t i = at; i < at + unit; i++)
        poison = poison && j->packed[0][i] == FIRST_POISON &&
                 j->packed[1][i] == SECOND_POISON;
    name_element(o, (int64_t)(at / unit) * hw_dtype_block(o->dtype), element,
                 sizeof element);
    snprintf(j->judgement->text, sizeof j->judgement->text,
             poison ? "%s was not written" : "%s differs between two runs", element);
}

static bool both_nan(int32_t dtype, const unsigned char *a, const unsigned char *b)
{
    return storage_is_float(dtype) && isnan(storage_read(dtype, a, 0)) &&
           isnan(storage_read(dtype, b, 0));
}

/* Checks that all bits match; after a conversion, any NaN matches any other. */
static void ask_exact(struct judge *j, const struct operand *o)
{
    const size_t unit = (size_t)hw_dtype_bytes(o->dtype);
    const size_t bytes = storage_bytes(o->dtype, o->count);
    char element[80];

    for (size_t at = 0; at < bytes; at += unit) {
        const unsigned char *got = j->packed[0] + at, *want = o->exact_bytes + at;
        if (!memcmp(got, want, unit) || (!o->same_dtype && both_nan(o->dtype, got, want)))
            continue;
        const int64_t block = hw_dtype_block(o->dtype),
                      first = (int64_t)(at / unit) * block;
        int64_t i = 0;
        while (i + 1 < block &&
               storage_read(o->dtype, got, i) == storage_read(o->dtype, want, i))
            i++;
        name_element(o, first + i, element, sizeof element);
        snprintf(j->judgement->text, sizeof j->judgement->text,
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
static double units(const struct judge *j, const struct operand *o, int64_t i, double error)
{
    const double unit = rounding(j->problem, o->dtype, j->precision) *
                            (fabs(o->want[i]) + o->noise[i]) +
                        storage_unit(HW_F32) * o->drift[i] + codes(j->precision, o, i);
    return error > 0 ? error / unit : 0;
}

static void ask_close(struct judge *j, const struct operand *o)
{
    struct judgement *judgement = j->judgement;
    double errors = 0, wants = 0, rounded = 0, worst = 0;
    int64_t worst_at = 0;
    char element[80];

    for (int64_t i = 0; i < o->count; i++) {
        const double got = storage_read(o->dtype, j->packed[0], i), want = o->want[i];
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
        rounded += pow(codes(j->precision, o, i), 2);
        if (units(j, o, i, error) > worst) {
            worst = units(j, o, i, error);
            worst_at = i;
        }
    }
    const double error = errors > 0 ? sqrt(errors / wants) : 0;
    const double bound = error_bound(j->problem, o->dtype, j->precision) +
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
             storage_read(o->dtype, j->packed[0], worst_at), o->want[worst_at]);
}

/* Checks that nothing changed except the elements of the outputs. */
static bool ask_untouched(struct judge *j, const struct outcome *outcome)
{
    const struct problem *p = j->problem;
    unsigned char *image = malloc(p->bytes);

    if (!image)
        return false;
    for (int host = 0; host < 2 && !j->judgement->text[0]; host++) {
        const unsigned char *after = host ? outcome->host[0] : outcome->device[0];
        memcpy(image, p->image, p->bytes);
        for (int i = 0; i < p->count; i++) {
            const struct hw_tensor tensor = problem_tensor(p, i);
            if (tensor.dtype == HW_NONE || !role_is_output(p->operand[i].role))
                continue;
            storage_gather(&tensor, after + tensor.offset, j->packed[0]);
            storage_scatter(&tensor, image + tensor.offset, j->packed[0]);
        }
        uint64_t at = 0;
        if (!memcmp(image, after, p->bytes))
            continue;
        while (image[at] == after[at])
            at++;
        name_byte(p, at, j->judgement->text, sizeof j->judgement->text);
    }
    free(image);
    return true;
}

static void judge_operand(struct judge *j, const struct outcome *outcome, int i)
{
    const struct operand *o = &j->problem->operand[i];
    const struct hw_tensor tensor = problem_tensor(j->problem, i);

    for (int run = 0; run < 2; run++) {
        const unsigned char *arena = j->problem->layout[i].host ? outcome->host[run]
                                                                : outcome->device[run];
        storage_gather(&tensor, arena + tensor.offset, j->packed[run]);
    }
    ask_same(j, o);
    if (j->judgement->text[0])
        return;
    if (o->exact)
        ask_exact(j, o);
    else
        ask_close(j, o);
}

bool compare(const struct problem *p, const struct outcome *outcome, const char *precision,
             struct judgement *judgement)
{
    struct judge j = { .problem = p, .precision = precision, .judgement = judgement };

    *judgement = (struct judgement){ 0 };
    j.packed[0] = malloc(p->bytes);
    j.packed[1] = malloc(p->bytes);
    bool ok = j.packed[0] && j.packed[1] && ask_untouched(&j, outcome);
    for (int i = 0; ok && i < p->count && !judgement->text[0]; i++)
        if (p->operand[i].dtype != HW_NONE && role_is_output(p->operand[i].role) &&
            p->operand[i].count)
            judge_operand(&j, outcome, i);
    free(j.packed[0]);
    free(j.packed[1]);
    return ok;
}
