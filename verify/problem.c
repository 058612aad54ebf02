/* SPDX-License-Identifier: MIT */
/* problem.c - see problem.h. */
#include "problem.h"

#include "storage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void problem_clear(struct problem *p)
{
    for (int i = 0; i < p->count; i++) {
        operand_clear(&p->operand[i]);
        free((void *)p->layout[i].index);
    }
    free(p->image);
    *p = (struct problem){ .op = p->op };
}

/* ---- strides ------------------------------------------------------------------------------- */

/* The order of the axes, beginning with the one that varies fastest in memory. */
static void memory_order(int32_t order[HW_MAX_RANK], int32_t rank, int32_t swap_a,
                         int32_t swap_b)
{
    for (int32_t i = 0; i < rank; i++)
        order[i] = rank - 1 - i;
    if (swap_b >= 0) {
        order[rank - 1 - swap_a] = swap_b;
        order[rank - 1 - swap_b] = swap_a;
    }
}

/* Sets the strides for `order`; each axis except the fastest leaves a gap of `gap` bytes.
 */
static void set_strides(struct layout *l, const struct operand *o, const int32_t *order,
                        int64_t gap)
{
    int64_t step = hw_dtype_bytes(o->dtype);

    for (int32_t i = 0; i < o->rank; i++) {
        const int32_t axis = order[i];
        const int64_t block = axis == o->rank - 1 ? hw_dtype_block(o->dtype) : 1;
        l->stride[axis] = step;
        step = step * (o->extent[axis] / block) + gap;
    }
}

/* All views. A view that an operand's rank or dtype does not allow becomes "plain". */
static bool is_view(const char *name)
{
    static const char *const views[] = { "plain",   "offset", "padded",
                                         "swapped", "inner",  "repeat" };
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++)
        if (!strcmp(views[i], name))
            return true;
    return false;
}

/* Whether an output shares the memory of operand `i`. */
static bool is_shared(const struct problem *p, int i)
{
    for (int j = 0; j < p->count; j++)
        if (p->operand[j].dtype != HW_NONE && p->layout[j].same_as == i)
            return true;
    return false;
}

static void apply_view(struct problem *p, int i, const char *view)
{
    struct layout *l = &p->layout[i];
    const struct operand *o = &p->operand[i];
    const bool inner = !strcmp(view, "inner") && !storage_is_block(o->dtype);
    const int64_t unit = hw_dtype_bytes(o->dtype);
    int32_t order[HW_MAX_RANK];

    if (!is_view(view))
        problem_fail(p,
                     "no view is called '%s'; there are: plain offset padded swapped inner "
                     "repeat",
                     view);
    memory_order(order, o->rank, 0, -1);
    if (!strcmp(view, "offset"))
        l->place += (uint64_t)unit;
    if (!strcmp(view, "swapped") && o->rank >= 3)
        memory_order(order, o->rank, o->rank - 3, o->rank - 2);
    if (inner && o->rank >= 2)
        memory_order(order, o->rank, o->rank - 2, o->rank - 1);
    set_strides(l, o, order, !strcmp(view, "padded") ? 3 * unit : 0);
    if (inner && o->rank == 1)
        l->stride[0] = 2 * unit;
    if (!strcmp(view, "repeat") && !role_is_output(o->role) && !is_shared(p, i) &&
        o->rank >= 2)
        l->stride[0] = 0;
}

/* Bytes from the start of the first element to the end of the last. */
static uint64_t span_of(const struct layout *l, const struct operand *o)
{
    uint64_t span = (uint64_t)hw_dtype_bytes(o->dtype);
    for (int32_t i = 0; i < o->rank; i++) {
        const int64_t block = i == o->rank - 1 ? hw_dtype_block(o->dtype) : 1;
        span += (uint64_t)((o->extent[i] / block - 1) * l->stride[i]);
    }
    return o->count ? span : 0;
}

static void lay_out(struct problem *p)
{
    const char *view = parameter(&p->parameters, "view");
    const char *out = parameter(&p->parameters, "oview");
    const char *mem = parameter(&p->parameters, "mem");
    int present = 0;

    const bool crossed = !strcmp(mem, "crossed"), mixed = crossed || !strcmp(mem, "mixed");
    if (strcmp(mem, "device") && strcmp(mem, "host") && !mixed)
        problem_fail(p, "no memory is called '%s'; there are: device host mixed crossed",
                     mem);
    p->bytes = GUARD_BYTES;
    for (int i = 0; i < p->count; i++) {
        const struct operand *o = &p->operand[i];
        struct layout *l = &p->layout[i];
        if (o->dtype == HW_NONE)
            continue;
        if (l->same_as >= 0) {
            const struct data_kind *data = l->data;
            const int same_as = l->same_as;
            *l = p->layout[same_as];
            l->same_as = same_as;
            l->data = data;
            l->index = NULL;
            continue;
        }
        l->host = !strcmp(mem, "host") || (mixed && present++ % 2 == !crossed);
        l->place = p->bytes;
        apply_view(p, i, role_is_output(o->role) && strcmp(out, "same") ? out : view);
        p->bytes = (l->place + span_of(l, o) + GUARD_BYTES + 255) & ~(uint64_t)255;
    }
    p->bytes += 4096;
}

bool problem_is_empty(const struct problem *p)
{
    for (int i = 0; i < p->count; i++)
        if (p->operand[i].dtype != HW_NONE && role_is_output(p->operand[i].role) &&
            p->operand[i].count)
            return false;
    return true;
}

struct hw_tensor problem_tensor(const struct problem *p, int i)
{
    const struct operand *o = &p->operand[i];
    struct hw_tensor tensor = { .offset = p->layout[i].place,
                                .dtype = o->dtype,
                                .rank = o->rank };

    for (int32_t axis = 0; axis < o->rank; axis++) {
        tensor.extent[axis] = o->extent[axis];
        tensor.stride[axis] = p->layout[i].stride[axis];
    }
    return tensor;
}

/* ---- data ---------------------------------------------------------------------------------- */

/* A seed computed from text (FNV-1a), so that a case has the same data everywhere. */
static uint64_t seed_of(const char *text, int operand)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash + (uint64_t)operand;
}

/* With stride 0, all slices of the outermost axis equal the first. */
static void repeat_slices(const struct layout *l, struct operand *o)
{
    if (l->stride[0] != 0 || o->extent[0] < 2)
        return;
    const size_t slice = storage_bytes(o->dtype, o->count) / (size_t)o->extent[0];
    for (int64_t i = 1; i < o->extent[0]; i++)
        memcpy(o->bytes + (size_t)i * slice, o->bytes, slice);
}

/* Sets keys and values past the length to NaN, which must not appear in the result. */
static void poison_tails(struct problem *p)
{
    const struct operand *lengths = &p->operand[operand_attention_lengths];

    for (int i = operand_attention_k; i <= operand_attention_v; i++) {
        struct operand *o = &p->operand[i];
        const int64_t most = o->extent[o->rank - 3],
                      batches = o->rank == 4 ? o->extent[0] : 1;
        const size_t token = storage_bytes(o->dtype,
                                           o->extent[o->rank - 2] * operand_cols(o));
        for (int64_t batch = 0; batch < batches; batch++) {
            int64_t length = p->args.attention.length ? p->args.attention.length : most;
            if (lengths->dtype)
                length = p->layout[operand_attention_lengths].index[batch];
            length = length < 0 ? 0 : length;
            for (int64_t t = length; t < most; t++)
                memset(o->bytes + (size_t)(batch * most + t) * token, 0xff, token);
        }
    }
}

static void put_integers(struct operand *o, const int64_t *values)
{
    for (int64_t i = 0; i < o->count; i++)
        if (o->dtype == HW_I64)
            memcpy(o->bytes + 8 * i, &values[i], 8);
        else
            memcpy(o->bytes + 4 * i, &(int32_t){ (int32_t)values[i] }, 4);
}

static void fill(struct problem *p, const char *text)
{
    for (int i = 0; i < p->count; i++) {
        struct operand *o = &p->operand[i];
        const struct layout *l = &p->layout[i];
        if (o->dtype == HW_NONE || !o->bytes)
            continue;
        if (l->index)
            put_integers(o, l->index);
        else
            data_fill(l->data, seed_of(text, i), o);
        repeat_slices(l, o);
    }
    if (p->op == HW_OP_ATTENTION)
        poison_tails(p);
    for (int i = 0; i < p->count; i++)
        if (p->operand[i].value)
            storage_read_all(p->operand[i].dtype, p->operand[i].bytes, p->operand[i].value,
                             p->operand[i].count);
}

static bool make_image(struct problem *p)
{
    uint64_t noise = p->bytes;

    p->image = malloc(p->bytes);
    if (!p->image || p->detail == DETAIL_SHAPES)
        return p->image != NULL;
    for (uint64_t i = 0; i + 8 <= p->bytes; i += 8) {
        const uint64_t word = p->detail == DETAIL_NUMBERS ? data_random(&noise) : 0;
        memcpy(p->image + i, &word, 8);
    }
    for (int i = 0; i < p->count; i++) {
        const struct operand *o = &p->operand[i];
        const struct hw_tensor tensor = problem_tensor(p, i);
        if (o->dtype != HW_NONE && o->bytes && o->count)
            storage_scatter(&tensor, p->image + tensor.offset, o->bytes);
    }
    return true;
}

/* Only optional operands may be absent. */
static void check_present(struct problem *p)
{
    for (int i = 0; i < p->count; i++)
        if (p->operand[i].dtype == HW_NONE && p->operand[i].role != HW_ROLE_OPT_IN &&
            p->operand[i].role != HW_ROLE_OPT_OUT)
            problem_fail(p, "%s: cannot be absent", p->operand[i].name);
}

bool problem_make(struct problem *p, const struct test_case *test, enum detail detail)
{
    char error[ERROR_TEXT] = "";

    *p = (struct problem){ .op = test->op, .detail = detail };
    p->count = operands_of(p->op, p->operand, p->field);
    for (int i = 0; i < p->count; i++)
        p->layout[i].same_as = -1;
    if (!case_parameters(test, &p->parameters, error, sizeof error))
        problem_fail(p, "%s", error);
    if (!p->error[0])
        problem_build(p);
    check_present(p);
    if (!p->error[0])
        lay_out(p);
    if (!p->error[0]) {
        if (detail != DETAIL_SHAPES)
            fill(p, test->text);
        if (!make_image(p))
            problem_no_memory(p);
    }
    if (p->error[0]) {
        const bool no_memory = p->no_memory;
        memcpy(error, p->error, sizeof error);
        problem_clear(p);
        memcpy(p->error, error, sizeof error);
        p->no_memory = no_memory;
        return false;
    }
    return true;
}
