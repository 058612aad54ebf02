/* SPDX-License-Identifier: MIT */
/* cuda.h - declarations shared by the files of the CUDA plugin:
 *
 *   plugin   the instance, and the table of functions
 *   error    from a result of the driver to a status and a message
 *   device   the devices: their facts, opening and closing them
 *   memory   buffers and transfers
 *   queue    queues: streams
 *   launch   from an op to the launch of a kernel, see launch.h
 *   tuned    the tuned kernels by number, see tuned.h
 *   event    events
 *   graph    recorded ops as one graph of the driver
 *   kernel   kernels of the application
 *   module   those that come as source text
 *
 * The plugin calls only the driver, through the functions in cuda.def, and NVRTC for the
 * application's kernels in source text, through the functions in nvrtc.def. */
#ifndef CUDA_H
#define CUDA_H

#include <hw/plugin.h>

#include "common/embed.h"
#include "common/lower.h"
#include "common/rows.h"
#include "common/slots.h"
#include "common/symbols.h"
#include "cuda_code.h" /* which the build writes */
#include "driver.h"
#include "tuned.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
#define CONSTANT(name, value, theirs) name = value,
#include "cuda.def"
#define CONSTANT(name, value, theirs) name = value,
#include "nvrtc.def"
};

struct driver {
#define REQUIRED SYMBOL_MEMBER
#define OPTIONAL SYMBOL_MEMBER
#include "cuda.def"
};

struct compiler {
#define REQUIRED SYMBOL_MEMBER
#include "nvrtc.def"
};

/* ---- plugin.c ------------------------------------------------------------------------------ */

enum { MOST_DEVICES = 64 };

/* The oldest drivers that load the machine code of this build's kernels: NVIDIA's first driver of
 * each major version of CUDA. */
#if MACHINE_CODE_CUDA / 1000 == 12
#define TUNED_DRIVER "driver 525 or later"
#elif MACHINE_CODE_CUDA / 1000 == 13
#define TUNED_DRIVER "driver 580 or later"
#else
#define TUNED_DRIVER "a newer driver"
#endif

/* Features that rows of kernels.def may need from a device. */
enum feature {
    MACHINE_CODE = 64,         /* the driver is new enough for it */
    SM_80 = MACHINE_CODE | 1,  /* compute capability 8, 9, 10 or 12 */
    SM_90A = MACHINE_CODE | 4, /* compute capability 9.0: no other has these instructions */
    SM_8X_90 = MACHINE_CODE | 16, /* compute capability 8.0 to 9.0 */
    /* a group may have 160 KiB of shared memory, on top of its declared memory */
    SHARED_160K = 2,
    HALVES = 8, /* HW_PRECISION lets f32 be computed in 16 bits */
    BYTES = 32  /* HW_PRECISION allows 8-bit activations with weights in blocks */
};

struct plugin {
    const struct hw_host *host;
    struct driver cuda;
    int supported;    /* the newest CUDA that the driver supports: 13000 */
    char version[24]; /* the same: "CUDA 13.0" */
    /* the driver loads this build's machine code of tuned kernels */
    bool machine_code;
    bool translated_code;     /* likewise its portable kernels, translated by ptxas */
    int device[MOST_DEVICES]; /* the devices that are new enough */
    int32_t devices;
    pthread_mutex_t lock;  /* of nvrtc, until it is loaded */
    struct compiler nvrtc; /* NULL functions: not loaded */
};

struct device {
    struct plugin *plugin;
    const struct hw_host *host;
    const struct driver *cuda;
    int number;      /* the driver's */
    int capability;  /* 90 for compute capability 9.0 */
    int units;       /* multiprocessors */
    int shared_most; /* bytes of shared memory that a group may have */
    uint64_t memory; /* bytes that the device has */
    void *context;   /* the primary one, which the application may share */
    void *stream;    /* for work that belongs to no queue */
    struct kernel_choice choice;
    atomic_bool lost;
    atomic_bool reached[MOST_DEVICES]; /* by number; see reach() in memory.c */
    pthread_mutex_t lock;              /* for loading modules and functions */
    void *module[IMAGE_COUNT];
    _Atomic(void *) function[FORM_COUNT][PORTABLE_COUNT], tuned[TUNED_COUNT];
};

/* Device memory for the kernels of an op; it grows to the largest need so far. It begins with
 * angles that launches of a graph share, followed by WORKSPACE_COUNTERS bytes that are 0 before and
 * after each launch. */
enum {
    WORKSPACE_ANGLES = 1024,
    WORKSPACE_COUNTERS = 4096,
    WORKSPACE_HEAD = WORKSPACE_ANGLES + WORKSPACE_COUNTERS
};
struct workspace {
    uint64_t address, bytes;
};

struct queue {
    struct device *device;
    void *stream;
    struct workspace workspace;
    bool copied;   /* the last op on it was a copy */
    bool imported; /* the stream belongs to the application */
    bool shared;   /* the application may submit to the stream, too */
    struct kernel_choice choice;
};

/* ---- error.c ------------------------------------------------------------------------------- */

/* Returns HW_OK for result 0. Otherwise sets the message, "cannot <what>: <the driver's words>",
 * logs it at debug level (the library may continue without the failed call), and returns the
 * status. Returns HW_LOST from the first error on that the device does not survive. */
int32_t answer(struct device *device, int result, const char *what);
/* Like answer(), before there is a device. */
int32_t answer_early(const struct plugin *plugin, int result, const char *what);
/* For functions without a status: logs the same sentence as a warning. */
void note(struct device *device, int result, const char *what);
void note_early(const struct plugin *plugin, int result, const char *what);

/* Makes the device's context current in this thread, and restores the previous one. enter() returns
 * HW_LOST if the device is lost. */
int32_t enter(struct device *device);
void leave(struct device *device);
/* enter() for functions that close or free; works on a lost device, too. On failure logs a line
 * with `what`, the intended action, and returns false. */
bool enter_to_close(struct device *device, const char *what);

/* ---- device.c ------------------------------------------------------------------------------ */

/* Finds the devices that this plugin can use. */
int32_t devices_find(struct plugin *plugin);

/* ---- memory.c ------------------------------------------------------------------------------ */

/* The target of hw_buffer.impl. */
struct block {
    uint64_t address; /* in the device's view of memory */
    void *host;       /* to free or to unregister; NULL: memory of the device */
    size_t bytes;     /* of BLOCK_PAGES */
    enum { BLOCK_OURS, BLOCK_PAGES, BLOCK_REGISTERED, BLOCK_FOREIGN } kind;
};

/* Allocates memory of the device, in its context. If there is not enough, the message has the
 * device's free and total bytes. */
int32_t memory_reserve(struct device *device, uint64_t bytes, uint64_t *address);

/* ---- module.c ------------------------------------------------------------------------------ */

/* Compiles and loads a kernel of the application, in the device's context. */
int32_t module_of_source(struct device *device, const struct hw_user_kernel *desc,
                         void **module);

#endif
