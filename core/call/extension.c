/* SPDX-License-Identifier: MIT */
/* extension.c - a plugin's own ops, found by name. The core only checks their arguments against the
 * signature. */
#include "base/argument.h"
#include "base/message.h"
#include "call/queue.h"
#include "call/signature.h"
#include "memory/device.h"
#include "route/cost.h"

#include <string.h>

#define MAX_EXTENSIONS 4096 /* ends the loop if the plugin never returns HW_END */

static enum hw_status find_extension(struct hw_device *device, const char *name,
                                     struct hw_extension *found)
{
    for (uint32_t i = 0; i < MAX_EXTENSIONS; i++) {
        *found = (struct hw_extension){ .size = sizeof *found };
        plugin_message_clear();
        int32_t status = device->plugin->table.extension(device->impl, i, found);
        if (status && status != HW_END)
            return fail_in(device_result(device, status),
                           "extension ops of %s: ", device->name);
        if (status)
            break;
        if (found->name && found->signature && found->call &&
            strcmp(found->name, name) == 0)
            return HW_OK;
    }
    return fail(HW_UNSUPPORTED, "%s has no extension op \"%s\"", device->name, name);
}

enum hw_status hw_extension_call(struct hw_queue *queue, const char *name,
                                 const struct hw_arg *args, uint32_t count)
{
    struct hw_extension extension;
    enum hw_status status = queue_ready(queue, "hw_extension_call");
    if (status)
        return status;
    REQUIRE(name);
    if (queue->recording)
        return fail(HW_UNSUPPORTED, "hw_extension_call: extension ops cannot be recorded");
    if ((status = find_extension(queue->device, name, &extension)) ||
        (status = check_arguments(queue, name, extension.signature, args, count)))
        return status;
    plugin_message_clear();
    cost_route_other_work(queue);
    status = device_result(queue->device,
                           extension.call(extension.self, queue->impl, args, count));
    return status ? fail_in(status, "%s on %s: ", name, queue->device->name)
                  : settle_synchronous(queue);
}
