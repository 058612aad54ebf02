/* SPDX-License-Identifier: MIT */
/* The plans that a queue remembers. Models repeat the same calls with other addresses, and a plan
 * depends on everything in an op's struct except the addresses of its tensors. So a plan is made
 * from a copy of the struct without addresses, and each call sets its own. */
#include "cpu.h"

#include <stdlib.h>

enum {
    PLANS = 64, /* several times the forms of a model's layers */
    WAYS = 4    /* neighbouring places that a plan may take */
};

union op_args {
#define X(NAME, name) struct hw_##name name;
    HW_OPS(X)
#undef X
};

struct known_plan {
    uint32_t op;
    uint16_t where[PORTABLE_POINTERS]; /* the kernel's operands in the op's struct */
    _Alignas(16) union op_args args;   /* without addresses */
    struct plan plan;
};

struct plans {
    uint32_t next;        /* the way (of its set) that the next new plan takes */
    uint32_t hash[PLANS]; /* of each plan; 0: there is none */
    struct known_plan known[PLANS];
};

/* Tensors come first in an op's struct. */
static const struct {
    uint32_t tensors, bytes;
} layouts[HW_OP_COUNT] = {
#define T(op, field, role) +1
#define X(NAME, name)      { 0 HW_OPERANDS_##NAME(T), sizeof(struct hw_##name) },
    HW_OPS(X)
#undef X
#undef T
};

#define X(NAME, name)                                                                      \
    _Static_assert(sizeof(struct hw_##name) % sizeof(uint64_t) == 0, #name ": words");
HW_OPS(X)
#undef X

struct plans *plans_create(void)
{
    struct plans *plans = malloc(sizeof *plans);
    if (plans)
        memset(plans, 0, offsetof(struct plans, known));
    return plans;
}

void plans_destroy(struct plans *plans)
{
    free(plans);
}

/* ---- finding ---- */

typedef uint64_t word __attribute__((may_alias));
/* Two words at a time; in a known plan they are aligned. */
typedef uint64_t pair __attribute__((vector_size(16), may_alias, aligned(8)));
typedef uint64_t even_pair __attribute__((vector_size(16), may_alias));

/* The offset of a tensor's extents. The address, dtype and rank come before them. */
#define SHAPE_AT offsetof(struct hw_tensor, extent)
_Static_assert(SHAPE_AT % sizeof(pair) == 0 && sizeof(struct hw_tensor) % sizeof(pair) == 0,
               "tensors: pairs");

static const void *at(const void *args, size_t offset)
{
    return (const char *)args + offset;
}

static bool same_form(const struct known_plan *known, const void *args)
{
    const size_t fields = layouts[known->op].tensors * sizeof(struct hw_tensor);
    const struct hw_tensor *t = args, *like = (const void *)&known->args;
    pair differ = { 0 };
    uint64_t other = 0;
    for (size_t i = fields; i < layouts[known->op].bytes; i += sizeof(word))
        other |= *(const word *)at(args, i) ^ *(const word *)at(&known->args, i);
    for (const struct hw_tensor *end = at(args, fields); t < end; t++, like++) {
        other |= *(const word *)&t->dtype ^ *(const word *)&like->dtype;
        for (size_t i = SHAPE_AT; i < sizeof *t; i += sizeof(pair))
            differ |= *(const pair *)at(t, i) ^ *(const even_pair *)at(like, i);
    }
    return !(differ[0] | differ[1] | other);
}

static uint32_t hash_of(uint32_t op, const void *args)
{
    const struct hw_tensor *t = args;
    return ((uint32_t)t[0].extent[0] * 0x2545F491u +
            (uint32_t)t[0].stride[0] * 0x1B873593u +
            (uint32_t)t[1].extent[0] * 0x6C078965u +
            (uint32_t)t[1].stride[0] * 0x5851F42Du + op * 0x3C6EF35Fu) |
           1;
}

/* The place that is the way-th for plans with this hash. */
static uint32_t place_of(uint32_t hash, uint32_t way)
{
    return (hash / (UINT32_MAX / PLANS + 1) + way) % PLANS;
}

/* ---- making ---- */

static void copy_without_addresses(struct known_plan *known, uint32_t op, const void *args)
{
    struct hw_tensor *t = (void *)&known->args;
    memcpy(&known->args, args, layouts[op].bytes);
    for (uint32_t i = 0; i < layouts[op].tensors; i++) {
        t[i].buffer = NULL;
        t[i].data = NULL;
        t[i].offset = 0;
    }
}

/* An absent operand is not read, so the place of another one will do. */
static void note_operands(struct known_plan *known)
{
    const struct lowered *l = &known->plan.lowered;
    for (uint32_t i = 0; i < l->pointers; i++) {
        const struct hw_tensor *t = l->operand[l->operand[i] ? i : 0];
        known->where[i] = (uint16_t)((const char *)t - (const char *)&known->args);
    }
}

static struct known_plan *make(struct queue *queue, uint32_t op, const void *args,
                               uint32_t hash, const char **why)
{
    struct plans *plans = queue->plans;
    uint32_t place = place_of(hash, plans->next++ % WAYS);
    for (uint32_t way = 0; plans->hash[place] && way < WAYS; way++)
        if (!plans->hash[place_of(hash, way)])
            place = place_of(hash, way);
    plans->hash[place] = 0;
    struct known_plan *known = &plans->known[place];
    copy_without_addresses(known, op, args);
    if ((*why = launch_plan(queue, op, &known->args, &known->plan)))
        return NULL;
    note_operands(known);
    known->op = op;
    plans->hash[place] = hash;
    return known;
}

/* ---- both ---- */

/* The address of the first element. An empty tensor's NULL is not read. */
static void *first_element(const struct hw_tensor *t)
{
    return (void *)((uintptr_t)(t->buffer ? t->buffer->host : t->data) + t->offset);
}

struct plan *plans_find(struct queue *queue, uint32_t op, const void *args,
                        const char **why)
{
    const uint32_t hash = hash_of(op, args);
    struct plans *plans = queue->plans;
    struct known_plan *known = NULL;
    for (uint32_t way = 0; way < WAYS && !known; way++) {
        const uint32_t place = place_of(hash, way);
        if (plans->hash[place] == hash && plans->known[place].op == op &&
            same_form(&plans->known[place], args))
            known = &plans->known[place];
    }
    if (!known && !(known = make(queue, op, args, hash, why)))
        return NULL;
    for (uint32_t i = 0; i < known->plan.lowered.pointers; i++)
        known->plan.pointer[i] = first_element(at(args, known->where[i]));
    return &known->plan;
}
