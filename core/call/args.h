/* SPDX-License-Identifier: MIT */
/* args.h - op structs of older and newer applications and plugins. */
#ifndef HW_CALL_ARGS_H
#define HW_CALL_ARGS_H

#include "call/ops.h"
#include "core.h"

/* Room for the longer structs of a newer plugin; fields that the library does not know are zero. */
union plugin_op {
    union any_op known;
    unsigned char bytes[MAX_OP_BYTES];
};

/* Brings a struct of `size` bytes to the size that this library knows. Missing fields become zero;
 * unknown bytes must be zero. Otherwise there is an error with a message. Sets *args to `copy` if
 * the sizes differ. */
enum hw_status args_resize(uint32_t op, const void **args, size_t size, union any_op *copy);
/* Whether the plugin has a function for the op. */
bool plugin_has(const struct plugin *plugin, uint32_t op);
/* HW_OK if the plugin has the op and knows every field of the struct that is not zero. Otherwise
 * HW_UNSUPPORTED, with a message that names the gap. */
enum hw_status args_known(const struct plugin *plugin, uint32_t op, const void *args);
/* The larger of the sizes that the op's struct has in the plugin and in the library; and the struct
 * with that size: `args` itself, or `longer`. Every call that passes an op's struct to the plugin
 * uses these. */
size_t plugin_args_size(const struct plugin *plugin, uint32_t op);
const void *plugin_args(const struct plugin *plugin, uint32_t op, const void *args,
                        union plugin_op *longer);
/* Calls the plugin's function. */
int32_t plugin_call(struct hw_queue *queue, uint32_t op, const void *args);

#endif
