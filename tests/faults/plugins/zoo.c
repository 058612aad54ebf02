/* SPDX-License-Identifier: MIT */
/* Devices of many kinds, for tests/faults/test_selection.c. */
#define NAME  "zoo"
#define LINES "rank=20\n"
#define CHANGES
#include "minimal.h"

static int32_t count(void *self, int32_t *count)
{
    (void)self;
    *count = 4;
    return HW_OK;
}

static int32_t info(void *self, int32_t index, struct hw_device_info *info)
{
    static const char *const names[] = { "Lynx soft", "Bear integrated", "Wolf X100",
                                         "Wolf X200" };
    static const int32_t kinds[] = { HW_DEVICE_SOFTWARE, HW_DEVICE_INTEGRATED,
                                     HW_DEVICE_DISCRETE, HW_DEVICE_DISCRETE };
    (void)self;
    struct hw_device_info facts = hw_no_facts();
    strcpy(facts.name, names[index]);
    strcpy(facts.vendor, index >= 2 ? "Canis" : "Others");
    facts.kind = kinds[index];
    if (index >= 2) {
        facts.pci_domain = facts.pci_device = facts.pci_function = 0;
        facts.pci_bus = 0x3b + index;
        facts.has_uuid = 1;
        facts.uuid[0] = 0xab;
        facts.uuid[15] = (uint8_t)index;
    }
    hw_answer(info, &facts);
    return HW_OK;
}

static void change(struct hw_plugin *table)
{
    table->device_count = count;
    table->device_info = info;
}
