/* SPDX-License-Identifier: MIT */
/* foreign_world.c - see foreign_world.h. */
#include "foreign_world.h"

struct hw_context *context;
struct hw_device *one, *two, *cpu;
struct hw_queue *queue, *on_two, *on_cpu;
static char said[1 << 16]; /* the whole log */

static void keep(void *user, int32_t level, const char *text)
{
    const size_t used = strlen(said), bytes = strlen(text);
    (void)user, (void)level;
    if (used + bytes + 2 > sizeof said)
        return;
    memcpy(said + used, text, bytes);
    strcpy(said + used + bytes, "\n");
}

int times(const char *words)
{
    int n = 0;
    for (const char *at = said; (at = strstr(at, words)); at++)
        n++;
    return n;
}

int open_all(void **state)
{
    const struct hw_options options = { .size = sizeof options,
                                        .backends = "foreign,cpu",
                                        .plugin_path = getenv("HW_TEST_PLUGINS"),
                                        .threads = "1",
                                        .log = "debug",
                                        .log_fn = keep };
    (void)state;
    said[0] = '\0';
    ok(hw_open(&options, &context));
    ok(hw_device_find(context, "foreign:0", &one));
    ok(hw_device_find(context, "foreign:1", &two));
    ok(hw_device_find(context, "cpu", &cpu));
    ok(hw_queue_open(one, NULL, &queue));
    ok(hw_queue_open(two, NULL, &on_two));
    ok(hw_queue_open(cpu, NULL, &on_cpu));
    return 0;
}

int close_all(void **state)
{
    (void)state;
    hw_close(context);
    context = NULL;
    return 0;
}

struct hw_tensor vector(struct hw_queue *on, const float values[4])
{
    struct hw_tensor t = put(on, values, 1, 4);
    const int64_t four = 4;
    ok(hw_tensor_reshape(&t, &t, 1, &four));
    return t;
}

void holds(struct hw_queue *on, const struct hw_tensor *t, float a, float b, float c,
           float d)
{
    const float expected[4] = { a, b, c, d };
    float got[4];
    get(on, t, got);
    assert_memory_equal(got, expected, sizeof got);
}

enum hw_status import(struct hw_device *device, const char *kind, void *handle,
                      uint64_t bytes, struct hw_buffer **buffer)
{
    const struct hw_import desc = {
        .size = sizeof desc, .kind = kind, .handle = handle, .bytes = bytes
    };
    return hw_buffer_import(device, &desc, buffer);
}
