/* SPDX-License-Identifier: MIT */
/* worker.c - takes one plugin through the stages of the library, in this process, opens each of
 * its devices, and runs the admission test: do its ops compute what they should? */
#define _POSIX_C_SOURCE 200809L
#include "worker.h"

#include "base/message.h"
#include "base/platform.h"
#include "call/args.h"
#include "memory/device.h"
#include "open/ladder.h"
#include "open/registry.h"
#include "route/op_state.h"

#include "verify.h"

#include <hw/report.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct worker {
    struct subject subject;
    struct hw_device *device; /* that is tested */
    bool copying;             /* the op copy, not the others */
    bool full;                /* there is no room for another finding */
    uint32_t number;          /* of its case; see struct progress */
    uint64_t begun;           /* when that was, in microseconds */
};

/* ---- the admission test ---- */

static bool same_form(const struct finding *finding, uint32_t device, uint32_t op,
                      const int32_t dtype[MAX_OPERANDS])
{
    return finding->device == device && finding->op == op &&
           !memcmp(finding->dtype, dtype, sizeof finding->dtype);
}

static bool has_finding(const struct progress *progress, uint32_t device, uint32_t op,
                        const int32_t dtype[MAX_OPERANDS])
{
    for (uint32_t i = 0; i < progress->count && i < VERDICT_WITHDRAWN; i++)
        if (same_form(&progress->findings[i], device, op, dtype))
            return true;
    return false;
}

bool progress_add(struct progress *progress, const struct finding *finding)
{
    if (has_finding(progress, finding->device, finding->op, finding->dtype))
        return true;
    if (progress->count >= VERDICT_WITHDRAWN)
        return false;
    progress->findings[progress->count++] = *finding;
    return true;
}

/* Microseconds after which no further case is begun: where kernels are compiled when they are first
 * used, all cases may take minutes. */
static uint64_t budget(const struct worker *worker)
{
    const struct request *request = worker->subject.request;
    if (request->patient)
        return UINT64_MAX;
    return request->settings.probe_timeout * UINT64_C(1000000) / 4;
}

/* The number of the form, from 0; VERDICT_FORMS: there is no room for it. */
static uint32_t form_number(struct progress *progress, const struct op_form *form)
{
    uint32_t i = 0;
    while (i < progress->form_count && i < VERDICT_FORMS &&
           memcmp(&progress->forms[i], form, sizeof *form) != 0)
        i++;
    if (i < VERDICT_FORMS && i >= progress->form_count) {
        progress->forms[i] = *form;
        progress->form_count = i + 1;
    }
    return i;
}

void progress_leave_out(struct progress *progress, uint32_t device,
                        const struct op_form *form)
{
    const uint32_t number = form_number(progress, form);
    progress->untested++;
    if (number < VERDICT_FORMS && device < MAX_DEVICES &&
        progress->left[device][number] < UINT8_MAX)
        progress->left[device][number]++;
}

static void leave_out(const struct worker *worker, uint32_t op, const char *test)
{
    struct progress *progress = worker->subject.progress;
    struct op_form form = { .op = op };
    if (verify_dtypes(test, form.dtype))
        progress_leave_out(progress, (uint32_t)worker->device->index, &form);
    else
        progress->untested++;
}

/* Whether the case is of the form that alone is asked for, if one is. */
static bool is_wanted(const struct worker *worker, uint32_t op, const char *test)
{
    const struct request *request = worker->subject.request;
    struct op_form form = { .op = op };
    return !request->has_only ||
           (op == request->only.form.op && verify_dtypes(test, form.dtype) &&
            !memcmp(&form, &request->only.form, sizeof form));
}

/* Whether it is the op's turn, the plugin has it, and nothing of it ended an earlier worker. */
static bool is_open(const struct worker *worker, uint32_t op)
{
    const int32_t any[MAX_OPERANDS] = { 0 };
    return (op == HW_OP_COPY) == worker->copying &&
           worker->number > worker->subject.progress->done[worker->device->index] &&
           plugin_has(worker->subject.candidate->plugin, op) &&
           !has_finding(worker->subject.progress, (uint32_t)worker->device->index, op, any);
}

/* Tells the watcher, which waits longer for a case than for the rest. */
static void next_step(struct progress *progress, bool is_case)
{
    const uint32_t step = atomic_load(&progress->step) + 1;
    atomic_store(&progress->step, step % 2 == is_case ? step : step + 1);
}

static bool begin_case(void *user, uint32_t op, const char *test)
{
    struct worker *worker = user;
    struct progress *progress = worker->subject.progress;
    worker->number++;
    if (!is_open(worker, op) || !is_wanted(worker, op, test))
        return false;
    if (progress->spent >= budget(worker)) {
        leave_out(worker, op, test);
        return false;
    }
    progress->device = (uint32_t)worker->device->index;
    progress->op = op;
    memset(progress->dtype, 0, sizeof progress->dtype);
    (void)verify_dtypes(test, progress->dtype);
    progress->done[progress->device] = worker->number;
    subject_say(&worker->subject, "while its device %u computed %s",
                (unsigned)progress->device, test);
    worker->begun = microseconds_now();
    next_step(progress, true);
    return true;
}

static bool withdraw_finding(const struct worker *worker, const struct finding *finding)
{
    return op_withdraw(worker->device, &(struct withdrawal){ .op = finding->op,
                                                             .dtypes = finding->dtype,
                                                             .why = finding->why });
}

/* The op is withdrawn here as well: copies, which take operands to the device, then do without. */
static bool add_failure(struct worker *worker, const struct verify_result *result)
{
    struct progress *progress = worker->subject.progress;
    struct finding finding = { .device = progress->device, .op = progress->op };
    memcpy(finding.dtype, result->dtypes, sizeof finding.dtype);
    snprintf(finding.why, sizeof finding.why, "%s: %s", result->test, result->text);
    char *besides = strstr(finding.why, "; HW_FALLBACK=error "); /* that of this process */
    if (besides)
        *besides = '\0';
    return progress_add(progress, &finding) && withdraw_finding(worker, &finding);
}

static void note_form(struct progress *progress, const struct verify_result *result)
{
    struct op_form form = { .op = progress->op };
    memcpy(form.dtype, result->dtypes, sizeof form.dtype);
    (void)form_number(progress, &form);
}

static bool end_case(void *user, const struct verify_result *result)
{
    struct worker *worker = user;
    struct progress *progress = worker->subject.progress;
    progress->spent += microseconds_now() - worker->begun;
    progress->tested += result->verdict == VERIFY_PASSED ||
                        result->verdict == VERIFY_FAILED;
    progress->untested += result->verdict == VERIFY_SKIPPED;
    note_form(progress, result);
    if (atomic_load(&worker->device->lost)) {
        fprintf(stderr, "%s\n", result->text);
        _exit(DEVICE_LOST);
    }
    if (result->verdict == VERIFY_FAILED)
        worker->full = !add_failure(worker, result);
    next_step(progress, false);
    return !worker->full;
}

/* Withdraws the ops that failed in earlier workers. */
static bool withdraw_known(const struct worker *worker)
{
    const struct progress *progress = worker->subject.progress;
    bool good = true;
    for (uint32_t i = 0; i < progress->count && good; i++) {
        const struct finding *finding = &progress->findings[i];
        if (finding->device == (uint32_t)worker->device->index)
            good = withdraw_finding(worker, finding);
    }
    return good;
}

static enum hw_status test_ops(struct worker *worker, const char *op)
{
    const struct verify_calls calls = { begin_case, end_case, worker };
    const struct verify_filter filter = {
        .admission = true,
        .op = op,
        .precision = worker->subject.request->settings.value[SETTING_precision].text
    };
    struct verify_counts counts = { 0 };
    char error[VERIFY_ERROR_TEXT];
    worker->copying = op && !strcmp(op, "copy");
    return verify_test(worker->device, &filter, &calls, &counts, error);
}

static enum hw_status test_all(struct worker *worker)
{
    const enum hw_status status = test_ops(worker, "copy");
    return status || worker->full ? status : test_ops(worker, NULL);
}

/* Operands are taken to the device by transfers, because copies may be untested, too. */
static enum hw_status test_only(struct worker *worker, const struct only *only)
{
    const struct finding copy = { .op = HW_OP_COPY, .why = "it is not what is tested" };
    if (only->form.op != HW_OP_COPY && !withdraw_finding(worker, &copy))
        return fail(HW_NO_MEMORY, "out of memory for the admission test");
    return test_ops(worker, hw_op_name(only->form.op));
}

/* The device is open. */
static enum hw_status test_device(struct worker *worker, struct hw_device *device)
{
    worker->device = device;
    worker->number = 0;
    if (!withdraw_known(worker))
        return fail(HW_NO_MEMORY, "out of memory for the admission test");
    const struct request *request = worker->subject.request;
    enum hw_status status = request->has_only ? test_only(worker, &request->only)
                                              : test_all(worker);
    next_step(worker->subject.progress, false);
    return !status && worker->full
               ? fail(HW_INTERNAL, "more of its ops fail than can be listed")
               : status;
}

/* ---- the devices ---- */

/* Opens, tests and closes each device. Returns how many can be used. */
static uint32_t try_devices(struct worker *worker)
{
    struct verdict *verdict = worker->subject.verdict;
    uint32_t good = 0;
    struct hw_device *device = worker->subject.candidate->plugin->devices;
    for (uint32_t i = 0; i < verdict->device_count; i++, device = device->next) {
        const struct request *request = worker->subject.request;
        if (request->has_only && request->only.device != i)
            continue;
        worker->subject.progress->phase = PHASE_DEVICE;
        subject_say(&worker->subject, "while its device %u was opened", (unsigned)i);
        enum hw_status status = device_wake(device);
        /* The plugin of the library's own build was tested with it. */
        if (!status && !is_own(worker->subject.candidate))
            status = test_device(worker, device);
        if (status)
            verdict->devices[i].fault = strdup(hw_message());
        good += !status;
        worker->subject.progress->phase = PHASE_CLOSE;
        subject_say(&worker->subject, "while its device %u was closed", (unsigned)i);
        device_sleep(device);
    }
    return good;
}

static void run_plugin(struct worker *worker)
{
    const struct verdict *verdict = worker->subject.verdict;
    if (subject_start(&worker->subject) && !try_devices(worker))
        stop(worker->subject.candidate, REASON_DEVICE_FAILED,
             "none of its devices can be opened: %s",
             verdict->devices[0].fault ? verdict->devices[0].fault : "");
}

/* ---- the verdict ---- */

static bool fill_withdrawn(struct verdict *verdict, const struct progress *progress)
{
    verdict->tested = progress->tested;
    verdict->untested = progress->untested;
    verdict->microseconds = progress->spent;
    verdict->withdrawn = calloc(progress->count + 1, sizeof *verdict->withdrawn);
    for (uint32_t i = 0; verdict->withdrawn && i < progress->count; i++) {
        const struct finding *finding = &progress->findings[i];
        struct withdrawn *withdrawn = &verdict->withdrawn[i];
        *withdrawn = (struct withdrawn){ .device = finding->device,
                                         .op = finding->op,
                                         .slow = finding->slow != 0 };
        memcpy(withdrawn->dtype, finding->dtype, sizeof withdrawn->dtype);
        if (!(withdrawn->why = strdup(finding->why)))
            return false;
        verdict->withdrawn_count++;
    }
    return verdict->withdrawn != NULL;
}

/* None if nothing was left out. */
static bool fill_forms(struct verdict *verdict, const struct progress *progress)
{
    const uint32_t count = progress->form_count < VERDICT_FORMS ? progress->form_count
                                                                : VERDICT_FORMS;
    bool any = false;
    verdict->forms = calloc(count + 1, sizeof *verdict->forms);
    verdict->left = calloc((size_t)verdict->device_count * count + 1, 1);
    if (!verdict->forms || !verdict->left)
        return false;
    memcpy(verdict->forms, progress->forms, count * sizeof *verdict->forms);
    for (uint32_t i = 0; i < verdict->device_count; i++)
        for (uint32_t k = 0; k < count; k++) {
            verdict->left[i * count + k] = progress->left[i][k];
            any = any || progress->left[i][k];
        }
    verdict->form_count = any ? count : 0;
    return true;
}

void worker_run(const struct request *request, struct progress *progress,
                struct verdict *verdict)
{
    struct worker worker = { 0 };
    struct subject *subject = &worker.subject;
    subject_begin(subject, request, progress, verdict);
    if (subject_find(subject)) {
        run_plugin(&worker);
        subject_close(subject);
    }
    if (subject->candidate && !subject->candidate->reason &&
        !(fill_withdrawn(verdict, progress) && fill_forms(verdict, progress)))
        verdict->reason = REASON_NO_MEMORY;
    subject_reason(subject);
}
