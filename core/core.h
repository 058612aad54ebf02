/* SPDX-License-Identifier: MIT */
/* core.h - the library's insides: who holds what, and which file does what.
 *
 *   open    config -> the ladder (ladder.h) -> registry -> select
 *   call    ops (check, one indirect call) -> route (the cold path) -> transfer
 *
 * Nothing here knows a vendor. */
#ifndef HW_CORE_H
#define HW_CORE_H

#include <hw/hw.h>
#include <hw/plugin.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* ---- message.c: the thread's message ---- */

/* Sets the thread's message and answers `status`, for: return fail(HW_INVALID, "...", ...). */
enum hw_status fail(enum hw_status status, const char *format, ...)
    __attribute__((cold, format(printf, 2, 3)));
/* Puts words in front of the message that is there: "open device cpu:0: " and so on. */
enum hw_status fail_in(enum hw_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What a plugin says of a failure lies aside until the host knows that the call failed: a
 * plugin may say something and succeed. Before a call: forgets what older ones said. */
void plugin_asked(void);
/* hw_host.fail(). */
int32_t plugin_says(int32_t status, const char *text);
/* The call failed: what the plugin said, "no reason given" if nothing. */
const char *plugin_words(void);
/* The same becomes the message. Answers `status`. */
enum hw_status plugin_failed(int32_t status);

/* The message as it is, for what must not change it. */
struct words {
    char text[2048];
};
struct words words_keep(void);
void words_restore(const struct words *words);

/* ---- log.c ---- */

void log_line(struct hw_context *context, int32_t level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- config.c: the sixteen settings ---- */

/* X(field of struct hw_options, variable, default): one list for options, environment, file. */
#define SETTINGS(X)                                                                        \
    X(backends, "HW_BACKENDS", "*")                                                        \
    X(disable, "HW_DISABLE", "")                                                           \
    X(require, "HW_REQUIRE", "")                                                           \
    X(fallback, "HW_FALLBACK", "warn")                                                     \
    X(plugin_path, "HW_PLUGIN_PATH", "")                                                   \
    X(plugin_path_only, "HW_PLUGIN_PATH_ONLY", "")                                         \
    X(trust, "HW_TRUST", "on")                                                             \
    X(probe, "HW_PROBE", "child")                                                          \
    X(probe_timeout, "HW_PROBE_TIMEOUT", "10")                                             \
    X(threads, "HW_THREADS", "")                                                           \
    X(precision, "HW_PRECISION", "fp32")                                                   \
    X(memory_limit, "HW_MEMORY_LIMIT", "")                                                 \
    X(config, "HW_CONFIG", "")                                                             \
    X(cache_dir, "HW_CACHE_DIR", "")                                                       \
    X(kernel, "HW_KERNEL", "")                                                             \
    X(log, "HW_LOG", "warn")

enum setting {
#define X(field, variable, fallback) SETTING_##field,
    SETTINGS(X)
#undef X
        SETTING_COUNT
};

/* A setting's effective text and where it came from: "option", the variable's name, the file's
 * path and line, or "default". Both are owned by the context. */
struct setting_value {
    char *text;
    char *source;
};

/* A line of text in a list: a warning of the settings, say. */
struct note {
    struct note *next;
    char text[];
};

enum fallback_mode { FALLBACK_ALLOW, FALLBACK_WARN, FALLBACK_ERROR };

/* The settings that the rest of the core asks for, parsed once at open. */
struct settings {
    struct setting_value value[SETTING_COUNT];
    enum fallback_mode fallback;
    enum hw_precision precision;
    uint64_t memory_limit;
    uint32_t threads; /* 0: as many as the process may use */
    uint32_t probe_timeout_ms;
    int32_t log_level; /* 0: off */
    bool trust;
    bool elevated;         /* AT_SECURE: no variable and no file is honoured */
    struct note *warnings; /* said once at open, and in hw_explain() */
};

/* Reads every source, once. HW_INVALID names the source, the value and what would be right; with
 * `anyway` a value in error gives way to the default, and the rest is read all the same. */
enum hw_status config_read(struct settings *settings, const struct hw_options *options,
                           bool anyway);
void config_free(struct settings *settings);

/* ---- load.c, registry.c: plugins and their devices ---- */

struct directory; /* ladder.h: a place that was searched */
struct candidate; /* ladder.h: a file that was looked at, with stage, reason, remedy */

#define MAX_OP_BYTES 4096 /* of an op's struct, whoever knows it */

/* A plugin in the process. Its library is never unloaded: see plugin_close(). */
struct plugin {
    struct hw_context *context;
    struct candidate *candidate;
    void *library;
    void *self;   /* from table.open() */
    bool started; /* open() has succeeded, so close() is due */
    struct hw_host host;
    struct hw_plugin table;   /* holes filled with functions that answer HW_UNSUPPORTED */
    struct hw_plugin_ops ops; /* likewise */
    int32_t rank;
    struct plugin *next;
};

/* A device: listed at open, woken (device_open) when first used. */
struct hw_device {
    struct hw_context *context;
    struct plugin *plugin;
    int32_t index;              /* the plugin's */
    char name[48];              /* "cpu:0" */
    struct hw_device_info info; /* as listed */
    pthread_mutex_t lock;       /* guards waking and what follows */
    void *_Atomic impl;         /* the plugin's device; NULL: asleep; read at any time */
    struct pool *pool;          /* pool.c; made when the device wakes */
    _Atomic int32_t lost;       /* HW_LOST once it is */
    char *why;                  /* why it is not selected; NULL if it is */
};

/* Wakes the device if it sleeps. */
enum hw_status device_wake(struct hw_device *device);
/* Puts it to sleep: its pool goes, then the plugin's device. */
void device_sleep(struct hw_device *device);

/* ---- context.c ---- */

struct hw_context {
    struct settings settings;
    hw_log_fn log_fn;
    void *log_user;
    hw_start_fn start_fn;
    void *start_user;
    uint32_t flags;
    uint32_t generation;  /* of the process: differs after fork() */
    pthread_mutex_t lock; /* guards the lists of work: queues, buffers, events, graphs */
    pthread_mutex_t log_lock; /* one line at a time */
    /* From here to open_error nothing changes once hw_open() has returned. */
    struct directory *directories;
    struct candidate *candidates;
    struct plugin *plugins;
    struct hw_device **devices; /* selected ones, in order of preference */
    uint32_t device_count;
    struct hw_device **unselected; /* found, but the settings exclude or shadow them */
    uint32_t unselected_count;
    uint64_t open_microseconds;  /* how long hw_open() took */
    struct selection *selection; /* select.c: the lists of the settings */
    /* with HW_OPEN_ANYWAY: what hw_open would have failed with; or NULL */
    char *open_error;
    struct hw_queue *queues; /* all that are open, for closing and for counting */
    struct buffer *buffers;
    struct hw_event *events;
    struct hw_graph *graphs;
    struct hw_kernel *kernels;
    struct fallback *fallbacks; /* fallback.c: each said once */
    /* Counts of closed queues, so that hw_explain() forgets nothing: by device and op. */
    struct call_counts *closed_counts;
};

/* Bumped in the child by fork(); see guard(). */
extern _Atomic uint32_t process_generation;

/* Whether this process is a child of the one that opened the context. */
static inline bool forked(const struct hw_context *context)
{
    return context->generation !=
           atomic_load_explicit(&process_generation, memory_order_relaxed);
}
/* HW_OK, or HW_FORKED with its message: the first line of every entry that has a context. */
enum hw_status guard(const struct hw_context *context);

/* ---- json.c, explain.c: JSON text that grows ---- */

/* json.c: appends to a buffer with snprintf's manners; see hw_explain(). Bytes that are no UTF-8
 * become U+FFFD. */
struct json {
    char *text;
    size_t size, length;
    bool comma;
};
void json_open(struct json *json, const char *key,
               char bracket); /* '{' or '['; key may be NULL */
void json_close(struct json *json, char bracket);
void json_string(struct json *json, const char *key,
                 const char *value); /* escapes; NULL: null */
void json_number(struct json *json, const char *key, uint64_t value);
void json_signed(struct json *json, const char *key, int64_t value);
void json_bool(struct json *json, const char *key, bool value);
size_t json_end(struct json *json); /* terminates; the length without the terminator */
/* "calls": [...], by queue and op, written by queue.c. */
void explain_calls(struct json *json, struct hw_context *context);

/* What exec's files close when a context closes: queues, graphs, events, buffers, pools. */
void close_all_work(struct hw_context *context);
/* Buffers begin at multiples of this, or of more where a device asks for more. */
#define POOL_GRAIN 256
/* Pool of a device that wakes or sleeps. */
enum hw_status pool_create(struct hw_device *device, struct pool **pool);
void pool_destroy(struct pool *pool);

#endif
