/* SPDX-License-Identifier: MIT */
/* bench_products.c - products on the host's processor whose weights come from memory, as stored and
 * packed, as a share of the processor's peaks. */
#include "bench.h"
#include "command/command.h"
#include "command/measure.h"
#include "command/options.h"
#include "command/output.h"
#include "command/report.h"
#include "products.h"

#include <hw/report.h>

#include <host.h>

#include <stdlib.h>
#include <string.h>

/* Products use sets of weights in turn, so that no set is still in a cache when it comes again.
 * Those limited by arithmetic, with MANY_ROWS or more, need fewer sets. */
enum { MOST_SETS = 256, MOST_SAMPLES = 400, LEAST_SAMPLES = 5, MANY_ROWS = 64 };
static const double cold_bytes = 1.2e9, less_cold_bytes = 256e6;

static const char *const usual[] = { "f32:1x4096x4096",
                                     "f16:1x4096x4096",
                                     "bf16:1x4096x4096",
                                     "q8_0:1x4096x4096",
                                     "q4_0:1x4096x4096",
                                     "q4_K:1x4096x4096",
                                     "q6_K:1x4096x4096",
                                     "f32:8x4096x4096",
                                     "q8_0:8x4096x4096",
                                     "f32:512x4096x4096",
                                     "f16:512x4096x4096",
                                     "bf16:512x4096x4096",
                                     "q8_0:512x4096x4096",
                                     "q4_0:512x4096x4096",
                                     "q4_K:512x4096x4096",
                                     "q6_K:512x4096x4096",
                                     NULL };

/* Peaks of the processor in bytes and operations per second, on the threads that ops use. */
struct limits {
    double read, f32, bf16, int8;
};

static struct limits limits_of(const struct bench *bench)
{
    struct host_peak peaks[HOST_PEAKS];
    const uint32_t threads = host_threads();
    const int count = host_peaks(threads, bench->seconds > 0 ? bench->seconds : 0.1, peaks);
    struct limits limits = { 0 };
    for (int i = 0; i < count; i++) {
        const struct {
            const char *what;
            double *rate;
        } known[] = { { "read memory", &limits.read },
                      { "f32", &limits.f32 },
                      { "bf16", &limits.bf16 },
                      { "int8", &limits.int8 } };
        for (size_t j = 0; j < sizeof known / sizeof known[0]; j++)
            if (!strcmp(peaks[i].what, known[j].what) && peaks[i].all > *known[j].rate)
                *known[j].rate = peaks[i].all;
    }
    return limits;
}

/* One product, with its weights as stored or packed. */
struct trial {
    const struct bench *bench;
    struct hw_queue *queue;
    const float *random;
    const struct limits *limits;
    struct product product;
    bool packed;
    struct hw_tensor stored, weights[MOST_SETS];
    int sets;
    struct spread us;
};

/* The peak of the fastest arithmetic that HW_PRECISION allows for these weights. */
static double arithmetic_of(const struct trial *t)
{
    const char *precision = getenv("HW_PRECISION");
    const bool fp16 = precision && strcmp(precision, "fp32");
    const bool int8 = precision && !strcmp(precision, "int8");
    if (int8 && hw_dtype_block(t->product.type) > 1 && t->limits->int8 > 0)
        return t->limits->int8;
    if (fp16 && t->product.type == HW_BF16 && t->limits->bf16 > 0)
        return t->limits->bf16;
    return t->limits->f32;
}

/* ---- weights ---- */

static enum hw_status stored_weights(struct trial *t)
{
    const int64_t extents[] = { t->product.n, t->product.k };
    const enum hw_status status = hw_tensor_alloc(hw_queue_device(t->queue), 0,
                                                  t->product.type, 2, extents, &t->stored);
    return status ? status : fill_random(t->queue, t->random, &t->stored);
}

/* Copying to the same type copies bytes, for block types, too. */
static enum hw_status another_set(struct trial *t, struct hw_tensor *weights)
{
    struct hw_copy copy = { .src = t->stored };
    if (t->packed)
        return hw_tensor_pack(t->queue, &t->stored, weights);
    const enum hw_status status = hw_tensor_alloc(
        hw_queue_device(t->queue), 0, t->product.type, 2, t->stored.extent, weights);
    copy.dst = *weights;
    return status ? status : hw_copy(t->queue, &copy);
}

static enum hw_status make_weights(struct trial *t)
{
    const double enough = t->product.m < MANY_ROWS ? cold_bytes : less_cold_bytes;
    double bytes = 0;
    enum hw_status status = stored_weights(t);
    while (!status && t->sets < MOST_SETS && bytes < enough) {
        struct hw_tensor *weights = &t->weights[t->sets++];
        *weights = (struct hw_tensor){ 0 };
        status = another_set(t, weights);
        if (!status)
            bytes += (double)hw_buffer_bytes(weights->buffer);
    }
    return status;
}

static void free_weights(struct trial *t)
{
    for (int i = 0; i < t->sets; i++)
        hw_buffer_free(t->weights[i].buffer);
    t->sets = 0;
    hw_buffer_free(t->stored.buffer);
    t->stored = (struct hw_tensor){ 0 };
}

/* ---- time ---- */

static enum hw_status time_product(struct trial *t, struct hw_matmul *op, int set,
                                   double *us)
{
    op->b = t->weights[set % t->sets];
    const double start = now_ns();
    enum hw_status status = hw_matmul(t->queue, op);
    if (!status)
        status = hw_queue_wait(t->queue);
    *us = (now_ns() - start) / 1000;
    return status;
}

/* Each product is a sample, so that a disturbance of one does not change the median. */
static enum hw_status time_products(struct trial *t, struct hw_matmul *op)
{
    double us[MOST_SAMPLES], first;
    const double seconds = t->bench->seconds > 0 ? t->bench->seconds : 0.5;
    enum hw_status status = time_product(t, op, 0, &first); /* warms up */
    const double end = now_ns() + seconds * 1e9;
    int count = 0;
    while (!status && count < MOST_SAMPLES && (count < LEAST_SAMPLES || now_ns() < end)) {
        status = time_product(t, op, count + 1, &us[count]);
        count++;
    }
    if (!status)
        t->us = spread_of(us, (size_t)count);
    return status;
}

static enum hw_status measure_trial(struct trial *t)
{
    const int64_t a[] = { t->product.m, t->product.k },
                  c[] = { t->product.m, t->product.n };
    struct hw_device *device = hw_queue_device(t->queue);
    struct hw_matmul op = { .transpose_b = 1 };
    enum hw_status status = make_weights(t);
    if (!status)
        status = hw_tensor_alloc(device, 0, HW_F32, 2, a, &op.a);
    if (!status)
        status = hw_tensor_alloc(device, 0, HW_F32, 2, c, &op.c);
    if (!status)
        status = fill_random(t->queue, t->random, &op.a);
    if (!status)
        status = time_products(t, &op);
    hw_buffer_free(op.a.buffer);
    hw_buffer_free(op.c.buffer);
    return status;
}

/* ---- the report ---- */

static void report_trial(const struct trial *t)
{
    const struct product *p = &t->product;
    const double operations = product_operations(p), seconds = t->us.median / 1e6;
    const double bytes = (double)hw_buffer_bytes(t->weights[0].buffer);
    const double read = t->limits->read, arithmetic = arithmetic_of(t);
    const double reading = read > 0 ? bytes / read : 0;
    const double computing = arithmetic > 0 ? operations / arithmetic : 0;
    const char *limit = reading > computing ? "memory" : "arithmetic";
    const double share = (reading > computing ? reading : computing) / seconds;
    json_array_append_new(
        t->bench->results,
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:b, s:i, s:s, s:o, s:f, s:f, s:s, s:f}",
                  "bench", "products", "op", "matmul", "type", hw_dtype_name(p->type), "m",
                  (json_int_t)p->m, "n", (json_int_t)p->n, "k", (json_int_t)p->k, "packed",
                  (int)t->packed, "sets", t->sets, "unit", "us", "time", spread_json(t->us),
                  "gb_per_s", bytes / seconds / 1e9, "gop_per_s",
                  operations / seconds / 1e9, "limit", limit, "share", share));
    if (out_is_text())
        say("  %-5s %6lldx%lldx%-6lld %-9s %s%10.1f%s %10.1f %10.1f %8.2f %8.1f %5.1f%% %s\n",
            hw_dtype_name(p->type), (long long)p->m, (long long)p->n, (long long)p->k,
            t->packed ? "packed" : "as stored", ink(BOLD), t->us.median, ink(PLAIN),
            t->us.p10, t->us.p90, bytes / seconds / 1e9, operations / seconds / 1e9,
            100 * share, limit);
    out_flush();
}

/* A type that the device cannot pack is measured only as stored. */
static int measure_product(struct trial *t, const char *word)
{
    product_read(word, &t->product);
    for (int packed = 0; packed < 2 && !out_is_closed(); packed++) {
        t->packed = packed;
        const enum hw_status status = measure_trial(t);
        if (!status)
            report_trial(t);
        free_weights(t);
        if (status && !(packed && status == HW_UNSUPPORTED)) {
            complain("products: %s: %s", word, hw_message());
            return EXIT_FAILED;
        }
    }
    return 0;
}

static int measure_all(const struct bench *bench, struct hw_device *device)
{
    const char *const *word = bench->words[0] ? bench->words : usual;
    struct limits limits = limits_of(bench);
    float *random = random_numbers();
    struct trial trial = { .bench = bench, .random = random, .limits = &limits };
    int status = EXIT_FAILED;
    if (!random)
        complain("products: out of memory");
    else if (hw_queue_open(device, NULL, &trial.queue))
        complain("products: %s", hw_message());
    else
        status = 0;
    if (!status && out_is_text())
        say("\nproducts on %s, weights from memory: it reads %.1f GB/s with %u threads\n"
            "  %-33s %10s %10s %10s %8s %8s %6s of\n",
            hw_device_name(device), limits.read / 1e9, (unsigned)host_threads(),
            "type, MxNxK", "us", "p10", "p90", "GB/s", "GOP/s", "share");
    for (; *word && !status && !out_is_closed(); word++)
        status = measure_product(&trial, *word);
    hw_queue_close(trial.queue);
    free(random);
    return status;
}

/* Floats and blocks, not integers. */
static bool is_weight(int32_t type)
{
    return type == HW_F32 || type == HW_F16 || type == HW_BF16 || hw_dtype_block(type) > 1;
}

bool products_accepts(const char **words)
{
    struct product product;
    for (; *words; words++)
        if (!product_read(*words, &product) || !is_weight(product.type) ||
            product.k % hw_dtype_block(product.type)) {
            complain("%s: a product is TYPE:MxNxK, such as q4_0:1x4096x4096; K must be "
                     "whole blocks; " PRODUCT_EXTENTS,
                     *words);
            return false;
        }
    return true;
}

int measure_products(const struct bench *bench)
{
    const struct hw_options options = { .size = sizeof options, .fallback = "error" };
    struct hw_device_info info = { .size = sizeof info };
    struct hw_device *device;
    struct report report;
    int status = EXIT_FAILED;

    if (!report_open_for(&report, bench->device, &options))
        return EXIT_FAILED;
    if ((device = report_device(&report, bench->device))) {
        if (hw_device_info(device, &info) || info.kind != HW_DEVICE_CPU)
            complain("products: %s: only the host's processor is measured; name it with "
                     "--device cpu:0",
                     hw_device_name(device));
        else
            status = measure_all(bench, device);
    }
    report_close(&report);
    return status;
}
