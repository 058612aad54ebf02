/* SPDX-License-Identifier: MIT */
/* fake_opencl.c - a stand-in for libOpenCL.so.1 and an implementation: what plugins/opencl calls,
 * on the host. A queue is a thread; compiling a program keeps its text and options, and a launch
 * runs the portable kernel that it names as plain C. Of the application's kernels it knows two.
 *
 * STANDIN_DEVICES lists the versions of OpenCL of its devices: "3.0 1.2 1.2 1.1" if unset.
 * STANDIN_PLATFORM, STANDIN_VENDOR, STANDIN_DRIVER and STANDIN_EXTENSIONS are what these are,
 * STANDIN_NUMBERS other answers about the last device: "0x1028=0 0x1004=16". STANDIN_SECOND is the
 * name of a second implementation, which has the last device. */
#include "opencl.h"

#include "fake.h"
#include "fake_opencl.h"
#include "faults.h"
#include "kernels.h"
#include "objects.h"
#include "stream.h"

#include <stdlib.h>

enum { USER_PARAMETERS = 6 };
enum { SUCCESS = 0 };

/* ---- objects, which count their references ---- */

struct object {
    int references;
    void (*end)(void *self);
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *new_object(size_t bytes, void (*end)(void *self))
{
    struct object *object = calloc(1, bytes);
    if (!object)
        abort();
    object->references = 1;
    object->end = end;
    objects_add(object);
    return object;
}

static int retain(void *self)
{
    struct object *object = self;
    pthread_mutex_lock(&lock);
    object->references++;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

static int release(void *self)
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

static void end_memory(void *self)
{
    free(self);
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

/* False if the devices, which share it, do not have as much. */
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

/* Gives `bytes` bytes to who asks for something, as all queries do. */
static int reply(const void *from, size_t bytes, size_t room_for, void *value, size_t *size)
{
    if (value && room_for < bytes)
        return INVALID_VALUE;
    if (value)
        memcpy(value, from, bytes);
    if (size)
        *size = bytes;
    return SUCCESS;
}

static int reply_text(const char *text, size_t room_for, void *value, size_t *size)
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

/* Changes the number to what STANDIN_NUMBERS answers, if anything. */
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
        { 0x1075, 24, 0 }, /* six kinds of dot products that are fast: none */
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
    case 0x4039: /* KiB of memory that are free, and the largest block of them */
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
    return count == 1 ? new_object(sizeof(struct object), end_memory) : NULL;
}

int fake_release_context(void *context)
{
    return release(context);
}

/* ---- queues ---- */

struct fake_queue {
    struct object object;
    void *context;
    struct stream *stream;
    bool timed;
    struct fake_queue *next;
};

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
    struct fake_queue *queue = new_object(sizeof *queue, end_queue);
    queue->context = context;
    queue->stream = stream;
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
    return what == QUEUE_CONTEXT
               ? reply(&queue->context, sizeof queue->context, room_for, value, size)
               : INVALID_VALUE;
}

int fake_retain_queue(void *queue)
{
    return retain(queue);
}

int fake_release_queue(void *queue)
{
    return release(queue);
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

/* An error that a device does not survive ends all work. */
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

struct fake_buffer {
    struct object object;
    void *context;
    unsigned char *memory;
    size_t bytes;
};

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
    struct fake_buffer *buffer = new_object(sizeof *buffer, end_buffer);
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
    return retain(buffer);
}

int fake_release_buffer(void *buffer)
{
    return release(buffer);
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

/* A rectangle of rows, from `origin` on; NULL if the memory does not have it. */
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

/* ---- programs: the options in the first line, then the text ---- */

struct fake_program {
    struct object object;
    char *text;
    bool built;
};

static void end_program(void *self)
{
    struct fake_program *program = self;
    free(program->text);
    free(program);
}

static void *new_program(const char *text, size_t bytes)
{
    struct fake_program *program = new_object(sizeof *program, end_program);
    program->text = calloc(1, bytes + 1);
    if (!program->text)
        abort();
    memcpy(program->text, text, bytes);
    return program;
}

void *fake_program_of_source(void *context, uint32_t count, const char **texts,
                             const size_t *sizes, int *error)
{
    (void)context;
    *error = count == 1 && !sizes ? SUCCESS : INVALID_VALUE;
    return *error ? NULL : new_program(texts[0], strlen(texts[0]));
}

void *fake_program_of_binary(void *context, uint32_t count, void *const *given,
                             const size_t *sizes, const unsigned char **binaries,
                             int *statuses, int *error)
{
    (void)context, (void)given;
    *error = count == 1 ? SUCCESS : INVALID_VALUE;
    *statuses = *error ? *error : *binaries[0] == '-' ? SUCCESS : INVALID_BINARY;
    return *error || *statuses ? NULL : new_program((const char *)binaries[0], sizes[0]);
}

int fake_build_program(void *handle, uint32_t count, void *const *given,
                       const char *options, void *notify, void *user)
{
    struct fake_program *program = handle;
    (void)given;
    if (count != 1 || notify || user)
        return INVALID_VALUE;
    if (strstr(program->text, "#error"))
        return BUILD_PROGRAM_FAILURE;
    const size_t room_for = strlen(options) + strlen(program->text) + 2;
    char *built = *options ? malloc(room_for) : NULL;
    if (built) {
        snprintf(built, room_for, "%s\n%s", options, program->text);
        free(program->text);
        program->text = built;
    }
    program->built = true;
    return SUCCESS;
}

int fake_build_info(void *program, void *device, uint32_t what, size_t room_for,
                    void *value, size_t *size)
{
    (void)program, (void)device, (void)what;
    return reply_text("the stand-in compiles nothing", room_for, value, size);
}

int fake_program_info(void *handle, uint32_t what, size_t room_for, void *value,
                      size_t *size)
{
    enum { BINARY_SIZES = 0x1165, BINARIES = 0x1166 };
    const struct fake_program *program = handle;
    const size_t bytes = strlen(program->text);
    if (what == BINARY_SIZES)
        return reply(&bytes, sizeof bytes, room_for, value, size);
    if (what != BINARIES || room_for != sizeof(unsigned char *))
        return INVALID_VALUE;
    memcpy(*(unsigned char **)value, program->text, bytes);
    return SUCCESS;
}

int fake_release_program(void *program)
{
    return release(program);
}

/* ---- kernels ---- */

/* A launch of a kernel of the application: what it was given, and its work-items. */
struct user_launch {
    void (*run)(const struct user_launch *launch);
    union {
        unsigned char *memory;
        int64_t number;
        float f;
    } given[USER_PARAMETERS];
    size_t items[3], group[3];
};

/* y[i] = by x[i] for i < n. */
static void run_scale(const struct user_launch *l)
{
    const float *x = (const float *)(l->given[0].memory + l->given[1].number);
    float *y = (float *)(l->given[2].memory + l->given[3].number);
    for (int64_t i = 0; i < l->given[4].number && i < (int64_t)l->items[0]; i++)
        y[i] = l->given[5].f * x[i];
}

/* Each work-item writes the numbers of its group, and its own in the group. */
static void run_place(const struct user_launch *l)
{
    int64_t *y = (int64_t *)(l->given[0].memory + l->given[1].number);
    const size_t *n = l->items, *g = l->group;
    for (size_t at = 0; at < n[0] * n[1] * n[2]; at++) {
        const size_t i[3] = { at % n[0], at / n[0] % n[1], at / n[0] / n[1] };
        y[at] = 0;
        for (int d = 2; d >= 0; d--)
            y[at] = y[at] * 1000 + (int64_t)(i[d] / g[d] * 10 + i[d] % g[d]);
    }
}

/* p: a pointer, l: a long, f: a float. */
static const struct user {
    const char *name, *parameters;
    void (*run)(const struct user_launch *launch);
} users[] = { { "scale", "plpllf", run_scale }, { "place", "pl", run_place } };

struct fake_kernel {
    struct object object;
    struct kernel kernel;
    size_t group; /* that the program was compiled for */
    struct kernel_launch launch;
    size_t required[3];      /* work-items of a group; 0: any */
    uint64_t local;          /* bytes of memory that a group shares */
    const struct user *user; /* NULL: a portable one */
    struct user_launch user_launch;
};

/* "matmul_kernel" is "matmul", or "matmul_f16_f32" if the options choose these types; the program
 * has to have the kernel's text. */
static bool find(const struct fake_program *program, const char *entry,
                 struct kernel *kernel)
{
    const char *const types = strstr(program->text, "-DACT="), *const end = strchr(
                                                                   program->text, '\n');
    char act[16] = "", wgt[16] = "", name[96], text[96];
    const int length = (int)(strlen(entry) - strlen("_kernel"));
    if (types && types < end &&
        sscanf(types, "-DACT=%15[a-z0-9] -DWGT=%15[a-z0-9]", act, wgt) != 2)
        return false;
    snprintf(name, sizeof name, "%.*s%s%s%s%s", length, entry, *act ? "_" : "", act,
             *act ? "_" : "", wgt);
    snprintf(text, sizeof text, "(%.*s", length,
             entry); /* of KERNEL(), or a macro that has it */
    return strstr(program->text, text) && kernel_find(name, kernel);
}

/* "kernel void scale(" */
static bool has_entry(const struct fake_program *program, const char *name)
{
    char text[96];
    snprintf(text, sizeof text, "kernel void %s(", name);
    return strstr(program->text, text);
}

/* The groups and the memory that the program's text asks for. */
static void read_needs(struct fake_kernel *kernel, const char *text)
{
    const char *group = strstr(text, "reqd_work_group_size("),
               *local = strstr(text, "local char held[");
    size_t *n = kernel->required;
    if (group)
        sscanf(group, "reqd_work_group_size(%zu, %zu, %zu)", &n[0], &n[1], &n[2]);
    if (local)
        kernel->local = strtoull(local + strlen("local char held["), NULL, 10);
}

static void *create_user_kernel(const struct user *user, const struct fake_program *program)
{
    struct fake_kernel *kernel = new_object(sizeof *kernel, end_memory);
    read_needs(kernel, program->text);
    kernel->user = user;
    kernel->user_launch.run = user->run;
    return kernel;
}

void *fake_create_kernel(void *handle, const char *name, int *error)
{
    const struct fake_program *program = handle;
    const char *group = strstr(program->text, "-DGROUP=");
    struct kernel found;
    *error = SUCCESS;
    for (size_t i = 0; i < sizeof users / sizeof users[0]; i++)
        if (program->built && !strcmp(users[i].name, name) && has_entry(program, name))
            return create_user_kernel(&users[i], program);
    *error = !program->built                          ? INVALID_PROGRAM_EXECUTABLE
             : !group || !find(program, name, &found) ? INVALID_KERNEL_NAME
                                                      : SUCCESS;
    if (*error)
        return NULL;
    struct fake_kernel *kernel = new_object(sizeof *kernel, end_memory);
    kernel->kernel = found;
    kernel->group = strtoul(group + strlen("-DGROUP="), NULL, 10);
    kernel->launch.run = found.run;
    return kernel;
}

int fake_release_kernel(void *kernel)
{
    return release(kernel);
}

int fake_kernel_info(void *handle, uint32_t what, size_t room_for, void *value,
                     size_t *size)
{
    enum { PARAMETERS = 0x1191 };
    const struct fake_kernel *kernel = handle;
    const uint32_t count = kernel->user ? (uint32_t)strlen(kernel->user->parameters)
                                        : kernel->kernel.pointers + 1;
    return what == PARAMETERS ? reply(&count, sizeof count, room_for, value, size)
                              : INVALID_VALUE;
}

int fake_kernel_group_info(void *handle, void *device, uint32_t what, size_t room_for,
                           void *value, size_t *size)
{
    const struct fake_kernel *kernel = handle;
    const size_t most = 128;
    (void)device;
    switch (what) {
    case KERNEL_GROUP_MOST:
        return reply(&most, sizeof most, room_for, value, size);
    case KERNEL_GROUP_REQUIRED:
        return reply(kernel->required, sizeof kernel->required, room_for, value, size);
    case KERNEL_LOCAL_MEMORY:
        return reply(&kernel->local, sizeof kernel->local, room_for, value, size);
    default:
        return INVALID_VALUE;
    }
}

static int set_user_argument(struct fake_kernel *kernel, uint32_t index, size_t size,
                             const void *value)
{
    const char *parameters = kernel->user->parameters;
    const struct fake_buffer *buffer = NULL;
    if (index >= strlen(parameters))
        return INVALID_ARG_INDEX;
    if (size != (parameters[index] == 'f' ? sizeof(float) : sizeof(int64_t)))
        return INVALID_ARG_SIZE;
    if (parameters[index] == 'p') {
        if (value)
            memcpy(&buffer, value, sizeof buffer);
        kernel->user_launch.given[index].memory = buffer ? buffer->memory : NULL;
    } else if (value) {
        memcpy(&kernel->user_launch.given[index], value, size);
    }
    return value || parameters[index] == 'p' ? SUCCESS : INVALID_ARG_VALUE;
}

int fake_set_argument(void *handle, uint32_t index, size_t size, const void *value)
{
    struct fake_kernel *kernel = handle;
    struct fake_buffer *buffer = NULL;
    if (kernel->user)
        return set_user_argument(kernel, index, size, value);
    if (index > kernel->kernel.pointers)
        return INVALID_ARG_INDEX;
    if (size != (index < kernel->kernel.pointers ? sizeof buffer : kernel->kernel.bytes))
        return INVALID_ARG_SIZE;
    if (index == kernel->kernel.pointers) {
        memcpy(&kernel->launch.args, value, size);
        return SUCCESS;
    }
    if (value)
        memcpy(&buffer, value, sizeof buffer);
    kernel->launch.pointers[index] = buffer ? buffer->memory : NULL;
    return SUCCESS;
}

static void run_user(void *data)
{
    const struct user_launch *launch = data;
    launch->run(launch);
}

static int launch_user(struct fake_queue *queue, const struct fake_kernel *kernel,
                       uint32_t rank, const size_t *items, const size_t *group)
{
    struct user_launch launch = kernel->user_launch;
    if (rank != 3)
        return INVALID_VALUE;
    for (int i = 0; i < 3; i++) {
        if (!group[i] || !items[i] || items[i] % group[i])
            return INVALID_WORK_GROUP_SIZE;
        launch.items[i] = items[i];
        launch.group[i] = group[i];
    }
    stream_submit(queue->stream, run_user, &launch, sizeof launch);
    return SUCCESS;
}

int fake_launch(void *queue, void *handle, uint32_t rank, const size_t *offset,
                const size_t *items, const size_t *group, uint32_t count, void *const *wait,
                void **event)
{
    const struct fake_kernel *kernel = handle;
    if (offset || count || wait || event)
        return INVALID_VALUE;
    if (kernel->user)
        return launch_user(queue, kernel, rank, items, group);
    if (rank != 1)
        return INVALID_VALUE;
    if (*group != kernel->group || !*items || *items % *group)
        return INVALID_WORK_GROUP_SIZE;
    struct kernel_launch launch = kernel->launch;
    launch.groups = (int64_t)(*items / *group);
    stream_submit_launch(((struct fake_queue *)queue)->stream, &launch);
    return SUCCESS;
}

/* ---- events ---- */

struct fake_event {
    struct object object;
    struct moment *moment;
    bool timed;
};

static void end_event(void *self)
{
    struct fake_event *event = self;
    moment_drop(event->moment);
    free(event);
}

int fake_marker(void *handle, uint32_t count, void *const *wait, void **out)
{
    struct fake_queue *queue = handle;
    if (count || wait || !out)
        return INVALID_VALUE;
    struct fake_event *event = new_object(sizeof *event, end_event);
    event->moment = moment_new();
    event->timed = queue->timed;
    stream_mark(queue->stream, event->moment);
    *out = event;
    return SUCCESS;
}

int fake_barrier(void *queue, uint32_t count, void *const *wait, void **event)
{
    if (event)
        return INVALID_VALUE;
    for (uint32_t i = 0; i < count; i++)
        stream_await(((struct fake_queue *)queue)->stream,
                     ((struct fake_event *)wait[i])->moment);
    return SUCCESS;
}

int fake_wait(uint32_t count, void *const *events)
{
    for (uint32_t i = 0; i < count; i++)
        moment_wait(((struct fake_event *)events[i])->moment);
    return SUCCESS;
}

int fake_event_info(void *event, uint32_t what, size_t room_for, void *value, size_t *size)
{
    enum { EXECUTION_STATUS = 0x11D3, COMPLETE = 0, RUNNING = 1 };
    const int state = moment_passed(((struct fake_event *)event)->moment) ? COMPLETE
                                                                          : RUNNING;
    return what == EXECUTION_STATUS ? reply(&state, sizeof state, room_for, value, size)
                                    : INVALID_VALUE;
}

int fake_event_time(void *handle, uint32_t what, size_t room_for, void *value, size_t *size)
{
    enum { END = 0x1283 };
    const struct fake_event *event = handle;
    if (what != END || !event->timed || !moment_passed(event->moment))
        return PROFILING_INFO_NOT_AVAILABLE;
    const uint64_t time = moment_time(event->moment);
    return reply(&time, sizeof time, room_for, value, size);
}

struct notice {
    void (*fn)(void *event, int status, void *user);
    void *event, *user;
};

static void give_notice(void *data)
{
    struct notice *notice = data;
    notice->fn(notice->event, SUCCESS, notice->user);
    free(notice);
}

int fake_event_callback(void *event, int status,
                        void (*fn)(void *event, int status, void *user), void *user)
{
    struct notice *notice = malloc(sizeof *notice);
    if (!notice)
        return OUT_OF_HOST_MEMORY;
    *notice = (struct notice){ fn, event, user };
    moment_call(((struct fake_event *)event)->moment, give_notice, notice);
    return status;
}

int fake_retain_event(void *event)
{
    return retain(event);
}

int fake_release_event(void *event)
{
    return release(event);
}
