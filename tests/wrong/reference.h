/* SPDX-License-Identifier: MIT */
/* reference.h - a plugin that computes with the oracle itself, and helpers for making it wrong.
 *
 * A wrong plugin is a file with one op's function, which calls reference() for the correct part,
 * and WRONG(name, op) at its end. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include <hw/plugin.h>

#include "storage.h"

#include <math.h>
#include <stdlib.h>

/* Computes the op on host addresses only; `args` is its struct. */
int32_t reference(uint32_t op, const void *args);

/* Changes `count` numbers in rows of `cols`. */
typedef void change_fn(float *x, int64_t count, int64_t cols);
/* Replaces an f32 tensor by a copy that `change` has modified. Returns false without memory; the
 * caller frees `*numbers`. */
bool change_copy(struct hw_tensor *tensor, change_fn *change, float **numbers);
/* Computes the op after change_copy() of one tensor in `args`. */
int32_t reference_of(uint32_t op, const void *args, struct hw_tensor *field,
                     change_fn *change);
/* Rounds each 32 neighbours to integers times a scale; the integers are at most `most`. */
void round_to_codes(float *values, int64_t count, int most);

/* Attention to blocks of q8_0. Its weights, times the largest of 32 neighbours of a value, are
 * rounded to integers times a scale. The integers are at most `most`; 64 keys share a scale. */
int32_t attention_of_codes(const struct hw_attention *op, int most);

/* One function per op that calls reference(). */
extern const struct hw_plugin_ops reference_ops;

/* Sets the table's slots, with `ops` as its ops. */
int32_t reference_fill(struct hw_plugin *table, const struct hw_plugin_ops *ops);

/* The address of element `i` of a tensor, counted row-major; blocks have no element
 * addresses. */
void *element(const struct hw_tensor *tensor, int64_t i);
/* The same element as a number. */
double get(const struct hw_tensor *tensor, int64_t i);
void set(const struct hw_tensor *tensor, int64_t i, double value);

/* WRONG_BY is for functions that cannot have their op's name, because <stdlib.h> uses it. */
#define WRONG(plugin_name, op) WRONG_BY(plugin_name, op, op)
#define WRONG_BY(plugin_name, op, function)                                                \
    static int32_t fill(const struct hw_host *host, struct hw_plugin *table)               \
    {                                                                                      \
        static struct hw_plugin_ops ops;                                                   \
        (void)host;                                                                        \
        ops = reference_ops;                                                               \
        ops.op = function;                                                                 \
        return reference_fill(table, &ops);                                                \
    }                                                                                      \
    HW_PLUGIN(plugin_name, "vendor=tests\n", fill)

#endif
