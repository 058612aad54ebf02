/* SPDX-License-Identifier: MIT */
/* kernel_list.c - HW_KERNEL applies to all devices, but a row belongs to one plugin, and some of
 * its devices may not be able to run it. So an entry counts only for devices that have its row. */
#define _POSIX_C_SOURCE 200809L
#include "call/kernel_list.h"

#include "base/message.h"
#include "call/ops.h"

#include <stdlib.h>
#include <string.h>

static bool op_has_row(struct hw_device *device, uint32_t op, const char *name)
{
    struct hw_kernel_info row = { .size = sizeof row };
    for (uint32_t i = 0; hw_device_kernel(device, op, i, &row) == HW_OK; i++)
        if (row.eligible && strcmp(row.name, name) == 0)
            return true;
    return false;
}

/* An entry is "silu_v3" or, for one op only, "silu=silu_v3". Every device has the portable rows. */
static bool has_row(struct hw_device *device, const char *entry)
{
    const char *equals = strchr(entry, '='), *row = equals ? equals + 1 : entry;
    bool found = strcmp(row, "portable") == 0;
    for (uint32_t op = 0; op < HW_OP_COUNT && !found; op++) {
        const char *name = hw_op_name(op);
        const size_t length = strlen(name);
        if (!equals || (strncmp(entry, name, length) == 0 && entry + length == equals))
            found = op_has_row(device, op, row);
    }
    return found;
}

static bool another_has_row(const struct hw_device *device, const char *entry)
{
    struct hw_context *context = device->context;
    bool found = false;
    for (uint32_t i = 0; i < hw_device_count(context) && !found; i++)
        found = hw_device_at(context, i) != device &&
                has_row(hw_device_at(context, i), entry);
    return found;
}

enum hw_status kernel_list_for(struct hw_device *device, const char *list, char **kept)
{
    const struct saved_message message = message_save(); /* opening a device may fail */
    const size_t bytes = strlen(list) + 1;
    if (!(*kept = calloc(2, bytes)))
        return fail(HW_NO_MEMORY, "out of memory for a list of kernels");
    char *rest, *copy = memcpy(*kept + bytes, list, bytes);
    for (char *entry = strtok_r(copy, ",", &rest); entry;
         entry = strtok_r(NULL, ",", &rest))
        if (has_row(device, entry) || !another_has_row(device, entry))
            strcat(strcat(*kept, **kept ? "," : ""), entry);
        else
            log_line(&device->context->log, HW_LOG_INFO,
                     "%s: kernel \"%s\" is for other devices", device->name, entry);
    message_restore(&message);
    return HW_OK;
}
