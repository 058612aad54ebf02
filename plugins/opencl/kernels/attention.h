/* SPDX-License-Identifier: MIT */
/* attention.h - shared by the plans of attention. */
#ifndef OPENCL_ATTENTION_H
#define OPENCL_ATTENTION_H

#include "matmul.h"

enum { ATTENTION_MOST_DIM = 256, ATTENTION_ROW_COUNTS = 4 }; /* 1, 2, 4 or 8 rows */

/* The types of caches, beginning with matmul_types: a number and its name. */
enum { ATTENTION_TYPES = 4 };

static inline int64_t attention_rows_of_head(const struct attention_args *a)
{
    return a->queries * (a->heads / a->kv_heads);
}

/* Batches times heads of k. */
static inline int64_t attention_heads(const struct lowered *l)
{
    return l->groups /
           matmul_pieces(attention_rows_of_head(&l->args.attention), ATTENTION_ROWS);
}

/* Returns the reason why kernels that read k and v in vectors of four cannot compute the op, or
 * NULL. */
static inline const char *attention_why_not(const struct attention_args *a)
{
    const uint32_t type = matmul_type(a->k_type);
    if (a->k_type != a->v_type)
        return "k and v have two types";
    if (type >= ATTENTION_TYPES)
        return "k and v have a type that this row does not take";
    if (a->head_dim > ATTENTION_MOST_DIM || a->value_dim > ATTENTION_MOST_DIM ||
        a->value_dim == 0)
        return "heads have no or more than 256 elements";
    if (!matmul_has_fours(a->k, a->k_type, a->head_dim) ||
        !matmul_has_fours(a->v, a->v_type, a->value_dim))
        return "k or v is not aligned";
    return NULL;
}

#endif
