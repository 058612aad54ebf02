/* SPDX-License-Identifier: MIT */
/* duel.h - measures an op by this library and by another one on the same device, in turns.
 * `hw-rival` opens a duel with each library; a duel_op is an op that it can measure. */
#ifndef HW_TOOL_DUEL_H
#define HW_TOOL_DUEL_H

#include "bench/bench.h"
#include "command/measure.h"
#include "rival.h"

/* Our ways to compute an op. The rival's ways are numbered from 0. */
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
    /* Set by the op: submits `calls` calls of the op to the queue, computed in this way. */
    const char *(*run)(struct duel *duel, int way);
    int calls;
    int warm_up;  /* runs before those that count */
    double bound; /* the largest outcome.difference allowed */
    double speed; /* their time / ours, of the last shape */
    char reason[400];
};

struct outcome {
    struct spread ours, theirs; /* us of a call */
    int our_way, way, ways;
    double difference; /* ||ours - theirs|| / ||ours|| */
    double our_error,
        their_error; /* likewise from the result in double, over some elements */
};

struct duel_op {
    uint32_t op;
    bool (*accepts)(const char *word); /* whether it is a shape */
    void (*print_header)(const struct duel *duel);
    /* Measures a shape and reports it; returns NULL, or the reason of a failure. */
    const char *(*measure)(const struct bench *bench, struct duel *duel, const char *word);
};

extern const struct duel_op duel_matmul, duel_attention;

/* For ops. Functions that return text return NULL for success, or the reason of a failure. */

/* The message, if the status is an error. */
const char *duel_message(enum hw_status status);
/* Exports a buffer as the kind of handle that the rival takes. */
enum hw_status duel_hand_over(struct duel *duel, struct hw_buffer *buffer,
                              struct hw_import *memory);
struct duel_matrix {
    int32_t type;
    int64_t rows, cols;
    bool input;    /* filled with random numbers */
    int from;      /* index of the first of them, at most RANDOM_SPARE */
    bool constant; /* in a buffer of HW_BUFFER_READ_ONLY */
};
enum hw_status duel_make(struct duel *duel, const struct duel_matrix *what,
                         struct hw_tensor *matrix, struct hw_import *memory);
/* Waits for the queue and reads a matrix as f32. */
const char *duel_read(struct duel *duel, const struct hw_tensor *matrix, float *to);
/* Finds the fastest way of each side: ours from `first` on, theirs below outcome->ways. Skips ways
 * that the other library offers but fails to compute. */
const char *duel_find_ways(struct duel *duel, int first, struct outcome *outcome);
/* Sets `difference`, and fails if it exceeds duel->bound. The errors must have been set. */
const char *duel_compare(struct duel *duel, const float *ours, const float *theirs,
                         struct outcome *outcome, int64_t count);
/* Measures both ways in turns; sets their times and duel->speed. */
const char *duel_take_turns(struct duel *duel, struct outcome *outcome);

/* For ours, whether weights are packed; for theirs, the name, or "way 3 of 8" without one. */
struct way_name {
    char text[40];
};
struct way_name duel_way(const struct duel *duel, const struct outcome *outcome, int way);

#endif
