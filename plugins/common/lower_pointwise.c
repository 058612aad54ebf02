/* SPDX-License-Identifier: MIT */
/* Elementwise ops: silu, scale, add, mul, sub, div, swiglu, glu, activation. */
#include "lowering.h"

void lower_silu(const struct hw_silu *op, struct lowered *out)
{
    const struct hw_tensor *const t[] = { &op->y, &op->x };
    struct rows r;
    if (!find_rows(out, t, 2, STEPS_NEIGHBOURS, &r))
        return;
    out->args.silu = (struct silu_args){
        .y = r.place[0], .x = r.place[1], .n1 = r.outer[1], .n2 = r.outer[2], .cols = r.cols
    };
    want_form(out, &op->x, NULL);
    want_dense(out, &op->x);
    want_dense(out, &op->y);
    set_span_groups(out, &r, 12);
}

void lower_scale(const struct hw_scale *op, struct lowered *out)
{
    const struct hw_tensor *const t[] = { &op->y, &op->x };
    struct rows r;
    if (!find_rows(out, t, 2, STEPS_NEIGHBOURS, &r))
        return;
    out->args.scale = (struct scale_args){ .y = r.place[0],
                                           .x = r.place[1],
                                           .n1 = r.outer[1],
                                           .n2 = r.outer[2],
                                           .cols = r.cols,
                                           .scale = op->scale,
                                           .bias = op->bias };
    want_form(out, &op->x, NULL);
    want_dense(out, &op->x);
    want_dense(out, &op->y);
    set_span_groups(out, &r, 2);
}

/* ---- y = a op b ---- */

/* Whether an extent other than 1 is smaller than that of `y`. */
static bool repeats(const struct hw_tensor *t, const struct hw_tensor *y)
{
    for (int axis = 0; axis < y->rank; axis++)
        if (extent_of(t, axis) != 1 && extent_of(t, axis) != extent_of(y, axis))
            return true;
    return false;
}

/* Selects the kernel that takes all types and inputs that repeat. */
static void set_mixed(struct lowered *out, const struct hw_tensor *const t[3],
                      enum binary_kind kind, const struct rows *r,
                      const struct period period[3])
{
    out->kernel = PORTABLE_binary;
    out->args.binary = (struct mixed_binary_args){
        .y = r->place[0],
        .a = r->place[1],
        .b = r->place[2],
        .a_period = period[1],
        .b_period = period[2],
        .n1 = r->outer[1],
        .n2 = r->outer[2],
        .cols = r->cols,
        .y_type = t[0]->dtype,
        .a_type = t[1]->dtype,
        .b_type = t[2]->dtype,
        .kind = (int)kind,
    };
    set_span_groups(out, r, 4);
}

/* Axes along which an input repeats are not merged: rows are the rows of the tensors. */
static void lower_repeating(struct lowered *out, const struct hw_tensor *const t[3],
                            enum binary_kind kind)
{
    struct rows r = { .cols = cols_of(t[0]) };
    struct period period[3];
    for (int k = 0; k < 3; k++) {
        r.place[k] = place_of(t[k]);
        for (int i = 0; i < 3; i++)
            period[k].outer[i] = extent_of(t[k], 3 - i);
        period[k].cols = cols_of(t[k]);
    }
    memcpy(r.outer, period[0].outer, sizeof r.outer);
    set_mixed(out, t, kind, &r, period);
}

static void lower_mixed(struct lowered *out, const struct hw_tensor *const t[3],
                        enum binary_kind kind, const struct rows *r)
{
    struct period period[3];
    for (int k = 0; k < 3; k++) {
        memcpy(period[k].outer, r->outer, sizeof r->outer);
        period[k].cols = r->step[k] ? r->cols : 1;
    }
    set_mixed(out, t, kind, r, period);
}

static void swap_inputs(struct lowered *out, struct rows *r)
{
    const struct hw_tensor *operand = out->operand[1];
    const struct place place = r->place[1];
    const int64_t step = r->step[1];
    out->operand[1] = out->operand[2];
    r->place[1] = r->place[2];
    r->step[1] = r->step[2];
    out->operand[2] = operand;
    r->place[2] = place;
    r->step[2] = step;
}

/* The op's own kernel takes operands of one type; b may have one value per row. The kernel for any
 * types does the rest. */
static void lower_binary(struct lowered *out, enum binary_kind kind,
                         struct binary_args *args)
{
    const struct hw_tensor *const *t = out->operand;
    struct rows r;
    if (!find_one_row(t, 3, &r)) {
        for (int k = 0; k < 3; k++)
            want_dense(out, t[k]);
        if (repeats(t[1], t[0]) || repeats(t[2], t[0])) {
            lower_repeating(out, t, kind);
            return;
        }
        if (!find_rows(out, t, 3, STEPS_NEIGHBOURS_OR_SAME, &r))
            return;
    }
    if (r.step[1] == 0 && (kind == BINARY_ADD || kind == BINARY_MUL))
        swap_inputs(out, &r);
    if (r.step[1] == 0 || t[1]->dtype != t[0]->dtype || t[2]->dtype != t[0]->dtype) {
        lower_mixed(out, t, kind, &r);
        return;
    }
    want_form(out, t[0], NULL);
    *args = (struct binary_args){ .y = r.place[0],
                                  .a = r.place[1],
                                  .b = r.place[2],
                                  .n1 = r.outer[1],
                                  .n2 = r.outer[2],
                                  .cols = r.cols,
                                  .b_step = r.step[2] != 0,
                                  .reserved = 0 };
    set_span_groups(out, &r, 2);
}

#define LOWER_BINARY(NAME, name)                                                           \
    void lower_##name(const struct hw_##name *op, struct lowered *out)                     \
    {                                                                                      \
        (void)op; /* its operands are in `out` */                                          \
        lower_binary(out, BINARY_##NAME, &out->args.name);                                 \
    }
LOWER_BINARY(ADD, add)
LOWER_BINARY(MUL, mul)
LOWER_BINARY(SUB, sub)
LOWER_BINARY(DIV, div)

/* ---- y = f(gate) * up ---- */

/* Packed: gate and up are the two halves of each row. */
static bool gated_rows(struct lowered *out, struct rows *r)
{
    const struct hw_tensor *y = out->operand[0];
    const bool packed = !out->operand[2];
    struct hw_tensor gate = *out->operand[1], up = gate;
    if (packed) {
        gate.extent[gate.rank - 1] = up.extent[up.rank - 1] = cols_of(y);
        up.offset += (uint64_t)(cols_of(y) * hw_dtype_bytes(up.dtype));
        out->operand[2] = out->operand[1];
    } else {
        up = *out->operand[2];
    }
    for (int k = 0; k < 3; k++)
        want_dense(out, out->operand[k]);
    const struct hw_tensor *const t[] = { y, &gate, &up };
    return find_rows(out, t, 3, STEPS_NEIGHBOURS, r);
}

void lower_swiglu(const struct hw_swiglu *op, struct lowered *out)
{
    struct rows r;
    if (!gated_rows(out, &r))
        return;
    out->args.swiglu = (struct swiglu_args){
        .y = r.place[0],
        .gate = r.place[1],
        .up = r.place[2],
        .n1 = r.outer[1],
        .n2 = r.outer[2],
        .cols = r.cols,
    };
    want_form(out, &op->y, NULL);
    set_span_groups(out, &r, 14);
}

#define SAME(name)                                                                         \
    _Static_assert((int)ACTIVATION_##name == (int)HW_ACT_##name, #name " of both headers");
SAME(RELU)
SAME(LEAKY_RELU)
SAME(ELU)
SAME(SIGMOID)
SAME(TANH)
SAME(GELU)
SAME(GELU_TANH)
SAME(GELU_QUICK)
SAME(SILU)
SAME(CLIP)
#undef SAME

static float alpha_of(int32_t kind, float alpha)
{
    const float zero = kind == HW_ACT_LEAKY_RELU ? 0.01f : kind == HW_ACT_ELU ? 1.0f : 0.0f;
    return alpha != 0.0f ? alpha : zero;
}

void lower_glu(const struct hw_glu *op, struct lowered *out)
{
    struct rows r;
    if (!gated_rows(out, &r))
        return;
    out->args.glu = (struct glu_args){
        .y = r.place[0],
        .gate = r.place[1],
        .up = r.place[2],
        .n1 = r.outer[1],
        .n2 = r.outer[2],
        .cols = r.cols,
        .f = { op->kind, alpha_of(op->kind, op->alpha), op->lo, op->hi },
        .type = op->y.dtype,
        .reserved = 0,
    };
    set_span_groups(out, &r, 14);
}

void lower_activation(const struct hw_activation *op, struct lowered *out)
{
    const struct hw_tensor *const t[] = { &op->y, &op->x };
    struct rows r;
    want_dense(out, &op->x);
    want_dense(out, &op->y);
    if (!find_rows(out, t, 2, STEPS_NEIGHBOURS, &r))
        return;
    out->args.activation = (struct activation_args){
        .y = r.place[0],
        .x = r.place[1],
        .n1 = r.outer[1],
        .n2 = r.outer[2],
        .cols = r.cols,
        .f = { op->kind, alpha_of(op->kind, op->alpha), op->lo, op->hi },
        .type = op->y.dtype,
        .reserved = 0,
    };
    set_span_groups(out, &r, 12);
}
