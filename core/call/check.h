/* SPDX-License-Identifier: MIT */
/* check.h - the full check of each op's operands. */
#ifndef HW_CALL_CHECK_H
#define HW_CALL_CHECK_H

#include "call/layout.h"
#include "call/ops.h"
#include "core.h"

/* A further result of a check: properties of the operands that need more than a plain call. */
enum trait {
    TRAIT_ALWAYS = 1,   /* always set; some queues use it to check every call */
    TRAIT_HOST = 2,     /* an operand lies in host memory */
    TRAIT_STRIDED = 4,  /* an operand's innermost extent is not contiguous */
    TRAIT_EMPTY = 8,    /* the outputs are empty: there is nothing to do */
    TRAIT_REJECTED = 16 /* other devices compute the op: see op_state.h */
};

/* A check in progress. */
struct check {
    struct hw_device *device; /* the device that the buffers must belong to */
    uint32_t op;
    uint32_t traits;
    const void *args; /* the op's struct */
    struct byte_range bytes[MAX_OPERANDS];
};

/* Pure. HW_INVALID comes with a message that names the field. */
enum hw_status check_call(const void *args, struct check *check);

#endif
