/* SPDX-License-Identifier: MIT */
/* device.c - the two devices: their facts, opening and closing them. */
#include "discrete.h"

#include <stdlib.h>

#define DEVICES  2
#define FAR_MOST (UINT64_C(48) << 20) /* the second one's buffers: bytes, and alignment */

int32_t device_lost(const struct device *device)
{
    return hw_fail(device->instance->host, HW_LOST, "the test device was lost on request");
}

int32_t device_count(void *instance, int32_t *count)
{
    (void)instance;
    *count = DEVICES;
    return HW_OK;
}

/* A real plugin reads the facts from the device on each call. The two devices have no PCI
 * address, so a UUID tells them apart. */
int32_t device_info(void *instance, int32_t index, struct hw_device_info *info)
{
    (void)instance;
    struct hw_device_info facts = hw_no_facts();
    facts.kind = HW_DEVICE_DISCRETE;
    strcpy(facts.name, "Test device with separate memory");
    strcpy(facts.vendor, "none");
    strcpy(facts.arch, "test");
    facts.memory_total = MEMORY_BYTES;
    facts.units = 1;
    facts.has_uuid = 1;
    facts.uuid[0] = 0xd1;
    facts.uuid[15] = (uint8_t)index;
    facts.buffer_max = index ? FAR_MOST : 0;
    facts.buffer_alignment = index ? ALIGNMENT : 0;
    hw_answer(info, &facts);
    return HW_OK;
}

int32_t device_open(void *instance, int32_t index, void **out)
{
    struct device *device = calloc(1, sizeof *device);
    if (!device)
        return hw_fail(((struct instance *)instance)->host, HW_NO_MEMORY, "out of memory");
    device->instance = instance;
    device->index = index;
    device->choice.table = &launch_kernels;
    kernel_choose(device->instance->host, &device->choice);
    *out = device;
    return HW_OK;
}

void device_close(void *device)
{
    free(device);
}
