/* SPDX-License-Identifier: MIT */
/* distant.c - a device that cannot read host memory, and computes silu alone. */
#define NAME   "distant"
#define LINES  "title=Distant device\nvendor=nobody\nrank=96\n"
#define DEVICE "Distant device"
#define CHANGES
#include "minimal.h"

#include <math.h>
#include <stdbool.h>

static float *floats(const struct hw_tensor *t)
{
    return (float *)hw_tensor_address(t);
}

static int64_t count_of(const struct hw_tensor *t)
{
    int64_t count = 1;
    for (int i = 0; i < t->rank; i++)
        count *= t->extent[i];
    return count;
}

static bool is_plain(const struct hw_tensor *t)
{
    return t->dtype == HW_F32 &&
           (t->rank < 2 || t->stride[0] == t->extent[1] * (int64_t)sizeof(float));
}

static int32_t supports(void *device, uint32_t op, const void *args, char *why, size_t size,
                        uint64_t *scratch)
{
    const struct hw_silu *silu = args;
    (void)device;
    *scratch = 0;
    if (op == HW_OP_SILU && silu->x.rank <= 2 && is_plain(&silu->x) && is_plain(&silu->y))
        return HW_OK;
    snprintf(why, size, "it computes silu of f32");
    return HW_UNSUPPORTED;
}

static int32_t silu(void *device, void *queue, const struct hw_silu *op)
{
    const int64_t count = count_of(&op->x);
    (void)device, (void)queue;
    for (int64_t i = 0; i < count; i++)
        floats(&op->y)[i] = floats(&op->x)[i] / (1.0f + expf(-floats(&op->x)[i]));
    return HW_OK;
}

static int32_t info(void *self, int32_t index, struct hw_device_info *out)
{
    struct hw_device_info facts = hw_no_facts();
    (void)self, (void)index;
    facts.kind = HW_DEVICE_DISCRETE;
    strcpy(facts.name, DEVICE);
    hw_answer(out, &facts);
    return HW_OK;
}

/* Work besides ops, done immediately. */
static int32_t other_work(void *device, void *queue, const struct hw_arg *args,
                          uint32_t count)
{
    (void)device, (void)queue, (void)args, (void)count;
    return HW_OK;
}

static int32_t extension(void *device, uint32_t index, struct hw_extension *out)
{
    static const struct hw_extension row = {
        .size = sizeof row, .name = "distant.work", .signature = "", .call = other_work
    };
    (void)device;
    if (index)
        return HW_END;
    hw_answer(out, &row);
    return HW_OK;
}

static void change(struct hw_plugin *table)
{
    static const struct hw_plugin_ops ops = { .size = sizeof ops, .silu = silu };
    table->ops = &ops;
    table->supports = supports;
    table->device_info = info;
    table->extension = extension;
}
