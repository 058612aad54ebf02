/* SPDX-License-Identifier: MIT */
/* shadow.c - hw_shadow.so: judges a call of an application for HW_SHADOW. If the results of the
 * device and of the CPU plugin agree, they are right. Otherwise the oracle says whether the result
 * of the device is as close as conformance asks for. The oracle alone would take too long. */
#include "judge.h"

#include "close.h"
#include "storage.h"

#include <build_stamp.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)SHADOW_OPERANDS == (int)MAX_OPERANDS, "operands of an op");

static const char *const precisions[] = {
    [HW_PRECISION_FP32] = "fp32", [HW_PRECISION_FP16] = "fp16", [HW_PRECISION_INT8] = "int8"
};

/* The operands of the call: without `numbers`, only integers have values, which say how much work
 * the op is. False if out of memory. The caller clears them in any case. */
static bool operands_take(const struct shadow_call *call, struct operand *operands,
                          int count, const size_t *field, bool numbers)
{
    bool good = true;
    for (int i = 0; i < count && good; i++) {
        const struct hw_tensor *t = (const void *)((const char *)call->args + field[i]);
        struct operand *o = &operands[i];
        const bool all = numbers ||
                         (!storage_is_float(t->dtype) && !storage_is_block(t->dtype));
        if (t->dtype == HW_NONE)
            continue;
        good = operand_make(o, t->dtype, t->rank, t->extent, all);
        if (!good || !all || !call->before[i])
            continue;
        memcpy(o->bytes, call->before[i], storage_bytes(o->dtype, o->count));
        storage_read_all(o->dtype, o->bytes, o->value, o->count);
    }
    return good;
}

static bool all_agree(const struct shadow_call *call, const struct result *result)
{
    /* The results of ops without arithmetic are exact. */
    const bool exact = oracle_cost(call->op, call->args, result->operand).flops == 0;
    bool agree = true;
    for (int i = 0; i < result->count && agree; i++) {
        const struct operand *o = &result->operand[i];
        if (call->after[i])
            agree = call->expected[i] &&
                    (exact ? !memcmp(call->after[i], call->expected[i],
                                     storage_bytes(o->dtype, o->count))
                           : outputs_agree(result, i, call->after[i], call->expected[i]));
    }
    return agree;
}

static bool is_wild(const struct operand *o)
{
    bool wild = false;
    for (int64_t i = 0; o->value && storage_is_float(o->dtype) && i < o->count && !wild;
         i++)
        wild = !isfinite(o->value[i]);
    return wild;
}

/* Matrix units may multiply elements that the op does not use by zero: if these are infinite or
 * NaN, so may the results of attention be. */
static void forgive_wild(const struct operand *operands, int count, const struct operand *o,
                         unsigned char *after)
{
    const size_t bytes = (size_t)hw_dtype_bytes(o->dtype);
    bool wild = false;
    for (int i = 0; i < count && !wild; i++)
        wild = is_wild(&operands[i]);
    for (int64_t i = 0; wild && i < o->count; i++)
        if (isnan(storage_read(o->dtype, after, i)))
            storage_write(o->dtype, after + (size_t)i * bytes, &o->want[i], 1);
}

static enum shadow_verdict ask_oracle(const struct shadow_call *call,
                                      const struct result *result, struct operand *operands,
                                      char *why, size_t size)
{
    struct judgement judgement = { 0 };
    if (!oracle_compute(call->op, call->args, operands))
        return SHADOW_UNKNOWN;
    for (int i = 0; i < result->count && !*judgement.text; i++) {
        if (!call->after[i] || !operands[i].count)
            continue;
        if (call->op == HW_OP_ATTENTION)
            forgive_wild(operands, result->count, &operands[i], call->after[i]);
        output_judge(result, i, call->after[i], &judgement);
    }
    snprintf(why, size, "%s", judgement.text);
    return *judgement.text ? SHADOW_WRONG : SHADOW_RIGHT;
}

/* With `numbers`, the oracle decides; without, only whether the results agree. */
static enum shadow_verdict judge(const struct shadow_call *call, bool numbers, char *why,
                                 size_t size)
{
    struct operand operands[MAX_OPERANDS];
    size_t field[MAX_OPERANDS];
    const int count = operands_of(call->op, operands, field);
    const struct result result = { .op = call->op,
                                   .count = count,
                                   .operand = operands,
                                   .precision = precisions[call->precision] };
    enum shadow_verdict verdict = SHADOW_UNKNOWN;
    if (operands_take(call, operands, count, field, numbers))
        verdict = numbers ? ask_oracle(call, &result, operands, why, size)
                  : all_agree(call, &result) ? SHADOW_RIGHT
                                             : SHADOW_UNKNOWN;
    for (int i = 0; i < count; i++)
        operand_clear(&operands[i]);
    return verdict;
}

int32_t hw_shadow_judge(const struct shadow_call *call, char *why, size_t size)
{
    if (strcmp(call->stamp, HW_BUILD_STAMP) != 0)
        return SHADOW_UNKNOWN;
    if (call->op >= HW_OP_COUNT)
        return SHADOW_RIGHT;
    enum shadow_verdict verdict = judge(call, false, why, size);
    if (verdict != SHADOW_RIGHT)
        verdict = judge(call, true, why, size);
    return (int32_t)verdict;
}
