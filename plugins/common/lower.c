/* SPDX-License-Identifier: MIT */
/* Turns ops into launches: broadcasts shapes, merges dimensions, fills in defaults. This file has
 * the code that all ops share; lower_<family>.c has the ops of a family. kernels/args.h describes
 * each kernel's struct and its groups. */
#include "lowering.h"
#include "operands.h"

/* The kernels load every dtype, by its number. */
#define X(NAME, value, name, elements, bytes)                                              \
    _Static_assert((int)STORAGE_##NAME == (int)HW_##NAME, "storage type " name);
HW_DTYPES(X)
#undef X

struct extents extents_of(const struct hw_tensor *t)
{
    if (!present(t)) /* its rank may be any number */
        return (struct extents){ 0 };
    return (struct extents){ { extent_of(t, 3), extent_of(t, 2), extent_of(t, 1) } };
}

void want_form(struct lowered *out, const struct hw_tensor *x,
               const struct hw_tensor *weight)
{
    static const struct {
        enum portable_form form;
        int32_t act, wgt;
    } forms[] = {
#define VARIANT(act, wgt) { FORM_##act##_##wgt, STORAGE_##act, STORAGE_##wgt },
#include "../../kernels/kernels.def"
    };
    const int32_t wgt = weight && present(weight) ? weight->dtype : x->dtype;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (forms[i].act == x->dtype && forms[i].wgt == wgt) {
            out->form = forms[i].form;
            return;
        }
    refuse(out, "operands must have one float type; a weight may also be f32");
}

void set_groups(struct lowered *out, int64_t a, int64_t b, int64_t c, double work)
{
    int64_t groups;
    if (__builtin_mul_overflow(a, b, &groups) ||
        __builtin_mul_overflow(groups, c, &groups) || groups > INT32_MAX)
        refuse(out, TOO_MANY_GROUPS);
    out->groups = groups;
    out->work = work;
}

void set_row_groups(struct lowered *out, const struct hw_tensor *t, double work)
{
    const double rows = (double)extent_of(t, 1) * (double)extent_of(t, 2) *
                        (double)extent_of(t, 3);
    set_groups(out, extent_of(t, 3), extent_of(t, 2), extent_of(t, 1),
               rows * (double)cols_of(t) * work);
}

/* ---- operands ---- */

/* A kernel has as many pointers as its op has operands. */
enum {
#define K(name, args, pointers) pointers_of_##name = (pointers),
#define MIXED                   K
#define PLAIN                   K
#define WEIGHTED                K
#include "../../kernels/kernels.def"
#undef K
};
#define ONE(op, field, role) +1
#define X(NAME, name)                                                                      \
    _Static_assert(0 HW_OPERANDS_##NAME(ONE) == pointers_of_##name,                        \
                   "pointers of kernel " #name);
HW_OPS(X)
#undef X
#undef ONE

/* Kernels take the output of an op, its last operand, first. */
static void set_operands(struct lowered *out, const void *args, uint32_t count)
{
    const struct hw_tensor *given = args;
    out->pointers = count;
    for (uint32_t i = 0; i < count; i++) {
        const struct hw_tensor *t = &given[i == 0 ? count - 1 : i - 1];
        out->operand[i] = present(t) ? t : NULL;
    }
}

static bool is_empty(const struct hw_tensor *t)
{
    for (int i = 0; i < t->rank; i++)
        if (t->extent[i] == 0)
            return true;
    return false;
}

/* If this tensor is empty, there is nothing to do. */
static const struct hw_tensor *output_of(const struct lowered *l)
{
    return l->kernel == PORTABLE_set_rows ? l->operand[1] : l->operand[0];
}

static bool any_packed(const struct lowered *l)
{
    uint32_t layouts = 0;
    for (uint32_t i = 0; i < l->pointers; i++)
        layouts |= l->operand[i] ? l->operand[i]->layout : 0;
    return layouts != 0;
}

/* ---- all of them ---- */

const char *lower_packed(uint32_t op, const void *args, struct lowered *out)
{
    static const uint32_t args_bytes[] = {
#define K(name, args, pointers) sizeof(struct args),
#define MIXED                   K
#define PLAIN                   K
#define WEIGHTED                K
#include "../../kernels/kernels.def"
#undef K
    };

    /* No memset(): it would clear far more than is needed, and the rest is set below. For the same
     * reason, initialisers of arguments name every field, even .reserved. */
    out->why = NULL;
    out->form = FORM_mixed;
    out->groups = 0;
    switch (op) {
#define X(NAME, name)                                                                      \
    case HW_OP_##NAME:                                                                     \
        out->kernel = PORTABLE_##name;                                                     \
        set_operands(out, args, op_layouts[op].count);                                     \
        lower_##name(args, out);                                                           \
        break;
        HW_OPS(X)
#undef X
    default:
        return "no portable kernel computes this op";
    }
    out->args_bytes = args_bytes[out->kernel];
    if (is_empty(output_of(out)))
        out->groups = 0;
    return out->why;
}

const char *lower(uint32_t op, const void *args, struct lowered *out)
{
    const char *why = lower_packed(op, args, out);
    return why || !any_packed(out) ? why : "a packed operand has no portable kernel";
}

void lowered_name(const struct lowered *l, char *text, size_t size)
{
    static const char *const kernels[] = {
#define K(name, args, pointers) #name,
#define MIXED                   K
#define PLAIN                   K
#define WEIGHTED                K
#include "../../kernels/kernels.def"
#undef K
    };
    static const char *const suffixes[] = {
        "",
#define VARIANT(act, wgt) "_" #act "_" #wgt,
#include "../../kernels/kernels.def"
    };
    snprintf(text, size, "%s%s", kernels[l->kernel], suffixes[l->form]);
}
