/* SPDX-License-Identifier: MIT */
/* Elementwise ops: silu, swiglu, add, mul. */
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

/* Both ops take a and b in either order, so the operand that repeats along a row can be b. */
static void lower_binary(const struct hw_tensor *a, const struct hw_tensor *b,
                         const struct hw_tensor *y, struct binary_args *args,
                         struct lowered *out)
{
    const struct hw_tensor *const t[] = { y, a, b };
    struct rows r;
    if (!find_rows(out, t, 3, STEPS_NEIGHBOURS_OR_SAME, &r))
        return;
    const int first = r.step[1] == 0 ? 2 : 1, second = 3 - first;
    *args = (struct binary_args){
        .y = r.place[0],
        .a = r.place[first],
        .b = r.place[second],
        .n1 = r.outer[1],
        .n2 = r.outer[2],
        .cols = r.cols,
        .b_step = r.step[second] != 0,
        .flat = r.step[first] == 0,
    };
    out->operand[1] = t[first];
    out->operand[2] = t[second];
    want_form(out, y, NULL);
    want_dense(out, a);
    want_dense(out, b);
    want_dense(out, y);
    set_span_groups(out, &r, 2);
}

void lower_add(const struct hw_add *op, struct lowered *out)
{
    lower_binary(&op->a, &op->b, &op->y, &out->args.add, out);
}

void lower_mul(const struct hw_mul *op, struct lowered *out)
{
    lower_binary(&op->a, &op->b, &op->y, &out->args.mul, out);
}

void lower_swiglu(const struct hw_swiglu *op, struct lowered *out)
{
    /* Packed: gate and up are the two halves of each row. */
    struct hw_tensor gate = op->gate, up = op->up;
    if (!present(&up)) {
        gate.extent[gate.rank - 1] = cols_of(&op->y);
        up = gate;
        up.offset += (uint64_t)(cols_of(&op->y) * hw_dtype_bytes(gate.dtype));
        out->operand[2] = &op->gate;
    }
    const struct hw_tensor *const t[] = { &op->y, &gate, &up };
    struct rows r;
    if (!find_rows(out, t, 3, STEPS_NEIGHBOURS, &r))
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
    want_dense(out, &op->gate);
    want_dense(out, &op->up);
    want_dense(out, &op->y);
    set_span_groups(out, &r, 14);
}
