/* SPDX-License-Identifier: MIT */
/* direct.c - see direct.h. */
#define _POSIX_C_SOURCE 200809L

#include "direct.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void host_log(void *instance, int32_t level, const char *text)
{
    (void)instance, (void)level, (void)text;
}

static int32_t host_fail(void *instance, int32_t status, const char *text)
{
    struct direct *direct = instance;
    snprintf(direct->why, sizeof direct->why, "%s", text);
    return status;
}

/* Memory is not limited. */
static int32_t host_count(void *instance, void *device, int64_t bytes)
{
    (void)instance, (void)device, (void)bytes;
    return HW_OK;
}

/* The symbol as a function. ISO C has no cast for this; POSIX guarantees that it works. */
static int32_t (*entry_of(void *library))(const struct hw_host *, struct hw_plugin *)
{
    int32_t (*entry)(const struct hw_host *, struct hw_plugin *) = NULL;
    void *symbol = dlsym(library, "hw_plugin_entry");
    memcpy(&entry, &symbol, sizeof entry);
    return entry;
}

bool direct_load(struct direct *direct, const char *path)
{
    *direct = (struct direct){ .why = "the plugin gave no reason" };
    if (!*path) { /* dlopen("") would open this program */
        snprintf(direct->why, sizeof direct->why, "the device has no plugin file");
        return false;
    }
    direct->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!direct->library)
        snprintf(direct->why, sizeof direct->why, "%s", dlerror());
    return direct->library != NULL;
}

bool direct_start(struct direct *direct, int32_t index, uint32_t threads)
{
    int32_t (*entry)(const struct hw_host *,
                     struct hw_plugin *) = entry_of(direct->library);
    const struct hw_queue_desc desc = { .size = sizeof desc };

    direct->host = (struct hw_host){ .size = sizeof direct->host,
                                     .abi_min = HW_ABI_OLDEST,
                                     .abi_max = HW_ABI_VERSION,
                                     .instance = direct,
                                     .log = host_log,
                                     .fail = host_fail,
                                     .cache_dir = "",
                                     .kernel = "",
                                     .threads = threads,
                                     .abi = HW_ABI_VERSION,
                                     .count_memory = host_count };
    direct->table = (struct hw_plugin){ .size = sizeof direct->table };
    if (!entry)
        snprintf(direct->why, sizeof direct->why, "the file has no hw_plugin_entry");
    return entry && !entry(&direct->host, &direct->table) &&
           !direct->table.open(&direct->host, &direct->self) &&
           !direct->table.device_open(direct->self, index, &direct->device) &&
           !direct->table.queue_open(direct->device, &desc, &direct->queue);
}

void direct_close(struct direct *direct)
{
    if (direct->queue)
        direct->table.queue_close(direct->queue);
    if (direct->device)
        direct->table.device_close(direct->device);
    if (direct->self)
        direct->table.close(direct->self);
    if (direct->library)
        dlclose(direct->library);
}
