/* SPDX-License-Identifier: MIT */
/* From an op to the launch of a kernel: the rows, the modules that hold the kernels, and the
 * launch. A module is loaded when the first of its kernels is used. */
#include "cuda.h"

enum { GROUP = 256 }; /* threads; as in kernels/prelude/group.h */

/* The PTX of the images: "f16_f32.ptx". */
extern const struct embedded cuda_images[];

static const char *const image_names[IMAGE_COUNT] = {
    "mixed",
#define VARIANT(act, wgt) #act "_" #wgt,
#include "../../kernels/kernels.def"
    "matmul_gemv",
};

static const struct {
    int image;
    const char *name;
} tuned_kernels[TUNED_COUNT] = {
#define X(image, name) [TUNED_##name] = { IMAGE_##image, #name },
    TUNED_KERNELS(X)
#undef X
};

/* ---- rows ---- */

kernel_plan_fn plan_portable;
const char *plan_portable(struct plan *plan, const struct kernel_row *row, const void *args)
{
    plan->tuned = TUNED_NONE;
    return lower(row->op, args, &plan->lowered);
}

#define ROW ROW_DECLARE
#include "kernels.def"
#define ROW ROW_ENTRY
static const struct kernel_row rows[] = {
#include "kernels.def"
};

static void describe_needs(uint64_t needs, char *text, size_t size)
{
    snprintf(text, size, "%s%s%s", needs & SM_80 ? "sm_80" : "",
             needs & SM_80 && needs & SHARED_160K ? ", " : "",
             needs & SHARED_160K ? "160 KiB of shared memory" : "");
}

const struct kernel_table launch_kernels = { rows, sizeof rows / sizeof rows[0],
                                             describe_needs };

/* ---- modules ---- */

static const struct embedded *image_of(int number)
{
    const struct embedded *image = cuda_images;
    const size_t length = strlen(image_names[number]);
    while (image->name && (strncmp(image->name, image_names[number], length) != 0 ||
                           strcmp(image->name + length, ".ptx") != 0))
        image++;
    return image;
}

static int32_t load_module(struct device *device, int image)
{
    enum { LOG = 5, LOG_BYTES = 6 };
    char log[700] = "", what[900];
    int options[] = { LOG, LOG_BYTES };
    void *values[] = { log, (void *)(uintptr_t)sizeof log };
    const int result = device->cuda->module_load(&device->module[image],
                                                 image_of(image)->data, 2, options, values);
    log[sizeof log - 1] = '\0';
    snprintf(what, sizeof what, "load the kernels for %s%s%s", image_names[image],
             log[0] ? ": " : "", log);
    return answer(device, result, what);
}

static int32_t find_function(struct device *device, const struct plan *plan,
                             void **function)
{
    enum { DYNAMIC_SHARED_MOST = 8 };
    const struct driver *cuda = device->cuda;
    const int image = plan->tuned ? tuned_kernels[plan->tuned].image
                                  : (int)plan->lowered.form;
    char name[64];
    if (plan->tuned)
        snprintf(name, sizeof name, "%s", tuned_kernels[plan->tuned].name);
    else
        lowered_name(&plan->lowered, name, sizeof name);
    int32_t status = device->module[image] ? HW_OK : load_module(device, image);
    if (!status)
        status = answer(device,
                        cuda->module_function(function, device->module[image], name),
                        "find a kernel");
    if (!status && plan->tuned)
        status = answer(device,
                        cuda->function_set(*function, DYNAMIC_SHARED_MOST, SHARED_MOST),
                        "give a kernel more shared memory");
    return status;
}

/* In the device's context. */
static int32_t function_of(struct device *device, const struct plan *plan, void **function)
{
    _Atomic(void *) *kept =
        plan->tuned ? &device->tuned[plan->tuned]
                    : &device->function[plan->lowered.form][plan->lowered.kernel];
    int32_t status = HW_OK;
    *function = *kept;
    if (*function)
        return HW_OK;
    pthread_mutex_lock(&device->lock);
    *function = *kept;
    if (!*function)
        status = find_function(device, plan, function);
    if (!status)
        *kept = *function;
    pthread_mutex_unlock(&device->lock);
    return status;
}

void launch_unload(struct device *device)
{
    for (int image = 0; image < IMAGE_COUNT; image++)
        if (device->module[image])
            device->cuda->module_unload(device->module[image]);
}

/* ---- launches ---- */

uint64_t launch_base(const struct hw_tensor *t)
{
    return t && t->buffer ? ((const struct block *)t->buffer->impl)->address : 0;
}

static int32_t launch(struct device *device, struct plan *plan, void *stream)
{
    struct lowered *l = &plan->lowered;
    uint64_t address[PORTABLE_POINTERS];
    void *arguments[PORTABLE_POINTERS + 1], *function;
    const int32_t status = function_of(device, plan, &function);
    if (status)
        return status;
    for (uint32_t i = 0; i < l->pointers; i++) {
        address[i] = launch_base(l->operand[i]);
        arguments[i] = &address[i];
    }
    arguments[l->pointers] = &l->args;
    unsigned groups = (unsigned)l->groups, threads = GROUP, shared = 0;
    if (plan->tuned) {
        groups = l->groups < device->units ? groups : (unsigned)device->units;
        threads = plan->threads;
        shared = plan->shared;
    }
    return answer(device,
                  device->cuda->launch(function, groups, 1, 1, threads, 1, 1, shared,
                                       stream, arguments, NULL),
                  "launch a kernel");
}

int32_t launch_op(struct queue *queue, uint32_t op, const void *args, void *stream)
{
    struct plan plan;
    const char *why = kernel_plan(&queue->choice, op, args, &plan);
    if (why)
        return hw_fail(queue->device->host, HW_UNSUPPORTED, "%s", why);
    return plan.lowered.groups ? launch(queue->device, &plan, stream) : HW_OK;
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
