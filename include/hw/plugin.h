/* SPDX-License-Identifier: MIT */
/* hw/plugin.h - the plugin ABI. This header, types.h and ops.h are all that a plugin needs.
 *
 * A plugin is one shared object, hw_<name>.so (.dll, .dylib), that supports one vendor's
 * devices. It exports hw_plugin_entry and nothing else, does not link the library, and
 * carries a manifest that the host (the library) reads without loading the file.
 * HW_PLUGIN() at the end of this file defines the entry and the manifest. `hw verify
 * ./hw_<name>.so` tests a plugin. The folders examples and docs, which are installed with
 * the headers, have complete plugins and a tutorial.
 *
 * Rules for every function below:
 * - It returns an enum hw_status. On an error it describes the reason with hw_fail(), once,
 *   where the reason is known.
 * - It must not abort, exit, throw an exception, longjmp, install a signal handler or
 *   print, nor change the working directory, the locale, the umask, the environment, which
 *   signals are blocked or the floating-point mode.
 * - It leaves the thread's current vendor context or device as it found it
 *   (cuCtxSetCurrent, hipSetDevice).
 * - Any thread may call it. One queue is used by one thread at a time, different queues in
 *   parallel.
 * - Handles (self, device, queue, event, ...) are opaque pointers of the plugin, and never
 *   NULL. A plugin that needs no state of its own for one of them may return the same
 *   pointer again, say the instance as the device. Strings that it returns live as long as
 *   the plugin.
 * - A struct hw_buffer in an op or a transfer lives until the queue has completed it; one
 *   in a graph's node lives until graph_destroy(). Everything else that is passed in lives
 *   only for the call: the op, the transfer, hw_arg with its tensors, and every `desc` with
 *   its strings.
 * - The host checks arguments before it calls: pointers are valid, extents and strides
 *   agree, an op's operands lie inside their buffers and on the device. It cannot check
 *   what lies in device memory (row numbers, lengths, positions): kernels must clamp them.
 * - The `op` of an op's function, and `args` of supports(), of plans and of nodes, have at
 *   least op_sizes[op] bytes. Fields that the host does not know are zero.
 * - An optional slot that is NULL means HW_UNSUPPORTED, unless noted otherwise.
 * - If an error makes a device unusable, that call and every later one on the device return
 *   HW_LOST. From then on every function returns promptly: wait, close and free must not
 *   hang.
 *
 * Growth. Within an ABI version, structs grow only at the end and begin with `size`. The
 * host sets hw_plugin.size to the bytes that it has room for. A plugin never writes past
 * that, and the host treats slots that an older plugin did not write as NULL. The same
 * holds for every struct that the plugin fills for the host: use hw_answer(), which copies
 * what fits. In the other direction, a plugin may get a struct from a newer host. If
 * hw_knows() reports that a field is set that the plugin does not know, or if a flag, dtype
 * or kind is unknown, the plugin returns HW_UNSUPPORTED. It never ignores a request
 * silently. */
#ifndef HW_PLUGIN_H
#define HW_PLUGIN_H

#include "ops.h"
#include "types.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The ABI version that this header describes, and the oldest one that a plugin built with
 * it can still serve. The host has such a range as well; the highest version in both ranges
 * is used. */
#define HW_ABI_VERSION 1
#define HW_ABI_OLDEST  1

enum hw_precision {
    HW_PRECISION_FP32 = 0, /* f32 inputs stay f32 (default) */
    HW_PRECISION_FP16 = 1, /* f32 inputs may be computed in 16-bit or TF32 units */
    HW_PRECISION_INT8 = 2  /* activations may be quantised if the other operand is */
};

/* The host, as a plugin sees it. There is one per open context; it is valid until the
 * plugin's close() has returned. A service that this host lacks returns HW_UNSUPPORTED. */
struct hw_host {
    uint32_t size;
    uint32_t abi_min, abi_max;
    uint32_t precision; /* enum hw_precision */
    void *instance;     /* first argument of every service; tells contexts apart */

    /* Writes one line to the log. `text` has no newline; `level` is an enum
     * hw_log_level. */
    void (*log)(void *instance, int32_t level, const char *text);
    /* Sets the calling thread's message and returns `status`. hw_fail() formats for it. */
    int32_t (*fail)(void *instance, int32_t status, const char *text);

    uint64_t memory_limit; /* the most bytes the host allocates per device; 0: no limit */
    const char *cache_dir; /* the plugin's own, which it creates if needed; "": none */
    /* HW_KERNEL: see hw_queue_desc.kernel; "": unset. It applies to all devices: a device that
     * lacks a row must open nevertheless. hw_queue_desc.kernel does not have such a row. */
    const char *kernel;
    uint32_t threads; /* threads for a CPU plugin; 0: as many as the process may use */
    uint32_t abi;     /* the ABI version in use; set before open() */

    /* Counts memory of a device that the plugin allocates for itself, such as a workspace of
     * its kernels, in hw_pool_stats and against HW_MEMORY_LIMIT. `bytes` is negative when it
     * is freed. HW_NO_MEMORY: it exceeds the limit, do not allocate. Not to be called from
     * buffer_alloc(), buffer_free(), device_open() or device_close(). An older host lacks it:
     * call hw_count_memory(). */
    int32_t (*count_memory)(void *instance, void *device, int64_t bytes);

    /* Reports a device that open() found but hides, or a feature it disables, and why: "it has no
     * compiler". `hw status` shows both. A name or reason that is not known is NULL. Only open(),
     * which may still fail, may call it. An older host lacks it: call hw_leave_out(). */
    void (*leave_out)(void *instance, const char *name, const char *why);
};

/* The fixed prefix of every buffer, from which a plugin finds its memory in an op's
 * tensors. The host divides the plugin's allocations into buffers, so `offset` counts from
 * the start of `impl`. It is a multiple of 256, and of hw_device_info.buffer_alignment if
 * that is larger. Buffers of one `impl` do not overlap. For imported memory, buffer_import()
 * has set `offset`.
 *
 * `host` is set whenever the host can read and write the memory. Such memory stays mapped
 * as long as it exists, and is coherent: without further calls, the host sees the results of
 * completed work, and work that is submitted later sees what the host has written. */
struct hw_buffer {
    void *impl;      /* the plugin's handle, from buffer_alloc() or buffer_import() */
    void *host;      /* host address of this buffer's first byte; NULL: not visible */
    void *device;    /* the plugin's device */
    uint64_t offset; /* bytes from the start of impl to this buffer's first byte */
    uint64_t bytes;
    uint32_t flags; /* bits of enum hw_buffer_flag */
    uint32_t reserved;
};

/* The host address of the first element of `t`, for plugins that compute in host memory. */
static inline void *hw_tensor_address(const struct hw_tensor *t)
{
    return (char *)(t->buffer ? t->buffer->host : t->data) + t->offset;
}

struct hw_queue_desc {
    uint32_t size;
    /* bits of enum hw_queue_flag; the host implements HW_QUEUE_SYNCHRONOUS by itself */
    uint32_t flags;
    /* Which kernel rows to use. "" or NULL: the best. "portable": the last row of each op.
     * Otherwise a comma-separated list of <op>=<row> or <row>, which applies to the op that
     * has this row. For an unknown name, queue_open() returns HW_INVALID with a message
     * that lists the rows. */
    const char *kernel;
};

/* Copies `rows` rows of `bytes` bytes from one place to another, in the queue's order. Each
 * side is either a buffer with an offset or, if the buffer is NULL, a host address. Offsets
 * and addresses refer to the first byte of the first row; offsets count from the start of
 * the buffer. Host memory is borrowed until the queue has completed the transfer. Buffers
 * belong to devices of this plugin. Rows of the destination do not overlap each other or
 * the source. For two host addresses, hw_transfer_host() does everything. */
struct hw_transfer {
    uint32_t size;
    uint32_t reserved;
    const struct hw_buffer *dst;
    const struct hw_buffer *src;
    void *dst_host;
    const void *src_host;
    uint64_t dst_offset;
    uint64_t src_offset;
    uint64_t bytes;     /* per row */
    uint64_t rows;      /* 0 and 1 both mean one row; the pitches are then unused */
    uint64_t dst_pitch; /* bytes from one row to the next, at least `bytes` */
    uint64_t src_pitch;
};

/* Does the transfer. `dst` and `src` are the host addresses of the first byte on each
 * side. */
static inline void hw_transfer_host(const struct hw_transfer *t, void *dst, const void *src)
{
    const uint64_t rows = t->rows > 1 ? t->rows : 1;
    uint64_t i;
    for (i = 0; t->bytes && i < rows; i++)
        memmove((char *)dst + i * t->dst_pitch, (const char *)src + i * t->src_pitch,
                (size_t)t->bytes);
}

/* One recorded op. `args` is the op's struct of `bytes` bytes; the host owns it, and it is
 * valid until graph_destroy(). */
struct hw_node {
    uint32_t op; /* enum hw_op, HW_NODE_CALL or HW_NODE_DISCARD */
    uint32_t bytes;
    const void *args;
};

/* A node that calls a function of the application, from hw_queue_call(): its args are a struct
 * hw_node_call. A plugin gets such nodes only if it has queue_export(), and only with a `kind`
 * that queue_export() accepted. graph_build() calls fn(user, handle) once. The handle is of this
 * kind, and work that fn submits to it becomes part of the graph at this place. If fn does not
 * return HW_OK, graph_build() fails. */
#define HW_NODE_CALL UINT32_MAX
struct hw_node_call {
    const char *kind;
    int32_t (*fn)(void *user, void *handle);
    void *user;
};

/* A node that says that the contents of a tensor are not needed any more, from
 * hw_tensor_discard(): its args are a struct hw_tensor, in a buffer of the device. From this place
 * on the contents are undefined until a node writes them, so graph_build() need not store values
 * that only earlier nodes read. A plugin gets such nodes only if it sets hw_plugin.discards. */
#define HW_NODE_DISCARD (UINT32_MAX - 1)

/* An op that only this plugin has. The host checks the arguments against the signature,
 * which has the format of hw_user_kernel.signature. */
struct hw_extension {
    uint32_t size;
    uint32_t reserved;
    const char *name; /* "<plugin>.<op>" */
    const char *signature;
    void *self;
    int32_t (*call)(void *self, void *queue, const struct hw_arg *args, uint32_t count);
};

/* One function per op; NULL if the plugin does not have the op. The function queues the
 * work or does it. If no kernel of the plugin computes this combination of dtypes and
 * shapes, it returns HW_UNSUPPORTED before it touches anything, and the host tries another
 * device.
 *
 * queue_wait() returns an error that is found later. If the function itself returns an
 * error, it may have written the op's outputs, but nothing else. Any work that it began is
 * over when queue_wait() next returns. The host then acts on the status:
 * - HW_DRIVER, HW_INTERNAL, HW_IO: the op fails on this device and would fail again. The host
 *   tries another device if no output is an input. It does not call the function again with
 *   operands of these dtypes until the application resets the device.
 * - HW_NO_MEMORY and others: the application gets the error, and may try again.
 * - HW_LOST: the device and everything on it are lost.
 *
 * Every innermost extent is contiguous, except for `copy`: the host uses the plugin's copy to
 * make other operands contiguous. A plugin without `copy` never gets operands with a strided
 * innermost extent; such a call is HW_UNSUPPORTED. */
struct hw_plugin_ops {
    uint32_t size;
    uint32_t reserved;
#define X(NAME, name)                                                                      \
    int32_t (*name)(void *device, void *queue, const struct hw_##name *op);
    HW_OPS(X)
#undef X
};

/* The table of a plugin. */
struct hw_plugin {
    uint32_t size; /* set by the host */
    uint32_t abi;  /* set by the plugin: the ABI version that it uses with this host */
    const char *name;
    const char *vendor;
    const char *version;
    const struct hw_plugin_ops *ops;
    const uint32_t *op_sizes; /* bytes of each op's struct, by enum hw_op; at most 4096 */
    uint32_t op_count;        /* entries of op_sizes */
    uint32_t reserved;

    /* Everything from here to transfer() is required.
     *
     * The instance. open() is the first function that may load or call the vendor's driver.
     * If the vendor's software is not installed, it returns HW_NO_DEVICE with a message
     * that names what is missing. The host shows a remedy with it: the second line of the
     * message or, without one, the remedy in the manifest.
     *
     * Device indices do not change while the instance lives. Names, identities and features of
     * devices stay the same from one instance to the next, unless something changes that the
     * manifest names ("driver=", "variable="). The host may know them from an earlier instance,
     * and call open() only when a device is first used, on the thread that uses it. When close()
     * returns, no thread and no callback of the plugin may be running. */
    int32_t (*open)(const struct hw_host *host, void **self);
    void (*close)(void *self);
    int32_t (*device_count)(void *self, int32_t *count);
    int32_t (*device_info)(void *self, int32_t index, struct hw_device_info *info);
    int32_t (*device_open)(void *self, int32_t index, void **device);
    void (*device_close)(void *device);

    /* Queues. Work on a queue runs in order of submission. queue_wait() returns the first
     * error of this queue since its last wait; queue_close() waits first. Work that was
     * submitted before event_record(), event_wait(), graph_launch() or a transfer to the
     * host must make progress without further calls: a plugin that batches commands submits
     * its batch there. */
    int32_t (*queue_open)(void *device, const struct hw_queue_desc *desc, void **queue);
    void (*queue_close)(void *queue);
    int32_t (*queue_wait)(void *queue);

    /* Memory. buffer_alloc() sets impl, host and flags of the buffer (see struct
     * hw_buffer). The memory is aligned to 256 bytes, and to
     * hw_device_info.buffer_alignment if that is larger. `bytes` is at most
     * hw_device_info.buffer_max. The host sets HW_BUFFER_PINNED only together with
     * HW_BUFFER_HOST_VISIBLE, which requires `host` to be set. If the plugin cannot provide
     * what the flags require, it returns HW_UNSUPPORTED. The host pools memory, so these
     * functions need not be fast. */
    int32_t (*buffer_alloc)(void *device, uint64_t bytes, uint32_t flags,
                            struct hw_buffer *buffer);
    void (*buffer_free)(void *device, struct hw_buffer *buffer);
    int32_t (*transfer)(void *queue, const struct hw_transfer *transfer);

    /* Everything from here on is optional: NULL means HW_UNSUPPORTED, unless noted
     * otherwise.
     *
     * Events of one device. flags: bits of enum hw_event_flag. An event that was never
     * recorded counts as complete. event_wait() and event_callback() refer to the last
     * record before the call. event_destroy() may be called before the event completes.
     *
     * event_query() returns HW_NOT_READY until the event completes. Calling it repeatedly,
     * and nothing else, must lead to HW_OK in the end.
     *
     * event_wait(): the event may belong to another device of this plugin. If it returns
     * HW_UNSUPPORTED, the host waits instead. HW_LOST means that the queue's device is
     * lost.
     *
     * event_callback(): several callbacks may be registered for one event. Each is called
     * exactly once, from any thread: when the event completes, when the device is lost, or
     * from event_destroy(). fn does not call the plugin.
     *
     * event_elapsed(): milliseconds between two events, or HW_NOT_READY if one is pending.
     * The host has checked that both have HW_EVENT_TIMING and were recorded on queues with
     * HW_QUEUE_TIMING. */
    int32_t (*event_create)(void *device, uint32_t flags, void **event);
    void (*event_destroy)(void *event);
    int32_t (*event_record)(void *event, void *queue);
    int32_t (*event_wait)(void *queue, void *event);
    int32_t (*event_sync)(void *event);
    int32_t (*event_query)(void *event);
    int32_t (*event_callback)(void *event, void (*fn)(void *user), void *user);
    int32_t (*event_elapsed)(void *start, void *end, double *ms);

    /* Reports whether a kernel of the device computes this op. If not, it returns
     * HW_UNSUPPORTED and writes the reason to `why`. Only dtype, rank, extents, strides,
     * layout and scalars count: `buffer` may be NULL. `scratch` receives the bytes of
     * device memory that the op needs beyond its operands. Nothing is launched. If the slot
     * is NULL, hw_device_supports() returns HW_OK for every op that has a function, and
     * only a call can tell; hw verify counts what was really computed. */
    int32_t (*supports)(void *device, uint32_t op, const void *args, char *why,
                        size_t why_size, uint64_t *scratch);
    /* Describes row `index` of the kernels for `op`: best first, the portable one last.
     * Returns HW_END past the last row. */
    int32_t (*kernel_info)(void *device, uint32_t op, uint32_t index,
                           struct hw_kernel_info *info);

    /* Graphs. If graph_build() is NULL or returns HW_UNSUPPORTED, the host replays the
     * nodes one by one. `queue` is the one that recorded the nodes; the graph uses its
     * kernel rows. Building submits nothing. A graph may be launched on any queue of its
     * device, and again before an earlier launch has completed: if the plugin's graph has
     * state, the plugin orders the launches. */
    int32_t (*graph_build)(void *queue, const struct hw_node *nodes, uint32_t count,
                           void **graph);
    int32_t (*graph_launch)(void *queue, void *graph);
    void (*graph_destroy)(void *graph);

    /* Private layouts for weights. pack_size() returns the bytes needed and a layout id
     * other than 0. pack() writes dst, whose buffer has that many bytes. */
    int32_t (*pack_size)(void *device, const struct hw_tensor *src, uint64_t *bytes,
                         uint32_t *layout);
    int32_t (*pack)(void *queue, const struct hw_tensor *dst, const struct hw_tensor *src);

    /* Import wraps memory and queues of the application; nothing is copied. They still
     * belong to the application: buffer_free() and queue_close() do not destroy them, but
     * queue_close() waits as usual. `kind` is never NULL. "host" is a host address, which
     * the host has checked. Other kinds are the plugin's own, "<plugin>.<what>", listed in
     * its documentation, and their handles are unchecked. Return HW_UNSUPPORTED for a
     * foreign kind, and for a flag or an offset that the plugin cannot serve.
     * buffer_import() sets the same fields as buffer_alloc(), and `offset` if the plugin
     * needs it to find the first byte. */
    int32_t (*buffer_import)(void *device, const struct hw_import *desc,
                             struct hw_buffer *buffer);
    int32_t (*queue_import)(void *device, const struct hw_queue_desc *desc,
                            const char *kind, void *handle, void **queue);

    /* Describes extension op `index`. Returns HW_END past the last one. */
    int32_t (*extension)(void *device, uint32_t index, struct hw_extension *extension);

    /* User kernels. The host has checked the arguments against the signature; there is at least
     * one group. */
    int32_t (*kernel_build)(void *device, const struct hw_user_kernel *desc, void **kernel);
    int32_t (*kernel_launch)(void *queue, void *kernel, uint64_t groups,
                             const struct hw_arg *args, uint32_t count);
    void (*kernel_destroy)(void *kernel);

    /* Export returns the vendor's own handle, for an application that calls the vendor's
     * functions on the same memory and the same queue. `kind` is a kind that the plugin can
     * import; return HW_UNSUPPORTED for any other. Work that the plugin holds back must be
     * submitted before queue_export() returns. buffer_export() sets kind, handle, offset and
     * flags of `desc`, so that importing them would give the same memory. */
    int32_t (*queue_export)(void *queue, const char *kind, void **handle);
    int32_t (*buffer_export)(void *device, const struct hw_buffer *buffer, const char *kind,
                             struct hw_import *desc);

    /* Stores the index of the device that owns this vendor handle. `kind` and `handle` are as
     * for the other imports; the handle is unchecked. Returns HW_UNSUPPORTED for a foreign kind,
     * HW_NO_DEVICE if no device of the plugin owns the handle. */
    int32_t (*device_import)(void *self, const char *kind, void *handle, int32_t *index);

    /* kernel_launch() in three dimensions. groups[1] or groups[2] is not 1, and none of the
     * three is 0. */
    int32_t (*kernel_launch_3d)(void *queue, void *kernel, const uint64_t groups[3],
                                const struct hw_arg *args, uint32_t count);

    uint32_t discards; /* 1: graph_build() knows HW_NODE_DISCARD */
    uint32_t reserved_end;

    /* Plans: the work of an op's function that does not depend on addresses, done once. A plugin
     * sets all three slots or none; without them, every call uses the op's function.
     *
     * A plan belongs to its queue. It serves every call whose struct differs from `args` only in
     * `buffer`, `data` and `offset` of its tensors, or in the bytes of absent operands.
     * plan_build() gets one such call. It computes nothing, and keeps neither an address nor a
     * pointer into `args`. If it returns an error, the host calls the op's function for these
     * calls.
     *
     * plan_launch() does the same as the op's function, with the addresses in `args`, and returns
     * the same errors. `args` has the operands of the call, as the op's function would get them.
     *
     * The host owns the plan. It builds, launches and destroys it on the thread that uses the
     * queue. It destroys it before queue_close(), perhaps before the queue has completed its
     * launches. */
    int32_t (*plan_build)(void *queue, uint32_t op, const void *args, void **plan);
    int32_t (*plan_launch)(void *queue, void *plan, const void *args);
    void (*plan_destroy)(void *plan);
};

/* The only exported symbol; HW_PLUGIN() defines it. It fills the table and returns: it must
 * not touch a driver, and may be called again. */
HW_EXPORT int32_t hw_plugin_entry(const struct hw_host *host, struct hw_plugin *plugin);

/* Formats the thread's message and returns `status`, so that a function can end with
 * return hw_fail(host, HW_DRIVER, "cannot open %s", name); */
#if defined(__MINGW_PRINTF_FORMAT)
__attribute__((format(__MINGW_PRINTF_FORMAT, 3, 4))) /* the dialect of this vsnprintf() */
#elif defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static inline int32_t
hw_fail(const struct hw_host *host, int32_t status, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return host->fail(host->instance, status, text);
}

/* See hw_host.count_memory; HW_OK if the host does not count. */
static inline int32_t hw_count_memory(const struct hw_host *host, void *device,
                                      int64_t bytes)
{
    if (host->size < offsetof(struct hw_host, count_memory) + sizeof host->count_memory)
        return HW_OK;
    return host->count_memory(host->instance, device, bytes);
}

/* See hw_host.leave_out. With an older host, only the log mentions it. */
static inline void hw_leave_out(const struct hw_host *host, const char *name,
                                const char *why)
{
    char line[1024];
    if (host->size >= offsetof(struct hw_host, leave_out) + sizeof host->leave_out) {
        host->leave_out(host->instance, name, why);
        return;
    }
    snprintf(line, sizeof line, "%s is left out: %s", name ? name : "a device",
             why ? why : "the plugin does not say why");
    host->log(host->instance, HW_LOG_INFO, line);
}

/* Returns a struct to the host: copies as much of `from` as the host has room for. Both
 * structs begin with `size`: the host has set the room in `to`, the plugin sets the sizeof of
 * its struct in `from`. */
static inline void hw_answer(void *to, const void *from)
{
    uint32_t bytes, room;
    memcpy(&bytes, from, sizeof bytes);
    memcpy(&room, to, sizeof room);
    if (bytes > room)
        bytes = room;
    if (bytes > sizeof bytes)
        memcpy((char *)to + sizeof bytes, (const char *)from + sizeof bytes,
               bytes - sizeof bytes);
}

/* Checks that a struct of the host, which begins with `size`, has only zeros beyond the
 * `bytes` bytes that the plugin knows: if (!hw_knows(desc, sizeof *desc)) return
 * HW_UNSUPPORTED. */
static inline int hw_knows(const void *of, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)of;
    uint32_t size;
    memcpy(&size, of, sizeof size);
    while (bytes < size && !at[bytes])
        bytes++;
    return bytes >= size;
}

/* Device facts with everything marked as unknown. Start from this in device_info(), so that
 * no device claims the PCI address 0. */
static inline struct hw_device_info hw_no_facts(void)
{
    struct hw_device_info info;
    memset(&info, 0, sizeof info);
    info.size = (uint32_t)sizeof info;
    info.pci_domain = info.pci_bus = info.pci_device = info.pci_function = -1;
    return info;
}

/* The sizes of all op structs of this header, for hw_plugin.op_sizes. */
#define HW_OP_SIZE_(NAME, name) (uint32_t)sizeof(struct hw_##name),
#define HW_OP_SIZES                                                                        \
    {                                                                                      \
        HW_OPS(HW_OP_SIZE_)                                                                \
    }

/* The manifest: an allocated note (ELF) or a section, which the host reads without loading
 * the file. Its text has one key=value per line. A host ignores keys that it does not know.
 *
 *   abi=1-1            oldest and newest ABI version served (HW_PLUGIN adds this line)
 *   name=cuda          the name of the backend, as users write it; at most 31 characters of
 *                      a-z, 0-9, _ and - (HW_PLUGIN adds this line)
 *   title=OpenCL       the name for display, at most 31 bytes; default: the name in
 *                      capitals
 *   vendor=NVIDIA      for display
 *   rank=10            default order, lower first. Usual ranks: discrete 10-39, integrated
 *                      40-59, generic GPU 60-79, CPU 90-99. Default 100: after the CPU
 *   match=pci:10de:*   hardware that makes loading the plugin worthwhile: a PCI device
 *                      (vendor:device in hexadecimal, * is any), or the file of a device
 *                      (node:/dev/nvidiactl). May repeat: one match is enough. Without a rule,
 *                      or if the settings name the plugin, the plugin is tried in any case
 *   needs=libcuda.so.1 a library that the plugin will dlopen(); may repeat; a|b: either one
 *   driver=/sys/...    a file or directory whose contents change when the driver does, such
 *                      as a file with its version; or a device file, for its permissions. May
 *                      repeat. When it changes, the plugin is tried again
 *   variable=CUDA_*    an environment variable that changes which devices the driver shows;
 *                      may repeat; a * at the end stands for any rest of the name. When it
 *                      changes, the plugin is tried again
 *   remedy=...         what the user should do if a library of `needs`, or a device, is missing
 *   build=...          stamp of the build; the same as the host's if built together
 */
#define HW_STRING__(x) #x
#define HW_STRING_(x)  HW_STRING__(x)
#if defined(_WIN32)
#define HW_NOTE_SECTION_ __attribute__((section(".hwnote"), used, aligned(4)))
#elif defined(__APPLE__)
#define HW_NOTE_SECTION_ __attribute__((section("__DATA,__hwnote"), used, aligned(4)))
#else
#define HW_NOTE_SECTION_ __attribute__((section(".note.hw"), used, aligned(4)))
#endif
#define HW_NOTE_TYPE 1
#define HW_MANIFEST_(lines)                                                                \
    HW_NOTE_SECTION_ static const struct {                                                 \
        uint32_t name_bytes, text_bytes, type;                                             \
        char name[4];                                                                      \
        char text[(sizeof(lines) + 3) / 4 * 4];                                            \
    } hw_manifest = { 4, (uint32_t)sizeof(lines), HW_NOTE_TYPE, "hw", lines }

/* Negotiates the ABI version and gives the host as much of the table as it has room for. */
static inline int32_t
hw_plugin_enter_(const struct hw_host *host, struct hw_plugin *plugin, const char *name,
                 int32_t (*fill)(const struct hw_host *host, struct hw_plugin *table))
{
    struct hw_plugin table;
    int32_t status;

    if (!host || !plugin || plugin->size < offsetof(struct hw_plugin, reserved))
        return HW_INVALID;
    if (host->abi_max < HW_ABI_OLDEST || host->abi_min > HW_ABI_VERSION)
        return hw_fail(host, HW_ABI, "plugin %s serves ABI %d to %d, this host %u to %u",
                       name, HW_ABI_OLDEST, HW_ABI_VERSION, (unsigned)host->abi_min,
                       (unsigned)host->abi_max);
    memset(&table, 0, sizeof table);
    table.size = plugin->size < sizeof table ? plugin->size : (uint32_t)sizeof table;
    table.abi = host->abi_max < HW_ABI_VERSION ? host->abi_max : HW_ABI_VERSION;
    table.name = name;
    status = fill(host, &table);
    if (status == HW_OK)
        memcpy(plugin, &table, table.size);
    return status;
}

/* Defines the manifest and hw_plugin_entry. Write it at file scope, without a semicolon:
 *
 *   static int32_t fill(const struct hw_host *host, struct hw_plugin *table);
 *   HW_PLUGIN("cuda", "vendor=NVIDIA\nrank=10\n", fill)
 *
 * fill() is called only if the ABI versions are compatible. It sets the slots of `table`,
 * which are all NULL, and returns HW_OK. It must not touch a driver. */
#define HW_PLUGIN(plugin_name, manifest_lines, fill)                                       \
    HW_MANIFEST_("abi=" HW_STRING_(HW_ABI_OLDEST) "-" HW_STRING_(                          \
        HW_ABI_VERSION) "\nname=" plugin_name "\n" manifest_lines);                        \
    HW_EXPORT int32_t hw_plugin_entry(const struct hw_host *host,                          \
                                      struct hw_plugin *plugin)                            \
    {                                                                                      \
        return hw_plugin_enter_(host, plugin, plugin_name, fill);                          \
    }

#if UINTPTR_MAX == UINT64_MAX
HW_STATIC_ASSERT_(buffer_is_frozen, sizeof(struct hw_buffer) == 48);
HW_STATIC_ASSERT_(transfer_is_packed, sizeof(struct hw_transfer) == 88);
HW_STATIC_ASSERT_(node_is_packed, sizeof(struct hw_node) == 16);
#endif

#ifdef __cplusplus
}
#endif
#endif
