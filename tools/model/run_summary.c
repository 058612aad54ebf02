/* SPDX-License-Identifier: MIT */
/* run_summary.c - the measured summary of a run: for people, and as JSON. */
#define _POSIX_C_SOURCE 200809L
#include "command/output.h"
#include "command/report.h"
#include "run.h"

#include <hw/report.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number of ops that the device computed, and the ops that others did. Copies do not count,
 * because they only move data to the device and back. */
struct tally {
    uint64_t own, elsewhere, bytes;
    uint64_t compared, wrong; /* copies included */
    bool shadow;              /* whether HW_SHADOW is set */
    json_t *moved;            /* {op: count} */
    json_t *devices;          /* {device: count} */
};

static bool has_shadow(const json_t *explain)
{
    json_t *setting;
    size_t index;
    json_array_foreach (json_object_get(explain, "settings"), index, setting)
        if (!strcmp(text_of(setting, "variable"), "HW_SHADOW"))
            return strcmp(text_of(setting, "value"), "off") != 0;
    return false;
}

/* The devices that computed ops that fell back, from the library's report. */
static json_t *count_devices(struct hw_context *context, bool *shadow)
{
    struct report report = { .context = context };
    json_t *devices = json_object(), *row;
    size_t index;

    if (!report_read(&report))
        return devices;
    *shadow = has_shadow(report.explain);
    json_array_foreach (json_object_get(report.explain, "fallbacks"), index, row) {
        const char *device = text_of(row, "computed_by");
        const json_int_t before = json_integer_value(json_object_get(devices, device));
        if (*device && strcmp(text_of(row, "op"), hw_op_name(HW_OP_COPY)))
            json_object_set_new(devices, device,
                                json_integer(before + (json_int_t)number_of(row, "calls")));
    }
    json_decref(report.explain);
    return devices;
}

static struct tally count_ops(const struct run *run)
{
    struct hw_queue *queue = llama_queue(run->llama);
    struct tally tally = { .moved = json_object() };
    tally.devices = count_devices(run->library, &tally.shadow);
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        struct hw_call_stats stats = { .size = sizeof stats };
        if (hw_queue_calls(queue, op, &stats))
            continue;
        tally.compared += stats.compared;
        tally.wrong += stats.wrong;
        if (op == HW_OP_COPY)
            continue;
        tally.own += stats.calls - stats.fallbacks;
        tally.elsewhere += stats.fallbacks;
        tally.bytes += stats.fallback_bytes;
        if (stats.fallbacks)
            json_object_set_new(tally.moved, hw_op_name(op),
                                json_integer((json_int_t)stats.fallbacks));
    }
    return tally;
}

static void free_tally(struct tally *tally)
{
    json_decref(tally->moved);
    json_decref(tally->devices);
}

static double rate(int64_t tokens, double seconds)
{
    return tokens > 0 && seconds > 0 ? (double)tokens / seconds : 0;
}

static void tell_rates(const struct run *run)
{
    const struct perplexity *p = &run->perplexity;
    if (run->words->bench)
        return; /* the table has them */
    if (run->words->perplexity) {
        fprintf(stderr, "scoring     %" PRId64 " tokens, %.1f tok/s (%s)\n", p->tokens,
                rate(p->tokens, p->seconds), run->ended);
        return;
    }
    fprintf(stderr, "prompt      %zu tokens, %.1f tok/s\n", run->prompt.count,
            rate((int64_t)run->prompt.count, run->prompt_seconds));
    fprintf(stderr, "generation  %" PRId64 " tokens", run->generated_count);
    if (run->steps > 0) /* the first token comes from the prompt's step */
        fprintf(stderr, ", %.1f tok/s", rate(run->steps, run->step_seconds));
    fprintf(stderr, " (ended: %s)\n", run->ended);
    if (run->sampling.temperature > 0)
        fprintf(stderr, "seed        %" PRIu64 "\n", run->sampling.seed);
}

/* "shadow      24 calls compared, 0 wrong" */
static void tell_shadow(const struct run *run, const struct tally *tally)
{
    if (!tally->shadow)
        return;
    if (tally->compared)
        fprintf(stderr, "shadow      %" PRIu64 " calls compared, %" PRIu64 " wrong\n",
                tally->compared, tally->wrong);
    else
        fprintf(stderr,
                "shadow      no call compared on %s (errors.md in the documentation says "
                "which ones are not)\n",
                hw_device_name(run->device));
}

/* "ops         0 on mine:0, 1536 on cpu:0 (matmul 696, ...)" */
static void tell_ops(const struct run *run)
{
    struct tally tally = count_ops(run);
    const char *name;
    json_t *count;
    bool first = true;

    fprintf(stderr, "ops         %" PRIu64 " on %s", tally.own,
            hw_device_name(run->device));
    json_object_foreach (tally.devices, name, count)
        fprintf(stderr, ", %" JSON_INTEGER_FORMAT " on %s", json_integer_value(count),
                name);
    json_object_foreach (tally.moved, name, count) {
        fprintf(stderr, "%s%s %" JSON_INTEGER_FORMAT, first ? " (" : ", ", name,
                json_integer_value(count));
        first = false;
    }
    fprintf(stderr, "%s\n", first ? "" : ")");
    tell_shadow(run, &tally);
    free_tally(&tally);
}

/* "953 MiB weights packed in 0.4 s, 120 MiB in the mapped file, 8 KiB copied", or only some of
 * these. */
static void tell_weights(const struct llama_memory *memory)
{
    const char *noun = " weights", *comma = "";
    if (memory->packed) {
        fprintf(stderr, "%s weights packed in %.2f s", size_text(memory->packed).text,
                memory->pack_seconds);
        noun = "", comma = ", ";
    }
    if (memory->mapped) {
        fprintf(stderr, "%s%s%s in the mapped file", comma, size_text(memory->mapped).text,
                noun);
        noun = " copied", comma = ", ";
    }
    if (memory->weights || !(memory->mapped | memory->packed))
        fprintf(stderr, "%s%s%s", comma, size_text(memory->weights).text, noun);
}

/* As --kv-type takes it. */
struct cache_text {
    char text[32];
};

static struct cache_text cache_text(const struct run *run)
{
    const bool same = run->key_type == run->value_type;
    struct cache_text types;
    snprintf(types.text, sizeof types.text, "%s%s%s", hw_dtype_name(run->key_type),
             same ? "" : ",", same ? "" : hw_dtype_name(run->value_type));
    return types;
}

void run_tell(const struct run *run)
{
    const struct llama_memory memory = llama_memory(run->llama);
    struct hw_device_info info = { .size = sizeof info };
    char name[sizeof info.name * 4];

    if (out_is_terminal())
        fputc('\n', stderr);
    if (run->known)
        fprintf(stderr, "model       %s, %s, random weights\n", run->path, run->type);
    fprintf(stderr, "loading     %.2f s", run->load_seconds);
    if (memory.uploaded && !memory.mapped)
        fprintf(stderr, ", %s copied to the device at %.1f GB/s",
                size_text(memory.uploaded).text,
                (double)memory.uploaded / 1e9 / memory.upload_seconds);
    fputc('\n', stderr);
    tell_rates(run);
    if (hw_device_info(run->device, &info))
        info.name[0] = '\0';
    clean_text(name, sizeof name, info.name);
    fprintf(stderr, "device      %s%s%s\n", hw_device_name(run->device), *name ? ", " : "",
            name);
    fprintf(stderr, "precision   %s%s\n", run->precision,
            strcmp(run->precision, "fp32") ? " or better" : "");
    fputs("memory      ", stderr);
    tell_weights(&memory);
    fprintf(stderr, ", %s KV cache (%s, %" PRId64 " tokens), %s scratch\n",
            size_text(memory.cache).text, cache_text(run).text, llama_context(run->llama),
            size_text(memory.scratch).text);
    tell_ops(run);
}

static json_t *json_words(const char *words)
{
    return json_text(words, strlen(words));
}

static json_t *json_ids(const int32_t *ids, int64_t count)
{
    json_t *array = json_array();
    for (int64_t i = 0; i < count; i++)
        json_array_append_new(array, json_integer(ids[i]));
    return array;
}

static void add_text(const struct run *run, json_t *tree)
{
    json_object_set_new(tree, "prompt",
                        run->prompted ? json_text(run->input.bytes, run->input.length)
                                      : json_null());
    json_object_set_new(tree, "prompt_ids",
                        json_ids(run->prompt.ids, (int64_t)run->prompt.count));
    json_object_set_new(
        tree, "text",
        json_stringn(run->text.bytes ? run->text.bytes : "", run->text.length));
    json_object_set_new(tree, "ids", json_ids(run->generated, run->generated_count));
    json_object_set_new(tree, "temperature", json_real(run->sampling.temperature));
    if (run->sampling.temperature > 0)
        json_object_set_new(tree, "seed", json_integer((json_int_t)run->sampling.seed));
    json_object_set_new(tree, "prompt_rate",
                        json_real(rate((int64_t)run->prompt.count, run->prompt_seconds)));
    json_object_set_new(tree, "rate",
                        run->steps > 0 ? json_real(rate(run->steps, run->step_seconds))
                                       : json_null());
}

static void add_perplexity(const struct run *run, json_t *tree)
{
    const struct perplexity *p = &run->perplexity;
    const double nll = p->nll / (double)p->tokens;
    json_object_set_new(tree, "file", json_words(run->words->perplexity));
    /* JSON has no infinity. */
    json_object_set_new(tree, "perplexity",
                        isfinite(exp(nll)) ? json_real(exp(nll)) : json_null());
    json_object_set_new(tree, "nll", json_real(nll));
    json_object_set_new(tree, "tokens", json_integer(p->tokens));
    json_object_set_new(tree, "tokens_of_text", json_integer(p->wanted));
    json_object_set_new(tree, "windows", json_integer(p->windows));
    json_object_set_new(tree, "rate", json_real(rate(p->tokens, p->seconds)));
}

static void add_bench(const struct run *run, json_t *tree)
{
    json_object_set_new(tree, "type", run->known ? json_string(run->type) : json_null());
    json_object_set_new(tree, "results", bench_json(run));
}

static json_t *graph_json(const struct run *run)
{
    struct hw_graph *graph = llama_graph(run->llama);
    struct hw_graph_info info = { .size = sizeof info };
    if (!graph || hw_graph_info(graph, &info))
        return json_null();
    return json_pack("{s:i, s:i, s:i}", "nodes", (int)info.nodes, "segments",
                     (int)info.segments, "built", (int)info.built);
}

void run_tell_json(const struct run *run)
{
    const struct llama_memory memory = llama_memory(run->llama);
    struct hw_device_info info = { .size = sizeof info };
    struct hw_pool_stats pool = { .size = sizeof pool };
    struct tally tally = count_ops(run);
    json_t *tree = json_pack("{s:i, s:o}", "schema", 1, "model", json_words(run->path));
    if (hw_device_info(run->device, &info))
        info.name[0] = '\0';
    (void)hw_pool_stats(run->device, &pool); /* zeros if the device is lost */

    if (run->words->bench)
        add_bench(run, tree);
    else if (run->words->perplexity)
        add_perplexity(run, tree);
    else
        add_text(run, tree);
    json_object_set_new(tree, "load_seconds", json_real(run->load_seconds));
    json_object_set_new(tree, "ended", json_string(run->ended));
    json_object_set_new(tree, "backend", json_words(hw_device_backend(run->device)));
    json_object_set_new(tree, "device", json_words(hw_device_name(run->device)));
    json_object_set_new(tree, "device_name", json_words(info.name));
    json_object_set_new(tree, "precision", json_string(run->precision));
    json_object_set_new(tree, "kv_type", json_string(cache_text(run).text));
    json_object_set_new(tree, "context", json_integer(llama_context(run->llama)));
    json_object_set_new(
        tree, "memory",
        json_pack("{s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:f}", "mapped",
                  (json_int_t)memory.mapped, "packed", (json_int_t)memory.packed,
                  "pack_seconds", memory.pack_seconds, "weights",
                  (json_int_t)memory.weights, "cache", (json_int_t)memory.cache, "scratch",
                  (json_int_t)memory.scratch, "peak", (json_int_t)pool.peak, "uploaded",
                  (json_int_t)memory.uploaded, "upload_seconds", memory.upload_seconds));
    json_object_set_new(tree, "ops",
                        json_pack("{s:I, s:I, s:I, s:O, s:O}", "own", (json_int_t)tally.own,
                                  "elsewhere", (json_int_t)tally.elsewhere, "bytes_moved",
                                  (json_int_t)tally.bytes, "moved", tally.moved, "devices",
                                  tally.devices));
    json_object_set_new(tree, "shadow",
                        tally.shadow ? json_pack("{s:I, s:I}", "compared",
                                                 (json_int_t)tally.compared, "wrong",
                                                 (json_int_t)tally.wrong)
                                     : json_null());
    free_tally(&tally);
    json_object_set_new(tree, "graph", graph_json(run));
    out_tree(tree);
}
