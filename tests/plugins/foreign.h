/* SPDX-License-Identifier: MIT */
/* foreign.h - the API of a vendor who does not exist: memory and queues that a program may
 * have made before it opened a context, and foreign.c wraps. A queue runs nothing before it is
 * finished, so that a wait that is missing shows. One thread at a time. */
#ifndef FOREIGN_H
#define FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* The kinds of handles. */
#define FOREIGN_MEMORY "foreign.memory"
#define FOREIGN_QUEUE  "foreign.queue"

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
