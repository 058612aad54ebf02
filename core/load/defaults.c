/* SPDX-License-Identifier: MIT */
/* defaults.c - functions for the slots that a plugin leaves empty: they return HW_UNSUPPORTED and
 * name the missing slot. */
#include "load/defaults.h"

#include "base/message.h"

#include <stdio.h>

/* The functions below have the parameters of their slots, and use hardly any. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static int32_t missing(const char *what)
{
    char text[128];
    snprintf(text, sizeof text, "the plugin has no %s", what);
    return plugin_message_set(HW_UNSUPPORTED, text);
}

static int32_t missing_object(const char *what, void **object)
{
    *object = NULL;
    return missing(what);
}

/* Without this slot, only submitting an op shows whether it is supported. An unsupported op returns
 * HW_UNSUPPORTED before it touches anything. */
static int32_t maybe_supported(char *why, size_t why_size)
{
    if (why_size)
        why[0] = '\0';
    return HW_OK;
}

/* X(slot, parameters, result) */
#define OPTIONAL_SLOTS(X)                                                                  \
    X(event_create, (void *device, uint32_t flags, void **event),                          \
      missing_object("events", event))                                                     \
    X(event_record, (void *event, void *queue), missing("events"))                         \
    X(event_wait, (void *queue, void *event), missing("events"))                           \
    X(event_sync, (void *event), missing("events"))                                        \
    X(event_query, (void *event), missing("events"))                                       \
    X(event_callback, (void *event, void (*fn)(void *), void *user),                       \
      missing("event callbacks"))                                                          \
    X(event_elapsed, (void *start, void *end, double *ms), missing("event times"))         \
    X(supports,                                                                            \
      (void *device, uint32_t op, const void *args, char *why, size_t why_size,            \
       uint64_t *scratch),                                                                 \
      maybe_supported(why, why_size))                                                      \
    X(kernel_info,                                                                         \
      (void *device, uint32_t op, uint32_t index, struct hw_kernel_info *info),            \
      missing("list of kernel rows"))                                                      \
    X(graph_build,                                                                         \
      (void *queue, const struct hw_node *nodes, uint32_t count, void **graph),            \
      missing_object("graphs", graph))                                                     \
    X(graph_launch, (void *queue, void *graph), missing("graphs"))                         \
    X(pack_size,                                                                           \
      (void *device, const struct hw_tensor *src, uint64_t *bytes, uint32_t *layout),      \
      missing("layout of its own for weights"))                                            \
    X(pack, (void *queue, const struct hw_tensor *dst, const struct hw_tensor *src),       \
      missing("layout of its own for weights"))                                            \
    X(buffer_import,                                                                       \
      (void *device, const struct hw_import *desc, struct hw_buffer *buffer),              \
      missing("import of foreign memory"))                                                 \
    X(queue_import,                                                                        \
      (void *device, const struct hw_queue_desc *desc, const char *kind, void *handle,     \
       void **queue),                                                                      \
      missing_object("import of foreign queues", queue))                                   \
    X(extension, (void *device, uint32_t index, struct hw_extension *extension), HW_END)   \
    X(kernel_build, (void *device, const struct hw_user_kernel *desc, void **kernel),      \
      missing_object("user kernels", kernel))                                              \
    X(kernel_launch,                                                                       \
      (void *queue, void *kernel, uint64_t groups, const struct hw_arg *args,              \
       uint32_t count),                                                                    \
      missing("user kernels"))                                                             \
    X(queue_export, (void *queue, const char *kind, void **handle),                        \
      missing_object("handles of its queues", handle))                                     \
    X(buffer_export,                                                                       \
      (void *device, const struct hw_buffer *buffer, const char *kind,                     \
       struct hw_import *desc),                                                            \
      missing("handles of its memory"))                                                    \
    X(device_import, (void *self, const char *kind, void *handle, int32_t *index),         \
      missing("handles of its devices"))                                                   \
    X(kernel_launch_3d,                                                                    \
      (void *queue, void *kernel, const uint64_t groups[3], const struct hw_arg *args,     \
       uint32_t count),                                                                    \
      missing("launches in more than one dimension"))                                      \
    X(plan_build, (void *queue, uint32_t op, const void *args, void **plan),               \
      missing_object("plans", plan))                                                       \
    X(plan_launch, (void *queue, void *plan, const void *args), missing("plans"))

#define X(slot, parameters, result)                                                        \
    static int32_t missing_##slot parameters                                               \
    {                                                                                      \
        return result;                                                                     \
    }
OPTIONAL_SLOTS(X)
#undef X

#define X(NAME, name)                                                                      \
    static int32_t missing_op_##name(void *device, void *queue,                            \
                                     const struct hw_##name *op)                           \
    {                                                                                      \
        return missing(#name);                                                             \
    }
HW_OPS(X)
#undef X

static void missing_destroy(void *object)
{
}

void defaults_fill(struct hw_plugin *table, struct hw_plugin_ops *ops)
{
#define FILL(table, slot, function)                                                        \
    if (!(table)->slot)                                                                    \
        (table)->slot = function;
#define X(slot, parameters, result) FILL(table, slot, missing_##slot)
    OPTIONAL_SLOTS(X)
#undef X
    FILL(table, event_destroy, missing_destroy)
    FILL(table, graph_destroy, missing_destroy)
    FILL(table, kernel_destroy, missing_destroy)
    FILL(table, plan_destroy, missing_destroy)
#define X(NAME, name) FILL(ops, name, missing_op_##name)
    HW_OPS(X)
#undef X
#undef FILL
}
