/* SPDX-License-Identifier: MIT */
/* test_versions.c - library, plugin and application of different ages. tests/fixtures/older.c has
 * fewer ops, shorter structs and fewer slots than the library: an op or field that it does not know
 * goes to another device or is rejected by name, and is never ignored. tests/fixtures/newer.c has
 * more of them: it finds zeros in the fields that the library does not know. The applications here
 * pass structs that are shorter or longer than the library's. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "call/ops.h"
#include "world.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes followed by an unreadable page: reading past their end crashes. */
static unsigned char *edge;

static int make_edge(void **state)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE))
        return -1;
    edge = pages + page;
    return 0;
}

static const void *at_the_edge(const void *args, size_t size)
{
    return memcpy(edge - size, args, size);
}

struct pair {
    struct hw_context *context;
    struct hw_device *older, *cpu;
    struct hw_queue *queue, *on_cpu; /* queue: on the older plugin */
};

static void open_pair(struct pair *p, const char *fallback)
{
    const struct hw_options options = { .size = sizeof options,
                                        .backends = "older,cpu",
                                        .fallback = fallback,
                                        .plugin_path = getenv("HW_TEST_PLUGINS"),
                                        .threads = "1",
                                        .log = "off" };
    ok(hw_open(&options, &p->context));
    ok(hw_device_find(p->context, "older", &p->older));
    ok(hw_device_find(p->context, "cpu", &p->cpu));
    ok(hw_queue_open(p->older, NULL, &p->queue));
    ok(hw_queue_open(p->cpu, NULL, &p->on_cpu));
}

static int open_allowed(void **state)
{
    static struct pair p;
    open_pair(&p, "allow");
    *state = &p;
    return 0;
}

static int open_forbidden(void **state)
{
    static struct pair p;
    open_pair(&p, "error");
    *state = &p;
    return 0;
}

static int close_pair(void **state)
{
    hw_close(((struct pair *)*state)->context);
    return 0;
}

static void equal(const float *got, const float *expected, int n)
{
    for (int i = 0; i < n; i++)
        assert_true(fabsf(got[i] - expected[i]) <= 1e-5f * (1.0f + fabsf(expected[i])));
}

/* Checks the calls of an op so far, and how many of them another device computed. */
static void counted(const struct pair *p, uint32_t op, uint64_t all, uint64_t elsewhere)
{
    const struct hw_call_stats stats = calls(p->queue, op);
    assert_int_equal(stats.calls, all);
    assert_int_equal(stats.fallbacks, elsewhere);
}

/* The exponentials are 1, 2, 5 and so on, so the results of softmax are rational. */
#define LOGS                                                                               \
    {                                                                                      \
        0.0f, 0.6931472f, 1.609438f, 0.0f                                                  \
    }

/* ---- an older plugin ---- */

static void known_ops_work_if_newer_fields_are_zero(void **state)
{
    struct pair *p = *state;
    float x[4] = LOGS, y[4], a[4] = { 1, 2, 3, 4 }, b[4] = { 5, 6, 7, 8 }, c[4];
    const float shares[4] = { 1.0f / 9, 2.0f / 9, 5.0f / 9, 1.0f / 9 };
    const float product[4] = { 19, 22, 43, 50 };
    const struct hw_softmax softmax = { .x = host_f32(x, (int64_t)4, END),
                                        .y = host_f32(y, (int64_t)4, END) };
    const struct hw_matmul matmul = { .a = hw_host_2d(a, HW_F32, 2, 2),
                                      .b = hw_host_2d(b, HW_F32, 2, 2),
                                      .c = hw_host_2d(c, HW_F32, 2, 2) };
    ok(hw_device_supports(p->older, HW_OP_SOFTMAX, &softmax, sizeof softmax));
    ok(hw_device_supports(p->older, HW_OP_MATMUL, &matmul, sizeof matmul));
    ok(hw_softmax(p->queue, &softmax));
    ok(hw_matmul(p->queue, &matmul));
    ok(hw_queue_wait(p->queue));
    equal(y, shares, 4);
    equal(c, product, 4);
    counted(p, HW_OP_SOFTMAX, 1, 0);
    counted(p, HW_OP_MATMUL, 1, 0);
}

static void a_newer_field_is_rejected_by_name(void **state)
{
    struct pair *p = *state;
    float x[4] = LOGS, y[4] = { 7, 7, 7, 7 };
    const float untouched[4] = { 7, 7, 7, 7 };
    struct hw_softmax op = { .x = host_f32(x, (int64_t)4, END),
                             .y = host_f32(y, (int64_t)4, END),
                             .scale = 2.0f };
    fails(HW_UNSUPPORTED, "560 bytes of the struct of softmax", hw_softmax(p->queue, &op));
    assert_non_null(strstr(hw_message(), "plugin older 0.9"));
    assert_non_null(strstr(hw_message(), "HW_FALLBACK=error"));
    fails(HW_UNSUPPORTED, "560 bytes of the struct of softmax",
          hw_device_supports(p->older, HW_OP_SOFTMAX, &op, sizeof op));
    op.scale = 0.0f;
    op.log = 1; /* the last one */
    fails(HW_UNSUPPORTED, "560 bytes of the struct of softmax", hw_softmax(p->queue, &op));
    ok(hw_queue_wait(p->queue));
    equal(y, untouched, 4);
    counted(p, HW_OP_SOFTMAX, 0, 0);
}

static void another_device_knows_the_newer_field(void **state)
{
    struct pair *p = *state;
    float x[4] = LOGS, y[4];
    const float squared[4] = { 1.0f / 31, 4.0f / 31, 25.0f / 31, 1.0f / 31 };
    const struct hw_softmax op = { .x = host_f32(x, (int64_t)4, END),
                                   .y = host_f32(y, (int64_t)4, END),
                                   .scale = 2.0f };
    ok(hw_softmax(p->queue, &op));
    ok(hw_queue_wait(p->queue));
    equal(y, squared, 4);
    counted(p, HW_OP_SOFTMAX, 1, 1);
}

/* The library describes a transposed view by a flag if the plugin knows the flag. */
static void views_use_only_flags_that_it_knows(void **state)
{
    struct pair *p = *state;
    float a[4] = { 1, 2, 3, 4 }, b[4] = { 5, 7, 6, 8 }, c[4]; /* b is stored transposed */
    const float product[4] = { 19, 22, 43, 50 };
    struct hw_matmul op = { .a = hw_host_2d(a, HW_F32, 2, 2),
                            .b = hw_host_2d(b, HW_F32, 2, 2),
                            .c = hw_host_2d(c, HW_F32, 2, 2),
                            .transpose_b = 1 };
    ok(hw_matmul(p->queue, &op));
    ok(hw_queue_wait(p->queue));
    equal(c, product, 4);
    counted(p, HW_OP_MATMUL, 1, 1);
    /* The same transpose as a view: the plugin has no copy op, so the view cannot be made
     * contiguous there. */
    memset(c, 0, sizeof c);
    op.transpose_b = 0;
    ok(hw_tensor_transpose(&op.b, &op.b, 0, 1));
    fails(HW_UNSUPPORTED, "b is a view, which must be copied: copy is newer than",
          hw_device_supports(p->older, HW_OP_MATMUL, &op, sizeof op));
    ok(hw_matmul(p->queue, &op));
    ok(hw_queue_wait(p->queue));
    equal(c, product, 4);
    counted(p, HW_OP_MATMUL, 2, 2);
    /* Flag and view cancel out: b is used as it is stored, without a flag. */
    const float straight[4] = { 17, 23, 39, 53 };
    op.transpose_b = 1;
    ok(hw_matmul(p->queue, &op));
    ok(hw_queue_wait(p->queue));
    equal(c, straight, 4);
    counted(p, HW_OP_MATMUL, 3, 2);
}

static void ops_past_its_last_fall_back(void **state)
{
    struct pair *p = *state;
    float x[4] = { 1, 2, 3, 4 }, y[4];
    const float doubled[4] = { 2, 4, 6, 8 };
    int32_t index = -1;
    const struct hw_tensor a = host_f32(x, (int64_t)4, END);
    ok(hw_add(p->queue,
              &(struct hw_add){ .a = a, .b = a, .y = host_f32(y, (int64_t)4, END) }));
    ok(hw_argmax(p->queue,
                 &(struct hw_argmax){ .x = a, .y = hw_host_1d(&index, HW_I32, 1) }));
    ok(hw_queue_wait(p->queue));
    equal(y, doubled, 4);
    assert_int_equal(index, 3);
    counted(p, HW_OP_ADD, 1, 1);
    counted(p, HW_OP_ARGMAX, 1, 1);
    /* Empty slots: one within its op table, one past the end of it. */
    const struct hw_rmsnorm norm = { .x = a, .y = a, .eps = 1e-5f };
    const struct hw_tensor heads = host_f32(x, (int64_t)1, (int64_t)1, (int64_t)4, END);
    const struct hw_rope rope = { .x = heads, .y = heads };
    fails(HW_UNSUPPORTED, "has no rmsnorm",
          hw_device_supports(p->older, HW_OP_RMSNORM, &norm, sizeof norm));
    fails(HW_UNSUPPORTED, "has no rope",
          hw_device_supports(p->older, HW_OP_ROPE, &rope, sizeof rope));
    ok(hw_rmsnorm(p->queue, &norm));
    ok(hw_rope(p->queue, &rope));
    counted(p, HW_OP_ROPE, 1, 1);
    counted(p, HW_OP_RMSNORM, 1, 1);
}

static void ops_past_its_last_are_rejected_by_name(void **state)
{
    struct pair *p = *state;
    float x[4] = { 1, 2, 3, 4 };
    const struct hw_tensor a = host_f32(x, (int64_t)4, END);
    const struct hw_add op = { .a = a, .b = a, .y = a };
    struct hw_kernel_info info = { .size = sizeof info };
    fails(HW_UNSUPPORTED, "add is newer than plugin older 0.9", hw_add(p->queue, &op));
    fails(HW_UNSUPPORTED, "add is newer than plugin older 0.9",
          hw_device_supports(p->older, HW_OP_ADD, &op, sizeof op));
    counted(p, HW_OP_ADD, 0, 0);
    /* The plugin is not asked for the rows of an op that it does not know. */
    ok(hw_device_kernel(p->older, HW_OP_SILU, 0, &info));
    assert_int_equal(hw_device_kernel(p->older, HW_OP_SILU, 1, &info), HW_END);
    assert_int_equal(hw_device_kernel(p->older, HW_OP_ADD, 0, &info), HW_END);
    assert_int_equal(hw_device_kernel(p->older, HW_OP_ARGMAX, 0, &info), HW_END);
    assert_non_null(strstr(
        hw_message(), "add is newer than")); /* the end of the table is not a failure */
}

/* Memory past the end of its table is not a function pointer. */
static void slots_past_its_table_are_unsupported(void **state)
{
    struct pair *p = *state;
    float x[4] = { 1, 2, 3, 4 };
    const struct hw_tensor a = host_f32(x, (int64_t)4, END);
    const struct hw_user_kernel desc = {
        .size = sizeof desc, .group = 1, .name = "k", .signature = "t", .source = "k"
    };
    const struct hw_import import = {
        .size = sizeof import, .kind = "host", .handle = x, .bytes = sizeof x
    };
    struct hw_tensor packed;
    struct hw_buffer *buffer;
    struct hw_queue *queue;
    struct hw_kernel *kernel;
    fails(HW_UNSUPPORTED, "has no layout", hw_tensor_pack(p->queue, &a, &packed));
    fails(HW_UNSUPPORTED, "has no import of foreign memory",
          hw_buffer_import(p->older, &import, &buffer));
    fails(HW_UNSUPPORTED, "has no import of foreign queues",
          hw_queue_import(p->older, NULL, "older.queue", x, &queue));
    fails(HW_UNSUPPORTED, "no extension op",
          hw_extension_call(p->queue, "older.op", NULL, 0));
    fails(HW_UNSUPPORTED, "has no user kernels",
          hw_kernel_create(p->older, &desc, &kernel));
}

/* A graph built by the plugin contains only nodes whose structs it knows completely. */
static void its_graphs_exclude_newer_structs(void **state)
{
    struct pair *p = *state;
    struct hw_graph *graph;
    struct hw_graph_info info = { .size = sizeof info };
    float x[4] = LOGS, y[4], z[4];
    const struct hw_tensor a = host_f32(x, (int64_t)4, END),
                           b = host_f32(y, (int64_t)4, END),
                           c = host_f32(z, (int64_t)4, END);
    ok(hw_queue_record(p->queue));
    ok(hw_silu(p->queue, &(struct hw_silu){ .x = a, .y = b }));
    ok(hw_softmax(p->queue, &(struct hw_softmax){ .x = a, .y = c }));
    ok(hw_softmax(p->queue, &(struct hw_softmax){ .x = a, .y = c, .scale = 2.0f }));
    ok(hw_add(p->queue, &(struct hw_add){ .a = c, .b = c, .y = c }));
    ok(hw_queue_end(p->queue, &graph));
    ok(hw_graph_info(graph, &info));
    assert_int_equal(info.nodes, 4);
    assert_int_equal(info.segments, 2);
    assert_int_equal(info.built, 1);
    ok(hw_graph_launch(graph, p->queue));
    ok(hw_queue_wait(p->queue));
    const float doubled[4] = { 2.0f / 31, 8.0f / 31, 50.0f / 31, 2.0f / 31 };
    equal(z, doubled, 4);
    counted(p, HW_OP_SILU, 1, 0);
    counted(p, HW_OP_SOFTMAX, 2, 1);
    counted(p, HW_OP_ADD, 1, 1);
}

/* ---- a host that is older than its plugins and has shorter structs ---- */

static void no_log(void *instance, int32_t level, const char *text)
{
    (void)instance, (void)level, (void)text;
}

static int32_t no_words(void *instance, int32_t status, const char *text)
{
    (void)instance, (void)text;
    return status;
}

/* Loads the plugin's table as the library does; returns false if there is no such file. */
static bool load(const char *name, const struct hw_host *host, struct hw_plugin *plugin)
{
    typedef int32_t entry_fn(const struct hw_host *host, struct hw_plugin *table);
    char path[4096];
    for (const char *at = getenv("HW_TEST_PLUGINS"); at; at = strchr(at, ':')) {
        at += *at == ':';
        snprintf(path, sizeof path, "%.*s/hw_%s.so", (int)strcspn(at, ":"), at, name);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            continue;
        entry_fn *entry;
        *(void **)&entry = dlsym(library, "hw_plugin_entry");
        memset(plugin, 0, sizeof *plugin);
        plugin->size = sizeof *plugin;
        assert_non_null(entry);
        assert_int_equal(entry(host, plugin), HW_OK);
        return true;
    }
    return false;
}

#define UNTOUCHED 0xa5

/* Prepares a struct of `size` bytes. The bytes past it must stay unchanged. */
static void *room(void *of, size_t whole, uint32_t size)
{
    memset(of, UNTOUCHED, whole);
    return memcpy(of, &size, sizeof size);
}

static void ends_at(const void *of, size_t whole, uint32_t size)
{
    uint32_t still;
    assert_int_equal(*(const uint32_t *)memcpy(&still, of, sizeof still), size);
    for (size_t i = size; i < whole; i++)
        assert_int_equal(((const unsigned char *)of)[i], UNTOUCHED);
}

static void plugins_respect_the_size_of_host_structs(void **state)
{
    static const char *const names[] = { "cpu",  "discrete", "foreign",
                                         "null", "newer",    "older" };
    const struct hw_host host = { .size = sizeof host,
                                  .abi_min = HW_ABI_OLDEST,
                                  .abi_max = HW_ABI_VERSION,
                                  .log = no_log,
                                  .fail = no_words,
                                  .cache_dir = "",
                                  .kernel = "",
                                  .threads = 1,
                                  .abi = HW_ABI_VERSION };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct hw_plugin plugin;
        struct hw_device_info info;
        struct hw_kernel_info row;
        struct hw_extension op;
        void *self, *device;
        assert_true(load(names[i], &host, &plugin));
        assert_int_equal(plugin.open(&host, &self), HW_OK);
        for (uint32_t size = 8; size <= sizeof info; size += 8) {
            room(&info, sizeof info, size);
            assert_int_equal(plugin.device_info(self, 0, &info), HW_OK);
            ends_at(&info, sizeof info, size);
            assert_in_range(info.kind, 0, HW_DEVICE_SOFTWARE);
        }
        assert_int_equal(info.pci_domain, -1);
        assert_int_equal(plugin.device_open(self, 0, &device), HW_OK);
        for (uint32_t size = 8; size <= sizeof row && plugin.kernel_info; size += 8) {
            room(&row, sizeof row, size);
            assert_int_equal(plugin.kernel_info(device, HW_OP_SILU, 0, &row), HW_OK);
            ends_at(&row, sizeof row, size);
            assert_in_range(row.eligible, 0, 1);
        }
        const bool extended = plugin.size == sizeof plugin && plugin.extension;
        for (uint32_t size = 8; size <= sizeof op && extended; size += 8) {
            room(&op, sizeof op, size);
            assert_int_equal(plugin.extension(device, 0, &op), HW_OK);
            ends_at(&op, sizeof op, size);
        }
        plugin.device_close(device);
        plugin.close(self);
    }
}

/* ---- a newer plugin ---- */

static int32_t builds_nothing(void *queue, const struct hw_node *nodes, uint32_t count,
                              void **graph)
{
    (void)queue, (void)nodes, (void)count;
    *graph = NULL;
    return HW_UNSUPPORTED;
}

/* The caller's struct is as long as the library's. On every path, the plugin reads zeros
 * past its end. */
static void a_newer_plugin_finds_zeros(void **state)
{
    const struct hw_options options = { .size = sizeof options,
                                        .backends = "newer",
                                        .plugin_path = getenv("HW_TEST_PLUGINS"),
                                        .log = "off" };
    struct hw_queue_options synchronous = { .size = sizeof synchronous };
    struct hw_context *context;
    struct hw_queue *queue;
    struct hw_graph *graph;
    struct hw_graph_info info = { .size = sizeof info };
    float x[8] = { 0, 9, 0, 9, 0, 9, 1, 9 }, y[8], z[4];
    (void)state;
    struct hw_tensor sparse = {
        .dtype = HW_F32, .rank = 1, .extent = { 4 }, .stride = { 8 }, .data = x
    };
    struct hw_silu op = { .x = sparse, .y = sparse };
    const struct hw_copy copy = { .src = sparse, .dst = host_f32(z, (int64_t)4, END) };
    op.y.data = y;
    const struct hw_silu plain = { .x = copy.dst, .y = copy.dst };
    ok(hw_open(&options, &context));
    struct hw_device *newer = hw_device_default(context);
    int32_t (*real)(void *, const struct hw_node *, uint32_t,
                    void **) = newer->plugin->table.graph_build;
    for (int i = 0; i < 2; i++) {
        synchronous.flags = i ? HW_QUEUE_SYNCHRONOUS : 0;
        memset(y, 0, sizeof y);
        ok(hw_queue_open(newer, &synchronous, &queue));
        ok(hw_submit(queue, HW_OP_COPY, at_the_edge(&copy, sizeof copy), sizeof copy));
        ok(hw_submit(queue, HW_OP_SILU, at_the_edge(&plain, sizeof plain), sizeof plain));
        ok(hw_device_supports(newer, HW_OP_SILU, at_the_edge(&op, sizeof op), sizeof op));
        ok(hw_submit(queue, HW_OP_SILU, edge - sizeof op,
                     sizeof op)); /* views are copied */
        ok(hw_queue_wait(queue));
        assert_int_equal(calls(queue, HW_OP_SILU).copied_views, 2);
        equal(&z[3], &(float){ 0.7310586f }, 1);
        equal(&y[6], &(float){ 0.7310586f }, 1);
        /* In a graph built by the plugin, and as a replayed node. */
        memset(y, 0, sizeof y);
        ok(hw_queue_record(queue));
        ok(hw_submit(queue, HW_OP_COPY, at_the_edge(&copy, sizeof copy), sizeof copy));
        ok(hw_submit(queue, HW_OP_SILU, at_the_edge(&plain, sizeof plain), sizeof plain));
        ok(hw_submit(queue, HW_OP_SILU, at_the_edge(&op, sizeof op), sizeof op));
        ok(hw_queue_end(queue, &graph));
        ok(hw_graph_info(graph, &info));
        assert_int_equal(info.segments, 2);
        assert_int_equal(info.built, 1);
        ok(hw_graph_launch(graph, queue));
        ok(hw_queue_wait(queue));
        equal(&z[3], &(float){ 0.7310586f }, 1);
        equal(&y[6], &(float){ 0.7310586f }, 1);
        /* Simple nodes, replayed. */
        newer->plugin->table.graph_build = builds_nothing;
        ok(hw_queue_record(queue));
        ok(hw_submit(queue, HW_OP_SILU, at_the_edge(&plain, sizeof plain), sizeof plain));
        ok(hw_queue_end(queue, &graph));
        ok(hw_graph_launch(graph, queue));
        ok(hw_queue_wait(queue));
        equal(&z[3], &(float){ 0.4934889f }, 1);
        newer->plugin->table.graph_build = real;
    }
    hw_close(context);
}

/* ---- older and newer applications ---- */

static void shorter_structs_mean_zero(void **state)
{
    struct pair *p = *state;
    float x[4] = LOGS, y[4];
    const float shares[4] = { 1.0f / 9, 2.0f / 9, 5.0f / 9, 1.0f / 9 };
    const size_t older = offsetof(struct hw_softmax, scale);
    struct hw_softmax op = { .x = host_f32(x, (int64_t)4, END),
                             .y = host_f32(y, (int64_t)4, END),
                             .log = 1 };
    const void *args = at_the_edge(&op, older);
    struct hw_queue *queues[] = { p->on_cpu, p->queue };
    for (int i = 0; i < 2; i++) {
        memset(y, 0, sizeof y);
        ok(hw_device_supports(hw_queue_device(queues[i]), HW_OP_SOFTMAX, args, older));
        ok(hw_submit(queues[i], HW_OP_SOFTMAX, args, older));
        ok(hw_queue_wait(queues[i]));
        equal(y, shares, 4);
    }
    counted(p, HW_OP_SOFTMAX, 1, 0);
    /* A recorded struct is handled in the same way. */
    struct hw_graph *graph;
    ok(hw_queue_record(p->on_cpu));
    ok(hw_submit(p->on_cpu, HW_OP_SOFTMAX, args, older));
    ok(hw_queue_end(p->on_cpu, &graph));
    memset(edge - older, 0, older);
    memset(y, 0, sizeof y);
    ok(hw_graph_launch(graph, p->on_cpu));
    ok(hw_queue_wait(p->on_cpu));
    equal(y, shares, 4);
    /* eps has no default: the zero counts. The mean of squares is not near it. */
    const struct hw_rmsnorm norm = { .x = op.x, .y = op.y, .eps = 1e6f };
    ok(hw_submit(p->on_cpu, HW_OP_RMSNORM, &norm, offsetof(struct hw_rmsnorm, eps)));
    ok(hw_queue_wait(p->on_cpu));
    float squares = 0;
    for (int i = 0; i < 4; i++)
        squares += y[i] * y[i];
    assert_true(fabsf(squares - 4.0f) < 1e-5f);
}

static void longer_structs_may_add_zeros(void **state)
{
    struct pair *p = *state;
    struct {
        struct hw_softmax op;
        unsigned char more[24];
    } newer = { 0 };
    float x[4] = LOGS, y[4] = { 0 };
    const float squared[4] = { 1.0f / 31, 4.0f / 31, 25.0f / 31, 1.0f / 31 };
    newer.op = (struct hw_softmax){ .x = host_f32(x, (int64_t)4, END),
                                    .y = host_f32(y, (int64_t)4, END),
                                    .scale = 2.0f };
    for (size_t size = sizeof newer.op + 1; size <= sizeof newer; size++) {
        memset(y, 0, sizeof y);
        ok(hw_submit(p->on_cpu, HW_OP_SOFTMAX, at_the_edge(&newer, size), size));
        ok(hw_queue_wait(p->on_cpu));
        equal(y, squared, 4);
    }
    for (size_t i = 0; i < sizeof newer.more; i++) {
        memset(newer.more, 0, sizeof newer.more);
        newer.more[i] = 1;
        memset(y, 0, sizeof y);
        fails(HW_UNSUPPORTED, "newer library",
              hw_submit(p->on_cpu, HW_OP_SOFTMAX, &newer, sizeof newer));
        assert_non_null(strstr(hw_message(), "softmax"));
        fails(HW_UNSUPPORTED, "newer library",
              hw_device_supports(p->cpu, HW_OP_SOFTMAX, &newer, sizeof newer));
        assert_true(y[0] == 0.0f);
    }
    /* There is no fallback: no device of this library knows more than the library. */
    fails(HW_UNSUPPORTED, "newer library",
          hw_submit(p->queue, HW_OP_SOFTMAX, &newer, sizeof newer));
    counted(p, HW_OP_SOFTMAX, 0, 0);
}

/* Every size of every struct is handled without reading past its end. */
static void all_struct_sizes_are_handled(void **state)
{
    struct pair *p = *state;
    static const unsigned char zeros[sizeof(union any_op) + 64];
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        for (size_t size = 0; size <= sizeof zeros; size++) {
            const void *args = at_the_edge(zeros, size);
            fails(HW_INVALID, hw_op_name(op), hw_submit(p->on_cpu, op, args, size));
            fails(HW_INVALID, hw_op_name(op), hw_submit(p->queue, op, args, size));
            if (size < sizeof(struct hw_tensor))
                assert_non_null(strstr(hw_message(), "cannot have"));
        }
}

/* An older application's options end after `size` bytes, which may be within a field. */
static void options_end_at_their_size(void **state)
{
    struct pair *p = *state;
    struct hw_queue *queue;
    struct hw_queue_options options = { .kernel = "no such row" };
    for (options.size = 8; options.size < sizeof options; options.size++) {
        ok(hw_queue_open(p->cpu, &options, &queue));
        hw_queue_close(queue);
    }
    options.size = sizeof options;
    fails(HW_INVALID, "no such row", hw_queue_open(p->cpu, &options, &queue));
}

static void invalid_calls_are_rejected(void **state)
{
    struct pair *p = *state;
    const struct hw_silu op = { .x = { 0 } };
    fails(HW_INVALID, "99 is not an op", hw_submit(p->on_cpu, 99, &op, sizeof op));
    fails(HW_INVALID, "NULL", hw_submit(p->on_cpu, HW_OP_SILU, NULL, sizeof op));
    fails(HW_INVALID, "NULL", hw_submit(NULL, HW_OP_SILU, &op, sizeof op));
}

#define ALLOWED(name)   cmocka_unit_test_setup_teardown(name, open_allowed, close_pair)
#define FORBIDDEN(name) cmocka_unit_test_setup_teardown(name, open_forbidden, close_pair)

/* Structs of an application that was built against a newer library. */
static void descriptions_of_a_newer_application(void **state)
{
    struct {
        struct hw_options options;
        uint64_t more;
    } open = { .options = { .size = sizeof open }, .more = 1 };
    struct {
        struct hw_queue_options options;
        uint64_t more;
    } queue = { .options = { .size = sizeof queue }, .more = 1 };
    struct {
        struct hw_user_kernel desc;
        uint64_t more;
    } kernel = { .desc = { .size = sizeof kernel,
                           .group = 1,
                           .name = "k",
                           .signature = "",
                           .source = "" },
                 .more = 1 };
    struct hw_context *context;
    struct hw_queue *made;
    struct hw_kernel *built;
    struct world world;
    (void)state;
    world_open(&world, NULL, NULL);
    fails(HW_UNSUPPORTED, "this library version does not know",
          hw_open(&open.options, &context));
    fails(HW_UNSUPPORTED, "this library version does not know",
          hw_queue_open(world.cpu, &queue.options, &made));
    fails(HW_UNSUPPORTED, "this library version does not know",
          hw_kernel_create(world.cpu, &kernel.desc, &built));
    queue.more = 0;
    ok(hw_queue_open(world.cpu, &queue.options, &made));
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptions_of_a_newer_application),
        FORBIDDEN(known_ops_work_if_newer_fields_are_zero),
        FORBIDDEN(a_newer_field_is_rejected_by_name),
        ALLOWED(another_device_knows_the_newer_field),
        ALLOWED(views_use_only_flags_that_it_knows),
        ALLOWED(ops_past_its_last_fall_back),
        FORBIDDEN(ops_past_its_last_are_rejected_by_name),
        ALLOWED(slots_past_its_table_are_unsupported),
        ALLOWED(its_graphs_exclude_newer_structs),
        cmocka_unit_test(a_newer_plugin_finds_zeros),
        cmocka_unit_test(plugins_respect_the_size_of_host_structs),
        FORBIDDEN(shorter_structs_mean_zero),
        ALLOWED(longer_structs_may_add_zeros),
        ALLOWED(all_struct_sizes_are_handled),
        ALLOWED(options_end_at_their_size),
        ALLOWED(invalid_calls_are_rejected),
    };
    return cmocka_run_group_tests(tests, make_edge, NULL);
}
