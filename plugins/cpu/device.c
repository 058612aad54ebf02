/* SPDX-License-Identifier: MIT */
/* The device: its facts, opening and closing it. */
#include "cpu.h"

#include <stdatomic.h>
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

/* `limit` is the largest number of threads; 0: not known yet. */
static void log_device(const struct plugin *plugin, uint32_t limit)
{
    const struct machine *m = &plugin->machine;
    char line[384], threads[64] = "";
    if (limit)
        snprintf(threads, sizeof threads, ", up to %u threads", (unsigned)limit);
    snprintf(line, sizeof line, "%s, %s, %u processors%s", m->name, m->arch,
             (unsigned)m->processors, threads);
    plugin->host->log(plugin->host->instance, HW_LOG_INFO, line);
}

/* The team calls this when it needs to know. Reading the limits takes as long as the rest of
 * opening a device, and an application may never need a second thread. */
static uint32_t count_threads(void *user)
{
    struct device *dev = user;
    const uint32_t quota = machine_quota(""), cores = machine_cores(&dev->affinity, "");
    const uint32_t threads = machine_threads(cores, quota);
    char line[96];
    if (atomic_exchange(&dev->told, true))
        return threads;
    snprintf(line, sizeof line, "up to %u threads%s", (unsigned)threads,
             threads < cores ? " (by the cgroup's quota)" : "");
    dev->host->log(dev->host->instance, HW_LOG_INFO, line);
    return threads;
}

/* The largest number of threads, if it is known without reading files; otherwise 0. */
static uint32_t known_limit(const struct device *dev)
{
    return dev->host->threads ? dev->host->threads : dev->affinity.count == 1 ? 1 : 0;
}

static struct team *make_team(struct device *dev)
{
    const uint32_t limit = known_limit(dev), processors = dev->affinity.count;
    struct team *team = team_create(limit ? limit : processors, processors);
    if (team && !limit)
        team_ask(team, count_threads, dev);
    return team;
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
    if (!dev)
        return hw_fail(plugin->host, HW_NO_MEMORY, "out of memory");
    dev->host = plugin->host;
    machine_affinity(&dev->affinity);
    dev->team = make_team(dev);
    dev->choice.table = &launch_kernels;
    dev->choice.features = plugin->machine.features | allowed(dev->host);
    kernel_choose(dev->host, &dev->choice);
    if (!dev->team) {
        device_close(dev);
        return hw_fail(plugin->host, HW_NO_MEMORY, "out of memory");
    }
    log_device(plugin, known_limit(dev));
    *device = dev;
    return HW_OK;
}
