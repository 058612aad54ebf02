/* SPDX-License-Identifier: MIT */
/* cuda.h - the insides of the CUDA plugin: which file does what.
 *
 *   plugin   the instance, and the table of what the plugin does
 *   error    from a result of the driver to a status and a message
 *   device   the devices: their facts, opening and closing them
 *   memory   buffers and transfers
 *   queue    queues: streams
 *   launch   from an op to the launch of a kernel; the rows
 *   event    events
 *   graph    recorded ops as one graph of the driver
 *
 * The plugin calls the driver alone, through the functions that cuda.def lists. */
#ifndef CUDA_H
#define CUDA_H

#include <hw/plugin.h>

#include "common/embed.h"
#include "common/lower.h"
#include "common/rows.h"
#include "common/symbols.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Rows to copy, as the driver wants them (CUDA_MEMCPY2D). */
struct copy_rows {
    size_t from_x, from_y;
    int from_kind;
    const void *from_host;
    uint64_t from;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    int to_kind;
    void *to_host;
    uint64_t to;
    void *to_array;
    size_t to_pitch;
    size_t bytes, rows;
};

struct driver {
#define REQUIRED SYMBOL_MEMBER
#include "cuda.def"
};

/* A parameter that is called `self` is the plugin in device.c, as far as device_open(); the device
 * in the rest of it and in memory.c; the queue in memory_transfer(), queue.c and graph.c; and the
 * event in event.c. */

/* ---- plugin.c ------------------------------------------------------------------------------ */

enum { MOST_DEVICES = 64 };

struct plugin {
    const struct hw_host *host;
    struct driver cuda;
    char version[24];         /* the newest CUDA that the driver supports: "13.0" */
    int device[MOST_DEVICES]; /* those that are new enough */
    int32_t devices;
};

struct device {
    struct plugin *plugin;
    const struct hw_host *host;
    const struct driver *cuda;
    int number;    /* the driver's */
    void *context; /* the primary one, which the application may share */
    void *stream;  /* for what belongs to no queue */
    struct kernel_choice choice;
    atomic_bool lost;
    pthread_mutex_t lock; /* of modules and functions, until they are loaded */
    void *module[FORM_COUNT];
    _Atomic(void *) function[FORM_COUNT][PORTABLE_COUNT];
};

struct queue {
    struct device *device;
    void *stream;
    bool imported;
    struct kernel_choice choice;
};

/* Returns HW_UNSUPPORTED: `what` sets a flag or a field that this plugin does not know. */
int32_t too_new(const struct hw_host *host, const char *what);

/* ---- error.c ------------------------------------------------------------------------------- */

/* Returns HW_OK for result 0. Otherwise sets the message, "cannot <what>: <the driver's words>",
 * and returns the status; HW_LOST from the first error on that the device does not survive. */
int32_t answer(struct device *device, int result, const char *what);
/* The same before there is a device. */
int32_t answer_early(const struct plugin *plugin, int result, const char *what);

/* Makes the device's context the thread's current one, and restores what was before. enter()
 * returns HW_LOST if the device is lost. */
int32_t enter(struct device *device);
void leave(struct device *device);

/* ---- device.c ------------------------------------------------------------------------------ */

/* Finds the devices that this plugin can use. */
int32_t devices_find(struct plugin *plugin);
int32_t device_count(void *self, int32_t *count);
int32_t device_info(void *self, int32_t index, struct hw_device_info *info);
int32_t device_open(void *self, int32_t index, void **out);
void device_close(void *self);
int32_t device_kernel(void *self, uint32_t op, uint32_t index, struct hw_kernel_info *info);

/* ---- memory.c ------------------------------------------------------------------------------ */

/* What hw_buffer.impl points to. */
struct block {
    uint64_t address; /* in the device's view of memory */
    void *host;       /* to free or to unregister; NULL: memory of the device */
    enum { BLOCK_OURS, BLOCK_REGISTERED, BLOCK_FOREIGN } kind;
};

int32_t memory_alloc(void *self, uint64_t bytes, uint32_t flags, struct hw_buffer *buffer);
void memory_free(void *self, struct hw_buffer *buffer);
int32_t memory_import(void *self, const struct hw_import *desc, struct hw_buffer *buffer);
int32_t memory_transfer(void *self, const struct hw_transfer *t);

/* ---- queue.c ------------------------------------------------------------------------------- */

int32_t queue_open(void *self, const struct hw_queue_desc *desc, void **out);
int32_t queue_import(void *self, const struct hw_queue_desc *desc, const char *kind,
                     void *handle, void **out);
void queue_close(void *self);
int32_t queue_wait(void *self);

/* ---- event.c ------------------------------------------------------------------------------- */

int32_t event_create(void *self, uint32_t flags, void **out);
void event_destroy(void *self);
int32_t event_record(void *self, void *queue_self);
int32_t event_wait(void *queue_self, void *self);
int32_t event_sync(void *self);
int32_t event_query(void *self);
int32_t event_callback(void *self, void (*fn)(void *user), void *user);
int32_t event_elapsed(void *start, void *end, double *ms);

/* ---- launch.c ------------------------------------------------------------------------------ */

/* What a row's plan function fills in. */
struct plan {
    const struct kernel_row *row;
    struct lowered lowered;
};

extern const struct hw_plugin_ops launch_ops;
extern const struct kernel_table launch_kernels;

int32_t launch_supports(void *self, uint32_t op, const void *args, char *why,
                        size_t why_size, uint64_t *scratch);
/* Plans an op with the queue's rows and launches it on `stream`, in the device's context. */
int32_t launch_op(struct queue *queue, uint32_t op, const void *args, void *stream);
void launch_unload(struct device *device);

/* ---- graph.c ------------------------------------------------------------------------------- */

int32_t graph_build(void *self, const struct hw_node *nodes, uint32_t count, void **out);
int32_t graph_launch(void *self, void *graph);
void graph_destroy(void *self);

#endif
