/* SPDX-License-Identifier: MIT */
/* The device: what it is, opening and closing it. */
#include "cpu.h"

#include <stdlib.h>

int32_t device_count(void *self, int32_t *count)
{
    (void)self;
    *count = 1;
    return HW_OK;
}

static uint64_t features_of(const struct machine *machine)
{
    const uint64_t f = machine->features;
    uint64_t features = HW_FEATURE_UNIFIED_MEMORY | HW_FEATURE_HOST_TENSORS;
    if (f & (HAS(AVX512_FP16) | HAS(ARM_ASIMDHP)))
        features |= HW_FEATURE_F16;
    if (f & (HAS(AVX512_BF16) | HAS(ARM_BF16)))
        features |= HW_FEATURE_BF16;
    if (f & (HAS(AVX512_VNNI) | HAS(AVX_VNNI) | HAS(ARM_ASIMDDP)))
        features |= HW_FEATURE_INT8_DOT;
    if ((f & HAS(AMX_TILE)) && (f & HAS(AMX_INT8)))
        features |= HW_FEATURE_MATRIX;
    return features;
}

int32_t device_info(void *self, int32_t index, struct hw_device_info *info)
{
    const struct plugin *plugin = self;
    const struct machine *machine = &plugin->machine;
    if (index != 0)
        return no_device(plugin->host, index);

    struct hw_device_info facts = hw_no_facts();
    facts.kind = HW_DEVICE_CPU;
    facts.features = features_of(machine);
    facts.units = machine->processors;
    memcpy(facts.name, machine->name, sizeof facts.name);
    memcpy(facts.vendor, machine->vendor, sizeof facts.vendor);
    memcpy(facts.arch, machine->arch, sizeof facts.arch);
    machine_memory("", &facts.memory_total, &facts.memory_free);
    hw_answer(info, &facts);
    return HW_OK;
}

static uint64_t allowed(const struct hw_host *host)
{
    return (host->precision >= HW_PRECISION_FP16 ? HAS(ALLOW_FP16) : 0) |
           (host->precision >= HW_PRECISION_INT8 ? HAS(ALLOW_INT8) : 0);
}

static void log_device(const struct plugin *plugin, uint32_t threads)
{
    const struct machine *m = &plugin->machine;
    const struct hw_host *host = plugin->host;
    char line[384], quota[64] = "";
    if (m->quota && m->quota < m->processors)
        snprintf(quota, sizeof quota, " (%u by the cgroup's quota)", (unsigned)m->quota);
    snprintf(line, sizeof line, "%s, %s, %u processors%s, up to %u threads", m->name,
             m->arch, (unsigned)m->processors, quota, (unsigned)threads);
    host->log(host->instance, HW_LOG_INFO, line);
}

void device_close(void *device)
{
    struct device *dev = device;
    if (!dev)
        return;
    team_destroy(dev->team);
    free(dev);
}

int32_t device_open(void *self, int32_t index, void **device)
{
    struct plugin *plugin = self;
    if (index != 0)
        return no_device(plugin->host, index);
    struct device *dev = calloc(1, sizeof *dev);
    int32_t status = HW_NO_MEMORY;
    if (!dev)
        return hw_fail(plugin->host, status, "out of memory");
    dev->host = plugin->host;
    const uint32_t threads = plugin->host->threads ? plugin->host->threads
                                                   : machine_threads(&plugin->machine, "");
    dev->team = team_create(threads, plugin->machine.processors);
    dev->choice.table = &launch_kernels;
    dev->choice.features = plugin->machine.features | allowed(dev->host);
    status = dev->team ? kernel_choose(dev->host, dev->host->kernel, &dev->choice)
                       : hw_fail(dev->host, HW_NO_MEMORY, "out of memory");
    if (status) {
        device_close(dev);
        return status;
    }
    log_device(plugin, threads);
    *device = dev;
    return HW_OK;
}
