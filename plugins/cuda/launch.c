/* SPDX-License-Identifier: MIT */
/* From an op to the launch of a kernel: the rows, the modules that hold the kernels, and the
 * launch. A module is loaded when the first of its kernels is used. */
#include "cuda.h"

enum { GROUP = 256 }; /* threads; as in kernels/prelude/group.h */

/* The PTX of each form of the portable kernels: "f16_f32.ptx". */
extern const struct embedded cuda_images[];

static const char *const form_names[FORM_COUNT] = {
    "mixed",
#define VARIANT(act, wgt) #act "_" #wgt,
#include "../../kernels/kernels.def"
};

/* ---- rows ---- */

kernel_plan_fn plan_portable;
const char *plan_portable(struct plan *plan, const struct kernel_row *row, const void *args)
{
    return lower(row->op, args, &plan->lowered);
}

#define ROW ROW_DECLARE
#include "kernels.def"
#define ROW ROW_ENTRY
static const struct kernel_row rows[] = {
#include "kernels.def"
};

const struct kernel_table launch_kernels = { rows, sizeof rows / sizeof rows[0], NULL };

/* ---- modules ---- */

static const struct embedded *image_of(enum portable_form form)
{
    const struct embedded *image = cuda_images;
    const size_t length = strlen(form_names[form]);
    while (image->name && (strncmp(image->name, form_names[form], length) != 0 ||
                           strcmp(image->name + length, ".ptx") != 0))
        image++;
    return image;
}

static int32_t load_module(struct device *device, enum portable_form form)
{
    enum { LOG = 5, LOG_BYTES = 6 };
    char log[700] = "", what[900];
    int options[] = { LOG, LOG_BYTES };
    void *values[] = { log, (void *)(uintptr_t)sizeof log };
    const int result = device->cuda->module_load(&device->module[form],
                                                 image_of(form)->data, 2, options, values);
    log[sizeof log - 1] = '\0';
    snprintf(what, sizeof what, "load the kernels for %s%s%s", form_names[form],
             log[0] ? ": " : "", log);
    return answer(device, result, what);
}

static int32_t find_function(struct device *device, const struct lowered *l,
                             void **function)
{
    char name[64];
    int32_t status = HW_OK;
    lowered_name(l, name, sizeof name);
    if (!device->module[l->form])
        status = load_module(device, l->form);
    if (!status)
        status = answer(
            device, device->cuda->module_function(function, device->module[l->form], name),
            "find a kernel");
    if (!status)
        device->function[l->form][l->kernel] = *function;
    return status;
}

/* In the device's context. */
static int32_t function_of(struct device *device, const struct lowered *l, void **function)
{
    int32_t status = HW_OK;
    *function = device->function[l->form][l->kernel];
    if (*function)
        return HW_OK;
    pthread_mutex_lock(&device->lock);
    *function = device->function[l->form][l->kernel];
    if (!*function)
        status = find_function(device, l, function);
    pthread_mutex_unlock(&device->lock);
    return status;
}

void launch_unload(struct device *device)
{
    for (int form = 0; form < FORM_COUNT; form++)
        if (device->module[form])
            device->cuda->module_unload(device->module[form]);
}

/* ---- launches ---- */

/* The address that kernels count an operand's offset from. One that is absent is not read. */
static uint64_t base_of(const struct hw_tensor *t)
{
    return t ? ((const struct block *)t->buffer->impl)->address : 0;
}

static int32_t launch(struct device *device, struct lowered *l, void *stream)
{
    uint64_t address[PORTABLE_POINTERS];
    void *arguments[PORTABLE_POINTERS + 1], *function;
    const int32_t status = function_of(device, l, &function);
    if (status)
        return status;
    for (uint32_t i = 0; i < l->pointers; i++) {
        address[i] = base_of(l->operand[i]);
        arguments[i] = &address[i];
    }
    arguments[l->pointers] = &l->args;
    return answer(device,
                  device->cuda->launch(function, (unsigned)l->groups, 1, 1, GROUP, 1, 1, 0,
                                       stream, arguments, NULL),
                  "launch a kernel");
}

int32_t launch_op(struct queue *queue, uint32_t op, const void *args, void *stream)
{
    struct plan plan;
    const char *why = kernel_plan(&queue->choice, op, args, &plan);
    if (why)
        return hw_fail(queue->device->host, HW_UNSUPPORTED, "%s", why);
    return plan.lowered.groups ? launch(queue->device, &plan.lowered, stream) : HW_OK;
}

static int32_t submit(struct queue *queue, uint32_t op, const void *args)
{
    int32_t status = enter(queue->device);
    if (status)
        return status;
    status = launch_op(queue, op, args, queue->stream);
    leave(queue->device);
    return status;
}

KERNEL_QUERIES
KERNEL_OPS
