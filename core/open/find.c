/* SPDX-License-Identifier: MIT */
/* find.c - finds a selected device by its name or by a vendor's handle. */
#define _POSIX_C_SOURCE 200809L
#include "base/argument.h"
#include "base/fork.h"
#include "base/message.h"
#include "open/first_use.h"
#include "open/select.h"

#include <string.h>

/* ---- by name ---- */

enum hw_status hw_device_find(struct hw_context *context, const char *name,
                              struct hw_device **device)
{
    if (device)
        *device = NULL;
    REQUIRE(context);
    REQUIRE(name);
    REQUIRE(device);
    enum hw_status status = guard(context->generation);
    struct selector_list list = { 0 };
    if (status || (status = selectors_parse(&list, name, "device", ACCEPT_DEVICE)))
        return status;
    const struct catalog *found = catalog_of(context);
    for (uint32_t i = 0; i < found->order_count && list.count == 1 && !*device; i++)
        if (selector_matches(&list.items[0], found->order[i]))
            *device = found->order[i];
    if (*device)
        atomic_fetch_or(&(*device)->chosen, CHOSEN_BY_NAME);
    else if (list.count == 1)
        status = selector_failed(found, &list.items[0], LISTS);
    else
        status = fail(HW_INVALID, "device \"%s\": must be one name, such as cpu or cpu:0",
                      name);
    selectors_free(&list);
    return status;
}

/* ---- by handle ---- */

/* Finds device `index` of a plugin among the selected devices. */
static enum hw_status import_device(const struct catalog *found,
                                    const struct plugin *plugin, int32_t index,
                                    struct hw_device **device)
{
    for (uint32_t i = 0; i < found->order_count && !*device; i++)
        if (found->order[i]->plugin == plugin && found->order[i]->index == index)
            *device = found->order[i];
    if (*device)
        atomic_fetch_or(&(*device)->chosen, CHOSEN_BY_NAME);
    return *device ? HW_OK
                   : fail(HW_NO_DEVICE,
                          "hw_device_import: device %d of plugin %s is not selected",
                          (int)index, plugin->table.name);
}

/* Whether the kind belongs to the plugin: "mine.device" belongs to the plugin mine, and to variants
 * such as mine_two. */
static bool names_plugin(const char *kind, const struct plugin *plugin)
{
    const size_t length = strcspn(kind, ".");
    const char *name = plugin->candidate->name;
    return length && strncmp(kind, name, length) == 0 &&
           (!name[length] || name[length] == '_');
}

enum hw_status hw_device_import(struct hw_context *context, const char *kind, void *handle,
                                struct hw_device **device)
{
    REQUIRE(device);
    *device = NULL;
    REQUIRE(context);
    REQUIRE(kind);
    enum hw_status status = guard(context->generation);
    if (status)
        return status;
    status = HW_UNSUPPORTED;
    const struct catalog *found = catalog_of(context);
    for (struct plugin *plugin = found->plugins; plugin; plugin = plugin->next) {
        int32_t index = -1;
        if (!plugin_is_bound(plugin) && !names_plugin(kind, plugin))
            continue;
        const enum hw_status bound = plugin_bind(plugin);
        if (bound) {
            status = bound;
            continue;
        }
        plugin_message_clear();
        const int32_t answer = plugin->table.device_import(plugin->self, kind, handle,
                                                           &index);
        if (answer == HW_UNSUPPORTED)
            continue;
        status = answer ? fail_in(plugin_failed(answer), "hw_device_import: ")
                        : import_device(found, plugin, index, device);
        if (status != HW_NO_DEVICE) /* else another plugin may have the device */
            return status;
    }
    return status != HW_UNSUPPORTED
               ? status
               : fail(HW_UNSUPPORTED,
                      "hw_device_import: no plugin knows devices of the kind \"%s\"", kind);
}
