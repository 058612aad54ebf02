/* SPDX-License-Identifier: MIT */
/* fake_driver.c - a stand-in for libcuda.so.1 on the host, with the functions that plugins/cuda
 * calls. This file has devices, contexts and memory, which is host memory; fake_stream.c has
 * streams, events and graphs, fake_module.c modules and launches.
 *
 * A stream is a thread, a launch runs the portable kernel of that name as plain C. Tuned kernels
 * and the application's kernels exist only as machine code or PTX: they compute nothing, but a test
 * may look at their launches. The default devices are too old for tuned kernels.
 *
 * It is as strict as a driver: calls need a current context, and handles belong to it. After a
 * fatal error of a context, every later call in the context returns that error.
 *
 * STANDIN_DEVICES lists the compute capabilities of its devices: "7.5 7.5 7.5 3.7" if unset.
 * STANDIN_CUDA is the CUDA version that it supports: "13.0" if unset. STANDIN_PART is the end of
 * the devices' names. */
#define _GNU_SOURCE /* RTLD_NOLOAD */
#include "fake_driver.h"

#include "driver_state.h"
#include "fake.h"
#include "faults.h"
#include "objects.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

static const struct {
    int error;
    const char *name, *text;
} errors[] = {
    { INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
    { OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
    { NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
    { NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
    { INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
    { INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid" },
    { INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
    { INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
    { PEER_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
      "peer access is not supported between these two devices" },
    { NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
    { NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready" },
    { ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
      "an illegal memory access was encountered" },
    { LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure" },
    { SYSTEM_DRIVER_MISMATCH, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
      "system has unsupported display driver / cuda driver combination" },
};

/* ---- devices and contexts ---- */

enum { MOST_STANDIN_DEVICES = 4, DEPTH = 8 };

pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t started = PTHREAD_ONCE_INIT;
static bool initialised;
static int capabilities[MOST_STANDIN_DEVICES], devices;
static struct context contexts[MOST_STANDIN_DEVICES];
static _Thread_local struct context *stack[DEPTH];
static _Thread_local int depth;

static void start(void)
{
    const char *at = getenv("STANDIN_DEVICES");
    int major, minor, length;
    for (at = at ? at : "7.5 7.5 7.5 3.7";
         devices < MOST_STANDIN_DEVICES &&
         sscanf(at, "%d.%d%n", &major, &minor, &length) == 2;
         at += length)
        capabilities[devices++] = major * 10 + minor;
}

struct context *current(void)
{
    return depth ? stack[depth - 1] : NULL;
}

int fake_driver_depth(void)
{
    return depth;
}

/* Calls that are valid without a context, or in a lost one. */
static bool is_global(int call)
{
    return call <= CALL_context_pop;
}

static bool is_fatal(int error)
{
    return error == ILLEGAL_ADDRESS || error == LAUNCH_FAILED;
}

/* A fatal error discards all work in its context. */
static int enter_context(struct context *context, int failure)
{
    pthread_mutex_lock(&driver_lock);
    const int before = context->lost;
    if (!before && is_fatal(failure))
        context->lost = failure;
    pthread_mutex_unlock(&driver_lock);
    if (!before && is_fatal(failure))
        for_streams(context, stream_discard);
    return before ? before : failure;
}

/* A caller that cannot enter a context cannot wait for it either: its work is already discarded. */
int standin_enter(int call)
{
    const int failure = faults_enter(call);
    struct context *context = current();
    pthread_once(&started, start);
    if (!initialised && call > CALL_error_string)
        return NOT_INITIALIZED;
    if (failure && call == CALL_context_push)
        for_streams(NULL, stream_wait);
    if (is_global(call))
        return failure;
    return context && context->retained ? enter_context(context, failure) : INVALID_CONTEXT;
}

int fake_init(unsigned flags)
{
    if (!devices)
        return NO_DEVICE;
    initialised = true;
    return flags ? INVALID_VALUE : SUCCESS;
}

int cuda_of_driver(void)
{
    const char *text = getenv("STANDIN_CUDA");
    int major = 13, minor = 0;
    return text && sscanf(text, "%d.%d", &major, &minor) != 2 ? 0
                                                              : major * 1000 + minor * 10;
}

int fake_driver_version(int *version)
{
    *version = cuda_of_driver();
    return SUCCESS;
}

static atomic_uint found;

unsigned fake_driver_found(void)
{
    return found;
}

/* All functions here have had their present forms since CUDA 12.0. */
int fake_find_function(const char *name, void **function, int version, uint64_t flags,
                       int *status)
{
    enum { FIRST = 12000, MOST = 13000, LEGACY_STREAM = 1, NO_SUCH_FUNCTION = 1 };
    void *self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    char second[64];
    if (version < FIRST || version > MOST || flags != LEGACY_STREAM || strstr(name, "_v"))
        return INVALID_VALUE;
    snprintf(second, sizeof second, "%s_v2", name);
    *function = self ? dlsym(self, second) : NULL;
    if (!*function)
        *function = self ? dlsym(self, name) : NULL;
    *status = *function ? 0 : NO_SUCH_FUNCTION;
    found += *function != NULL;
    if (self)
        dlclose(self);
    return SUCCESS;
}

static int find_error(int error)
{
    const int count = (int)(sizeof errors / sizeof errors[0]);
    int i = 0;
    while (i < count && errors[i].error != error)
        i++;
    return i < count ? i : -1;
}

int fake_error_name(int error, const char **name)
{
    const int i = find_error(error);
    *name = i < 0 ? NULL : errors[i].name;
    return i < 0 ? INVALID_VALUE : SUCCESS;
}

int fake_error_string(int error, const char **text)
{
    const int i = find_error(error);
    *text = i < 0 ? NULL : errors[i].text;
    return i < 0 ? INVALID_VALUE : SUCCESS;
}

int fake_device_count(int *count)
{
    *count = devices;
    return SUCCESS;
}

int fake_device_get(int *device, int index)
{
    *device = index;
    return index < 0 || index >= devices ? INVALID_DEVICE : SUCCESS;
}

int fake_device_name(char *name, int size, int device)
{
    const char *part = getenv("STANDIN_PART");
    snprintf(name, (size_t)size, "Stand-in %d%s", device, part ? part : "");
    return SUCCESS;
}

int fake_device_uuid(void *uuid, int device)
{
    memset(uuid, 0x10 + device, 16);
    return SUCCESS;
}

int fake_device_memory(size_t *bytes, int device)
{
    (void)device;
    *bytes = FAKE_DRIVER_MEMORY;
    return SUCCESS;
}

static bool has_tuned_kernels(int device)
{
    return capabilities[device] >= 80;
}

/* As on cards of this capability. */
static int shared_most(int device)
{
    const int capability = capabilities[device];
    const int kib = capability < 80         ? 64
                    : capability == 80      ? 163
                    : capability / 10 == 12 ? 99
                                            : 227;
    return kib << 10;
}

int capability_of_context(void)
{
    return capabilities[current() - contexts];
}

int shared_most_of_context(void)
{
    return shared_most((int)(current() - contexts));
}

int fake_device_attribute(int *value, int attribute, int device)
{
    enum { UNITS = 16, INTEGRATED = 18, BUS = 33, SLOT = 34, DOMAIN = 50 };
    enum { MAJOR = 75, MINOR = 76, SHARED_MOST_OF_GROUP = 97 };
    const struct {
        int attribute, value;
    } table[] = {
        { UNITS, has_tuned_kernels(device) ? 132 : 2 },
        { INTEGRATED, 0 },
        { BUS, 1 + device },
        { SLOT, 0 },
        { DOMAIN, 0 },
        { MAJOR, capabilities[device] / 10 },
        { MINOR, capabilities[device] % 10 },
        { SHARED_MOST_OF_GROUP, shared_most(device) },
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].attribute == attribute) {
            *value = table[i].value;
            return SUCCESS;
        }
    return INVALID_VALUE;
}

int fake_context_retain(void **context, int device)
{
    pthread_mutex_lock(&driver_lock);
    contexts[device].retained++;
    pthread_mutex_unlock(&driver_lock);
    *context = &contexts[device];
    objects_add(*context);
    return SUCCESS;
}

/* The last release ends the context, with its error and its memory. */
int fake_context_release(int device)
{
    struct context *context = &contexts[device];
    if (!objects_remove(context))
        return INVALID_CONTEXT;
    pthread_mutex_lock(&driver_lock);
    if (--context->retained == 0) {
        context->lost = 0;
        context->used = 0;
        context->reached = 0;
    }
    pthread_mutex_unlock(&driver_lock);
    return SUCCESS;
}

/* Devices with tuned kernels have a link. */
int fake_peer_can(int *can, int device, int peer)
{
    *can = device != peer && has_tuned_kernels(device) && has_tuned_kernels(peer);
    return SUCCESS;
}

int fake_context_reach(void *peer, unsigned flags)
{
    const int of_peer = (int)((struct context *)peer - contexts);
    const int device = (int)(current() - contexts);
    const unsigned bit = 1u << of_peer;
    int can;
    fake_peer_can(&can, device, of_peer);
    if (flags)
        return INVALID_VALUE;
    if (!can)
        return PEER_UNSUPPORTED;
    pthread_mutex_lock(&driver_lock);
    const bool before = contexts[device].reached & bit;
    contexts[device].reached |= bit;
    pthread_mutex_unlock(&driver_lock);
    return before ? PEER_ENABLED : SUCCESS;
}

int fake_context_push(void *context)
{
    if (depth == DEPTH)
        return INVALID_VALUE;
    stack[depth++] = context;
    return SUCCESS;
}

int fake_context_pop(void **context)
{
    if (!depth)
        return INVALID_CONTEXT;
    *context = stack[--depth];
    return SUCCESS;
}

/* ---- memory ---- */

static bool take(uint64_t bytes)
{
    struct context *context = current();
    pthread_mutex_lock(&driver_lock);
    const bool fits = bytes <= FAKE_DRIVER_MEMORY - context->used;
    if (fits)
        context->used += bytes;
    pthread_mutex_unlock(&driver_lock);
    return fits;
}

uint64_t fake_driver_used(int device)
{
    pthread_mutex_lock(&driver_lock);
    const uint64_t used = contexts[device].used;
    pthread_mutex_unlock(&driver_lock);
    return used;
}

/* The header in front of each allocation, padded to keep the alignment. */
enum { HEADER = 256 };

struct header {
    size_t bytes;
    struct context *context;
    struct header *next, *before;
};

static struct header allocated = { .next = &allocated, .before = &allocated };

static uint64_t start_of(const struct header *header)
{
    return (uint64_t)(uintptr_t)header + HEADER;
}

static void list(struct header *header)
{
    pthread_mutex_lock(&driver_lock);
    header->before = &allocated;
    header->next = allocated.next;
    header->next->before = header;
    allocated.next = header;
    pthread_mutex_unlock(&driver_lock);
}

int fake_memory_info(size_t *free, size_t *total)
{
    *total = FAKE_DRIVER_MEMORY;
    *free = FAKE_DRIVER_MEMORY - current()->used;
    return SUCCESS;
}

int fake_memory_alloc(uint64_t *address, size_t bytes)
{
    if (!bytes)
        return INVALID_VALUE;
    if (!take(bytes))
        return OUT_OF_MEMORY;
    struct header *memory = aligned_alloc(HEADER,
                                          (HEADER + bytes + HEADER - 1) / HEADER * HEADER);
    if (!memory)
        return OUT_OF_MEMORY;
    memory->bytes = bytes;
    memory->context = current();
    list(memory);
    *address = start_of(memory);
    objects_add(memory);
    return SUCCESS;
}

int fake_memory_free(uint64_t address)
{
    struct header *memory = (void *)(uintptr_t)(address - HEADER);
    if (!objects_remove(memory))
        return INVALID_VALUE;
    pthread_mutex_lock(&driver_lock);
    current()->used -= memory->bytes;
    memory->next->before = memory->before;
    memory->before->next = memory->next;
    pthread_mutex_unlock(&driver_lock);
    free(memory);
    return SUCCESS;
}

int fake_host_alloc(void **host, size_t bytes, unsigned flags)
{
    (void)flags;
    *host = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!*host)
        return OUT_OF_MEMORY;
    objects_add(*host);
    return SUCCESS;
}

int fake_host_free(void *host)
{
    if (!objects_remove(host))
        return INVALID_VALUE;
    free(host);
    return SUCCESS;
}

int fake_host_register(void *host, size_t bytes, unsigned flags)
{
    (void)flags;
    if (!host || !bytes)
        return INVALID_VALUE;
    objects_add(host);
    return SUCCESS;
}

int fake_host_unregister(void *host)
{
    return objects_remove(host) ? SUCCESS : INVALID_VALUE;
}

int fake_host_address(uint64_t *address, void *host, unsigned flags)
{
    *address = (uint64_t)(uintptr_t)host;
    return flags ? INVALID_VALUE : SUCCESS;
}

static const struct fake_memory *told;

void fake_driver_know(const struct fake_memory *memory)
{
    told = memory;
}

/* Zeros if the address is unknown. */
static struct fake_memory known_of(uint64_t address)
{
    struct fake_memory known = { 0 };
    if (told && address - told->start < told->bytes)
        return *told;
    pthread_mutex_lock(&driver_lock);
    for (const struct header *at = allocated.next; at != &allocated; at = at->next)
        if (address - start_of(at) < at->bytes)
            known = (struct fake_memory){ .start = start_of(at),
                                          .bytes = at->bytes,
                                          .context = at->context,
                                          .kind = DEVICE_MEMORY,
                                          .device = (int)(at->context - contexts) };
    pthread_mutex_unlock(&driver_lock);
    return known;
}

int fake_pointer_facts(unsigned count, int *asked, void **answers, uint64_t address)
{
    const struct fake_memory known = known_of(address);
    const struct {
        int asked;
        const void *answer;
        size_t bytes;
    } facts[] = {
        { POINTER_CONTEXT, &known.context, sizeof known.context },
        { POINTER_KIND, &known.kind, sizeof known.kind },
        { POINTER_MANAGED, &known.managed, 1 }, /* a bool */
        { POINTER_DEVICE, &known.device, sizeof known.device },
        { POINTER_START, &known.start, sizeof known.start },
        { POINTER_BYTES, &known.bytes, sizeof known.bytes },
    };
    for (unsigned i = 0; i < count; i++) {
        size_t k = 0;
        while (k < sizeof facts / sizeof *facts && facts[k].asked != asked[i])
            k++;
        if (k == sizeof facts / sizeof *facts)
            return INVALID_VALUE;
        memcpy(answers[i], facts[k].answer, facts[k].bytes);
    }
    return SUCCESS;
}
