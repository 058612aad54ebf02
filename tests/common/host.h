/* SPDX-License-Identifier: MIT */
/* host.h - a host that keeps the last message and counts the log's lines. */
#ifndef TESTS_COMMON_HOST_H
#define TESTS_COMMON_HOST_H

#include <hw/plugin.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
/* cmocka.h needs the three headers above. */
#include <cmocka.h>

struct test_host {
    struct hw_host host;
    char message[1024];
    char log[1024];    /* the last line */
    int32_t log_level; /* its */
    int log_lines;
};

static inline int32_t test_host_fail(void *instance, int32_t status, const char *text)
{
    struct test_host *host = instance;
    snprintf(host->message, sizeof host->message, "%s", text);
    return status;
}

static inline void test_host_log(void *instance, int32_t level, const char *text)
{
    struct test_host *host = instance;
    host->log_level = level;
    snprintf(host->log, sizeof host->log, "%s", text);
    host->log_lines++;
}

/* `host` must not be moved. */
static inline void test_host_init(struct test_host *host, const char *cache_dir)
{
    *host = (struct test_host){ .host = { .size = sizeof host->host,
                                          .instance = host,
                                          .fail = test_host_fail,
                                          .log = test_host_log,
                                          .cache_dir = cache_dir } };
}

static inline void assert_says(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

#endif
