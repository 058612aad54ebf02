/* SPDX-License-Identifier: MIT */
/* A plugin whose silu is right, or bad in a way that the admission test has to find. Built once
 * for each way: ACT is the function of that name below, NAME what the plugin is called; HARM is a
 * function that does harm when all is computed, UNWRITTEN how many elements are not. It has scale,
 * too, which is right; with CROWD one more op, or four, that are as bad as silu; with COPIES a copy
 * that crashes; with ASKS no answer to whether it computes bf16. With DEVICES it has two devices:
 * the second is the one that is bad, in scale, too, and the first is opened the first time (0) or
 * the second time (1) that this is tried and no other: the file HW_TEST_OPENED tells. With LATER,
 * another one of these functions, scale is bad, and that file, if there is one, has a byte for each
 * time that it is tried; then it has a layernorm and a matmul_id, too, which compute nothing, and
 * packs weights. With SWAPPED there is another device when it is tried again. */
#define _GNU_SOURCE
#define CHANGES
#include "minimal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

static int32_t opened; /* the last device that was opened */

static int is_tried(void)
{
    return strcmp(program_invocation_short_name, "hw-probe") == 0;
}

static float load(const struct hw_tensor *t, int64_t i)
{
    const char *at = (const char *)hw_tensor_address(t);
    uint32_t bits = 0;
    if (t->dtype == HW_F32)
        memcpy(&bits, at + 4 * i, 4);
    else
        memcpy((char *)&bits + 2, at + 2 * i, 2);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounds to nearest, ties to even; no NaN comes here. */
static void store(const struct hw_tensor *t, int64_t i, float value)
{
    char *at = (char *)hw_tensor_address(t);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (t->dtype == HW_F32) {
        memcpy(at + 4 * i, &bits, 4);
    } else {
        bits += 0x7fff + (bits >> 16 & 1);
        memcpy(at + 2 * i, (char *)&bits + 2, 2);
    }
}

/* Tensors that are contiguous, of f32 or bf16. */
static int32_t check(void *device, const struct hw_tensor *x, const struct hw_tensor *y)
{
    int64_t step = hw_dtype_bytes(x->dtype);
    if ((x->dtype != HW_F32 && x->dtype != HW_BF16) || y->dtype != x->dtype)
        return hw_fail(device, HW_UNSUPPORTED, "f32 and bf16 alone");
    for (int i = x->rank - 1; i >= 0; step *= x->extent[i--])
        if (x->stride[i] != step || y->stride[i] != step)
            return hw_fail(device, HW_UNSUPPORTED, "contiguous tensors alone");
    return HW_OK;
}

static int64_t count_of(const struct hw_tensor *t)
{
    int64_t count = 1;
    for (int i = 0; i < t->rank; i++)
        count *= t->extent[i];
    return count;
}

/* ---- the ways: each says what silu adds to the right result, or does not return it ---- */

static int32_t right(void *device, int32_t dtype, float *more)
{
    (void)device, (void)dtype;
    *more = 0;
    return HW_OK;
}

static int32_t wrong(void *device, int32_t dtype, float *more)
{
    (void)device, (void)dtype;
    *more = 0.5f;
    return HW_OK;
}

static int32_t wrong_bf16(void *device, int32_t dtype, float *more)
{
    return (dtype == HW_BF16 ? wrong : right)(device, dtype, more);
}

static int32_t undefined(void *device, int32_t dtype, float *more)
{
    (void)device, (void)dtype;
    *more = NAN;
    return HW_OK;
}

static int32_t fails(void *device, int32_t dtype, float *more)
{
    (void)dtype, (void)more;
    return hw_fail(device, HW_DRIVER, "the driver says 700");
}

static int32_t loses(void *device, int32_t dtype, float *more)
{
    (void)dtype, (void)more;
    return hw_fail(device, HW_LOST, "the device fell off the bus");
}

/* Only where the plugin is tried, because the test goes on to ask for it. */
static int32_t crashes(void *device, int32_t dtype, float *more)
{
    volatile int *volatile nowhere = NULL;
    if (is_tried())
        *nowhere = 1;
    return right(device, dtype, more);
}

static int32_t ends(void *device, int32_t dtype, float *more)
{
    if (is_tried())
        _exit(0);
    return right(device, dtype, more);
}

static int32_t hangs(void *device, int32_t dtype, float *more)
{
    while (is_tried())
        pause();
    return right(device, dtype, more);
}

/* Within its time; but there is none for other cases, and device_open() has taken half as well. */
static int32_t slow(void *device, int32_t dtype, float *more)
{
    static int calls;
    if (!calls++ && is_tried())
        usleep(700000);
    return right(device, dtype, more);
}

/* Within its time, as all the rest is, which ends with a slow device_close(). */
static int32_t tardy(void *device, int32_t dtype, float *more)
{
    static int calls;
    if (!calls++ && is_tried())
        usleep(1200000);
    return right(device, dtype, more);
}

/* As if its kernels were compiled, one for each type: it needs more than one second, and less than
 * six. */
static int32_t compiles(void *device, int32_t dtype, float *more)
{
    static int calls[HW_DTYPE_END];
    if (!calls[dtype]++ && is_tried())
        usleep(1500000);
    return right(device, dtype, more);
}

/* The rest is left out: a quarter of HW_PROBE_TIMEOUT has passed; where the file says so. */
static int32_t eats(void *device, int32_t dtype, float *more)
{
    static int calls;
    if (!calls++ && is_tried() && getenv("HW_TEST_OPENED"))
        usleep(600000);
    return right(device, dtype, more);
}

/* Not sooner than a second thread has come. */
static int32_t lingers(void *device, int32_t dtype, float *more)
{
    if (is_tried())
        usleep(200000);
    return right(device, dtype, more);
}

static int32_t second(void *device, int32_t dtype, float *more)
{
    return (opened ? crashes : wrong)(device, dtype, more);
}

static int32_t (*const all[])(void *device, int32_t dtype, float *more) = {
    right, wrong, wrong_bf16, undefined, fails, loses,   crashes,  ends,
    hangs, slow,  tardy,      second,    eats,  lingers, compiles,
};

/* ---- the harm ---- */

static void nothing(const struct hw_silu *op)
{
    (void)op;
}

static void writes_past_the_end(const struct hw_silu *op)
{
    store(&op->y, count_of(&op->y), 1);
}

static void writes_the_input(const struct hw_silu *op)
{
    store(&op->x, 0, 1);
}

static void (*const harms[])(const struct hw_silu *op) = {
    nothing,
    writes_past_the_end,
    writes_the_input,
};

#ifndef HARM
#define HARM nothing
#endif
#ifndef UNWRITTEN /* elements at the end */
#define UNWRITTEN 0
#endif

/* ---- the ops ---- */

static int32_t silu(void *device, void *queue, const struct hw_silu *op)
{
    float more = 0;
    int32_t status = check(device, &op->x, &op->y);
    (void)queue, (void)all, (void)harms;
    if (status || (status = ACT(device, op->x.dtype, &more)))
        return status;
    for (int64_t i = 0; i < count_of(&op->x) - UNWRITTEN; i++) {
        const float x = load(&op->x, i);
        store(&op->y, i, x / (1 + expf(-x)) + more);
    }
    HARM(op);
    return HW_OK;
}

static int32_t scale(void *device, void *queue, const struct hw_scale *op)
{
    const int32_t status = check(device, &op->x, &op->y);
    float more = ACT == second && opened ? 0.5f : 0;
    (void)queue;
#ifdef LATER
    const int32_t worse = status ? status : LATER(device, op->x.dtype, &more);
    if (worse)
        return worse;
#endif
    for (int64_t i = 0; !status && i < count_of(&op->x); i++)
        store(&op->y, i, load(&op->x, i) * op->scale + op->bias + more);
    return status;
}

#define X(name)                                                                            \
    static int32_t name(void *device, void *queue, const struct hw_##name *op)             \
    {                                                                                      \
        float more;                                                                        \
        (void)queue;                                                                       \
        return ACT(device, op->x.dtype, &more);                                            \
    }
#ifdef CROWD
X(rmsnorm)
#endif
#if CROWD > 1
X(softmax)
X(activation)
X(argmax)
#endif
#undef X

#ifdef LATER
static int32_t layernorm(void *device, void *queue, const struct hw_layernorm *op)
{
    (void)queue, (void)op;
    return hw_fail(device, HW_UNSUPPORTED, "nothing at all");
}

static int32_t matmul_id(void *device, void *queue, const struct hw_matmul_id *op)
{
    (void)queue, (void)op;
    return hw_fail(device, HW_UNSUPPORTED, "nothing at all");
}

static int32_t pack_size(void *device, const struct hw_tensor *src, uint64_t *bytes,
                         uint32_t *layout)
{
    (void)device, (void)src;
    *bytes = 1;
    *layout = 1;
    return HW_OK;
}

static int32_t pack(void *queue, const struct hw_tensor *dst, const struct hw_tensor *src)
{
    (void)queue, (void)dst, (void)src;
    return HW_OK;
}
#endif

#ifdef COPIES
static int32_t copy(void *device, void *queue, const struct hw_copy *op)
{
    float more;
    (void)queue;
    return crashes(device, op->src.dtype, &more);
}
#endif

#ifdef ASKS
static int32_t supports(void *device, uint32_t op, const void *args, char *why,
                        size_t why_size, uint64_t *scratch)
{
    (void)why, (void)why_size, (void)scratch;
    return op == HW_OP_SILU && ((const struct hw_silu *)args)->x.dtype == HW_BF16
               ? hw_fail(device, HW_DRIVER, "the driver does not answer")
               : HW_OK;
}
#endif

#ifdef DEVICES
static int32_t count_two(void *self, int32_t *count)
{
    (void)self;
    *count = 2;
    return HW_OK;
}

#endif

#if defined DEVICES || defined LATER
/* Whether this is the time, from 0, that it is started: each adds a byte to the file. */
static int is_time(int time)
{
    const char *path = getenv("HW_TEST_OPENED");
    const int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return 0;
    const int before = (int)lseek(fd, 0, SEEK_END);
    (void)!write(fd, "o", 1);
    close(fd);
    return before == time;
}
#endif

#ifdef SWAPPED
static int32_t another_info(void *self, int32_t index, struct hw_device_info *info)
{
    struct hw_device_info facts = hw_no_facts();
    const int32_t status = plugin_info(self, index, &facts);
    if (is_tried() && getenv("HW_TEST_OPENED") && !access(getenv("HW_TEST_OPENED"), F_OK))
        strcpy(facts.name, "another device");
    hw_answer(info, &facts);
    return status;
}
#endif

static int32_t open_device(void *self, int32_t index, void **device)
{
    opened = index;
    if (ACT == slow && is_tried())
        usleep(500000);
    if (ACT == tardy && is_tried())
        usleep(600000);
#ifdef LATER
    if (is_tried())
        (void)is_time(0);
#endif
#ifdef DEVICES
    if (index == 0 && is_tried() && !is_time(DEVICES))
        return hw_fail(self, HW_DRIVER, "not this time");
#endif
    return plugin_device(self, index, device);
}

static void close_device(void *device)
{
    if (ACT == tardy && is_tried())
        usleep(600000);
    plugin_close(device);
}

static void change(struct hw_plugin *table)
{
    static const struct hw_plugin_ops ops = {
        .size = sizeof ops,
        .silu = silu,
        .scale = scale,
#ifdef CROWD
        .rmsnorm = rmsnorm,
#endif
#if CROWD > 1
        .softmax = softmax,
        .activation = activation,
        .argmax = argmax,
#endif
#ifdef COPIES
        .copy = copy,
#endif
#ifdef LATER
        .layernorm = layernorm,
        .matmul_id = matmul_id,
#endif
    };
    table->ops = &ops;
    table->device_open = open_device;
    table->device_close = close_device;
#ifdef ASKS
    table->supports = supports;
#endif
#ifdef DEVICES
    table->device_count = count_two;
#endif
#ifdef LATER
    table->pack_size = pack_size;
    table->pack = pack;
#endif
#ifdef SWAPPED
    table->device_info = another_info;
#endif
}
