/* SPDX-License-Identifier: MIT */
/* harness.h - a minimal plugin host: it loads the file that HW_CPU_PLUGIN names and keeps the last
 * message. For tests of the plugin alone, without the library. */
#ifndef HARNESS_H
#define HARNESS_H

#include <hw/plugin.h>

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct harness {
    struct hw_host host;
    struct hw_plugin plugin;
    void *self, *device, *queue;
    char message[1024];
    char log[4096]; /* all lines */
    int64_t memory; /* bytes that the plugin has now */
};

static inline void harness_log(void *instance, int32_t level, const char *text)
{
    struct harness *h = instance;
    const size_t n = strlen(h->log);
    (void)level;
    snprintf(h->log + n, sizeof h->log - n, "%s\n", text);
}

static inline int32_t harness_fail(void *instance, int32_t status, const char *text)
{
    struct harness *h = instance;
    snprintf(h->message, sizeof h->message, "%s", text);
    return status;
}

static inline int32_t harness_count_memory(void *instance, void *device, int64_t bytes)
{
    struct harness *h = instance;
    (void)device;
    h->memory += bytes;
    return HW_OK;
}

typedef int32_t entry_fn(const struct hw_host *host, struct hw_plugin *plugin);

static inline entry_fn *harness_entry(void)
{
    const char *path = getenv("HW_CPU_PLUGIN");
    assert_non_null(path);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    entry_fn *entry;
    *(void **)&entry = dlsym(library, "hw_plugin_entry");
    assert_non_null(entry);
    return entry;
}

static inline void harness_host(struct harness *h, const char *kernel, uint32_t threads)
{
    *h = (struct harness) {
        .host = {
            .size = sizeof h->host,
            .abi_min = HW_ABI_OLDEST,
            .abi_max = HW_ABI_VERSION,
            .instance = h,
            .log = harness_log,
            .fail = harness_fail,
            .count_memory = harness_count_memory,
            .cache_dir = "",
            .kernel = kernel,
            .threads = threads,
            .abi = HW_ABI_VERSION,
        },
        .plugin = { .size = sizeof h->plugin },
    };
}

/* Starts the plugin, from its entry to a queue. */
static inline void harness_start(struct harness *h)
{
    assert_int_equal(harness_entry()(&h->host, &h->plugin), HW_OK);
    assert_int_equal(h->plugin.open(&h->host, &h->self), HW_OK);
    assert_int_equal(h->plugin.device_open(h->self, 0, &h->device), HW_OK);
    const struct hw_queue_desc desc = { .size = sizeof desc };
    assert_int_equal(h->plugin.queue_open(h->device, &desc, &h->queue), HW_OK);
}

/* `kernel` is the value of HW_KERNEL. */
static inline void harness_open(struct harness *h, const char *kernel, uint32_t threads)
{
    harness_host(h, kernel, threads);
    harness_start(h);
}

static inline void harness_close(struct harness *h)
{
    h->plugin.queue_close(h->queue);
    h->plugin.device_close(h->device);
    h->plugin.close(h->self);
    assert_int_equal(h->memory, 0);
}

/* A contiguous tensor over host memory; extents end with a 0. */
static inline struct hw_tensor harness_tensor(void *data, int32_t dtype,
                                              const int64_t *extents)
{
    struct hw_tensor t = { .data = data, .dtype = dtype };
    while (t.rank < HW_MAX_RANK && extents[t.rank]) {
        t.extent[t.rank] = extents[t.rank];
        t.rank++;
    }
    int64_t stride = hw_dtype_bytes(dtype);
    for (int i = t.rank - 1; i >= 0; i--) {
        t.stride[i] = stride;
        stride *= i == t.rank - 1 ? t.extent[i] / hw_dtype_block(dtype) : t.extent[i];
    }
    return t;
}
#define TENSOR(data, dtype, ...)                                                           \
    harness_tensor(data, dtype, (const int64_t[]){ __VA_ARGS__, 0 })

/* Both tensors have the same extents. */
static inline void harness_convert(struct harness *h, struct hw_tensor dst,
                                   struct hw_tensor src)
{
    const struct hw_copy op = { .src = src, .dst = dst };
    if (h->plugin.ops->copy(h->device, h->queue, &op))
        fail_msg("%s", h->message);
}

/* The next number of a sequence from -1 to 1, reproducible for the same state. */
static inline float harness_noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

#endif
