/* SPDX-License-Identifier: MIT */
/* hw/hw.h - transformer math on whatever hardware has a plugin.
 *
 * Open a context, take a device, open a queue on it, submit ops (ops.h). Everything else here
 * is for when you want to know or decide more.
 *
 * Errors. Functions answer an enum hw_status; hw_message() has the words, per thread. On an
 * error, outputs of pointers are set to NULL and nothing is half made, unless said otherwise; a
 * call that failed has returned all host memory.
 * Ownership. _open, _alloc, _create: yours, until the matching _close or _free, which accept
 * NULL. What hangs on something is closed before it; closing a context with queues or buffers
 * left closes those too. What belongs to one context is of no use to another. Strings answered
 * live as long as the object they describe. Structs passed in need only live until the call
 * returns.
 * Threads. Everything may be called from any thread; one queue, and one graph, is used by one
 * thread at a time. After fork() a child's calls answer HW_FORKED; it opens its own context.
 * Structs with `size` first: set it to sizeof of the struct; a zero size is HW_INVALID. */
#ifndef HW_HW_H
#define HW_HW_H

#include "ops.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A struct and a function may share a name in C++ too; one compiler warns of it. */
#if defined(__cplusplus) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

#define HW_VERSION_MAJOR 0
#define HW_VERSION_MINOR 1
#define HW_VERSION_PATCH 0
#define HW_VERSION       (HW_VERSION_MAJOR << 16 | HW_VERSION_MINOR << 8 | HW_VERSION_PATCH)

struct hw_context;
struct hw_device;
struct hw_queue;
struct hw_buffer;
struct hw_event;
struct hw_graph;

/* The library's version, to hold against the header's HW_VERSION. */
HW_EXPORT uint32_t hw_version(void);
HW_EXPORT const char *hw_version_string(void);

/* The thread's last error, in words: what was asked, what went wrong, what to do. Never NULL;
 * valid until the thread's next call that is not a wait, a free or a close: those keep it, unless
 * they fail themselves. */
HW_EXPORT const char *hw_message(void);
/* "HW_INVALID", "f16", "rmsnorm"; "?" for a value that is none. */
HW_EXPORT const char *hw_status_name(int32_t status);
HW_EXPORT const char *hw_dtype_name(int32_t dtype);
HW_EXPORT const char *hw_op_name(uint32_t op);

/* ---- Contexts ---- */

/* Called for each log line, from any thread, one at a time; calls nothing of the library. `level`
 * is an enum hw_log_level. */
typedef void (*hw_log_fn)(void *user, int32_t level, const char *text);

enum hw_open_flag {
    /* Succeed even if no device can be used, or the selection is in error: for reports. The
     * error is in hw_explain(). */
    HW_OPEN_ANYWAY = 1
};

/* What a context may be told. A NULL or empty string, or zero, leaves the decision to the
 * environment variable named, then to the configuration file, then to the default; set, it wins
 * over both. The grammar is the variable's: see docs/settings.md, or `hw env`. */
struct hw_options {
    uint32_t size;
    uint32_t flags;       /* bits of enum hw_open_flag */
    const char *backends; /* HW_BACKENDS ("*"): order, selection, exclusion */
    const char *disable;  /* HW_DISABLE: globs of backends never to touch */
    const char *require;  /* HW_REQUIRE: fail without this backend */
    const char *fallback; /* HW_FALLBACK ("warn"): allow, warn, error */
    /* HW_PLUGIN_PATH: directories, or plugin files, looked at first */
    const char *plugin_path;
    /* HW_PLUGIN_PATH_ONLY: instead of the built-in directory */
    const char *plugin_path_only;
    const char *trust;         /* HW_TRUST ("on"): on, off */
    const char *probe;         /* HW_PROBE ("child"): child, inproc */
    const char *probe_timeout; /* HW_PROBE_TIMEOUT ("10"): seconds */
    const char *threads;       /* HW_THREADS: CPU threads */
    const char *precision;     /* HW_PRECISION ("fp32"): fp32, fp16, int8 */
    const char *memory_limit;  /* HW_MEMORY_LIMIT: per device, "8G" */
    const char *config;        /* HW_CONFIG: the configuration file */
    const char *cache_dir;     /* HW_CACHE_DIR */
    const char *kernel;        /* HW_KERNEL: forces kernel rows */
    const char *log;           /* HW_LOG ("warn"): off, error, warn, info, debug */
    hw_log_fn log_fn;          /* where the log goes; NULL: standard error */
    void *log_user;
};

/* Looks for plugins, loads those that pass and are wanted, and finds their devices. `options`
 * may be NULL. HW_NO_DEVICE: nothing can be used, or a backend that was required or named is
 * missing or can not; HW_INVALID: a setting in error, named with its source and what would be
 * right; HW_IO: the configuration file can not be read; HW_UNTRUSTED: others may write to it;
 * HW_UNSUPPORTED, here and wherever a struct is given: it says something that came after this
 * library. */
HW_EXPORT enum hw_status hw_open(const struct hw_options *options,
                                 struct hw_context **context);
HW_EXPORT void hw_close(struct hw_context *context);

/* Everything the context knows and why, as JSON (docs/explain.md; "schema": 1): settings and
 * their sources, every file looked at with stage, reason and remedy, devices, selection, calls
 * and fallbacks per op. As snprintf: writes at most `size` bytes with the terminator, answers
 * the length needed without it. */
HW_EXPORT size_t hw_explain(struct hw_context *context, char *text, size_t size);

/* ---- Devices ---- */

/* Devices in order of preference; devices that the settings exclude are not among them. */
HW_EXPORT uint32_t hw_device_count(struct hw_context *context);
HW_EXPORT struct hw_device *hw_device_at(struct hw_context *context, uint32_t index);
/* The first one, which is the recommended one; NULL if there is none. */
HW_EXPORT struct hw_device *hw_device_default(struct hw_context *context);
/* By "backend", "backend:index", "backend:<PCI address>", "backend:<UUID>"; HW_NO_DEVICE lists
 * the devices there are. */
HW_EXPORT enum hw_status hw_device_find(struct hw_context *context, const char *name,
                                        struct hw_device **device);
/* "cuda:0". */
HW_EXPORT const char *hw_device_name(struct hw_device *device);
/* "cuda". */
HW_EXPORT const char *hw_device_backend(struct hw_device *device);
/* Fills in the facts, asked anew: free memory is that of this moment. */
HW_EXPORT enum hw_status hw_device_info(struct hw_device *device,
                                        struct hw_device_info *info);
/* HW_OK if the device says that it computes this itself (its struct in `args`, `size` bytes);
 * HW_UNSUPPORTED with the reason, and for an op that its plugin lacks even where there is nothing
 * to compute; HW_INVALID as the op would answer. Submits nothing. A plugin without supports()
 * (plugin.h) says nothing: HW_OK means then that it has the op, and only a call tells whether it
 * computes this. HW_FALLBACK=error makes such a call fail; hw_queue_calls() counts it otherwise. */
HW_EXPORT enum hw_status hw_device_supports(struct hw_device *device, uint32_t op,
                                            const void *args, size_t size);
/* The kernel rows of `op`, best first; HW_END past the last, without a message. HW_UNSUPPORTED: the
 * backend lists none. */
HW_EXPORT enum hw_status hw_device_kernel(struct hw_device *device, uint32_t op,
                                          uint32_t index, struct hw_kernel_info *info);

/* ---- Memory ---- */

/* `bytes` bytes of the device's memory, aligned to hw_device_info.buffer_alignment, which is at
 * least 256 bytes, from the device's pool; flags: enum hw_buffer_flag; HW_BUFFER_PINNED implies
 * HW_BUFFER_HOST_VISIBLE. HW_NO_MEMORY names what was asked, what is free and the limit;
 * HW_UNSUPPORTED: the device has no memory of that kind. */
HW_EXPORT enum hw_status hw_buffer_alloc(struct hw_device *device, uint64_t bytes,
                                         uint32_t flags, struct hw_buffer **buffer);
/* The caller has waited for all work that uses it. */
HW_EXPORT void hw_buffer_free(struct hw_buffer *buffer);
/* In stream order: the memory is given back once `queue` has passed all work submitted so far.
 * hw_buffer_alloc() then takes it without a wait, and waits for it before it answers HW_NO_MEMORY.
 * Where the backend has no events, or the buffer is another device's than the queue's, it is given
 * back by the queue's next wait. */
HW_EXPORT void hw_buffer_free_after(struct hw_buffer *buffer, struct hw_queue *queue);
/* The host's address of a HW_BUFFER_HOST_VISIBLE buffer; NULL for others. */
HW_EXPORT void *hw_buffer_host(struct hw_buffer *buffer);
HW_EXPORT uint64_t hw_buffer_bytes(const struct hw_buffer *buffer);
HW_EXPORT struct hw_device *hw_buffer_device(const struct hw_buffer *buffer);
/* Wraps memory that somebody else made, or a part of it. It stays its maker's, and outlives the
 * buffer. What can not be written (a file mapped to be read) is HW_BUFFER_READ_ONLY, and not the
 * destination of a copy. HW_UNSUPPORTED: the backend wraps no memory of that kind, or not from that
 * offset; HW_INVALID: the handle is none, or there are fewer bytes. */
HW_EXPORT enum hw_status hw_buffer_import(struct hw_device *device,
                                          const struct hw_import *desc,
                                          struct hw_buffer **buffer);

struct hw_pool_stats {
    uint32_t size;
    uint32_t reserved;
    uint64_t held;     /* bytes taken from the device */
    uint64_t used;     /* bytes in buffers now, rounded as the pool rounds */
    uint64_t peak;     /* the most that `used` has been */
    uint64_t limit;    /* HW_MEMORY_LIMIT; 0: none */
    uint64_t requests; /* buffers asked for */
    uint64_t hits;     /* of these, without a call to the driver */
    uint64_t buffers;  /* buffers now */
};
HW_EXPORT enum hw_status hw_pool_stats(struct hw_device *device,
                                       struct hw_pool_stats *stats);
/* Gives memory that no buffer uses back to the device. */
HW_EXPORT enum hw_status hw_pool_trim(struct hw_device *device);

/* ---- Tensors ---- */

/* A contiguous tensor over host memory, or over `buffer` from `offset` bytes on. HW_INVALID for a
 * rank, dtype, extent or alignment that can not be, or past the buffer's end. */
HW_EXPORT enum hw_status hw_tensor_host(struct hw_tensor *tensor, const void *data,
                                        int32_t dtype, int32_t rank,
                                        const int64_t *extents);
HW_EXPORT enum hw_status hw_tensor_view(struct hw_tensor *tensor, struct hw_buffer *buffer,
                                        uint64_t offset, int32_t dtype, int32_t rank,
                                        const int64_t *extents);
/* Allocates a buffer and views the whole of it; free it by hw_buffer_free(tensor->buffer). */
HW_EXPORT enum hw_status hw_tensor_alloc(struct hw_device *device, uint32_t flags,
                                         int32_t dtype, int32_t rank,
                                         const int64_t *extents, struct hw_tensor *tensor);
/* Views of a view; `tensor` may be `of`. slice: elements begin..end-1 of one axis (whole blocks
 * in the innermost of a block type). transpose: two axes change places (not the innermost of a
 * block type). reshape: the same elements in order, of a contiguous tensor. */
HW_EXPORT enum hw_status hw_tensor_slice(struct hw_tensor *tensor,
                                         const struct hw_tensor *of, int32_t axis,
                                         int64_t begin, int64_t end);
HW_EXPORT enum hw_status hw_tensor_transpose(struct hw_tensor *tensor,
                                             const struct hw_tensor *of, int32_t axis_a,
                                             int32_t axis_b);
HW_EXPORT enum hw_status hw_tensor_reshape(struct hw_tensor *tensor,
                                           const struct hw_tensor *of, int32_t rank,
                                           const int64_t *extents);
/* Bytes from the first element's first to the last element's last; 0 if empty. */
HW_EXPORT uint64_t hw_tensor_bytes(const struct hw_tensor *tensor);
/* The device's own layout of `weights`, in a buffer of that device: opaque, accepted by that device
 * only, as b of matmul and by its extension ops and user kernels. The original stays with the
 * caller. */
HW_EXPORT enum hw_status hw_tensor_pack(struct hw_queue *queue,
                                        const struct hw_tensor *weights,
                                        struct hw_tensor *packed);

/* Host tensors by value, for programs that know what they do: on an error the tensor's rank is
 * -1, which every op refuses, and hw_message() has the reason. */
static inline struct hw_tensor hw_host_1d(const void *data, int32_t dtype, int64_t n)
{
    struct hw_tensor tensor;
    if (hw_tensor_host(&tensor, data, dtype, 1, &n))
        tensor.rank = -1;
    return tensor;
}
static inline struct hw_tensor hw_host_2d(const void *data, int32_t dtype, int64_t rows,
                                          int64_t cols)
{
    struct hw_tensor tensor;
    int64_t extents[2];
    extents[0] = rows;
    extents[1] = cols;
    if (hw_tensor_host(&tensor, data, dtype, 2, extents))
        tensor.rank = -1;
    return tensor;
}

/* ---- Queues ---- */

struct hw_queue_options {
    uint32_t size;
    uint32_t flags;     /* bits of enum hw_queue_flag */
    const char *kernel; /* as HW_KERNEL, for this queue; NULL: what the context says */
};

/* `options` may be NULL. */
HW_EXPORT enum hw_status hw_queue_open(struct hw_device *device,
                                       const struct hw_queue_options *options,
                                       struct hw_queue **queue);
/* A queue over one that somebody else made; `kind` says what the handle is: "<plugin>.<what>"
 * ("cuda.stream", "opencl.queue"), as the plugin's documentation lists them. It stays its maker's,
 * and outlives this one: closing waits, and leaves it open. What its maker has submitted comes
 * before what is submitted here, and is waited for with it. `options` may be NULL. Whether a NULL
 * handle is a queue is the backend's to say. HW_UNSUPPORTED: it wraps none of that kind, or the
 * flags ask for what its maker did not give it. */
HW_EXPORT enum hw_status hw_queue_import(struct hw_device *device,
                                         const struct hw_queue_options *options,
                                         const char *kind, void *handle,
                                         struct hw_queue **queue);
/* Waits, then closes. */
HW_EXPORT void hw_queue_close(struct hw_queue *queue);
HW_EXPORT struct hw_device *hw_queue_device(struct hw_queue *queue);
/* Waits until all submitted work is done; host tensors may be read and changed then. Answers the
 * first error since the last wait, with its text. */
HW_EXPORT enum hw_status hw_queue_wait(struct hw_queue *queue);

/* dst = src, between any two places: host, any device of any backend. Same extents, any strides;
 * converts as struct hw_copy says. Ordered on `queue` only: the caller has waited for what other
 * queues write to src or do with dst. */
HW_EXPORT enum hw_status hw_copy(struct hw_queue *queue, const struct hw_tensor *dst,
                                 const struct hw_tensor *src);

/* What became of the calls of one op on a queue. */
struct hw_call_stats {
    uint32_t size;
    uint32_t reserved;
    uint64_t calls;          /* submitted and accepted */
    uint64_t fallbacks;      /* of these, computed by another device */
    uint64_t fallback_bytes; /* moved there and back */
    uint64_t staged_bytes;   /* host tensors copied to the device and back */
    uint64_t copied_views;   /* operands made contiguous first */
};
HW_EXPORT enum hw_status hw_queue_calls(struct hw_queue *queue, uint32_t op,
                                        struct hw_call_stats *stats);

/* ---- Events ---- */

/* flags: enum hw_event_flag. */
HW_EXPORT enum hw_status hw_event_create(struct hw_device *device, uint32_t flags,
                                         struct hw_event **event);
/* It may not have passed yet: what waits for it goes on to. */
HW_EXPORT void hw_event_free(struct hw_event *event);
/* Marks the queue's current end; the event may be recorded again: who waits already waits for
 * what was recorded then. Same device. */
HW_EXPORT enum hw_status hw_event_record(struct hw_event *event, struct hw_queue *queue);
/* What is submitted to `queue` from now on starts after the event. Any device: across backends, and
 * where the backend has no other way between its devices, the host waits. An event never recorded
 * is passed. */
HW_EXPORT enum hw_status hw_event_wait(struct hw_event *event, struct hw_queue *queue);
/* The host waits. */
HW_EXPORT enum hw_status hw_event_sync(struct hw_event *event);
/* HW_OK: passed. HW_NOT_READY: not yet; sets no message. */
HW_EXPORT enum hw_status hw_event_query(struct hw_event *event);
/* fn(user) is called once, from any thread: after the event has passed, or when its device is lost,
 * or when the event is freed, and before hw_close() returns. It calls nothing here. An event may
 * have several. */
HW_EXPORT enum hw_status hw_event_callback(struct hw_event *event, void (*fn)(void *user),
                                           void *user);
/* Milliseconds between two passed events of one device, with HW_EVENT_TIMING, last recorded on
 * queues with HW_QUEUE_TIMING; HW_INVALID for others, HW_NOT_READY if one has not passed. */
HW_EXPORT enum hw_status hw_event_elapsed(struct hw_event *start, struct hw_event *end,
                                          double *ms);

/* ---- Graphs ---- */

/* From here on ops submitted to the queue are checked and collected, not run; buffers must live
 * as long as the graph, host tensors too. HW_INVALID if the queue is recording already. An op that
 * nobody may compute answers HW_UNSUPPORTED when it is submitted, and is no part of the graph. */
HW_EXPORT enum hw_status hw_queue_record(struct hw_queue *queue);
/* Ends the recording and builds the graph. On an error the recording is dropped. */
HW_EXPORT enum hw_status hw_queue_end(struct hw_queue *queue, struct hw_graph **graph);
/* Submits the whole. What may change between launches is what lies in memory: positions, rows,
 * lengths, data. The queue is one of the graph's device. */
HW_EXPORT enum hw_status hw_graph_launch(struct hw_graph *graph, struct hw_queue *queue);
/* The caller has waited for all launches. */
HW_EXPORT void hw_graph_free(struct hw_graph *graph);

struct hw_graph_info {
    uint32_t size;
    uint32_t nodes;
    uint32_t segments; /* runs of nodes that one device takes at once */
    uint32_t built; /* of these, built by the plugin; the others are replayed one by one */
};
HW_EXPORT enum hw_status hw_graph_info(struct hw_graph *graph, struct hw_graph_info *info);

/* ---- Beyond the table ---- */

struct hw_kernel;

/* An op that only a plugin has, "<plugin>.<op>"; arguments as of hw_kernel_launch(). */
HW_EXPORT enum hw_status hw_extension_call(struct hw_queue *queue, const char *name,
                                           const struct hw_arg *args, uint32_t count);
/* A kernel that the user wrote, for this device; it may be freed before or after any queue, but not
 * while work uses it. HW_INVALID: the description, or the backend's view of it; HW_UNSUPPORTED: the
 * backend takes no kernels; HW_DRIVER: it does not compile, with the compiler's words. */
HW_EXPORT enum hw_status hw_kernel_create(struct hw_device *device,
                                          const struct hw_user_kernel *desc,
                                          struct hw_kernel **kernel);
/* Queues `groups` groups of desc->group work-items. `args` has one argument for each letter of the
 * signature. Tensors lie on the queue's device, with contiguous innermost extents; what is written
 * is neither read-only nor packed. Whether operands overlap, and whether the kernel stays inside of
 * them, nobody checks. HW_UNSUPPORTED: a host tensor that the device can not read, an innermost
 * extent that is not contiguous, or a queue that records a graph. No other device stands in. */
HW_EXPORT enum hw_status hw_kernel_launch(struct hw_queue *queue, struct hw_kernel *kernel,
                                          uint64_t groups, const struct hw_arg *args,
                                          uint32_t count);
HW_EXPORT void hw_kernel_free(struct hw_kernel *kernel);

#if defined(__cplusplus) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#ifdef __cplusplus
}
#endif
#endif
