/* SPDX-License-Identifier: MIT */
/* oracle.c - operands, and the dispatch from the number of an op to its oracle. */
#include "oracle.h"

#include "storage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool role_is_input(enum hw_role role)
{
    return role != HW_ROLE_OUT && role != HW_ROLE_OPT_OUT;
}

bool role_is_output(enum hw_role role)
{
    return role == HW_ROLE_OUT || role == HW_ROLE_OPT_OUT || role == HW_ROLE_INOUT;
}

int operands_of(uint32_t op, struct operand operands[MAX_OPERANDS],
                size_t field[MAX_OPERANDS])
{
    int count = 0;

    switch (op) {
#define T(op, tensor, part)                                                                \
    operands[count] = (struct operand){ .name = #tensor, .role = HW_ROLE_##part };         \
    field[count++] = offsetof(struct hw_##op, tensor);
#define X(NAME, name)                                                                      \
    case HW_OP_##NAME:                                                                     \
        HW_OPERANDS_##NAME(T) break;
        HW_OPS(X)
#undef X
#undef T
    default:
        break;
    }
    return count;
}

size_t op_args_size(uint32_t op)
{
    switch (op) {
#define X(NAME, name)                                                                      \
    case HW_OP_##NAME:                                                                     \
        return sizeof(struct hw_##name);
        HW_OPS(X)
#undef X
    default:
        return 0;
    }
}

void operand_clear(struct operand *operand)
{
    free(operand->bytes);
    free(operand->value);
    free(operand->want);
    free(operand->noise);
    free(operand->drift);
    free(operand->codes);
    free(operand->exact_bytes);
    operand->bytes = operand->exact_bytes = NULL;
    operand->value = operand->want = NULL;
    operand->noise = operand->drift = operand->codes = NULL;
}

static double *zeros(int64_t count)
{
    return calloc((size_t)count + 1, sizeof(double));
}

bool operand_make(struct operand *operand, int32_t dtype, int32_t rank,
                  const int64_t *extents, bool numbers)
{
    operand->dtype = dtype;
    operand->rank = rank;
    operand->count = 1;
    for (int32_t i = 0; i < rank; i++) {
        operand->extent[i] = extents[i];
        operand->count *= extents[i];
    }
    const size_t bytes = storage_bytes(dtype, operand->count) + 1;
    bool ok = true;
    if (role_is_input(operand->role)) {
        operand->bytes = calloc(bytes, 1);
        operand->value = numbers ? zeros(operand->count) : NULL;
        ok = operand->bytes && (operand->value || !numbers);
    }
    if (role_is_output(operand->role) && numbers) {
        operand->exact_bytes = calloc(bytes, 1);
        operand->want = zeros(operand->count);
        operand->noise = zeros(operand->count);
        operand->drift = zeros(operand->count);
        operand->codes = zeros(operand->count);
        ok = ok && operand->exact_bytes && operand->want && operand->noise &&
             operand->drift && operand->codes;
    }
    if (!ok)
        operand_clear(operand);
    return ok;
}

int64_t operand_cols(const struct operand *operand)
{
    return operand->extent[operand->rank - 1];
}

int64_t operand_rows(const struct operand *operand)
{
    int64_t rows = 1;
    for (int32_t i = 0; i + 1 < operand->rank; i++)
        rows *= operand->extent[i];
    return rows;
}

int64_t broadcast(const struct operand *small, const struct operand *big, int64_t i)
{
    int64_t index = 0, step = 1;

    for (int32_t axis = big->rank - 1; axis >= 0; axis--) {
        const int32_t own = axis - (big->rank - small->rank);
        const int64_t at = i % big->extent[axis];
        i /= big->extent[axis];
        if (own < 0)
            break;
        index += at % small->extent[own] * step;
        step *= small->extent[own];
    }
    return index;
}

bool oracle_compute(uint32_t op, const union op_args *args, struct operand *operands)
{
    switch (op) {
#define X(NAME, name)                                                                      \
    case HW_OP_##NAME:                                                                     \
        return oracle_##name(&args->name, operands);
        HW_OPS(X)
#undef X
    default:
        return false;
    }
}

static double op_flops(uint32_t op, const union op_args *args,
                       const struct operand *operands)
{
    switch (op) {
#define X(NAME, name)                                                                      \
    case HW_OP_##NAME:                                                                     \
        return flops_##name(&args->name, operands);
        HW_OPS(X)
#undef X
    default:
        return 0;
    }
}

/* The share of an operand that is moved: the selected rows of a table, the keys in use of a cache,
 * and the chosen experts, assuming that none is chosen twice. There is no default, so that the
 * compiler finds a forgotten op. */
static double share_touched(uint32_t op, const union op_args *args,
                            const struct operand *operands, int i)
{
    const struct operand *o = &operands[i];
    switch ((enum hw_op)op) {
    case HW_OP_GET_ROWS:
        return i == operand_get_rows_table
                   ? (double)operand_rows(&operands[operand_get_rows_y]) /
                         (double)operand_rows(o)
                   : 1;
    case HW_OP_SET_ROWS:
        return i == operand_set_rows_table
                   ? (double)operand_rows(&operands[operand_set_rows_x]) /
                         (double)operand_rows(o)
                   : 1;
    case HW_OP_MATMUL_ID:
        return i == operand_matmul_id_b
                   ? fmin(1, (double)operands[operand_matmul_id_ids].count /
                                 (double)o->extent[0])
                   : 1;
    case HW_OP_ATTENTION:
        return (i == operand_attention_k || i == operand_attention_v) &&
                       args->attention.length
                   ? (double)args->attention.length / (double)o->extent[o->rank - 3]
                   : 1;
    case HW_OP_MATMUL:
    case HW_OP_RMSNORM:
    case HW_OP_SOFTMAX:
    case HW_OP_SILU:
    case HW_OP_ROPE:
    case HW_OP_ADD:
    case HW_OP_MUL:
    case HW_OP_SWIGLU:
    case HW_OP_ADD_RMSNORM:
    case HW_OP_COPY:
    case HW_OP_ARGMAX:
    case HW_OP_LAYERNORM:
    case HW_OP_SUB:
    case HW_OP_DIV:
    case HW_OP_SCALE:
    case HW_OP_TOP_K:
    case HW_OP_DOT:
    case HW_OP_ACTIVATION:
    case HW_OP_GLU:
    case HW_OP_CONV2D:
    case HW_OP_COUNT:
        break;
    }
    return 1;
}

struct cost oracle_cost(uint32_t op, const union op_args *args,
                        const struct operand *operands)
{
    struct operand layout[MAX_OPERANDS];
    size_t field[MAX_OPERANDS];
    const int count = operands_of(op, layout, field);
    struct cost cost = { .flops = op_flops(op, args, operands) };

    for (int i = 0; i < count; i++) {
        if (operands[i].dtype == HW_NONE || operands[i].count == 0)
            continue;
        const double bytes = (double)storage_bytes(operands[i].dtype, operands[i].count) *
                             share_touched(op, args, operands, i);
        const bool overwritten = op == HW_OP_SET_ROWS && i == operand_set_rows_table;
        if (role_is_input(layout[i].role) && !overwritten)
            cost.read += bytes;
        if (role_is_output(layout[i].role))
            cost.written += bytes;
    }
    return cost;
}
