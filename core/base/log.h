/* SPDX-License-Identifier: MIT */
/* log.h - a context's log: the application's function, or standard error. */
#ifndef HW_BASE_LOG_H
#define HW_BASE_LOG_H

#include <hw/hw.h>

#include <pthread.h>
#include <stdbool.h>

struct log {
    int32_t level; /* lines above this level are dropped; 0: all lines are */
    hw_log_fn fn;  /* NULL: standard error */
    void *user;
    pthread_mutex_t lock; /* one line at a time */
};

/* Whether this thread is inside the application's log function. */
bool log_is_telling(void);
void log_line(struct log *log, int32_t level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
