/* SPDX-License-Identifier: MIT */
/* reference.c - computes every op with the oracle, in host memory, during the call. Slow
 * and right: the conformance tests must accept it. */
#include "reference.h"

#include "oracle.h"

/* ---- ops ----------------------------------------------------------------------------------- */

static bool load(const struct hw_tensor *tensor, struct operand *o)
{
    if (!operand_make(o, tensor->dtype, tensor->rank, tensor->extent, true))
        return false;
    if (!o->bytes || !o->count)
        return true;
    storage_gather(tensor, hw_tensor_address(tensor), o->bytes);
    storage_read_all(o->dtype, o->bytes, o->value, o->count);
    return true;
}

static void store(const struct hw_tensor *tensor, struct operand *o)
{
    if (!o->exact)
        storage_write(o->dtype, o->exact_bytes, o->want, o->count);
    if (o->count)
        storage_scatter(tensor, hw_tensor_address(tensor), o->exact_bytes);
}

/* Copies equal dtypes. The tests copy their arenas with it, and converting every byte to a number
 * would take most of the time. */
static int32_t move(const struct hw_copy *op)
{
    const size_t bytes = storage_bytes(op->src.dtype, storage_count(&op->src));
    unsigned char *packed = malloc(bytes + 1);

    if (!packed)
        return HW_NO_MEMORY;
    if (bytes) {
        storage_gather(&op->src, hw_tensor_address(&op->src), packed);
        storage_scatter(&op->dst, hw_tensor_address(&op->dst), packed);
    }
    free(packed);
    return HW_OK;
}

int32_t reference(uint32_t op, const void *args)
{
    const struct hw_copy *copied = args;
    struct operand operands[MAX_OPERANDS];
    struct hw_tensor tensors[MAX_OPERANDS];
    size_t field[MAX_OPERANDS];
    union op_args copy;
    const int count = operands_of(op, operands, field);
    bool ok = true;

    if (op == HW_OP_COPY && copied->src.dtype == copied->dst.dtype)
        return move(copied);
    memcpy(&copy, args, op_args_size(op));
    for (int i = 0; i < count; i++) {
        memcpy(&tensors[i], (const char *)args + field[i], sizeof tensors[i]);
        if (ok && tensors[i].dtype != HW_NONE)
            ok = load(&tensors[i], &operands[i]);
    }
    ok = ok && oracle_compute(op, &copy, operands);
    for (int i = 0; i < count; i++) {
        if (ok && tensors[i].dtype != HW_NONE && role_is_output(operands[i].role))
            store(&tensors[i], &operands[i]);
        operand_clear(&operands[i]);
    }
    return ok ? HW_OK : HW_NO_MEMORY;
}

bool change_copy(struct hw_tensor *tensor, change_fn *change, float **numbers)
{
    const struct hw_tensor was = *tensor;
    const int64_t count = storage_count(&was);
    *numbers = NULL;
    if (was.dtype != HW_F32 || count == 0)
        return true;
    float *copy = malloc((size_t)count * sizeof *copy);
    if (!copy)
        return false;
    storage_gather(&was, hw_tensor_address(&was), (unsigned char *)copy);
    change(copy, count, was.extent[was.rank - 1]);
    *tensor = (struct hw_tensor){ .data = copy, .dtype = HW_F32, .rank = was.rank };
    int64_t step = sizeof *copy;
    for (int32_t axis = was.rank - 1; axis >= 0; axis--) {
        tensor->extent[axis] = was.extent[axis];
        tensor->stride[axis] = step;
        step *= was.extent[axis];
    }
    *numbers = copy;
    return true;
}

int32_t reference_of(uint32_t op, const void *args, struct hw_tensor *field,
                     change_fn *change)
{
    float *numbers;
    if (!change_copy(field, change, &numbers))
        return HW_NO_MEMORY;
    const int32_t status = reference(op, args);
    free(numbers);
    return status;
}

static void round_block(float *values, int64_t count, int most)
{
    float largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmaxf(largest, fabsf(values[i]));
    const float scale = largest / (float)most;
    for (int64_t i = 0; i < count && scale > 0 && isfinite(scale); i++)
        values[i] = rintf(values[i] / scale) * scale;
}

void round_to_codes(float *values, int64_t count, int most)
{
    enum { CODES = 32 };
    for (int64_t i = 0; i < count; i += CODES)
        round_block(&values[i], count - i < CODES ? count - i : CODES, most);
}

/* ---- attention with rounded weights ---- */

enum { TOGETHER = 64, BLOCK = 32, MOST_RATIO = 16 };

/* The extents as rank 4; a tensor of rank 3 has one batch. */
static void extents_of(const struct hw_tensor *t, int64_t extent[4])
{
    extent[0] = 1;
    memcpy(extent + 4 - t->rank, t->extent, (size_t)t->rank * sizeof *extent);
}

/* Writes the weights of all keys to each row of y: the result of attention if the values are the
 * rows of the identity. */
static int32_t weights_of(const struct hw_attention *op, int64_t keys, float *weight)
{
    struct hw_attention changed = *op;
    struct hw_tensor *v = &changed.v, *y = &changed.y;
    float *identity = calloc((size_t)(keys * keys) + 1, sizeof *identity);
    int64_t step = sizeof *weight;

    if (!identity)
        return HW_NO_MEMORY;
    for (int64_t i = 0; i < keys; i++)
        identity[i * keys + i] = 1;
    *v = (struct hw_tensor){ .data = identity, .dtype = HW_F32, .rank = op->v.rank };
    memcpy(v->extent, op->v.extent, sizeof v->extent);
    v->extent[v->rank - 1] = keys;
    v->stride[v->rank - 1] = (int64_t)sizeof *identity;
    v->stride[v->rank - 3] = keys * (int64_t)sizeof *identity;
    *y = (struct hw_tensor){ .data = weight, .dtype = HW_F32, .rank = op->y.rank };
    memcpy(y->extent, op->y.extent, sizeof y->extent);
    y->extent[y->rank - 1] = keys;
    for (int32_t axis = y->rank - 1; axis >= 0; axis--) {
        y->stride[axis] = step;
        step *= y->extent[axis];
    }
    const int32_t status = reference(HW_OP_ATTENTION, &changed);
    free(identity);
    return status;
}

/* The sum of column d of `n` values, `pitch` apart. Values of masked keys may be anything. */
static double sum_of_codes(const float *weight, const double *value, int64_t n,
                           int64_t pitch, int64_t d, int most)
{
    double largest[TOGETHER], greatest = 0, least = INFINITY, step = 0, sum = 0;

    for (int64_t j = 0; j < n; j++) {
        largest[j] = 0;
        if (weight[j] == 0)
            continue;
        for (int64_t i = d / BLOCK * BLOCK; i < (d / BLOCK + 1) * BLOCK; i++)
            largest[j] = fmax(largest[j], fabs(value[j * pitch + i]));
        greatest = fmax(greatest, largest[j]);
        least = largest[j] > 0 ? fmin(least, largest[j]) : least;
        step = fmax(step, (double)weight[j] * largest[j] / most);
    }
    const bool round = step > 0 && greatest <= MOST_RATIO * least;
    for (int64_t j = 0; j < n; j++) {
        if (weight[j] == 0)
            continue;
        const double scale = round && largest[j] > 0 ? step / largest[j] : 0;
        const double code = scale > 0 ? rint((double)weight[j] / scale) : (double)weight[j];
        sum += (scale > 0 ? code * scale : code) * value[j * pitch + d];
    }
    return sum;
}

static void sum_values(const struct hw_attention *op, const float *weight,
                       const struct operand *v, int most)
{
    int64_t ve[4], ye[4];

    extents_of(&op->v, ve);
    extents_of(&op->y, ye);
    const int64_t keys = ve[1], pitch = ve[2] * ve[3];
    for (int64_t i = 0; i < storage_count(&op->y); i++) {
        const int64_t d = i % ye[3], row = i / ye[3], head = row % ye[2];
        const int64_t batch = row / ye[2] / ye[1];
        const double *value = v->value + batch * keys * pitch +
                              head / (ye[2] / ve[2]) * ve[3];
        double sum = 0;
        for (int64_t j = 0; j < keys; j += TOGETHER)
            sum += sum_of_codes(weight + row * keys + j, value + j * pitch,
                                keys - j < TOGETHER ? keys - j : TOGETHER, pitch, d, most);
        set(&op->y, i, sum);
    }
}

int32_t attention_of_codes(const struct hw_attention *op, int most)
{
    struct operand v = { .name = "v" };
    int64_t ve[4];

    if (op->k.dtype != HW_Q8_0 || op->v.dtype != HW_Q8_0)
        return reference(HW_OP_ATTENTION, op);
    extents_of(&op->v, ve);
    const int64_t rows = storage_count(&op->y) / ve[3];
    float *weight = calloc((size_t)(rows * ve[1]) + 1, sizeof *weight);
    int32_t status = weight && load(&op->v, &v) ? HW_OK : HW_NO_MEMORY;
    if (!status)
        status = weights_of(op, ve[1], weight);
    if (!status)
        sum_values(op, weight, &v, most);
    operand_clear(&v);
    free(weight);
    return status;
}

/* ---- the table of ops ---- */

#define X(NAME, name)                                                                      \
    static int32_t name##_op(void *device, void *queue, const struct hw_##name *op)        \
    {                                                                                      \
        (void)device;                                                                      \
        (void)queue;                                                                       \
        return reference(HW_OP_##NAME, op);                                                \
    }
HW_OPS(X)
#undef X

const struct hw_plugin_ops reference_ops = { .size = sizeof reference_ops,
#define X(NAME, name) .name = name##_op,
                                             HW_OPS(X)
#undef X
};

void *element(const struct hw_tensor *tensor, int64_t i)
{
    int64_t offset = 0;
    for (int32_t axis = tensor->rank - 1; axis >= 0; axis--) {
        offset += i % tensor->extent[axis] * tensor->stride[axis];
        i /= tensor->extent[axis];
    }
    return (char *)hw_tensor_address(tensor) + offset;
}

double get(const struct hw_tensor *tensor, int64_t i)
{
    return storage_read(tensor->dtype, element(tensor, i), 0);
}

void set(const struct hw_tensor *tensor, int64_t i, double value)
{
    storage_write(tensor->dtype, element(tensor, i), &value, 1);
}

/* ---- the rest of a plugin ------------------------------------------------------------------ */

struct instance {
    const struct hw_host *host;
};

static int32_t instance_open(const struct hw_host *host, void **self)
{
    struct instance *instance = malloc(sizeof *instance);
    if (!instance)
        return hw_fail(host, HW_NO_MEMORY, "out of memory");
    instance->host = host;
    *self = instance;
    return HW_OK;
}

static void instance_close(void *self)
{
    free(self);
}

static int32_t device_count(void *self, int32_t *count)
{
    (void)self;
    *count = 1;
    return HW_OK;
}

static int32_t device_info(void *self, int32_t index, struct hw_device_info *info)
{
    (void)self;
    (void)index;
    info->kind = HW_DEVICE_SOFTWARE;
    strcpy(info->name, "the oracle");
    info->features = HW_FEATURE_UNIFIED_MEMORY | HW_FEATURE_HOST_TENSORS;
    info->units = 1;
    info->pci_domain = info->pci_bus = info->pci_device = info->pci_function = -1;
    return HW_OK;
}

/* Devices and queues contain only the host, for its messages. */
static int32_t device_open(void *self, int32_t index, void **device)
{
    (void)index;
    *device = self;
    return HW_OK;
}

static void nothing_to_close(void *handle)
{
    (void)handle;
}

static int32_t queue_open(void *device, const struct hw_queue_desc *desc, void **queue)
{
    const struct instance *instance = device;
    const char *kernel = desc->kernel ? desc->kernel : "";

    if (*kernel && strcmp(kernel, "portable") && !strstr(kernel, "oracle"))
        return hw_fail(instance->host, HW_INVALID, "no row '%s'; there is: oracle", kernel);
    *queue = device;
    return HW_OK;
}

static int32_t queue_wait(void *queue)
{
    (void)queue;
    return HW_OK;
}

/* malloc() guarantees a smaller alignment than required, so the address is rounded up. */
enum { ALIGNMENT = 256 };

static int32_t buffer_alloc(void *device, uint64_t bytes, uint32_t flags,
                            struct hw_buffer *buffer)
{
    const struct instance *instance = device;
    char *memory = bytes < SIZE_MAX - ALIGNMENT ? malloc((size_t)bytes + ALIGNMENT) : NULL;

    if (!memory)
        return hw_fail(instance->host, HW_NO_MEMORY, "no %llu bytes",
                       (unsigned long long)bytes);
    buffer->impl = memory;
    buffer->host = memory + (ALIGNMENT - (uintptr_t)memory % ALIGNMENT);
    buffer->flags = flags | HW_BUFFER_HOST_VISIBLE;
    if (flags & HW_BUFFER_ZEROED)
        memset(buffer->host, 0, (size_t)bytes);
    return HW_OK;
}

static void buffer_free(void *device, struct hw_buffer *buffer)
{
    (void)device;
    free(buffer->impl);
}

static int32_t transfer(void *queue, const struct hw_transfer *t)
{
    char *dst = t->dst ? (char *)t->dst->host + t->dst_offset : t->dst_host;
    const char *src = t->src ? (const char *)t->src->host + t->src_offset : t->src_host;

    (void)queue;
    hw_transfer_host(t, dst, src);
    return HW_OK;
}

static int32_t supports(void *device, uint32_t op, const void *args, char *why,
                        size_t why_size, uint64_t *scratch)
{
    struct operand operands[MAX_OPERANDS];
    size_t field[MAX_OPERANDS];
    const int count = operands_of(op, operands, field);

    (void)device;
    *scratch = 0;
    for (int i = 0; i < count; i++) {
        struct hw_tensor tensor;
        memcpy(&tensor, (const char *)args + field[i], sizeof tensor);
        if (tensor.layout) {
            snprintf(why, why_size, "the oracle does not read %s", operands[i].name);
            return HW_UNSUPPORTED;
        }
    }
    return HW_OK;
}

static int32_t kernel_info(void *device, uint32_t op, uint32_t index,
                           struct hw_kernel_info *info)
{
    (void)device;
    (void)op;
    if (index > 0)
        return HW_END;
    hw_answer(info, &(struct hw_kernel_info){
                        .size = sizeof *info, .eligible = 1, .name = "oracle" });
    return HW_OK;
}

int32_t reference_fill(struct hw_plugin *table, const struct hw_plugin_ops *ops)
{
    static const uint32_t sizes[] = HW_OP_SIZES;

    table->vendor = "tests";
    table->version = "1";
    table->ops = ops;
    table->op_sizes = sizes;
    table->op_count = HW_OP_COUNT;
    table->open = instance_open;
    table->close = instance_close;
    table->device_count = device_count;
    table->device_info = device_info;
    table->device_open = device_open;
    table->device_close = nothing_to_close;
    table->queue_open = queue_open;
    table->queue_close = nothing_to_close;
    table->queue_wait = queue_wait;
    table->buffer_alloc = buffer_alloc;
    table->buffer_free = buffer_free;
    table->transfer = transfer;
    table->supports = supports;
    table->kernel_info = kernel_info;
    return HW_OK;
}
