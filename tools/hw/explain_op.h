/* SPDX-License-Identifier: MIT */
/* explain_op.h - `hw explain --op`: where a call on host memory is computed, and why. */
#ifndef HW_TOOL_EXPLAIN_OP_H
#define HW_TOOL_EXPLAIN_OP_H

struct explain_op {
    const char *op;            /* an op, or a case of verify.h: "silu(shape=4x64)" */
    const char *shape, *types; /* NULL: the usual ones */
    const char *device;        /* NULL: the default one */
};

/* Explains it, and returns the exit status. */
int explain_op(const struct explain_op *asked);

#endif
