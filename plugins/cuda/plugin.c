/* SPDX-License-Identifier: MIT */
/* The instance, and the table of functions. */
#include "cuda.h"

#include "common/library.h"

#include <build_stamp.h>
#include <stdlib.h>

static const struct symbol symbols[] = {
#define REQUIRED(result, name, arguments, names) SYMBOL(struct driver, name, names, true)
#define OPTIONAL(result, name, arguments, names) SYMBOL(struct driver, name, names, false)
#include "cuda.def"
};

#define REMEDY                                                                             \
    "install the NVIDIA driver, version 470 or later (for all kernels, " TUNED_DRIVER ")"

#if defined(_WIN32)
#define LIBRARY "nvcuda.dll"
#else
#define LIBRARY "libcuda.so.1"
#endif

/* The version of CUDA that the prototypes of cuda.def have. Functions that came later still have
 * their first form. */
enum { LISTED_VERSION = 12000 };

/* For "cuMemAlloc_v2" in the list, asks the driver for the "cuMemAlloc" of that version. The driver
 * does not answer for later functions. */
static void *find_function(void *driver, const char *name)
{
    void *symbol = library_symbol(driver, "cuGetProcAddress_v2"), *found = NULL;
    struct driver cuda;
    char base[64];
    int status;
    snprintf(base, sizeof base, "%s", name);
    char *form = strstr(base, "_v");
    if (form)
        *form = '\0';
    memcpy(&cuda.find_function, &symbol, sizeof symbol);
    if (!symbol ||
        cuda.find_function(base, &found, LISTED_VERSION, FIND_LEGACY_STREAM, &status))
        return NULL;
    return found;
}

static const struct symbol_library library = {
    .files = LIBRARY,
    .symbols = symbols,
    .count = sizeof symbols / sizeof symbols[0],
    .find = find_function,
};

static int32_t start(struct plugin *plugin)
{
    int32_t status = symbols_load(plugin->host, &library, &plugin->cuda);
    if (status)
        return status;
    status = answer_early(plugin, plugin->cuda.init(0), "start the driver");
    if (status)
        return status;
    status = answer_early(plugin, plugin->cuda.driver_version(&plugin->supported),
                          "read the driver's version");
    if (status)
        return status;
    snprintf(plugin->version, sizeof plugin->version, "CUDA %d.%d",
             plugin->supported / 1000, plugin->supported % 1000 / 10);
    plugin->machine_code = plugin->supported / 1000 >= MACHINE_CODE_CUDA / 1000;
    plugin->translated_code = plugin->supported / 1000 >= TRANSLATED_CODE_CUDA / 1000;
    return devices_find(plugin);
}

void plugin_close(void *self)
{
    struct plugin *plugin = self;
    pthread_mutex_destroy(&plugin->lock);
    free(plugin);
}

int32_t plugin_open(const struct hw_host *host, void **self)
{
    struct plugin *plugin = calloc(1, sizeof *plugin);
    if (!plugin)
        return hw_fail(host, HW_NO_MEMORY, "out of memory");
    plugin->host = host;
    pthread_mutex_init(&plugin->lock, NULL);
    const int32_t status = start(plugin);
    if (status)
        plugin_close(plugin);
    else
        *self = plugin;
    return status;
}

static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    (void)host;
    table->vendor = "NVIDIA";
    table->version = HW_BUILD_STAMP;
    slots_fill(table);
    slots_fill_events(table);
    slots_fill_graphs(table);
    slots_fill_kernels(table);
    slots_fill_handles(table);
    return HW_OK;
}

HW_PLUGIN(
    "cuda",
    "title=CUDA\nvendor=NVIDIA\nrank=10\nmatch=pci:10de:*\nmatch=node:/dev/nvidiactl\n"
    "match=node:/dev/nvhost-ctrl-gpu\nmatch=node:/dev/dxg\nneeds=" LIBRARY "\n"
    "driver=/sys/module/nvidia/version\nvariable=CUDA_*\n"
    "remedy=" REMEDY "\nbuild=" HW_BUILD_STAMP "\n",
    fill)
