/* SPDX-License-Identifier: MIT */
/* fake_driver.c - a stand-in for libcuda.so.1: what plugins/cuda calls, on the host. Memory is the
 * host's, a stream is a thread, a launch runs the portable kernel of that name as plain C. Of other
 * kernels, tuned ones or those of the application, there is machine code or PTX only: they compute
 * nothing, and a test may look at their launches. The devices that there are if nothing else is
 * asked for are too old for tuned kernels.
 *
 * It is strict where a driver is: calls need a current context, and handles belong to it. After
 * an error that a context does not survive, every later call in the context returns the same.
 *
 * STANDIN_DEVICES lists the compute capabilities of its devices: "7.5 7.5 7.5 3.7" if unset. */
#include "fake_driver.h"

#include "cuda.h"
#include "fake.h"
#include "faults.h"
#include "kernels.h"
#include "objects.h"
#include "stream.h"

#include <stdlib.h>

/* Results that the plugin does not know. */
enum {
    SUCCESS = 0,
    NOT_INITIALIZED = 3,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    SYSTEM_DRIVER_MISMATCH = 803,
};

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

struct context {
    int retained;
    int lost; /* the error that it did not survive */
    uint64_t used;
};

struct fake_stream {
    struct context *context;
    struct stream *stream;
    struct fake_stream *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_stream *streams;
static pthread_once_t started = PTHREAD_ONCE_INIT;
static bool initialised;
static int capabilities[MOST_STANDIN_DEVICES], devices;
static void (*watcher)(const struct fake_launch *launch);
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

static struct context *current(void)
{
    return depth ? stack[depth - 1] : NULL;
}

int fake_driver_depth(void)
{
    return depth;
}

/* Calls that mean something without a context, or in one that is lost. */
static bool is_global(int call)
{
    return call <= CALL_context_pop;
}

static bool is_fatal(int error)
{
    return error == ILLEGAL_ADDRESS || error == LAUNCH_FAILED;
}

/* Does fn for the streams of a context, or of all. */
static void for_streams(const struct context *context, void (*fn)(struct stream *stream))
{
    pthread_mutex_lock(&lock);
    for (struct fake_stream *at = streams; at; at = at->next)
        if (!context || at->context == context)
            fn(at->stream);
    pthread_mutex_unlock(&lock);
}

/* An error that a context does not survive ends all work in it. */
static int enter_context(struct context *context, int failure)
{
    pthread_mutex_lock(&lock);
    const int before = context->lost;
    if (!before && is_fatal(failure))
        context->lost = failure;
    pthread_mutex_unlock(&lock);
    if (!before && is_fatal(failure))
        for_streams(context, stream_discard);
    return before ? before : failure;
}

/* Whoever cannot enter a context cannot wait for it: so nothing is left to be waited for. */
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

int fake_driver_version(int *version)
{
    *version = 13000;
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
    snprintf(name, (size_t)size, "Stand-in %d", device);
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

static int shared_most(int device)
{
    return (has_tuned_kernels(device) ? 227 : 64) << 10;
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
    pthread_mutex_lock(&lock);
    contexts[device].retained++;
    pthread_mutex_unlock(&lock);
    *context = &contexts[device];
    objects_add(*context);
    return SUCCESS;
}

/* With the last reference, the context ends, and its error and its memory with it. */
int fake_context_release(int device)
{
    struct context *context = &contexts[device];
    if (!objects_remove(context))
        return INVALID_CONTEXT;
    pthread_mutex_lock(&lock);
    if (--context->retained == 0) {
        context->lost = 0;
        context->used = 0;
    }
    pthread_mutex_unlock(&lock);
    return SUCCESS;
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
    pthread_mutex_lock(&lock);
    const bool fits = bytes <= FAKE_DRIVER_MEMORY - context->used;
    if (fits)
        context->used += bytes;
    pthread_mutex_unlock(&lock);
    return fits;
}

uint64_t fake_driver_used(int device)
{
    pthread_mutex_lock(&lock);
    const uint64_t used = contexts[device].used;
    pthread_mutex_unlock(&lock);
    return used;
}

/* What stands before each allocation: its size, and room to keep the alignment. */
enum { HEADER = 256 };

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
    unsigned char *memory = aligned_alloc(HEADER,
                                          (HEADER + bytes + HEADER - 1) / HEADER * HEADER);
    if (!memory)
        return OUT_OF_MEMORY;
    memcpy(memory, &bytes, sizeof bytes);
    *address = (uint64_t)(uintptr_t)(memory + HEADER);
    objects_add(memory);
    return SUCCESS;
}

int fake_memory_free(uint64_t address)
{
    unsigned char *memory = (unsigned char *)(uintptr_t)address - HEADER;
    size_t bytes;
    if (!objects_remove(memory))
        return INVALID_VALUE;
    memcpy(&bytes, memory, sizeof bytes);
    pthread_mutex_lock(&lock);
    current()->used -= bytes;
    pthread_mutex_unlock(&lock);
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

/* ---- streams ---- */

/* NULL unless the stream is one of the current context. */
static struct stream *stream_of(void *handle)
{
    const struct fake_stream *stream = handle;
    return stream && stream->context == current() ? stream->stream : NULL;
}

int fake_stream_create(void **out, unsigned flags)
{
    struct fake_stream *stream = calloc(1, sizeof *stream);
    (void)flags;
    if (!stream || !(stream->stream = stream_open())) {
        free(stream);
        return OUT_OF_MEMORY;
    }
    stream->context = current();
    pthread_mutex_lock(&lock);
    stream->next = streams;
    streams = stream;
    pthread_mutex_unlock(&lock);
    objects_add(stream);
    *out = stream;
    return SUCCESS;
}

int fake_stream_destroy(void *handle)
{
    struct fake_stream *stream = handle;
    if (!objects_remove(stream))
        return INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    struct fake_stream **at = &streams;
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    pthread_mutex_unlock(&lock);
    stream_close(stream->stream);
    free(stream);
    return SUCCESS;
}

int fake_stream_wait(void *handle)
{
    struct stream *stream = stream_of(handle);
    if (!stream || stream_records(stream))
        return INVALID_HANDLE;
    stream_wait(stream);
    return SUCCESS;
}

int fake_context_wait(void)
{
    return SUCCESS;
}

int fake_fill(uint64_t to, unsigned char value, size_t bytes, void *handle)
{
    struct stream *stream = stream_of(handle);
    if (!stream)
        return INVALID_HANDLE;
    stream_submit_fill(stream, (void *)(uintptr_t)to, value, bytes);
    return SUCCESS;
}

int fake_copy_rows(const struct copy_rows *rows, void *handle)
{
    struct stream *stream = stream_of(handle);
    const struct stream_copy copy = { .to = (void *)(uintptr_t)rows->to,
                                      .from = (const void *)(uintptr_t)rows->from,
                                      .to_pitch = rows->to_pitch,
                                      .from_pitch = rows->from_pitch,
                                      .bytes = rows->bytes,
                                      .rows = rows->rows };
    if (!stream)
        return INVALID_HANDLE;
    if (rows->from_kind != ANY_MEMORY || rows->to_kind != ANY_MEMORY ||
        rows->from_pitch < rows->bytes || rows->to_pitch < rows->bytes)
        return INVALID_VALUE;
    stream_submit_copy(stream, &copy);
    return SUCCESS;
}

int fake_copy(uint64_t to, uint64_t from, size_t bytes, void *handle)
{
    struct stream *stream = stream_of(handle);
    const struct stream_copy copy = { .to = (void *)(uintptr_t)to,
                                      .from = (const void *)(uintptr_t)from,
                                      .bytes = bytes,
                                      .rows = 1 };
    if (!stream)
        return INVALID_HANDLE;
    stream_submit_copy(stream, &copy);
    return SUCCESS;
}

struct host_call {
    void (*fn)(void *stream, int status, void *user);
    void *stream, *user;
};

static void run_host_call(void *data)
{
    const struct host_call *call = data;
    call->fn(call->stream, SUCCESS, call->user);
}

int fake_stream_callback(void *handle, void (*fn)(void *stream, int status, void *user),
                         void *user, unsigned flags)
{
    struct stream *stream = stream_of(handle);
    const struct host_call call = { fn, handle, user };
    if (!stream || flags)
        return INVALID_HANDLE;
    stream_submit_lasting(stream, run_host_call, &call, sizeof call);
    return SUCCESS;
}

/* ---- events ---- */

struct fake_event {
    struct context *context;
    pthread_mutex_t lock;
    struct moment *last; /* NULL: never recorded */
    bool timed;
};

int fake_event_create(void **out, unsigned flags)
{
    enum { NO_TIMING = 2 };
    struct fake_event *event = calloc(1, sizeof *event);
    if (!event)
        return OUT_OF_MEMORY;
    event->context = current();
    event->timed = !(flags & NO_TIMING);
    pthread_mutex_init(&event->lock, NULL);
    objects_add(event);
    *out = event;
    return SUCCESS;
}

int fake_event_destroy(void *handle)
{
    struct fake_event *event = handle;
    if (!objects_remove(event))
        return INVALID_HANDLE;
    moment_drop(event->last);
    pthread_mutex_destroy(&event->lock);
    free(event);
    return SUCCESS;
}

/* Takes a reference. */
static struct moment *last_of(struct fake_event *event)
{
    pthread_mutex_lock(&event->lock);
    struct moment *moment = event->last;
    if (moment)
        moment_hold(moment);
    pthread_mutex_unlock(&event->lock);
    return moment;
}

int fake_event_record(void *handle, void *stream_handle)
{
    struct fake_event *event = handle;
    struct stream *stream = stream_of(stream_handle);
    if (!stream || event->context != current())
        return INVALID_HANDLE;
    struct moment *moment = moment_new();
    stream_mark(stream, moment);
    pthread_mutex_lock(&event->lock);
    struct moment *before = event->last;
    event->last = moment;
    pthread_mutex_unlock(&event->lock);
    moment_drop(before);
    return SUCCESS;
}

int fake_event_query(void *handle)
{
    struct moment *moment = last_of(handle);
    const bool passed = !moment || moment_passed(moment);
    moment_drop(moment);
    return passed ? SUCCESS : NOT_READY;
}

int fake_event_wait(void *handle)
{
    struct moment *moment = last_of(handle);
    if (moment)
        moment_wait(moment);
    moment_drop(moment);
    return SUCCESS;
}

int fake_event_elapsed(float *ms, void *start_handle, void *end_handle)
{
    struct fake_event *start_event = start_handle, *end_event = end_handle;
    if (!start_event->timed || !end_event->timed)
        return INVALID_HANDLE;
    struct moment *from = last_of(start_event), *to = last_of(end_event);
    const bool known = from && to;
    const bool passed = known && moment_passed(from) && moment_passed(to);
    if (passed)
        *ms = (float)((double)moment_time(to) - (double)moment_time(from)) / 1e6f;
    moment_drop(from);
    moment_drop(to);
    if (!known)
        return INVALID_HANDLE;
    return passed ? SUCCESS : NOT_READY;
}

/* The event may be one of another context. */
int fake_stream_wait_event(void *stream_handle, void *handle, unsigned flags)
{
    struct stream *stream = stream_of(stream_handle);
    if (!stream || flags)
        return INVALID_HANDLE;
    struct moment *moment = last_of(handle);
    if (moment)
        stream_await(stream, moment);
    moment_drop(moment);
    return SUCCESS;
}

/* ---- modules ---- */

struct function {
    struct kernel kernel; /* `run` is NULL: not one of the portable ones */
    char name[96];
    const char *parameters; /* in the PTX; NULL: machine code */
    int dynamic_most;       /* bytes of shared memory that a launch may ask for */
    struct function *next;
};

struct module {
    struct context *context;
    char *image;
    size_t bytes;
    pthread_mutex_t lock;
    struct function *functions;
};

static bool is_machine_code(const char *image)
{
    return !memcmp(image, "\177ELF", 4);
}

/* The sections' headers come last but for the segments'. */
static size_t bytes_of(const char *image)
{
    uint64_t segments, sections;
    uint16_t segment_bytes, segment_count, section_bytes, section_count;
    if (!is_machine_code(image))
        return strlen(image) + 1;
    memcpy(&segments, image + 32, sizeof segments);
    memcpy(&sections, image + 40, sizeof sections);
    memcpy(&segment_bytes, image + 54, sizeof segment_bytes);
    memcpy(&segment_count, image + 56, sizeof segment_count);
    memcpy(&section_bytes, image + 58, sizeof section_bytes);
    memcpy(&section_count, image + 60, sizeof section_count);
    segments += (uint64_t)segment_bytes * segment_count;
    sections += (uint64_t)section_bytes * section_count;
    return segments > sections ? segments : sections;
}

/* PTX is for its architecture and later ones. */
static bool can_load(const char *image)
{
    const char *target = is_machine_code(image) ? NULL : strstr(image, ".target sm_");
    const int capability = capabilities[current() - contexts];
    return target ? atoi(target + strlen(".target sm_")) <= capability
                  : is_machine_code(image);
}

int fake_module_load(void **out, const void *image, unsigned count, int *options,
                     void **values)
{
    if (!can_load(image)) {
        if (count == 2 && options[0] == MODULE_LOG && options[1] == MODULE_LOG_BYTES)
            snprintf(values[0], (size_t)(uintptr_t)values[1], "no target for this device");
        return INVALID_IMAGE;
    }
    struct module *module = calloc(1, sizeof *module);
    const size_t bytes = bytes_of(image);
    if (!module || !(module->image = malloc(bytes))) {
        free(module);
        return OUT_OF_MEMORY;
    }
    memcpy(module->image, image, bytes);
    module->bytes = bytes;
    module->context = current();
    pthread_mutex_init(&module->lock, NULL);
    objects_add(module);
    *out = module;
    return SUCCESS;
}

int fake_module_unload(void *handle)
{
    struct module *module = handle;
    if (!objects_remove(module))
        return INVALID_HANDLE;
    for (struct function *next, *function = module->functions; function; function = next) {
        next = function->next;
        free(function);
    }
    pthread_mutex_destroy(&module->lock);
    free(module->image);
    free(module);
    return SUCCESS;
}

/* Where the parameters of a kernel begin in PTX, or a section is named after it; NULL: the module
 * does not have it. */
static const char *find_kernel(const struct module *module, const char *name)
{
    char entry[128];
    const int length = snprintf(entry, sizeof entry,
                                is_machine_code(module->image) ? ".text.%s" : ".entry %s(",
                                name);
    const size_t bytes = (size_t)length + is_machine_code(module->image); /* with the NUL */
    for (size_t at = 0; at + bytes <= module->bytes; at++)
        if (module->image[at] == entry[0] && !memcmp(module->image + at, entry, bytes))
            return module->image + at + bytes;
    return NULL;
}

int fake_module_function(void **out, void *handle, const char *name)
{
    enum { WITHOUT_ASKING = 48 << 10 };
    struct module *module = handle;
    const char *found = module->context == current() ? find_kernel(module, name) : NULL;
    if (!found)
        return NOT_FOUND;
    struct function *function = calloc(1, sizeof *function);
    if (!function)
        return OUT_OF_MEMORY;
    kernel_find(name, &function->kernel);
    snprintf(function->name, sizeof function->name, "%s", name);
    function->parameters = is_machine_code(module->image) ? NULL : found;
    function->dynamic_most = WITHOUT_ASKING;
    pthread_mutex_lock(&module->lock);
    function->next = module->functions;
    module->functions = function;
    pthread_mutex_unlock(&module->lock);
    *out = function;
    return SUCCESS;
}

enum { DECLARED_SHARED = 1024 }; /* by every kernel */

int fake_function_get(int *value, int attribute, void *function)
{
    (void)function;
    *value = DECLARED_SHARED;
    return attribute == FUNCTION_SHARED ? SUCCESS : INVALID_VALUE;
}

int fake_function_set(void *handle, int attribute, int value)
{
    struct function *function = handle;
    const int most = shared_most((int)(current() - contexts)) - DECLARED_SHARED;
    if (attribute == FUNCTION_CARVEOUT)
        return value == CARVEOUT_ALL ? SUCCESS : INVALID_VALUE;
    if (attribute != FUNCTION_DYNAMIC_MOST || value > most)
        return INVALID_VALUE;
    function->dynamic_most = value;
    return SUCCESS;
}

/* Of PTX: ".param .u64 name," and so on. */
int fake_function_parameter(void *handle, size_t index, size_t *offset, size_t *bytes)
{
    const struct function *function = handle;
    const char *at = function->parameters, *end = at ? strchr(at, ')') : NULL;
    if (!at)
        return INVALID_HANDLE;
    *offset = 8 * index;
    for (at = strstr(at, ".param ."); at && at < end; at = strstr(at + 1, ".param ."))
        if (index-- == 0) {
            *bytes = (size_t)atoi(at + strlen(".param .u")) / 8;
            return SUCCESS;
        }
    return INVALID_VALUE;
}

/* ---- launches ---- */

void fake_driver_watch(void (*seen)(const struct fake_launch *launch))
{
    pthread_mutex_lock(&lock);
    watcher = seen;
    pthread_mutex_unlock(&lock);
}

static bool can_launch(const struct function *function, const struct launch_config *c)
{
    enum { MOST_THREADS = 1024, MOST_GROUPS = 65535 };
    const uint64_t threads = (uint64_t)c->threads[0] * c->threads[1] * c->threads[2];
    return threads >= 1 && threads <= MOST_THREADS && c->groups[0] >= 1 &&
           c->groups[0] <= INT32_MAX && c->groups[1] >= 1 && c->groups[1] <= MOST_GROUPS &&
           c->groups[2] >= 1 && c->groups[2] <= MOST_GROUPS &&
           c->shared <= (unsigned)function->dynamic_most;
}

static void submit_portable(struct stream *stream, const struct function *function,
                            unsigned groups, void **arguments)
{
    struct kernel_launch launch = { .run = function->kernel.run, .groups = groups };
    for (unsigned i = 0; i < function->kernel.pointers; i++)
        memcpy(&launch.pointers[i], arguments[i], sizeof launch.pointers[i]);
    memcpy(&launch.args, arguments[function->kernel.pointers], function->kernel.bytes);
    stream_submit_launch(stream, &launch);
}

static int submit(const struct function *function, const struct launch_config *c,
                  bool early, void **arguments)
{
    enum { GROUP_OF_PORTABLE_KERNELS = 256 };
    struct stream *stream = stream_of(c->stream);
    if (!stream)
        return INVALID_HANDLE;
    if (!can_launch(function, c))
        return INVALID_VALUE;
    pthread_mutex_lock(&lock);
    void (*seen)(const struct fake_launch *launch) = watcher;
    pthread_mutex_unlock(&lock);
    if (seen)
        seen(&(struct fake_launch){
            .kernel = function->name,
            .groups = { c->groups[0], c->groups[1], c->groups[2] },
            .threads = { c->threads[0], c->threads[1], c->threads[2] },
            .shared = c->shared,
            .early = early,
            .recorded = stream_records(stream),
            .arguments = arguments,
        });
    if (!function->kernel.run)
        return SUCCESS;
    if (c->groups[1] != 1 || c->groups[2] != 1 || c->shared ||
        c->threads[0] != GROUP_OF_PORTABLE_KERNELS || c->threads[1] != 1 ||
        c->threads[2] != 1)
        return INVALID_VALUE;
    submit_portable(stream, function, c->groups[0], arguments);
    return SUCCESS;
}

int fake_launch(void *handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                void *stream, void **arguments, void **extra)
{
    const struct launch_config config = { .groups = { grid_x, grid_y, grid_z },
                                          .threads = { block_x, block_y, block_z },
                                          .shared = shared,
                                          .stream = stream };
    return extra ? INVALID_VALUE : submit(handle, &config, false, arguments);
}

int fake_launch_ex(const struct launch_config *config, void *handle, void **arguments,
                   void **extra)
{
    if (extra || config->attribute_count != 1 || config->attributes->id != LAUNCH_EARLY)
        return INVALID_VALUE;
    return submit(handle, config, config->attributes->value, arguments);
}

/* The rules that the driver's documentation has. */
int fake_tensor_map_encode(struct tensor_map *map, int type, uint32_t rank, void *address,
                           const uint64_t *extents, const uint64_t *strides,
                           const uint32_t *box, const uint32_t *element_strides,
                           int interleave, int swizzle, int promotion, int fill)
{
    enum { MOST_RANK = 5, MOST_BOX = 256 };
    (void)type, (void)swizzle, (void)promotion;
    if (rank < 1 || rank > MOST_RANK || (uintptr_t)address % 16 || interleave || fill)
        return INVALID_VALUE;
    for (uint32_t i = 0; i < rank; i++)
        if (!extents[i] || !box[i] || box[i] > MOST_BOX || !element_strides[i] ||
            (i + 1 < rank && strides[i] % 16))
            return INVALID_VALUE;
    memset(map, 0, sizeof *map);
    map->opaque[0] = (uint64_t)(uintptr_t)address;
    return SUCCESS;
}

/* ---- graphs: the jobs that a stream records ---- */

int fake_capture_begin(void *handle, int mode)
{
    struct stream *stream = stream_of(handle);
    (void)mode;
    if (!stream || stream_records(stream))
        return INVALID_HANDLE;
    stream_record(stream);
    return SUCCESS;
}

int fake_capture_end(void *handle, void **graph)
{
    struct stream *stream = stream_of(handle);
    if (!stream || !stream_records(stream))
        return INVALID_HANDLE;
    *graph = stream_recorded(stream);
    objects_add(*graph);
    return SUCCESS;
}

int fake_graph_destroy(void *graph)
{
    if (!objects_remove(graph))
        return INVALID_HANDLE;
    jobs_free(graph);
    return SUCCESS;
}

int fake_graph_instantiate(void **exec, void *graph, unsigned long long flags)
{
    if (flags)
        return INVALID_VALUE;
    *exec = jobs_copy(graph);
    objects_add(*exec);
    return SUCCESS;
}

int fake_graph_launch(void *exec, void *handle)
{
    struct stream *stream = stream_of(handle);
    if (!stream)
        return INVALID_HANDLE;
    stream_submit_jobs(stream, exec);
    return SUCCESS;
}

int fake_graph_free(void *exec)
{
    if (!objects_remove(exec))
        return INVALID_HANDLE;
    jobs_free(exec);
    return SUCCESS;
}
