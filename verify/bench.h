/* SPDX-License-Identifier: MIT */
/* bench.h - a problem on a device: its memory, a queue that forces one kernel row, and one
 * run. */
#ifndef VERIFY_BENCH_H
#define VERIFY_BENCH_H

#include "problem.h"
#include "verify.h"

/* The memory of one problem: two arenas with the same layout, on the device and on the host. */
struct bench {
    const struct problem *problem;
    struct hw_queue *queue;
    struct hw_buffer *buffer;
    struct hw_buffer
        *constants; /* another arena, for operands that are only read; or NULL */
    unsigned char *allocation, *host; /* host is aligned within the allocation */
};

/* Zeroed on failure; bench_close() accepts that. */
enum hw_status bench_open(struct bench *bench, const struct problem *problem,
                          struct hw_queue *queue);
void bench_close(struct bench *bench);

/* Copies the problem's image into both arenas, and fills the outputs with `poison`. */
enum hw_status bench_load(struct bench *bench, int poison);
/* Copies the device's arena from another bench of the same problem, which is faster. Returns
 * HW_UNSUPPORTED if operands are on the host, or if the device cannot copy. */
enum hw_status bench_load_as(struct bench *bench, const struct bench *other);
/* Moves operands that are only read to a buffer that no op may write, like weights. */
enum hw_status bench_part_constants(struct bench *bench);
/* Frees the host's arena if it has no operand. The bench cannot be loaded again then. */
void bench_drop_host(struct bench *bench);
/* Submits the op. It is complete after waiting for the queue. */
enum hw_status bench_submit(struct bench *bench);
/* Copies the device's arena to `bytes`, which has the same size. */
enum hw_status bench_save(struct bench *bench, unsigned char *bytes);

/* The op's struct, with the memory of this bench in its tensors. */
union op_args bench_args(const struct bench *bench);

/* ---- kernel rows --------------------------------------------------------------------------- */

/* Calls `fn` with a queue for each eligible row of `op` that matches the filter; once with row ""
 * if the device lists no rows. If `fn` returns false, stops and sets `go_on` to false. */
enum hw_status each_row(struct hw_device *device, uint32_t op, const char *only,
                        uint32_t flags,
                        bool (*fn)(void *user, struct hw_queue *queue, const char *row),
                        void *user, bool *go_on);

/* Calls `fn` once, with a queue that chooses its rows itself. */
enum hw_status own_row(struct hw_device *device,
                       bool (*fn)(void *user, struct hw_queue *queue, const char *row),
                       void *user, bool *go_on);

/* Returns HW_OK if the device itself computes the problem; otherwise HW_UNSUPPORTED, with the
 * reason in hw_message(). */
enum hw_status bench_supports(struct hw_device *device, const struct problem *problem);

/* How often another device computed `op` for the queue. */
uint64_t fallbacks_of(struct hw_queue *queue, uint32_t op);

/* ---- filters ------------------------------------------------------------------------------- */

/* Whether the pattern of the filter is one complete case. */
bool is_one_case(const struct verify_filter *filter);

/* Calls `fn` for each case that matches the filter, op by op: test cases, or cases to measure if
 * `perf`. A pattern that is a complete case stands for that case. Returns HW_INVALID with a message
 * in `error` if no case matches. */
enum hw_status each_case(const struct verify_filter *filter, bool perf,
                         bool (*fn)(void *user, const struct test_case *test), void *user,
                         char error[VERIFY_ERROR_TEXT]);

#endif
