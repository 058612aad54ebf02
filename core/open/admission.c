/* SPDX-License-Identifier: MIT */
/* admission.c - brings the results of the admission test (tools/probe) to the devices, and tests in
 * hw-probe a form that was skipped because time ran out, before its first use. The result is added
 * to the verdict, here and in the cache. If such a test is not possible, the op is used untested,
 * and the log says why. */
#include "open/admission.h"

#include "base/message.h"
#include "load/probe.h"
#include "open/ladder.h"
#include "open/registry.h"
#include "route/op_state.h"

#include <stdlib.h>

/* ---- ops that failed ---- */

/* Logs one line per device. */
static void say_withdrawn(const struct hw_device *device, const struct withdrawn *first,
                          uint32_t count)
{
    char dtypes[DTYPES_SIZE] = "", others[64] = "";
    write_form(first->op, first->dtype, dtypes);
    if (count > 1)
        snprintf(others, sizeof others, " (and %u more, see `hw status`)",
                 (unsigned)count - 1);
    log_line(&device->context->log, HW_LOG_WARN,
             "%s (%s) is not used on %s: in the admission test, %s%s. Remedy: %s",
             hw_op_name(first->op), dtypes, device->name, first->why, others,
             first->slow ? SLOW_REMEDY : OP_REMEDY);
}

/* Withdraws the ops that failed on the device by this verdict. The caller holds the context's
 * lock. */
static bool withdraw_all(struct hw_device *device, const struct verdict *verdict,
                         const struct withdrawn **first, uint32_t *count)
{
    for (uint32_t i = 0; i < verdict->withdrawn_count; i++) {
        const struct withdrawn *w = &verdict->withdrawn[i];
        if (w->device != (uint32_t)device->index)
            continue;
        if (!op_withdraw(device, &(struct withdrawal){ w->op, w->dtype, w->why, w->slow }))
            return false;
        if (!(*count)++)
            *first = w;
    }
    return true;
}

/* Does nothing if hw_device_reset() has cleared the bits `unless_cleared` of hw_device.op_flags. */
static enum hw_status withdraw_on(struct hw_device *device, const struct verdict *verdict,
                                  uint32_t unless_cleared)
{
    const struct withdrawn *first = NULL;
    uint32_t count = 0;
    pthread_mutex_lock(&device->context->lock);
    const bool wanted = (device->op_flags & unless_cleared) == unless_cleared,
               good = !wanted || withdraw_all(device, verdict, &first, &count);
    pthread_mutex_unlock(&device->context->lock);
    if (!good)
        return fail(HW_NO_MEMORY, "out of memory for the ops that %s must not compute",
                    device->name);
    if (count)
        say_withdrawn(device, first, count);
    return HW_OK;
}

/* ---- devices that are not in use yet ---- */

/* By form: how many of its cases the test skipped. */
static const uint8_t *forms_skipped(const struct hw_device *device,
                                    const struct verdict *verdict)
{
    return verdict->left + (size_t)device->index * verdict->form_count;
}

static uint32_t count_skipped(const struct hw_device *device, const struct verdict *verdict)
{
    uint32_t forms = 0;
    if ((uint32_t)device->index >= verdict->device_count)
        return 0; /* a later verdict may have fewer devices */
    for (uint32_t i = 0; i < verdict->form_count; i++)
        forms += forms_skipped(device, verdict)[i] != 0;
    return forms;
}

/* Lists all forms, because a tested one may be nearer to a call than a skipped one. */
static bool list_forms(struct hw_device *device, const struct verdict *verdict)
{
    bool good = true;
    const uint32_t count = count_skipped(device, verdict) ? verdict->form_count : 0;
    for (uint32_t i = 0; i < count && good; i++)
        good = op_list_form(device, &verdict->forms[i], !forms_skipped(device, verdict)[i]);
    return good;
}

/* Replaces what an earlier verdict said about the device. */
static enum hw_status verdict_apply(struct hw_device *device, const struct verdict *verdict)
{
    pthread_mutex_lock(&device->context->lock);
    op_states_free(device);
    const bool good = list_forms(device, verdict);
    pthread_mutex_unlock(&device->context->lock);
    if (!good)
        return fail(HW_NO_MEMORY, "out of memory for the ops that %s has not computed yet",
                    device->name);
    return withdraw_on(device, verdict, 0);
}

enum hw_status admission_apply(const struct catalog *found)
{
    const uint32_t known = catalog_is_first(found)
                               ? 0
                               : catalog_of(found->context)->device_count;
    enum hw_status status = HW_OK;
    for (uint32_t i = known; i < found->device_count && !status; i++) {
        struct hw_device *device = found->devices[i];
        if (device->plugin->verdict)
            status = verdict_apply(device, device->plugin->verdict);
    }
    return status;
}

enum hw_status admission_renew(const struct plugin *plugin, const struct verdict *verdict)
{
    enum hw_status status = HW_OK;
    for (struct hw_device *device = plugin->devices; device && !status;
         device = device->next)
        status = verdict_apply(device, verdict);
    return status;
}

/* ---- a form that was skipped ---- */

/* Remedies name the precision, because each precision has its own kernels and its own verdict. */
static const char *precision_of(const struct hw_device *device)
{
    return device->context->settings.value[SETTING_precision].text;
}

static bool is_first(struct hw_device *device, uint32_t flag)
{
    return !(atomic_fetch_or(&device->op_flags, flag) & flag);
}

/* Says why the program waits. */
static void say_testing(struct hw_device *device)
{
    if (!is_first(device, OPS_TESTING_TOLD))
        return;
    pthread_mutex_lock(&device->context->lock);
    const uint32_t forms = count_skipped(device, device->plugin->verdict);
    pthread_mutex_unlock(&device->context->lock);
    log_line(&device->context->log, HW_LOG_WARN,
             "testing ops of %s before their first use, which may take a while: each of "
             "%u kinds of calls, once. HW_PROBE=full HW_PRECISION=%s hw status tests "
             "all of them in advance",
             device->name, (unsigned)forms, precision_of(device));
}

/* Warns only once, because further causes will be the same. */
static void say_untested(struct hw_device *device, const struct op_form *form,
                         const char *why)
{
    char dtypes[DTYPES_SIZE] = "";
    write_form(form->op, form->dtype, dtypes);
    log_line(&device->context->log,
             is_first(device, OPS_UNTESTED_TOLD) ? HW_LOG_WARN : HW_LOG_DEBUG,
             "%s (%s) is used on %s untested: there was no time for it in the admission "
             "test, and now it cannot be tested: %s. Remedy: start the program again, or "
             "test all with HW_PROBE=full HW_PRECISION=%s hw status",
             hw_op_name(form->op), dtypes, device->name, why, precision_of(device));
}

/* Whether the result is about this device: another device may have its index by now. */
static bool is_about(struct candidate *candidate, uint32_t index)
{
    const struct verdict *found = candidate->verdict;
    if (index >= found->device_count)
        return stop(candidate, REASON_OTHER_DEVICES, NULL);
    const char *fact = registry_differs(candidate->plugin, index,
                                        &found->devices[index].info);
    if (fact)
        return stop(candidate, REASON_OTHER_DEVICES,
                    "the %s of its device %u has changed since the start", fact,
                    (unsigned)index);
    if (found->devices[index].fault)
        return stop(candidate, REASON_DEVICE_FAILED, "%s", found->devices[index].fault);
    if (found->untested && !found->tested && !found->withdrawn_count)
        return stop(candidate, REASON_NO_MEMORY, "there is no memory for its cases");
    return true;
}

/* Tests one form in hw-probe. Returns the result; or NULL, with the reason in the candidate. */
static const struct verdict *form_try(struct hw_device *device, struct candidate *candidate,
                                      const struct only *only)
{
    if (!climb_to_test(device->context, candidate))
        return NULL;
    candidate->stage = STAGE_PROBE;
    say_testing(device);
    probe_all(device->context, &candidate, 1, only);
    return !candidate->reason && is_about(candidate, only->device) ? candidate->verdict
                                                                   : NULL;
}

static void verdict_extend(struct hw_device *device, const struct only *only,
                           const struct verdict *found)
{
    struct hw_context *context = device->context;
    pthread_mutex_lock(&context->lock);
    verdict_add(device->plugin->verdict, only->device, &only->form, found);
    pthread_mutex_unlock(&context->lock);
}

void admission_test(struct hw_device *device, const struct op_form *form)
{
    const struct only only = { (uint32_t)device->index, *form };
    struct candidate *candidate = candidate_again(device->plugin->candidate);
    if (!candidate) {
        say_untested(device, form, "out of memory");
        return;
    }
    const struct verdict *found = form_try(device, candidate, &only);
    if (!found) {
        say_untested(device, form, message_of(candidate));
    } else if (withdraw_on(device, found, OPS_UNTESTED)) {
        say_untested(device, form, hw_message());
    } else {
        verdict_extend(device, &only, found);
    }
    candidate_close(candidate);
    candidate_free(candidate);
}
