/* SPDX-License-Identifier: MIT */
/* quantize.c - `hw quantize`: a model file with its matrices in another type. */
#define _POSIX_C_SOURCE 200809L
#include "model/gguf/quantize.h"

#include "command/bar.h"
#include "command/command.h"
#include "command/options.h"
#include "command/output.h"
#include "command/watch.h"
#include "util/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct manual manual = {
    .about =
        "hw quantize - a model file with its matrices in another type\n\n"
        "TYPE is f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q4_K (Q4_K_S), q5_K (Q5_K_S) or\n"
        "q6_K, or one of the mixtures Q4_K_M and Q5_K_M. Norms and biases stay as they are. OUT\n"
        "appears when it is complete.",
    .arguments = "[OPTION...] IN.gguf OUT.gguf TYPE",
    .notes =
        "  hw quantize MODEL-F16.gguf MODEL-Q4_K_M.gguf Q4_K_M\n"
        "  hw quantize --dry-run -v MODEL-F16.gguf OUT.gguf q8_0\n"
        "  hw quantize --force MODEL-F32.gguf MODEL-F16.gguf f16 --json\n\n"
        "After Ctrl-C, OUT is unchanged, or absent if it is new. The exit status is 1 on failure.",
};

struct wishes {
    int pure, force, dry_run, verbose;
    char *device;
};

struct work {
    const char *in, *out, *type;
    const struct wishes *wishes;
    struct gguf *file;
    struct quantize_plan plan;
    uint64_t bytes; /* of the file OUT */
    double seconds;
};

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t stopped;

static void stop(int signal_number)
{
    (void)signal_number;
    stopped = 1;
}

/* A SIGHUP that nohup ignores stays ignored. */
static void catch_signals(void)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction old;
    struct sigaction action = { .sa_handler = stop, .sa_flags = (int)SA_RESETHAND };
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!sigaction(numbers[i], NULL, &old) &&
            (numbers[i] != SIGHUP || old.sa_handler != SIG_IGN))
            sigaction(numbers[i], &action, NULL);
}

static bool progress(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    bar_draw("quantizing", stopped ? total : done, total);
    return !stopped;
}

/* ---- The result ---- */

/* Bytes and tensors of each type, in the order of the types' numbers: "Q4_K 1.44 MiB,
 * F32 9 KiB". */
static void print_types(const struct quantize_plan *plan, bool after)
{
    bool first = true;
    for (uint32_t type = 0; type < GGUF_TYPE_END; type++) {
        uint64_t bytes = 0;
        for (size_t i = 0; i < plan->count; i++) {
            const struct quantize_step *step = &plan->steps[i];
            if ((after ? step->to : step->from->type) == type)
                bytes += after ? step->bytes : step->from->bytes;
        }
        if (bytes)
            say("%s%s %s", first ? ": " : ", ", gguf_type_name(type),
                size_text(bytes).text);
        first = first && !bytes;
    }
    say("\n");
}

static void print_step(const struct quantize_step *step)
{
    const char *from = gguf_type_name(step->from->type), *to = gguf_type_name(step->to);
    say("  %-40.*s %s", (int)step->from->name.length, step->from->name.bytes, from);
    if (step->to != step->from->type)
        say(" -> %s, %s -> %s", to, size_text(step->from->bytes).text,
            size_text(step->bytes).text);
    if (step->to != step->wanted)
        say(" (rows of %" PRIu64 " elements are not whole %s blocks of %" PRIu32 ")",
            step->from->extents[0], gguf_type_name(step->wanted),
            gguf_type_block(step->wanted));
    say("\n");
}

/* Lists tensors that get another type than requested, or all with --verbose. */
static void print_result(const struct work *work)
{
    const struct quantize_plan *plan = &work->plan;
    char out[4096];
    clean_text(out, sizeof out, work->out);
    for (size_t i = 0; i < plan->count; i++)
        if (work->wishes->verbose || plan->steps[i].to != plan->steps[i].wanted)
            print_step(&plan->steps[i]);
    say("before      %s", size_text(plan->before).text);
    print_types(plan, false);
    say("after       %s", size_text(plan->after).text);
    print_types(plan, true);
    if (work->wishes->dry_run)
        say("not written, because of --dry-run\n");
    else
        say("written     %s, %s in %.2f s\n", out, size_text(work->bytes).text,
            work->seconds);
}

static json_t *steps_json(const struct quantize_plan *plan)
{
    json_t *list = json_array();
    for (size_t i = 0; i < plan->count; i++) {
        const struct quantize_step *step = &plan->steps[i];
        json_array_append_new(
            list,
            json_pack("{s:o, s:s, s:s, s:s, s:I, s:I}", "name",
                      json_text(step->from->name.bytes, step->from->name.length), "from",
                      gguf_type_name(step->from->type), "to", gguf_type_name(step->to),
                      "wanted", gguf_type_name(step->wanted), "bytes_before",
                      (json_int_t)step->from->bytes, "bytes_after",
                      (json_int_t)step->bytes));
    }
    return list;
}

static void tell(const struct work *work)
{
    if (!out_json) {
        print_result(work);
        return;
    }
    json_t *tree = json_pack("{s:i, s:o, s:o, s:s, s:b, s:I, s:I}", "schema", 1, "in",
                             json_text(work->in, strlen(work->in)), "out",
                             json_text(work->out, strlen(work->out)), "type", work->type,
                             "written", !work->wishes->dry_run, "bytes_before",
                             (json_int_t)work->plan.before, "bytes_after",
                             (json_int_t)work->plan.after);
    if (!work->wishes->dry_run) {
        json_object_set_new(tree, "file_bytes", json_integer((json_int_t)work->bytes));
        json_object_set_new(tree, "seconds", json_real(work->seconds));
    }
    json_object_set_new(tree, "tensors", steps_json(&work->plan));
    out_tree(tree);
}

/* ---- The command ---- */

/* OUT must not be IN under another name; only --force replaces it. */
static bool check_output(const struct work *work, struct fault *why)
{
    struct stat in, out;
    if (!*work->out)
        return fault(why, "the name of the file to write is empty");
    if (stat(work->out, &out) && lstat(work->out, &out)) /* also a link to nothing */
        return errno == ENOENT || fault(why, "%s: %s", work->out, strerror(errno));
    if (!stat(work->in, &in) && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
        return fault(why, "%s: is the file to read; write to another", work->out);
    if (!S_ISREG(out.st_mode) && !S_ISLNK(out.st_mode))
        return fault(why, "%s: exists, and is not a regular file", work->out);
    return work->wishes->force || fault(why, "%s: exists; --force replaces it", work->out);
}

static bool convert(struct work *work, const struct recipe *recipe, struct fault *why)
{
    struct hw_context *library = NULL;
    const struct hw_options options = { .size = sizeof options,
                                        .backends = work->wishes->device,
                                        .start_fn = watch_start };
    struct quantize_output output = { .path = work->out,
                                      .replace = work->wishes->force,
                                      .progress = progress };
    struct stat info;
    if (hw_open(&options, &library))
        return fault(why, "%s%s", work->wishes->device ? "--device: " : "", hw_message());
    output.device = hw_device_default(library);
    watch_file(work->in, output.device); /* opening has watched the plugins instead */
    catch_signals();
    const bool good = quantize_write(work->file, recipe, &work->plan, &output, why);
    bar_draw("quantizing", 1, 1);
    hw_close(library);
    work->bytes = good && !stat(work->out, &info) ? (uint64_t)info.st_size : 0;
    return good;
}

static int quantize(struct work *work, const struct recipe *recipe)
{
    static struct fault why; /* large */
    const double start = now();
    watch_file(work->in, NULL);
    work->file = gguf_open(work->in, &why);
    bool good = work->file && check_output(work, &why) &&
                quantize_decide(work->file, recipe, work->wishes->pure, &work->plan,
                                &why) &&
                (work->wishes->dry_run || convert(work, recipe, &why));
    work->seconds = now() - start;
    if (good)
        tell(work);
    else
        complain("%s", why.text);
    quantize_free(&work->plan);
    gguf_close(work->file);
    watch_work(NULL);
    return good ? EXIT_SUCCESS : EXIT_FAILED;
}

static int run(const struct arguments *arguments, const struct wishes *wishes)
{
    struct work work = { .wishes = wishes };
    if (arguments->count < 3) {
        complain("IN.gguf, OUT.gguf and TYPE are required; see %s --help", complainer());
        return EXIT_USAGE;
    }
    work.in = arguments->words[0];
    work.out = arguments->words[1];
    work.type = arguments->words[2];
    const struct recipe *recipe = recipe_find(work.type);
    if (!recipe) {
        (void)is_known("type", work.type, recipe_names());
        return EXIT_USAGE;
    }
    return quantize(&work, recipe);
}

int cmd_quantize(int argc, const char **argv)
{
    struct wishes wishes = { 0 };
    int status = EXIT_USAGE;
    const struct poptOption table[] = {
        { "pure", '\0', POPT_ARG_NONE, &wishes.pure, 0,
          "the same type for all matrices, without exceptions for quality", NULL },
        { "force", 'f', POPT_ARG_NONE, &wishes.force, 0,
          "replace OUT if it exists; its permissions stay", NULL },
        { "dry-run", 'n', POPT_ARG_NONE, &wishes.dry_run, 0,
          "show what would be written, and write nothing", NULL },
        { "verbose", 'v', POPT_ARG_NONE, &wishes.verbose, 0, "list every tensor", NULL },
        { "device", 'd', POPT_ARG_STRING, &wishes.device, 0,
          "as in HW_BACKENDS: cpu, cuda:0, 'cuda,cpu' (the recommended one)", "D" },
        OPTIONS_COMMON,
        POPT_TABLEEND,
    };
    struct arguments arguments;
    if (options_read(&arguments, &manual, table, argc, argv, 3, &status))
        status = run(&arguments, &wishes);
    options_close(&arguments);
    free(wishes.device);
    return status;
}
