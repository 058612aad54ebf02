/* SPDX-License-Identifier: MIT */
/* verify.h - doubt, as a library: holds every kernel of a device against a double-precision
 * oracle, measures it, and says what it supports. docs/testing.md has the questions and the
 * tolerances.
 *
 * Works on a device of an open context and uses <hw/hw.h> alone, so that whoever can load a
 * plugin can verify it. Open the context with fallback "error", so that nobody stands in
 * for the device; an op that another device computed is counted as unsupported all the
 * same, never as passed.
 *
 * Functions answer HW_OK when they could ask their question, whatever the answers were;
 * HW_INVALID, with words in `error`, for filters that fit nothing; else what opening a
 * queue or getting memory failed with (hw_message() has the words). One thread at a time
 * for one device. */
#ifndef VERIFY_H
#define VERIFY_H

#include <hw/hw.h>

#include <stdbool.h>

/* What to look at. NULL and zero: everything. */
struct verify_filter {
    const char *op;     /* a name of the op table */
    const char *kernel; /* a kernel row's name */
    /* part of a case's text; or with * and ? the whole; or one complete case,
     * "op(key=value,...)", which need not be in the registry */
    const char *pattern;
    bool quick; /* the small choice: for emulators, sanitizers, a plugin's admission */
    /* what the context was opened with, if not "fp32": "fp16", "int8" */
    const char *precision;
};

/* A line of `text` that says what is wrong with a filter. */
enum { VERIFY_ERROR_TEXT = 512 };

/* ---- Is it right? -------------------------------------------------------------------------- */

enum verify_verdict {
    VERIFY_PASSED, /* also where there was nothing to compute: see verify_counts */
    VERIFY_FAILED,
    VERIFY_SKIPPED,    /* could not be asked: no memory for it */
    VERIFY_UNSUPPORTED /* the device says that it does not compute this */
};

/* One case on one kernel row. Strings live until the callback returns. */
struct verify_result {
    const char *device;
    const char *op;     /* "memory" if the device's buffers are wrong */
    const char *kernel; /* "" where the device lists no rows: what it chose */
    const char *test;   /* the case, printable, its own reproduction; "" for memory */
    enum verify_verdict verdict;
    /* The worst output: ||out - want|| / ||want||, and its worst element in units of what
     * rounding may cost there; each with its bound. Zero where the answer is exact or there
     * is none. */
    double error, error_bound;
    double worst, worst_bound;
    const char *text; /* "" if passed, else what is wrong, or why not */
    bool empty;       /* no output has an element: the library answers by itself */
};

struct verify_counts {
    uint64_t passed, failed, skipped, unsupported;
    uint64_t empty; /* of those that passed: they say nothing about the device */
};

/* How many cases the device has computed, rightly or not. 0: nothing was tested. */
static inline uint64_t verify_reached(const struct verify_counts *counts)
{
    return counts->passed - counts->empty + counts->failed;
}

/* What a run calls; each may be NULL. */
struct verify_calls {
    /* Before the device is asked to compute a case. */
    void (*begin)(void *user, const char *test);
    /* After each case on each eligible kernel row; false ends the run. */
    bool (*result)(void *user, const struct verify_result *result);
    void *user;
};

/* Runs the cases that the filter leaves. Adds to `counts`. */
enum hw_status verify_test(struct hw_device *device, const struct verify_filter *filter,
                           const struct verify_calls *calls, struct verify_counts *counts,
                           char error[VERIFY_ERROR_TEXT]);

/* ---- How fast is it? ----------------------------------------------------------------------- */

/* What the device can do at best, measured in the same run; 0: not measured. */
struct verify_peaks {
    double copy; /* bytes read and written per second, by a large copy on the device */
    double flops[HW_DTYPE_END]; /* per second, by a large matrix product of this dtype: f32,
                                 * f16, bf16 */
};

struct verify_timing {
    const char *device, *op, *kernel, *test;
    bool cold; /* no cache can hold the operands: many sets of them take turns. Else one
                  set. */
    int sets;  /* of operands, that take turns: 1 if warm */
    int samples;
    double median;       /* seconds for one call */
    double low, high;    /* the first and the ninth tenth of the samples */
    double flops, bytes; /* the least that the op has to compute and to move */
    double peak; /* the share of what is possible: the time that moving `bytes` or computing
                  * `flops` takes at the peaks, whichever is longer, over the median; 0: no
                  * peaks */
    const char *text; /* "", or why there are no figures: unsupported, no memory */
};

/* Measures with random data, as all of this does: zeros would flatter. */
enum hw_status verify_peaks(struct hw_device *device, struct verify_peaks *peaks);

/* Measures the cases made for it; with a pattern that is a complete case, that one.
 * `seconds` is about what each measurement takes; 0: 0.2. */
enum hw_status verify_perf(struct hw_device *device, const struct verify_filter *filter,
                           const struct verify_peaks *peaks, double seconds,
                           bool (*timing)(void *user, const struct verify_timing *timing),
                           void *user, char error[VERIFY_ERROR_TEXT]);

/* ---- What is there? ------------------------------------------------------------------------ */

enum verify_support { VERIFY_NOTHING, VERIFY_SOME, VERIFY_ALL };

/* Submits every small case of the registry once: of `asked` cases of op that involve dtype (of
 * any operand), how many the device itself computed, whether rightly or not. Asking would not
 * do: a plugin need not say what it computes (hw_device_supports()). Cases with nothing to
 * compute do not count. Where no case involves the dtype both are 0: the op is not defined for
 * it. */
struct verify_cell {
    uint32_t asked, supported;
};
struct verify_matrix {
    struct verify_cell cell[HW_OP_COUNT][HW_DTYPE_END];
};
enum hw_status verify_support(struct hw_device *device, struct verify_matrix *matrix);

/* Calls `fn` with each case that the filter leaves (of the registry: tests, then those to
 * measure), until it answers false. */
enum hw_status verify_list(const struct verify_filter *filter,
                           bool (*fn)(void *user, const char *test, bool perf), void *user,
                           char error[VERIFY_ERROR_TEXT]);

#endif
