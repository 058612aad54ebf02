/* SPDX-License-Identifier: MIT */
/* opencl.h - the insides of the OpenCL plugin: which file does what.
 *
 *   plugin   the instance, and the table of what the plugin does
 *   error    from an error of OpenCL to a status and a message
 *   device   the devices of all platforms: their facts, opening and closing them
 *   memory   buffers and transfers
 *   queue    queues
 *   program  the kernels, compiled for the device
 *   launch   from an op to the launch of a kernel; the rows
 *   event    events
 *
 * It needs OpenCL 1.2 and calls the functions that opencl.def lists. Each device has a context of
 * its own. */
#ifndef OPENCL_H
#define OPENCL_H

#include <hw/plugin.h>

#include "common/lower.h"
#include "common/module.h"
#include "common/rows.h"
#include "common/symbols.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct opencl {
#define REQUIRED SYMBOL_MEMBER
#include "opencl.def"
};

/* A parameter that is called `self` is the plugin in device.c, as far as device_open(); the device
 * in the rest of it and in memory.c; the queue in memory_transfer() and queue.c; and the event in
 * event.c. */

/* ---- plugin.c ------------------------------------------------------------------------------ */

enum { MOST_DEVICES = 64 };

/* The fewest work-items of a group that the kernels can be compiled for. */
enum { LEAST_GROUP = 32 };

struct plugin {
    const struct hw_host *host;
    struct opencl cl;
    void *device[MOST_DEVICES]; /* those that can run the kernels */
    int32_t devices;
};

struct device {
    struct plugin *plugin;
    const struct hw_host *host;
    const struct opencl *cl;
    void *handle, *context;
    uint32_t group; /* the most work-items of a group */
    struct kernel_choice choice;
    atomic_bool lost;

    char name[256], driver[64], options[128];
    struct module_builder builder;
    pthread_mutex_t lock; /* of programs */
    struct program {
        void *handle;   /* NULL: not loaded yet */
        uint32_t group; /* GROUP that it was compiled with */
    } program[FORM_COUNT][PORTABLE_COUNT];

    pthread_mutex_t callback_lock;
    pthread_cond_t callback_done;
    int callbacks; /* of events, that have not returned yet */
};

struct queue {
    struct device *device;
    void *handle;
    struct kernel_choice choice;
    uint32_t unflushed;                       /* launches */
    void *kernel[FORM_COUNT][PORTABLE_COUNT]; /* its own: a kernel holds its arguments */
};

/* Returns HW_UNSUPPORTED: `what` sets a flag or a field that this plugin does not know. */
int32_t too_new(const struct hw_host *host, const char *what);

/* ---- error.c ------------------------------------------------------------------------------- */

/* Returns HW_OK for error 0. Otherwise sets the message, "cannot <what>: CL_OUT_OF_RESOURCES
 * (-5)", and returns the status; HW_LOST from the first error on that the device does not
 * survive. */
int32_t answer(struct device *device, int error, const char *what);
/* The name of an error; "an unknown error" for others. */
const char *error_name(int error);
/* Returns HW_LOST and sets the message if the device is lost. */
int32_t check_lost(struct device *device);

/* ---- device.c ------------------------------------------------------------------------------ */

/* Finds the devices that this plugin can use. */
int32_t devices_find(struct plugin *plugin);
int32_t device_count(void *self, int32_t *count);
int32_t device_info(void *self, int32_t index, struct hw_device_info *info);
int32_t device_open(void *self, int32_t index, void **out);
void device_close(void *self);
int32_t device_kernel(void *self, uint32_t op, uint32_t index, struct hw_kernel_info *info);

/* ---- memory.c ------------------------------------------------------------------------------ */

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

/* ---- program.c ----------------------------------------------------------------------------- */

/* Sets up the device's builder and options. */
void program_begin(struct device *device);
/* The queue's kernel of this form and the work-items of its groups; compiles it for the device if
 * needed. */
int32_t program_kernel(struct queue *queue, const struct lowered *l, void **kernel,
                       size_t *group);
/* Releases a queue's kernels, and a device's programs. */
void program_drop(struct queue *queue);
void program_end(struct device *device);

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

#endif
