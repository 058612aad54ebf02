/* SPDX-License-Identifier: MIT */
/* core.h - what both halves of the library work on: contexts, plugins, devices.
 *
 *   open/    from a file in a directory to a device: settings, the ladder, selection
 *   object/  what reading an object file shows, without running it
 *   run/     from a call to the device's work: checks, routing, memory, queues
 *   base/    messages, log, JSON, text, the operating system
 *
 * Nothing here knows a vendor. */
#ifndef HW_CORE_H
#define HW_CORE_H

#include "base/log.h"
#include "settings.h"

#include <hw/hw.h>
#include <hw/plugin.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define MAX_OP_BYTES 4096 /* of an op's struct, as the library or any plugin knows it */

/* What has become of a plugin in this process. */
enum bound { BOUND_NOT_YET, BOUND, BOUND_NEVER };

/* A plugin with devices. It is loaded and started when one of them is first used, if its devices
 * are known without that: see plugin_bind(). Its library is never unloaded: see
 * plugin_close(). */
struct plugin {
    struct hw_context *context;
    struct candidate *candidate; /* open/candidate.h: the file it came from */
    _Atomic int32_t bound;       /* enum bound; what follows is valid once it is BOUND */
    struct candidate *binding;   /* what is being bound: of the thread that does it */
    /* What binding it found out, if it came to an end; says why if `bound` is BOUND_NEVER. */
    struct candidate *_Atomic outcome;
    struct candidate *outcomes; /* all so far, the latest first */
    bool apart; /* HW_WORKER names it: it is loaded in a process of its own, ... */
    struct worker *worker; /* which is this one, while it is loaded (worker/worker.h) */
    void *library;         /* otherwise */
    void *self;            /* from table.open() */
    bool started;          /* open() has succeeded, so close() must be called */
    struct hw_host host;
    char *cache_dir;          /* for host.cache_dir; "": no cache */
    struct hw_plugin table;   /* empty slots are filled: see open/defaults.h */
    struct hw_plugin_ops ops; /* likewise */
    int32_t rank;             /* always valid, and so are those below */
    struct hw_device *devices;
    struct plugin *next; /* in struct catalog */
};

/* Loads and starts the plugin unless that has been done (open/bind.c). HW_NO_DEVICE if it cannot
 * be used, now and later: the message says why. HW_NO_MEMORY if memory or descriptors ran out:
 * later it may go well. Called with no lock held. */
enum hw_status plugin_bind(struct plugin *plugin);
static inline bool plugin_is_bound(const struct plugin *plugin)
{
    return atomic_load_explicit(&plugin->bound, memory_order_acquire) == BOUND;
}

/* Why the process of a plugin that is apart has ended (open/apart.c); NULL if it runs. */
const char *plugin_ended(const struct plugin *plugin);

/* Whether it may still be used. */
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
    /* From when the devices were listed; no memory_free if the plugin was tried elsewhere. */
    struct hw_device_info info;
    pthread_mutex_t lock;     /* protects the members below while the device is woken */
    void *_Atomic impl;       /* the plugin's device; NULL: asleep; read at any time */
    struct pool *pool;        /* run/pool.h; made when the device wakes */
    _Atomic int32_t lost;     /* HW_LOST once the device is lost */
    _Atomic uint64_t changes; /* see device_changed() */
    /* How many ops other devices compute, and whether some are tested before they are first used:
     * see run/demotion.h. */
    _Atomic uint32_t demoted;
    struct untested *_Atomic untested; /* run/untested.h; NULL: nothing was left out */
    _Atomic uint32_t chosen;           /* bits of enum chosen: who chose the device */
    struct profile *_Atomic profile;   /* core/measured.h; NULL: nobody has asked yet */
    /* Counts of its closed queues, so that hw_explain() forgets nothing: by op. NULL: there were no
     * queues. Protected by the context's lock. */
    struct call_counts *closed_counts;
    struct hw_device *next; /* of the plugin */
};

struct op_form;
struct tested;
/* Has hw-probe test an op on operands of these dtypes, of which the admission test left out so many
 * cases; withdraws it if it fails, and counts (open/first_use.c). Called with no lock held. */
void device_test(struct hw_device *device, const struct op_form *form, uint32_t cases,
                 struct tested *sum);

/* How the application came by a device. Each bit stays set. */
enum chosen {
    CHOSEN_BY_DEFAULT = 1, /* hw_device_default() returned it */
    CHOSEN_BY_NAME = 2     /* the settings, hw_device_find() or hw_device_import() */
};

/* A device that is not selected, and why. */
struct unselected {
    struct hw_device *device;
    char *why;
};

/* What hw_open(), or hw_rescan() later, found: the files, the plugins that can be used, and the
 * devices that are selected. It does not change once the context has it: see catalog_of(). All of
 * them are kept until hw_close(), because any thread may be reading one. */
struct catalog {
    struct catalog *older; /* what was found before */
    struct hw_context *context;
    struct directory *directories; /* open/scan.h: the places that were searched */
    struct candidate *candidates;  /* open/candidate.h: the files that were found there */
    struct inventory *inventory;   /* open/match.h: of the hardware; NULL if not yet read */
    struct plugin *plugins; /* the latest first, followed by those that were found before */
    /* All devices that were ever selected, by the application's index. */
    struct hw_device **devices;
    uint32_t device_count;
    /* Those that are, in order of preference: all but those of plugins that were replaced. */
    struct hw_device **order;
    uint32_t order_count;
    struct unselected *unselected; /* found, but the settings exclude or shadow them */
    uint32_t unselected_count;
    /* With HW_OPEN_ANYWAY: what hw_open() would have failed with; or NULL. */
    char *error;
    char *key; /* open/key.c: what the verdicts on all plugins depend on */
    /* Memory or descriptors ran out, so that this is not all that there is. */
    bool shortage;
};

struct hw_context {
    struct settings settings;
    struct log log;
    hw_start_fn start_fn;
    void *start_user;
    uint32_t flags;
    uint32_t generation;  /* of the process: see base/fork.h */
    pthread_mutex_t lock; /* protects the lists of work: queues, buffers, events, graphs */
    pthread_mutex_t binding;       /* held by the thread that binds a plugin */
    pthread_mutex_t looking;       /* held by the thread that is in hw_rescan() */
    struct catalog *_Atomic found; /* the latest: see catalog_of() */
    /* From here to selection nothing changes once hw_open() has returned. */
    struct hw_device *judge;    /* with HW_SHADOW: of the CPU plugin; or NULL */
    uint64_t open_microseconds; /* how long hw_open() took */
    /* With HW_OPEN_ANYWAY: what is wrong with the settings, so that hw_open() would have failed. */
    char *open_error;
    struct selection *selection; /* open/select.h: the lists of the settings */
    atomic_bool cache_told;  /* open/cache.c: the log has said why verdicts are not kept */
    struct hw_queue *queues; /* all open ones */
    struct buffer *buffers;
    struct hw_event *events;
    struct hw_graph *graphs;
    struct hw_kernel *kernels;
    struct fallback *fallbacks; /* run/fallback.c: each reported once */
    struct demotion *demotions; /* run/demotion.c */
};

/* What was found last. Whoever needs several things of it asks once. */
static inline const struct catalog *catalog_of(const struct hw_context *context)
{
    return atomic_load_explicit(&context->found, memory_order_acquire);
}

#endif
