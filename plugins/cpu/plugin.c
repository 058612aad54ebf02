/* SPDX-License-Identifier: MIT */
/* The ABI's functions. Work is done when a call returns, so queues have nothing to wait for
 * and events have passed as soon as they are recorded. */
#include "cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

int32_t too_new(const struct hw_host *host, const char *what)
{
    return hw_fail(host, HW_UNSUPPORTED,
                   "cpu: %s: there is something set that this plugin is too old for", what);
}

/* ---- the instance and its device ---- */

static int32_t plugin_open(const struct hw_host *host, void **self)
{
    struct plugin *plugin = calloc(1, sizeof *plugin);
    if (!plugin)
        return hw_fail(host, HW_NO_MEMORY, "cpu: out of memory");
    plugin->host = host;
    machine_read(&plugin->machine, "");
    *self = plugin;
    return HW_OK;
}

static void plugin_close(void *self)
{
    free(self);
}

static int32_t device_count(void *self, int32_t *count)
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

static int32_t no_device(const struct plugin *plugin, int32_t index)
{
    return hw_fail(plugin->host, HW_NO_DEVICE, "cpu: there is one device, 0; asked for %d",
                   (int)index);
}

static int32_t device_info(void *self, int32_t index, struct hw_device_info *info)
{
    const struct plugin *plugin = self;
    const struct machine *machine = &plugin->machine;
    if (index != 0)
        return no_device(plugin, index);

    struct hw_device_info facts = hw_no_facts();
    facts.kind = HW_DEVICE_CPU;
    facts.features = features_of(machine);
    facts.units = machine->cores;
    memcpy(facts.name, machine->name, sizeof facts.name);
    memcpy(facts.vendor, machine->vendor, sizeof facts.vendor);
    memcpy(facts.arch, machine->arch, sizeof facts.arch);
    machine_memory("", &facts.memory_total, &facts.memory_free);
    hw_answer(info, &facts);
    return HW_OK;
}

/* HW_THREADS, else one per core, or fewer where the process is granted less time than that.
 */
static uint32_t threads_of(const struct plugin *plugin)
{
    const struct machine *machine = &plugin->machine;
    if (plugin->host->threads)
        return plugin->host->threads;
    return machine->quota && machine->quota < machine->cores ? machine->quota
                                                             : machine->cores;
}

static void log_device(const struct plugin *plugin)
{
    const struct machine *m = &plugin->machine;
    const struct hw_host *host = plugin->host;
    char line[384], quota[64] = "";
    if (m->quota && m->quota < m->cores)
        snprintf(quota, sizeof quota, " (%u by the cgroup's quota)", (unsigned)m->quota);
    snprintf(line, sizeof line, "cpu: %s, %s, %u cores%s, up to %u threads", m->name,
             m->arch, (unsigned)m->cores, quota, (unsigned)threads_of(plugin));
    host->log(host->instance, HW_LOG_INFO, line);
}

static void device_close(void *device)
{
    struct device *dev = device;
    if (!dev)
        return;
    team_destroy(dev->team);
    free(dev);
}

static int32_t device_open(void *self, int32_t index, void **device)
{
    struct plugin *plugin = self;
    if (index != 0)
        return no_device(plugin, index);
    struct device *dev = calloc(1, sizeof *dev);
    int32_t status = HW_NO_MEMORY;
    if (!dev)
        return hw_fail(plugin->host, status, "cpu: out of memory");
    dev->host = plugin->host;
    dev->team = team_create(threads_of(plugin), plugin->machine.cores);
    dev->choice.table = &launch_kernels;
    dev->choice.features = plugin->machine.features;
    status = dev->team ? kernel_choose(dev->host, dev->host->kernel, &dev->choice)
                       : hw_fail(dev->host, HW_NO_MEMORY, "cpu: out of memory");
    if (status) {
        device_close(dev);
        return status;
    }
    log_device(plugin);
    *device = dev;
    return HW_OK;
}

static int32_t kernel_info(void *device, uint32_t op, uint32_t index,
                           struct hw_kernel_info *info)
{
    const struct device *dev = device;
    return kernel_list(&dev->choice, op, index, info);
}

/* ---- queues ---- */

static int32_t queue_open(void *device, const struct hw_queue_desc *desc, void **queue)
{
    struct device *dev = device;
    const uint32_t known = HW_QUEUE_SYNCHRONOUS | HW_QUEUE_TIMING;
    if (!hw_knows(desc, sizeof *desc) || desc->flags & ~known)
        return too_new(dev->host, "queue");
    struct queue *made = calloc(1, sizeof *made + launch_kernels.count);
    if (!made)
        return hw_fail(dev->host, HW_NO_MEMORY, "cpu: out of memory");
    made->device = dev;
    made->choice = dev->choice;
    if (desc->kernel && desc->kernel[0]) {
        const int32_t status = kernel_choose(dev->host, desc->kernel, &made->choice);
        if (status) {
            free(made);
            return status;
        }
    }
    *queue = made;
    return HW_OK;
}

static void queue_close(void *queue)
{
    free(queue);
}

static int32_t queue_wait(void *queue)
{
    (void)queue;
    return HW_OK;
}

/* ---- events ---- */

struct event {
    const struct hw_host *host;
    _Atomic int64_t ns; /* when it was recorded; 0: never */
};

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int32_t event_create(void *device, uint32_t flags, void **event)
{
    const struct device *dev = device;
    if (flags & ~(uint32_t)HW_EVENT_TIMING) /* which costs nothing here */
        return too_new(dev->host, "event");
    struct event *made = calloc(1, sizeof *made);
    if (!made)
        return hw_fail(dev->host, HW_NO_MEMORY, "cpu: out of memory");
    made->host = dev->host;
    *event = made;
    return HW_OK;
}

static void event_destroy(void *event)
{
    free(event);
}

static int32_t event_record(void *event, void *queue)
{
    struct event *e = event;
    (void)queue;
    atomic_store(&e->ns, now_ns());
    return HW_OK;
}

static int32_t event_wait(void *queue, void *event)
{
    (void)queue;
    (void)event;
    return HW_OK;
}

static int32_t event_passed(void *event)
{
    (void)event;
    return HW_OK;
}

static int32_t event_callback(void *event, void (*fn)(void *user), void *user)
{
    (void)event;
    fn(user);
    return HW_OK;
}

static int32_t event_elapsed(void *start, void *end, double *ms)
{
    struct event *a = start, *b = end;
    const int64_t from = atomic_load(&a->ns), to = atomic_load(&b->ns);
    if (!from || !to)
        return hw_fail(a->host, HW_INVALID, "elapsed: the %s event was never recorded",
                       from ? "end" : "start");
    *ms = (double)(to - from) / 1e6;
    return HW_OK;
}

/* ---- the table ---- */

static const uint32_t op_sizes[] = HW_OP_SIZES;

static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    (void)host;
    table->vendor = "";
    table->version = HW_BUILD_STAMP;
    table->ops = &launch_ops;
    table->op_sizes = op_sizes;
    table->op_count = HW_OP_COUNT;
    table->open = plugin_open;
    table->close = plugin_close;
    table->device_count = device_count;
    table->device_info = device_info;
    table->device_open = device_open;
    table->device_close = device_close;
    table->queue_open = queue_open;
    table->queue_close = queue_close;
    table->queue_wait = queue_wait;
    table->buffer_alloc = memory_alloc;
    table->buffer_free = memory_free;
    table->buffer_import = memory_import;
    table->transfer = memory_transfer;
    table->event_create = event_create;
    table->event_destroy = event_destroy;
    table->event_record = event_record;
    table->event_wait = event_wait;
    table->event_sync = event_passed;
    table->event_query = event_passed;
    table->event_callback = event_callback;
    table->event_elapsed = event_elapsed;
    table->supports = launch_supports;
    table->kernel_info = kernel_info;
    table->graph_build = launch_graph_build;
    table->graph_launch = launch_graph;
    table->graph_destroy = launch_graph_destroy;
    return HW_OK;
}

HW_PLUGIN("cpu", "title=CPU\nrank=90\nbuild=" HW_BUILD_STAMP "\n", fill)
