/* SPDX-License-Identifier: MIT */
/* cuda.h - declarations shared by the files of the CUDA plugin:
 *
 *   plugin   the instance, and the table of functions
 *   error    from a result of the driver to a status and a message
 *   device   the devices: their facts, opening and closing them
 *   memory   buffers and transfers
 *   queue    queues: streams
 *   launch   from an op to the launch of a kernel; the rows
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

/* The tuned kernels: the image with each kernel, and the kernel's name. */
#define TUNED_KERNELS(X)                                                                   \
    X(matmul_gemv, gemv_f32)                                                               \
    X(matmul_gemv, gemv_f16)                                                               \
    X(matmul_gemv, gemv_bf16)                                                              \
    X(matmul_gemv, gemv_q8_0)                                                              \
    X(matmul_gemv, gemv_q4_0)                                                              \
    X(matmul_gemv, gemv_q4_1)                                                              \
    X(matmul_gemv, gemv_q5_0)                                                              \
    X(matmul_gemv, gemv_q5_1)                                                              \
    X(matmul_gemv, gemv_q4_K)                                                              \
    X(matmul_gemv, gemv_q5_K)                                                              \
    X(matmul_gemv, gemv_q6_K)                                                              \
    X(matmul_gemv, gemv_int8_q8_0)                                                         \
    X(matmul_gemv, gemv_int8_few_q8_0)                                                     \
    X(matmul_gemv, gemv_int8_q4_0)                                                         \
    X(matmul_gemv, gemv_int8_few_q4_0)                                                     \
    X(matmul_gemv, gemv_int8_q4_1)                                                         \
    X(matmul_gemv, gemv_int8_few_q4_1)                                                     \
    X(matmul_gemv, gemv_int8_q5_0)                                                         \
    X(matmul_gemv, gemv_int8_few_q5_0)                                                     \
    X(matmul_gemv, gemv_int8_q5_1)                                                         \
    X(matmul_gemv, gemv_int8_few_q5_1)                                                     \
    X(matmul_gemv, gemv_int8_q4_K)                                                         \
    X(matmul_gemv, gemv_int8_few_q4_K)                                                     \
    X(matmul_gemv, gemv_int8_q5_K)                                                         \
    X(matmul_gemv, gemv_int8_few_q5_K)                                                     \
    X(matmul_gemv, gemv_int8_q6_K)                                                         \
    X(matmul_gemv, gemv_int8_few_q6_K)                                                     \
    X(matmul_gemv, gemv_tall_f16)                                                          \
    X(matmul_gemv, gemv_tall_bf16)                                                         \
    X(matmul_gemv, gemv_tall_q8_0)                                                         \
    X(matmul_gemv, gemv_tall_q4_0)                                                         \
    X(matmul_gemv, gemv_tall_q4_1)                                                         \
    X(matmul_gemv, gemv_tall_q5_0)                                                         \
    X(matmul_gemv, gemv_tall_q5_1)                                                         \
    X(matmul_gemv, gemv_tall_q4_K)                                                         \
    X(matmul_gemv, gemv_tall_q6_K)                                                         \
    X(matmul_gemv, gemv_mixed_q4_K)                                                        \
    X(matmul_gemv, gemv_mixed_q5_K)                                                        \
    X(matmul_tiles, tiles_round)                                                           \
    X(matmul_tiles, tiles_8_q8_0)                                                          \
    X(matmul_tiles, tiles_16_q8_0)                                                         \
    X(matmul_tiles, tiles_32_q8_0)                                                         \
    X(matmul_tiles, tiles_8_q4_0)                                                          \
    X(matmul_tiles, tiles_16_q4_0)                                                         \
    X(matmul_tiles, tiles_32_q4_0)                                                         \
    X(matmul_tiles, tiles_8_q4_1)                                                          \
    X(matmul_tiles, tiles_16_q4_1)                                                         \
    X(matmul_tiles, tiles_32_q4_1)                                                         \
    X(matmul_tiles, tiles_8_q5_0)                                                          \
    X(matmul_tiles, tiles_16_q5_0)                                                         \
    X(matmul_tiles, tiles_32_q5_0)                                                         \
    X(matmul_tiles, tiles_8_q5_1)                                                          \
    X(matmul_tiles, tiles_16_q5_1)                                                         \
    X(matmul_tiles, tiles_32_q5_1)                                                         \
    X(matmul_tiles, tiles_8_q4_K)                                                          \
    X(matmul_tiles, tiles_16_q4_K)                                                         \
    X(matmul_tiles, tiles_32_q4_K)                                                         \
    X(matmul_tiles, tiles_8_q5_K)                                                          \
    X(matmul_tiles, tiles_16_q5_K)                                                         \
    X(matmul_tiles, tiles_32_q5_K)                                                         \
    X(matmul_tiles, tiles_8_q6_K)                                                          \
    X(matmul_tiles, tiles_16_q6_K)                                                         \
    X(matmul_tiles, tiles_32_q6_K)                                                         \
    X(rows, rows_rmsnorm_f32_f32)                                                          \
    X(rows, rows_add_rmsnorm_f32_f32)                                                      \
    X(rows, rows_rmsnorm_f16_f16)                                                          \
    X(rows, rows_add_rmsnorm_f16_f16)                                                      \
    X(rows, rows_rmsnorm_f16_f32)                                                          \
    X(rows, rows_add_rmsnorm_f16_f32)                                                      \
    X(rows, rows_rmsnorm_bf16_bf16)                                                        \
    X(rows, rows_add_rmsnorm_bf16_bf16)                                                    \
    X(rows, rows_rmsnorm_bf16_f32)                                                         \
    X(rows, rows_add_rmsnorm_bf16_f32)                                                     \
    X(rows, rows_softmax_f32)                                                              \
    X(rows, rows_softmax_f16)                                                              \
    X(rows, rows_softmax_bf16)                                                             \
    X(rows, rows_silu_f32)                                                                 \
    X(rows, rows_silu_f16)                                                                 \
    X(rows, rows_silu_bf16)                                                                \
    X(rows, rows_swiglu_f32)                                                               \
    X(rows, rows_swiglu_f16)                                                               \
    X(rows, rows_swiglu_bf16)                                                              \
    X(rows, rows_add_f32)                                                                  \
    X(rows, rows_add_f16)                                                                  \
    X(rows, rows_add_bf16)                                                                 \
    X(rows, rows_mul_f32)                                                                  \
    X(rows, rows_mul_f16)                                                                  \
    X(rows, rows_mul_bf16)                                                                 \
    X(rows, rows_argmax_f32)                                                               \
    X(rows, rows_argmax_f16)                                                               \
    X(rows, rows_argmax_bf16)                                                              \
    X(rows, rows_get_rows)                                                                 \
    X(heads, heads_move)                                                                   \
    X(matmul_wgmma, wgmma_f16_128x256)                                                     \
    X(matmul_wgmma, wgmma_f16_128x224)                                                     \
    X(matmul_wgmma, wgmma_f16_128x192)                                                     \
    X(matmul_wgmma, wgmma_f16_128x128)                                                     \
    X(matmul_wgmma, wgmma_f16_64x160)                                                      \
    X(matmul_wgmma, wgmma_f16_64x128)                                                      \
    X(matmul_wgmma, wgmma_f16_64x64)                                                       \
    X(matmul_wgmma, wgmma_f16_64x32)                                                       \
    X(matmul_wgmma, wgmma_bf16_128x256)                                                    \
    X(matmul_wgmma, wgmma_bf16_128x224)                                                    \
    X(matmul_wgmma, wgmma_bf16_128x192)                                                    \
    X(matmul_wgmma, wgmma_bf16_128x128)                                                    \
    X(matmul_wgmma, wgmma_bf16_64x160)                                                     \
    X(matmul_wgmma, wgmma_bf16_64x128)                                                     \
    X(matmul_wgmma, wgmma_bf16_64x64)                                                      \
    X(matmul_wgmma, wgmma_bf16_64x32)                                                      \
    X(matmul_wgmma, wgmma_tf32_128x256)                                                    \
    X(matmul_wgmma, wgmma_tf32_128x224)                                                    \
    X(matmul_wgmma, wgmma_tf32_128x192)                                                    \
    X(matmul_wgmma, wgmma_tf32_128x128)                                                    \
    X(matmul_wgmma, wgmma_tf32_64x160)                                                     \
    X(matmul_wgmma, wgmma_tf32_64x128)                                                     \
    X(matmul_wgmma, wgmma_tf32_64x64)                                                      \
    X(matmul_wgmma, wgmma_tf32_64x32)                                                      \
    X(matmul_blocks, blocks_q8_0_64)                                                       \
    X(matmul_blocks, blocks_q8_0_128)                                                      \
    X(matmul_blocks, blocks_q8_0_256)                                                      \
    X(matmul_blocks, blocks_q4_0_64)                                                       \
    X(matmul_blocks, blocks_q4_0_128)                                                      \
    X(matmul_blocks, blocks_q4_0_256)                                                      \
    X(matmul_blocks, blocks_q4_1_64)                                                       \
    X(matmul_blocks, blocks_q4_1_128)                                                      \
    X(matmul_blocks, blocks_q4_1_256)                                                      \
    X(matmul_blocks, blocks_q5_0_64)                                                       \
    X(matmul_blocks, blocks_q5_0_128)                                                      \
    X(matmul_blocks, blocks_q5_0_256)                                                      \
    X(matmul_blocks, blocks_q5_1_64)                                                       \
    X(matmul_blocks, blocks_q5_1_128)                                                      \
    X(matmul_blocks, blocks_q5_1_256)                                                      \
    X(matmul_blocks, blocks_q4_K_64)                                                       \
    X(matmul_blocks, blocks_q4_K_128)                                                      \
    X(matmul_blocks, blocks_q4_K_256)                                                      \
    X(matmul_blocks, blocks_q5_K_64)                                                       \
    X(matmul_blocks, blocks_q5_K_128)                                                      \
    X(matmul_blocks, blocks_q5_K_256)                                                      \
    X(matmul_blocks, blocks_q6_K_64)                                                       \
    X(matmul_blocks, blocks_q6_K_128)                                                      \
    X(matmul_blocks, blocks_q6_K_256)                                                      \
    X(matmul_mma, mma_f16_128x128)                                                         \
    X(matmul_mma, mma_f16_64x64)                                                           \
    X(matmul_mma, mma_bf16_128x128)                                                        \
    X(matmul_mma, mma_bf16_64x64)                                                          \
    X(matmul_f32, f32_128x128x1)                                                           \
    X(matmul_f32, f32_64x64x1)                                                             \
    X(matmul_f32, f32_64x64x4)                                                             \
    X(matmul_f32, f32_32x64x4)                                                             \
    X(matmul_f32, f32_16x32x8)                                                             \
    X(matmul_convert, convert_round_f16)                                                   \
    X(matmul_convert, convert_round_bf16)                                                  \
    X(matmul_convert, convert_round_mixed)                                                 \
    X(matmul_convert, convert_f32)                                                         \
    X(matmul_convert, convert_f16)                                                         \
    X(matmul_convert, convert_bf16)                                                        \
    X(attention_decode, decode_f32_64)                                                     \
    X(attention_decode, decode_f32_128)                                                    \
    X(attention_decode, decode_f16_64)                                                     \
    X(attention_decode, decode_f16_128)                                                    \
    X(attention_decode, decode_f16_256)                                                    \
    X(attention_decode, decode_bf16_64)                                                    \
    X(attention_decode, decode_bf16_128)                                                   \
    X(attention_decode, decode_bf16_256)                                                   \
    X(attention_decode, decode_q8_0_64)                                                    \
    X(attention_decode, decode_q8_0_128)                                                   \
    X(attention_decode, decode_q8_0_256)                                                   \
    X(attention_decode, step_f32_64)                                                       \
    X(attention_decode, step_f32_128)                                                      \
    X(attention_decode, step_f16_64)                                                       \
    X(attention_decode, step_f16_128)                                                      \
    X(attention_decode, step_f16_256)                                                      \
    X(attention_decode, step_bf16_64)                                                      \
    X(attention_decode, step_bf16_128)                                                     \
    X(attention_decode, step_bf16_256)                                                     \
    X(attention_decode, step_q8_0_64)                                                      \
    X(attention_decode, step_q8_0_128)                                                     \
    X(attention_decode, step_q8_0_256)                                                     \
    X(attention_prefill, prefill_f16_64)                                                   \
    X(attention_prefill, prefill_f16_128)                                                  \
    X(attention_prefill, prefill_bf16_64)                                                  \
    X(attention_prefill, prefill_bf16_128)                                                 \
    X(attention_prefill, prefill_round)

/* Their images: X(name). */
#define TUNED_IMAGES(X)                                                                    \
    X(matmul_gemv)                                                                         \
    X(matmul_tiles)                                                                        \
    X(rows)                                                                                \
    X(heads)                                                                               \
    X(matmul_wgmma)                                                                        \
    X(matmul_blocks)                                                                       \
    X(matmul_mma) X(matmul_f32) X(matmul_convert) X(attention_decode) X(attention_prefill)

enum tuned {
#define X(image, name) TUNED_##name,
    TUNED_KERNELS(X)
#undef X
        TUNED_COUNT
};

/* The images: one per form of the portable kernels, by number, then the tuned images. */
enum {
    IMAGE_LAST_FORM = FORM_COUNT - 1,
#define X(name) IMAGE_##name,
    TUNED_IMAGES(X)
#undef X
        IMAGE_COUNT
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

/* ---- launch.c ------------------------------------------------------------------------------ */

struct heads_job;

/* Where an op is launched. */
struct launcher {
    struct device *device;
    void *stream;       /* it may be recording */
    uint64_t workspace; /* an address, with plan.workspace bytes behind the counters */
    bool in_order;      /* no launch may begin early */
    /* for a graph: all its nodes, and the rotation whose angles are in its workspace, or nothing */
    const struct hw_node *nodes;
    uint32_t node_count;
    struct heads_job *rotated;
};

/* One launch of a tuned kernel.
 *
 * `early`: its groups may start before the preceding kernel in the stream has completed
 * (programmatic dependent launch), if the device can do so. Until such a kernel has executed
 * griddepcontrol.wait, it must not write anything, and may read only its arguments and weights
 * whose buffer is HW_BUFFER_READ_ONLY. Only a copy writes such weights, and the kernel after a copy
 * is never launched early. */
struct launch {
    enum tuned kernel;
    unsigned groups[3], threads, shared; /* threads and bytes of shared memory of a group */
    bool early;
};

/* Set by a row's plan function: the portable kernel, or a function that launches others. */
struct plan {
    struct lowered lowered;
    int32_t (*launch)(const struct launcher *at, const struct plan *plan, const void *op);
    uint64_t workspace;       /* bytes of device memory that its kernels share */
    unsigned threads, shared; /* for the use of `launch` */
    bool rounds;              /* also for `launch`: activations are rounded to 8 bits */
};

/* The most that a tuned kernel may use with SHARED_160K. */
enum { SHARED_MOST = 160 << 10 };

/* Addresses begin .. end - 1. */
struct range {
    uint64_t begin, end;
};

static inline bool are_apart(struct range x, struct range y)
{
    return x.end <= y.begin || y.end <= x.begin;
}

extern const struct kernel_table launch_kernels;

/* The address from which kernels count an operand's offset; 0 if it is absent or has no buffer. */
uint64_t launch_base(const struct hw_tensor *t);
/* The addresses of a tensor; an empty range if it is absent. */
struct range launch_range(const struct hw_tensor *t);
/* Plans an op with the queue's rows. */
int32_t launch_plan(struct queue *queue, uint32_t op, const void *args, struct plan *plan);
/* Launches a plan in the device's context. */
int32_t launch_planned(const struct launcher *at, const struct plan *plan,
                       const void *args);
/* Launches a kernel whose only parameter is the struct at `args`. */
int32_t launch_kernel(const struct launcher *at, const struct launch *launch,
                      const void *args);
/* Launches a kernel with the parameters of the planned portable kernel. */
int32_t launch_as_portable(const struct launcher *at, const struct launch *launch,
                           const struct plan *plan);
/* Makes a workspace large enough, in the device's context. Kernels that use the old one may still
 * run on `stream`. */
int32_t launch_reserve(struct device *device, void *stream, struct workspace *workspace,
                       uint64_t bytes);
void launch_release(struct device *device, struct workspace *workspace);
void launch_unload(struct device *device);
/* Loads an image, PTX that ends with a NUL or machine code, in the device's context. `name` is for
 * the message, which also quotes the driver's compiler. */
int32_t launch_load(struct device *device, const void *image, const char *name,
                    void **module);

/* ---- module.c ------------------------------------------------------------------------------ */

/* Compiles and loads a kernel of the application, in the device's context. */
int32_t module_of_source(struct device *device, const struct hw_user_kernel *desc,
                         void **module);

/* ---- graph.c ------------------------------------------------------------------------------- */

/* Whether an op of the graph, except the first `own` of `nodes`, writes to the range. */
bool graph_writes(const struct launcher *at, const struct hw_node *nodes, uint32_t own,
                  struct range range);

/* ---- kernels/gemv_graph.c, kernels/heads.c - ------------------------------------------------ */

/* Launches the first nodes of a graph as one kernel, if a kernel can compute several of them, and
 * sets `taken` to their number; 0: none. */
typedef int32_t launch_nodes_fn(const struct launcher *at, const struct queue *queue,
                                const struct hw_node *nodes, uint32_t count,
                                uint32_t *taken);
launch_nodes_fn gemv_launch_nodes, heads_launch_nodes;

/* ---- kernels/attention_decode.c ------------------------------------------------------------ */

struct heads_args;

/* Launches the jobs, and the attention over their results, as one kernel if it can compute them;
 * otherwise leaves `taken` 0. */
int32_t decode_launch_step(const struct launcher *at, const struct queue *queue,
                           const struct heads_args *jobs, const struct hw_node *nodes,
                           uint32_t count, uint32_t *taken);

#endif
