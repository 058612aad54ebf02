/* SPDX-License-Identifier: MIT */
/* test_kernel.c - user kernels: a kernel gets the arguments that its signature declares, or the
 * launch fails; and memory that a plugin allocates for itself. */
#include "foreign_world.h"

/* ---- user kernels ---- */

static struct hw_user_kernel described(const char *source, const char *signature)
{
    return (struct hw_user_kernel){ .size = sizeof(struct hw_user_kernel),
                                    .group = 64,
                                    .name = "mine",
                                    .signature = signature,
                                    .source = source };
}

static struct hw_kernel *kernel_of(struct hw_device *device, const char *source,
                                   const char *signature)
{
    const struct hw_user_kernel desc = described(source, signature);
    struct hw_kernel *kernel;
    ok(hw_kernel_create(device, &desc, &kernel));
    return kernel;
}

static struct hw_arg in(const struct hw_tensor *t)
{
    return (struct hw_arg){ .kind = HW_ARG_TENSOR, .tensor = t };
}

static struct hw_arg whole(int64_t i)
{
    return (struct hw_arg){ .kind = HW_ARG_INT, .i = i };
}

static struct hw_arg real(double f)
{
    return (struct hw_arg){ .kind = HW_ARG_FLOAT, .f = f };
}

static void kernels_run_in_the_queues_order(void **state)
{
    const float x[4] = { 1, 2, 3, 4 }, zero[4] = { 0 };
    struct hw_kernel *affine, *twice = kernel_of(one, "double", "x");
    struct hw_user_kernel desc = described(NULL, "toif");
    struct hw_tensor packed;
    (void)state;
    desc.blob = "affine"; /* bytes, not a string */
    desc.blob_bytes = strlen("affine");
    ok(hw_kernel_create(one, &desc, &affine));
    struct hw_tensor a = vector(queue, x), y = vector(queue, zero);
    struct hw_arg args[] = { in(&a), in(&y), whole(10), real(0.5) };
    ok(hw_kernel_launch(queue, affine, 1, args, 4));
    ok(hw_kernel_launch(queue, twice, 1, &args[1], 1));
    ok(hw_add(queue, &(struct hw_add){ .a = a, .b = y, .y = y }));
    holds(queue, &y, 22, 24, 26, 28);
    /* Packed weights are an input like any other. */
    ok(hw_tensor_pack(queue, &a, &packed));
    args[0] = in(&packed);
    ok(hw_kernel_launch(queue, affine, 1, args, 4));
    holds(queue, &y, 10.5f, 11, 11.5f, 12);
}

static struct hw_tensor numbers(struct hw_device *device, int64_t count)
{
    struct hw_tensor t;
    ok(hw_tensor_alloc(device, HW_BUFFER_ZEROED, HW_F32, 1, &count, &t));
    return t;
}

static void are(const struct hw_tensor *t, const float expected[6])
{
    float got[6];
    ok(hw_tensor_read(queue, t, got, sizeof got));
    ok(hw_queue_wait(queue));
    assert_memory_equal(got, expected, sizeof got);
}

/* Also for a caller whose struct ends before the further dimensions. */
static void kernels_have_three_dimensions(void **state)
{
    struct hw_user_kernel desc = described("extent", "o");
    struct hw_kernel *cube, *line;
    struct hw_tensor y = numbers(one, 6);
    const struct hw_arg arg = in(&y);
    (void)state;
    desc.group_y = 4;
    desc.group_z = 2;
    ok(hw_kernel_create(one, &desc, &cube));
    desc.size = offsetof(struct hw_user_kernel, group_y);
    ok(hw_kernel_create(one, &desc, &line));
    ok(hw_kernel_launch_3d(queue, cube, (const uint64_t[]){ 3, 5, 7 }, &arg, 1));
    are(&y, (const float[]){ 3, 5, 7, 64, 4, 2 });
    ok(hw_kernel_launch_3d(queue, cube, (const uint64_t[]){ 3, 0, 7 }, &arg, 1));
    ok(hw_kernel_launch(queue, cube, 0, &arg, 1));
    are(&y, (const float[]){ 3, 5, 7, 64, 4, 2 });
    ok(hw_kernel_launch(queue, line, 9, &arg, 1));
    are(&y, (const float[]){ 9, 1, 1, 64, 0, 0 });
    fails(HW_INVALID, "groups must not be NULL",
          hw_kernel_launch_3d(queue, cube, NULL, &arg, 1));
    fails(HW_INVALID, "0 arguments",
          hw_kernel_launch_3d(queue, cube, (const uint64_t[]){ 0, 0, 0 }, NULL, 0));
}

static int32_t not_there(void *q, void *kernel, const uint64_t groups[3],
                         const struct hw_arg *args, uint32_t count)
{
    (void)q, (void)kernel, (void)groups, (void)args, (void)count;
    return (int32_t)(fail)(HW_UNSUPPORTED, "called");
}

/* A plugin without the slot still gets launches in one dimension. */
static void one_dimension_needs_no_more(void **state)
{
    struct hw_kernel *kernel = kernel_of(one, "extent", "o");
    struct hw_tensor y = numbers(one, 6);
    const struct hw_arg arg = in(&y);
    (void)state;
    one->plugin->table.kernel_launch_3d = not_there;
    ok(hw_kernel_launch_3d(queue, kernel, (const uint64_t[]){ 3, 1, 1 }, &arg, 1));
    are(&y, (const float[]){ 3, 1, 1, 64, 0, 0 });
    fails(HW_UNSUPPORTED, "mine on foreign:0",
          hw_kernel_launch_3d(queue, kernel, (const uint64_t[]){ 3, 1, 2 }, &arg, 1));
}

/* The launch is rejected with the kernel's name and the argument's number, and nothing is
 * queued. */
static void arguments_must_match_the_signature(void **state)
{
    const float x[4] = { 1, 2, 3, 4 }, zero[4] = { 0 };
    struct hw_kernel *affine = kernel_of(one, "affine", "toif");
    struct hw_tensor a = vector(queue, x), y = vector(queue, zero),
                     other = vector(on_two, x), host = host_f32(x, (int64_t)4, END);
    const struct hw_arg good[] = { in(&a), in(&y), whole(10), real(0.5), whole(0) };
    (void)state;
    fails(HW_INVALID, "mine: 3 arguments; its signature \"toif\" has 4",
          hw_kernel_launch(queue, affine, 1, good, 3));
    fails(HW_INVALID, "mine: 5 arguments", hw_kernel_launch(queue, affine, 1, good, 5));
    fails(HW_INVALID, "mine: 0 arguments", hw_kernel_launch(queue, affine, 1, good, 0));
    fails(HW_INVALID, "args must not be NULL", hw_kernel_launch(queue, affine, 1, NULL, 4));
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t kind = 0; kind <= 4; kind++) {
            struct hw_arg args[4];
            char words[32];
            memcpy(args, good, sizeof args);
            if (args[i].kind == kind)
                continue;
            args[i].kind = kind;
            snprintf(words, sizeof words, "argument %u has kind %u", i, kind);
            fails(HW_INVALID, words, hw_kernel_launch(queue, affine, 1, args, 4));
        }
    struct hw_tensor outside = a, strided = a, folded = y;
    outside.extent[0] = 5;
    strided.extent[0] = 2;
    strided.stride[0] = 8;
    folded.stride[0] = 0;
    const struct {
        uint32_t index;
        const struct hw_tensor *tensor;
        enum hw_status status;
        const char *words;
    } rows[] = {
        { 0, NULL, HW_INVALID, "argument 0: tensor is NULL" },
        { 1, NULL, HW_INVALID, "argument 1: tensor is NULL" },
        { 0, &other, HW_INVALID, "foreign:1, but the queue is on foreign:0" },
        { 1, &other, HW_INVALID, "argument 1 (f32 [4]): it is in a buffer of foreign:1" },
        { 0, &host, HW_UNSUPPORTED, "argument 0 is a host tensor" },
        { 0, &outside, HW_INVALID, "argument 0 (f32 [5]): 20 bytes" },
        { 0, &strided, HW_UNSUPPORTED, "argument 0: its innermost axis" },
        { 1, &folded, HW_INVALID, "argument 1 (f32 [4]): it is an output" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hw_arg args[4];
        memcpy(args, good, sizeof args);
        args[rows[i].index].tensor = rows[i].tensor;
        fails(rows[i].status, rows[i].words, hw_kernel_launch(queue, affine, 1, args, 4));
        assert_non_null(strstr(hw_message(), "mine: "));
    }
    holds(queue, &y, 0, 0, 0, 0);
    ok(hw_kernel_launch(queue, affine, 1, good, 4));
    holds(queue, &y, 10.5f, 11, 11.5f, 12);
}

/* Only copies may write to weights, and only their device knows the layout of packed
 * tensors. */
static void weights_are_not_written(void **state)
{
    const float x[4] = { 1, 2, 3, 4 };
    const int64_t four = 4;
    struct hw_kernel *affine = kernel_of(one, "affine", "toif"),
                     *twice = kernel_of(one, "double", "x");
    struct hw_tensor a = vector(queue, x), y = vector(queue, x), fixed, packed;
    struct hw_arg args[] = { in(&fixed), in(&y), whole(0), real(1.0) };
    (void)state;
    ok(hw_tensor_alloc(one, HW_BUFFER_READ_ONLY, HW_F32, 1, &four, &fixed));
    ok(copy_between(queue, &fixed, &a));
    ok(hw_kernel_launch(queue, affine, 1, args, 4));
    fails(HW_INVALID, "argument 0 (f32 [4]): it is an output, but its buffer is read-only",
          hw_kernel_launch(queue, twice, 1, args, 1));
    args[1] = in(&fixed);
    fails(HW_INVALID, "argument 1 (f32 [4]): it is an output, but its buffer is read-only",
          hw_kernel_launch(queue, affine, 1, args, 4));
    holds(queue, &fixed, 1, 2, 3, 4);
    /* A packed tensor must be passed unchanged, and only as an input. */
    ok(hw_tensor_pack(queue, &a, &packed));
    args[0] = in(&packed);
    fails(HW_INVALID, "it is packed", hw_kernel_launch(queue, twice, 1, args, 1));
    args[1] = in(&y);
    packed.extent[0] = 1 << 20;
    fails(HW_INVALID, "it is packed", hw_kernel_launch(queue, affine, 1, args, 4));
    packed = a;
    packed.layout = 1;
    fails(HW_INVALID, "it is packed", hw_kernel_launch(queue, affine, 1, args, 4));
    packed.buffer = NULL;
    packed.data = &packed;
    fails(HW_INVALID, "it is packed", hw_kernel_launch(queue, affine, 1, args, 4));
    holds(queue, &y, 1, 2, 3, 4);
}

/* Work queued before the error still writes to the memory, which must not be reused until
 * that work has completed. */
static void packing_that_fails_keeps_its_memory(void **state)
{
    const float x[4] = { 1, 2, 3, 4 }, zero[4] = { 0 };
    struct hw_tensor a = vector(queue, x), three, packed, others[4];
    struct hw_queue *second;
    (void)state;
    ok(hw_queue_open(one, NULL, &second));
    ok(hw_tensor_slice(&three, &a, 0, 0, 3));
    fails(HW_DRIVER, "hw_tensor_pack on foreign:0: the second step failed",
          hw_tensor_pack(queue, &three, &packed));
    assert_null(packed.buffer);
    for (int i = 0; i < 4; i++)
        others[i] = vector(second, zero);
    ok(hw_queue_wait(queue));
    for (int i = 0; i < 4; i++)
        holds(second, &others[i], 0, 0, 0, 0);
}

static void descriptions_are_checked(void **state)
{
    struct hw_user_kernel desc = described("affine", "toif");
    struct hw_kernel *kernel = NULL;
    (void)state;
#define REFUSED(field, value, status, words)                                               \
    do {                                                                                   \
        desc = described("affine", "toif");                                                \
        desc.field = value;                                                                \
        kernel = (struct hw_kernel *)&desc;                                                \
        fails(status, words, hw_kernel_create(one, &desc, &kernel));                       \
        assert_null(kernel);                                                               \
    } while (0)
    REFUSED(size, 0, HW_INVALID, "size is 0");
    REFUSED(size, sizeof desc - 16, HW_INVALID, "size");
    REFUSED(name, NULL, HW_INVALID, "name");
    REFUSED(signature, NULL, HW_INVALID, "signature");
    REFUSED(group, 0, HW_INVALID, "group");
    REFUSED(source, NULL, HW_INVALID, "source or blob");
    REFUSED(blob, "affine", HW_INVALID, "source or blob");
    REFUSED(signature, "tofz", HW_INVALID, "\"tofz\"");
    REFUSED(signature, "iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii",
            HW_INVALID, "has 65 letters, must have at most 64");
    desc.source = NULL;
    desc.blob = "affine"; /* but the size is zero */
    desc.signature = "toif";
    fails(HW_INVALID, "blob_bytes", hw_kernel_create(one, &desc, &kernel));
    /* Errors that only the plugin can detect are reported with its message. */
    REFUSED(signature, "to", HW_INVALID, "kernel mine on foreign:0: affine takes \"toif\"");
    REFUSED(source, "none", HW_DRIVER, "kernel mine on foreign:0: line 1");
    desc = described("affine", "toif");
    fails(HW_UNSUPPORTED, "cpu:0", hw_kernel_create(cpu, &desc, &kernel));
    fails(HW_INVALID, "device", hw_kernel_create(NULL, &desc, &kernel));
    fails(HW_INVALID, "desc", hw_kernel_create(one, NULL, &kernel));
    fails(HW_INVALID, "kernel", hw_kernel_create(one, &desc, NULL));
    assert_int_equal(times("destroyed"), 0);
}

static void invalid_launches_are_rejected(void **state)
{
    struct hw_kernel *kernel = kernel_of(one, "refuse", ""),
                     *other = kernel_of(two, "refuse", "");
    struct hw_graph *graph;
    struct hw_graph_info info = { .size = sizeof info };
    const float x[4] = { 1, 2, 3, 4 };
    (void)state;
    struct hw_tensor a = vector(queue, x);
    fails(HW_DRIVER, "mine on foreign:0: the driver launches no such thing",
          hw_kernel_launch(queue, kernel, 1, NULL, 0));
    fails(HW_INVALID, "the kernel belongs to foreign:1, the queue to foreign:0",
          hw_kernel_launch(queue, other, 1, NULL, 0));
    fails(HW_INVALID, "the kernel belongs to foreign:0, the queue to cpu:0",
          hw_kernel_launch(on_cpu, kernel, 1, NULL, 0));
    fails(HW_INVALID, "kernel must not be NULL", hw_kernel_launch(queue, NULL, 1, NULL, 0));
    fails(HW_INVALID, "queue must not be NULL", hw_kernel_launch(NULL, kernel, 1, NULL, 0));
    /* A queue that records rejects a launch and continues recording. */
    ok(hw_queue_record(queue));
    ok(hw_add(queue, &(struct hw_add){ .a = a, .b = a, .y = a }));
    fails(HW_UNSUPPORTED, "cannot be recorded",
          hw_kernel_launch(queue, kernel, 1, NULL, 0));
    ok(hw_queue_end(queue, &graph));
    ok(hw_graph_info(graph, &info));
    assert_int_equal(info.nodes, 1);
    ok(hw_graph_launch(graph, queue));
    holds(queue, &a, 2, 4, 6, 8);
}

static void kernels_are_freed_before_and_after_their_queue(void **state)
{
    const float x[4] = { 1, 2, 3, 4 };
    struct hw_kernel *before = kernel_of(one, "double", "x"),
                     *after = kernel_of(one, "double", "x");
    struct hw_queue *second;
    (void)state;
    kernel_of(two, "lose", ""); /* the context frees it */
    struct hw_tensor a = vector(queue, x);
    const struct hw_arg arg = in(&a);
    ok(hw_queue_open(one, NULL, &second));
    ok(hw_kernel_launch(second, before, 1, &arg, 1));
    ok(hw_queue_wait(second));
    hw_kernel_free(before);
    assert_int_equal(times("destroyed double"), 1);
    ok(hw_kernel_launch(second, after, 1, &arg, 1));
    hw_queue_close(second);
    holds(queue, &a, 4, 8, 12, 16);
    ok(hw_kernel_launch(queue, after, 1, &arg,
                        1)); /* the kernel belongs to the device, not to the queue */
    holds(queue, &a, 8, 16, 24, 32);
    hw_kernel_free(after);
    hw_kernel_free(NULL);
    assert_int_equal(times("destroyed double"), 2);
    assert_int_equal(times("destroyed lose"), 0);
    hw_close(context);
    assert_int_equal(times("destroyed lose"), 1);
    open_all(NULL);
}

static void lost_devices_reject_all_calls(void **state)
{
    float cells[4] = { 0 };
    struct foreign_queue their_queue = { 0 };
    struct foreign_memory their_memory = { sizeof cells, (unsigned char *)cells };
    struct hw_kernel *lose = kernel_of(one, "lose", ""), *kernel;
    struct hw_kernel *there = kernel_of(two, "double", "x");
    struct hw_queue *imported, *none;
    struct hw_buffer *buffer;
    const struct hw_user_kernel desc = described("double", "x");
    const float x[4] = { 1, 2, 3, 4 };
    (void)state;
    ok(hw_queue_import(one, NULL, FOREIGN_QUEUE, &their_queue, &imported));
    ok(hw_kernel_launch(imported, lose, 1, NULL, 0));
    fails(HW_LOST, "foreign:0", hw_queue_wait(imported));
    /* The library returns this without calling the plugin. */
    fails(HW_LOST, "device foreign:0 is lost",
          hw_kernel_launch(imported, lose, 1, NULL, 0));
    fails(HW_LOST, "device foreign:0 is lost", hw_kernel_launch(queue, lose, 1, NULL, 0));
    fails(HW_LOST, "device foreign:0 is lost", hw_kernel_create(one, &desc, &kernel));
    assert_null(kernel);
    fails(HW_LOST, "device foreign:0 is lost",
          hw_queue_import(one, NULL, FOREIGN_QUEUE, &their_queue, &none));
    assert_null(none);
    fails(HW_LOST, "device foreign:0 is lost",
          import(one, FOREIGN_MEMORY, &their_memory, 16, &buffer));
    assert_null(buffer);
    /* Closing works, and so does the other device. */
    hw_kernel_free(lose);
    assert_int_equal(times("destroyed lose"), 1);
    hw_queue_close(imported);
    assert_false(their_queue.closed);
    struct hw_tensor a = vector(on_two, x);
    const struct hw_arg arg = in(&a);
    ok(hw_kernel_launch(on_two, there, 1, &arg, 1));
    holds(on_two, &a, 2, 4, 6, 8);
}

/* ---- memory that a plugin allocates for itself ---- */

static void the_plugins_own_memory_is_counted(void **state)
{
    struct hw_pool_stats before = { .size = sizeof before }, after = before;
    struct hw_kernel *reserve = kernel_of(one, "reserve", "i");
    struct hw_arg bytes = whole(1 << 20);
    (void)state;
    ok(hw_pool_stats(one, &before));
    ok(hw_kernel_launch(queue, reserve, 1, &bytes, 1));
    ok(hw_pool_stats(one, &after));
    assert_int_equal(after.held, before.held + (1 << 20));
    assert_int_equal(after.used, before.used + (1 << 20));
    bytes = whole(-(1 << 20));
    ok(hw_kernel_launch(queue, reserve, 1, &bytes, 1));
    ok(hw_pool_stats(one, &after));
    assert_int_equal(after.held, before.held);
    assert_int_equal(after.used, before.used);
    assert_true(after.peak >= before.used + (1 << 20));
}

static void the_plugins_own_memory_is_limited(void **state)
{
    struct hw_options options = { .size = sizeof options,
                                  .backends = "foreign,cpu",
                                  .plugin_path = getenv("HW_TEST_PLUGINS"),
                                  .memory_limit = "8M" };
    struct hw_arg bytes = whole(6 << 20);
    struct hw_buffer *buffer;
    (void)state;
    hw_close(context);
    ok(hw_open(&options, &context));
    ok(hw_device_find(context, "foreign:0", &one));
    ok(hw_queue_open(one, NULL, &queue));
    struct hw_kernel *reserve = kernel_of(one, "reserve", "i");
    /* Idle memory of the pool makes room for it. */
    ok(hw_buffer_alloc(one, 4 << 20, 0, &buffer));
    fails(HW_NO_MEMORY, "mine on foreign:0: 6 MiB requested; the limit is 8 MiB, of",
          hw_kernel_launch(queue, reserve, 1, &bytes, 1));
    hw_buffer_free(buffer);
    ok(hw_kernel_launch(queue, reserve, 1, &bytes, 1));
    fails(HW_NO_MEMORY, "of which 6 MiB", hw_buffer_alloc(one, 4 << 20, 0, &buffer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_plugins_own_memory_is_counted),
        TEST(the_plugins_own_memory_is_limited),
        TEST(kernels_run_in_the_queues_order),
        TEST(kernels_have_three_dimensions),
        TEST(one_dimension_needs_no_more),
        TEST(arguments_must_match_the_signature),
        TEST(weights_are_not_written),
        TEST(packing_that_fails_keeps_its_memory),
        TEST(descriptions_are_checked),
        TEST(invalid_launches_are_rejected),
        TEST(kernels_are_freed_before_and_after_their_queue),
        TEST(lost_devices_reject_all_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
