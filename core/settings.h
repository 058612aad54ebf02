/* SPDX-License-Identifier: MIT */
/* settings.h - the settings of a context, as data. settings/config.c reads them. */
#ifndef HW_SETTINGS_H
#define HW_SETTINGS_H

#include <hw/plugin.h>

#include <stdbool.h>

/* X(field of struct hw_options, variable, default): one list for options, environment and
 * file. */
#define SETTINGS(X)                                                                        \
    X(backends, "HW_BACKENDS", "*")                                                        \
    X(disable, "HW_DISABLE", "")                                                           \
    X(require, "HW_REQUIRE", "")                                                           \
    X(fallback, "HW_FALLBACK", "warn")                                                     \
    X(plugin_path, "HW_PLUGIN_PATH", "")                                                   \
    X(trust, "HW_TRUST", "on")                                                             \
    X(probe, "HW_PROBE", "child")                                                          \
    X(probe_timeout, "HW_PROBE_TIMEOUT", "10")                                             \
    X(threads, "HW_THREADS", "")                                                           \
    X(precision, "HW_PRECISION", "fp32")                                                   \
    X(memory_limit, "HW_MEMORY_LIMIT", "")                                                 \
    X(config, "HW_CONFIG", "")                                                             \
    X(cache_dir, "HW_CACHE_DIR", "")                                                       \
    X(kernel, "HW_KERNEL", "")                                                             \
    X(log, "HW_LOG", "warn")                                                               \
    X(shadow, "HW_SHADOW", "off")                                                          \
    X(worker, "HW_WORKER", "")

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

/* A line of text in a list, such as a warning about the settings. */
struct note {
    struct note *next;
    char text[];
};

enum fallback_mode { FALLBACK_ALLOW, FALLBACK_WARN, FALLBACK_ERROR };
/* Where plugins and their ops are first tried: docs/settings.md. */
enum probe_mode { PROBE_INPROC, PROBE_CHILD, PROBE_FULL };

/* All settings, parsed once when the context is opened. */
struct settings {
    struct setting_value value[SETTING_COUNT];
    enum fallback_mode fallback;
    enum hw_precision precision;
    uint64_t memory_limit;
    uint32_t threads;       /* 0: as many as the process may use */
    uint32_t shadow;        /* N: one in N calls of an op is compared; 0: none */
    int32_t log_level;      /* 0: off */
    uint32_t probe_timeout; /* seconds */
    enum probe_mode probe;
    uint32_t trust;        /* 0: owners and permissions are not checked */
    bool elevated;         /* AT_SECURE: variables and files are ignored */
    struct note *warnings; /* logged once when the context is opened, and in hw_explain() */
};

#endif
