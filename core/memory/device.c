/* SPDX-License-Identifier: MIT */
/* device.c - devices in use: opens them, and handles the statuses of their plugins. */
#define _POSIX_C_SOURCE 200809L
#include "memory/device.h"

#include "base/argument.h"
#include "base/fork.h"
#include "base/message.h"
#include "memory/pool.h"

#include <stdlib.h>
#include <string.h>

/* ---- waking ---- */

static enum hw_status wake_locked(struct hw_device *device)
{
    if (device->pool)
        return HW_OK;
    struct plugin *plugin = device->plugin;
    int32_t status = HW_OK;
    if (!device->impl) {
        void *impl = NULL;
        plugin_message_clear();
        status = plugin->table.device_open(plugin->self, device->index, &impl);
        if (status)
            return fail_in(plugin_failed(status), "open device %s: ", device->name);
        if (!impl)
            return fail(HW_INTERNAL,
                        "open device %s: plugin %s returned HW_OK without a device",
                        device->name, plugin->table.name);
        device->impl = impl;
        log_line(&device->context->log, HW_LOG_INFO, "%s: opened: %s", device->name,
                 device->info.name);
    }
    return pool_create(device, &device->pool);
}

/* Loads and starts the plugin unless that has been done. */
static enum hw_status bind_plugin(struct plugin *plugin)
{
    return plugin_is_bound(plugin) ? HW_OK : plugin->context->bind(plugin);
}

enum hw_status device_wake(struct hw_device *device)
{
    enum hw_status status = bind_plugin(device->plugin);
    if (status)
        return status;
    pthread_mutex_lock(&device->lock);
    status = wake_locked(device);
    pthread_mutex_unlock(&device->lock);
    return status;
}

void device_sleep(struct hw_device *device)
{
    if (device->pool)
        pool_destroy(device->pool);
    if (device->impl)
        device->plugin->table.device_close(device->impl);
    device->pool = NULL;
    device->impl = NULL;
}

/* ---- state ---- */

uint32_t device_position(const struct catalog *found, const struct hw_device *device)
{
    uint32_t i = 0;
    while (i < found->order_count && found->order[i] != device)
        i++;
    return i;
}

/* Keeps the plugin's message for later calls. */
static void device_keep_why(struct hw_device *device)
{
    char *why = strdup(hw_message()), *none = NULL;
    if (why && !atomic_compare_exchange_strong(&device->why_lost, &none, why))
        free(why);
}

enum hw_status device_result(struct hw_device *device, int32_t status)
{
    if (!status)
        return HW_OK;
    plugin_failed(status);
    if (status == HW_LOST && !atomic_load(&device->lost))
        device_keep_why(device);
    if (status == HW_LOST && !atomic_exchange(&device->lost, HW_LOST)) {
        device_changed(device);
        log_line(&device->context->log, HW_LOG_ERROR, "%s is lost: %s", device->name,
                 hw_message());
    }
    return (enum hw_status)status;
}

enum hw_status device_usable(struct hw_device *device)
{
    enum hw_status status = guard(device->context->generation);
    if (status)
        return status;
    if (atomic_load_explicit(&device->lost, memory_order_relaxed)) {
        const char *why = atomic_load(&device->why_lost);
        return fail(HW_LOST,
                    "device %s is lost%s%s; close its queues and buffers, and open a new "
                    "context",
                    device->name, why ? ": " : "", why ? why : "");
    }
    return HW_OK;
}

enum hw_status device_ready(struct hw_device *device, const char *function)
{
    if (!device)
        return fail_null(function, "device");
    enum hw_status status = device_usable(device);
    return status ? status : device_wake(device);
}

/* ---- for applications ---- */

enum hw_status hw_device_kernel(struct hw_device *device, uint32_t op, uint32_t index,
                                struct hw_kernel_info *info)
{
    REQUIRE(device);
    REQUIRE(info);
    if (op >= HW_OP_COUNT)
        return fail(HW_INVALID, "hw_device_kernel: %u is not an op", (unsigned)op);
    enum hw_status status = check_size(__func__, "info", info, 2 * sizeof(uint32_t));
    if (status || (status = guard(device->context->generation)) ||
        (status = device_wake(device)))
        return status;
    if (op >=
        device->plugin->table.op_count) /* an older plugin may index an array with it */
        return HW_END;
    struct hw_kernel_info row = { .size = sizeof row };
    plugin_message_clear();
    int32_t answer = device->plugin->table.kernel_info(device->impl, op, index, &row);
    if (answer == HW_END)
        return HW_END;
    if (answer)
        return fail_in(plugin_failed(answer), "rows of %s on %s: ", hw_op_name(op),
                       device->name);
    row.name[sizeof row.name - 1] = '\0';
    row.needs[sizeof row.needs - 1] = '\0';
    return answer_struct(info, &row, sizeof row);
}

uint32_t hw_device_count(struct hw_context *context)
{
    return context ? catalog_of(context)->device_count : 0;
}

struct hw_device *hw_device_at(struct hw_context *context, uint32_t index)
{
    const struct catalog *found = context ? catalog_of(context) : NULL;
    return found && index < found->device_count ? found->devices[index] : NULL;
}

/* Binds plugins, so that a plugin that cannot be used is skipped, as in hw_open(). */
struct hw_device *hw_device_default(struct hw_context *context)
{
    const struct catalog *found = context ? catalog_of(context) : NULL;
    const bool any = found && !forked(context->generation) &&
                     context->settings.fallback != FALLBACK_ERROR;
    struct hw_device *device = found && found->order_count ? found->order[0] : NULL;
    for (uint32_t i = 0; any && i < found->order_count; i++)
        if (!bind_plugin(found->order[i]->plugin)) {
            device = found->order[i];
            break;
        }
    if (device)
        atomic_fetch_or(&device->chosen, CHOSEN_BY_DEFAULT);
    return device;
}
