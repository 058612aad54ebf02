/* SPDX-License-Identifier: MIT */
/* bind.c - the stage bind: loads a plugin into the process and copies its table. */
#define _GNU_SOURCE
#include "load/bind.h"

#include "base/message.h"
#include "base/text.h"
#include "load/defaults.h"
#include "load/library.h"
#include "load/proxy.h"
#include "memory/pool.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* ---- the host, as the plugin sees it ---- */

static void host_log(void *instance, int32_t level, const char *text)
{
    struct plugin *plugin = instance;
    log_line(&plugin->context->log, level, "%s: %s", plugin->candidate->name,
             text ? text : "");
}

static int32_t host_fail(void *instance, int32_t status, const char *text)
{
    (void)instance;
    return plugin_message_set(status, text);
}

/* Adds to the device's pool if the plugin's handle of the device is `impl`; else returns false. */
static bool count_on(struct hw_device *device, const void *impl, int64_t bytes,
                     int32_t *status)
{
    pthread_mutex_lock(&device->lock);
    const bool is = device->pool && device->impl == impl;
    if (is)
        *status = (int32_t)pool_count(device->pool, bytes);
    pthread_mutex_unlock(&device->lock);
    return is;
}

static int32_t host_count_memory(void *instance, void *impl, int64_t bytes)
{
    const struct plugin *plugin = instance;
    int32_t status = HW_OK;
    for (struct hw_device *device = plugin->devices; device; device = device->next)
        if (count_on(device, impl, bytes, &status))
            return status ? plugin_message_set(status, hw_message()) : HW_OK;
    return plugin_message_set(HW_INVALID, "count_memory: this device is not open");
}

static void host_leave_out(void *instance, const char *name, const char *why)
{
    struct plugin *plugin = instance;
    struct candidate *candidate = plugin->binding;
    const char *device = name && *name ? name : "a device",
               *text = why && *why ? why : "the plugin does not say why";
    log_line(&plugin->context->log, HW_LOG_INFO, "%s: %s is left out: %s",
             plugin->candidate->name, device, text);
    left_out_add(&candidate->left_out, &candidate->left_out_count, device, text);
}

/* The plugin's directory in the cache, or "". The plugin creates the directory when it first writes
 * there. NULL if memory runs out. */
static char *cache_directory(const struct plugin *plugin)
{
    const char *cache = plugin->context->settings.value[SETTING_cache_dir].text;
    return *cache == '/' ? text_format("%s/%s", cache, plugin->candidate->name)
                         : strdup("");
}

/* Fills plugin->host only once, even if the plugin is loaded again after memory had run out: parts
 * of the plugin may still run and read it. */
static bool fill_host(struct plugin *plugin)
{
    const struct settings *settings = &plugin->context->settings;
    if (plugin->host.size)
        return true;
    if (!(plugin->cache_dir = cache_directory(plugin)))
        return stop(plugin->binding, REASON_NO_MEMORY, NULL);
    plugin->host = (struct hw_host){
        .size = sizeof plugin->host,
        .abi_min = HW_ABI_OLDEST,
        .abi_max = HW_ABI_VERSION,
        .precision = (uint32_t)settings->precision,
        .instance = plugin,
        .log = host_log,
        .fail = host_fail,
        .memory_limit = settings->memory_limit,
        .cache_dir = plugin->cache_dir,
        .kernel = settings->value[SETTING_kernel].text,
        .threads = settings->threads,
        .count_memory = host_count_memory,
        .leave_out = host_leave_out,
    };
    return true;
}

/* ---- the plugin's table ---- */

#define GUARD_BYTES 1024
#define GUARD       0xa5

/* Guard bytes follow the table that the plugin fills. */
struct offer {
    struct hw_plugin table;
    unsigned char guard[GUARD_BYTES];
};

static bool offer_overrun(const struct offer *offer)
{
    for (size_t i = 0; i < GUARD_BYTES; i++)
        if (offer->guard[i] != GUARD)
            return true;
    return false;
}

/* The size of a table that ends with the last required slot. */
#define OLDEST_TABLE (offsetof(struct hw_plugin, transfer) + sizeof(void (*)(void)))

/* The first required member that is missing, or NULL. */
static const char *missing_slot(const struct hw_plugin *table)
{
#define REQUIRED(slot)                                                                     \
    if (!table->slot)                                                                      \
        return #slot;
    REQUIRED(name)
    REQUIRED(vendor)
    REQUIRED(version)
    REQUIRED(ops)
    REQUIRED(op_sizes)
    REQUIRED(open)
    REQUIRED(close)
    REQUIRED(device_count)
    REQUIRED(device_info)
    REQUIRED(device_open)
    REQUIRED(device_close)
    REQUIRED(queue_open)
    REQUIRED(queue_close)
    REQUIRED(queue_wait)
    REQUIRED(buffer_alloc)
    REQUIRED(buffer_free)
    REQUIRED(transfer)
#undef REQUIRED
    return NULL;
}

/* A size must not end within a slot. */
static bool whole_slots(size_t bytes)
{
    return bytes % sizeof(void (*)(void)) == 0;
}

#define MAX_OPS 4096

/* Copies the op table, which the plugin owns. Its size is trusted within limits. */
static bool take_ops(struct plugin *plugin)
{
    struct candidate *candidate = plugin->binding;
    const struct hw_plugin_ops *given = plugin->table.ops;
    if (given->size < offsetof(struct hw_plugin_ops, matmul) || !whole_slots(given->size) ||
        given->size >
            offsetof(struct hw_plugin_ops, matmul) + MAX_OPS * sizeof(void (*)(void)))
        return stop(candidate, REASON_BAD_TABLE,
                    "its op table has an invalid size of %u bytes", (unsigned)given->size);
    size_t bytes = given->size < sizeof plugin->ops ? given->size : sizeof plugin->ops;
    memcpy(&plugin->ops, given, bytes);
    plugin->ops.size = sizeof plugin->ops;

    if (plugin->table.op_count == 0 || plugin->table.op_count > MAX_OPS)
        return stop(candidate, REASON_BAD_TABLE,
                    "it states the sizes of %u ops, an impossible count",
                    (unsigned)plugin->table.op_count);
    uint32_t count = plugin->table.op_count < HW_OP_COUNT ? plugin->table.op_count
                                                          : HW_OP_COUNT;
    for (uint32_t i = 0; i < count; i++)
        if (plugin->table.op_sizes[i] < sizeof(struct hw_tensor) ||
            plugin->table.op_sizes[i] > MAX_OP_BYTES)
            return stop(candidate, REASON_BAD_TABLE,
                        "it states an impossible size of the struct of %s, %u bytes",
                        hw_op_name(i), (unsigned)plugin->table.op_sizes[i]);
            /* The plugin does not have ops that were added after it was built. */
#define X(NAME, name)                                                                      \
    if (HW_OP_##NAME >= count)                                                             \
        plugin->ops.name = NULL;
    HW_OPS(X)
#undef X
    return true;
}

static bool is_bounded(const char *text, size_t limit)
{
    return memchr(text, '\0', limit) != NULL;
}

/* Copies the part of the table that the plugin wrote and this library knows. */
static bool take_table(struct plugin *plugin, const struct hw_plugin *given)
{
    struct candidate *candidate = plugin->binding;
    if (given->size < OLDEST_TABLE || given->size > sizeof plugin->table ||
        !whole_slots(given->size))
        return stop(candidate, REASON_BAD_TABLE,
                    "its table has %u bytes; it must have %zu to %zu",
                    (unsigned)given->size, OLDEST_TABLE, sizeof plugin->table);
    memcpy(&plugin->table, given, given->size);
    uint32_t oldest = HW_ABI_OLDEST, newest = HW_ABI_VERSION;
    if (plugin->table.abi < oldest || plugin->table.abi > newest)
        return stop(candidate, REASON_BAD_TABLE,
                    "it chose ABI version %u; this library supports %u to %u",
                    (unsigned)plugin->table.abi, (unsigned)oldest, (unsigned)newest);
    const char *slot = missing_slot(&plugin->table);
    if (slot)
        return stop(candidate, REASON_BAD_TABLE, "its table has no %s", slot);
    if (!is_bounded(plugin->table.name, NAME_SIZE) ||
        strcmp(plugin->table.name, candidate->name) != 0)
        return stop(candidate, REASON_BAD_TABLE,
                    "its table has the name \"%.*s\", its manifest \"%s\"", NAME_SIZE,
                    plugin->table.name, candidate->name);
    if (!is_bounded(plugin->table.vendor, 256) || !is_bounded(plugin->table.version, 256))
        return stop(candidate, REASON_BAD_TABLE,
                    "its vendor or version string is not NUL-terminated");
    if (!take_ops(plugin))
        return false;
    defaults_fill(&plugin->table, &plugin->ops);
    plugin->table.size = sizeof plugin->table;
    plugin->host.abi = plugin->table.abi;
    return true;
}

static bool plugin_enter(struct plugin *plugin)
{
    typedef int32_t entry_fn(const struct hw_host *host, struct hw_plugin *table);
    struct candidate *candidate = plugin->binding;
    void *symbol = dlsym(plugin->library, "hw_plugin_entry");
    if (!symbol)
        return stop(candidate, REASON_NO_ENTRY, NULL);
    if (!library_is_code(symbol))
        return stop(candidate, REASON_BAD_ENTRY, NULL);
    entry_fn *entry;
    *(void **)&entry = symbol;

    struct offer offer;
    memset(&offer.table, 0, sizeof offer.table);
    memset(offer.guard, GUARD, sizeof offer.guard);
    offer.table.size = sizeof offer.table;
    plugin_message_clear();
    int32_t status = entry(&plugin->host, &offer.table);
    if (offer_overrun(&offer))
        return stop(candidate, REASON_BAD_TABLE, "it wrote past the end of its table");
    if (status)
        return stop(candidate, REASON_BAD_TABLE, "its hw_plugin_entry returned %s: %s",
                    hw_status_name(status), plugin_message());
    return take_table(plugin, &offer.table);
}

static bool enter_proxy(struct plugin *plugin)
{
    struct hw_plugin table = { .size = sizeof table };
    return proxy_enter(plugin, &table) && take_table(plugin, &table);
}

static bool enter_here(struct plugin *plugin)
{
    plugin->library = library_load(plugin->binding);
    return plugin->library && plugin_enter(plugin);
}

/* ---- loading and closing ---- */

struct plugin *plugin_create(struct hw_context *context, struct candidate *candidate)
{
    struct plugin *plugin = calloc(1, sizeof *plugin);
    if (!plugin) {
        stop(candidate, REASON_NO_MEMORY, NULL);
        return NULL;
    }
    plugin->context = context;
    plugin->latest = plugin->candidate = plugin->binding = candidate;
    plugin->verdict = candidate->verdict;
    plugin->rank = candidate->manifest->rank;
    plugin->out_of_process = runs_out_of_process(context, candidate->name,
                                                 &plugin->proxy.call_seconds);
    return plugin;
}

bool plugin_load(struct hw_context *context, struct candidate *candidate)
{
    struct plugin *plugin = candidate->plugin;
    (void)context;
    if (!fill_host(plugin))
        return false;
    return plugin->out_of_process ? enter_proxy(plugin) : enter_here(plugin);
}

/* The code stays loaded: the plugin or the vendor's libraries may have left threads, thread-local
 * destructors and handlers. */
void plugin_stop(struct plugin *plugin)
{
    if (plugin->started)
        plugin->table.close(plugin->self);
    plugin->started = false;
    proxy_release(plugin);
}

void plugin_close(struct plugin *plugin)
{
    plugin_stop(plugin);
    while (plugin->bind_results) {
        struct candidate *result = plugin->bind_results;
        plugin->bind_results = result->next;
        candidate_free(result);
    }
    free(plugin->cache_dir);
    free(plugin);
}
