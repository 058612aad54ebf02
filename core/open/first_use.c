/* SPDX-License-Identifier: MIT */
/* first_use.c - tests an op that the admission test skipped because time ran out, before its first
 * use. hw-probe tests only this op, and the result is added to the verdict in the cache. If that is
 * not possible, the op is used untested, and the log says why. */
#include "base/message.h"
#include "open/admission.h"
#include "open/ladder.h"
#include "open/recall.h"
#include "open/registry.h"
#include "run/untested.h"

#include <stdlib.h>

/* The latest candidate of the plugin, for which the verdict holds. */
static const struct candidate *tested_candidate(const struct plugin *plugin)
{
    const struct candidate *outcome = atomic_load(&plugin->outcome);
    return outcome ? outcome : plugin->candidate;
}

/* Remedies name the precision, because each precision has its own kernels and its own verdict. */
static const char *precision_of(const struct hw_device *device)
{
    return device->context->settings.value[SETTING_precision].text;
}

/* Says why the program waits. */
static void say_testing(const struct hw_device *device, struct tested *sum)
{
    if (!atomic_exchange(&sum->begun, true))
        log_line(
            &device->context->log, HW_LOG_WARN,
            "testing ops of %s before their first use, which may take a while: each of "
            "%u kinds of calls, once. HW_PROBE=full HW_PRECISION=%s hw status tests "
            "all of them in advance",
            device->name, (unsigned)sum->forms, precision_of(device));
}

/* Warns only once, because further causes will be the same. */
static void say_untested(const struct hw_device *device, const struct op_form *form,
                         struct tested *sum, const char *why)
{
    char dtypes[DTYPES_SIZE];
    const bool told = atomic_exchange(&sum->told, true);
    write_withdrawn(form->op, form->dtype, dtypes);
    log_line(&device->context->log, told ? HW_LOG_DEBUG : HW_LOG_WARN,
             "%s (%s) is used on %s untested: there was no time for it in the admission "
             "test, and now it cannot be tested: %s. Remedy: start the program again, or "
             "test all with HW_PROBE=full HW_PRECISION=%s hw status",
             hw_op_name(form->op), dtypes, device->name, why, precision_of(device));
}

static void say_tested(const struct hw_device *device, const struct op_form *form,
                       const struct verdict *found)
{
    char dtypes[DTYPES_SIZE];
    write_withdrawn(form->op, form->dtype, dtypes);
    log_line(&device->context->log, HW_LOG_INFO,
             "%s (%s) was tested on %s before its first use: %u cases in %u ms",
             hw_op_name(form->op), dtypes, device->name, (unsigned)found->tested,
             (unsigned)(found->microseconds / 1000));
}

/* Whether the result is about this device: another device may have its index by now. */
static bool is_about(struct candidate *candidate, uint32_t index)
{
    const struct verdict *found = candidate->verdict;
    if (index >= found->device_count)
        return stop(candidate, REASON_OTHER_DEVICES, NULL);
    const char *fact = registry_differs(candidate->plugin, found, index);
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
static const struct verdict *try_only(const struct hw_device *device,
                                      struct candidate *candidate, const struct only *only,
                                      struct tested *sum)
{
    if (!climb_to_test(device->context, candidate, tested_candidate(device->plugin)))
        return NULL;
    candidate->stage = STAGE_PROBE;
    say_testing(device, sum);
    child_test(device->context, candidate, only);
    return !candidate->reason && is_about(candidate, only->device) ? candidate->verdict
                                                                   : NULL;
}

static void count(struct tested *sum, const struct verdict *found, uint32_t cases)
{
    const uint32_t known = verdict_settles(found, cases);
    atomic_fetch_add(&sum->settled, known);
    atomic_fetch_add(&sum->tested, found->tested < known ? found->tested : known);
    atomic_fetch_add(&sum->withdrawn, found->withdrawn_count);
    atomic_fetch_add(&sum->microseconds, found->microseconds);
}

void device_test(struct hw_device *device, const struct op_form *form, uint32_t cases,
                 struct tested *sum)
{
    struct hw_context *context = device->context;
    const struct candidate *tested = tested_candidate(device->plugin);
    const struct only only = { (uint32_t)device->index, *form };
    struct candidate *candidate = candidate_again(tested);
    if (!candidate) {
        say_untested(device, form, sum, "out of memory");
        return;
    }
    const struct verdict *found = try_only(device, candidate, &only, sum);
    if (!found) {
        say_untested(device, form, sum, message_of(candidate));
    } else if (admission_take(device, found, UNTESTED)) {
        say_untested(device, form, sum, hw_message());
    } else {
        say_tested(device, form, found);
        count(sum, found, cases);
        remember_more(context, tested, &only, found);
    }
    let_go(candidate);
    candidate_free(candidate);
}
