/* SPDX-License-Identifier: MIT */
/* pick.c - selects devices and orders them. */
#define _POSIX_C_SOURCE 200809L
#include "open/pick.h"

#include "base/message.h"
#include "base/text.h"
#include "load/scan.h"
#include "load/verdict.h"
#include "open/registry.h"

#include <stdlib.h>
#include <string.h>

/* ---- order ---- */

/* Software that imitates a GPU comes last, after the CPU. The others are ordered by the
 * rank in the manifest, the kind of device, the name, and the plugin's own order. */
static int compare_devices(const void *a, const void *b)
{
    static const int kinds[] = { [HW_DEVICE_DISCRETE] = 0,
                                 [HW_DEVICE_INTEGRATED] = 1,
                                 [HW_DEVICE_OTHER] = 2,
                                 [HW_DEVICE_CPU] = 3,
                                 [HW_DEVICE_SOFTWARE] = 4 };
    const struct hw_device *x = ((const struct unselected *)a)->device;
    const struct hw_device *y = ((const struct unselected *)b)->device;
    int software = (x->info.kind == HW_DEVICE_SOFTWARE) -
                   (y->info.kind == HW_DEVICE_SOFTWARE);
    if (software)
        return software;
    if (x->plugin->rank != y->plugin->rank)
        return x->plugin->rank < y->plugin->rank ? -1 : 1;
    if (kinds[x->info.kind] != kinds[y->info.kind])
        return kinds[x->info.kind] - kinds[y->info.kind];
    int names = strcmp(x->plugin->candidate->name, y->plugin->candidate->name);
    return names ? names : x->index - y->index;
}

/* ---- devices that were selected before ---- */

/* Whether another version of the plugin has replaced the device's plugin. */
static bool is_replaced(const struct catalog *found, const struct hw_device *device)
{
    return plugin_named(found, device->plugin->candidate->name) != device->plugin;
}

/* Whether the device was selected before. It stays selected, because it may be in use. */
static bool was_selected(const struct catalog *found, const struct hw_device *device)
{
    const struct catalog *before = catalog_of(found->context);
    return is_among(before->devices, before->device_count, device);
}

/* ---- picking ---- */

/* Takes ownership of `why`, which is NULL if memory ran out. */
static void set_why(struct catalog *found, struct unselected *one, char *why)
{
    free(one->why);
    one->why = why;
    found->shortage = found->shortage || !why;
}

static const struct selector *removed_by(const struct hw_context *context,
                                         const struct hw_device *device)
{
    const struct selector_list *list = &context->selection->list[LIST_BACKENDS];
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].removes && selector_matches(&list->items[i], device))
            return &list->items[i];
    return NULL;
}

static bool same_hardware(const struct hw_device *a, const struct hw_device *b)
{
    char pci_a[PCI_SIZE], pci_b[PCI_SIZE];
    if (a->plugin == b->plugin)
        return false;
    device_pci(&a->info, pci_a);
    device_pci(&b->info, pci_b);
    return (*pci_a && strcmp(pci_a, pci_b) == 0) ||
           (a->info.has_uuid && b->info.has_uuid &&
            memcmp(a->info.uuid, b->info.uuid, sizeof a->info.uuid) == 0);
}

/* Whether the device's plugin is usable: its bind has not failed, or a new probe has succeeded. */
static bool is_usable(const struct catalog *found, const struct hw_device *device)
{
    const struct candidate *candidate = found->candidates;
    while (candidate && (candidate->plugin != device->plugin || !is_revived(candidate)))
        candidate = candidate->next;
    return candidate || plugin_is_alive(device->plugin);
}

static bool shadows(const struct catalog *found, const struct hw_device *other,
                    const struct hw_device *device)
{
    return same_hardware(other, device) && is_usable(found, other);
}

/* A selected device of another plugin that is the same hardware; or NULL. Devices that were
 * selected before come first, whatever their rank, because they may be in use. */
static const struct hw_device *shadow_of(const struct catalog *found,
                                         const struct hw_device *device)
{
    const struct catalog *before = catalog_of(found->context);
    for (uint32_t i = 0; i < before->device_count; i++)
        if (shadows(found, before->devices[i], device) &&
            !is_replaced(found, before->devices[i]))
            return before->devices[i];
    for (uint32_t i = 0; i < found->order_count; i++)
        if (shadows(found, found->order[i], device))
            return found->order[i];
    return NULL;
}

/* Why the device could not be opened when it was tried; or NULL. */
static const char *fault_of(const struct hw_device *device)
{
    const struct verdict *verdict = device->plugin->candidate->verdict;
    return verdict && (uint32_t)device->index < verdict->device_count
               ? verdict->devices[device->index].fault
               : NULL;
}

/* With HW_SHADOW, rejected ops fall back to later devices, so the reference must stay last: no new
 * device comes behind it. Returns the reference then; or NULL. */
static const struct hw_device *reference_before(const struct catalog *found)
{
    const struct hw_context *context = found->context;
    return context->settings.shadow &&
                   is_among(found->order, found->order_count, context->reference)
               ? context->reference
               : NULL;
}

/* Whether the device is not selected although an entry matches it. Sets its reason, which is NULL
 * if memory ran out. `counts`: whether the entry has a use nevertheless. */
static bool is_refused(struct catalog *found, struct unselected *one,
                       const struct selector *selector, bool *counts)
{
    const struct hw_device *device = one->device;
    const struct selector *removal = removed_by(found->context, device);
    const char *fault = fault_of(device);
    const bool is_new = !was_selected(found, device);
    /* A backend that is named, rather than matched by a glob, shows all its devices. */
    const struct hw_device *shadow = is_new && is_glob(selector->backend)
                                         ? shadow_of(found, device)
                                         : NULL,
                           *reference = is_new ? reference_before(found) : NULL;
    *counts = !removal && !fault;
    if (removal)
        set_why(found, one, text_format("excluded by \"!%s\" in backends", removal->text));
    else if (fault)
        set_why(found, one, text_format("it cannot be opened: %s", fault));
    else if (shadow)
        set_why(found, one, text_format("shadowed: the same hardware as %s", shadow->name));
    else if (reference)
        set_why(found, one,
                text_format("HW_SHADOW requires %s to stay last", reference->name));
    return removal || fault || shadow || reference;
}

uint32_t pick(struct catalog *found, const struct selector *selector)
{
    uint32_t matched = 0, kept = 0;
    for (uint32_t i = 0; i < found->order_count; i++)
        matched += selector_matches(selector, found->order[i]);
    for (uint32_t i = 0; i < found->unselected_count; i++) {
        struct unselected one = found->unselected[i];
        bool counts = false;
        const bool wanted = selector_matches(selector, one.device),
                   refused = wanted && is_refused(found, &one, selector, &counts);
        matched += counts;
        if (wanted && !refused) {
            free(one.why);
            found->order[found->order_count++] = one.device;
        } else {
            found->unselected[kept++] = one;
        }
    }
    found->unselected_count = kept;
    return matched;
}

/* ---- all ---- */

static uint32_t count_devices(const struct catalog *found)
{
    uint32_t count = 0;
    for (const struct plugin *p = found->plugins; p; p = p->next)
        for (const struct hw_device *d = p->devices; d; d = d->next)
            count++;
    return count;
}

enum hw_status pick_begin(struct catalog *found)
{
    const char *source = found->context->settings.value[SETTING_backends].source;
    const uint32_t total = count_devices(found);
    found->devices = calloc(total + 1, sizeof *found->devices);
    found->order = calloc(total + 1, sizeof *found->order);
    found->unselected = calloc(total + 1, sizeof *found->unselected);
    if (!found->devices || !found->order || !found->unselected)
        return fail(HW_NO_MEMORY, "out of memory for the list of devices");
    for (const struct plugin *p = found->plugins; p; p = p->next)
        for (struct hw_device *d = p->devices; d; d = d->next)
            if (!is_replaced(found, d))
                found->unselected[found->unselected_count++].device = d;
    qsort(found->unselected, found->unselected_count, sizeof *found->unselected,
          compare_devices);
    for (uint32_t i = 0; i < found->unselected_count; i++)
        set_why(found, &found->unselected[i],
                text_format("not selected by backends (%s)", source));
    return HW_OK;
}

void pick_end(struct catalog *found)
{
    const struct catalog *before = catalog_of(found->context);
    for (uint32_t i = 0; before != found && i < before->device_count; i++)
        found->devices[found->device_count++] = before->devices[i];
    for (uint32_t i = 0; i < found->order_count; i++)
        if (!was_selected(found, found->order[i]))
            found->devices[found->device_count++] = found->order[i];
}

void pick_free(struct catalog *found)
{
    for (uint32_t i = 0; i < found->unselected_count; i++)
        free(found->unselected[i].why);
    free(found->unselected);
    free(found->order);
    free(found->devices);
}
