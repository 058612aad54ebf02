/* SPDX-License-Identifier: MIT */
/* hw/plugin.h - the plugin ABI. Reading this file, types.h and ops.h is enough to write a plugin.
 *
 * A plugin is one shared object, hw_<name>.so (.dll, .dylib), that knows one vendor. It exports
 * hw_plugin_entry and nothing else, links no hw library, and carries a manifest that the host
 * reads without loading the file. HW_PLUGIN() at the end of this file makes both. A complete
 * small plugin is tests/plugins/discrete; docs/abi.md tells the story.
 *
 * Rules for every function below
 * - Answers an enum hw_status. The words go to hw_fail(), once, where they are known.
 * - No abort, exit, exception, longjmp, signal handler, print; no change of working directory,
 *   locale, environment or floating-point mode.
 * - A plugin leaves the thread's current vendor context or device as it found it (cuCtxSetCurrent,
 *   hipSetDevice).
 * - Any thread may call; one queue is used by one thread at a time, different queues in
 *   parallel. Handles are the plugin's opaque pointers; strings live as long as the plugin.
 * - A struct hw_buffer in an op, transfer or node lives until the queue has passed (of a node:
 *   until graph_destroy). The op and the transfer themselves, hw_arg, the tensors behind it, and
 *   every `desc` with its strings live only for the call.
 * - The host checks before it calls: pointers are valid, extents and strides agree, operands of
 *   an op lie inside their buffers. It can not check what lies in device memory (rows, lengths,
 *   positions): kernels clamp.
 * - `op` of an op's function, and `args` of supports() and of nodes, have at least op_sizes[op]
 *   bytes: what the host does not know is zero.
 * - Slots left NULL answer HW_UNSUPPORTED, except the required ones.
 * - An error that makes the device's context unusable is HW_LOST, from every call of that device
 *   on. After HW_LOST every function returns promptly: wait, close and free do not hang.
 *
 * Growth: within an ABI version structs only grow at the end and begin with `size`. The host
 * sets hw_plugin.size to the bytes it has room for; a plugin never writes past it, and the host
 * treats what an older plugin did not write as NULL. So it is with every struct that the host
 * hands over to be filled: hw_answer() writes what fits. The other way round, a plugin that gets
 * a struct with a larger `size` than it knows and non-zero bytes beyond (hw_knows() looks), or a
 * flag, dtype or kind that it does not know, answers HW_UNSUPPORTED: nothing is ignored in
 * silence. */
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

/* The ABI version that this header describes, and the oldest one that a plugin built with it
 * can still serve. The host has such a range, too; the highest common version is used. */
#define HW_ABI_VERSION 1
#define HW_ABI_OLDEST  1

enum hw_precision {
    HW_PRECISION_FP32 = 0, /* f32 inputs stay f32 (default) */
    HW_PRECISION_FP16 = 1, /* 16-bit or TF32 units may serve f32 inputs */
    HW_PRECISION_INT8 = 2  /* activations may be quantised against quantised weights */
};

/* What hw_host.spawn() runs out of process. */
struct hw_spawn {
    uint32_t size;
    uint32_t timeout_ms;
    const char *const *argv; /* NULL-terminated; argv[0] is a path */
    const void *input;       /* given on standard input */
    uint64_t input_bytes;
    void *output; /* standard output goes here, at most output_bytes */
    uint64_t output_bytes;
    uint64_t written; /* answered */
    int32_t exit_code;
    int32_t signal; /* 0: it was not killed */
};

/* What the host gives. One per open context; valid until the plugin's close() has returned.
 * A service that the host lacks answers HW_UNSUPPORTED. */
struct hw_host {
    uint32_t size;
    uint32_t abi_min, abi_max;
    uint32_t precision; /* enum hw_precision */
    void *instance; /* passed back to every service: two hosts may live in one process */

    /* One line for the log, without a newline. */
    void (*log)(void *instance, int32_t level, const char *text);
    /* Sets the thread's message and returns `status`. hw_fail() formats for it. */
    int32_t (*fail)(void *instance, int32_t status, const char *text);
    /* Runs a helper program and waits for it. */
    int32_t (*spawn)(void *instance, struct hw_spawn *spawn);

    uint64_t memory_limit; /* bytes per device that the host will ask for; 0: no limit */
    const char *cache_dir; /* the plugin's own directory, made on first use; "": no cache */
    const char *kernel;    /* HW_KERNEL: see hw_queue_desc.kernel; "": none */
    uint32_t threads;      /* threads for a CPU plugin; 0: as many as the process may use */
    uint32_t abi;          /* the version agreed on; set before open() */
};

/* The fixed prefix of every buffer: how a plugin finds its own memory in an op's tensors. The
 * host carves buffers out of larger allocations, so `offset` counts from the start of `impl`. It
 * is a multiple of 256, and of hw_device_info.buffer_alignment where that is more; buffers of one
 * `impl` do not overlap. (Of imported memory it is what buffer_import() has set.)
 *
 * `host` is set whenever the host can read and write the memory. It is then mapped for its whole
 * life and coherent: what the queue has passed is seen without another call, and what the host has
 * written is seen by what it submits after that. */
struct hw_buffer {
    void *impl;   /* the plugin's handle, from buffer_alloc() or buffer_import() */
    void *host;   /* address of this buffer's first byte for the host; NULL: not visible */
    void *device; /* the plugin's device */
    uint64_t offset; /* bytes from the start of impl to this buffer's first byte */
    uint64_t bytes;
    uint32_t flags; /* bits of enum hw_buffer_flag */
    uint32_t reserved;
};

/* The host address of `t`'s first element, for plugins that compute in host memory. */
static inline void *hw_tensor_address(const struct hw_tensor *t)
{
    return (char *)(t->buffer ? t->buffer->host : t->data) + t->offset;
}

struct hw_queue_desc {
    uint32_t size;
    /* bits of enum hw_queue_flag; HW_QUEUE_SYNCHRONOUS is the host's business */
    uint32_t flags;
    /* "" or NULL: the best rows. "portable": the last, portable row of each op. Else a
     * comma-separated list of <op>=<row>, or of <row>, which applies to the op that has it; a
     * name that no op has is HW_INVALID and lists the rows there are. */
    const char *kernel;
};

/* `rows` rows of `bytes` bytes from one place to another, in the queue's order. A NULL buffer
 * means the host address beside it. Offsets and addresses are those of the first row's first byte;
 * offsets count from the buffer's. Host memory is borrowed until the queue has passed the transfer.
 * Buffers belong to devices of this plugin. Rows of the destination do not overlap, nor do the two
 * places. hw_transfer_host() does all of it between two addresses. */
struct hw_transfer {
    uint32_t size;
    uint32_t reserved;
    const struct hw_buffer *dst;
    const struct hw_buffer *src;
    void *dst_host;
    const void *src_host;
    uint64_t dst_offset;
    uint64_t src_offset;
    uint64_t bytes;     /* of a row */
    uint64_t rows;      /* 0 and 1: one, the pitches do not count */
    uint64_t dst_pitch; /* from a row's first byte to the next one's: `bytes` at least */
    uint64_t src_pitch;
};

/* Does the transfer, `dst` and `src` being the addresses of its first bytes. */
static inline void hw_transfer_host(const struct hw_transfer *t, void *dst, const void *src)
{
    const uint64_t rows = t->rows > 1 ? t->rows : 1;
    uint64_t i;
    for (i = 0; t->bytes && i < rows; i++)
        memmove((char *)dst + i * t->dst_pitch, (const char *)src + i * t->src_pitch,
                (size_t)t->bytes);
}

/* One recorded op: `args` is the op's struct of `bytes` bytes, owned by the host and valid until
 * graph_destroy(). */
struct hw_node {
    uint32_t op;
    uint32_t bytes;
    const void *args;
};

/* An op that only this plugin has. The host checks the arguments against the
 * signature, which is written as in struct hw_user_kernel. */
struct hw_extension {
    uint32_t size;
    uint32_t reserved;
    const char *name; /* "<plugin>.<op>" */
    const char *signature;
    void *self;
    int32_t (*call)(void *self, void *queue, const struct hw_arg *args, uint32_t count);
};

/* One function per op, NULL where the plugin has none. It queues the work, or does it, and
 * answers HW_UNSUPPORTED before touching anything where no row of its table fits. */
struct hw_plugin_ops {
    uint32_t size;
    uint32_t reserved;
#define X(NAME, name)                                                                      \
    int32_t (*name)(void *device, void *queue, const struct hw_##name *op);
    HW_OPS(X)
#undef X
};

/* What the plugin gives. Names in the comments are the parameters that answer. */
struct hw_plugin {
    uint32_t size; /* set by the host */
    uint32_t abi;  /* set by the plugin: the version it speaks with this host */
    const char *name;
    const char *vendor;
    const char *version;
    const struct hw_plugin_ops *ops;
    const uint32_t *op_sizes; /* bytes of each op's struct, by enum hw_op; at most 4096 */
    uint32_t op_count;        /* entries of op_sizes */
    uint32_t reserved;

    /* All from here to transfer() are required.
     *
     * The instance. open() is the first that may touch a driver: HW_NO_DEVICE, with a message
     * that names the missing library and the remedy, where the vendor is not installed. Device
     * indices are stable while the instance lives. When close() has returned, no thread and no
     * callback of the plugin runs. */
    int32_t (*open)(const struct hw_host *host, void **self);
    void (*close)(void *self);
    int32_t (*device_count)(void *self, int32_t *count);
    int32_t (*device_info)(void *self, int32_t index, struct hw_device_info *info);
    int32_t (*device_open)(void *self, int32_t index, void **device);
    void (*device_close)(void *device);

    /* Queues: order of work. queue_wait answers the first error since the last wait, of this queue
     * alone; queue_close waits first. What was submitted before event_record, event_wait,
     * graph_launch, or a transfer to the host makes progress without further calls: a plugin that
     * batches commands submits them there. */
    int32_t (*queue_open)(void *device, const struct hw_queue_desc *desc, void **queue);
    void (*queue_close)(void *queue);
    int32_t (*queue_wait)(void *queue);

    /* Memory. buffer_alloc fills impl, host (see struct hw_buffer) and flags; aligned to 256 bytes,
     * and to hw_device_info.buffer_alignment where that is more. `bytes` are at most
     * hw_device_info.buffer_max. HW_BUFFER_PINNED comes with HW_BUFFER_HOST_VISIBLE, which asks for
     * `host`; a plugin that can not do what the flags ask answers HW_UNSUPPORTED. The host pools:
     * these are called seldom. */
    int32_t (*buffer_alloc)(void *device, uint64_t bytes, uint32_t flags,
                            struct hw_buffer *buffer);
    void (*buffer_free)(void *device, struct hw_buffer *buffer);
    int32_t (*transfer)(void *queue, const struct hw_transfer *transfer);

    /* From here on NULL answers HW_UNSUPPORTED, unless it says otherwise.
     *
     * Events of one device; flags: bits of enum hw_event_flag. event_query: HW_NOT_READY until the
     * event has passed; asked again, without another call, it reaches HW_OK in the end. An event
     * never recorded has passed. event_wait and event_callback mean the record that was last at the
     * call. event_destroy may come before it has passed.
     *
     * event_wait: the event may belong to another device of this plugin. HW_UNSUPPORTED: the host
     * waits. HW_LOST: the queue's device is.
     *
     * Several callbacks may be registered for an event. Each is called once, from any thread: after
     * the event has passed, or when the device is lost, or from event_destroy; fn calls nothing of
     * the plugin.
     *
     * event_elapsed: in milliseconds; HW_NOT_READY if one has not passed. The host has seen to
     * HW_EVENT_TIMING and HW_QUEUE_TIMING. */
    int32_t (*event_create)(void *device, uint32_t flags, void **event);
    void (*event_destroy)(void *event);
    int32_t (*event_record)(void *event, void *queue);
    int32_t (*event_wait)(void *queue, void *event);
    int32_t (*event_sync)(void *event);
    int32_t (*event_query)(void *event);
    int32_t (*event_callback)(void *event, void (*fn)(void *user), void *user);
    int32_t (*event_elapsed)(void *start, void *end, double *ms);

    /* Whether some row of the device computes this; if not, `why` says in words why. Only dtype,
     * rank, extents, strides, layout and scalars count: `buffer` may be NULL. `scratch`:
     * bytes of device memory that the op will ask for beyond its operands. Launches nothing. NULL:
     * nobody can tell without a call, so that hw_device_supports() answers HW_OK for whatever has
     * a slot; hw verify counts as supported what was computed. */
    int32_t (*supports)(void *device, uint32_t op, const void *args, char *why,
                        size_t why_size, uint64_t *scratch);
    /* The rows of `op`, best first, the portable one last; HW_END past the end. */
    int32_t (*kernel_info)(void *device, uint32_t op, uint32_t index,
                           struct hw_kernel_info *info);

    /* Graphs. Without graph_build the host replays the nodes one by one. Rows are those of the
     * queue, which has recorded the nodes; building submits nothing to it. A graph may be launched
     * again, on any queue of its device, before an earlier launch has passed: a plugin whose graph
     * has state orders them. */
    int32_t (*graph_build)(void *queue, const struct hw_node *nodes, uint32_t count,
                           void **graph);
    int32_t (*graph_launch)(void *queue, void *graph);
    void (*graph_destroy)(void *graph);

    /* The device's own layout for weights. pack_size answers bytes and a layout id other than 0;
     * pack writes dst, whose buffer has that many bytes. */
    int32_t (*pack_size)(void *device, const struct hw_tensor *src, uint64_t *bytes,
                         uint32_t *layout);
    int32_t (*pack)(void *queue, const struct hw_tensor *dst, const struct hw_tensor *src);

    /* Wrapping, not copying. Memory and queue stay their maker's: buffer_free and queue_close leave
     * them, but queue_close waits first as it always does. `kind` is never NULL. "host" is a host
     * address, which the host has checked; the others are the plugin's, "<plugin>.<what>", listed
     * in its documentation, and their handles nobody has looked at. HW_UNSUPPORTED: a kind that is
     * not its own, a flag or an offset that it can not serve. buffer_import fills what buffer_alloc
     * does, and `offset` where that is how it finds the first byte. */
    int32_t (*buffer_import)(void *device, const struct hw_import *desc,
                             struct hw_buffer *buffer);
    int32_t (*queue_import)(void *device, const struct hw_queue_desc *desc,
                            const char *kind, void *handle, void **queue);

    /* Extension ops, by index; HW_END past the end. */
    int32_t (*extension)(void *device, uint32_t index, struct hw_extension *extension);

    /* User kernels. The host has checked the arguments against the signature. */
    int32_t (*kernel_build)(void *device, const struct hw_user_kernel *desc, void **kernel);
    int32_t (*kernel_launch)(void *queue, void *kernel, uint64_t groups,
                             const struct hw_arg *args, uint32_t count);
    void (*kernel_destroy)(void *kernel);
};

/* The one exported symbol. Pure: fills the table and returns, touches no driver, may be called
 * again; HW_PLUGIN() writes it. */
HW_EXPORT int32_t hw_plugin_entry(const struct hw_host *host, struct hw_plugin *plugin);

/* Formats into the host's message and returns `status`: return hw_fail(host, HW_DRIVER, ...). */
#if defined(__GNUC__)
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

/* Answers in a struct of the host's: as much of `from` as both know. Both begin with `size`: the
 * host's says how much room there is, `from`'s is its sizeof. */
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

/* Whether a struct of the host's, which begins with `size`, says nothing beyond the `bytes` bytes
 * that the plugin knows of it: if (!hw_knows(desc, sizeof *desc)) return HW_UNSUPPORTED. */
static inline int hw_knows(const void *of, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)of;
    uint32_t size;
    memcpy(&size, of, sizeof size);
    while (bytes < size && !at[bytes])
        bytes++;
    return bytes >= size;
}

/* What device_info answers of a device of which nothing can be read, to begin with. */
static inline struct hw_device_info hw_no_facts(void)
{
    struct hw_device_info info;
    memset(&info, 0, sizeof info);
    info.size = (uint32_t)sizeof info;
    info.pci_domain = info.pci_bus = info.pci_device = info.pci_function = -1;
    return info;
}

/* The sizes of all op structs, for hw_plugin.op_sizes. */
#define HW_OP_SIZE_(NAME, name) (uint32_t)sizeof(struct hw_##name),
#define HW_OP_SIZES                                                                        \
    {                                                                                      \
        HW_OPS(HW_OP_SIZE_)                                                                \
    }

/* The manifest: an allocated note that the host reads without loading the file. Its text has
 * one key=value per line; keys unknown to a host are ignored:
 *
 *   abi=1-1            oldest and newest ABI version served (required; HW_PLUGIN adds it)
 *   name=cuda          what users call the backend; [a-z0-9_-], at most 31 (required; added)
 *   title=OpenCL       the backend as people write it, at most 31 bytes, no spaces around it;
 *                      default: the name in capitals
 *   vendor=NVIDIA      for people
 *   rank=10            default order, lower first: discrete 10-39, integrated 40-59, generic
 *                      GPU 60-79, CPU 90-99; default 80
 *   match=pci:10de:*   hardware that makes the plugin worth loading (vendor:device, * any); may
 *                      repeat; none: always worth it
 *   needs=libcuda.so.1 a library that it will dlopen; may repeat, or name alternatives a|b
 *   remedy=...         what to do when `needs` is missing
 *   build=...          stamp of the build; equal to the host's: built together
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

/* Gives the host as much of `table` as it has room for. */
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

/* At file scope, without a semicolon: HW_PLUGIN("cuda", "vendor=NVIDIA\nrank=10\n", fill) makes
 * the manifest and hw_plugin_entry. `fill` is a static function of the plugin's. It is called
 * when the ABI versions fit and sets the slots of `table`, which are all NULL; it touches no
 * driver and needs to check nothing. */
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
