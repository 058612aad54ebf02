/* SPDX-License-Identifier: MIT */
/* slots.h - the functions of a plugin, with the same names in every plugin, and the code that puts
 * them into the host's table.
 *
 * <hw/plugin.h> describes each at its slot of struct hw_plugin. The first parameter is an object of
 * the plugin: the instance in plugin.c and up to device_open(), then the device in device.c, in
 * memory.c and for creating queues and events, and otherwise the queue or the event.
 *
 * A plugin defines only the functions that it puts into the table: a plugin without events or
 * graphs needs no empty functions for them. */
#ifndef COMMON_SLOTS_H
#define COMMON_SLOTS_H

#include <hw/plugin.h>

/* plugin.c */
int32_t plugin_open(const struct hw_host *host, void **);
void plugin_close(void *);

/* device.c */
int32_t device_count(void *, int32_t *count);
int32_t device_info(void *, int32_t index, struct hw_device_info *info);
int32_t device_open(void *, int32_t index, void **);
void device_close(void *);
int32_t device_import(void *, const char *kind, void *handle, int32_t *index);

/* queue.c */
int32_t queue_open(void *, const struct hw_queue_desc *desc, void **);
int32_t queue_import(void *, const struct hw_queue_desc *desc, const char *kind,
                     void *handle, void **);
int32_t queue_export(void *, const char *kind, void **handle);
void queue_close(void *);
int32_t queue_wait(void *);

/* memory.c */
int32_t memory_alloc(void *, uint64_t bytes, uint32_t flags, struct hw_buffer *buffer);
void memory_free(void *, struct hw_buffer *buffer);
int32_t memory_import(void *, const struct hw_import *desc, struct hw_buffer *buffer);
int32_t memory_export(void *, const struct hw_buffer *buffer, const char *kind,
                      struct hw_import *desc);
int32_t memory_transfer(void *, const struct hw_transfer *);

/* launch.c, where KERNEL_QUERIES and KERNEL_OPS of rows.h define them */
extern const struct hw_plugin_ops launch_ops;
int32_t launch_supports(void *, uint32_t op, const void *args, char *why, size_t why_size,
                        uint64_t *scratch);
int32_t launch_row(void *, uint32_t op, uint32_t index, struct hw_kernel_info *info);

int32_t plan_build(void *, uint32_t op, const void *args, void **);
int32_t plan_launch(void *, void *plan, const void *args);
void plan_destroy(void *);

/* event.c */
int32_t event_create(void *, uint32_t flags, void **);
void event_destroy(void *);
int32_t event_record(void *, void *);
int32_t event_wait(void *, void *);
int32_t event_sync(void *);
int32_t event_query(void *);
int32_t event_callback(void *, void (*fn)(void *user), void *user);
int32_t event_elapsed(void *start, void *end, double *ms);

/* graph.c */
int32_t graph_build(void *, const struct hw_node *nodes, uint32_t count, void **);
int32_t graph_launch(void *, void *graph);
void graph_destroy(void *);

/* kernel.c */
int32_t kernel_build(void *, const struct hw_user_kernel *desc, void **);
int32_t kernel_launch(void *, void *kernel, uint64_t groups, const struct hw_arg *args,
                      uint32_t count);
int32_t kernel_launch_3d(void *, void *kernel, const uint64_t groups[3],
                         const struct hw_arg *args, uint32_t count);
void kernel_destroy(void *);

/* Fills in the functions that every plugin has. The plugin itself sets its vendor and version. */
static inline void slots_fill(struct hw_plugin *table)
{
    static const uint32_t op_sizes[] = HW_OP_SIZES;
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
    table->transfer = memory_transfer;
    table->supports = launch_supports;
    table->kernel_info = launch_row;
}

static inline void slots_fill_events(struct hw_plugin *table)
{
    table->event_create = event_create;
    table->event_destroy = event_destroy;
    table->event_record = event_record;
    table->event_wait = event_wait;
    table->event_sync = event_sync;
    table->event_query = event_query;
    table->event_callback = event_callback;
    table->event_elapsed = event_elapsed;
}

static inline void slots_fill_graphs(struct hw_plugin *table)
{
    table->graph_build = graph_build;
    table->graph_launch = graph_launch;
    table->graph_destroy = graph_destroy;
}

static inline void slots_fill_plans(struct hw_plugin *table)
{
    table->plan_build = plan_build;
    table->plan_launch = plan_launch;
    table->plan_destroy = plan_destroy;
}

static inline void slots_fill_kernels(struct hw_plugin *table)
{
    table->kernel_build = kernel_build;
    table->kernel_launch = kernel_launch;
    table->kernel_launch_3d = kernel_launch_3d;
    table->kernel_destroy = kernel_destroy;
}

/* Handles of the vendor's, in and out. */
static inline void slots_fill_handles(struct hw_plugin *table)
{
    table->device_import = device_import;
    table->queue_import = queue_import;
    table->queue_export = queue_export;
    table->buffer_import = memory_import;
    table->buffer_export = memory_export;
}

/* Returns HW_UNSUPPORTED unless `kind` is `wanted`, the plugin's only kind of handle for a
 * `what`. */
static inline int32_t check_kind(const struct hw_host *host, const char *what,
                                 const char *kind, const char *wanted)
{
    return strcmp(kind, wanted) == 0
               ? HW_OK
               : hw_fail(host, HW_UNSUPPORTED,
                         "the plugin supports a %s of kind \"%s\", not \"%s\"", what,
                         wanted, kind);
}

/* Returns HW_UNSUPPORTED: `what` sets a flag or a field that the plugin does not know. */
static inline int32_t too_new(const struct hw_host *host, const char *what)
{
    return hw_fail(host, HW_UNSUPPORTED,
                   "%s: sets a flag or field that this version of the plugin does not "
                   "support; update the plugin",
                   what);
}

/* Returns HW_NO_DEVICE. */
static inline int32_t no_device(const struct hw_host *host, int32_t index)
{
    return hw_fail(host, HW_NO_DEVICE, "device %d does not exist", (int)index);
}

#endif
