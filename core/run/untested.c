/* SPDX-License-Identifier: MIT */
/* untested.c - tests an op that the admission test skipped when a device is about to get it for the
 * first time. The first thread starts the test; other threads that need the same op wait for it.
 * All other threads go on.
 *
 * The cases of the test have only some combinations of dtypes. A call with another combination uses
 * the result of the nearest form: the same dtypes, except for operands that only one of the two
 * has. No case has packed operands, which use other kernels, so a call with them waits for no
 * test. */
#include "run/untested.h"

#include <stdlib.h>
#include <string.h>

enum state { SETTLED, LEFT_OUT, UNDER_TEST };

struct untested_form {
    struct op_form form;
    uint32_t cases;         /* how many cases were skipped */
    _Atomic uint32_t state; /* enum state; changes under the context's lock */
};

struct untested {
    struct untested *older; /* the list before it, which another thread may be reading */
    struct tested tested;
    pthread_cond_t settled; /* a form was settled; used with the context's lock */
    uint32_t count, open;   /* how many forms; how many of them are not SETTLED */
    struct untested_form list[];
};

/* ---- the list ---- */

bool untested_list(struct hw_device *device, const struct op_form *forms,
                   const uint8_t *left, uint32_t count)
{
    uint32_t open = 0;
    for (uint32_t i = 0; i < count; i++)
        open += left[i] != 0;
    if (!open && !device->untested)
        return true;
    struct untested *made = calloc(1, sizeof *made + count * sizeof *made->list);
    if (!made)
        return false;
    pthread_cond_init(&made->settled, NULL);
    made->count = count;
    made->open = made->tested.forms = open;
    for (uint32_t i = 0; i < count; i++) {
        made->list[i].form = forms[i];
        made->list[i].cases = left[i];
        made->list[i].state = left[i] ? LEFT_OUT : SETTLED;
    }
    made->older = device->untested;
    atomic_store(&device->untested, made);
    if (open)
        atomic_fetch_or(&device->demoted, UNTESTED);
    return true;
}

void untested_free(struct hw_device *device)
{
    for (struct untested *one = device->untested; one;) {
        struct untested *older = one->older;
        pthread_cond_destroy(&one->settled);
        free(one);
        one = older;
    }
    device->untested = NULL;
}

const struct tested *tested_since(const struct hw_device *device)
{
    const struct untested *untested = atomic_load(&device->untested);
    return untested ? &untested->tested : NULL;
}

/* ---- the form of a call ---- */

enum { OTHER = MAX_OPERANDS + 1 };

/* How many operands only the form or only the call has; OTHER if dtypes differ or an operand is
 * packed. */
static uint32_t distance(const struct op_form *form, uint32_t op, const void *args)
{
    uint32_t differ = 0;
    if (form->op != op)
        return OTHER;
    for (uint32_t i = 0; i < op_rows[op].operand_count; i++) {
        const struct hw_tensor *t = operand_at(args, &op_rows[op].operands[i]);
        if (t->dtype != HW_NONE && t->layout)
            return OTHER;
        if (t->dtype == form->dtype[i])
            continue;
        if (t->dtype != HW_NONE && form->dtype[i] != HW_NONE)
            return OTHER;
        differ++;
    }
    return differ;
}

static struct untested_form *nearest(struct untested *untested, uint32_t op,
                                     const void *args)
{
    struct untested_form *best = NULL;
    uint32_t least = OTHER;
    for (uint32_t i = 0; i < untested->count && least; i++) {
        const uint32_t differ = distance(&untested->list[i].form, op, args);
        if (differ >= least)
            continue;
        least = differ;
        best = &untested->list[i];
    }
    return best;
}

/* ---- testing ---- */

/* The caller holds the context's lock, which is released during the test. */
static void test(struct hw_device *device, struct untested_form *one)
{
    struct untested *untested = device->untested;
    pthread_mutex_t *lock = &device->context->lock;
    atomic_store(&one->state, UNDER_TEST);
    pthread_mutex_unlock(lock);
    device_test(device, &one->form, one->cases, &untested->tested);
    pthread_mutex_lock(lock);
    atomic_store(&one->state, SETTLED);
    if (!--untested->open)
        atomic_fetch_and(&device->demoted, ~UNTESTED);
    pthread_cond_broadcast(&untested->settled);
}

static void settle(struct hw_device *device, struct untested_form *one)
{
    struct untested *untested = device->untested;
    pthread_mutex_t *lock = &device->context->lock;
    pthread_mutex_lock(lock);
    if (one->state == LEFT_OUT)
        test(device, one);
    while (one->state != SETTLED)
        pthread_cond_wait(&untested->settled, lock);
    pthread_mutex_unlock(lock);
}

enum hw_status admit_slowly(struct hw_device *device, uint32_t op, const void *args)
{
    const enum hw_status status = check_demotion(device, op, args);
    if (status || !(atomic_load(&device->demoted) & UNTESTED))
        return status;
    struct untested_form *one = nearest(device->untested, op, args);
    if (!one || atomic_load(&one->state) == SETTLED)
        return HW_OK;
    settle(device, one);
    return check_demotion(device, op, args);
}
