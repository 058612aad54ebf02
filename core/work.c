/* SPDX-License-Identifier: MIT */
/* work.c - holds the place of queue.c and pool.c: a context without work has none to close.
 */
#include "core.h"

enum hw_status pool_create(struct hw_device *device, struct pool **pool)
{
    *pool = NULL;
    return fail(HW_UNSUPPORTED, "%s: no pools yet", device->name);
}

void pool_destroy(struct pool *pool)
{
    (void)pool;
}

void close_all_work(struct hw_context *context)
{
    (void)context;
}

void explain_calls(struct json *json, struct hw_context *context)
{
    (void)context;
    json_open(json, "calls", '[');
    json_close(json, ']');
}
