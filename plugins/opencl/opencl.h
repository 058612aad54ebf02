/* SPDX-License-Identifier: MIT */
/* opencl.h - declarations shared by the files of the OpenCL plugin:
 *
 *   plugin   the instance, and the table of functions
 *   error    from an error of OpenCL to a status and a message
 *   device   the devices of all platforms: their facts, opening and closing them
 *   memory   buffers and transfers
 *   queue    queues
 *   program  the kernels, compiled for the device
 *   launch   from an op to the launch of a kernel; the rows
 *   event    events
 *   graph    recorded ops as kernels that have their arguments
 *   kernel   kernels of the application
 *
 * It needs OpenCL 1.2 and calls the functions in opencl.def. Each device has its own context. */
#ifndef OPENCL_H
#define OPENCL_H

#include <hw/plugin.h>

#include "common/lower.h"
#include "common/module.h"
#include "common/rows.h"
#include "common/slots.h"
#include "common/symbols.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
#define CONSTANT(name, value, theirs) name = value,
#define FAILURE(name, value, status)  name = value,
#include "opencl.def"
};

struct opencl {
#define REQUIRED SYMBOL_MEMBER
#define OPTIONAL SYMBOL_MEMBER
#include "opencl.def"
};

/* ---- plugin.c ------------------------------------------------------------------------------ */

enum { MOST_DEVICES = 64 };

/* The smallest group, in work-items, for which the kernels can be compiled. */
enum { LEAST_GROUP = 32 };

/* Features that rows of kernels.def may need from a device. */
enum feature {
    ON_CPU = 1,          /* it is a processor, with 192 KiB of group memory */
    LOCAL_32K = 2,       /* 32 KiB of group memory */
    RIGHT_MATMUL_ID = 4, /* the implementation computes matmul_id correctly */
    DOTS = 8,            /* dot products of bytes, or a processor, which emulates them */
    ALLOW_INT8 = 16      /* HW_PRECISION allows bytes */
};

/* The programs of tuned kernels: a kernel's programs are numbered from its constant on, as its file
 * in kernels/ defines. */
enum {
    TUNED_MATMUL_BLOCK,
    TUNED_MATMUL_GEMV,
    TUNED_MATMUL_STREAM = TUNED_MATMUL_GEMV + 18,
    STREAM_PROGRAMS = 21,
    DOTS_PROGRAMS = 16,
    TUNED_MATMUL_TILE = TUNED_MATMUL_STREAM + STREAM_PROGRAMS,
    TUNED_ATTENTION_ROWS = TUNED_MATMUL_TILE + 288,
    TUNED_ATTENTION_SPLIT = TUNED_ATTENTION_ROWS + 16,
    TUNED_ATTENTION_MERGE = TUNED_ATTENTION_SPLIT + 16,
    TUNED_MATMUL_ROUND = TUNED_ATTENTION_MERGE + 1,
    TUNED_MATMUL_DOTS = TUNED_MATMUL_ROUND + 1,
    TUNED_PROGRAMS = TUNED_MATMUL_DOTS + DOTS_PROGRAMS
};
enum { PORTABLE_PROGRAMS = (int)FORM_COUNT * (int)PORTABLE_COUNT };

/* A device that can run the kernels. */
struct found {
    void *handle;
    char platform[128];
    uint32_t number;     /* on its platform */
    uint32_t group_most; /* work-items of a group */
    uint64_t lacks;      /* of enum feature, because of quirks */
    const char *options; /* for the compiler, because of quirks */
};

struct plugin {
    const struct hw_host *host;
    struct opencl cl;
    struct found device[MOST_DEVICES];
    int32_t devices;
};

struct device {
    struct plugin *plugin;
    const struct hw_host *host;
    const struct opencl *cl;
    void *handle, *context;
    uint32_t group;     /* the most work-items of a group */
    uint32_t units;     /* compute units */
    uint32_t wide;      /* floats in a vector: 4, 8 or 16 */
    uint32_t alignment; /* of buffers, in bytes */
    bool shares;        /* it has memory that the host sees at any time */
    bool dots;          /* it has dot products of bytes, and OpenCL C 3.0 */
    struct kernel_choice choice;
    atomic_bool lost;
    _Atomic uint64_t workspaces; /* that queues have had */

    char name[256], driver[64], options[128];
    struct module_builder builder;
    pthread_mutex_t lock; /* of programs */
    struct program {
        void *handle;   /* NULL: not loaded yet */
        uint32_t group; /* work-items of a group */
    } program[PORTABLE_PROGRAMS + TUNED_PROGRAMS];

    pthread_mutex_t callback_lock;
    pthread_cond_t callback_done;
    int callbacks; /* of events, that have not returned yet */
};

/* Memory for the kernels of an op; it grows to the largest need so far. */
struct workspace {
    void *memory;
    uint64_t bytes, serial; /* the serial changes with the memory */
};

struct queue {
    struct device *device;
    void *handle;
    struct kernel_choice choice;
    uint32_t unflushed; /* launches */
    struct workspace workspace;
    /* the queue's own: a kernel holds its arguments */
    void *kernel[PORTABLE_PROGRAMS + TUNED_PROGRAMS];
};

/* ---- error.c ------------------------------------------------------------------------------- */

/* Returns HW_OK for error 0. Otherwise sets the message, "cannot <what>: CL_OUT_OF_RESOURCES (-5)",
 * logs it at debug level (the library may continue without the failed call), and returns the
 * status. Returns HW_LOST from the first error on that the device does not survive. */
int32_t answer(struct device *device, int error, const char *what);
/* For functions without a status: logs the same sentence as a warning. */
void note(struct device *device, int error, const char *what);
/* The name of an error; "an unknown error" for others. */
const char *error_name(int error);
/* Returns HW_LOST and sets the message if the device is lost. */
int32_t check_lost(struct device *device);
/* Returns HW_INVALID and sets the message: the device cannot use an imported queue or memory
 * object. */
int32_t other_context(struct device *device, const char *what);

/* ---- device.c ------------------------------------------------------------------------------ */

/* Finds the devices that this plugin can use. */
int32_t devices_find(struct plugin *plugin);
/* The device's total and free bytes of memory; 0: unknown. */
struct device_memory {
    uint64_t total, free;
};
struct device_memory device_memory(const struct plugin *plugin, void *device);
/* The bytes of memory that the work-items of a group share; 0: unknown. */
uint64_t device_local_memory(const struct plugin *plugin, void *device);

/* ---- memory.c ------------------------------------------------------------------------------ */

/* Writes the failed action: "allocate 4096 bytes <purpose>of the device's 8192, of which 1024 are
 * free". `purpose` is "" or ends in a space. */
void memory_describe(const struct device *device, uint64_t bytes, const char *purpose,
                     char *what, size_t size);

/* ---- kernels/ ------------------------------------------------------------------------------ */

/* A launch of a tuned kernel, which takes the arguments of the portable kernel that the op was
 * lowered to. */
struct launch {
    uint32_t program; /* its number among the tuned programs */
    uint32_t group;   /* work-items */
    int64_t groups;
    bool dots; /* dot products of bytes: if the device has them, the text is OpenCL C 3.0 */
};

struct tuned {
    const char *name; /* of its file and, with "_kernel", of its entry point */
    void (*choose)(const struct device *device, const struct lowered *l,
                   struct launch *launch);
    /* Writes the options that a program is compiled with. */
    void (*describe)(const struct device *device, const struct launch *launch,
                     char *options, size_t size);
};

/* ---- program.c ----------------------------------------------------------------------------- */

/* Sets up the device's builder and its compiler options, which end with `options`. */
void program_begin(struct device *device, const char *options);
/* A kernel keeps its arguments until they are set again. So a queue's ops share one kernel per
 * program, and each node of a graph has its own, which the graph releases. */
enum sharing { SHARED_KERNEL, OWN_KERNEL };

/* The kernel, and the work-items of its groups; compiles it for the device if needed. */
int32_t program_portable(struct queue *queue, const struct lowered *l, enum sharing sharing,
                         void **kernel, size_t *group);
int32_t program_tuned(struct queue *queue, const struct tuned *tuned,
                      const struct launch *launch, enum sharing sharing, void **kernel);
/* A program of the application, which releases it. */
int32_t program_of_application(struct device *device, const struct hw_user_kernel *desc,
                               void **program);
/* Releases a queue's kernels, and a device's programs. */
void program_drop(struct queue *queue);
void program_end(struct device *device);

/* ---- launch.c ------------------------------------------------------------------------------ */

/* Set by a row's plan function. A second tuned kernel may finish the work of the first; then both
 * get a workspace as their last argument. */
struct plan {
    struct lowered lowered;
    const struct tuned *tuned, *second; /* NULL: the portable kernel; there is none */
    uint64_t workspace;                 /* bytes */
};

extern const struct kernel_table launch_kernels;

/* A kernel whose arguments are set. */
struct ready {
    void *kernel;
    size_t items, group; /* work-items, of all groups and of one */
    uint32_t workspace;  /* the number of this argument, which is not set yet; 0: none */
};

/* The kernels of an op. */
enum { MOST_STAGES = 2 };
struct stages {
    uint32_t count;
    struct ready stage[MOST_STAGES];
};

/* Fills in the part of a plan that all rows have: the portable kernel. */
static inline const char *launch_lower(struct plan *plan, const struct kernel_row *row,
                                       const void *args)
{
    plan->tuned = plan->second = NULL;
    plan->workspace = 0;
    return lower(row->op, args, &plan->lowered);
}

/* Plans an op with the queue's rows. */
int32_t launch_plan(struct queue *queue, uint32_t op, const void *args, struct plan *plan);
int32_t launch_prepare(struct queue *queue, const struct plan *plan, enum sharing sharing,
                       struct stages *stages);
/* Makes the queue's workspace large enough. */
int32_t launch_reserve(struct queue *queue, uint64_t bytes);
void launch_release(struct queue *queue);
/* These return an error of OpenCL. */
int launch_bind(struct queue *queue, const struct ready *ready);
int launch_ready(struct queue *queue, const struct ready *ready);
/* After `count` launches: sometimes flushes the queue, so that the device begins while more
 * launches are submitted. */
int launch_flush(struct queue *queue, uint32_t count);

#endif
