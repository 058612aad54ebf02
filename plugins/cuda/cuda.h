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
#include "common/slots.h"
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

/* ---- memory.c ------------------------------------------------------------------------------ */

/* What hw_buffer.impl points to. */
struct block {
    uint64_t address; /* in the device's view of memory */
    void *host;       /* to free or to unregister; NULL: memory of the device */
    enum { BLOCK_OURS, BLOCK_REGISTERED, BLOCK_FOREIGN } kind;
};

/* ---- launch.c ------------------------------------------------------------------------------ */

/* What a row's plan function fills in. */
struct plan {
    struct lowered lowered;
};

extern const struct kernel_table launch_kernels;

/* Plans an op with the queue's rows and launches it on `stream`, in the device's context. */
int32_t launch_op(struct queue *queue, uint32_t op, const void *args, void *stream);
void launch_unload(struct device *device);

#endif
