/* SPDX-License-Identifier: MIT */
/* The two wolves of zoo.c (its discrete devices) as another vendor's API shows them. */
#define NAME  "view"
#define LINES "rank=60\n"
#define CHANGES
#include "minimal.h"

static int32_t count(void *self, int32_t *count)
{
    (void)self;
    *count = 2;
    return HW_OK;
}

static int32_t info(void *self, int32_t index, struct hw_device_info *info)
{
    (void)self;
    struct hw_device_info facts = hw_no_facts();
    strcpy(facts.name, index ? "Wolf 2 by view" : "Wolf 1 by view");
    facts.kind = HW_DEVICE_DISCRETE;
    if (index) { /* one is known by its UUID, the other by its address */
        facts.has_uuid = 1;
        facts.uuid[0] = 0xab;
        facts.uuid[15] = 3;
    } else {
        facts.pci_domain = facts.pci_device = facts.pci_function = 0;
        facts.pci_bus = 0x3d;
    }
    hw_answer(info, &facts);
    return HW_OK;
}

static void change(struct hw_plugin *table)
{
    table->device_count = count;
    table->device_info = info;
}
