/* SPDX-License-Identifier: MIT */
/* args.c - op structs of an application or a plugin that is older or newer than the library. */
#include "call/args.h"

#include "base/argument.h"
#include "base/message.h"
#include "call/queue.h"

#include <string.h>

/* ---- sizes of structs ---- */

/* Whether the bytes of `args` from `known` on, up to `size`, are zero. */
static bool rest_is_zero(const void *args, size_t known, size_t size)
{
    const unsigned char *bytes = args;
    for (size_t i = known; i < size; i++)
        if (bytes[i])
            return false;
    return true;
}

enum hw_status args_resize(uint32_t op, const void **args, size_t size, union any_op *copy)
{
    if (op >= HW_OP_COUNT)
        return fail(HW_INVALID, "%u is not an op; this library knows %d", (unsigned)op,
                    HW_OP_COUNT);
    if (!*args)
        return fail_null(hw_op_name(op), "args");
    const size_t own = op_rows[op].size;
    if (size == own)
        return HW_OK;
    if (size > own && !rest_is_zero(*args, own, size))
        return fail(
            HW_UNSUPPORTED,
            "%s: its struct has %zu bytes and sets a field beyond the %zu that this library "
            "knows: a newer library is needed",
            hw_op_name(op), size, own);
    if (size < sizeof(struct hw_tensor))
        return fail(HW_INVALID, "%s: its struct cannot have %zu bytes", hw_op_name(op),
                    size);
    memset(copy, 0, sizeof *copy);
    *args = memcpy(copy, *args, size < own ? size : own);
    return HW_OK;
}

bool plugin_has(const struct plugin *plugin, uint32_t op)
{
    /* the plugin's own table, whose empty slots are NULL */
    const struct hw_plugin_ops *given = plugin->table.ops;
    const size_t at = offsetof(struct hw_plugin_ops, matmul) + op * sizeof given->matmul;
    int32_t (*function)(void);
    if (op >= plugin->table.op_count || at + sizeof function > given->size)
        return false;
    memcpy(&function, (const char *)given + at, sizeof function);
    return function != NULL;
}

enum hw_status args_known(const struct plugin *plugin, uint32_t op, const void *args)
{
    if (op >= plugin->table.op_count)
        return fail(HW_UNSUPPORTED, "%s is newer than plugin %s %s, which knows %u ops",
                    hw_op_name(op), plugin->table.name, plugin->table.version,
                    (unsigned)plugin->table.op_count);
    if (!plugin_has(plugin, op))
        return fail(HW_UNSUPPORTED, "the plugin has no %s", hw_op_name(op));
    const uint32_t known = plugin->table.op_sizes[op];
    if (known >= op_rows[op].size || rest_is_zero(args, known, op_rows[op].size))
        return HW_OK;
    return fail(
        HW_UNSUPPORTED,
        "plugin %s %s knows %u bytes of the struct of %s, and a field beyond them is set",
        plugin->table.name, plugin->table.version, (unsigned)known, hw_op_name(op));
}

size_t plugin_args_size(const struct plugin *plugin, uint32_t op)
{
    const size_t own = op_rows[op].size;
    const bool longer = op < plugin->table.op_count && plugin->table.op_sizes[op] > own;
    return longer ? plugin->table.op_sizes[op] : own;
}

const void *plugin_args(const struct plugin *plugin, uint32_t op, const void *args,
                        union plugin_op *longer)
{
    const size_t own = op_rows[op].size, size = plugin_args_size(plugin, op);
    if (size == own)
        return args;
    memset(longer->bytes + own, 0, size - own);
    return memcpy(longer, args, own);
}

int32_t plugin_call(struct hw_queue *queue, uint32_t op, const void *args)
{
    union plugin_op longer;
    plugin_message_clear();
    return op_rows[op].call(queue, plugin_args(queue->device->plugin, op, args, &longer));
}
