/* SPDX-License-Identifier: MIT */
/* Two devices with one PCI address. */
#define NAME "twins_pci"
#define CHANGES
#include "minimal.h"

static int32_t two(void *self, int32_t *count)
{
    (void)self;
    *count = 2;
    return HW_OK;
}

static int32_t same(void *self, int32_t index, struct hw_device_info *info)
{
    (void)self, (void)index;
    struct hw_device_info facts = hw_no_facts();
    strcpy(facts.name, "twin");
    facts.pci_domain = facts.pci_bus = facts.pci_device = facts.pci_function = 0;
    hw_answer(info, &facts);
    return HW_OK;
}

static void change(struct hw_plugin *table)
{
    table->device_count = two;
    table->device_info = same;
}
