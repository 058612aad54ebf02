/* SPDX-License-Identifier: MIT */
/* gemv_plan.h - launches of matmul_gemv.cu, for its plan and for the fused launches of graphs. */
#ifndef GEMV_PLAN_H
#define GEMV_PLAN_H

#include "../launch.h"

#include "matmul_gemv.h"

/* The properties of a launch. */
struct gemv_kind {
    int type; /* of b */
    int64_t k;
    int tokens; /* rows of a in a launch; more take several */
    bool rounds;
    int32_t last; /* the type of the last part if it differs; otherwise HW_NONE */
};

/* Rows of c, or 0 if it has several batches. */
int64_t gemv_rows(const struct hw_tensor *c);
struct gemv_kind gemv_kind_of(const struct hw_matmul *op, const struct plan *plan);

/* Whether the last part of a launch may have this type, too. */
bool gemv_may_end_with(const struct device *device, const struct gemv_kind *kind,
                       int32_t type);

/* All arguments but the parts. */
struct gemv_args gemv_args_of(const struct plan *plan, const struct hw_matmul *op);
void gemv_add_part(struct gemv_args *args, const struct plan *plan,
                   const struct hw_matmul *op);

/* The launch of a plan that is a GEMV: plan.launch. */
int32_t gemv_launch(const struct launcher *at, const struct plan *plan, const void *op);
/* Launches all parts. */
int32_t gemv_launch_parts(const struct launcher *at, const struct gemv_kind *kind,
                          struct gemv_args *args);

#endif
