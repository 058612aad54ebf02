/* SPDX-License-Identifier: MIT */
/* verify_run.c - see verify_run.h. */
#include "verify_run.h"

#include "command/measure.h"
#include "command/output.h"
#include "command/watch.h"
#include "deadline.h"

#include <hw/report.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN_FAILURES = 10, SHOWN_REASONS = 4 }; /* of one op; JSON has them all */

static uint64_t *count_of(struct verify_counts *counts, enum verify_verdict verdict)
{
    switch (verdict) {
    case VERIFY_PASSED:
        return &counts->passed;
    case VERIFY_FAILED:
        return &counts->failed;
    case VERIFY_SKIPPED:
        return &counts->skipped;
    default:
        return &counts->unsupported;
    }
}

static json_t *counts_json(const struct verify_counts *counts)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "passed", (json_int_t)counts->passed,
                     "empty", (json_int_t)counts->empty, "failed",
                     (json_int_t)counts->failed, "skipped", (json_int_t)counts->skipped,
                     "unsupported", (json_int_t)counts->unsupported);
}

static void print_counts(const char *what, const struct verify_counts *counts)
{
    bool failed = counts->failed > 0;
    say("  %-12s %6" PRIu64 " passed  %s%6" PRIu64 " failed%s", what, counts->passed,
        ink(failed ? RED : PLAIN), counts->failed, ink(PLAIN));
    if (counts->skipped)
        say("  %" PRIu64 " skipped", counts->skipped);
    if (counts->unsupported)
        say("  %" PRIu64 " unsupported", counts->unsupported);
    if (counts->empty && !verify_reached(counts))
        say("  (all that passed were empty)");
    say("\n");
}

/* ---- Progress ------------------------------------------------------------------------------ */

static void wipe_progress(struct verify_run *run)
{
    if (run->drawn > 0)
        fprintf(stderr, "\r\033[K");
    run->drawn = 0;
}

/* A line on the terminal that is replaced ten times a second. */
static void draw_progress(struct verify_run *run, const struct verify_result *result)
{
    const int columns = columns_of(STDERR_FILENO);
    const double now = now_ns();
    char line[400];

    if (out_json || run->verbose || !isatty(STDERR_FILENO) || now - run->drawn < 1e8)
        return;
    snprintf(line, sizeof line, "  %s: %" PRIu64 " passed, %" PRIu64 " failed: %s",
             result->op, run->op_counts.passed, run->op_counts.failed, result->test);
    fprintf(stderr, "\r\033[K%.*s", columns > 1 ? columns - 1 : 79, line);
    run->drawn = now;
}

/* ---- The cases of one op ------------------------------------------------------------------- */

/* The reasons why cases are unsupported, most frequent first: {"reason", "count"} each. */
static json_t *sorted_reasons(json_t *counts)
{
    json_t *list = json_array();
    while (json_object_size(counts) > 0) {
        const char *text, *most = "";
        json_t *count;
        json_int_t largest = 0;
        json_object_foreach (counts, text, count)
            if (json_integer_value(count) > largest) {
                largest = json_integer_value(count);
                most = text;
            }
        json_array_append_new(list,
                              json_pack("{s:s, s:I}", "reason", most, "count", largest));
        json_object_del(counts, most);
    }
    return list;
}

static void print_reasons(const json_t *reasons)
{
    const size_t all = json_array_size(reasons);
    json_t *row;
    size_t index;

    json_array_foreach ((json_t *)reasons, index, row) {
        const char *reason = json_string_value(json_object_get(row, "reason"));
        if (index < SHOWN_REASONS) /* "(f32 f32): why" or "why" */
            say_folded(25, "%11.0f unsupported%s%s\n",
                       json_number_value(json_object_get(row, "count")),
                       *reason == '(' ? " " : ": ", reason);
    }
    if (all > SHOWN_REASONS)
        say("%11s %zu more reasons: --json has them all\n", "", all - SHOWN_REASONS);
}

/* Prints the counts of the previous op, and begins another. */
static void next_op(struct verify_run *run, const char *op)
{
    wipe_progress(run);
    if (*run->op) {
        json_t *reasons = sorted_reasons(run->reasons);
        if (out_is_text()) {
            print_counts(run->op, &run->op_counts);
            print_reasons(reasons);
        }
        json_t *row = json_pack("{s:s, s:s}", "device", run->device, "op", run->op);
        json_object_update_new(row, counts_json(&run->op_counts));
        json_object_set_new(row, "reasons", reasons);
        json_array_append_new(run->ops, row);
        out_flush();
    }
    memset(&run->op_counts, 0, sizeof run->op_counts);
    snprintf(run->op, sizeof run->op, "%s", op);
}

static void print_errors(const struct verify_result *result)
{
    if (result->error_bound > 0)
        say("       error %.3g (at most %.3g), worst element %.3g units (at most %.3g)\n",
            result->error, result->error_bound, result->worst, result->worst_bound);
}

static void print_failure(const struct verify_run *run, const struct verify_result *result)
{
    say("%sFAILED%s %s%s%s: %s\n", ink(RED), ink(PLAIN), result->device,
        *result->kernel ? ", kernel " : "", result->kernel, result->text);
    print_errors(result);
    if (*result->test)
        say("       again: hw verify %s%s%s -c '%s'\n", run->subject,
            *result->kernel ? " -k " : "", result->kernel, result->test);
}

static void keep_failure(struct verify_run *run, const struct verify_result *result)
{
    json_array_append_new(
        run->failures,
        json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:s}", "op", result->op, "kernel",
                  result->kernel, "case", result->test, "error", result->error,
                  "error_bound", result->error_bound, "worst", result->worst, "worst_bound",
                  result->worst_bound, "text", result->text));
    if (!out_is_text() || (!run->verbose && run->op_counts.failed > SHOWN_FAILURES + 1))
        return;
    wipe_progress(run);
    if (!run->verbose && run->op_counts.failed > SHOWN_FAILURES)
        say("... more failures of %s: --verbose and --json have them all\n", result->op);
    else
        print_failure(run, result);
}

/* Counts a reason. The library's message, "silu (f32 f32) on mine:0: why; HW_FALLBACK=error allows
 * no other device", is cut to types and reason, because op and device are printed elsewhere. */
static void keep_reason(struct verify_run *run, const struct verify_result *result)
{
    char text[512], place[128];
    const size_t op = strlen(result->op);
    clean_text(text, sizeof text, result->text);
    char *fallback = strstr(text, "; HW_FALLBACK=error ");
    if (fallback)
        *fallback = '\0';
    snprintf(place, sizeof place, " on %s", run->device);
    char *reason = strncmp(text, result->op, op) ? text : text + op;
    char *found = strstr(reason, place);
    if (found)
        memmove(found, found + strlen(place), strlen(found + strlen(place)) + 1);
    reason += strspn(reason, ": ");
    const json_int_t before = json_integer_value(json_object_get(run->reasons, reason));
    json_object_set_new(run->reasons, reason, json_integer(before + 1));
}

/* keep_failure() prints failures. */
static void print_result(const struct verify_result *result)
{
    static const char *const verdicts[] = { [VERIFY_PASSED] = "passed",
                                            [VERIFY_SKIPPED] = "skipped",
                                            [VERIFY_UNSUPPORTED] = "unsupported" };
    if (result->verdict == VERIFY_FAILED)
        return;
    say("%s %s%s%s%s%s\n", verdicts[result->verdict], result->test,
        *result->kernel ? ", kernel " : "", result->kernel, *result->text ? ": " : "",
        result->text);
    print_errors(result);
}

static void count_result(struct verify_run *run, const struct verify_result *result)
{
    if (strcmp(run->op, result->op))
        next_op(run, result->op);
    ++*count_of(&run->op_counts, result->verdict);
    run->op_counts.empty += result->empty && result->verdict == VERIFY_PASSED;
    if (result->verdict == VERIFY_FAILED)
        keep_failure(run, result);
    else if (result->verdict == VERIFY_UNSUPPORTED)
        keep_reason(run, result);
    if (run->verbose && out_is_text())
        print_result(result);
}

/* ---- The end of a device ------------------------------------------------------------------- */

/* Prints the last counts, and returns the device's part of the JSON result. */
static json_t *end_device(struct verify_run *run)
{
    next_op(run, "");
    json_decref(run->reasons);
    if (out_is_text())
        print_counts("all", &run->counts);
    return json_pack("{s:s, s:o, s:o, s:o}", "device", run->device, "counts",
                     counts_json(&run->counts), "ops", run->ops, "failures", run->failures);
}

/* A call of a plugin that hangs cannot be ended, so this is the last case. The thread that works is
 * in that call, or waits in deadline_end(). */
static void fail_late(void *user)
{
    struct verify_run *run = user;
    char text[128];
    snprintf(text, sizeof text, "%s did not end within %g second%s (--timeout)",
             *run->test ? "it" : "opening it", run->timeout, run->timeout > 1 ? "s" : "");
    const struct verify_result result = { .device = run->device,
                                          .op = run->doing,
                                          .kernel = "",
                                          .test = run->test,
                                          .verdict = VERIFY_FAILED,
                                          .text = text };
    out_forward();
    run->counts.failed++;
    count_result(run, &result);
    json_t *device = end_device(run);
    complain("%s: the other cases were not run, because this one does not end",
             run->device);
    run->give_up(run->user, device);
}

/* ---- Each case ----------------------------------------------------------------------------- */

/* Lets the message about a crash or Ctrl-C name the work, and limits its time. */
static void begin_work(struct verify_run *run)
{
    char work[512];
    if (*run->test)
        snprintf(work, sizeof work, "computing %s on %s", run->test, run->device);
    else
        snprintf(work, sizeof work, "opening %s", run->device);
    watch_work(work);
    watch_interrupt(true); /* the start of a plugin has turned it off */
    deadline_begin(&(struct deadline){
        .work = work, .seconds = run->timeout, .late = fail_late, .user = run });
}

static bool begin_case(void *user, uint32_t op, const char *test)
{
    struct verify_run *run = user;
    deadline_end();
    run->doing = hw_op_name(op);
    snprintf(run->test, sizeof run->test, "%s", test);
    begin_work(run);
    return true;
}

/* Notes that the op printed: the text of a plugin gets into the output of programs. */
static void note_print(struct verify_run *run, const char *op)
{
    const size_t count = json_array_size(run->prints);
    fflush(stdout);
    if (out_forward() == 0)
        return;
    wipe_progress(run);
    if (!count || strcmp(json_string_value(json_array_get(run->prints, count - 1)), op))
        json_array_append_new(run->prints, json_string(op));
}

static bool take_result(void *user, const struct verify_result *result)
{
    struct verify_run *run = user;
    deadline_end();
    note_print(run, result->op);
    count_result(run, result);
    draw_progress(run, result);
    begin_work(run); /* the next kernel of the case */
    return !out_is_closed();
}

/* ---- The device ---------------------------------------------------------------------------- */

/* A device that does not open, or lacks the forced kernel, is one error rather than one per
 * case. */
static enum hw_status open_once(struct verify_run *run, struct hw_device *device)
{
    struct hw_queue *queue;
    run->doing = "open";
    run->test[0] = '\0';
    begin_work(run);
    const enum hw_status status = hw_queue_open(device, NULL, &queue);
    deadline_end();
    if (!status)
        hw_queue_close(queue);
    return status;
}

json_t *verify_device(struct verify_run *run, struct hw_device *device)
{
    const struct verify_calls calls = { begin_case, take_result, run };
    char error[VERIFY_ERROR_TEXT] = "";

    run->device = hw_device_name(device);
    run->ops = json_array();
    run->reasons = json_object();
    run->failures = json_array();
    run->op[0] = '\0';
    memset(&run->counts, 0, sizeof run->counts);
    if (out_is_text())
        say("%s%s%s\n", ink(BOLD), run->device, ink(PLAIN));
    out_capture(true);
    enum hw_status status = open_once(run, device);
    if (!status)
        status = hw_device_reset(device); /* test withdrawn ops, too */
    if (!status)
        status = verify_test(device, &run->filter, &calls, &run->counts, error);
    deadline_end();
    out_capture(false);
    watch_interrupt(false);
    watch_work(NULL);
    if (!status)
        return end_device(run);
    next_op(run, "");
    complain("%s: %s", run->device, *error ? error : hw_message());
    json_decref(run->reasons);
    json_decref(run->ops);
    json_decref(run->failures);
    return NULL;
}
