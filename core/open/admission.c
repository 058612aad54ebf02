/* SPDX-License-Identifier: MIT */
/* admission.c - applies the results of the probe's admission test (tools/probe) to devices. */
#include "open/admission.h"

#include "base/message.h"
#include "run/untested.h"

/* Logs one line per device. */
static void say(const struct hw_device *device, const struct withdrawn *first,
                uint32_t count)
{
    char dtypes[DTYPES_SIZE], others[64] = "";
    write_withdrawn(first->op, first->dtype, dtypes);
    if (count > 1)
        snprintf(others, sizeof others, " (and %u more, see `hw status`)",
                 (unsigned)count - 1);
    log_line(&device->context->log, HW_LOG_WARN,
             "%s (%s) is not used on %s: in the admission test, %s%s. Remedy: %s",
             hw_op_name(first->op), dtypes, device->name, first->why, others,
             WITHDRAWAL_REMEDY);
}

struct taken {
    const struct withdrawn *first;
    uint32_t count;
};

/* The caller holds the context's lock. */
static bool take(struct hw_device *device, const struct verdict *verdict,
                 struct taken *taken)
{
    for (uint32_t i = 0; i < verdict->withdrawn_count; i++) {
        const struct withdrawn *w = &verdict->withdrawn[i];
        if (w->device != (uint32_t)device->index)
            continue;
        if (!withdraw(device, &(struct withdrawal){ w->op, w->dtype, w->why }))
            return false;
        if (!taken->count++)
            taken->first = w;
    }
    return true;
}

enum hw_status admission_take(struct hw_device *device, const struct verdict *verdict,
                              uint32_t unless_cleared)
{
    struct taken taken = { 0 };
    pthread_mutex_lock(&device->context->lock);
    const bool wanted = (device->demoted & unless_cleared) == unless_cleared,
               good = !wanted || take(device, verdict, &taken);
    pthread_mutex_unlock(&device->context->lock);
    if (!good)
        return fail(HW_NO_MEMORY, "out of memory for the ops that %s must not compute",
                    device->name);
    if (taken.count)
        say(device, taken.first, taken.count);
    return HW_OK;
}

static enum hw_status apply(struct hw_device *device, const struct verdict *verdict)
{
    const uint8_t *left = verdict->left + (size_t)device->index * verdict->form_count;
    if (!untested_list(device, verdict->forms, left, verdict->form_count))
        return fail(HW_NO_MEMORY, "out of memory for the ops that %s has not computed yet",
                    device->name);
    return admission_take(device, verdict, 0);
}

enum hw_status admission_apply(const struct catalog *found)
{
    enum hw_status status = HW_OK;
    for (uint32_t i = found->older ? found->older->device_count : 0;
         i < found->device_count && !status; i++) {
        struct hw_device *device = found->devices[i];
        if (device->plugin->candidate->verdict)
            status = apply(device, device->plugin->candidate->verdict);
    }
    return status;
}

enum hw_status admission_renew(const struct plugin *plugin, const struct verdict *verdict)
{
    const struct catalog *found = catalog_of(plugin->context);
    enum hw_status status = HW_OK;
    for (uint32_t i = 0; i < found->device_count && !status; i++) {
        struct hw_device *device = found->devices[i];
        if (device->plugin == plugin && !(status = hw_device_reset(device)))
            status = apply(device, verdict);
    }
    return status;
}
