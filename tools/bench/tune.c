/* SPDX-License-Identifier: MIT */
/* tune.c - `hw tune`: measures ops on host memory on each device and on the CPU. The library uses
 * the figures to choose where to compute such ops. */
#define _POSIX_C_SOURCE 200809L
#include "tune.h"

#include "command/bar.h"
#include "command/command.h"
#include "command/options.h"
#include "command/output.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct manual manual = {
    .about =
        "hw tune - measure where ops on host memory run faster\n\n"
        "Measures each op in several sizes and types, on the CPU and on each device, including\n"
        "the copies to the device and back, and keeps the figures in HW_CACHE_DIR. If a program\n"
        "names no device, the library then computes each op on host memory where it is faster\n"
        "(HW_ROUTE). The figures hold for the present values of HW_THREADS, HW_PRECISION and\n"
        "HW_KERNEL, until the driver or a plugin changes.",
    .arguments = "[OPTION...] [show|clear [BACKEND]]",
    .notes =
        "  hw tune                        all devices that cannot read host memory, and the CPU\n"
        "  hw tune -d cuda:0 --op matmul,attention\n"
        "                                 these ops alone; figures of others are kept\n"
        "  hw tune show                   up to which size the CPU is faster\n"
        "  hw tune clear                  forget all figures, including interrupted runs\n\n"
        "Run nothing else meanwhile. Figures that are still unsteady after three tries are not\n"
        "kept. After Ctrl-C, the next run continues. The exit status is 1 if something could\n"
        "not be measured.",
};

/* ---- Ctrl-C ---- */

static void stop(int signal_number)
{
    (void)signal_number;
    tune_stopped = 1;
}

/* The first Ctrl-C ends the measurement, the second one the program. */
static void catch_signals(void)
{
    struct sigaction action = { .sa_handler = stop, .sa_flags = (int)SA_RESETHAND };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- a device ---- */

static bool is_listed(const char **ops, const char *op)
{
    bool found = !*ops;
    for (; *ops; ops++)
        found |= !strcmp(*ops, op);
    return found;
}

static uint64_t count_rows(const struct wishes *wishes)
{
    struct tune_row row;
    uint64_t count = 0;
    for (int i = 0; tune_plan(i, wishes->quick, &row); i++)
        count += is_listed(wishes->ops, row.op);
    return count;
}

static enum hw_status measure_device(struct tuning *t)
{
    struct tune_row row;
    enum hw_status status = tune_measure_basics(t);
    for (int i = 0; !status && tune_plan(i, t->wishes->quick, &row); i++) {
        if (!is_listed(t->wishes->ops, row.op))
            continue;
        bar_draw("measuring", t->done++, t->total);
        status = tune_stopped ? HW_END : tune_measure_row(t, &row);
    }
    return status;
}

static int tell_failure(const struct tuning *t, enum hw_status status)
{
    bar_draw("measuring", 1, 1);
    if (status == HW_END)
        complain(
            "interrupted at %.0f %%; the figures so far are kept, and the next 'hw tune' "
            "continues",
            100 * (double)t->done / (double)t->total);
    else if (status != HW_IO && status != HW_INTERNAL)
        complain("%s: %s", t->profile.device, hw_message());
    return EXIT_FAILED;
}

static int tune_device(struct tuning *t, const struct report *report,
                       struct hw_device *device)
{
    struct hw_device_info info = { .size = sizeof info };
    enum hw_status status = HW_OK;
    int failed = EXIT_FAILED, lock = -1;
    if (tune_open(&t->profile, report, device) && (lock = tune_lock(&t->profile)) >= 0) {
        tune_resume(&t->profile);
        if (t->profile.resumed && out_is_text())
            say("%s: continues after %d rows of an interrupted run\n", t->profile.device,
                t->profile.resumed);
        if (t->wishes->ops[0])
            tune_keep(&t->profile, t->wishes->ops);
        if (!(status = hw_queue_open(device, NULL, &t->queue)) &&
            !(status = hw_device_info(device, &info))) {
            t->moves = !(info.features & HW_FEATURE_HOST_TENSORS);
            status = measure_device(t);
        }
        failed = status || !tune_finish(&t->profile) ? EXIT_FAILED : 0;
        if (status)
            tell_failure(t, status);
        hw_queue_close(t->queue);
        t->queue = NULL;
    }
    if (lock >= 0)
        close(lock);
    tune_close(&t->profile);
    return failed;
}

/* ---- all of them ---- */

enum { MOST_DEVICES = 64 };
static const double MOST_OTHERS = 0.1; /* of all processors, on the average */

static bool reads_host_memory(struct hw_device *device)
{
    struct hw_device_info info = { .size = sizeof info };
    return !hw_device_info(device, &info) && info.features & HW_FEATURE_HOST_TENSORS;
}

/* The CPU, and the named device, or else every device that operands are copied to. */
static int choose_devices(const struct report *report, const char *name,
                          struct hw_device *chosen[MOST_DEVICES])
{
    struct hw_device *named = name ? report_device(report, name) : NULL;
    int count = 0;
    if (name && !named)
        return 0;
    for (uint32_t i = 0; i < hw_device_count(report->context) && count < MOST_DEVICES;
         i++) {
        struct hw_device *device = hw_device_at(report->context, i);
        const bool is_cpu = !strcmp(hw_device_backend(device), "cpu");
        if (is_cpu || (named ? device == named : !reads_host_memory(device)))
            chosen[count++] = device;
    }
    if (count == 0)
        complain("no device can be used; 'hw status' has the reasons");
    return count;
}

/* Warns of doubtful figures. Returns true if some rows are not kept. */
static bool tell_doubts(const struct tuning *t, double others)
{
    if (others > MOST_OTHERS)
        complain(
            "other programs used %.0f %% of the processors meanwhile, so the figures may "
            "be too high: run 'hw tune' again when the machine is idle",
            100 * others);
    if (t->unsteady)
        complain("%d row%s not kept, because something else runs, or the device is "
                 "unsteady: run 'hw tune' again when the machine is idle, or with "
                 "--unsteady, which keeps such rows",
                 t->unsteady, t->unsteady == 1 ? " is" : "s are");
    return t->unsteady > 0;
}

/* `doubtful`: the figures of some rows are not kept. */
static int tune_all(const struct wishes *wishes, bool *doubtful)
{
    const struct hw_options options = { .size = sizeof options,
                                        .fallback = "error",
                                        .route = "device" };
    struct hw_device *devices[MOST_DEVICES];
    struct tuning t = { .wishes = wishes, .seconds = wishes->quick ? 0.02 : 0.1 };
    struct report report;
    int status = EXIT_FAILED;
    if (!report_open(&report, &options))
        return EXIT_FAILED;
    const int count = choose_devices(&report, wishes->device, devices);
    t.total = count_rows(wishes) * (uint64_t)(count ? count : 1);
    catch_signals();
    const struct tune_load before = tune_load_now();
    for (int i = 0; i < count; i++) {
        status = tune_device(&t, &report, devices[i]);
        if (status)
            break;
    }
    bar_draw("measuring", 1, 1);
    if (!tune_stopped)
        *doubtful = tell_doubts(&t, tune_others_since(&before));
    report_close(&report);
    return status;
}

/* ---- the command ---- */

/* "matmul,silu" as a list of ops; false after a complaint. The words are in `text`. */
static bool read_ops(char *text, const char **ops)
{
    const char *names[HW_OP_COUNT + 1] = { NULL };
    int count = 0;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        names[op] = hw_op_name(op);
    for (char *word = text ? strtok(text, ",") : NULL; word; word = strtok(NULL, ",")) {
        if (count == HW_OP_COUNT || !is_known("op", word, names))
            return false;
        ops[count++] = word;
    }
    return true;
}

static int clear(const char *backend)
{
    const struct hw_options nothing_else = { .size = sizeof nothing_else, .disable = "*" };
    struct report report;
    json_t *setting;
    size_t index;
    int status = 0;
    if (!report_open(&report, &nothing_else))
        return EXIT_FAILED;
    json_array_foreach (json_object_get(report.explain, "settings"), index, setting)
        if (!strcmp(text_of(setting, "variable"), "HW_CACHE_DIR"))
            status = tune_clear(text_of(setting, "value"), backend);
    report_close(&report);
    return status;
}

static int run(const struct wishes *wishes, const struct arguments *arguments)
{
    static const char *const actions[] = { "show", "clear", NULL };
    const char *action = arguments->words[0];
    if (action && !is_known("action", action, actions))
        return EXIT_USAGE;
    if (action && !strcmp(action, "clear"))
        return clear(arguments->words[1]);
    if (action && arguments->words[1]) {
        complain("%s: unexpected argument; see hw tune --help", arguments->words[1]);
        return EXIT_USAGE;
    }
    bool doubtful = false;
    int status = action ? 0 : tune_all(wishes, &doubtful);
    if (!status)
        status = tune_show(wishes->device, wishes->quick);
    return doubtful ? EXIT_FAILED : status;
}

int cmd_tune(int argc, const char **argv)
{
    char *device = NULL, *ops = NULL;
    const char *list[HW_OP_COUNT + 1] = { NULL };
    int quick = 0, unsteady = 0, status;
    const struct poptOption table[] = {
        { "device", 'd', POPT_ARG_STRING, &device, 0,
          "this device and the CPU (all devices that cannot read host memory)", "DEVICE" },
        { "op", '\0', POPT_ARG_STRING, &ops, 0, "these ops alone (all)", "OP[,OP...]" },
        { "quick", '\0', POPT_ARG_NONE, &quick, 0, "fewer sizes and types, less precise",
          NULL },
        { "unsteady", '\0', POPT_ARG_NONE, &unsteady, 0,
          "keep figures whose repetitions differ much", NULL },
        OPTIONS_COMMON,
        POPT_TABLEEND
    };
    struct arguments arguments;

    if (options_read(&arguments, &manual, table, argc, argv, 2, &status)) {
        const struct wishes wishes = { device, list, quick, unsteady };
        status = read_ops(ops, list) ? run(&wishes, &arguments) : EXIT_USAGE;
    }
    free(device);
    free(ops);
    options_close(&arguments);
    return status;
}
