/* SPDX-License-Identifier: MIT */
/* defaults.c - functions for the slots that a plugin leaves empty: they return HW_UNSUPPORTED and
 * name the missing slot. */
#include "load/defaults.h"

#include "base/message.h"

#include <stdio.h>

static int32_t missing(const char *what)
{
    char text[128];
    snprintf(text, sizeof text, "the plugin has no %s", what);
    return plugin_message_set(HW_UNSUPPORTED, text);
}

#define MISSING_OP(NAME, name)                                                             \
    static int32_t missing_##name(void *device, void *queue, const struct hw_##name *op)   \
    {                                                                                      \
        (void)device, (void)queue, (void)op;                                               \
        return missing(#name);                                                             \
    }
HW_OPS(MISSING_OP)
#undef MISSING_OP

static int32_t missing_event_create(void *device, uint32_t flags, void **event)
{
    (void)device, (void)flags;
    *event = NULL;
    return missing("events");
}

static void missing_destroy(void *object)
{
    (void)object;
}

static int32_t missing_event(void *event)
{
    (void)event;
    return missing("events");
}

static int32_t missing_event_queue(void *a, void *b)
{
    (void)a, (void)b;
    return missing("events");
}

static int32_t missing_event_callback(void *event, void (*fn)(void *user), void *user)
{
    (void)event, (void)fn, (void)user;
    return missing("event callbacks");
}

static int32_t missing_event_elapsed(void *start, void *end, double *ms)
{
    (void)start, (void)end, (void)ms;
    return missing("event times");
}

/* Returns HW_OK: without this slot, only submitting an op shows whether it is supported. An
 * unsupported op returns HW_UNSUPPORTED before it touches anything. */
static int32_t missing_supports(void *device, uint32_t op, const void *args, char *why,
                                size_t why_size, uint64_t *scratch)
{
    (void)device, (void)op, (void)args, (void)scratch;
    if (why_size)
        why[0] = '\0';
    return HW_OK;
}

static int32_t missing_kernel_info(void *device, uint32_t op, uint32_t index,
                                   struct hw_kernel_info *info)
{
    (void)device, (void)op, (void)index, (void)info;
    return missing("list of kernel rows");
}

static int32_t missing_graph_build(void *queue, const struct hw_node *nodes, uint32_t count,
                                   void **graph)
{
    (void)queue, (void)nodes, (void)count;
    *graph = NULL;
    return missing("graphs");
}

static int32_t missing_graph_launch(void *queue, void *graph)
{
    (void)queue, (void)graph;
    return missing("graphs");
}

static int32_t missing_pack_size(void *device, const struct hw_tensor *src, uint64_t *bytes,
                                 uint32_t *layout)
{
    (void)device, (void)src, (void)bytes, (void)layout;
    return missing("layout of its own for weights");
}

static int32_t missing_pack(void *queue, const struct hw_tensor *dst,
                            const struct hw_tensor *src)
{
    (void)queue, (void)dst, (void)src;
    return missing("layout of its own for weights");
}

static int32_t missing_buffer_import(void *device, const struct hw_import *desc,
                                     struct hw_buffer *buffer)
{
    (void)device, (void)desc, (void)buffer;
    return missing("import of foreign memory");
}

static int32_t missing_queue_import(void *device, const struct hw_queue_desc *desc,
                                    const char *kind, void *handle, void **queue)
{
    (void)device, (void)desc, (void)kind, (void)handle;
    *queue = NULL;
    return missing("import of foreign queues");
}

static int32_t missing_extension(void *device, uint32_t index,
                                 struct hw_extension *extension)
{
    (void)device, (void)index, (void)extension; /* none */
    return HW_END;
}

static int32_t missing_kernel_build(void *device, const struct hw_user_kernel *desc,
                                    void **kernel)
{
    (void)device, (void)desc;
    *kernel = NULL;
    return missing("user kernels");
}

static int32_t missing_kernel_launch(void *queue, void *kernel, uint64_t groups,
                                     const struct hw_arg *args, uint32_t count)
{
    (void)queue, (void)kernel, (void)groups, (void)args, (void)count;
    return missing("user kernels");
}

static int32_t missing_queue_export(void *queue, const char *kind, void **handle)
{
    (void)queue, (void)kind;
    *handle = NULL;
    return missing("handles of its queues");
}

static int32_t missing_buffer_export(void *device, const struct hw_buffer *buffer,
                                     const char *kind, struct hw_import *desc)
{
    (void)device, (void)buffer, (void)kind, (void)desc;
    return missing("handles of its memory");
}

static int32_t missing_device_import(void *self, const char *kind, void *handle,
                                     int32_t *index)
{
    (void)self, (void)kind, (void)handle, (void)index;
    return missing("handles of its devices");
}

static int32_t missing_kernel_launch_3d(void *queue, void *kernel, const uint64_t groups[3],
                                        const struct hw_arg *args, uint32_t count)
{
    (void)queue, (void)kernel, (void)groups, (void)args, (void)count;
    return missing("launches in more than one dimension");
}

static int32_t missing_plan_build(void *queue, uint32_t op, const void *args, void **plan)
{
    (void)queue, (void)op, (void)args;
    *plan = NULL;
    return missing("plans");
}

static int32_t missing_plan_launch(void *queue, void *plan, const void *args)
{
    (void)queue, (void)plan, (void)args;
    return missing("plans");
}

void defaults_fill(struct hw_plugin *table, struct hw_plugin_ops *ops)
{
#define FILL(slot, function)                                                               \
    if (!table->slot)                                                                      \
        table->slot = function;
    FILL(event_create, missing_event_create)
    FILL(event_destroy, missing_destroy)
    FILL(event_record, missing_event_queue)
    FILL(event_wait, missing_event_queue)
    FILL(event_sync, missing_event)
    FILL(event_query, missing_event)
    FILL(event_callback, missing_event_callback)
    FILL(event_elapsed, missing_event_elapsed)
    FILL(supports, missing_supports)
    FILL(kernel_info, missing_kernel_info)
    FILL(graph_build, missing_graph_build)
    FILL(graph_launch, missing_graph_launch)
    FILL(graph_destroy, missing_destroy)
    FILL(pack_size, missing_pack_size)
    FILL(pack, missing_pack)
    FILL(buffer_import, missing_buffer_import)
    FILL(queue_import, missing_queue_import)
    FILL(extension, missing_extension)
    FILL(kernel_build, missing_kernel_build)
    FILL(kernel_launch, missing_kernel_launch)
    FILL(kernel_destroy, missing_destroy)
    FILL(queue_export, missing_queue_export)
    FILL(buffer_export, missing_buffer_export)
    FILL(device_import, missing_device_import)
    FILL(kernel_launch_3d, missing_kernel_launch_3d)
    FILL(plan_build, missing_plan_build)
    FILL(plan_launch, missing_plan_launch)
    FILL(plan_destroy, missing_destroy)
#undef FILL
#define X(NAME, name)                                                                      \
    if (!ops->name)                                                                        \
        ops->name = missing_##name;
    HW_OPS(X)
#undef X
}
