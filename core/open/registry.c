/* SPDX-License-Identifier: MIT */
/* registry.c - the list of devices, and their facts. */
#include "open/registry.h"

#include "base/argument.h"
#include "base/fork.h"
#include "base/message.h"
#include "load/verdict.h"
#include "memory/device.h"
#include "memory/pool.h"
#include "route/op_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- facts ---- */

void device_pci(const struct hw_device_info *info, char text[PCI_SIZE])
{
    text[0] = '\0';
    if (info->pci_domain >= 0 && info->pci_bus >= 0 && info->pci_device >= 0)
        snprintf(text, PCI_SIZE, "%04x:%02x:%02x.%x", (unsigned)info->pci_domain,
                 (unsigned)info->pci_bus, (unsigned)info->pci_device,
                 info->pci_function < 0 ? 0u : (unsigned)info->pci_function);
}

void device_uuid(const struct hw_device_info *info, char text[UUID_SIZE])
{
    char *p = text;
    *p = '\0';
    for (int i = 0; info->has_uuid && i < 16; i++)
        p += snprintf(p, 4, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                      info->uuid[i]);
}

const char *device_kind_name(int32_t kind)
{
    static const char names[][12] = { "other", "discrete", "integrated", "cpu",
                                      "software" };
    return kind >= 0 && kind <= HW_DEVICE_SOFTWARE ? names[kind] : "other";
}

const char *device_fault(const struct hw_device_info *info)
{
    if (!memchr(info->name, '\0', sizeof info->name))
        return "its name is not NUL-terminated";
    if (!info->name[0])
        return "it has no name";
    if (!memchr(info->vendor, '\0', sizeof info->vendor))
        return "its vendor string is not NUL-terminated";
    if (!memchr(info->driver, '\0', sizeof info->driver))
        return "its driver version is not NUL-terminated";
    if (!memchr(info->arch, '\0', sizeof info->arch))
        return "its architecture is not NUL-terminated";
    if (info->memory_free > info->memory_total && info->memory_total)
        return "it has more free memory than total memory";
    if (info->buffer_alignment & (info->buffer_alignment - 1) ||
        info->buffer_alignment > UINT32_C(1) << 20)
        return "its alignment of buffers must be a power of two of at most 1 MiB";
    return NULL;
}

void device_complete(const struct plugin *plugin, struct hw_device_info *info)
{
    info->size = sizeof *info;
    if (plugin->out_of_process) /* its kernels cannot access the host's memory */
        info->features &= ~(uint64_t)HW_FEATURE_HOST_TENSORS;
    if (info->buffer_alignment < POOL_GRAIN)
        info->buffer_alignment = POOL_GRAIN;
    if (info->kind < 0 || info->kind > HW_DEVICE_SOFTWARE)
        info->kind = HW_DEVICE_OTHER; /* a kind that only a newer library knows */
}

enum facts device_facts(struct plugin *plugin, int32_t index, struct hw_device_info *info,
                        char *why, size_t size)
{
    *info = (struct hw_device_info){ .size = sizeof *info,
                                     .pci_domain = -1,
                                     .pci_bus = -1,
                                     .pci_device = -1,
                                     .pci_function = -1 };
    plugin_message_clear();
    int32_t status = plugin->table.device_info(plugin->self, index, info);
    if (status) {
        snprintf(why, size, "%s: %s", hw_status_name(status), plugin_message());
        return FACTS_FAILED;
    }
    const char *wrong = device_fault(info);
    if (wrong) {
        snprintf(why, size, "%s", wrong);
        return FACTS_INVALID;
    }
    device_complete(plugin, info);
    return FACTS_GOOD;
}

/* ---- the list ---- */

enum hw_status registry_add(struct plugin *plugin, int32_t index,
                            const struct hw_device_info *info)
{
    struct hw_device **end = &plugin->devices;
    struct hw_device *device = calloc(1, sizeof *device);
    if (!device)
        return fail(HW_NO_MEMORY, "out of memory for the list of devices");
    device->context = plugin->context;
    device->plugin = plugin;
    device->index = index;
    device->info = *info;
    snprintf(device->name, sizeof device->name, "%s:%d", plugin->candidate->name, index);
    pthread_mutex_init(&device->lock, NULL);
    pthread_mutex_init(&device->op_testing, NULL);
    while (*end)
        end = &(*end)->next;
    *end = device;
    return HW_OK;
}

const char *different_fact(const struct hw_device_info *a, const struct hw_device_info *b)
{
    char pci_a[PCI_SIZE], pci_b[PCI_SIZE];
    device_pci(a, pci_a);
    device_pci(b, pci_b);
    return strcmp(a->name, b->name)                     ? "name"
           : strcmp(a->vendor, b->vendor)               ? "vendor"
           : strcmp(a->arch, b->arch)                   ? "architecture"
           : strcmp(pci_a, pci_b)                       ? "PCI address"
           : a->has_uuid != b->has_uuid                 ? "UUID"
           : memcmp(a->uuid, b->uuid, sizeof a->uuid)   ? "UUID"
           : a->kind != b->kind                         ? "kind"
           : a->features != b->features                 ? "set of features"
           : a->buffer_alignment != b->buffer_alignment ? "alignment of buffers"
                                                        : NULL;
}

const char *registry_differs(const struct plugin *plugin, uint32_t index,
                             const struct hw_device_info *info)
{
    struct hw_device_info known = plugin->candidate->verdict->devices[index].info,
                          now = *info;
    device_complete(plugin, &known);
    device_complete(plugin, &now);
    return different_fact(&known, &now);
}

static void device_free(struct hw_device *device)
{
    device_sleep(device);
    op_states_free(device);
    pthread_mutex_destroy(&device->op_testing);
    pthread_mutex_destroy(&device->lock);
    free(device->closed_counts);
    free(device->why_lost);
    free(device);
}

void registry_drop(struct plugin *plugin)
{
    while (plugin->devices) {
        struct hw_device *device = plugin->devices;
        plugin->devices = device->next;
        device_free(device);
    }
}

/* ---- for applications ---- */

const char *hw_device_name(struct hw_device *device)
{
    return device ? device->name : "";
}

const char *hw_device_backend(struct hw_device *device)
{
    return device ? device->plugin->candidate->name : "";
}

enum hw_status hw_device_info(struct hw_device *device, struct hw_device_info *info)
{
    REQUIRE(device);
    REQUIRE(info);
    enum hw_status status = check_size(__func__, "info", info, 2 * sizeof(uint32_t));
    if (status || (status = guard(device->context->generation)))
        return status;
    struct hw_device_info facts;
    char why[512];
    if (!plugin_is_bound(device->plugin))
        facts = device->info;
    else if (device_facts(device->plugin, device->index, &facts, why, sizeof why))
        return fail(HW_DRIVER, "facts of %s: %s", device->name, why);
    return answer_struct(info, &facts, sizeof facts);
}
