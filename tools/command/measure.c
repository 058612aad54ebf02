/* SPDX-License-Identifier: MIT */
/* measure.c - see measure.h. */
#define _GNU_SOURCE /* sched_getaffinity() */

#include "measure.h"

#include "output.h"

#include <build_stamp.h>
#include <hw/hw.h>

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct spread spread_of(double *samples, size_t count)
{
    qsort(samples, count, sizeof *samples, ascending);
    return (struct spread){ .min = samples[0],
                            .p10 = samples[count / 10],
                            .median = samples[count / 2],
                            .p90 = samples[count - 1 - count / 10] };
}

json_t *spread_json(struct spread spread)
{
    return json_pack("{s:f, s:f, s:f, s:f}", "min", spread.min, "p10", spread.p10, "median",
                     spread.median, "p90", spread.p90);
}

/* Four additions of a register to itself, one after the other. */
#if defined(__x86_64__)
#define FOUR_ADDITIONS "add %0, %0\n\tadd %0, %0\n\tadd %0, %0\n\tadd %0, %0"
#elif defined(__aarch64__)
#define FOUR_ADDITIONS                                                                     \
    "add %0, %0, %0\n\tadd %0, %0, %0\n\tadd %0, %0, %0\n\tadd %0, %0, %0"
#endif

#ifdef FOUR_ADDITIONS
static double additions_per_ns(void)
{
    enum { ROUNDS = 20000 };
    uint64_t x = 1;
    double start = now_ns();
    for (int i = 0; i < ROUNDS; i++) {
        __asm__ volatile(FOUR_ADDITIONS : "+r"(x));
        __asm__ volatile(FOUR_ADDITIONS : "+r"(x));
        __asm__ volatile(FOUR_ADDITIONS : "+r"(x));
        __asm__ volatile(FOUR_ADDITIONS : "+r"(x));
    }
    return 16.0 * ROUNDS / (now_ns() - start);
}
#endif

double core_ghz(void)
{
#ifdef FOUR_ADDITIONS
    /* The best of several rounds: interrupts can only make a round look slower. */
    double best = 0;
    for (int i = 0; i < 50; i++) {
        double rate = additions_per_ns();
        best = rate > best ? rate : best;
    }
    return best;
#else
    return 0;
#endif
}

struct cpu_name {
    char text[128];
};

/* The name that the kernel reports: "model name" on x86, otherwise the kind of machine. */
static struct cpu_name cpu_name(void)
{
    struct cpu_name name = { "" };
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");

    while (file && !name.text[0] && fgets(line, sizeof line, file)) {
        const char *value = strncmp(line, "model name", 10) ? NULL : strstr(line, ": ");
        if (value)
            snprintf(name.text, sizeof name.text, "%.*s", (int)strcspn(value + 2, "\n"),
                     value + 2);
    }
    if (file)
        fclose(file);
    struct utsname machine;
    if (!name.text[0] && !uname(&machine))
        snprintf(name.text, sizeof name.text, "%s", machine.machine);
    return name;
}

static int usable_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 0 : CPU_COUNT(&set);
}

static json_t *words_joined(int count, const char **words)
{
    char text[1024] = "";
    size_t used = 0;
    for (int i = 0; i < count && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "",
                                 words[i]);
    json_t *joined = json_string(text);
    return joined ? joined : json_string("(no UTF-8)");
}

json_t *measure_header(int argc, const char **argv)
{
    char date[32];
    time_t now = time(NULL);
    struct tm utc;
    struct utsname machine;

    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    return json_pack("{s:i, s:o, s:s, s:s, s:{s:s, s:i, s:f, s:s}}", "schema", 1, "command",
                     words_joined(argc, argv), "date", date, "version", HW_BUILD_STAMP,
                     "machine", "cpu", cpu_name().text, "cores", usable_cores(), "core_ghz",
                     core_ghz(), "kernel", uname(&machine) ? "" : machine.release);
}

void measure_print_header(void)
{
    say("%s, %d usable core%s, this one at %.2f GHz; hw %s\n", cpu_name().text,
        usable_cores(), usable_cores() == 1 ? "" : "s", core_ghz(), HW_BUILD_STAMP);
}

int measure_end(json_t *header, json_t *results, int status)
{
    json_object_set_new(header, "results", results);
    if (out_csv && !out_json && !status)
        out_csv_rows(results);
    if (out_json && !status)
        out_tree(header);
    else
        json_decref(header);
    return status;
}
