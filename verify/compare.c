/* SPDX-License-Identifier: MIT */
/* compare.c - see compare.h. docs/testing.md explains the tolerances. */
#include "compare.h"

#include "storage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- places -------------------------------------------------------------------------------- */

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
    output_judge(&(struct result){ .op = j->problem->op,
                                   .count = j->problem->count,
                                   .operand = j->problem->operand,
                                   .precision = j->precision },
                 i, j->packed[0], j->judgement);
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
