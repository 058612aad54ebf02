/* SPDX-License-Identifier: MIT */
/* From an op to the launch of a kernel: the rows, the modules with the kernels, and the launch. A
 * module is loaded when the first of its kernels is used. */
#include "launch.h"

#include "common/lowering.h"

#include <stdlib.h>

enum { GROUP = 256 }; /* threads; as in kernels/prelude/group.h */

/* The images: "f16_f32.ptx", "matmul_gemv.sm_90a.cubin". */
extern const struct embedded cuda_images[];

static const char *const image_names[IMAGE_COUNT] = {
    "mixed",
#define VARIANT(act, wgt) #act "_" #wgt,
#include "../../kernels/kernels.def"
#define IMAGE(image) #image,
#include "tuned.def"
};

/* ---- rows ---- */

const char *launch_lower(struct plan *plan, const struct kernel_row *row, const void *args)
{
    plan->launch = NULL;
    plan->workspace = 0;
    return lower(row->op, args, &plan->lowered);
}

kernel_plan_fn plan_portable;
const char *plan_portable(struct plan *plan, const struct kernel_row *row, const void *args)
{
    return launch_lower(plan, row, args);
}

#define ROW ROW_DECLARE
#include "kernels.def"
#define ROW ROW_ENTRY
static const struct kernel_row rows[] = {
#include "kernels.def"
};

/* The need for a driver is shown only if nothing else is missing. */
static void describe_needs(uint64_t needs, char *text, size_t size)
{
    if (needs == MACHINE_CODE) {
        snprintf(text, size, "a driver with CUDA %d or later", MACHINE_CODE_CUDA / 1000);
        return;
    }
    static const char *const names[] = { "sm_80",          "160 KiB of shared memory",
                                         "sm_90a",         "HW_PRECISION=fp16",
                                         "sm_80 to sm_90", "HW_PRECISION=int8" };
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (needs & UINT64_C(1) << i && at < size)
            at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "", names[i]);
}

const struct kernel_table launch_kernels = { rows, sizeof rows / sizeof rows[0],
                                             describe_needs };

/* ---- modules ---- */

/* Rates machine code of `arch`, "sm_80", for a device; 0: it does not run. It runs on later devices
 * of the same generation; code of "sm_90a" runs only on 9.0. */
static long suits(const char *arch, int capability)
{
    char *end;
    const long is = strtol(arch + strlen("sm_"), &end, 10);
    if (*end == 'a')
        return is == capability ? is + 1 : 0;
    return is / 10 == capability / 10 && is <= capability ? is : 0;
}

/* Drivers do not load machine code of a later major version of CUDA. PTX runs on any device, but
 * the driver has to translate it. */
static const struct embedded *image_of(const struct device *device, int number)
{
    const struct embedded *best = NULL;
    const size_t length = strlen(image_names[number]);
    const bool loads = number < FORM_COUNT ? device->plugin->translated_code
                                           : device->plugin->machine_code;
    long most = 0;
    for (const struct embedded *image = cuda_images; image->name; image++) {
        if (strncmp(image->name, image_names[number], length) != 0 ||
            image->name[length] != '.')
            continue;
        const char *arch = image->name + length + 1;
        const long how = !strcmp(arch, "ptx") ? 1
                         : loads              ? suits(arch, device->capability)
                                              : 0;
        if (how > most) {
            most = how;
            best = image;
        }
    }
    return best;
}

int32_t launch_load(struct device *device, const void *image, const char *name,
                    void **module)
{
    char log[700] = "", what[900];
    int options[] = { MODULE_LOG, MODULE_LOG_BYTES };
    void *values[] = { log, (void *)(uintptr_t)sizeof log };
    const int result = device->cuda->module_load(module, image, 2, options, values);
    log[sizeof log - 1] = '\0';
    snprintf(what, sizeof what, "load the kernels for %.100s%s%s", name, log[0] ? ": " : "",
             log);
    return answer(device, result, what);
}

static int32_t load_module(struct device *device, int number)
{
    const struct embedded *image = image_of(device, number);
    if (!image)
        return hw_fail(device->host, HW_UNSUPPORTED,
                       "the kernels for %s were not built for this device",
                       image_names[number]);
    return launch_load(device, image->data, image_names[number], &device->module[number]);
}

static int32_t find_function(struct device *device, int image, const char *name,
                             void **function)
{
    const int32_t status = device->module[image] ? HW_OK : load_module(device, image);
    char what[160];
    if (status)
        return status;
    const int result = device->cuda->module_function(function, device->module[image], name);
    if (!result)
        return HW_OK;
    snprintf(what, sizeof what, "find the kernel %s in %s", name,
             image_of(device, image)->name);
    return answer(device, result, what);
}

/* Lets a kernel have all the shared memory that it does not declare. If two kernels divide the
 * memory of a multiprocessor differently, the second waits until the first has left it. */
static int32_t allow_shared(struct device *device, void *function)
{
    int declared = 0;
    int32_t status =
        answer(device, device->cuda->function_get(&declared, FUNCTION_SHARED, function),
               "ask for the shared memory of a kernel");
    if (!status)
        status = answer(
            device, device->cuda->function_set(function, FUNCTION_CARVEOUT, CARVEOUT_ALL),
            "divide a multiprocessor's memory for a kernel");
    if (status || device->shared_most <= declared)
        return status;
    return answer(device,
                  device->cuda->function_set(function, FUNCTION_DYNAMIC_MOST,
                                             device->shared_most - declared),
                  "give a kernel more shared memory");
}

/* In the device's context. */
static int32_t portable_function(struct device *device, const struct lowered *l,
                                 void **function)
{
    _Atomic(void *) *kept = &device->function[l->form][l->kernel];
    char name[64];
    int32_t status = HW_OK;
    *function = *kept;
    if (*function)
        return HW_OK;
    lowered_name(l, name, sizeof name);
    pthread_mutex_lock(&device->lock);
    *function = *kept; /* another thread may have been faster */
    if (!*function)
        status = find_function(device, (int)l->form, name, function);
    if (!status)
        *kept = *function;
    pthread_mutex_unlock(&device->lock);
    return status;
}

static int32_t tuned_function(struct device *device, enum tuned kernel, void **function)
{
    _Atomic(void *) *kept = &device->tuned[kernel];
    int32_t status = HW_OK;
    *function = *kept;
    if (*function)
        return HW_OK;
    pthread_mutex_lock(&device->lock);
    *function = *kept;
    if (!*function) {
        status = find_function(device, tuned_image(kernel), tuned_kernels[kernel].name,
                               function);
        if (!status)
            status = allow_shared(device, *function);
    }
    if (!status)
        *kept = *function;
    pthread_mutex_unlock(&device->lock);
    return status;
}

void launch_unload(struct device *device)
{
    for (int image = 0; image < IMAGE_COUNT; image++)
        if (device->module[image])
            note(device, device->cuda->module_unload(device->module[image]),
                 "unload kernels");
}

/* ---- launches ---- */

uint64_t launch_base(const struct hw_tensor *t)
{
    return t && present(t) && t->buffer ? ((const struct block *)t->buffer->impl)->address
                                        : 0;
}

struct range launch_range(const struct hw_tensor *t)
{
    struct range r = { 0 };
    if (!t || !present(t))
        return r;
    r.begin = launch_base(t) + (uint64_t)offset_of(t);
    r.end = r.begin +
            (uint64_t)(cols_of(t) / hw_dtype_block(t->dtype) * hw_dtype_bytes(t->dtype));
    for (int axis = 1; axis < t->rank; axis++)
        r.end += (uint64_t)((extent_of(t, axis) - 1) * stride_of(t, axis));
    return r;
}

/* The parameters of a portable kernel. */
struct parameters {
    uint64_t address[PORTABLE_POINTERS];
    void *value[PORTABLE_POINTERS + 1];
};

static void set_parameters(struct parameters *p, const struct lowered *l)
{
    for (uint32_t i = 0; i < l->pointers; i++) {
        p->address[i] = launch_base(l->operand[i]);
        p->value[i] = &p->address[i];
    }
    p->value[l->pointers] = (void *)(uintptr_t)&l->args;
}

static int32_t launch_portable(const struct launcher *at, const struct plan *plan)
{
    const struct lowered *l = &plan->lowered;
    struct parameters p;
    void *function;
    const int32_t status = portable_function(at->device, l, &function);
    if (status)
        return status;
    set_parameters(&p, l);
    return answer(at->device,
                  at->device->cuda->launch(function, (unsigned)l->groups, 1, 1, GROUP, 1, 1,
                                           0, at->stream, p.value, NULL),
                  "launch a kernel");
}

static int32_t launch_tuned(const struct launcher *at, const struct launch *l,
                            void **parameters)
{
    static const struct launch_attribute early = { .id = LAUNCH_EARLY, .value = 1 };
    const struct driver *cuda = at->device->cuda;
    const bool can_be_early = l->early && !at->in_order && at->device->capability >= 90 &&
                              cuda->launch_ex;
    void *function;
    const int32_t status = tuned_function(at->device, l->kernel, &function);
    if (status)
        return status;
    const struct launch_config config = {
        .groups = { l->groups[0], l->groups[1], l->groups[2] },
        .threads = { l->threads, 1, 1 },
        .shared = l->shared,
        .stream = at->stream,
        .attributes = &early,
        .attribute_count = 1,
    };
    return answer(at->device,
                  can_be_early ? cuda->launch_ex(&config, function, parameters, NULL)
                               : cuda->launch(function, l->groups[0], l->groups[1],
                                              l->groups[2], l->threads, 1, 1, l->shared,
                                              at->stream, parameters, NULL),
                  "launch a kernel");
}

int32_t launch_kernel(const struct launcher *at, const struct launch *launch,
                      const void *args)
{
    return launch_tuned(at, launch, (void *[]){ (void *)(uintptr_t)args });
}

int32_t launch_as_portable(const struct launcher *at, const struct launch *launch,
                           const struct plan *plan)
{
    struct parameters p;
    set_parameters(&p, &plan->lowered);
    return launch_tuned(at, launch, p.value);
}

void launch_release(struct device *device, struct workspace *workspace)
{
    if (!workspace->bytes)
        return;
    note(device, device->cuda->memory_free(workspace->address), "free device memory");
    hw_count_memory(device->host, device, -(int64_t)workspace->bytes);
    *workspace = (struct workspace){ 0 };
}

static int32_t allocate(struct device *device, struct workspace *workspace, uint64_t bytes)
{
    int32_t status = hw_count_memory(device->host, device, (int64_t)bytes);
    if (status)
        return status;
    status = memory_reserve(device, bytes, &workspace->address);
    if (status)
        hw_count_memory(device->host, device, -(int64_t)bytes);
    else
        workspace->bytes = bytes;
    return status;
}

static int32_t clear_counters(struct device *device, const struct workspace *workspace)
{
    int result = device->cuda->fill(workspace->address, 0, WORKSPACE_HEAD, device->stream);
    if (!result)
        result = device->cuda->stream_wait(device->stream);
    return answer(device, result, "clear the counters of kernels");
}

int32_t launch_reserve(struct device *device, void *stream, struct workspace *workspace,
                       uint64_t bytes)
{
    if (bytes == 0 || bytes + WORKSPACE_HEAD <= workspace->bytes)
        return HW_OK;
    if (workspace->bytes) {
        const int32_t status = answer(device, device->cuda->stream_wait(stream),
                                      "wait for a queue's work");
        if (status)
            return status;
        launch_release(device, workspace);
    }
    int32_t status = allocate(device, workspace, bytes + WORKSPACE_HEAD);
    if (status)
        return status;
    status = clear_counters(device, workspace);
    if (status)
        launch_release(device, workspace);
    return status;
}

int32_t launch_plan(struct queue *queue, uint32_t op, const void *args, struct plan *plan)
{
    const char *why = kernel_plan(&queue->choice, op, args, plan);
    return why ? hw_fail(queue->device->host, HW_UNSUPPORTED, "%s", why) : HW_OK;
}

int32_t launch_planned(const struct launcher *at, const struct plan *plan, const void *args)
{
    if (plan->lowered.groups == 0)
        return HW_OK;
    return plan->launch ? plan->launch(at, plan, args) : launch_portable(at, plan);
}

static int32_t submit(struct queue *queue, uint32_t op, const void *args)
{
    struct device *device = queue->device;
    struct plan plan;
    int32_t status = enter(device);
    if (status)
        return status;
    status = launch_plan(queue, op, args, &plan);
    if (!status)
        status = launch_reserve(device, queue->stream, &queue->workspace, plan.workspace);
    if (!status)
        status = launch_planned(
            &(struct launcher){
                .device = device,
                .stream = queue->stream,
                .workspace = queue->workspace.address + WORKSPACE_HEAD,
                .in_order = queue->copied || queue->shared,
            },
            &plan, args);
    queue->copied = op == HW_OP_COPY;
    leave(device);
    return status;
}

KERNEL_QUERIES_WITH(plan.workspace)
KERNEL_OPS
