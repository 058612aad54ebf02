/* SPDX-License-Identifier: MIT */
/* The instance, and the table of functions. */
#include "opencl.h"

#include <build_stamp.h>
#include <stdlib.h>

static const struct symbol symbols[] = {
#define REQUIRED(result, name, arguments, names) SYMBOL(struct opencl, name, names, true)
#define OPTIONAL(result, name, arguments, names) SYMBOL(struct opencl, name, names, false)
#include "opencl.def"
};

#define REMEDY "install the OpenCL driver of your device's vendor"

#if defined(_WIN32)
#define LIBRARY "OpenCL.dll"
#elif defined(__APPLE__)
#define LIBRARY "/System/Library/Frameworks/OpenCL.framework/OpenCL"
#else
#define LIBRARY "libOpenCL.so.1"
#endif

static const struct symbol_library library = {
    .files = LIBRARY,
    .symbols = symbols,
    .count = sizeof symbols / sizeof symbols[0],
};

int32_t plugin_open(const struct hw_host *host, void **self)
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

void plugin_close(void *self)
{
    free(self);
}

static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    (void)host;
    table->vendor = "";
    table->version = HW_BUILD_STAMP;
    slots_fill(table);
    slots_fill_events(table);
    slots_fill_graphs(table);
    slots_fill_kernels(table);
    slots_fill_handles(table);
    return HW_OK;
}

/* A module for one vendor is built from the same files. */
#ifdef OPENCL_VENDOR
#define NAME  "opencl_" OPENCL_VENDOR
#define TITLE "OpenCL, devices of " OPENCL_VENDOR
#else
#define NAME  "opencl"
#define TITLE "OpenCL"
#endif

_Static_assert(sizeof TITLE <= 32, "hw refuses a manifest with a longer title");

HW_PLUGIN(NAME,
          "title=" TITLE "\nrank=60\nneeds=" LIBRARY "\n"
          "driver=/etc/OpenCL/vendors\ndriver=/sys/module/nvidia/version\n"
          "variable=OCL_*\nvariable=OPENCL_*\nvariable=CL_*\nvariable=POCL_*\n"
          "variable=RUSTICL_*\nvariable=CUDA_*\nvariable=ROCR_*\nvariable=GPU_*\n"
          "variable=HSA_*\nvariable=ZE_*\n"
          "remedy=" REMEDY "\nbuild=" HW_BUILD_STAMP "\n",
          fill)
