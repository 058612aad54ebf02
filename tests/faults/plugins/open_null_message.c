/* SPDX-License-Identifier: MIT */
/* Passes NULL as a message to the host and then continues: it is used. */
#define NAME "open_null_message"
#define CHANGES
#include "minimal.h"

static int32_t bad_open(const struct hw_host *host, void **self)
{
    host->log(host->instance, HW_LOG_DEBUG, NULL);
    host->log(host->instance, -7, "a level that is none");
    host->fail(host->instance, HW_OK, NULL);
    return plugin_open(host, self);
}

static void change(struct hw_plugin *table)
{
    table->open = bad_open;
}
