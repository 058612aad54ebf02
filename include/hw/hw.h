/* SPDX-License-Identifier: MIT */
/* hw/hw.h - the library: transformer math on whatever hardware has a plugin.
 *
 * Open a context, take a device, open a queue on it, submit ops (ops.h), wait for the
 * queue. report.h tells what the library found and did; interop.h shares devices, memory and
 * queues with a vendor's own API. This is a first call, on host memory; complete programs are
 * in the folder examples, which is installed with the documentation:
 *
 *   struct hw_context *context = NULL;
 *   struct hw_queue *queue = NULL;
 *
 *   if (hw_open(NULL, &context) ||
 *       hw_queue_open(hw_device_default(context), NULL, &queue) ||
 *       hw_silu(queue, &(struct hw_silu){ .x = hw_host_2d(x, HW_F32, rows, cols),
 *                                         .y = hw_host_2d(y, HW_F32, rows, cols) }) ||
 *       hw_queue_wait(queue))               <- after this, y may be read
 *       fprintf(stderr, "%s\n", hw_message());
 *   hw_close(context);                      <- closes the queue as well
 *
 * Buffers keep data on the device between ops:
 *
 *   struct hw_tensor t;
 *
 *   if (hw_tensor_alloc(device, 0, HW_F32, 2, extents, &t) ||
 *       hw_tensor_write(queue, &t, x, bytes) ||        <- to the device
 *       hw_silu(queue, &(struct hw_silu){ .x = t, .y = t }) ||
 *       hw_tensor_read(queue, &t, y, bytes) ||         <- and back
 *       hw_queue_wait(queue))
 *       fprintf(stderr, "%s\n", hw_message());
 *   hw_buffer_free(t.buffer);
 *
 * Errors. Every function that can fail returns an enum hw_status, and hw_message() returns
 * the reason as text, per thread. On an error, pointers that the function would have set
 * are NULL and no object has been created, unless noted otherwise. A call that failed does
 * not borrow host memory any longer.
 *
 * Ownership. An object from an _open, _import, _alloc, _create or _end function belongs to
 * the caller until the matching _close or _free, which accepts NULL. Destroy an object before
 * the one it was made from; hw_close() destroys whatever is left. Destroying an object
 * twice, or using it afterwards, is undefined behaviour, as with free(). Objects of one
 * context cannot be used with another. A returned string lives as long as the object that
 * it describes. Structs that are passed in need to live only until the call returns.
 *
 * Threads. Every function may be called from any thread. A queue, or a graph, may be used
 * by only one thread at a time; different queues may be used in parallel. After fork(), the
 * parent's objects return HW_FORKED in the child, which may open a context of its own.
 *
 * Structs that begin with `size`. Set it to sizeof the struct; 0 is HW_INVALID. It tells
 * the library which fields the caller knows. A field that is set but unknown to this
 * version of the library is HW_UNSUPPORTED. */
#ifndef HW_HW_H
#define HW_HW_H

#include "ops.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* GCC warns when a C++ struct and a function share a name, which is valid. */
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

/* The version of the library that is running, to compare with the HW_VERSION of this
 * header. */
HW_EXPORT uint32_t hw_version(void);
/* The version as text, with the stamp of the build: "0.1.0+1e15e3d16071". */
HW_EXPORT const char *hw_version_string(void);

/* Describes the last error of the calling thread: what was asked for, what went wrong, and
 * what to do about it. Never NULL. The text is valid until the thread's next call into the
 * library, except that successful waits, frees and closes do not change it: a program may
 * clean up before it prints the message. */
HW_EXPORT const char *hw_message(void);

/* ---- Contexts ---- */

/* Receives each line of the log, without a newline. `level` is an enum hw_log_level. It may
 * be called from any thread, but never by two at once, and must not call the library. */
typedef void (*hw_log_fn)(void *user, int32_t level, const char *text);

/* Called with the path of a plugin file before the plugin is loaded into this process, started and
 * asked for its devices, and with NULL afterwards. A crash handler or a watchdog can thus name the
 * file. The calling thread is in hw_open() or, for a plugin that is loaded later, in the function
 * that first used one of its devices. A context loads one plugin at a time. The function must not
 * call the library. `user` must live as long as the context. */
typedef void (*hw_start_fn)(void *user, const char *path);

enum hw_open_flag {
    /* Succeed even if no device can be used or a setting is invalid, so that hw_explain()
     * can report it. The error is in the report. */
    HW_OPEN_ANYWAY = 1
};

/* The settings of a context. A field that is NULL, an empty string or zero is unset: the
 * environment variable named beside it decides, then the configuration file, then the
 * default in parentheses. A field that is set overrides all three. Fields have the same
 * syntax as their variables, which `hw env` explains. */
struct hw_options {
    uint32_t size;
    uint32_t flags;       /* bits of enum hw_open_flag */
    const char *backends; /* HW_BACKENDS ("*"): order, selection, exclusion */
    const char *disable;  /* HW_DISABLE: globs of backends that are never loaded */
    const char *require;  /* HW_REQUIRE: fail unless these backends can be used */
    const char *fallback; /* HW_FALLBACK ("warn"): allow, warn, error */
    /* HW_PLUGIN_PATH: directories or plugin files to search first; with an entry "!", the built-in
     * directory is not searched */
    const char *plugin_path;
    const char *plugin_path_only; /* older: DIRS is DIRS:! at the end of plugin_path */
    const char *trust;            /* HW_TRUST ("on"): on, off */
    const char *probe;            /* HW_PROBE ("child"): child, full, inproc */
    const char *probe_timeout;    /* HW_PROBE_TIMEOUT ("10"): seconds */
    const char *threads;          /* HW_THREADS: threads of the CPU plugin */
    const char *precision;        /* HW_PRECISION ("fp32"): fp32, fp16, int8 */
    const char *memory_limit;     /* HW_MEMORY_LIMIT: bytes per device, e.g. "8G" */
    const char *config;           /* HW_CONFIG: the configuration file */
    const char *cache_dir;        /* HW_CACHE_DIR: an absolute path, or "off" */
    const char *kernel;           /* HW_KERNEL: forces kernel rows */
    const char *log;              /* HW_LOG ("warn"): off, error, warn, info, debug */
    hw_log_fn log_fn;             /* receives the log; NULL: standard error */
    void *log_user;
    hw_start_fn start_fn; /* may be NULL */
    void *start_user;
    /* HW_SHADOW ("off"): 1/N compares one in N calls of each op with the CPU plugin */
    const char *shadow;
    /* HW_WORKER: globs of backends; each of them runs in a process of its own. With "=60" behind
     * it, one call may take 60 seconds (300); with "=0" there is no limit */
    const char *worker;
    const char *worker_timeout; /* older: the seconds of entries of worker that have none */
};

/* Opens a context: searches for plugins, checks their files, and lists the devices of the selected
 * plugins. Each plugin is first tried in a process of its own (HW_PROBE), which also opens its
 * devices, unless the result of an earlier start still holds. This process loads a plugin and opens
 * a device when the device is first used. If that fails with HW_NO_DEVICE, each later use fails as
 * well; after HW_NO_MEMORY, the next use tries again. Loaded immediately: plugins named in
 * HW_REQUIRE, this build's CPU plugin and, with HW_PROBE=inproc, every plugin. `options` may be
 * NULL. The call, and the first use of a device, need at least 64 KiB of stack.
 *
 * The process that tries a plugin may run out of time before it has tested all ops. The library
 * then tests each remaining op before its first use, on operands of the same dtypes. That first
 * call takes longer.
 *
 * Returns HW_NO_DEVICE if no device can be used, or if a backend that the settings name or
 * require is missing or cannot be used. Returns HW_INVALID if a setting is invalid (the
 * message names its source and the accepted values), HW_IO if the configuration file cannot
 * be read, HW_UNTRUSTED if another user may write to it. Plugins that cannot be used do not
 * make the call fail as long as a device remains: hw_explain() lists them with the
 * reason. */
HW_EXPORT enum hw_status hw_open(const struct hw_options *options,
                                 struct hw_context **context);
/* Searches the plugin directories again. It finds plugins that were installed since, and plugins
 * that failed but may work now: the driver was installed, the permissions were corrected, or the
 * time after which a failure is tried again is over. Settings stay as hw_open() read them. New
 * plugins are tried as in hw_open(), which may take HW_PROBE_TIMEOUT seconds, and longer on a busy
 * machine.
 *
 * Nothing that is in use changes. Devices stay valid and keep their index for hw_device_at(); new
 * devices are appended. hw_device_default(), hw_device_find() and fallbacks follow the order of
 * preference of all devices. A plugin whose file was replaced or removed stays in use as it was
 * loaded, and hw_explain() says so under "kept". A plugin that failed when a device was first used
 * is tried again; if it works, its devices can be used again.
 *
 * Any thread may call it while others use the context, but not during hw_close(). Concurrent calls
 * run one after the other. Returns HW_OK even if nothing new was found. Returns HW_NO_MEMORY, and
 * changes nothing, if memory or descriptors ran out. Returns HW_INVALID if it is called by log_fn,
 * by start_fn, or by a plugin that is being opened. Earlier results are kept until hw_close(), so
 * each call that finds something new costs some kilobytes. */
HW_EXPORT enum hw_status hw_rescan(struct hw_context *context);
/* Waits for all queues, then closes the context with everything that was made from it. */
HW_EXPORT void hw_close(struct hw_context *context);

/* ---- Devices ---- */

/* The selected devices in order of preference, then the devices that hw_rescan() found. */
HW_EXPORT uint32_t hw_device_count(struct hw_context *context);
HW_EXPORT struct hw_device *hw_device_at(struct hw_context *context, uint32_t index);
/* The first device, which is the recommended one, or NULL if there is none. Loads its plugin. If
 * loading fails, that is logged, and the result is the next device whose plugin can be loaded; or
 * the first device if no plugin can. With HW_FALLBACK=error, this loads nothing and returns the
 * first device. */
HW_EXPORT struct hw_device *hw_device_default(struct hw_context *context);
/* Finds a device by "backend", "backend:index", "backend:<PCI address>" or
 * "backend:<UUID>". Returns HW_NO_DEVICE if there is none; the message lists the
 * devices. */
HW_EXPORT enum hw_status hw_device_find(struct hw_context *context, const char *name,
                                        struct hw_device **device);
/* The name that hw_device_find() takes and that logs use: "cuda:0". */
HW_EXPORT const char *hw_device_name(struct hw_device *device);
/* The name of the device's plugin: "cuda". */
HW_EXPORT const char *hw_device_backend(struct hw_device *device);
/* Fills `info` with facts about the device. Set info->size first. If its plugin is loaded, the
 * facts are current, memory_free included. Otherwise they were recorded when the plugin was tried,
 * and memory_free is 0 (unknown), because this function loads nothing. */
HW_EXPORT enum hw_status hw_device_info(struct hw_device *device,
                                        struct hw_device_info *info);
/* Asks whether the device itself computes an op, without submitting it. `args` is the op's
 * struct, `size` its size.
 *
 * Returns HW_OK if it does, HW_UNSUPPORTED with the reason if it does not, and HW_INVALID
 * where submitting the op would. A plugin that does not implement this query gives HW_OK
 * for every op that it has: then only a call can tell. With HW_FALLBACK=error such a call
 * fails; otherwise another device may compute it, which hw_queue_calls() counts. An op that
 * the plugin does not have is HW_UNSUPPORTED even if the operands are empty. */
HW_EXPORT enum hw_status hw_device_supports(struct hw_device *device, uint32_t op,
                                            const void *args, size_t size);
/* Lets the device compute ops again that failed on it. If the plugin cannot submit an op
 * (HW_DRIVER, HW_INTERNAL or HW_IO) and HW_FALLBACK allows it, the next device in the context's
 * order that can compute the op does so. That device also computes all later calls on operands of
 * the same dtypes. (If an output of the op is also an input, the failure may have overwritten it:
 * the call fails, and only later calls move to another device.) Such a demotion is logged and
 * listed under "demotions" in hw_explain(). hw_device_reset() cancels it. It also clears ops that
 * the admission test rejected. Ops not tested yet are used untested from now on.
 *
 * It may be called while other threads use the device. Returns HW_LOST if the device is lost,
 * which no reset changes. */
HW_EXPORT enum hw_status hw_device_reset(struct hw_device *device);

/* ---- Memory ---- */

/* Allocates `bytes` bytes of device memory from the device's pool. The buffer is aligned to
 * hw_device_info.buffer_alignment, which is at least 256. flags: bits of enum
 * hw_buffer_flag; HW_BUFFER_PINNED implies HW_BUFFER_HOST_VISIBLE.
 *
 * Returns HW_NO_MEMORY if the memory or the limit is exhausted (the message has the sizes),
 * and HW_UNSUPPORTED if the device has no memory of this kind. */
HW_EXPORT enum hw_status hw_buffer_alloc(struct hw_device *device, uint64_t bytes,
                                         uint32_t flags, struct hw_buffer **buffer);
/* Frees the buffer. The caller must have waited for all work that uses it; to free a buffer
 * without waiting, use hw_buffer_free_after(). */
HW_EXPORT void hw_buffer_free(struct hw_buffer *buffer);
/* Frees the buffer once `queue` has completed the work submitted so far. The caller must
 * not use the buffer any more, but does not have to wait. Later allocations reuse the
 * memory; hw_buffer_alloc() waits for it before it fails with HW_NO_MEMORY. If the backend
 * has no events, or the buffer belongs to another device than the queue, the memory is
 * freed at the next wait for the queue. */
HW_EXPORT void hw_buffer_free_after(struct hw_buffer *buffer, struct hw_queue *queue);
/* The host address of a buffer with HW_BUFFER_HOST_VISIBLE, valid as long as the buffer.
 * NULL for other buffers. The host may read the results of completed work, and ops submitted
 * later see what the host has written. */
HW_EXPORT void *hw_buffer_host(struct hw_buffer *buffer);
HW_EXPORT uint64_t hw_buffer_bytes(const struct hw_buffer *buffer);
HW_EXPORT struct hw_device *hw_buffer_device(const struct hw_buffer *buffer);

/* Returns memory that no buffer uses to the device. */
HW_EXPORT enum hw_status hw_pool_trim(struct hw_device *device);

/* ---- Tensors ---- */

/* Fill in a contiguous tensor over host memory, or over `buffer` from byte `offset` on. A
 * tensor owns nothing: the memory must outlive its use. Return HW_INVALID for an invalid
 * rank, dtype, extent or alignment, and for a view that exceeds the buffer. */
HW_EXPORT enum hw_status hw_tensor_host(struct hw_tensor *tensor, const void *data,
                                        int32_t dtype, int32_t rank,
                                        const int64_t *extents);
HW_EXPORT enum hw_status hw_tensor_view(struct hw_tensor *tensor, struct hw_buffer *buffer,
                                        uint64_t offset, int32_t dtype, int32_t rank,
                                        const int64_t *extents);
/* Allocates a buffer and fills in a contiguous tensor over the whole of it. Free it with
 * hw_buffer_free(tensor->buffer). */
HW_EXPORT enum hw_status hw_tensor_alloc(struct hw_device *device, uint32_t flags,
                                         int32_t dtype, int32_t rank,
                                         const int64_t *extents, struct hw_tensor *tensor);
/* Views of a view; no data moves. `tensor` may be the same as `of`.
 * - slice: the elements begin to end - 1 of one axis. Along the innermost axis of a block
 *   type, both must be multiples of the block.
 * - transpose: swaps two axes. The innermost axis of a block type cannot be swapped.
 * - reshape: the same elements in the same order. `of` must be contiguous. */
HW_EXPORT enum hw_status hw_tensor_slice(struct hw_tensor *tensor,
                                         const struct hw_tensor *of, int32_t axis,
                                         int64_t begin, int64_t end);
HW_EXPORT enum hw_status hw_tensor_transpose(struct hw_tensor *tensor,
                                             const struct hw_tensor *of, int32_t axis_a,
                                             int32_t axis_b);
HW_EXPORT enum hw_status hw_tensor_reshape(struct hw_tensor *tensor,
                                           const struct hw_tensor *of, int32_t rank,
                                           const int64_t *extents);
/* Bytes from the first byte of the first element to the last byte of the last element; 0 if
 * the tensor is empty. */
HW_EXPORT uint64_t hw_tensor_bytes(const struct hw_tensor *tensor);
/* Copies `weights` into the device's private layout, in a new buffer: free it with
 * hw_buffer_free(packed->buffer). Only that device accepts the result, as `b` of matmul and
 * in its extension ops and user kernels. `weights` is not changed and is no longer needed
 * once the queue has completed the work. Returns HW_UNSUPPORTED if the device has no such
 * layout. */
HW_EXPORT enum hw_status hw_tensor_pack(struct hw_queue *queue,
                                        const struct hw_tensor *weights,
                                        struct hw_tensor *packed);

/* Contiguous tensors by value, for use inside an op's struct: hw_host_*() over host memory,
 * hw_view_*() over `buffer` from byte `offset` on. Extents are listed outermost first. Invalid
 * arguments give a tensor of rank -1, which every op refuses with HW_INVALID and the
 * reason. */
static inline struct hw_tensor hw_host_(const void *data, int32_t dtype, int32_t rank,
                                        const int64_t *extents)
{
    struct hw_tensor tensor;
    if (hw_tensor_host(&tensor, data, dtype, rank, extents))
        tensor.rank = -1;
    return tensor;
}
static inline struct hw_tensor hw_view_(struct hw_buffer *buffer, uint64_t offset,
                                        int32_t dtype, int32_t rank, const int64_t *extents)
{
    struct hw_tensor tensor;
    if (hw_tensor_view(&tensor, buffer, offset, dtype, rank, extents))
        tensor.rank = -1;
    return tensor;
}
static inline struct hw_tensor hw_host_1d(const void *data, int32_t dtype, int64_t n)
{
    return hw_host_(data, dtype, 1, &n);
}
static inline struct hw_tensor hw_host_2d(const void *data, int32_t dtype, int64_t rows,
                                          int64_t cols)
{
    const int64_t extents[2] = { rows, cols };
    return hw_host_(data, dtype, 2, extents);
}
static inline struct hw_tensor hw_host_3d(const void *data, int32_t dtype, int64_t planes,
                                          int64_t rows, int64_t cols)
{
    const int64_t extents[3] = { planes, rows, cols };
    return hw_host_(data, dtype, 3, extents);
}
static inline struct hw_tensor hw_host_4d(const void *data, int32_t dtype, int64_t batches,
                                          int64_t planes, int64_t rows, int64_t cols)
{
    const int64_t extents[4] = { batches, planes, rows, cols };
    return hw_host_(data, dtype, 4, extents);
}
static inline struct hw_tensor hw_view_1d(struct hw_buffer *buffer, uint64_t offset,
                                          int32_t dtype, int64_t n)
{
    return hw_view_(buffer, offset, dtype, 1, &n);
}
static inline struct hw_tensor hw_view_2d(struct hw_buffer *buffer, uint64_t offset,
                                          int32_t dtype, int64_t rows, int64_t cols)
{
    const int64_t extents[2] = { rows, cols };
    return hw_view_(buffer, offset, dtype, 2, extents);
}
static inline struct hw_tensor hw_view_3d(struct hw_buffer *buffer, uint64_t offset,
                                          int32_t dtype, int64_t planes, int64_t rows,
                                          int64_t cols)
{
    const int64_t extents[3] = { planes, rows, cols };
    return hw_view_(buffer, offset, dtype, 3, extents);
}
static inline struct hw_tensor hw_view_4d(struct hw_buffer *buffer, uint64_t offset,
                                          int32_t dtype, int64_t batches, int64_t planes,
                                          int64_t rows, int64_t cols)
{
    const int64_t extents[4] = { batches, planes, rows, cols };
    return hw_view_(buffer, offset, dtype, 4, extents);
}

/* ---- Queues ---- */

struct hw_queue_options {
    uint32_t size;
    uint32_t flags;     /* bits of enum hw_queue_flag */
    const char *kernel; /* overrides HW_KERNEL; NULL or "": HW_KERNEL applies */
};

/* Opens a queue: ops submitted to it run in order of submission. Work on different queues
 * is unordered unless events or waits order it. `options` may be NULL.
 *
 * The plugin is loaded and the device opened on first use: a queue, buffer or event, or a query
 * about ops, kernels or the pool. That can take long, and can fail with HW_NO_DEVICE (see
 * hw_open()) or HW_DRIVER. */
HW_EXPORT enum hw_status hw_queue_open(struct hw_device *device,
                                       const struct hw_queue_options *options,
                                       struct hw_queue **queue);
/* Waits for the queue's work, then closes it. To learn of errors in that work, call
 * hw_queue_wait() first. */
HW_EXPORT void hw_queue_close(struct hw_queue *queue);
HW_EXPORT struct hw_device *hw_queue_device(struct hw_queue *queue);
/* Waits until all work submitted to the queue has completed. After that, host memory used
 * by its ops may be read, changed and freed. Returns the first error of the work since the
 * last wait, with its message; the next wait does not return it again. */
HW_EXPORT enum hw_status hw_queue_wait(struct hw_queue *queue);

/* Copies the elements of `tensor` from or to `bytes` bytes of host memory at `data`, where
 * they lie contiguously, outermost extent first, in the tensor's dtype. `tensor` may lie in
 * host memory or on any device of the context, and its strides are arbitrary. hw_copy() in
 * ops.h does the same between any two tensors, and converts dtypes.
 *
 * Both functions only queue the work, like an op: `data` is borrowed until the queue has
 * completed it, which hw_queue_wait() or an event shows. Do not change or free it before,
 * nor read what hw_tensor_read() writes there. While the queue is recording, the copy is
 * recorded, and each launch reads or writes `data`.
 *
 * Return HW_INVALID if `bytes` is not exactly the size of the elements; otherwise they
 * return the same as hw_copy(). */
HW_EXPORT enum hw_status hw_tensor_write(struct hw_queue *queue,
                                         const struct hw_tensor *tensor, const void *data,
                                         uint64_t bytes);
HW_EXPORT enum hw_status hw_tensor_read(struct hw_queue *queue,
                                        const struct hw_tensor *tensor, void *data,
                                        uint64_t bytes);

/* ---- Events ---- */

/* Creates an event: a point in a queue's work that can be waited for. flags: bits of enum
 * hw_event_flag. Returns HW_UNSUPPORTED if the backend has no events; hw_queue_wait()
 * always works. */
HW_EXPORT enum hw_status hw_event_create(struct hw_device *device, uint32_t flags,
                                         struct hw_event **event);
/* Frees the event. It may be called before the event completes: waits that were issued
 * remain valid, and its callbacks are still called. */
HW_EXPORT void hw_event_free(struct hw_event *event);
/* Makes the event complete when the work submitted to `queue` so far has completed. The
 * queue must belong to the event's device. An event may be recorded again; waits that were
 * issued earlier still refer to the earlier record. When the event completes, results in host
 * memory are complete, too. If the host has to write a result piece by piece, the call waits for
 * the queue. */
HW_EXPORT enum hw_status hw_event_record(struct hw_event *event, struct hw_queue *queue);
/* Makes work that is submitted to `queue` from now on start after the event. The queue may
 * belong to any device of the context. Between backends, or if the backend cannot order two
 * of its own devices, the call itself waits until the event completes. An event that was
 * never recorded counts as complete. */
HW_EXPORT enum hw_status hw_event_wait(struct hw_event *event, struct hw_queue *queue);
/* Waits in the calling thread until the event completes. */
HW_EXPORT enum hw_status hw_event_sync(struct hw_event *event);
/* Returns HW_OK if the event has completed and HW_NOT_READY, without setting the message,
 * if it is pending. It never waits, and polling is enough to make progress. */
HW_EXPORT enum hw_status hw_event_query(struct hw_event *event);
/* Calls fn(user) exactly once: when the event completes, when its device is lost or when
 * the event is freed, but before hw_close() returns. It may be called from any thread, even
 * before this function returns, and must not call the library. An event may have several
 * callbacks. */
HW_EXPORT enum hw_status hw_event_callback(struct hw_event *event, void (*fn)(void *user),
                                           void *user);
/* Sets `ms` to the milliseconds between two completed events of one device. Both must have
 * been created with HW_EVENT_TIMING and last recorded on queues with HW_QUEUE_TIMING;
 * otherwise the result is HW_INVALID. HW_NOT_READY: one of them is pending. */
HW_EXPORT enum hw_status hw_event_elapsed(struct hw_event *start, struct hw_event *end,
                                          double *ms);

/* ---- Graphs ---- */

/* Starts recording. Until hw_queue_end(), ops submitted to the queue are checked and
 * recorded instead of executed. The buffers and the host memory that they use must live as
 * long as the graph. An op that no device may compute returns HW_UNSUPPORTED as usual and
 * is not recorded. Returns HW_INVALID if the queue is already recording. */
HW_EXPORT enum hw_status hw_queue_record(struct hw_queue *queue);
/* Stops recording and builds a graph of the recorded ops. On an error the recording is
 * discarded. */
HW_EXPORT enum hw_status hw_queue_end(struct hw_queue *queue, struct hw_graph **graph);
/* Submits all ops of the graph to `queue`, which must belong to the graph's device. Operand
 * addresses and shapes are fixed. Only the content of memory may change between launches:
 * data, positions, rows, lengths. */
HW_EXPORT enum hw_status hw_graph_launch(struct hw_graph *graph, struct hw_queue *queue);
/* Frees the graph. The caller must have waited for all its launches. */
HW_EXPORT void hw_graph_free(struct hw_graph *graph);

/* Says that the contents of `tensor` are not needed any more: they are undefined until they are
 * written again. On a queue that is recording, this becomes part of the graph. A backend that fuses
 * several ops into one kernel may then keep values in registers that only these ops read, such as
 * the two products before a swiglu. On other queues, and with other backends, the call has no
 * effect. `tensor` must be on the queue's device, writable by an op, and contiguous along its
 * innermost extent. */
HW_EXPORT enum hw_status hw_tensor_discard(struct hw_queue *queue,
                                           const struct hw_tensor *tensor);

#if defined(__cplusplus) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#ifdef __cplusplus
}
#endif

/* One include is enough for the whole interface. */
#include "interop.h"
#include "report.h"

#endif
