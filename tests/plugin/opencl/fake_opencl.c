/* SPDX-License-Identifier: MIT */
/* fake_opencl.c - a stand-in for libOpenCL.so.1 and an implementation on the host, with the
 * functions that plugins/opencl calls. This file has devices, queues and memory, which is host
 * memory; fake_program.c has programs and kernels, fake_event.c events. A queue is a thread.
 *
 * STANDIN_DEVICES lists the OpenCL versions of its devices: "3.0 1.2 1.2 1.1" if unset.
 * STANDIN_PLATFORM, STANDIN_VENDOR, STANDIN_DRIVER and STANDIN_EXTENSIONS replace these strings,
 * STANDIN_NUMBERS replaces numbers of the last device: "0x1028=0 0x1004=16". STANDIN_SECOND is the
 * name of a second implementation, which has the last device. */
#include "fake_opencl.h"

#include "fake.h"
#include "faults.h"
#include "objects.h"
#include "opencl_state.h"

#include <stdlib.h>

/* ---- reference-counted objects ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void *object_new(size_t bytes, void (*end)(void *self))
{
    struct object *object = calloc(1, bytes);
    if (!object)
        abort();
    object->references = 1;
    object->end = end;
    objects_add(object);
    return object;
}

int object_retain(void *self)
{
    struct object *object = self;
    pthread_mutex_lock(&lock);
    object->references++;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int object_release(void *self)
{
    struct object *object = self;
    pthread_mutex_lock(&lock);
    const bool last = --object->references == 0;
    pthread_mutex_unlock(&lock);
    if (!last)
        return SUCCESS;
    if (!objects_remove(object))
        abort();
    object->end(object);
    return SUCCESS;
}

/* ---- devices ---- */

static uint64_t used; /* bytes of memory */

uint64_t fake_opencl_used(void)
{
    pthread_mutex_lock(&lock);
    const uint64_t now = used;
    pthread_mutex_unlock(&lock);
    return now;
}

/* False if the devices' shared memory has less than that left. */
static bool use(uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    const bool fits = bytes <= FAKE_OPENCL_MEMORY - used;
    used += fits ? bytes : 0;
    pthread_mutex_unlock(&lock);
    return fits;
}

static void give_back(uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    used -= bytes;
    pthread_mutex_unlock(&lock);
}

enum { MOST_STANDIN_DEVICES = 4 };

struct fake_device {
    int index, major, minor;
};

static struct fake_device devices[MOST_STANDIN_DEVICES];
static uint32_t device_total;
static pthread_once_t started = PTHREAD_ONCE_INIT;
static char platform[2];

static void start(void)
{
    const char *at = getenv("STANDIN_DEVICES");
    int major, minor, length;
    for (at = at ? at : "3.0 1.2 1.2 1.1";
         device_total < MOST_STANDIN_DEVICES &&
         sscanf(at, "%d.%d%n", &major, &minor, &length) == 2;
         at += length) {
        devices[device_total] = (struct fake_device){ (int)device_total, major, minor };
        device_total++;
    }
}

int fake_get_platforms(uint32_t room_for, void **platforms, uint32_t *count)
{
    *count = getenv("STANDIN_SECOND") ? 2 : 1;
    if (!room_for)
        return INVALID_VALUE;
    for (uint32_t i = 0; i < *count && i < room_for; i++)
        platforms[i] = &platform[i];
    return device_total ? SUCCESS : PLATFORM_NOT_FOUND_KHR;
}

static char *platform_of(const struct fake_device *device)
{
    const bool second = getenv("STANDIN_SECOND") && device->index == (int)device_total - 1;
    return &platform[second];
}

int fake_get_devices(void *of, uint64_t type, uint32_t room_for, void **found,
                     uint32_t *count)
{
    (void)type;
    if (of != &platform[0] && of != &platform[1])
        return INVALID_VALUE;
    *count = 0;
    for (uint32_t i = 0; i < device_total; i++)
        if (platform_of(&devices[i]) == of && (*count)++ < room_for)
            found[*count - 1] = &devices[i];
    return SUCCESS;
}

int reply(const void *from, size_t bytes, size_t room_for, void *value, size_t *size)
{
    if (value && room_for < bytes)
        return INVALID_VALUE;
    if (value)
        memcpy(value, from, bytes);
    if (size)
        *size = bytes;
    return SUCCESS;
}

int reply_text(const char *text, size_t room_for, void *value, size_t *size)
{
    return reply(text, strlen(text) + 1, room_for, value, size);
}

static const char *chosen(const char *variable, const char *usual)
{
    const char *text = getenv(variable);
    return text ? text : usual;
}

int fake_platform_info(void *of, uint32_t what, size_t room_for, void *value, size_t *size)
{
    const char *name = of == &platform[1] ? "STANDIN_SECOND" : "STANDIN_PLATFORM";
    (void)what;
    return reply_text(chosen(name, "Stand-in"), room_for, value, size);
}

/* Replaces the number if STANDIN_NUMBERS has another one. */
static void put_other(uint32_t what, uint64_t *number)
{
    const char *at = chosen("STANDIN_NUMBERS", "");
    unsigned asked;
    unsigned long long answer;
    int length;
    for (; sscanf(at, "%x=%llu%n", &asked, &answer, &length) == 2; at += length)
        if (asked == what)
            *number = answer;
}

int fake_device_info(void *handle, uint32_t what, size_t room_for, void *value,
                     size_t *size)
{
    enum { GPU = 4 };
    static const struct {
        uint32_t what, bytes;
        uint64_t value;
    } numbers[] = {
        { 0x1000, 8, GPU },               /* type */
        { 0x1001, 4, 0 },                 /* of no vendor */
        { 0x1002, 4, 2 },                 /* units */
        { 0x1004, sizeof(size_t), 256 },  /* the most work-items of a group */
        { 0x1010, 8, UINT64_C(1) << 30 }, /* the largest buffer */
        { 0x1019, 4, 1024 },              /* alignment, in bits */
        { 0x101B, 8, 0x80 },              /* f32: quotients are rounded correctly */
        { 0x101F, 8, FAKE_OPENCL_MEMORY },
        { 0x1023, 8, 0 },  /* group memory, for tuned kernels, which it cannot run */
        { 0x1026, 4, 1 },  /* little-endian */
        { 0x1027, 4, 1 },  /* available */
        { 0x1028, 4, 1 },  /* has a compiler */
        { 0x1035, 4, 0 },  /* memory of its own */
        { 0x1075, 24, 0 }, /* six kinds of fast dot products: none */
    };
    const struct fake_device *device = handle;
    const uint32_t pci[] = { 0, 0x40 + (uint32_t)device->index, 3, 1 };
    const uint8_t uuid[16] = { 0xAB, (uint8_t)device->index };
    const size_t left[] = { (size_t)((FAKE_OPENCL_MEMORY - fake_opencl_used()) >> 10), 4 };
    const void *itself = platform_of(device);
    char text[64];
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i].what == what) {
            uint64_t number[3] = { numbers[i].value };
            if (device->index == (int)device_total - 1)
                put_other(what, number);
            return reply(number, numbers[i].bytes, room_for, value, size);
        }
    switch (what) {
    case 0x102B: /* name */
        snprintf(text, sizeof text, "Stand-in %d", device->index);
        return reply_text(text, room_for, value, size);
    case 0x102C: /* vendor */
        return reply_text(chosen("STANDIN_VENDOR", "nobody"), room_for, value, size);
    case 0x102D: /* driver */
        return reply_text(chosen("STANDIN_DRIVER", "1"), room_for, value, size);
    case 0x102F: /* version */
        snprintf(text, sizeof text, "OpenCL %d.%d stand-in", device->major, device->minor);
        return reply_text(text, room_for, value, size);
    case 0x1030: /* extensions */
        return reply_text(chosen("STANDIN_EXTENSIONS", "cl_khr_fp16"), room_for, value,
                          size);
    case 0x106A: /* its UUID */
        return reply(uuid, sizeof uuid, room_for, value, size);
    case 0x410F: /* its place on the PCI bus */
        return reply(pci, sizeof pci, room_for, value, size);
    case 0x4039: /* KiB of free memory, and its largest block */
        return reply(left, sizeof left, room_for, value, size);
    case 0x1031: /* platform */
        return reply(&itself, sizeof itself, room_for, value, size);
    default:
        return INVALID_VALUE;
    }
}

void *fake_create_context(const intptr_t *properties, uint32_t count, void *const *given,
                          void *notify, void *user, int *error)
{
    (void)properties, (void)given, (void)notify, (void)user;
    *error = count == 1 ? SUCCESS : INVALID_DEVICE;
    return count == 1 ? object_new(sizeof(struct object), free) : NULL;
}

int fake_release_context(void *context)
{
    return object_release(context);
}

/* ---- queues ---- */

static struct fake_queue *queues;

static void end_queue(void *self)
{
    struct fake_queue *queue = self, **at = &queues;
    pthread_mutex_lock(&lock);
    while (*at != queue)
        at = &(*at)->next;
    *at = queue->next;
    pthread_mutex_unlock(&lock);
    stream_close(queue->stream);
    free(queue);
}

void *fake_create_queue(void *context, void *device, uint64_t properties, int *error)
{
    enum { PROFILING = 2 };
    struct stream *stream = stream_open();
    (void)device;
    *error = stream ? SUCCESS : OUT_OF_HOST_MEMORY;
    if (!stream)
        return NULL;
    struct fake_queue *queue = object_new(sizeof *queue, end_queue);
    queue->context = context;
    queue->stream = stream;
    queue->properties = properties;
    queue->timed = properties & PROFILING;
    pthread_mutex_lock(&lock);
    queue->next = queues;
    queues = queue;
    pthread_mutex_unlock(&lock);
    return queue;
}

int fake_queue_info(void *handle, uint32_t what, size_t room_for, void *value, size_t *size)
{
    const struct fake_queue *queue = handle;
    if (what == QUEUE_CONTEXT)
        return reply(&queue->context, sizeof queue->context, room_for, value, size);
    if (what == QUEUE_PROPERTIES)
        return reply(&queue->properties, sizeof queue->properties, room_for, value, size);
    return INVALID_VALUE;
}

int fake_retain_queue(void *queue)
{
    return object_retain(queue);
}

int fake_release_queue(void *queue)
{
    return object_release(queue);
}

int fake_flush(void *queue)
{
    return queue ? SUCCESS : INVALID_COMMAND_QUEUE;
}

int fake_finish(void *queue)
{
    stream_wait(((struct fake_queue *)queue)->stream);
    return SUCCESS;
}

/* A fatal error discards all work. */
int standin_enter(int call)
{
    const int failure = faults_enter(call);
    pthread_once(&started, start);
    if (failure == INVALID_COMMAND_QUEUE) {
        pthread_mutex_lock(&lock);
        for (struct fake_queue *queue = queues; queue; queue = queue->next)
            stream_discard(queue->stream);
        pthread_mutex_unlock(&lock);
    }
    return failure;
}

/* ---- memory ---- */

static void end_buffer(void *self)
{
    struct fake_buffer *buffer = self;
    give_back(buffer->bytes);
    free(buffer->memory);
    free(buffer);
}

void *fake_create_buffer(void *context, uint64_t flags, size_t bytes, void *host,
                         int *error)
{
    enum { ALIGNMENT = 128 };
    *error = !bytes || flags || host ? INVALID_VALUE
             : use(bytes)            ? SUCCESS
                                     : MEM_OBJECT_ALLOCATION_FAILURE;
    if (*error)
        return NULL;
    unsigned char *memory = aligned_alloc(ALIGNMENT,
                                          (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (!memory) {
        give_back(bytes);
        *error = OUT_OF_HOST_MEMORY;
        return NULL;
    }
    struct fake_buffer *buffer = object_new(sizeof *buffer, end_buffer);
    buffer->context = context;
    buffer->memory = memory;
    buffer->bytes = bytes;
    return buffer;
}

int fake_buffer_info(void *handle, uint32_t what, size_t room_for, void *value,
                     size_t *size)
{
    const struct fake_buffer *buffer = handle;
    switch (what) {
    case BUFFER_CONTEXT:
        return reply(&buffer->context, sizeof buffer->context, room_for, value, size);
    case BUFFER_BYTES:
        return reply(&buffer->bytes, sizeof buffer->bytes, room_for, value, size);
    default:
        return INVALID_VALUE;
    }
}

int fake_retain_buffer(void *buffer)
{
    return object_retain(buffer);
}

int fake_release_buffer(void *buffer)
{
    return object_release(buffer);
}

int fake_fill(void *queue, void *to, const void *pattern, size_t pattern_bytes,
              size_t offset, size_t bytes, uint32_t count, void *const *wait, void **event)
{
    const struct fake_buffer *buffer = to;
    if (pattern_bytes != 1 || count || wait || event || offset > buffer->bytes ||
        bytes > buffer->bytes - offset)
        return INVALID_VALUE;
    stream_submit_fill(((struct fake_queue *)queue)->stream, buffer->memory + offset,
                       *(const unsigned char *)pattern, bytes);
    return SUCCESS;
}

/* The address of a rectangle of rows at `origin`; NULL if it exceeds the memory. */
static unsigned char *rectangle(const struct fake_buffer *buffer, const size_t *origin,
                                size_t pitch, const size_t *region)
{
    const size_t first = origin[1] * pitch + origin[0];
    const size_t bytes = (region[1] - 1) * pitch + region[0];
    const bool fits = pitch >= region[0] && region[2] == 1 && first <= buffer->bytes &&
                      bytes <= buffer->bytes - first;
    return fits ? buffer->memory + first : NULL;
}

static unsigned char *host_rectangle(const void *host, const size_t *origin, size_t pitch)
{
    return (unsigned char *)(uintptr_t)host + origin[1] * pitch + origin[0];
}

static int submit_copy(void *queue, unsigned char *to, size_t to_pitch,
                       const unsigned char *from, size_t from_pitch, const size_t *region)
{
    const struct stream_copy copy = {
        to, from, to_pitch, from_pitch, region[0], region[1]
    };
    if (!to || !from)
        return INVALID_VALUE;
    stream_submit_copy(((struct fake_queue *)queue)->stream, &copy);
    return SUCCESS;
}

int fake_read(void *queue, void *buffer, uint32_t blocking, const size_t *from,
              const size_t *to, const size_t *region, size_t from_pitch, size_t from_slice,
              size_t to_pitch, size_t to_slice, void *host, uint32_t count,
              void *const *wait, void **event)
{
    if (blocking || from_slice || to_slice || count || wait || event)
        return INVALID_VALUE;
    return submit_copy(queue, host_rectangle(host, to, to_pitch), to_pitch,
                       rectangle(buffer, from, from_pitch, region), from_pitch, region);
}

int fake_write(void *queue, void *buffer, uint32_t blocking, const size_t *to,
               const size_t *from, const size_t *region, size_t to_pitch, size_t to_slice,
               size_t from_pitch, size_t from_slice, const void *host, uint32_t count,
               void *const *wait, void **event)
{
    if (blocking || from_slice || to_slice || count || wait || event)
        return INVALID_VALUE;
    return submit_copy(queue, rectangle(buffer, to, to_pitch, region), to_pitch,
                       host_rectangle(host, from, from_pitch), from_pitch, region);
}

int fake_copy(void *queue, void *source, void *target, const size_t *from, const size_t *to,
              const size_t *region, size_t from_pitch, size_t from_slice, size_t to_pitch,
              size_t to_slice, uint32_t count, void *const *wait, void **event)
{
    if (from_slice || to_slice || count || wait || event)
        return INVALID_VALUE;
    return submit_copy(queue, rectangle(target, to, to_pitch, region), to_pitch,
                       rectangle(source, from, from_pitch, region), from_pitch, region);
}
