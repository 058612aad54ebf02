/* SPDX-License-Identifier: MIT */
/* Counts how often it is loaded: adds a byte to the file HW_TEST_TALLY, "p" in hw-probe and "b" in
 * the application. In the application, HW_TEST_TALLY_BIND makes it fail permanently, fail for lack
 * of memory, crash, have a different device or have one more. HW_TEST_TALLY_SLOW makes trying it
 * slow, HW_TEST_TALLY_TRY makes it fail. With HW_TEST_TALLY_TWO it always has one more device. With
 * HW_TEST_TALLY_CARD its first device is the first one of view.c. Its verdict depends on the file
 * DRIVER and on the variables HW_TEST_SEEN*. */
#define _GNU_SOURCE
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
    if (is_tried() && getenv("HW_TEST_TALLY_SLOW"))
        usleep(300000);
}

/* Whether this is the application, and HW_TEST_TALLY_BIND is `what`. */
static int shall(const char *what)
{
    const char *bind = getenv("HW_TEST_TALLY_BIND");
    return !is_tried() && bind && strcmp(bind, what) == 0;
}

static int32_t open_here(const struct hw_host *host, void **self)
{
    if (shall("crash"))
        _exit(86);
    if (is_tried() && getenv("HW_TEST_TALLY_TRY"))
        return hw_fail(host, HW_DRIVER, "not yet");
    if (shall("starve"))
        return hw_fail(host, HW_NO_MEMORY, "no room");
    if (shall("fail"))
        return hw_fail(host, HW_DRIVER, "not here");
    return plugin_open(host, self);
}

static int32_t count_here(void *self, int32_t *count)
{
    plugin_count(self, count);
    *count += shall("more") || getenv("HW_TEST_TALLY_TWO");
    return HW_OK;
}

static int32_t info_here(void *self, int32_t index, struct hw_device_info *info)
{
    plugin_info(self, index, info);
    if (shall("other"))
        strcpy(info->name, "another device");
    if (index == 0 && getenv("HW_TEST_TALLY_CARD")) {
        info->pci_domain = info->pci_device = info->pci_function = 0;
        info->pci_bus = 0x3d;
    }
    info->memory_total = 2000;
    info->memory_free = 1000;
    return HW_OK;
}

static void change(struct hw_plugin *table)
{
    table->open = open_here;
    table->device_count = count_here;
    table->device_info = info_here;
}
