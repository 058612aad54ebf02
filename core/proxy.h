/* SPDX-License-Identifier: MIT */
/* proxy.h - the contract between the library and a proxy: a shared object whose table stands in for
 * the table of a plugin, and whose driver is that plugin. A proxy is of the library's build and is
 * installed beside hw-probe. It exports hw_proxy_entry instead of hw_plugin_entry, so it is no
 * backend. load/proxy.c loads it. */
#ifndef HW_PROXY_H
#define HW_PROXY_H

#include <hw/plugin.h>

#include <stdbool.h>

struct proxy {
    /* ---- set by the library ---- */

    const char *stamp; /* the build of the library, to be compared first */
    const char *name;  /* of the backend */
    /* The command that starts the plugin in hw-worker: load/probe.h. */
    char *const *arguments;
    uint32_t call_seconds;  /* that one call may take; 0: no limit */
    uint32_t close_seconds; /* HW_PROBE_TIMEOUT */
    /* Takes the reply of hw-worker about its start; `stopped`: there is no whole one, because
     * somebody has stopped hw-worker. Returns HW_OK if the plugin has started. Otherwise the
     * library has noted the reason, and the entry returns this status. */
    int32_t (*replied)(void *instance, const unsigned char *reply, size_t size,
                       bool stopped);

    /* ---- set by the entry ---- */

    void *self; /* of the proxy; the table's open() gets it in *self, too */
    /* The number of the plugin's process, and why it has ended; NULL: it runs. */
    const char *(*ended)(void *self, int64_t *process);
    /* Called last. The table's close() was called before if its open() had succeeded. */
    void (*release)(void *self);
};

/* Fills the empty table like the plugin's own entry; table->size is set. HW_ABI: the proxy is of
 * another build. HW_NO_MEMORY: a later call may succeed. */
typedef int32_t proxy_entry(const struct hw_host *host, struct proxy *proxy,
                            struct hw_plugin *table);
HW_EXPORT proxy_entry hw_proxy_entry;

#endif
