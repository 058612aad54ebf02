/* SPDX-License-Identifier: MIT */
/* host.h - what the host's processor can do at best: operations a second of its units, and bytes
 * a second from each level of its caches and from memory. Measured, because neither clocks nor
 * units can be asked for. */
#ifndef VERIFY_HOST_H
#define VERIFY_HOST_H

#include <stdbool.h>
#include <stdint.h>

enum { HOST_PEAKS = 12 };

struct host_peak {
    char what[24];    /* "f32", "bf16", "int8", "read L1", "read memory" */
    const char *unit; /* of the processor: "AVX-512" */
    bool reads;       /* bytes, else operations: a multiplication and an addition are two */
    uint64_t bytes;   /* that one thread reads again and again; 0 if it does not */
    double one, all;  /* a second, of one thread and of all together; 0: not measured */
};

/* Measures those that this processor has, for about `seconds` each, and returns how many there
 * are. `threads`: all of them. */
int host_peaks(uint32_t threads, double seconds, struct host_peak peaks[HOST_PEAKS]);

/* Operations a second of `what` ("f32", "bf16" or "int8") by `threads`; 0: it has no such unit. */
double host_rate(const char *what, uint32_t threads, double seconds);

/* What each level of cache holds of the data of so many threads together, the smallest first, and
 * how many of these bytes a second they read. */
enum { HOST_LEVELS = 4 };
struct host_cache {
    double bytes, rate;
};
/* Returns how many levels there are that can be measured. */
int host_caches(uint32_t threads, double seconds, struct host_cache caches[HOST_LEVELS]);

/* The threads that the processor is measured with: HW_THREADS, else as many as the processors that
 * this process may run on, which are more than the CPU plugin uses where two share a core or a
 * quota limits it. */
uint32_t host_threads(void);

#endif
