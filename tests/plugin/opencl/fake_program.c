/* SPDX-License-Identifier: MIT */
/* fake_program.c - the stand-in's programs and kernels. Compiling a program keeps its text and
 * options, and a launch runs the portable kernel of that name as plain C. It also knows two kernels
 * of applications. */
#include "opencl_state.h"

#include "fake.h"
#include "kernels.h"

#include <stdlib.h>

enum { USER_PARAMETERS = 6 };

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
    struct fake_program *program = object_new(sizeof *program, end_program);
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
    return object_release(program);
}

/* ---- kernels ---- */

/* A launch of an application's kernel: its arguments and work-items. */
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

/* Each work-item writes its group's numbers and its own numbers within the group. */
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

/* "matmul_kernel" is "matmul", or "matmul_f16_f32" if the options choose these types. The program
 * must contain the kernel's text. */
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

/* Reads the group size and the local memory that the program's text requires. */
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
    struct fake_kernel *kernel = object_new(sizeof *kernel, free);
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
    struct fake_kernel *kernel = object_new(sizeof *kernel, free);
    kernel->kernel = found;
    kernel->group = strtoul(group + strlen("-DGROUP="), NULL, 10);
    kernel->launch.run = found.run;
    return kernel;
}

int fake_release_kernel(void *kernel)
{
    return object_release(kernel);
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
