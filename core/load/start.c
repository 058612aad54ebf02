/* SPDX-License-Identifier: MIT */
/* start.c - starts the plugin in this process and lists its devices, without opening any: the end
 * of the stage bind. */
#include "load/start.h"

#include "base/message.h"
#include "load/bind.h"
#include "load/verdict.h"
#include "open/registry.h"

#include <stdlib.h>
#include <string.h>

/* Adds one of the devices that the plugin left out to the message. A second line of the message is
 * a better remedy than the one in the manifest. */
static bool stop_without_device(struct candidate *candidate)
{
    const struct left_out *one = candidate->left_out;
    const char *message = plugin_message();
    const int length = (int)strcspn(message, "\n");
    const char *own = message[length] ? message + length + 1 : "";
    if (candidate->left_out_count)
        stop(candidate, REASON_NO_DRIVER, "%.*s: %s: %s", length, message, one->name,
             one->why);
    else
        stop(candidate, REASON_NO_DRIVER, "%.*s", length, message);
    if (*own)
        set_remedy(candidate, "%.*s", (int)strcspn(own, "\n"), own);
    else if (*candidate->manifest->remedy)
        set_remedy(candidate, "%s", candidate->manifest->remedy);
    return false;
}

static bool is_status(int32_t status)
{
    return *hw_status_name(status) != '?';
}

static bool plugin_open(struct plugin *plugin)
{
    struct candidate *candidate = plugin->binding;
    plugin_message_clear();
    int32_t status = plugin->table.open(&plugin->host, &plugin->self);
    plugin->started = status == HW_OK;
    if (plugin->started)
        return true;
    if (status == HW_NO_DEVICE)
        return stop_without_device(candidate);
    candidate->retryable = status == HW_NO_MEMORY;
    if (!is_status(status))
        return stop(candidate, REASON_BAD_ANSWER,
                    "it failed to start, with the unknown status %d: %s", (int)status,
                    plugin_message());
    return stop(candidate, REASON_OPEN_FAILED, "it failed to start: %s: %s",
                hw_status_name(status), plugin_message());
}

static bool count_devices(struct plugin *plugin, int32_t *count)
{
    struct candidate *candidate = plugin->binding;
    *count = 0;
    plugin_message_clear();
    int32_t status = plugin->table.device_count(plugin->self, count);
    if (status == HW_NO_DEVICE || (status == HW_OK && *count == 0))
        return stop(candidate, REASON_NO_DEVICE, NULL);
    candidate->retryable = status == HW_NO_MEMORY;
    if (status)
        return stop(candidate, REASON_OPEN_FAILED, "it failed to list its devices: %s: %s",
                    hw_status_name(status), plugin_message());
    if (*count < 0 || *count > MAX_DEVICES)
        return stop(candidate, REASON_BAD_ANSWER,
                    "it reports %d devices; it must be 1 to %d", *count, MAX_DEVICES);
    return true;
}

/* Whether two devices have the same UUID or, without UUIDs, the same PCI address. */
static bool same_identity(const struct hw_device_info *a, const struct hw_device_info *b)
{
    char pci_a[PCI_SIZE], pci_b[PCI_SIZE];
    if (a->has_uuid && b->has_uuid)
        return memcmp(a->uuid, b->uuid, sizeof a->uuid) == 0;
    device_pci(a, pci_a);
    device_pci(b, pci_b);
    return pci_a[0] && strcmp(pci_a, pci_b) == 0;
}

static bool check_devices(struct plugin *plugin, struct hw_device_info *infos,
                          int32_t count)
{
    struct candidate *candidate = plugin->binding;
    char why[512];
    for (int32_t i = 0; i < count; i++) {
        const enum facts facts = device_facts(plugin, i, &infos[i], why, sizeof why);
        if (facts)
            return stop(candidate,
                        facts == FACTS_FAILED ? REASON_OPEN_FAILED : REASON_BAD_ANSWER,
                        "device %d: %s", i, why);
        for (int32_t j = 0; j < i; j++)
            if (same_identity(&infos[i], &infos[j]))
                return stop(candidate, REASON_BAD_ANSWER,
                            "its devices %d and %d have the same identity", j, i);
    }
    return true;
}

static bool add_devices(struct plugin *plugin, const struct hw_device_info *infos,
                        int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        if (registry_add(plugin, i, &infos[i]))
            return stop(plugin->binding, REASON_NO_MEMORY, NULL);
    return true;
}

bool list_known(struct plugin *plugin)
{
    const struct verdict *verdict = plugin->candidate->verdict;
    for (uint32_t i = 0; i < verdict->device_count; i++) {
        struct hw_device_info info = verdict->devices[i].info;
        device_complete(plugin, &info);
        info.memory_free = 0; /* outdated */
        if (registry_add(plugin, (int32_t)i, &info))
            return stop(plugin->binding, REASON_NO_MEMORY, NULL);
    }
    return true;
}

/* Checks that the plugin has the devices that were listed from its verdict. */
static bool confirm_devices(struct plugin *plugin, const struct hw_device_info *infos,
                            int32_t count)
{
    const uint32_t tried = plugin->candidate->verdict->device_count;
    if ((uint32_t)count != tried)
        return stop(plugin->binding, REASON_OTHER_DEVICES,
                    "it has %u devices; when it was tried, it had %u", (unsigned)count,
                    (unsigned)tried);
    for (uint32_t i = 0; i < tried; i++) {
        const char *fact = registry_differs(plugin, i, &infos[i]);
        if (fact)
            return stop(plugin->binding, REASON_OTHER_DEVICES,
                        "the %s of its device %u has changed since it was tried", fact,
                        (unsigned)i);
    }
    return true;
}

static bool list_devices(struct plugin *plugin, int32_t count)
{
    struct hw_device_info *infos = calloc((size_t)count, sizeof *infos);
    if (!infos)
        return stop(plugin->binding, REASON_NO_MEMORY, NULL);
    bool good = check_devices(plugin, infos, count) &&
                (plugin->candidate->verdict ? confirm_devices(plugin, infos, count)
                                            : add_devices(plugin, infos, count));
    free(infos);
    return good;
}

bool plugin_start(struct hw_context *context, struct candidate *candidate)
{
    struct plugin *plugin = candidate->plugin;
    int32_t count;
    (void)context;
    return plugin_open(plugin) && count_devices(plugin, &count) &&
           list_devices(plugin, count);
}
