/* SPDX-License-Identifier: MIT */
/* Counts how often it is loaded: adds a byte to the file HW_TEST_TALLY, "p" where it is tried
 * and "b" where it is bound. There HW_TEST_TALLY_BIND makes it fail, or crash. What its verdict
 * depends on: the file DRIVER, and the variables HW_TEST_SEEN*. */
#define _GNU_SOURCE
#define NAME  "tally"
#define LINES "driver=" DRIVER "\nvariable=HW_TEST_SEEN*\n"
#define CHANGES
#include "minimal.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int is_tried(void)
{
    return strcmp(program_invocation_short_name, "hw-probe") == 0;
}

__attribute__((constructor)) static void count(void)
{
    const char *path = getenv("HW_TEST_TALLY");
    const int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return;
    (void)!write(fd, is_tried() ? "p" : "b", 1);
    close(fd);
}

static int32_t open_here(const struct hw_host *host, void **self)
{
    const char *bind = is_tried() ? NULL : getenv("HW_TEST_TALLY_BIND");
    if (bind && strcmp(bind, "crash") == 0)
        _exit(86);
    if (bind)
        return hw_fail(host, HW_DRIVER, "not here");
    return plugin_open(host, self);
}

static void change(struct hw_plugin *table)
{
    table->open = open_here;
}
