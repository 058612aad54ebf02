/* SPDX-License-Identifier: MIT */
/* verify.h - conformance as a library: compares every kernel of a device with a double-precision
 * oracle, measures it, and finds the ops and dtypes that it supports. docs/testing.md has the
 * questions and the tolerances.
 *
 * It works on a device of an open context and uses only the public headers. Open the context with
 * fallback "error", so that no other device computes an op; if one still does, the case counts
 * as unsupported, never as passed.
 *
 * Functions return HW_OK if the run was possible, whatever its results; HW_INVALID with a
 * message in `error` if no case matches the filter; otherwise the error of opening a queue
 * or of allocating memory, with its message in hw_message(). Only one thread at a time may
 * use a device. */
#ifndef VERIFY_H
#define VERIFY_H

#include <hw/hw.h>

#include <stdbool.h>

/* Which cases to run. NULL and zero: all. */
struct verify_filter {
    const char *op;     /* the name of an op */
    const char *kernel; /* the name of a kernel row */
    /* text that the case contains; with * or ?, a pattern that matches the whole case; several of
     * these, with | between them; or one complete case, "op(key=value,...)", which need not be in
     * the registry */
    const char *pattern;
    bool quick; /* fewer cases: for emulators and sanitizers */
    /* the few small cases of a probe, each on the row that the device itself chooses */
    bool admission;
    /* measures calls of one graph, instead of single calls with and without caches */
    bool graph;
    /* the precision of the context, if not "fp32": "fp16", "int8" */
    const char *precision;
};

/* The size of a message about a filter, and the most operands of an op. */
enum { VERIFY_ERROR_TEXT = 512, VERIFY_OPERANDS = 8 };

/* ---- Is it right? -------------------------------------------------------------------------- */

enum verify_verdict {
    VERIFY_PASSED, /* also if there was nothing to compute: see verify_counts */
    VERIFY_FAILED,
    VERIFY_SKIPPED,    /* could not run: out of memory */
    VERIFY_UNSUPPORTED /* the device does not compute this */
};

/* One case on one kernel row. The strings are valid until the callback returns. */
struct verify_result {
    const char *device;
    const char *op;     /* "memory" for a fault of the device's buffers */
    const char *kernel; /* "" if the device lists no rows and chose itself */
    const char *test;   /* the case as text, which reproduces it; "" for memory */
    enum verify_verdict verdict;
    /* For the worst output: ||out - want|| / ||want||, and the error of its worst element as a
     * multiple of the error that rounding may cause there, each with its bound. Zero if the output
     * must be exact or there is none. */
    double error, error_bound;
    double worst, worst_bound;
    /* "" if passed; otherwise the fault, or the reason why it did not run */
    const char *text;
    /* of the operands in the order of the op's struct; HW_NONE: absent, or unknown because the case
     * could not be made */
    int32_t dtypes[VERIFY_OPERANDS];
    bool empty; /* no output has an element: the device is not involved */
};

struct verify_counts {
    uint64_t passed, failed, skipped, unsupported;
    uint64_t empty; /* the number of passed cases that were empty */
};

/* The number of cases that the device computed, correctly or not. If 0, nothing was tested. */
static inline uint64_t verify_reached(const struct verify_counts *counts)
{
    return counts->passed - counts->empty + counts->failed;
}

/* Callbacks of a run; each may be NULL. */
struct verify_calls {
    /* Before the device is queried about a case of `op`; returning false skips the case. */
    bool (*begin)(void *user, uint32_t op, const char *test);
    /* After each case on each eligible kernel row; false ends the run. */
    bool (*result)(void *user, const struct verify_result *result);
    void *user;
};

/* Runs the cases that match the filter, and adds to `counts`. Ops that the admission test has
 * withdrawn count as unsupported; to test them, call hw_device_reset() before. */
enum hw_status verify_test(struct hw_device *device, const struct verify_filter *filter,
                           const struct verify_calls *calls, struct verify_counts *counts,
                           char error[VERIFY_ERROR_TEXT]);

/* The dtypes of the operands of a case, "op(key=value,...)", in the order of the op's struct;
 * HW_NONE: absent. Returns false if the case cannot be made. */
bool verify_dtypes(const char *test, int32_t dtypes[VERIFY_OPERANDS]);

/* ---- How fast is it? ----------------------------------------------------------------------- */

/* A level of the caches: its size in bytes, and the bytes per second read from it. */
struct verify_cache {
    double bytes, rate;
};

/* The peaks of the device, measured in the same run; 0: not measured. */
enum { VERIFY_CACHES = 4 };
struct verify_peaks {
    double copy; /* bytes read plus written per second, by a large copy */
    /* per second, of f32, f16 and bf16: the peaks of the host's processor (host.h); on other
     * devices, of large products */
    double flops[HW_DTYPE_END];
    struct verify_cache
        cache[VERIFY_CACHES]; /* of the host's processor, the smallest first */
};

struct verify_timing {
    const char *device, *op, *kernel, *test;
    bool cold; /* many sets of operands take turns, so that no cache holds them */
    /* the calls are one graph; operands that are only read are HW_BUFFER_READ_ONLY */
    bool graph;
    int sets; /* how many; 1 if not cold */
    int samples;
    double median;       /* seconds per call */
    double low, high;    /* the 10th and the 90th percentile */
    double flops, bytes; /* the minimum that the op must compute and move */
    /* the longer of the times for computing `flops` and for moving `bytes` at the peaks, divided by
     * the median; 0: unknown. The bytes of a warm case come from the smallest cache that holds them
     * all. If no caches were measured, a case that is limited by them has no share. */
    double peak;
    const char *text; /* "", or why there are no figures: unsupported, out of memory */
};

/* Like all measurements here, it uses random data, because zeros are faster. */
enum hw_status verify_peaks(struct hw_device *device, struct verify_peaks *peaks);

/* Measures the cases made for this purpose or, if the pattern is one complete case, only that one.
 * Each measurement takes about `seconds`; 0: 0.2. */
enum hw_status verify_perf(struct hw_device *device, const struct verify_filter *filter,
                           const struct verify_peaks *peaks, double seconds,
                           bool (*timing)(void *user, const struct verify_timing *timing),
                           void *user, char error[VERIFY_ERROR_TEXT]);

/* ---- What does a call cost? ---------------------------------------------------------------- */

/* The number of cases per op that cost hardly more than the call; their shapes differ. */
enum { VERIFY_CALLS = 3 };

/* Sets `args` to the struct of such a case of `op`, with tensors in `buffer`, and `bytes` to the
 * size that they need there. The buffer may hold zeros. Returns false if the op has no such case,
 * or out of memory. */
bool verify_call(uint32_t op, int index, struct hw_buffer *buffer, void *args,
                 uint64_t *bytes);

/* A call on host memory, with random data. Free it with verify_host_call_free(). */
struct verify_host_call {
    uint32_t op;
    const void *args; /* of hw_op_size(op) bytes */
    void *memory;     /* of the operands */
    uint64_t bytes;   /* of `memory`; 0 without data */
};
/* Makes the call for a case, "op(key=value,...)". Without `data`, the operands have addresses that
 * must not be used: enough to query support for the call. HW_INVALID or HW_NO_MEMORY come with a
 * message in `error`. */
enum hw_status verify_host_call(const char *test, bool data, struct verify_host_call **call,
                                char error[VERIFY_ERROR_TEXT]);
void verify_host_call_free(struct verify_host_call *call);

/* ---- What is there? ------------------------------------------------------------------------ */

/* For each op and dtype, `asked` counts the quick cases with an operand of that dtype, each
 * submitted once, and `supported` the cases that the device itself computed, correctly or not. A
 * query would not do, since a plugin need not report the ops it computes (hw_device_supports()).
 * Cases with nothing to compute do not count. Both are 0 if the op is not defined for the dtype. */
struct verify_cell {
    uint32_t asked, supported;
};
struct verify_matrix {
    struct verify_cell cell[HW_OP_COUNT][HW_DTYPE_END];
};
enum hw_status verify_support(struct hw_device *device, struct verify_matrix *matrix);

/* Calls `fn` with each case that matches the filter, first the tests, then the cases to
 * measure, until it returns false. */
enum hw_status verify_list(const struct verify_filter *filter,
                           bool (*fn)(void *user, const char *test, bool perf), void *user,
                           char error[VERIFY_ERROR_TEXT]);

#endif
