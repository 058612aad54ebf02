/* SPDX-License-Identifier: MIT */
/* ops.h - the op table as data: structs, operands, and the functions of each op. */
#ifndef HW_CALL_OPS_H
#define HW_CALL_OPS_H

#include <hw/hw.h>

#include <stdbool.h>

/* A field of an op's struct: an operand, or one of the other fields, which follow. */
struct operand_row {
    char name[16]; /* in the row: a pointer would have to be relocated in every process */
    uint32_t offset, bytes;
    int32_t type;      /* enum hw_field_type */
    enum hw_role role; /* of a tensor */
    const char *zero;  /* the meaning of the value 0; NULL: it is a tensor */
};

#define MAX_OPERANDS 8
#define MAX_SCALARS  10 /* fields other than operands */

/* An op on operands of these dtypes, in the order of its operands; HW_NONE: absent. */
struct op_form {
    uint32_t op; /* enum hw_op */
    int32_t dtype[MAX_OPERANDS];
};

/* Room for any op's struct. */
union any_op {
#define X(NAME, name) struct hw_##name name;
    HW_OPS(X)
#undef X
};

/* OPERAND_silu_x and so on: an operand's number within its op. */
#define T(op, field, role) OPERAND_##op##_##field,
#define X(NAME, name)      enum { HW_OPERANDS_##NAME(T) OPERANDS_##name };
HW_OPS(X)
#undef X
#undef T

/* Calls the plugin's function of an op. */
typedef int32_t plugin_fn(struct hw_queue *queue, const void *args);
/* hw_submit() for a queue that is not NULL. */
typedef enum hw_status submit_any(struct hw_queue *queue, uint32_t op, const void *args,
                                  size_t size);

struct op_row {
    uint32_t size; /* of the op's struct */
    uint32_t operand_count, field_count;
    uint32_t written;                   /* bit i: operand i is an output */
    const struct operand_row *operands; /* then the other fields */
    plugin_fn *call;
};
extern const struct op_row op_rows[HW_OP_COUNT] __attribute__((visibility("hidden")));

/* The function for a queue and an op; `looks`: it first looks whether the call is like an earlier
 * one. */
submit_any *submit_for(uint32_t op, bool looks);

/* The first part of a full check: the queue is ready, and *args, which may become `copy`, has the
 * library's size. */
enum hw_status submit_begin(struct hw_queue *queue, uint32_t op, const void **args,
                            size_t size, union any_op *copy);
/* The second part: checks the operands, and submits the call. */
enum hw_status submit_whole(struct hw_queue *queue, uint32_t op, const void *args);

static inline bool role_reads(enum hw_role role)
{
    return role != HW_ROLE_OUT && role != HW_ROLE_OPT_OUT;
}

static inline bool role_writes(enum hw_role role)
{
    return role >= HW_ROLE_OUT;
}

static inline bool role_optional(enum hw_role role)
{
    return role == HW_ROLE_OPT_IN || role == HW_ROLE_OPT_OUT;
}

static inline struct hw_tensor *operand_in(void *args, const struct operand_row *operand)
{
    return (struct hw_tensor *)(void *)((char *)args + operand->offset);
}

static inline const struct hw_tensor *operand_at(const void *args,
                                                 const struct operand_row *operand)
{
    return (const struct hw_tensor *)(const void *)((const char *)args + operand->offset);
}

#endif
