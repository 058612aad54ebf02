/* SPDX-License-Identifier: MIT */
/* discrete.h - a complete small plugin, to learn from and to test with: two devices that have
 * memory of their own. A device is called "Test device with separate memory", and the library
 * chooses it after all others.
 *
 * It has the properties of a discrete GPU, in the smallest form:
 * - Memory is a handle. Only the plugin knows its address, so data comes and goes by transfers,
 *   and the host has to stage what lies elsewhere.
 * - A queue is a thread. Submitting appends a job and returns; the job runs later. A missing
 *   wait, or a scratch buffer that is reused too early, gives wrong results.
 * - It computes few ops: silu, add, matmul and copy, in f32. Other devices compute the rest.
 * - It can fail on request: extension ops delay a queue, fail later, or lose the device.
 *
 * The files, in the order to read them:
 *
 *   plugin     the instance, and the table of what the plugin does
 *   device     the devices: their facts, opening and closing them
 *   memory     buffers and transfers
 *   queue      jobs, and the thread that runs them one after the other
 *   launch     from an op to a job: which row computes it
 *   kernels    (kernels.def, kernels/) the rows and their code
 *   pack       packed weights
 *   event      records of events, and the queues that wait for them
 *   graph      many ops as one job
 *   extension  ops of its own, which fail on request
 *
 * The functions that the files share are compiled with -fvisibility=hidden: a plugin exports
 * hw_plugin_entry only. */
#ifndef DISCRETE_H
#define DISCRETE_H

#include <hw/plugin.h>

#include "common/rows.h"
#include "common/slots.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define MEMORY_BYTES (UINT64_C(64) << 20) /* of each device */
#define ALIGNMENT    512

/* ---- what open(), device_open() and queue_open() return ---- */

struct instance {
    const struct hw_host *host;
};

struct device {
    struct instance *instance;
    int32_t index;
    struct kernel_choice choice; /* HW_KERNEL's */
    _Atomic uint64_t used;
    _Atomic bool lost;
};

struct queue {
    struct device *device;
    struct kernel_choice choice;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct job *first, *last; /* the thread takes the first */
    bool idle, closing;
    int32_t error; /* the first since the last wait */
    char error_text[128];
};

/* ---- device.c ---- */

/* Sets the message of a lost device and returns HW_LOST. */
int32_t device_lost(const struct device *device);

/* ---- memory.c ---- */

/* The address of `offset` bytes into a buffer. Only jobs call it: it is the one place where a
 * handle becomes an address. */
void *memory_cells(const struct hw_buffer *buffer, uint64_t offset);

/* ---- queue.c ---- */

/* Runs a job. A status other than HW_OK stays with the queue until the next wait. */
typedef int32_t job_fn(struct queue *queue, struct job *job);

/* Work that waits in a queue. */
struct job {
    struct job *next;
    job_fn *run;
    bool always; /* runs on a lost device, too */
    union {
#define X(NAME, name) struct hw_##name name;
        HW_OPS(X)
#undef X
        struct hw_transfer transfer;
        struct mark *mark;
        struct graph *graph;
        int64_t number;
    } u;
    /* Copies of the operands' buffers: the host keeps its own until it has waited, but a copy
     * is simpler to reason about. */
    struct hw_buffer buffers[6];
};

/* Creates a job to fill in. Returns NULL if it cannot; queue_no_job() reports why. */
struct job *queue_job(struct queue *queue, job_fn *run);
int32_t queue_no_job(const struct queue *queue);
/* Appends the job; the queue owns it from now on. */
int32_t queue_submit(struct queue *queue, struct job *job);

/* ---- launch.c ---- */

/* The launch that a row's plan function prepares. */
struct plan {
    job_fn *run; /* computes an op whose struct is in the job */
};

extern const struct kernel_table launch_kernels;

/* ---- pack.c ---- */

/* The layout of packed weights: a matrix without gaps, whatever its strides say. */
#define LAYOUT_DENSE 1

/* Sets the strides that a packed matrix really has. */
void pack_view(struct hw_tensor *t);
int32_t pack_size(void *device, const struct hw_tensor *src, uint64_t *bytes,
                  uint32_t *layout);
int32_t pack(void *queue, const struct hw_tensor *dst, const struct hw_tensor *src);

/* ---- extension.c ---- */

int32_t extension_row(void *device, uint32_t index, struct hw_extension *out);

#endif
