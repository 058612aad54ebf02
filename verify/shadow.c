/* SPDX-License-Identifier: MIT */
/* shadow.c - hw_shadow.so: judges a call of an application for HW_SHADOW. It copies the operands
 * before the call, and lets the CPU plugin compute the op on the copies. If the results of the
 * device and of the CPU plugin agree, they are right. Otherwise the oracle says whether the result
 * of the device is as close as conformance asks for. The oracle alone would take too long. */
#include "judge.h"

#include "close.h"
#include "storage.h"

#include <build_stamp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const precisions[] = {
    [HW_PRECISION_FP32] = "fp32", [HW_PRECISION_FP16] = "fp16", [HW_PRECISION_INT8] = "int8"
};

/* A comparison. Copies are contiguous, in the order of the op's operands; NULL: absent, or not of
 * this kind. */
struct shadow_copies {
    struct shadow_call call;
    int count;
    struct operand name[MAX_OPERANDS]; /* only the names and roles */
    size_t field[MAX_OPERANDS];
    union op_args right;          /* the call on copies, for the CPU plugin */
    void *before[MAX_OPERANDS];   /* operands that the op reads */
    void *after[MAX_OPERANDS];    /* results of the device */
    void *expected[MAX_OPERANDS]; /* results of the CPU plugin */
};

/* ---- copies ---- */

static const struct hw_tensor *tensor_of(const struct shadow_copies *c, int i)
{
    return (const void *)((const char *)c->call.args + c->field[i]);
}

static struct hw_tensor *right_of(struct shadow_copies *c, int i)
{
    return (void *)((char *)&c->right + c->field[i]);
}

/* Describes the same elements, contiguous and without an address; false if they are too large. */
static bool tensor_pack(const struct hw_tensor *t, struct hw_tensor *packed, size_t *bytes)
{
    int64_t stride = hw_dtype_bytes(t->dtype);
    *packed = *t;
    packed->buffer = NULL;
    packed->data = NULL;
    packed->offset = 0;
    for (int32_t i = t->rank - 1; i >= 0; i--) {
        const int64_t block = i == t->rank - 1 ? hw_dtype_block(t->dtype) : 1;
        packed->stride[i] = stride;
        if (__builtin_mul_overflow(stride, t->extent[i] / block, &stride))
            return false;
    }
    *bytes = (size_t)stride;
    return true;
}

/* Allocates a copy of the tensor, with its elements if `filled`. NULL: it cannot be copied. */
static void *tensor_copy(const struct shadow_call *call, const struct hw_tensor *t,
                         bool filled, struct hw_tensor *copy)
{
    size_t bytes;
    if (t->layout || !tensor_pack(t, copy, &bytes) || !(copy->data = calloc(1, bytes + 1)))
        return NULL;
    if (filled && call->move(call->queue, copy, t)) {
        free(copy->data);
        copy->data = NULL;
    }
    return copy->data;
}

static bool operand_copy(struct shadow_copies *c, int i)
{
    const struct hw_tensor *t = tensor_of(c, i);
    const bool reads = role_is_input(c->name[i].role);
    bool good = true;
    if (t->dtype == HW_NONE)
        return true;
    if (reads)
        good = (c->before[i] = tensor_copy(&c->call, t, true, right_of(c, i)));
    if (good && role_is_output(c->name[i].role))
        good = (c->expected[i] = tensor_copy(&c->call, t, reads, right_of(c, i)));
    return good;
}

static void shadow_end(struct shadow_copies *c)
{
    for (int i = 0; c && i < c->count; i++) {
        free(c->before[i]);
        free(c->after[i]);
        free(c->expected[i]);
    }
    free(c);
}

static struct shadow_copies *shadow_begin(const struct shadow_call *call)
{
    struct shadow_copies *c = calloc(1, sizeof *c);
    bool good = true;
    if (!c)
        return NULL;
    c->call = *call;
    c->count = operands_of(call->op, c->name, c->field);
    memcpy(&c->right, call->args, op_args_size(call->op));
    for (int i = 0; i < c->count && good; i++)
        good = operand_copy(c, i);
    if (good)
        return c;
    shadow_end(c);
    return NULL;
}

/* ---- the verdict ---- */

/* The operands of the call: without `numbers`, only integers have values, which say how much work
 * the op is. False if out of memory. The caller clears them in any case. */
static bool operands_take(const struct shadow_copies *c, struct operand *operands,
                          bool numbers)
{
    bool good = true;
    for (int i = 0; i < c->count && good; i++) {
        const struct hw_tensor *t = tensor_of(c, i);
        struct operand *o = &operands[i];
        const bool all = numbers ||
                         (!storage_is_float(t->dtype) && !storage_is_block(t->dtype));
        if (t->dtype == HW_NONE)
            continue;
        good = operand_make(o, t->dtype, t->rank, t->extent, all);
        if (!good || !all || !c->before[i])
            continue;
        memcpy(o->bytes, c->before[i], storage_bytes(o->dtype, o->count));
        storage_read_all(o->dtype, o->bytes, o->value, o->count);
    }
    return good;
}

static bool all_agree(const struct shadow_copies *c, const struct result *result)
{
    /* The results of ops without arithmetic are exact. */
    const bool exact = oracle_cost(c->call.op, c->call.args, result->operand).flops == 0;
    bool agree = true;
    for (int i = 0; i < result->count && agree; i++) {
        const struct operand *o = &result->operand[i];
        if (c->after[i])
            agree = exact ? !memcmp(c->after[i], c->expected[i],
                                    storage_bytes(o->dtype, o->count))
                          : outputs_agree(result, i, c->after[i], c->expected[i]);
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

static enum shadow_verdict ask_oracle(const struct shadow_copies *c,
                                      const struct result *result, struct operand *operands,
                                      struct judgement *judgement)
{
    if (!oracle_compute(c->call.op, c->call.args, operands))
        return SHADOW_UNKNOWN;
    for (int i = 0; i < result->count && !*judgement->text; i++) {
        if (!c->after[i] || !operands[i].count)
            continue;
        if (c->call.op == HW_OP_ATTENTION)
            forgive_wild(operands, result->count, &operands[i], c->after[i]);
        output_judge(result, i, c->after[i], judgement);
    }
    return *judgement->text ? SHADOW_WRONG : SHADOW_RIGHT;
}

/* With `numbers`, the oracle decides; without, only whether the results agree. */
static enum shadow_verdict decide(const struct shadow_copies *c, bool numbers,
                                  struct judgement *judgement)
{
    struct operand operands[MAX_OPERANDS];
    size_t field[MAX_OPERANDS];
    const int count = operands_of(c->call.op, operands, field);
    const struct result result = { .op = c->call.op,
                                   .count = count,
                                   .operand = operands,
                                   .precision = precisions[c->call.precision] };
    enum shadow_verdict verdict = SHADOW_UNKNOWN;
    if (operands_take(c, operands, numbers))
        verdict = numbers                 ? ask_oracle(c, &result, operands, judgement)
                  : all_agree(c, &result) ? SHADOW_RIGHT
                                          : SHADOW_UNKNOWN;
    for (int i = 0; i < count; i++)
        operand_clear(&operands[i]);
    return verdict;
}

/* "x f32 [1, 4], "; returns its length. */
static size_t operand_write(const char *name, const struct hw_tensor *t, char *text,
                            size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s %s", name, storage_name(t->dtype));
    for (int32_t axis = 0; axis < t->rank && used < size; axis++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", axis ? ", " : " [",
                                 (long long)t->extent[axis]);
    if (used < size)
        used += (size_t)snprintf(text + used, size - used, "], ");
    return used;
}

/* "with x f32 [1, 4], y f32 [1, 4], ELEMENT (HW_SHADOW)" */
static void accusation_write(const struct shadow_copies *c, const char *element, char *why,
                             size_t size)
{
    size_t used = (size_t)snprintf(why, size, "with ");
    for (int i = 0; i < c->count && used < size; i++)
        if (tensor_of(c, i)->dtype != HW_NONE)
            used += operand_write(c->name[i].name, tensor_of(c, i), why + used,
                                  size - used);
    if (used < size)
        snprintf(why + used, size - used, "%s (HW_SHADOW)", element);
}

static enum shadow_verdict shadow_judge(struct shadow_copies *c, char *why, size_t size)
{
    struct judgement judgement = { 0 };
    struct hw_tensor copy;
    for (int i = 0; i < c->count; i++)
        if (c->expected[i] &&
            !(c->after[i] = tensor_copy(&c->call, tensor_of(c, i), true, &copy)))
            return SHADOW_UNKNOWN;
    if (c->call.compute(c->call.queue, c->call.op, &c->right))
        return SHADOW_UNKNOWN;
    enum shadow_verdict verdict = decide(c, false, &judgement);
    if (verdict != SHADOW_RIGHT)
        verdict = decide(c, true, &judgement);
    if (verdict == SHADOW_WRONG)
        accusation_write(c, judgement.text, why, size);
    return verdict;
}

static enum hw_status shadow_correct(struct shadow_copies *c)
{
    enum hw_status status = HW_OK;
    for (int i = 0; i < c->count && !status; i++)
        if (c->expected[i])
            status = c->call.move(c->call.queue, tensor_of(c, i), right_of(c, i));
    return status;
}

int32_t hw_shadow_entry(const char *stamp, struct shadow_judge *judge)
{
    if (strcmp(stamp, HW_BUILD_STAMP) != 0)
        return HW_ABI;
    *judge = (struct shadow_judge){ .begin = shadow_begin,
                                    .judge = shadow_judge,
                                    .correct = shadow_correct,
                                    .end = shadow_end };
    return HW_OK;
}
