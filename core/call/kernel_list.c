/* SPDX-License-Identifier: MIT */
/* kernel_list.c - HW_KERNEL applies to all devices, but a row belongs to one plugin, and some of
 * its devices may not be able to run it. So an entry counts only for devices that have its row. */
#include "call/kernel_list.h"

#include "base/message.h"
#include "call/ops.h"

#include <stdlib.h>
#include <string.h>

/* "silu_v3" or, for one op only, "silu=silu_v3". */
struct entry {
    const char *text, *row; /* row: the part behind '=' */
    size_t length, row_length;
};

static struct entry entry_at(const char *text)
{
    const size_t length = strcspn(text, ","), equals = strcspn(text, "=,");
    const size_t skipped = equals < length ? equals + 1 : 0;
    return (struct entry){ text, text + skipped, length, length - skipped };
}

static bool is_about(const struct entry *entry, uint32_t op)
{
    const char *name = hw_op_name(op);
    const size_t length = strlen(name);
    return entry->row == entry->text || (entry->row == entry->text + length + 1 &&
                                         memcmp(entry->text, name, length) == 0);
}

static bool op_has_row(struct hw_device *device, uint32_t op, const struct entry *entry)
{
    struct hw_kernel_info row = { .size = sizeof row };
    for (uint32_t i = 0; hw_device_kernel(device, op, i, &row) == HW_OK; i++)
        if (row.eligible && strlen(row.name) == entry->row_length &&
            memcmp(row.name, entry->row, entry->row_length) == 0)
            return true;
    return false;
}

/* Every device has the portable rows. */
static bool has_row(struct hw_device *device, const struct entry *entry)
{
    static const char portable[] = "portable";
    bool found = entry->row_length == strlen(portable) &&
                 memcmp(entry->row, portable, strlen(portable)) == 0;
    for (uint32_t op = 0; op < HW_OP_COUNT && !found; op++)
        found = is_about(entry, op) && op_has_row(device, op, entry);
    return found;
}

static bool another_has_row(const struct hw_device *device, const struct entry *entry)
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
    size_t length = 0;
    if (!(*kept = calloc(1, strlen(list) + 1)))
        return fail(HW_NO_MEMORY, "out of memory for a list of kernels");
    while (*list) {
        const struct entry entry = entry_at(list);
        if (has_row(device, &entry) || !another_has_row(device, &entry)) {
            if (length)
                (*kept)[length++] = ',';
            memcpy(*kept + length, entry.text, entry.length);
            length += entry.length;
        } else {
            log_line(&device->context->log, HW_LOG_INFO,
                     "%s: kernel \"%.*s\" is for other devices", device->name,
                     (int)entry.length, entry.text);
        }
        list += entry.length + (list[entry.length] == ',');
    }
    message_restore(&message);
    return HW_OK;
}
