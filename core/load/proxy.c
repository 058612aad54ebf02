/* SPDX-License-Identifier: MIT */
/* proxy.c - the stage bind of a plugin that HW_WORKER names: loads a proxy in its place
 * (core/proxy.h). The table of the proxy is checked like the table of any plugin (bind.c). */
#include "load/proxy.h"

#include "base/message.h"
#include "load/library.h"
#include "load/probe.h"

#include <build_stamp.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define PROXY  "hw_worker.so"
#define SHADOW "hw_shadow.so"

/* Loads a shared object from the place of hw-probe. It stays loaded. NULL: `why` says why not.
 * `task` is for messages. */
static void *object_load(const struct hw_context *context, const char *file,
                         const char *task, struct distrust *why)
{
    char *path = helper_path(context, file, task, why);
    void *object = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
    if (path && !object) {
        const char *error = dlerror();
        why->reason = loader_lacks_memory(error) ? REASON_NO_MEMORY : REASON_NO_HELPER;
        snprintf(why->message, sizeof why->message, "%s, which %s, cannot be loaded: %s",
                 path, task, error);
    }
    free(path);
    return object;
}

/* ---- worker mode ---- */

static int32_t proxy_replied(void *instance, const unsigned char *reply, size_t size,
                             bool stopped)
{
    const struct plugin *plugin = instance;
    return probe_replied(plugin->binding, reply, size, stopped) ? HW_OK : HW_NO_DEVICE;
}

static bool proxy_start(struct plugin *plugin, void *library, struct hw_plugin *table)
{
    struct candidate *candidate = plugin->binding;
    const struct settings *settings = &plugin->context->settings;
    char **command = probe_command(plugin->context, candidate);
    proxy_entry *entry;
    *(void **)&entry = dlsym(library, "hw_proxy_entry");
    plugin->proxy = (struct proxy){ .stamp = HW_BUILD_STAMP,
                                    .name = candidate->name,
                                    .arguments = command,
                                    .call_seconds = plugin->proxy.call_seconds,
                                    .close_seconds = settings->probe_timeout,
                                    .replied = proxy_replied };
    int32_t status = HW_ABI;
    plugin_message_clear();
    if (command && entry)
        status = entry(&plugin->host, &plugin->proxy, table);
    probe_command_free(command);
    plugin->proxy.arguments = NULL;
    plugin->self = plugin->proxy.self;
    if (status == HW_ABI && !candidate->reason)
        stop(candidate, REASON_NO_HELPER,
             PROXY " is of another build than the library in this process");
    else if (status && !candidate->reason)
        stop(candidate, status == HW_NO_MEMORY ? REASON_NO_MEMORY : REASON_NO_HELPER, "%s",
             plugin_message());
    return !status;
}

bool proxy_enter(struct plugin *plugin, struct hw_plugin *table)
{
    struct candidate *candidate = plugin->binding;
    struct distrust why;
    void *library = object_load(plugin->context, PROXY, "runs plugins", &why);
    if (!library)
        stop(candidate, why.reason, "%s", why.message);
    const bool good = library && proxy_start(plugin, library, table);
    if (candidate->reason == REASON_NO_HELPER)
        set_remedy(candidate, "Install the library again, or take the plugin out of "
                              "HW_WORKER");
    return good;
}

void proxy_release(struct plugin *plugin)
{
    if (plugin->proxy.self)
        plugin->proxy.release(plugin->proxy.self);
    plugin->proxy.self = NULL;
}

void proxy_explain(struct json *json, const struct plugin *plugin)
{
    if (!plugin || !plugin->out_of_process) {
        json_string(json, "worker", NULL);
        return;
    }
    int64_t process = 0;
    const bool bound = plugin_is_bound(plugin);
    const char *why = bound ? plugin->proxy.ended(plugin->proxy.self, &process) : NULL;
    json_open(json, "worker", '{');
    json_string(json, "state", why ? "ended" : bound ? "running" : "not started");
    json_number(json, "process", (uint64_t)process);
    json_string(json, "why", why);
    json_close(json, '}');
}

/* ---- HW_SHADOW ---- */

enum hw_status shadow_load(struct hw_context *context)
{
    struct distrust why = { .reason = REASON_NO_HELPER,
                            .message = SHADOW
                            " is of another build than the library in this process" };
    void *object = object_load(context, SHADOW, "judges results", &why);
    shadow_entry *entry = NULL;
    if (object)
        *(void **)&entry = dlsym(object, "hw_shadow_entry");
    if (entry && !entry(HW_BUILD_STAMP, &context->shadow))
        return HW_OK;
    return fail(why.reason == REASON_NO_MEMORY ? HW_NO_MEMORY : HW_NO_DEVICE,
                "HW_SHADOW: %s. Remedy: Install the library again, or unset HW_SHADOW",
                why.message);
}
