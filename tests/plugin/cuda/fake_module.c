/* SPDX-License-Identifier: MIT */
/* fake_module.c - the stand-in's modules and launches. A portable kernel runs as plain C. Other
 * kernels exist only as machine code or PTX: they compute nothing, but a test may look at their
 * launches. */
#include "fake_driver.h"

#include "driver_state.h"
#include "fake.h"
#include "kernels.h"
#include "objects.h"

#include <stdlib.h>

/* ---- modules ---- */

struct function {
    struct kernel kernel; /* `run` is NULL: not one of the portable ones */
    char name[96];
    const char *parameters; /* in the PTX; NULL: machine code */
    int dynamic_most;       /* bytes of shared memory that a launch may request */
    struct function *next;
};

struct module {
    struct context *context;
    char *image;
    size_t bytes;
    pthread_mutex_t lock;
    struct function *functions;
};

static bool is_machine_code(const char *image)
{
    return !memcmp(image, "\177ELF", 4);
}

/* The image ends with its section headers or its segment headers. */
static size_t bytes_of(const char *image)
{
    uint64_t segments, sections;
    uint16_t segment_bytes, segment_count, section_bytes, section_count;
    if (!is_machine_code(image))
        return strlen(image) + 1;
    memcpy(&segments, image + 32, sizeof segments);
    memcpy(&sections, image + 40, sizeof sections);
    memcpy(&segment_bytes, image + 54, sizeof segment_bytes);
    memcpy(&segment_count, image + 56, sizeof segment_count);
    memcpy(&section_bytes, image + 58, sizeof section_bytes);
    memcpy(&section_count, image + 60, sizeof section_count);
    segments += (uint64_t)segment_bytes * segment_count;
    sections += (uint64_t)section_bytes * section_count;
    return segments > sections ? segments : sections;
}

/* The header names the ABI. CUDA 13 has a later ABI, which earlier drivers do not know. */
static bool knows_abi(const char *image)
{
    enum { ABI = 7, ABI_OF_13 = 0x41 };
    return cuda_of_driver() / 1000 >= (image[ABI] == ABI_OF_13 ? 13 : 12);
}

/* PTX is for its architecture and later ones. */
static bool can_load(const char *image)
{
    if (is_machine_code(image))
        return knows_abi(image);
    const char *target = strstr(image, ".target sm_");
    return target && atoi(target + strlen(".target sm_")) <= capability_of_context();
}

int fake_module_load(void **out, const void *image, unsigned count, int *options,
                     void **values)
{
    if (!can_load(image)) {
        if (count == 2 && options[0] == MODULE_LOG && options[1] == MODULE_LOG_BYTES)
            snprintf(values[0], (size_t)(uintptr_t)values[1], "no target for this device");
        return INVALID_IMAGE;
    }
    struct module *module = calloc(1, sizeof *module);
    const size_t bytes = bytes_of(image);
    if (!module || !(module->image = malloc(bytes))) {
        free(module);
        return OUT_OF_MEMORY;
    }
    memcpy(module->image, image, bytes);
    module->bytes = bytes;
    module->context = current();
    pthread_mutex_init(&module->lock, NULL);
    objects_add(module);
    *out = module;
    return SUCCESS;
}

int fake_module_unload(void *handle)
{
    struct module *module = handle;
    if (!objects_remove(module))
        return INVALID_HANDLE;
    for (struct function *next, *function = module->functions; function; function = next) {
        next = function->next;
        free(function);
    }
    pthread_mutex_destroy(&module->lock);
    free(module->image);
    free(module);
    return SUCCESS;
}

/* Where the kernel's parameters begin in PTX, or the section of its name in machine code; NULL: the
 * module does not have it. */
static const char *find_kernel(const struct module *module, const char *name)
{
    char entry[128];
    const int length = snprintf(entry, sizeof entry,
                                is_machine_code(module->image) ? ".text.%s" : ".entry %s(",
                                name);
    const size_t bytes = (size_t)length + is_machine_code(module->image); /* with the NUL */
    for (size_t at = 0; at + bytes <= module->bytes; at++)
        if (module->image[at] == entry[0] && !memcmp(module->image + at, entry, bytes))
            return module->image + at + bytes;
    return NULL;
}

int fake_module_function(void **out, void *handle, const char *name)
{
    enum { WITHOUT_ASKING = 48 << 10 };
    struct module *module = handle;
    const char *found = module->context == current() ? find_kernel(module, name) : NULL;
    if (!found)
        return NOT_FOUND;
    struct function *function = calloc(1, sizeof *function);
    if (!function)
        return OUT_OF_MEMORY;
    kernel_find(name, &function->kernel);
    snprintf(function->name, sizeof function->name, "%s", name);
    function->parameters = is_machine_code(module->image) ? NULL : found;
    function->dynamic_most = WITHOUT_ASKING;
    pthread_mutex_lock(&module->lock);
    function->next = module->functions;
    module->functions = function;
    pthread_mutex_unlock(&module->lock);
    *out = function;
    return SUCCESS;
}

enum { DECLARED_SHARED = 1024 }; /* by every kernel */

int fake_function_get(int *value, int attribute, void *function)
{
    (void)function;
    *value = DECLARED_SHARED;
    return attribute == FUNCTION_SHARED ? SUCCESS : INVALID_VALUE;
}

int fake_function_set(void *handle, int attribute, int value)
{
    struct function *function = handle;
    const int most = shared_most_of_context() - DECLARED_SHARED;
    if (attribute == FUNCTION_CARVEOUT)
        return value == CARVEOUT_ALL ? SUCCESS : INVALID_VALUE;
    if (attribute != FUNCTION_DYNAMIC_MOST || value > most)
        return INVALID_VALUE;
    function->dynamic_most = value;
    return SUCCESS;
}

/* Reads a parameter from PTX: ".param .u64 name," and so on. */
int fake_function_parameter(void *handle, size_t index, size_t *offset, size_t *bytes)
{
    const struct function *function = handle;
    const char *at = function->parameters, *end = at ? strchr(at, ')') : NULL;
    if (!at)
        return INVALID_HANDLE;
    *offset = 8 * index;
    for (at = strstr(at, ".param ."); at && at < end; at = strstr(at + 1, ".param ."))
        if (index-- == 0) {
            *bytes = (size_t)atoi(at + strlen(".param .u")) / 8;
            return SUCCESS;
        }
    return INVALID_VALUE;
}

/* ---- launches ---- */

static void (*watcher)(const struct fake_launch *launch);

void fake_driver_watch(void (*seen)(const struct fake_launch *launch))
{
    pthread_mutex_lock(&driver_lock);
    watcher = seen;
    pthread_mutex_unlock(&driver_lock);
}

static bool can_launch(const struct function *function, const struct launch_config *c)
{
    enum { MOST_THREADS = 1024, MOST_GROUPS = 65535 };
    const uint64_t threads = (uint64_t)c->threads[0] * c->threads[1] * c->threads[2];
    return threads >= 1 && threads <= MOST_THREADS && c->groups[0] >= 1 &&
           c->groups[0] <= INT32_MAX && c->groups[1] >= 1 && c->groups[1] <= MOST_GROUPS &&
           c->groups[2] >= 1 && c->groups[2] <= MOST_GROUPS &&
           c->shared <= (unsigned)function->dynamic_most;
}

static void submit_portable(struct stream *stream, const struct function *function,
                            unsigned groups, void **arguments)
{
    struct kernel_launch launch = { .run = function->kernel.run, .groups = groups };
    for (unsigned i = 0; i < function->kernel.pointers; i++)
        memcpy(&launch.pointers[i], arguments[i], sizeof launch.pointers[i]);
    memcpy(&launch.args, arguments[function->kernel.pointers], function->kernel.bytes);
    stream_submit_launch(stream, &launch);
}

static int submit(const struct function *function, const struct launch_config *c,
                  bool early, void **arguments)
{
    enum { GROUP_OF_PORTABLE_KERNELS = 256 };
    struct stream *stream = stream_of(c->stream);
    if (!stream)
        return INVALID_HANDLE;
    if (!can_launch(function, c))
        return INVALID_VALUE;
    pthread_mutex_lock(&driver_lock);
    void (*seen)(const struct fake_launch *launch) = watcher;
    pthread_mutex_unlock(&driver_lock);
    if (seen)
        seen(&(struct fake_launch){
            .kernel = function->name,
            .groups = { c->groups[0], c->groups[1], c->groups[2] },
            .threads = { c->threads[0], c->threads[1], c->threads[2] },
            .shared = c->shared,
            .early = early,
            .recorded = stream_records(stream),
            .arguments = arguments,
        });
    if (!function->kernel.run)
        return SUCCESS;
    if (c->groups[1] != 1 || c->groups[2] != 1 || c->shared ||
        c->threads[0] != GROUP_OF_PORTABLE_KERNELS || c->threads[1] != 1 ||
        c->threads[2] != 1)
        return INVALID_VALUE;
    submit_portable(stream, function, c->groups[0], arguments);
    return SUCCESS;
}

int fake_launch(void *handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                void *stream, void **arguments, void **extra)
{
    const struct launch_config config = { .groups = { grid_x, grid_y, grid_z },
                                          .threads = { block_x, block_y, block_z },
                                          .shared = shared,
                                          .stream = stream };
    return extra ? INVALID_VALUE : submit(handle, &config, false, arguments);
}

int fake_launch_ex(const struct launch_config *config, void *handle, void **arguments,
                   void **extra)
{
    if (extra || config->attribute_count != 1 || config->attributes->id != LAUNCH_EARLY)
        return INVALID_VALUE;
    return submit(handle, config, config->attributes->value, arguments);
}

static uint64_t bytes_of_element(int type)
{
    return type == TENSOR_F16 || type == TENSOR_BF16 ? 2 : 4;
}

/* Rows, and the outer axes, do not overlap. */
static bool are_strides(const uint64_t *extents, const uint64_t *strides, uint32_t rank,
                        uint64_t row_bytes)
{
    for (uint32_t i = 0; i + 1 < rank; i++)
        if (!strides[i] || strides[i] % 16 || strides[i] >> 40)
            return false;
    return rank == 1 || extents[1] == 1 || strides[0] >= row_bytes;
}

static bool is_box(const uint32_t *box, const uint32_t *element_strides, uint32_t rank,
                   uint64_t row_bytes, int swizzle)
{
    enum { MOST_BOX = 256, MOST_ELEMENT_STRIDE = 8, UNIT = 16 };
    static const uint64_t most_bytes[] = {
        [SWIZZLE_NONE] = UINT64_MAX, [SWIZZLE_64] = 64, [SWIZZLE_128] = 128
    };
    for (uint32_t i = 0; i < rank; i++)
        if (!box[i] || box[i] > MOST_BOX || !element_strides[i] ||
            element_strides[i] > MOST_ELEMENT_STRIDE)
            return false;
    return row_bytes % UNIT == 0 && row_bytes <= most_bytes[swizzle];
}

/* Checks the rules of the driver's documentation, and that no stride is 0, which drivers reject. */
int fake_tensor_map_encode(struct tensor_map *map, int type, uint32_t rank, void *address,
                           const uint64_t *extents, const uint64_t *strides,
                           const uint32_t *box, const uint32_t *element_strides,
                           int interleave, int swizzle, int promotion, int fill)
{
    enum { MOST_RANK = 5 };
    const uint64_t bytes = bytes_of_element(type);
    (void)promotion;
    if (rank < 1 || rank > MOST_RANK || (uintptr_t)address % 16 || interleave || fill ||
        swizzle < 0 || swizzle > SWIZZLE_128)
        return INVALID_VALUE;
    for (uint32_t i = 0; i < rank; i++)
        if (!extents[i] || extents[i] > UINT64_C(1) << 32)
            return INVALID_VALUE;
    if (!are_strides(extents, strides, rank, extents[0] * bytes) ||
        !is_box(box, element_strides, rank, box[0] * bytes, swizzle))
        return INVALID_VALUE;
    memset(map, 0, sizeof *map);
    map->opaque[FAKE_MAP_ADDRESS] = (uint64_t)(uintptr_t)address;
    map->opaque[FAKE_MAP_ROW_BYTES] = extents[0] * bytes;
    map->opaque[FAKE_MAP_TYPE] = (uint64_t)type;
    return SUCCESS;
}
