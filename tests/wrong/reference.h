/* SPDX-License-Identifier: MIT */
/* reference.h - a plugin that computes with the oracle itself, and how to make it wrong.
 *
 * A wrong plugin is a file with one op's function, which calls reference() for what it does
 * right, and WRONG(name, op) at its end. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include <hw/plugin.h>

#include "storage.h"

#include <math.h>
#include <stdlib.h>

/* Computes the op, all of whose operands are host addresses; `args` is its struct. */
int32_t reference(uint32_t op, const void *args);

/* Changes `count` numbers in rows of `cols`. */
typedef void change_fn(float *x, int64_t count, int64_t cols);
/* Makes a tensor of f32 one of numbers that `change` has changed. Returns false without memory;
 * the caller frees `*numbers`. */
bool change_copy(struct hw_tensor *tensor, change_fn *change, float **numbers);
/* Computes the op after that has been done to a tensor of `args`. */
int32_t reference_of(uint32_t op, const void *args, struct hw_tensor *field,
                     change_fn *change);
/* Makes 32 neighbours integers of at most `most` times a scale. */
void round_to_codes(float *values, int64_t count, int most);

/* Attention to blocks of q8_0. Its weights, times the largest of 32 neighbours of a value, become
 * integers of at most `most` times a scale, those of 64 keys together. */
int32_t attention_of_codes(const struct hw_attention *op, int most);

/* One function per op that calls reference(). */
extern const struct hw_plugin_ops reference_ops;

/* Sets the table's slots; the ops are given apart. */
int32_t reference_fill(struct hw_plugin *table, const struct hw_plugin_ops *ops);

/* The address of element `i` of a tensor, counted row-major; blocks have no element
 * addresses. */
void *element(const struct hw_tensor *tensor, int64_t i);
/* The same as a number. */
double get(const struct hw_tensor *tensor, int64_t i);
void set(const struct hw_tensor *tensor, int64_t i, double value);

/* The function may not have the op's name where <stdlib.h> has taken it. */
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
