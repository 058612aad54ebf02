/* SPDX-License-Identifier: MIT */
/* refused.c - slots that cannot work across processes: they need handles of the vendor's library or
 * functions of the application. */
#include "worker/remote.h"

/* `handle`: of the table. */
static int32_t refuse(const void *handle, const char *what)
{
    return worker_fail(
        remote_worker(handle), HW_UNSUPPORTED,
        "%s does not work in worker mode, where the plugin is in another process; to use "
        "it, take the plugin out of HW_WORKER",
        what);
}

static int32_t no_event_callback(void *event, void (*fn)(void *user), void *user)
{
    (void)fn, (void)user;
    return refuse(event, "a callback of an event");
}

static int32_t no_buffer_import(void *device, const struct hw_import *desc,
                                struct hw_buffer *buffer)
{
    (void)desc, (void)buffer;
    return refuse(device, "import of memory");
}

static int32_t no_queue_import(void *device, const struct hw_queue_desc *desc,
                               const char *kind, void *handle, void **queue)
{
    (void)desc, (void)kind, (void)handle;
    *queue = NULL;
    return refuse(device, "import of queues");
}

static int32_t no_device_import(void *self, const char *kind, void *handle, int32_t *index)
{
    const struct worker *const worker = self;
    (void)kind, (void)handle, (void)index;
    return refuse(&worker, "import of devices");
}

static int32_t no_queue_export(void *queue, const char *kind, void **handle)
{
    (void)kind;
    *handle = NULL;
    return refuse(queue, "export of queues");
}

static int32_t no_buffer_export(void *device, const struct hw_buffer *buffer,
                                const char *kind, struct hw_import *desc)
{
    (void)buffer, (void)kind, (void)desc;
    return refuse(device, "export of memory");
}

static int32_t no_kernel_build(void *device, const struct hw_user_kernel *desc,
                               void **kernel)
{
    (void)desc;
    *kernel = NULL;
    return refuse(device, "a kernel of the application");
}

void remote_fill_refused(struct hw_plugin *table)
{
    table->event_callback = no_event_callback;
    table->buffer_import = no_buffer_import;
    table->queue_import = no_queue_import;
    table->device_import = no_device_import;
    table->queue_export = no_queue_export;
    table->buffer_export = no_buffer_export;
    table->kernel_build = no_kernel_build;
}
