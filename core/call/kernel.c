/* SPDX-License-Identifier: MIT */
/* kernel.c - kernels written by the application. The plugin compiles and launches them; the core
 * checks their arguments. */
#include "base/argument.h"
#include "base/fork.h"
#include "base/list.h"
#include "base/message.h"
#include "call/queue.h"
#include "call/signature.h"
#include "memory/device.h"
#include "route/cost.h"

#include <stdlib.h>
#include <string.h>

struct hw_kernel {
    struct hw_device *device;
    void *impl;
    struct hw_kernel *next, *prev;
    const char *signature; /* behind the name */
    char name[];
};

static struct hw_kernel *kernel_of(struct hw_device *device,
                                   const struct hw_user_kernel *desc)
{
    const size_t name = strlen(desc->name) + 1, signature = strlen(desc->signature) + 1;
    struct hw_kernel *kernel = calloc(1, sizeof *kernel + name + signature);
    if (kernel) {
        kernel->device = device;
        memcpy(kernel->name, desc->name, name);
        kernel->signature = memcpy(kernel->name + name, desc->signature, signature);
    }
    return kernel;
}

static void kernel_free(struct hw_kernel *kernel)
{
    if (kernel->impl)
        kernel->device->plugin->table.kernel_destroy(kernel->impl);
    free(kernel);
}

static enum hw_status kernel_check(const struct hw_user_kernel *desc)
{
    const enum hw_status status =
        check_fields("hw_kernel_create", "desc", desc,
                     offsetof(struct hw_user_kernel, blob_bytes) + sizeof desc->blob_bytes,
                     sizeof *desc);
    if (status)
        return status;
    if (!desc->name || !desc->signature || !desc->group)
        return fail(HW_INVALID, "hw_kernel_create: name, signature and group must be set");
    if (!desc->source == !desc->blob)
        return fail(HW_INVALID, "hw_kernel_create: either source or blob must be set");
    if (desc->blob && !desc->blob_bytes)
        return fail(HW_INVALID, "hw_kernel_create: blob is set, and blob_bytes is 0");
    if (strspn(desc->signature, "toxif") != strlen(desc->signature))
        return fail(HW_INVALID,
                    "hw_kernel_create: signature \"%s\" has letters other than t o x i f",
                    desc->signature);
    if (strlen(desc->signature) > MAX_ARGUMENTS)
        return fail(HW_INVALID,
                    "hw_kernel_create: signature has %zu letters, must have at most %d",
                    strlen(desc->signature), MAX_ARGUMENTS);
    return HW_OK;
}

enum hw_status hw_kernel_create(struct hw_device *device, const struct hw_user_kernel *desc,
                                struct hw_kernel **kernel)
{
    REQUIRE(kernel);
    *kernel = NULL;
    REQUIRE(device);
    REQUIRE(desc);
    enum hw_status status = kernel_check(desc);
    if (status || (status = device_usable(device)) || (status = device_wake(device)))
        return status;
    struct hw_kernel *made = kernel_of(device, desc);
    if (!made)
        return fail(HW_NO_MEMORY, "out of memory for a kernel");
    struct hw_user_kernel known = { 0 };
    memcpy(&known, desc, desc->size < sizeof known ? desc->size : sizeof known);
    known.size = sizeof known;
    plugin_message_clear();
    status = device_result(
        device, device->plugin->table.kernel_build(device->impl, &known, &made->impl));
    if (status) {
        free(made);
        return fail_in(status, "kernel %s on %s: ", desc->name, device->name);
    }
    struct hw_context *context = device->context;
    pthread_mutex_lock(&context->lock);
    list_add(&context->kernels, made);
    pthread_mutex_unlock(&context->lock);
    *kernel = made;
    return HW_OK;
}

static int32_t kernel_submit(struct hw_queue *queue, void *kernel, const uint64_t groups[3],
                             const struct hw_arg *args, uint32_t count)
{
    const struct hw_plugin *table = &queue->device->plugin->table;
    if (groups[0] == 0 || groups[1] == 0 || groups[2] == 0)
        return HW_OK;
    plugin_message_clear();
    return groups[1] == 1 && groups[2] == 1
               ? table->kernel_launch(queue->impl, kernel, groups[0], args, count)
               : table->kernel_launch_3d(queue->impl, kernel, groups, args, count);
}

enum hw_status hw_kernel_launch_3d(struct hw_queue *queue, struct hw_kernel *kernel,
                                   const uint64_t groups[3], const struct hw_arg *args,
                                   uint32_t count)
{
    enum hw_status status = queue_ready(queue, "hw_kernel_launch");
    if (status)
        return status;
    if (!kernel)
        return fail_null("hw_kernel_launch", "kernel");
    if (!groups)
        return fail_null("hw_kernel_launch_3d", "groups");
    if (kernel->device != queue->device)
        return fail(HW_INVALID,
                    "hw_kernel_launch: the kernel belongs to %s, the queue to %s",
                    kernel->device->name, queue->device->name);
    if (queue->recording)
        return fail(HW_UNSUPPORTED, "hw_kernel_launch: user kernels cannot be recorded");
    if ((status = check_arguments(queue, kernel->name, kernel->signature, args, count)))
        return status;
    cost_route_other_work(queue);
    status = device_result(queue->device,
                           kernel_submit(queue, kernel->impl, groups, args, count));
    return status ? fail_in(status, "%s on %s: ", kernel->name, queue->device->name)
                  : settle_synchronous(queue);
}

enum hw_status hw_kernel_launch(struct hw_queue *queue, struct hw_kernel *kernel,
                                uint64_t groups, const struct hw_arg *args, uint32_t count)
{
    return hw_kernel_launch_3d(queue, kernel, (const uint64_t[3]){ groups, 1, 1 }, args,
                               count);
}

void hw_kernel_free(struct hw_kernel *kernel)
{
    if (!kernel || forked(kernel->device->context->generation))
        return;
    struct hw_context *context = kernel->device->context;
    pthread_mutex_lock(&context->lock);
    list_remove(&context->kernels, kernel);
    pthread_mutex_unlock(&context->lock);
    kernel_free(kernel);
}
