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
 *   kernel   kernels of the application
 *   module   those that come as source text
 *
 * The plugin calls the driver alone, through the functions that cuda.def lists, and NVRTC for
 * kernels of the application in source text, through those that nvrtc.def lists. */
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

/* The drivers that load the machine code of this build's kernels: NVIDIA's first one of each major
 * version of CUDA. */
#if MACHINE_CODE_CUDA / 1000 == 12
#define TUNED_DRIVER "driver 525 or later"
#elif MACHINE_CODE_CUDA / 1000 == 13
#define TUNED_DRIVER "driver 580 or later"
#else
#define TUNED_DRIVER "a newer driver"
#endif

/* What rows may need of a device, in kernels.def. */
enum feature {
    MACHINE_CODE = 64,         /* the driver is new enough for it */
    SM_80 = MACHINE_CODE | 1,  /* compute capability 8, 9, 10 or 12 */
    SM_90A = MACHINE_CODE | 4, /* compute capability 9.0: no other has these instructions */
    SM_8X_90 = MACHINE_CODE | 16, /* compute capability 8.0 to 9.0 */
    SHARED_160K =
        2,      /* a group may have 160 KiB of shared memory besides what it declares */
    HALVES = 8, /* HW_PRECISION lets f32 be computed in 16 bits */
    BYTES = 32  /* HW_PRECISION lets activations beside blocks be rounded to 8 bits */
};

/* The tuned kernels: the image that each is in, and its name. */
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

/* The images: one for each form of the portable kernels, by its number, then the tuned ones. */
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
    int supported;            /* the newest CUDA that the driver supports: 13000 */
    char version[24];         /* the same: "CUDA 13.0" */
    bool machine_code;        /* the driver loads that of this build's tuned kernels */
    bool translated_code;     /* and of its portable ones, as ptxas translated them */
    int device[MOST_DEVICES]; /* those that are new enough */
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
    void *stream;    /* for what belongs to no queue */
    struct kernel_choice choice;
    atomic_bool lost;
    atomic_bool reached[MOST_DEVICES]; /* by number; see reach() in memory.c */
    pthread_mutex_t lock;              /* of modules and functions, until they are loaded */
    void *module[IMAGE_COUNT];
    _Atomic(void *) function[FORM_COUNT][PORTABLE_COUNT], tuned[TUNED_COUNT];
};

/* Device memory that the kernels of an op share; it grows to what the largest op needs. It begins
 * with angles that launches of a graph share, then WORKSPACE_COUNTERS bytes that are 0 before and
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
 * and returns the status; HW_LOST from the first error on that the device does not survive. The
 * debug log has it, too: the library may do without what failed. */
int32_t answer(struct device *device, int result, const char *what);
/* The same before there is a device. */
int32_t answer_early(const struct plugin *plugin, int result, const char *what);
/* For what cannot return a status: the same sentence goes to the log, as a warning. */
void note(struct device *device, int result, const char *what);
void note_early(const struct plugin *plugin, int result, const char *what);

/* Makes the device's context the thread's current one, and restores what was before. enter()
 * returns HW_LOST if the device is lost. */
int32_t enter(struct device *device);
void leave(struct device *device);
/* enter() for what closes or frees, on a lost device, too. False, and a line in the log, if that
 * fails; `what` is what was to be done. */
bool enter_to_close(struct device *device, const char *what);

/* ---- device.c ------------------------------------------------------------------------------ */

/* Finds the devices that this plugin can use. */
int32_t devices_find(struct plugin *plugin);

/* ---- memory.c ------------------------------------------------------------------------------ */

/* What hw_buffer.impl points to. */
struct block {
    uint64_t address; /* in the device's view of memory */
    void *host;       /* to free or to unregister; NULL: memory of the device */
    size_t bytes;     /* of BLOCK_PAGES */
    enum { BLOCK_OURS, BLOCK_PAGES, BLOCK_REGISTERED, BLOCK_FOREIGN } kind;
};

/* Allocates memory of the device, in its context. If there is not enough, the message has the bytes
 * that are free, and those of the device. */
int32_t memory_reserve(struct device *device, uint64_t bytes, uint64_t *address);

/* ---- launch.c ------------------------------------------------------------------------------ */

struct heads_job;

/* Where an op is launched. */
struct launcher {
    struct device *device;
    void *stream;       /* it may be recording */
    uint64_t workspace; /* an address, with plan.workspace bytes behind the counters */
    bool in_order;      /* nothing may be launched early */
    /* of a graph: all its nodes, and what was rotated by the angles in its workspace, or nothing */
    const struct hw_node *nodes;
    uint32_t node_count;
    struct heads_job *rotated;
};

/* One launch of a tuned kernel.
 *
 * `early`: its groups may start before the kernel that precedes it in the stream has completed
 * (programmatic dependent launch), where the device can do so. Until such a kernel has executed
 * griddepcontrol.wait, it must not write anything, and must read nothing but its arguments and
 * weights whose buffer is HW_BUFFER_READ_ONLY. Only a copy writes those: what follows a copy is
 * never launched early. */
struct launch {
    enum tuned kernel;
    unsigned groups[3], threads, shared; /* threads and bytes of shared memory of a group */
    bool early;
};

/* What a row's plan function fills in: the portable kernel, or a function that launches others. */
struct plan {
    struct lowered lowered;
    int32_t (*launch)(const struct launcher *at, const struct plan *plan, const void *op);
    uint64_t workspace;       /* bytes of device memory that its kernels share */
    unsigned threads, shared; /* for `launch`, if it wants to know */
    bool rounds;              /* activations are rounded to 8 bits; likewise */
};

/* What a tuned kernel may have, where SHARED_160K is there. */
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

/* The address that kernels count an operand's offset from; 0 if it is absent or has no buffer. */
uint64_t launch_base(const struct hw_tensor *t);
/* The addresses of a tensor; none if it is absent. */
struct range launch_range(const struct hw_tensor *t);
/* Plans an op with the queue's rows. */
int32_t launch_plan(struct queue *queue, uint32_t op, const void *args, struct plan *plan);
/* Launches what was planned, in the device's context. */
int32_t launch_planned(const struct launcher *at, const struct plan *plan,
                       const void *args);
/* Launches a kernel whose only parameter is the struct at `args`. */
int32_t launch_kernel(const struct launcher *at, const struct launch *launch,
                      const void *args);
/* Launches a kernel that has the parameters of the planned portable one. */
int32_t launch_as_portable(const struct launcher *at, const struct launch *launch,
                           const struct plan *plan);
/* Makes a workspace large enough, in the device's context. What used it before may still run on
 * `stream`. */
int32_t launch_reserve(struct device *device, void *stream, struct workspace *workspace,
                       uint64_t bytes);
void launch_release(struct device *device, struct workspace *workspace);
void launch_unload(struct device *device);
/* Loads an image, PTX that ends with a NUL or machine code, in the device's context; `name` is for
 * the message, which has what the driver's compiler says. */
int32_t launch_load(struct device *device, const void *image, const char *name,
                    void **module);

/* ---- module.c ------------------------------------------------------------------------------ */

/* Compiles and loads a kernel of the application, in the device's context. */
int32_t module_of_source(struct device *device, const struct hw_user_kernel *desc,
                         void **module);

/* ---- graph.c ------------------------------------------------------------------------------- */

/* Whether an op of the graph, but for the `own` first of `nodes`, writes to the range. */
bool graph_writes(const struct launcher *at, const struct hw_node *nodes, uint32_t own,
                  struct range range);

/* ---- kernels/gemv_graph.c, kernels/heads.c - ------------------------------------------------ */

/* Launches the first nodes of a graph as one kernel, where one can compute several of them, and
 * sets `taken` to how many; 0: none. */
typedef int32_t launch_nodes_fn(const struct launcher *at, const struct queue *queue,
                                const struct hw_node *nodes, uint32_t count,
                                uint32_t *taken);
launch_nodes_fn gemv_launch_nodes, heads_launch_nodes;

/* ---- kernels/attention_decode.c ------------------------------------------------------------ */

struct heads_args;

/* Launches the jobs and the attention over what they store as one kernel, if it can compute them;
 * else leaves `taken` 0. */
int32_t decode_launch_step(const struct launcher *at, const struct queue *queue,
                           const struct heads_args *jobs, const struct hw_node *nodes,
                           uint32_t count, uint32_t *taken);

#endif
