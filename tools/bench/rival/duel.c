/* SPDX-License-Identifier: MIT */
/* duel.c - see duel.h: operands, times, and the comparison of results. */
#define _POSIX_C_SOURCE 199309L /* nanosleep() */

#include "duel.h"

#include <hw/interop.h>

#include <math.h>
#include <stdio.h>
#include <time.h>

enum { ROUNDS = 15, TRIALS = 3 };

const char *duel_message(enum hw_status status)
{
    return status ? hw_message() : NULL;
}

/* ---- operands ---- */

enum hw_status duel_hand_over(struct duel *d, struct hw_buffer *buffer,
                              struct hw_import *memory)
{
    *memory = (struct hw_import){ .size = sizeof *memory };
    if (d->rival->memory)
        return hw_buffer_export(buffer, d->rival->memory, memory);
    memory->handle = hw_buffer_host(buffer);
    return HW_OK;
}

enum hw_status duel_make(struct duel *d, const struct duel_matrix *what,
                         struct hw_tensor *matrix, struct hw_import *memory)
{
    const int64_t extents[2] = { what->rows, what->cols };
    const uint32_t flags = what->constant ? HW_BUFFER_READ_ONLY : 0;
    enum hw_status status = hw_tensor_alloc(d->device, flags, what->type, 2, extents,
                                            matrix);
    if (!status)
        status = duel_hand_over(d, matrix->buffer, memory);
    return status || !what->input ? status
                                  : fill_random(d->queue, d->random + what->from, matrix);
}

const char *duel_read(struct duel *d, const struct hw_tensor *matrix, float *to)
{
    const struct hw_copy copy = {
        .src = *matrix, .dst = hw_host_2d(to, HW_F32, matrix->extent[0], matrix->extent[1])
    };
    const char *why = duel_message(hw_copy(d->queue, &copy));
    return why ? why : duel_message(hw_queue_wait(d->queue));
}

/* ---- time ---- */

/* Microseconds per call of `count` runs, until all have completed. */
static const char *time_runs(struct duel *d, int way, int count, double *us)
{
    const char *why = NULL;
    const double start = now_ns();
    for (int i = 0; i < count && !why; i++)
        why = d->run(d, way);
    if (!why)
        why = duel_message(hw_queue_wait(d->queue));
    *us = (now_ns() - start) / 1000 / count / d->calls;
    return why;
}

/* The number of runs that take about 2 ms, much longer than a wait; also warms up. */
static const char *count_runs(struct duel *d, int way, int *count)
{
    enum { BATCH_US = 2000, MOST = 4096 };
    double us = 0;
    const char *why = time_runs(d, way, d->warm_up, &us);
    for (*count = 1; !why && *count < MOST; *count *= 2) {
        why = time_runs(d, way, *count, &us);
        if (us * d->calls * *count >= BATCH_US)
            break;
    }
    return why;
}

/* The fastest of ways first .. end - 1. */
static const char *find_best(struct duel *d, int first, int end, int *best)
{
    bool found = false;
    double least = HUGE_VAL;
    snprintf(d->reason, sizeof d->reason, "the other library has no way to compute this");
    for (int way = first; way < end; way++) {
        double us[TRIALS];
        int count;
        const char *fails = count_runs(d, way, &count);
        for (int i = 0; i < TRIALS && !fails; i++)
            fails = time_runs(d, way, count, &us[i]);
        if (fails && fails != d->reason)
            snprintf(d->reason, sizeof d->reason, "no way to compute this works: %s",
                     fails);
        if (fails)
            continue;
        const double median = spread_of(us, TRIALS).median;
        if (median < least) {
            least = median;
            *best = way;
            found = true;
        }
    }
    return found ? NULL : d->reason;
}

const char *duel_find_ways(struct duel *d, int first, struct outcome *o)
{
    const char *why = find_best(d, 0, o->ways, &o->way);
    return why ? why : find_best(d, first, 0, &o->our_way);
}

/* First a pause, because the other side's threads spin for a while after their work, then a run
 * that wakes this side's threads. */
static const char *take_turn(struct duel *d, int way, int count, double *us)
{
    nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    const char *why = time_runs(d, way, 1, us);
    return why ? why : time_runs(d, way, count, us);
}

const char *duel_take_turns(struct duel *d, struct outcome *o)
{
    double ours[ROUNDS], theirs[ROUNDS];
    int our_count, their_count;
    const char *why = count_runs(d, o->our_way, &our_count);
    if (!why)
        why = count_runs(d, o->way, &their_count);
    for (int i = 0; i < ROUNDS && !why; i++) {
        why = take_turn(d, o->our_way, our_count, &ours[i]);
        if (!why)
            why = take_turn(d, o->way, their_count, &theirs[i]);
    }
    if (!why) {
        o->ours = spread_of(ours, ROUNDS);
        o->theirs = spread_of(theirs, ROUNDS);
        d->speed = o->theirs.median / o->ours.median;
    }
    return why;
}

/* ---- results ---- */

const char *duel_compare(struct duel *d, const float *ours, const float *theirs,
                         struct outcome *o, int64_t count)
{
    double errors = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) {
        errors += ((double)ours[i] - theirs[i]) * ((double)ours[i] - theirs[i]);
        squares += (double)ours[i] * ours[i];
    }
    o->difference = sqrt(errors / squares);
    if (o->difference < d->bound)
        return NULL;
    snprintf(d->reason, sizeof d->reason,
             "the results differ by %.3g; the error of ours is %.3g, of theirs %.3g",
             o->difference, o->our_error, o->their_error);
    return d->reason;
}

struct way_name duel_way(const struct duel *d, const struct outcome *o, int way)
{
    struct way_name name = { "" };
    if (way < 0)
        snprintf(name.text, sizeof name.text, "%s", way == PACKED ? "packed" : "as stored");
    else if (d->rival->way_name)
        snprintf(name.text, sizeof name.text, "%s", d->rival->way_name(d->self, way));
    else
        snprintf(name.text, sizeof name.text, "way %d of %d", way + 1, o->ways);
    return name;
}
