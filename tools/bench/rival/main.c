/* SPDX-License-Identifier: MIT */
/* main.c - `hw-rival`: measures ops by this library and by another one on the same device, in
 * turns. */
#include "bench/bench.h"
#include "command/command.h"
#include "command/options.h"
#include "command/output.h"
#include "command/report.h"
#include "command/watch.h"
#include "duel.h"

#include <hw/interop.h>
#include <hw/report.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct rival *const rivals[] = {
    &rival_cublaslt, &rival_cudnn, &rival_clblast,
    &rival_openblas, &rival_blis,  &rival_onednn,
};
enum { RIVALS = sizeof rivals / sizeof rivals[0] };

static const struct duel_op *const measured_ops[] = { &duel_matmul, &duel_attention };
enum { MEASURED_OPS = sizeof measured_ops / sizeof measured_ops[0] };

/* ---- what to compute: an op's name stands for its usual shapes ---- */

static bool is_name_of(const char *word, const struct duel_op *what)
{
    return !strcmp(word, hw_op_name(what->op));
}

static bool asks_for(const char *word, const struct duel_op *what)
{
    return is_name_of(word, what) || what->accepts(word);
}

static bool asks_for_any(const char *word)
{
    for (int i = 0; i < MEASURED_OPS; i++)
        if (asks_for(word, measured_ops[i]))
            return true;
    return false;
}

static bool accepts(const char **words)
{
    for (; *words; words++)
        if (!asks_for_any(*words)) {
            complain(
                "%s: a product is TYPE:MxNxK, such as bf16:4096x4096x4096; TYPE is f32, f16 "
                "or bf16; " PRODUCT_EXTENTS
                "; attention is TYPE:QxKxH/GxD (queries, one or as many as keys; keys; heads "
                "of both; elements of a head), such as bf16:1x4096x32/8x128",
                *words);
            return false;
        }
    return true;
}

static bool is_asked_for(const struct bench *bench, const struct duel_op *what)
{
    for (int i = 0; bench->words[i]; i++)
        if (asks_for(bench->words[i], what))
            return true;
    return !bench->words[0];
}

/* ---- the duels ---- */

/* A table: an op's shapes, beside one rival. */
struct table {
    const struct bench *bench;
    struct duel *duel;
    const struct duel_op *what;
    int shapes;               /* that were measured */
    double logarithms, least; /* of their speeds: the sum, the least one */
    const char *least_shape;
};

static void count_speed(struct table *t, const char *word)
{
    const double speed = t->duel->speed;
    if (!t->shapes++ || speed < t->least) {
        t->least = speed;
        t->least_shape = word;
    }
    t->logarithms += log(speed);
}

static int measure(struct table *t, const char *word)
{
    if (out_is_closed())
        return 0;
    const char *why = t->what->measure(t->bench, t->duel, word);
    if (why)
        complain("%s: %s", word, why);
    else
        count_speed(t, word);
    return why ? EXIT_FAILED : 0;
}

static int measure_usual(struct table *t)
{
    int status = 0;
    for (const char *const *word = t->duel->rival->usual; *word && !status; word++)
        status = measure(t, *word);
    return status;
}

static int measure_shapes(struct table *t)
{
    int status = 0;
    if (!t->bench->words[0])
        return measure_usual(t);
    for (const char **word = t->bench->words; *word && !status; word++)
        if (is_name_of(*word, t->what))
            status = measure_usual(t);
        else if (t->what->accepts(*word))
            status = measure(t, *word);
    return status;
}

static void report_speeds(const struct table *t)
{
    const struct duel *d = t->duel;
    const double mean = exp(t->logarithms / t->shapes);
    json_array_append_new(t->bench->results,
                          json_pack("{s:s, s:s, s:s, s:s, s:i, s:f, s:f, s:s}", "bench",
                                    "rival", "op", hw_op_name(t->what->op), "precision",
                                    d->precision, "rival", d->rival->name(d->self),
                                    "shapes", t->shapes, "mean", mean, "least", t->least,
                                    "least_shape", t->least_shape));
    if (out_is_text())
        say("  geometric mean of the speeds: %s%.3f%s; the least: %.3f, %s\n", ink(BOLD),
            mean, ink(PLAIN), t->least, t->least_shape);
    out_flush();
}

static int measure_all(const struct bench *bench, struct duel *d,
                       const struct duel_op *what)
{
    struct table table = { .bench = bench, .duel = d, .what = what };
    if (out_is_text())
        what->print_header(d);
    const int status = measure_shapes(&table);
    if (!status && table.shapes)
        report_speeds(&table);
    return status;
}

/* Whether the device is of the rival's backend: "cuda:0" is of "cuda". */
static bool computes_on(const struct rival *rival, struct hw_device *device)
{
    const size_t length = strlen(rival->backend);
    const char *name = hw_device_name(device);
    return !strncmp(name, rival->backend, length) && name[length] == ':';
}

static const char *open_duel(struct duel *d)
{
    const int64_t bytes = RIVAL_WORKSPACE;
    struct hw_import workspace;
    void *queue = NULL;
    if (!(d->random = random_numbers()))
        return "out of memory";
    if (hw_queue_open(d->device, NULL, &d->queue) ||
        (d->rival->queue && hw_queue_export(d->queue, d->rival->queue, &queue)) ||
        hw_tensor_alloc(d->device, 0, HW_I8, 1, &bytes, &d->workspace) ||
        duel_hand_over(d, d->workspace.buffer, &workspace))
        return hw_message();
    return d->rival->open(&d->self, queue, &workspace);
}

static void close_duel(struct duel *d)
{
    if (d->queue)
        hw_queue_wait(d->queue);
    if (d->self)
        d->rival->close(d->self);
    hw_buffer_free(d->workspace.buffer);
    hw_queue_close(d->queue);
    free(d->random);
}

/* Common to all duels on a device. */
struct match {
    const struct bench *bench;
    struct hw_device *device;
    const char *precision; /* HW_PRECISION in effect */
};

/* How many rivals a device has, and why some cannot be opened. */
struct rivals_met {
    int known, opened;
    char missing[600];
};

static void note_missing(struct rivals_met *met, const char *why)
{
    const size_t length = strlen(met->missing);
    snprintf(met->missing + length, sizeof met->missing - length, "%s%s",
             length ? "; " : "", why);
}

/* The duels with one library. */
static int meet_rival(const struct match *match, const struct rival *rival,
                      struct rivals_met *met)
{
    struct duel duel = { .rival = rival,
                         .device = match->device,
                         .precision = match->precision };
    const char *why = open_duel(&duel);
    int status = 0;
    if (why)
        note_missing(met, why);
    for (int i = 0; i < MEASURED_OPS && !why; i++)
        if (measured_ops[i]->op == rival->op)
            status = measure_all(match->bench, &duel, measured_ops[i]);
    met->known++;
    met->opened += !why;
    close_duel(&duel);
    return status;
}

/* An op may have several rivals on a device; it is enough if one of them is there. */
static int meet_rivals_of(const struct match *match, const struct duel_op *what,
                          struct rivals_met *all)
{
    struct rivals_met met = { 0 };
    int status = 0;
    for (int i = 0; i < RIVALS && !status && !out_is_closed(); i++)
        if (rivals[i]->op == what->op && computes_on(rivals[i], match->device))
            status = meet_rival(match, rivals[i], &met);
    if (*met.missing)
        note_missing(all, met.missing);
    all->known += met.known;
    all->opened += met.opened;
    if (met.opened || !match->bench->words[0])
        return status;
    complain("%s: %s: %s", hw_device_name(match->device), hw_op_name(what->op),
             met.known ? met.missing : "no other library is known for this device");
    return EXIT_FAILED;
}

static int meet_rivals(const struct match *match)
{
    struct rivals_met met = { 0 };
    int status = 0;
    for (int i = 0; i < MEASURED_OPS && !status && !out_is_closed(); i++)
        if (is_asked_for(match->bench, measured_ops[i]))
            status = meet_rivals_of(match, measured_ops[i], &met);
    if (!met.opened && !status) {
        complain("%s: %s", hw_device_name(match->device),
                 met.known ? met.missing : "no other library is known for this device");
        return EXIT_FAILED;
    }
    if (!status && *met.missing && out_is_text())
        say_folded(2, "\nnot measured: %s\n", met.missing);
    return status;
}

static int measure_rivals(const struct bench *bench)
{
    const struct hw_options options = { .size = sizeof options, .fallback = "error" };
    struct match match = { .bench = bench };
    struct report report;
    int status = EXIT_FAILED;

    if (!report_open_for(&report, bench->device, &options))
        return EXIT_FAILED;
    match.precision = report_setting(&report, "HW_PRECISION");
    if ((match.device = report_device(&report, bench->device)))
        status = meet_rivals(&match);
    report_close(&report);
    return status;
}

/* ---- the command line ---- */

static const struct manual manual = {
    .about =
        "hw-rival - measure ops in turns with another library on the same device\n\n"
        "  matmul, TYPE:MxNxK          products\n"
        "  attention, TYPE:QxKxH/GxD   attention of Q queries (1, or as many as keys) and K\n"
        "                              keys; H query heads share G key heads of D elements\n\n"
        "The other library is cuBLASLt or cuDNN on cuda, CLBlast on opencl, and OpenBLAS, BLIS\n"
        "or oneDNN on cpu. An op's name stands for its usual shapes; without a word, all usual\n"
        "shapes of both ops are measured. With HW_PRECISION=fp16 or int8, cuBLASLt multiplies\n"
        "f32 in TF32. A table ends with the geometric mean of the speeds and the lowest one.",
    .arguments = "[OPTION...] [matmul|attention|SHAPE...]",
    .notes =
        "  hw-rival f16:512x4096x4096              one product\n"
        "  hw-rival bf16:1x4096x32/8x128           attention of one query\n"
        "  HW_PRECISION=fp16 hw-rival -d cuda:0 f32:4096x4096x4096\n"
        "                                          a product of f32, in TF32 on both sides\n"
        "  HW_THREADS=1 taskset -c 1 hw-rival -d cpu:0\n"
        "                                          one thread of the processor",
};

static int run(int argc, const char **argv)
{
    struct bench bench = { 0 };
    char *device = NULL;
    const struct poptOption table[] = {
        { "device", 'd', POPT_ARG_STRING, &device, 0,
          "the device to measure, or a plugin file (the recommended device)", "DEVICE" },
        OPTION_CSV,
        OPTIONS_COMMON,
        POPT_TABLEEND
    };
    struct arguments arguments;
    int status;

    if (options_read(&arguments, &manual, table, argc, argv, 64, &status)) {
        status = EXIT_USAGE;
        if (accepts(arguments.words)) {
            bench.device = device;
            bench.words = arguments.words;
            bench.results = json_array();
            json_t *header = measure_header(argc, argv);
            if (out_is_text())
                measure_print_header();
            status = measure_end(header, bench.results, measure_rivals(&bench));
        }
    }
    free(device);
    options_close(&arguments);
    return status;
}

int main(int argc, char **argv)
{
    static char name[] = "hw-rival";
    argv[0] = name;
    complain_as(name);
    out_begin();
    watch_begin();
    const int status = out_end(run(argc, (const char **)argv));
    watch_end();
    return status;
}
