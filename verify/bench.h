/* SPDX-License-Identifier: MIT */
/* bench.h - a problem on a device: memory for it, a queue that forces one kernel row, one
 * run. */
#ifndef VERIFY_BENCH_H
#define VERIFY_BENCH_H

#include "problem.h"
#include "verify.h"

/* Memory of one problem: an arena of the device's and one of the host's, laid out alike. */
struct bench {
    const struct problem *problem;
    struct hw_queue *queue;
    struct hw_buffer *buffer;
    unsigned char *allocation, *host; /* host is aligned within the allocation */
};

/* Zeroed where it fails; bench_close() takes either. */
enum hw_status bench_open(struct bench *bench, const struct problem *problem,
                          struct hw_queue *queue);
void bench_close(struct bench *bench);

/* Puts the problem's image into both arenas; outputs are filled with `poison`. */
enum hw_status bench_load(struct bench *bench, int poison);
/* The device's arena as that of another bench of the same problem, which is quicker.
 * HW_UNSUPPORTED: operands lie on the host, or the device cannot copy. */
enum hw_status bench_load_as(struct bench *bench, const struct bench *other);
/* Gives the host's arena back where no operand lies in it; the bench is not loaded again then. */
void bench_drop_host(struct bench *bench);
/* Submits the op. It is done when the queue has been waited for. */
enum hw_status bench_submit(struct bench *bench);
/* Copies the device's arena to `bytes` of as many bytes. */
enum hw_status bench_save(struct bench *bench, unsigned char *bytes);

/* The op's struct with this bench's memory in its tensors. */
union op_args bench_args(const struct bench *bench);

/* ---- kernel rows --------------------------------------------------------------------------- */

/* Calls `fn` with a queue for each eligible row of `op` that the filter leaves; for a
 * device that lists none, once with its own choice, row "". false from `fn` ends it, and is
 * answered in `go_on`. */
enum hw_status each_row(struct hw_device *device, uint32_t op, const char *only,
                        uint32_t flags,
                        bool (*fn)(void *user, struct hw_queue *queue, const char *row),
                        void *user, bool *go_on);

/* Whether the device itself computes the problem; HW_UNSUPPORTED: hw_message() says why
 * not. */
enum hw_status bench_supports(struct hw_device *device, const struct problem *problem);

/* How often somebody else computed `op` for the queue. */
uint64_t fallbacks_of(struct hw_queue *queue, uint32_t op);

/* ---- filters ------------------------------------------------------------------------------- */

/* Whether the filter's pattern is one complete case. */
bool is_one_case(const struct verify_filter *filter);

/* Calls `fn` for each case that the filter leaves, of tests or of those to measure, op by
 * op; a complete case as pattern is itself the one. HW_INVALID and words in `error` where
 * none is left. */
enum hw_status each_case(const struct verify_filter *filter, bool perf,
                         bool (*fn)(void *user, const struct test_case *test), void *user,
                         char error[VERIFY_ERROR_TEXT]);

#endif
