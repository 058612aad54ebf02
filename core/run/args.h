/* SPDX-License-Identifier: MIT */
/* args.h - op structs of other versions. */
#ifndef HW_RUN_ARGS_H
#define HW_RUN_ARGS_H

#include "core.h"
#include "run/ops.h"

/* Room for the longer structs of a newer plugin; what the library does not know is zero. */
union plugin_op {
    union any_op known;
    unsigned char bytes[MAX_OP_BYTES];
};

/* Brings a struct of `size` bytes to this library's size: missing fields are zero, and
 * bytes that are not known must be. Answers `args` itself or `copy`, NULL with a message in
 * *status. */
const void *args_of_size(uint32_t op, const void *args, size_t size, union any_op *copy,
                         enum hw_status *status);
/* Whether the plugin has a function for the op. */
bool plugin_has(const struct plugin *plugin, uint32_t op);
/* Whether it has, and knows all of the struct that is not zero; HW_UNSUPPORTED says what is
 * missing. */
enum hw_status args_known(const struct plugin *plugin, uint32_t op, const void *args);
/* Bytes of the op's struct, as the longer of plugin and library knows it; and the struct with as
 * many: `args` itself, or `longer`. Whatever calls the plugin with one goes through these. */
size_t plugin_args_size(const struct plugin *plugin, uint32_t op);
const void *plugin_args(const struct plugin *plugin, uint32_t op, const void *args,
                        union plugin_op *longer);
/* The plugin's function. */
int32_t plugin_call(struct hw_queue *queue, uint32_t op, const void *args);

#endif
