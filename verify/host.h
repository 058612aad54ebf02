/* SPDX-License-Identifier: MIT */
/* host.h - the peaks of the host's processor: operations per second of its units, and bytes per
 * second from each level of cache and from memory. They are measured, because the processor reports
 * neither clocks nor units. */
#ifndef VERIFY_HOST_H
#define VERIFY_HOST_H

#include <stdbool.h>
#include <stdint.h>

enum { HOST_PEAKS = 12 };

struct host_peak {
    char what[24];    /* "f32", "bf16", "int8", "read L1", "read memory" */
    const char *unit; /* of the processor: "AVX-512" */
    /* bytes; otherwise operations: a multiplication and an addition are two */
    bool reads;
    uint64_t bytes;  /* that one thread reads again and again; 0 if it reads none */
    double one, all; /* a second, of one thread and of all together; 0: not measured */
};

/* Measures the peaks that this processor has, for about `seconds` each, and returns their number.
 * `threads`: all threads together. */
int host_peaks(uint32_t threads, double seconds, struct host_peak peaks[HOST_PEAKS]);

/* Operations per second of `what` ("f32", "bf16" or "int8") by `threads`; 0: it has no such
 * unit. */
double host_rate(const char *what, uint32_t threads, double seconds);

/* For each level of cache, the smallest first: the bytes of the threads' data that it holds, and
 * the bytes per second that the threads read from it together. */
enum { HOST_LEVELS = 4 };
struct host_cache {
    double bytes, rate;
};
/* Returns how many levels there are that can be measured. */
int host_caches(uint32_t threads, double seconds, struct host_cache caches[HOST_LEVELS]);

/* The threads for measuring the processor: HW_THREADS, or else the number of processors that this
 * process may run on. The CPU plugin uses fewer if two share a core or a quota limits it. */
uint32_t host_threads(void);

#endif
