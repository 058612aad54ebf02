/* SPDX-License-Identifier: MIT */
/* duel.h - an op by this library and by another one on the same device, in turns. `hw-rival`
 * opens a duel; a duel_op is an op that is measured so. */
#ifndef HW_TOOL_DUEL_H
#define HW_TOOL_DUEL_H

#include "bench/bench.h"
#include "command/measure.h"
#include "rival.h"

/* Our ways to compute; those of the rival are numbered from 0. */
enum { PACKED = -2, AS_STORED = -1 };

struct duel {
    const struct rival *rival;
    void *self; /* the rival's */
    struct hw_device *device;
    struct hw_queue *queue;
    const char *precision; /* HW_PRECISION in effect */
    struct hw_tensor workspace;
    float *random; /* of random_numbers() */
    void *state;   /* the op's own */
    /* Set by the op: submits `calls` calls of the op, of this way, to the queue. */
    const char *(*run)(struct duel *duel, int way);
    int calls;
    int warm_up;  /* runs, before those that count */
    double bound; /* how far results may differ, as outcome.difference */
    double speed; /* of the shape measured last: their time / ours */
    char reason[400];
};

struct outcome {
    struct spread ours, theirs; /* us of a call */
    int our_way, way, ways;
    double difference; /* ||ours - theirs|| / ||ours|| */
    double our_error,
        their_error; /* from the result in double: likewise, over some elements */
};

struct duel_op {
    uint32_t op;
    bool (*accepts)(const char *word); /* whether it is a shape */
    void (*print_header)(const struct duel *duel);
    /* Measures a shape, and reports it; returns NULL, or what went wrong. */
    const char *(*measure)(const struct bench *bench, struct duel *duel, const char *word);
};

extern const struct duel_op duel_matmul, duel_attention;

/* For ops. Those that return text return NULL for success, or what went wrong. */

/* The message, if the status is an error. */
const char *duel_message(enum hw_status status);
/* What the rival takes for a buffer. */
enum hw_status duel_hand_over(struct duel *duel, struct hw_buffer *buffer,
                              struct hw_import *memory);
struct duel_matrix {
    int32_t type;
    int64_t rows, cols;
    bool input;    /* filled with random numbers, from the one of this index on */
    int from;      /* at most RANDOM_SPARE */
    bool constant; /* in a buffer of HW_BUFFER_READ_ONLY */
};
enum hw_status duel_make(struct duel *duel, const struct duel_matrix *what,
                         struct hw_tensor *matrix, struct hw_import *memory);
/* Reads a matrix, as f32, when the queue's work has completed. */
const char *duel_read(struct duel *duel, const struct hw_tensor *matrix, float *to);
/* Sets the fastest way of both: of ours from `first` on, of theirs below outcome->ways. One that
 * the library offers but does not compute is left out. */
const char *duel_find_ways(struct duel *duel, int first, struct outcome *outcome);
/* Sets `difference`; more than duel->bound is a failure. Errors have been set. */
const char *duel_compare(struct duel *duel, const float *ours, const float *theirs,
                         struct outcome *outcome, int64_t count);
/* Sets the times of these ways, and duel->speed. */
const char *duel_take_turns(struct duel *duel, struct outcome *outcome);

/* Of ours, whether weights are packed; of theirs, "way 3 of 8" if it has no name. */
struct way_name {
    char text[40];
};
struct way_name duel_way(const struct duel *duel, const struct outcome *outcome, int way);

#endif
