/* SPDX-License-Identifier: MIT */
/* picky.c - a plugin that leaves out some of the devices that it finds, or all of them if PICKY is
 * set. */
#define NAME  "picky"
#define LINES "variable=PICKY\nremedy=get a better device\n"
#define CHANGES
#include "minimal.h"

static int32_t choose(const struct hw_host *host, void **self)
{
    hw_leave_out(host, "Old device", "it is older than this plugin");
    hw_leave_out(host, "Broken\ndevice", "it is broken");
    hw_leave_out(host, NULL, NULL);
    return getenv("PICKY") ? hw_fail(host, HW_NO_DEVICE, "no device is good enough")
                           : plugin_open(host, self);
}

static void change(struct hw_plugin *table)
{
    table->open = choose;
}
