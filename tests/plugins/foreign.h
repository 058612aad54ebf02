/* SPDX-License-Identifier: MIT */
/* foreign.h - the API of an invented vendor: memory and queues that a program may create before it
 * opens a context, and that foreign.c wraps. A queue runs nothing until it is waited for, so that a
 * missing wait shows. Not thread-safe. */
#ifndef FOREIGN_H
#define FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* The kinds of handles. */
#define FOREIGN_MEMORY "foreign.memory"
#define FOREIGN_QUEUE  "foreign.queue"
#define FOREIGN_DEVICE "foreign.device" /* a struct foreign_device */

struct foreign_device {
    int number; /* of the first device: FOREIGN_FIRST */
};
#define FOREIGN_FIRST 100

struct foreign_memory {
    uint64_t bytes;
    unsigned char *cells;
};

struct foreign_job {
    struct foreign_job *next;
    void (*run)(struct foreign_job *job); /* and frees it */
};

struct foreign_queue {
    struct foreign_job *first, *last;
    bool timed;  /* it was made so */
    bool closed; /* whoever made it sets this */
};

static inline void foreign_submit(struct foreign_queue *queue, struct foreign_job *job)
{
    job->next = NULL;
    if (queue->first)
        queue->last->next = job;
    else
        queue->first = job;
    queue->last = job;
}

static inline void foreign_finish(struct foreign_queue *queue)
{
    while (queue->first) {
        struct foreign_job *job = queue->first;
        queue->first = job->next;
        job->run(job);
    }
}

static inline void foreign_close(struct foreign_queue *queue)
{
    foreign_finish(queue);
    queue->closed = true;
}

#endif
