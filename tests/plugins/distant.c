/* SPDX-License-Identifier: MIT */
/* distant.c - a device that is slow to reach and fast once it is: each op takes a third of a
 * millisecond to launch and each MiB a twentieth of one to move, but a product that it has computed
 * before costs no more than to look at its operands. So small products are faster on the CPU, and
 * large ones that repeat are faster here, on any machine. Results are right. */
#define _POSIX_C_SOURCE 200809L /* nanosleep() */
#define NAME            "distant"
#define LINES           "title=Distant device\nvendor=nobody\nrank=96\n"
#define DEVICE          "Distant device"
#define CHANGES
#include "minimal.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

enum { LAUNCH_US = 300, NS_PER_KIB = 50, KNOWN = 16, UNSTEADY = 300 };

static void pause_us(int64_t us)
{
    const struct timespec time = { us / 1000000, us % 1000000 * 1000 };
    if (us >= 20)
        nanosleep(&time, NULL);
}

static float *floats(const struct hw_tensor *t)
{
    return (float *)hw_tensor_address(t);
}

static int64_t count_of(const struct hw_tensor *t)
{
    int64_t count = 1;
    for (int i = 0; i < t->rank; i++)
        count *= t->extent[i];
    return count;
}

/* ---- products that were computed before ---- */

struct product {
    int64_t m, n, k;
    uint32_t transpose_b;
    float *a, *b, *c;
};
static struct product known[KNOWN];
static int known_next;
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_same(const struct product *p, const struct product *q)
{
    return p->a && p->m == q->m && p->n == q->n && p->k == q->k &&
           p->transpose_b == q->transpose_b &&
           !memcmp(p->a, q->a, (size_t)(p->m * p->k) * sizeof(float)) &&
           !memcmp(p->b, q->b, (size_t)(p->n * p->k) * sizeof(float));
}

static bool recall(const struct product *asked)
{
    bool found = false;
    for (int i = 0; i < KNOWN && !found; i++)
        if ((found = is_same(&known[i], asked)))
            memcpy(asked->c, known[i].c, (size_t)(asked->m * asked->n) * sizeof(float));
    return found;
}

static float *copy_of(const float *from, int64_t count)
{
    float *copy = malloc((size_t)count * sizeof *copy);
    return copy ? memcpy(copy, from, (size_t)count * sizeof *copy) : NULL;
}

static void learn(const struct product *p)
{
    struct product *at = &known[known_next++ % KNOWN];
    free(at->a);
    free(at->b);
    free(at->c);
    *at = *p;
    at->a = copy_of(p->a, p->m * p->k);
    at->b = copy_of(p->b, p->n * p->k);
    at->c = copy_of(p->c, p->m * p->n);
    if (at->a && at->b && at->c)
        return;
    free(at->a);
    free(at->b);
    free(at->c);
    *at = (struct product){ 0 };
}

static void multiply(const struct product *p)
{
    const int64_t step_k = p->transpose_b ? 1 : p->n, step_n = p->transpose_b ? p->k : 1;
    memset(p->c, 0, (size_t)(p->m * p->n) * sizeof(float));
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            float sum[8] = { 0 }, all = 0;
            int64_t k = 0;
            for (; k + 8 <= p->k; k += 8)
                for (int lane = 0; lane < 8; lane++)
                    sum[lane] += p->a[i * p->k + k + lane] *
                                 p->b[(k + lane) * step_k + j * step_n];
            for (; k < p->k; k++)
                all += p->a[i * p->k + k] * p->b[k * step_k + j * step_n];
            for (int lane = 0; lane < 8; lane++)
                all += sum[lane];
            p->c[i * p->n + j] = all;
        }
}

/* ---- the ops ---- */

static bool is_plain(const struct hw_tensor *t, int rank)
{
    return t->dtype == HW_F32 && t->rank == rank &&
           (rank < 2 || t->stride[0] == t->extent[1] * (int64_t)sizeof(float));
}

static int32_t supports(void *device, uint32_t op, const void *args, char *why, size_t size,
                        uint64_t *scratch)
{
    const struct hw_matmul *matmul = args;
    const struct hw_silu *silu = args;
    bool fits = false;
    (void)device;
    *scratch = 0;
    if (op == HW_OP_MATMUL)
        fits = is_plain(&matmul->a, 2) && is_plain(&matmul->b, 2) &&
               is_plain(&matmul->c, 2) && !matmul->bias.dtype && !matmul->transpose_a;
    if (op == HW_OP_SILU)
        fits = is_plain(&silu->x, silu->x.rank) && is_plain(&silu->y, silu->x.rank) &&
               silu->x.rank <= 2;
    if (!fits)
        snprintf(why, size, "it computes silu and plain products of f32");
    return fits ? HW_OK : HW_UNSUPPORTED;
}

static int32_t matmul(void *device, void *queue, const struct hw_matmul *op)
{
    const struct product p = { .m = op->c.extent[0],
                               .n = op->c.extent[1],
                               .k = op->a.extent[1],
                               .transpose_b = op->transpose_b,
                               .a = floats(&op->a),
                               .b = floats(&op->b),
                               .c = floats(&op->c) };
    (void)device, (void)queue;
    pause_us(LAUNCH_US);
    pthread_mutex_lock(&known_lock);
    if (!recall(&p)) {
        multiply(&p);
        learn(&p);
    }
    pthread_mutex_unlock(&known_lock);
    return HW_OK;
}

/* With HW_TEST_UNSTEADY=N, one of N calls takes far longer: with N = 2, the median may be such a
 * call. */
static int32_t silu(void *device, void *queue, const struct hw_silu *op)
{
    static int calls;
    const char *unsteady = getenv("HW_TEST_UNSTEADY");
    const int64_t count = count_of(&op->x);
    (void)device, (void)queue;
    const bool slow = unsteady && ++calls % atoi(unsteady) == 0;
    pause_us(slow ? UNSTEADY * LAUNCH_US : LAUNCH_US);
    for (int64_t i = 0; i < count; i++)
        floats(&op->y)[i] = floats(&op->x)[i] / (1.0f + expf(-floats(&op->x)[i]));
    return HW_OK;
}

static int32_t transfer_slowly(void *queue, const struct hw_transfer *t)
{
    pause_us((int64_t)(t->bytes * (t->rows ? t->rows : 1) / 1024 * NS_PER_KIB / 1000));
    return plugin_transfer(queue, t);
}

/* HW_TEST_DRIVER is the version of its driver. */
static int32_t info(void *self, int32_t index, struct hw_device_info *out)
{
    const char *driver = getenv("HW_TEST_DRIVER");
    struct hw_device_info facts = hw_no_facts();
    (void)self, (void)index;
    facts.kind = HW_DEVICE_DISCRETE;
    strcpy(facts.name, DEVICE);
    snprintf(facts.driver, sizeof facts.driver, "%s", driver ? driver : "1");
    hw_answer(out, &facts);
    return HW_OK;
}

/* Work besides ops, done immediately. */
static int32_t other_work(void *device, void *queue, const struct hw_arg *args,
                          uint32_t count)
{
    (void)device, (void)queue, (void)args, (void)count;
    return HW_OK;
}

static int32_t extension(void *device, uint32_t index, struct hw_extension *out)
{
    static const struct hw_extension row = {
        .size = sizeof row, .name = "distant.work", .signature = "", .call = other_work
    };
    (void)device;
    if (index)
        return HW_END;
    hw_answer(out, &row);
    return HW_OK;
}

static void change(struct hw_plugin *table)
{
    static const struct hw_plugin_ops ops = { .size = sizeof ops,
                                              .matmul = matmul,
                                              .silu = silu };
    table->ops = &ops;
    table->supports = supports;
    table->device_info = info;
    table->transfer = transfer_slowly;
    table->extension = extension;
}
