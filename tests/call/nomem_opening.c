/* SPDX-License-Identifier: MIT */
/* nomem_opening.c - opening and closing contexts while memory runs out, with plugins that are tried
 * in hw-probe and plugins that are loaded on first use. */
#include "nomem.h"

#include <stdlib.h>
#include <string.h>

struct scene scene;

static enum hw_status open_with(const char *backends, const char *probe, const char *cache,
                                struct hw_context **context)
{
    const struct hw_options options = { .size = sizeof options,
                                        .backends = backends,
                                        .plugin_path = getenv("HW_TEST_PLUGINS"),
                                        .probe = probe,
                                        .cache_dir = cache,
                                        .threads = "2",
                                        .log = "off" };
    return hw_open(&options, context);
}

void scene_open(void)
{
    ok(open_with("discrete,foreign,cpu", "inproc", "off", &scene.context));
    ok(hw_device_find(scene.context, "discrete:0", &scene.near));
    ok(hw_device_find(scene.context, "foreign:0", &scene.one));
    ok(hw_device_find(scene.context, "cpu:0", &scene.cpu));
    ok(hw_queue_open(scene.near, NULL, &scene.on_near));
    ok(hw_queue_open(scene.one, NULL, &scene.on_one));
    ok(hw_queue_open(scene.cpu, NULL, &scene.on_cpu));
}

void scene_close(void)
{
    hw_close(scene.context);
    memset(&scene, 0, sizeof scene);
}

/* ---- trials ---- */

/* Without memory, a plugin named in the settings may be unusable. Its reason and remedy must then
 * be those of a shortage. */
static enum hw_status as_shortage(enum hw_status status)
{
    return status == HW_NO_DEVICE && strstr(hw_message(), "Free some memory") ? HW_NO_MEMORY
                                                                              : status;
}

static enum hw_status open_here(void)
{
    struct hw_context *context;
    const enum hw_status status = open_with("discrete,cpu", "inproc", "off", &context);
    hw_close(context);
    return as_shortage(status);
}

/* hw_close() releases whatever hw_open() has opened, even if that is almost nothing. */
static enum hw_status open_anyhow(void)
{
    struct hw_context *context;
    const enum hw_status status = open_with("*", "inproc", "off", &context);
    if (!status && !hw_explain(context, NULL, 0))
        return HW_INTERNAL;
    hw_close(context);
    return as_shortage(status);
}

static enum hw_status open_in_a_child(void)
{
    struct hw_context *context;
    const enum hw_status status = open_with("null", "child", "off", &context);
    hw_close(context);
    return as_shortage(status);
}

/* Reads an earlier start's verdict, then loads the plugin on the first use of its device. */
static struct hw_context *known;

static void know(void)
{
    hw_close(known);
    ok(open_with("null", "child", getenv("HW_TEST_CACHE"), &known));
}

static enum hw_status open_known(void)
{
    struct hw_context *context;
    const enum hw_status status = open_with("null", "child", getenv("HW_TEST_CACHE"),
                                            &context);
    hw_close(context);
    return as_shortage(status);
}

static enum hw_status bind_late(void)
{
    struct hw_device *device;
    struct hw_queue *queue;
    enum hw_status status = hw_device_find(known, "null:0", &device);
    if (!status)
        status = hw_queue_open(device, NULL, &queue);
    if (!status)
        hw_queue_close(queue);
    return as_shortage(status);
}

static enum hw_status close_known(void)
{
    hw_close(known);
    known = NULL;
    return HW_OK;
}

const struct trial opening[] = {
    { "hw_open", NULL, open_here, 3 },
    { "hw_open", NULL, open_anyhow, 3 },
    { "hw_open", NULL, open_in_a_child, 9 },
    { "hw_open", know, open_known, 9 },
    { "hw_queue_open", know, bind_late, 3 },
    { "hw_close", know, close_known, 0 },
    { 0 },
};
