/* SPDX-License-Identifier: MIT */
/* match.c - the stage match: is there hardware that makes the plugin worthwhile? The stage is
 * skipped for a plugin that the settings name. Linux keeps the numbers of PCI devices in memory and
 * shows them in the file uevent. Reading a device's config space would wake the device. */
#define _POSIX_C_SOURCE 200809L
#include "load/match.h"

#include "base/text.h"
#include "object/manifest.h"
#include "open/select.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the hardware that the system lists ---- */

#define PCI_PLACE    "/sys/bus/pci/devices"
#define PCI_MOST     4096
#define UEVENT_BYTES 2048

/* The value of the line "KEY=..." in `text`, or NULL. */
static const char *value_of(const char *text, const char *key)
{
    const size_t length = strlen(key);
    while (text && (strncmp(text, key, length) != 0 || text[length] != '=')) {
        text = strchr(text, '\n');
        text += text != NULL;
    }
    return text ? text + length + 1 : NULL;
}

/* False if the text does not describe a PCI device. */
static bool read_uevent(struct pci_device *device, const char *text)
{
    const char *id = value_of(text, "PCI_ID"), *code = value_of(text, "PCI_CLASS");
    const char *driver = value_of(text, "DRIVER");
    unsigned vendor, number;
    char colon;
    if (!id || sscanf(id, "%4x%c%4x", &vendor, &colon, &number) != 3 || colon != ':')
        return false;
    device->vendor = (uint16_t)vendor;
    device->device = (uint16_t)number;
    device->class_code = code ? (uint32_t)strtoul(code, NULL, 16) & 0xffffff : 0;
    if (driver)
        snprintf(device->driver, sizeof device->driver, "%.*s", (int)strcspn(driver, "\n"),
                 driver);
    return true;
}

static bool inventory_add(struct inventory *inventory, int place, const char *slot)
{
    struct pci_device device = { .slot = "" };
    char text[UEVENT_BYTES], path[64];
    if (strlen(slot) >= sizeof device.slot)
        return true;
    strcpy(device.slot, slot);
    snprintf(path, sizeof path, "%s/uevent", slot);
    const int fd = openat(place, path, O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[bytes > 0 ? bytes : 0] = '\0';
    if (!read_uevent(&device, text))
        return true;
    struct pci_device *more = realloc(inventory->pci,
                                      (inventory->pci_count + 1) * sizeof *more);
    if (!more)
        return false;
    inventory->pci = more;
    inventory->pci[inventory->pci_count++] = device;
    return true;
}

bool inventory_read(struct inventory *inventory, const char *root)
{
    *inventory = (struct inventory){ .pci = NULL };
    char *path = text_format("%s" PCI_PLACE, root);
    DIR *place = path ? opendir(path) : NULL;
    const struct dirent *entry;
    bool good = path != NULL;
    inventory->pci_known = place != NULL;
    while (good && place && inventory->pci_count < PCI_MOST && (entry = readdir(place)))
        if (entry->d_name[0] != '.')
            good = inventory_add(inventory, dirfd(place), entry->d_name);
    if (place)
        closedir(place);
    free(path);
    return good;
}

void inventory_free(struct inventory *inventory)
{
    free(inventory->pci);
    *inventory = (struct inventory){ .pci = NULL };
}

static bool has_pci(const struct inventory *inventory, int32_t vendor, int32_t device)
{
    for (size_t i = 0; i < inventory->pci_count; i++)
        if ((vendor < 0 || inventory->pci[i].vendor == vendor) &&
            (device < 0 || inventory->pci[i].device == device))
            return true;
    return !inventory->pci_known;
}

bool inventory_holds(const struct inventory *inventory, const char *root, const char *rule)
{
    int32_t vendor, device;
    struct stat info;
    if (manifest_pci_rule(rule, &vendor, &device))
        return has_pci(inventory, vendor, device);
    if (strncmp(rule, "node:", 5) != 0)
        return true; /* rules of a later version hold */
    char *path = text_format("%s%s", root, rule + 5);
    const bool there = path && (stat(path, &info) == 0 || errno == EACCES);
    free(path);
    return there;
}

/* ---- the stage ---- */

static bool is_named(const struct selector_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (!list->items[i].removes && strcmp(list->items[i].backend, name) == 0)
            return true;
    return false;
}

const struct inventory *inventory_of(struct catalog *found)
{
    if (!found->inventory && (found->inventory = malloc(sizeof *found->inventory)) &&
        !inventory_read(found->inventory, "")) {
        inventory_free(found->inventory);
        free(found->inventory);
        found->inventory = NULL;
    }
    return found->inventory;
}

bool match(struct hw_context *context, struct candidate *candidate)
{
    const struct manifest *manifest = candidate->manifest;
    if (!manifest->match_count || candidate->explicit_file ||
        is_named(&context->selection->list[LIST_BACKENDS], candidate->name) ||
        is_named(&context->selection->list[LIST_REQUIRE], candidate->name))
        return true;
    const struct inventory *inventory = inventory_of(candidate->found);
    if (!inventory)
        return stop(candidate, REASON_NO_MEMORY, NULL);
    for (uint32_t i = 0; i < manifest->match_count; i++)
        if (inventory_holds(inventory, "", manifest->match[i]))
            return true;
    stop(candidate, REASON_NO_HARDWARE, "the system lists no %s%shardware for it",
         manifest->vendor, *manifest->vendor ? " " : "");
    set_remedy(candidate,
               "If it exists, check that it is enabled and visible to this system; "
               "HW_BACKENDS=%s tries the plugin all the same",
               candidate->name);
    return false;
}
