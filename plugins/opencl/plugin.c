/* SPDX-License-Identifier: MIT */
/* The instance, and the table of what the plugin does. */
#include "opencl.h"

#include <stdlib.h>

static const struct symbol symbols[] = {
#define REQUIRED(result, name, arguments, names) SYMBOL(struct opencl, name, names, true)
#include "opencl.def"
};

#define REMEDY "install the OpenCL driver of your device's vendor"

static const struct symbol_library library = {
    .files = "libOpenCL.so.1",
    .remedy = REMEDY,
    .symbols = symbols,
    .count = sizeof symbols / sizeof symbols[0],
};

int32_t too_new(const struct hw_host *host, const char *what)
{
    return hw_fail(host, HW_UNSUPPORTED,
                   "%s: sets a flag or field that this version of the plugin does not "
                   "support; update the plugin",
                   what);
}

static int32_t plugin_open(const struct hw_host *host, void **self)
{
    struct plugin *plugin = calloc(1, sizeof *plugin);
    if (!plugin)
        return hw_fail(host, HW_NO_MEMORY, "out of memory");
    plugin->host = host;
    int32_t status = symbols_load(host, &library, &plugin->cl);
    if (!status)
        status = devices_find(plugin);
    if (status)
        free(plugin);
    else
        *self = plugin;
    return status;
}

static void plugin_close(void *self)
{
    free(self);
}

static const uint32_t op_sizes[] = HW_OP_SIZES;

static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    (void)host;
    table->vendor = "";
    table->version = HW_BUILD_STAMP;
    table->ops = &launch_ops;
    table->op_sizes = op_sizes;
    table->op_count = HW_OP_COUNT;
    table->open = plugin_open;
    table->close = plugin_close;
    table->device_count = device_count;
    table->device_info = device_info;
    table->device_open = device_open;
    table->device_close = device_close;
    table->queue_open = queue_open;
    table->queue_import = queue_import;
    table->queue_close = queue_close;
    table->queue_wait = queue_wait;
    table->buffer_alloc = memory_alloc;
    table->buffer_free = memory_free;
    table->buffer_import = memory_import;
    table->transfer = memory_transfer;
    table->event_create = event_create;
    table->event_destroy = event_destroy;
    table->event_record = event_record;
    table->event_wait = event_wait;
    table->event_sync = event_sync;
    table->event_query = event_query;
    table->event_callback = event_callback;
    table->event_elapsed = event_elapsed;
    table->supports = launch_supports;
    table->kernel_info = device_kernel;
    return HW_OK;
}

HW_PLUGIN("opencl",
          "title=OpenCL\nrank=60\nneeds=libOpenCL.so.1\nremedy=" REMEDY
          "\nbuild=" HW_BUILD_STAMP "\n",
          fill)
