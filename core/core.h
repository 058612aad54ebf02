/* SPDX-License-Identifier: MIT */
/* core.h - the structs that all rooms of the library share: contexts, plugins, devices.
 *
 * From a call to the device's work; these rooms see nothing of the rooms below:
 *   call/      the ops: checks, remembered calls, queues, graphs, kernels of the application
 *   route/     where a call goes: host memory, fallback, ops that a device does not get, copies
 *   memory/    devices, pools, buffers, tensors, transfers
 *
 * From a file in a directory to a device:
 *   settings/  variables and the configuration file
 *   load/      the stages of a plugin's file, one file for each
 *   cache/     verdicts of earlier starts
 *   open/      hw_open(): the ladder of stages, selection, the report
 *
 * Below all: base/ (messages, log, JSON, text, the operating system), object/ (the beginning of a
 * plugin's file, and its manifest).
 *
 * Nothing here knows a vendor. */
#ifndef HW_CORE_H
#define HW_CORE_H

#include "base/log.h"
#include "judge.h"
#include "proxy.h"
#include "settings.h"

#include <hw/interop.h>
#include <hw/plugin.h>
#include <hw/report.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The largest struct of an op, in the library and in any plugin. */
#define MAX_OP_BYTES 4096

/* Whether a plugin has been loaded and started in this process. */
enum bound { BOUND_NOT_YET, BOUND, BOUND_NEVER };

/* A plugin with devices. If a verdict lists its devices, the plugin is loaded and started only when
 * one of them is first used: see plugin_bind(). Its library is never unloaded: see
 * plugin_close(). */
struct plugin {
    struct hw_context *context;
    struct candidate *candidate; /* open/candidate.h: the file it came from */
    _Atomic int32_t bound;       /* enum bound; the members below need BOUND */
    struct candidate *binding; /* the candidate being bound, for the thread that does so */
    /* The file when the plugin was last tried or bound; with BOUND_NEVER it has the reason. */
    const struct candidate *_Atomic latest;
    struct candidate *bind_results; /* the results of all binds, the latest first */
    /* The latest result of a probe. Results of later tests are added under the context's lock.
     * NULL: the plugin was not tried in another process. */
    struct verdict *_Atomic verdict;
    bool out_of_process; /* HW_WORKER names it: it is loaded in a process of its own */
    struct proxy proxy;  /* load/proxy.h: only if so */
    void *library;       /* otherwise: from dlopen() */
    void *self;          /* from table.open() */
    bool started;        /* open() has succeeded, so close() must be called */
    struct hw_host host;
    char *cache_dir;          /* for host.cache_dir; "": no cache */
    struct hw_plugin table;   /* empty slots are filled: see load/defaults.h */
    struct hw_plugin_ops ops; /* likewise */
    int32_t rank;             /* this and the members below are always valid */
    struct hw_device *devices;
    struct plugin *next; /* in struct catalog */
};

static inline bool plugin_is_bound(const struct plugin *plugin)
{
    return atomic_load_explicit(&plugin->bound, memory_order_acquire) == BOUND;
}

/* Whether the plugin may still be used. */
static inline bool plugin_is_alive(const struct plugin *plugin)
{
    return atomic_load_explicit(&plugin->bound, memory_order_acquire) != BOUND_NEVER;
}

/* A device: listed when its plugin is probed, woken (device_open) when first used. */
struct hw_device {
    struct hw_context *context;
    struct plugin *plugin;
    int32_t index; /* the plugin's */
    char name[48]; /* "cpu:0" */
    /* As of the listing; memory_free is 0 if another process tried the plugin. */
    struct hw_device_info info;
    pthread_mutex_t lock;     /* protects the members below while the device is woken */
    void *_Atomic impl;       /* the plugin's device; NULL: asleep; read at any time */
    struct pool *pool;        /* memory/pool.h; made when the device wakes */
    _Atomic int32_t lost;     /* HW_LOST once the device is lost */
    char *_Atomic why_lost;   /* the plugin's message about that; NULL: none yet */
    _Atomic uint64_t changes; /* see device_changed() */
    /* Ops that are untested, or that the device does not compute: see route/op_state.h. */
    _Atomic uint32_t op_flags;
    struct op_state *op_states; /* protected by the context's lock */
    pthread_mutex_t op_testing; /* held while an op is tested; taken before that lock */
    _Atomic uint32_t chosen;    /* bits of enum chosen: who chose the device */
    /* By op: the counts of the device's closed queues, for hw_explain(). NULL: no queue was opened.
     * Protected by the context's lock. */
    struct call_counts *closed_counts;
    struct hw_device *next; /* of the plugin */
};

/* How the application got a device. A bit that is set stays set. */
enum chosen {
    CHOSEN_BY_DEFAULT = 1, /* hw_device_default() returned it */
    CHOSEN_BY_NAME = 2     /* the settings, hw_device_find() or hw_device_import() */
};

/* A device that is not selected, and why. */
struct unselected {
    struct hw_device *device;
    char *why;
};

/* The result of hw_open() or of a later hw_rescan(): the files, the usable plugins and the selected
 * devices. A catalog does not change once it is published: see catalog_of(). All catalogs are kept
 * until hw_close(), because any thread may be reading one. */
struct catalog {
    struct catalog *previous; /* for hw_close(), which frees all */
    struct hw_context *context;
    struct directory *directories; /* load/scan.h: the directories that were searched */
    struct candidate *candidates;  /* open/candidate.h: the files in these directories */
    struct inventory *inventory;   /* load/match.h: the hardware; NULL if not yet read */
    struct plugin *plugins; /* the latest first, then the plugins of older catalogs */
    /* All devices that were ever selected, by the application's index. */
    struct hw_device **devices;
    uint32_t device_count;
    /* The selected devices in order of preference, without the devices of replaced plugins. */
    struct hw_device **order;
    uint32_t order_count;
    struct unselected *unselected; /* excluded by the settings, or shadowed */
    uint32_t unselected_count;
    /* With HW_OPEN_ANYWAY: the error that hw_open() would have returned; or NULL. */
    char *error;
    char *key; /* cache/key.c: the part of a verdict's key that all plugins share */
    /* Memory or descriptors ran out, so the catalog may be incomplete. */
    bool shortage;
};

struct op_form;

struct hw_context {
    struct settings settings;
    struct log log;
    hw_start_fn start_fn;
    void *start_user;
    /* The two ways from a call back to the plugin's file, set by hw_open(). */
    enum hw_status (*bind)(struct plugin *plugin); /* open/first_use.h */
    void (*test)(struct hw_device *device,
                 const struct op_form *form); /* open/admission.h */
    /* In hw-probe and hw-worker: looks at a plugin between loading and starting it. */
    bool (*loaded_fn)(struct hw_context *context, struct candidate *candidate);
    uint32_t flags;
    uint32_t generation;  /* of the process: see base/fork.h */
    pthread_mutex_t lock; /* protects the lists of work: queues, buffers, events, graphs */
    pthread_mutex_t binding;       /* held by the thread that binds a plugin */
    pthread_mutex_t looking;       /* held by the thread in hw_rescan() */
    struct catalog *_Atomic found; /* the latest: see catalog_of() */
    /* These five members do not change once hw_open() has returned. */
    struct hw_device
        *reference; /* the selected device of this build's CPU plugin; or NULL */
    struct shadow_judge shadow; /* with HW_SHADOW: from hw_shadow.so */
    uint64_t open_microseconds; /* how long hw_open() took */
    /* With HW_OPEN_ANYWAY: the error in the settings that hw_open() would have returned. */
    char *open_error;
    struct selection *selection; /* open/select.h: the lists of the settings */
    atomic_bool cache_told;  /* cache/cache.c: the log has said why verdicts are not kept */
    struct hw_queue *queues; /* all open queues */
    struct buffer *buffers;
    struct hw_event *events;
    struct hw_graph *graphs;
    struct hw_kernel *kernels;
    struct fallback *fallbacks; /* route/fallback.c: each is reported once */
};

/* The latest catalog. A function that reads several members calls this once, and so reads them all
 * from one catalog. */
static inline const struct catalog *catalog_of(const struct hw_context *context)
{
    return atomic_load_explicit(&context->found, memory_order_acquire);
}

/* Whether hw_open() is making this catalog. */
static inline bool catalog_is_first(const struct catalog *found)
{
    return catalog_of(found->context) == found;
}

#endif
